"""A bad value is told with file, row, line and column."""

import json
from pathlib import Path

import pytest

from tests.support.loading import line, loaded, refusal

JUDGED = "question,answer,predicted_answer,label,label_1\n"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("q,a,p,CORRECT,x\n", ":2: row 1, column 'label_1': want CORRECT"),
        ("q,a,p,,\n", ":2: row 1, column 'label': empty"),
        ("q,a,p,11,\n", "column 'label': want CORRECT, INCORRECT, NOT_ATTEMPTED, a letter"),
        ("q,a,p,А,\n", "column 'label': want"),
        ("q,a,p,A,\nq,a,p,7,\n", ":3: row 2, column 'label': got '7', but row 1 has a grade"),
        ("q,a,p,7,\nq,a,p,A,\n", "row 1 has a rating; one file holds one of the two"),
    ],
)
def test_bad_labels(tmp_path: Path, rows: str, said: str) -> None:
    """A label that is no grade and no rating is an error; the two do not mix."""
    assert said in refusal(tmp_path, JUDGED + rows, kind="judged")


def test_judged_needs_an_answer_and_text_labels(tmp_path: Path) -> None:
    """A null answer leaves nothing to judge; a list is no label."""
    null = line(predicted_answer=None, label="A")
    assert "column 'predicted_answer': null" in refusal(tmp_path, null, "jsonl", "judged")
    listed = line(predicted_answer="p", label=["A"])
    assert "column 'label': text is needed, not a list" in refusal(
        tmp_path, listed, "jsonl", "judged"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "metadata,problem,gold\n{},q,a\n",
            ":1: no column 'answer' (or 'Answer', 'Answers'); found",
        ),
        ("Answers\na\n", "no column 'question' (or 'Question', 'problem')"),
        ("Question,Anwsers\nq,a\n", "is it 'Anwsers'?"),
        (
            "Question,Аnswers\nq,a\n",
            "is not 'Answers': it holds U+0410 (CYRILLIC CAPITAL LETTER A)",
        ),
        (
            "Question,Answers,Рredicted answers\nq,a,p\n",
            "is not 'Predicted answers': it holds U+0420",
        ),
        ("Question,\u200bAnswers\nq,a\n", "it holds U+200B (ZERO WIDTH SPACE)"),
        (
            "Question,problem,Answers\nq,r,a\n",
            "column 'problem': says the same as column 'question'",
        ),
        ("Question,Answers\nq,a\nr,\n", ":3: row 2, column 'Answers': empty"),
        ('Question,Answers\n"q\n1",a\n  ,b\n', ":4: row 2, column 'Question': empty"),
        ("Question,Answers\nq\0,a\n", "column 'Question': holds a NUL"),
        (
            "id,Question,Answers\n7,q,a\n7,r,b\n",
            ":3: row 2, column 'id': '7' is also the id of row 1",
        ),
        ("Question,Answers\nq,A1\nr,A2\nq,A9\n", ":4: row 3, column 'Answers': the same question"),
    ],
)
def test_bad_tables_name_row_and_column(tmp_path: Path, text: str, said: str) -> None:
    """Missing and look-alike columns, empty cells and duplicates are told with their place."""
    assert said in refusal(tmp_path, text)


@pytest.mark.parametrize(
    "literal",
    ["open('PWNED','w')", "9**9**9", "__import__('os')", "{'a': 'b", "[" * 9000, "-" * 9000 + "1"],
)
def test_metadata_never_runs(tmp_path: Path, literal: str) -> None:
    """Whatever is no literal is refused, in bounded time, and nothing is executed."""
    text = f'metadata,problem,answer\n"{literal}",q,a\n'
    assert ":2: row 1, column 'metadata': not a Python literal" in refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("literal", "said"),
    [
        ("[1]", "a mapping such as {'topic': 'Art'} is needed, not a list"),
        ("{'a': {1, 2}}", "set values are not kept"),
        ("{'a': b'x'}", "bytes values are not kept"),
        ("{'a': 1e999}", "a finite number is needed"),
        ("{'a': '\\ud800'}", "holds a lone surrogate"),
        ("{'\\ud800': 1}", "holds a lone surrogate"),
        ("{'a': " + "[" * 30 + "]" * 30 + "}", "nested deeper than 20 levels"),
        ("{'a': '" + "x" * 200_000 + "'}", "200,009 characters; at most 200,000 are read"),
    ],
)
def test_metadata_is_plain_data(tmp_path: Path, literal: str, said: str) -> None:
    """Only what strict JSON can hold is kept as metadata."""
    assert said in refusal(tmp_path, f'metadata,problem,answer\n"{literal}",q,a\n')


def test_metadata_escapes_do_not_warn(tmp_path: Path) -> None:
    """An odd backslash in a literal is text; an empty cell is no metadata."""
    text = "metadata,problem,answer\n{'a': '\\d'},q,a\n  ,r,b\n"
    first, second = loaded(tmp_path, text)
    assert (first.metadata, second.metadata) == ({"a": "\\d"}, {})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"answer": None}, "column 'answer': text or a list of texts is needed, not null"),
        ({"answer": True}, "not true or false"),
        ({"answer": {}}, "not a mapping"),
        ({"answer": []}, "the list is empty"),
        ({"answer": ["a", None]}, "it holds null"),
        ({"answer": ["a", 5]}, "it holds '5'"),
        ({"answer": ["a", " "]}, "column 'answer': empty"),
        ({"aliases": 5.5}, ""),
        ({"aliases": {}}, "column 'aliases': text or a list"),
        ({"question": 5}, "column 'question': text is needed, not '5'"),
        ({"question": "\ud800"}, "column 'question': holds a lone surrogate"),
        ({"answer": "\ud800"}, "column 'answer': holds a lone surrogate"),
        ({"x": "\ud800"}, "column 'x': holds a lone surrogate"),
        ({"x": ["\ud800"]}, "column 'x': holds a lone surrogate"),
        ({"\ud800": 1}, "column name '\\ud800' holds a lone surrogate"),
        ({"id": [1]}, "column 'id': text or a number is needed, not a list"),
        ({"id": "\ud800"}, "column 'id': holds a lone surrogate"),
        ({"predicted_answer": 5}, ""),
        ({"predicted_answer": []}, "column 'predicted_answer': text is needed, not a list"),
        ({"аnswer": 5}, "column 'аnswer' is not 'Answer'"),
    ],
)
def test_bad_json_values(tmp_path: Path, values: dict[str, object], said: str) -> None:
    """A value of a wrong type is told with row, line and column; harmless numbers are text."""
    text = line(question="ok?") + "\n" + line(**values)
    if said:
        assert said in refusal(tmp_path, text, "jsonl")
    else:
        assert len(loaded(tmp_path, text, "jsonl")) == 2


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (
            {"question": "q", "answer": "Yes"},
            "column 'paragraph': missing (or 'passage', 'context')",
        ),
        ({"passage": "p", "question": "q"}, "column 'answer': missing"),
        ({"passage": "p", "question": "q", "answer": "так/не"}, "got 'так/не'"),
        ({"passage": "p", "question": "q", "answer": 1}, "text is needed, not '1'"),
        ({"passage": " ", "question": "q", "answer": "Yes"}, "column 'passage': empty"),
        ({"passage": "p", "paragraph": "p", "question": "q", "answer": "Yes"}, "says the same"),
    ],
)
def test_bad_yes_no(tmp_path: Path, item: dict[str, object], said: str) -> None:
    """A passage and exactly one label are needed."""
    message = refusal(tmp_path, json.dumps([item]), "json", "yes_no")
    assert ":1: row 1" in message
    assert said in message


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("context: c\n  expected: e", "column 'question': missing"),
        ('question: q\n  context: c\n  expected: "\\u200b"', "column 'expected': empty"),
        (
            "question: q\n  context: c\n  expected: [a]",
            "column 'expected': text is needed, not a list",
        ),
        (
            "question: q\n  context: {}\n  expected: e",
            "column 'context': text is needed, not a mapping",
        ),
    ],
)
def test_bad_rated(tmp_path: Path, entry: str, said: str) -> None:
    """A question is needed; context and expected are text where they are there."""
    message = refusal(tmp_path, f"- {entry}\n", "yaml", "rated")
    assert ":1: row 1" in message
    assert said in message
