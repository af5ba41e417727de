"""LabelledFile files: what is read, by which column, and what is said of a wrong one."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases.labelled_file import LabelledFile, Reading, agreed, read_labelled
from cases.labels import Scale, parse_scale, rounded
from evaluators.core import UsageError

HEAD = "question,answer,predicted_answer,label\n"
Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return written


def jsonl(*rows: Mapping[str, object]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def row(**changes: object) -> dict[str, object]:
    base: dict[str, object] = {"question": "q?", "gold": "g", "predicted": "p", "label": "A"}
    return {**base, **changes}


def labels(found: LabelledFile) -> list[object]:
    return [item.label for item in found.items]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "Question,Answers,Predicted answers,Label\n2+2?,4,four,CORRECT\n"),
        ("a.csv", '\ufeffLABEL,predicted-answer,GOLD,problem\r\nA,four,4,"2+2?"\r\n'),
        ("a.csv", "question,gold,answer,human\n2+2?,4,four,yes\n"),
        ("a.jsonl", '{"question":"2+2?","gold":4,"answer":"four","human_correct":true}\n\n'),
        ("a.ndjson", '{"label":"right","input":"2+2?","target":["4"],"response":"four"}'),
    ],
)
def test_columns_are_found_by_name(write: Write, name: str, text: str) -> None:
    """Whatever their order, letter case and usual name; ``answer`` beside ``gold`` is judged."""
    (item,) = read_labelled(write(name, text), Reading()).items
    assert (item.case.question, item.case.golds) == ("2+2?", ("4",))
    assert (item.answer, item.label, item.case.language) == ("four", "CORRECT", "en")


def test_answers_are_text_as_it_stands(write: Write) -> None:
    """NA, 007 and spaces arrive unchanged, and so does a comma or a line break in quotes."""
    text = HEAD + 'q?,007," NA, ""so""\nit is ",B\n'
    (item,) = read_labelled(write("a.csv", text), Reading()).items
    assert (item.case.golds, item.answer) == (("007",), ' NA, "so"\nit is ')


def test_aliases_context_and_language_are_kept(write: Write) -> None:
    """Every accepted form once, the main one first; the row's own language."""
    text = jsonl(row(gold=["g", "h"], aliases="h | i", language="BG", context="c"))
    (item,) = read_labelled(write("a.jsonl", text), Reading(language="pl")).items
    case = item.case
    assert (case.golds, case.language, case.context) == (("g", "h", "i"), "bg", "c")


def test_labels_that_tell_only_right_from_wrong_are_two_way(write: Write) -> None:
    """yes/no labels say nothing of NOT_ATTEMPTED; three grades do, unless asked otherwise."""
    two = write("a.jsonl", jsonl(row(label=True), row(label=False)))
    three = write("b.jsonl", jsonl(row(label="A"), row(label="not attempted")))
    assert read_labelled(two, Reading()).two_way
    assert labels(read_labelled(two, Reading())) == ["CORRECT", "NOT_CORRECT"]
    assert not read_labelled(three, Reading()).two_way
    assert read_labelled(three, Reading(two_way=True)).two_way


def test_ratings_are_put_on_the_judges_scale(write: Write) -> None:
    """0 to 5 becomes 1 to 10 by a straight line; a scale may run backwards."""
    path = write("a.jsonl", jsonl(row(label=0), row(label=2.5), row(label="5")))
    found = read_labelled(path, Reading(scale=parse_scale("0:5")))
    assert (found.style, labels(found)) == ("rated", [1.0, 5.5, 10.0])
    assert Scale(5, 0).placed(0) == 10
    assert [rounded(value) for value in (1.0, 5.5, 6.49)] == [1, 6, 6]


def test_zeros_and_ones_need_a_word_from_the_user(write: Write) -> None:
    """They may be grades or ratings; --kind decides."""
    path = write("a.jsonl", jsonl(row(label=0), row(label=1)))
    with pytest.raises(UsageError, match=r"a\.jsonl: labels 0 and 1 .* --kind"):
        read_labelled(path, Reading())
    assert labels(read_labelled(path, Reading(style="graded"))) == ["NOT_CORRECT", "CORRECT"]


def test_raters_have_a_column_each_and_agree_by_majority(write: Write) -> None:
    """No ``label``: the majority counts, a tie is no label; a rater may have skipped a row."""
    head = "question,gold,predicted,label_10,label_2,label_1\n"
    text = head + "q?,g,p,A,A,B\nq?,g,p,,A,B\nq?,g,p,,,C\n"
    found = read_labelled(write("a.csv", text), Reading())
    assert found.raters == ("label_1", "label_2", "label_10")
    assert labels(found) == ["CORRECT", None, "NOT_ATTEMPTED"]
    assert dict(found.items[2].raters) == {"label_1": "NOT_ATTEMPTED"}
    assert not found.own_label
    assert agreed([4.0, 5.0]) == 4.5
    assert agreed([]) is None


def test_the_user_may_name_the_columns(write: Write) -> None:
    """--label and --rater take columns by any name."""
    text = jsonl(row(me=3, other=5, both=4))
    reading = Reading(label="both", raters=("me", "Other"), style="rated")
    found = read_labelled(write("a.jsonl", text), reading)
    assert (found.raters, labels(found)) == (("me", "other"), [4.0])


def test_the_source_of_the_labels_is_told(write: Write) -> None:
    """What ``label_source`` says, with counts."""
    text = jsonl(row(label_source="two experts"), row(label_source="two experts"), row())
    assert read_labelled(write("a.jsonl", text), Reading()).source == "two experts (2)"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "x", r"a\.txt: want a labelled file that ends in \.csv"),
        ("a.csv", "", r"a\.csv: the file is empty"),
        ("a.csv", HEAD, r"a\.csv:1: no rows"),
        ("a.jsonl", "\n\n", r"a\.jsonl: no rows"),
        ("a.csv", HEAD + "q,a,p\n", r"a\.csv:2: row 1: 3 cells for 4 columns"),
        ("a.csv", HEAD + 'q,a,"p\n', r"a\.csv:2: row 1: not valid CSV: a quote opened"),
        ("a.csv", "label,Label\nx,y\n", r"a\.csv:1: column 'Label' stands twice"),
        ("a.csv", "question,answer,label\nq,a,A\n", r"a\.csv:2: no column 'predicted_answer'"),
        ("a.csv", "question,gold,answer\nq,a,A\n", r"no column 'label' .*found 'question', 'gold'"),
        ("a.csv", HEAD + "q,a,p,maybe\n", r"a\.csv:2: row 1: column 'label': want CORRECT"),
        ("a.csv", HEAD + "q,a,p,A\nq,a,p,\n", r"a\.csv:3: row 2: column 'label'"),
        ("a.csv", HEAD + "q,a,p,7\nq,a,p,11\n", r"row 2: column 'label': 11 is outside the scale"),
        ("a.csv", HEAD + ",a,p,A\n", r"row 1: column 'question' is empty"),
        ("a.csv", HEAD + "q,,p,A\n", r"row 1: column 'answer': want text"),
        ("a.jsonl", "[1]\n", r"a\.jsonl:1: row 1: an object is needed"),
        ("a.jsonl", jsonl(row()) + "{", r"a\.jsonl:2: row 2: not valid JSON"),
        ("a.jsonl", jsonl(row(gold={})), r"column 'gold': want text or a list"),
        ("a.jsonl", jsonl(row(predicted=["x"])), r"column 'predicted': want text"),
        ("a.jsonl", jsonl(row(label=None)), r"row 1: column 'label': want CORRECT"),
    ],
)
def test_a_wrong_file_is_named_with_its_row(
    write: Write, name: str, text: str, message: str
) -> None:
    """One line that says where and what."""
    with pytest.raises(UsageError, match=message) as caught:
        read_labelled(write(name, text), Reading())
    assert "\n" not in str(caught.value)


def test_a_row_without_any_label_is_refused(write: Write) -> None:
    """Raters' columns that are all empty in a row leave nothing to hold the judge against."""
    text = "question,gold,predicted,label_1,label_2\nq,g,p,A,A\nq,g,p,,\n"
    with pytest.raises(UsageError, match="row 2: no rater has a label"):
        read_labelled(write("a.csv", text), Reading())


@pytest.mark.parametrize("scale", ["5", "1:1", "a:b", "1:2:3", "1e3:5", ""])
def test_a_wrong_scale_is_refused(scale: str) -> None:
    """Two different plain numbers with a colon between them."""
    with pytest.raises(UsageError, match=r"--scale .*: want WORST:BEST"):
        parse_scale(scale)


cells = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
filled = cells.filter(str.strip)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(filled, filled, cells), min_size=1, max_size=5))
def test_any_text_comes_back_from_both_formats(
    write: Write, rows: list[tuple[str, str, str]]
) -> None:
    """Question, gold and answer are the same text after CSV and after JSONL."""
    lines = io.StringIO(newline="")
    csv.writer(lines, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(
        (*each, "A") for each in rows
    )
    names = ("question", "gold", "predicted")
    text = jsonl(*({**dict(zip(names, each, strict=True)), "label": "A"} for each in rows))
    for path in (write("a.csv", HEAD + lines.getvalue()), write("a.jsonl", text)):
        found = read_labelled(path, Reading()).items
        got = [(item.case.question, item.case.golds[0], item.answer) for item in found]
        assert got == rows


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["a.csv", "a.jsonl"]))
def test_any_bytes_are_read_or_refused_in_one_line(
    tmp_path: Path, content: bytes, name: str
) -> None:
    """Nothing but a UsageError comes out of a broken file."""
    path = tmp_path / name
    path.write_bytes(HEAD.encode() + content if name == "a.csv" else content)
    try:
        assert read_labelled(path, Reading()).items
    except UsageError as problem:
        assert name in str(problem)


def test_aliases_and_a_tolerance_are_accepted_forms(write: Write) -> None:
    """They are read as in a data set: the tolerance becomes a range around the gold."""
    text = jsonl(
        row(gold="2,925 m", aliases="2925 metres | 2.9 km", tolerance="5 m"),
        row(gold="12,5", aliases="", tolerance="2 %", language="pl"),
    )
    first, second = read_labelled(write("a.jsonl", text), Reading()).items
    assert first.case.golds == ("2,925 m", "2925 metres", "2.9 km", "2920..2930 m")
    assert second.case.golds == ("12,5", "12,25..12,75")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gold": "Oslo", "tolerance": "5"}, "column 'gold': a tolerance needs a gold with one"),
        ({"gold": "10..2 m"}, "column 'gold': .* the low end is the higher one"),
    ],
)
def test_a_wrong_range_or_tolerance_is_told(
    write: Write, changes: dict[str, object], message: str
) -> None:
    """File, row and column are named."""
    with pytest.raises(UsageError, match=rf"a\.jsonl:1: row 1: {message}"):
        read_labelled(write("a.jsonl", jsonl(row(**changes))), Reading())
