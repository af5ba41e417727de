"""Reading a grade from text: one reading, or Invalid; never a wrong grade."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.core import CORRECT, Reply, ToolCall, UsageError
from evaluators.replies.labels import LABELS_FILE, read_lexicon, word_key
from evaluators.replies.readers import Invalid, read_grade, spoken
from tests.support.tables import grown, kept, tabled


def grade_of(text: str, finish: str = "stop") -> str | None:
    grade = read_grade(Reply(text=text, finish=finish))
    return None if isinstance(grade, Invalid) else grade


READ = kept(__file__, "read")


def cells(lines: list[str]) -> list[str]:
    return [cell.strip(" \n") for line in lines for cell in line.split(" | ")]


@pytest.mark.parametrize(
    ("text", "grade"), [(text, grade) for grade, lines in READ.items() for text in cells(lines)]
)
def test_a_reply_with_one_reading_is_read(text: str, grade: str) -> None:
    """Case, quotes, markdown, look-alikes and markers leave the one reading; all languages do."""
    assert grade_of(text) == grade


@tabled("text", "grade")
def test_reasons_may_precede_the_verdict(text: str, grade: str | None) -> None:
    """A marked verdict, or the one alone on the last line, counts; a quoted one does not."""
    assert grade_of(text) == grade


@pytest.mark.parametrize("before", [" " * 300_000, "The two names are the same. " * 40 + "\n"])
def test_length_is_no_matter(before: str) -> None:
    """Neither of white space nor of a reason."""
    assert grade_of(f"{before}A") == CORRECT


@tabled("text")
def test_lines_without_one_reading_are_invalid(text: str) -> None:
    """Verdicts that are reported, reasoned away, contradicted or not the last word."""
    assert isinstance(read_grade(Reply(text=grown(text))), Invalid)


@pytest.mark.parametrize("text", [*cells(kept(__file__, "unread")), "\ud800", "A\ud800"])
def test_a_reply_without_one_reading_is_invalid(text: str) -> None:
    """Substrings, doubts, two grades, refusals, reported verdicts: no grade, but a reason."""
    grade = read_grade(Reply(text=text))
    assert isinstance(grade, Invalid)
    assert grade.reason


@pytest.mark.untraced
@given(
    st.sampled_from(sorted(READ)),
    st.sampled_from(["", "*", "**", '"', "`", " ", "\n", "\u200b"]),
    st.data(),
)
def test_decoration_does_not_change_a_reading(grade: str, mark: str, data: st.DataObject) -> None:
    """The words of the menu mean the same in any case and any decoration."""
    word = "".join(data.draw(st.sampled_from([letter.lower(), letter])) for letter in grade)
    assert grade_of(f"{mark}{word}{mark}") == grade


def test_thoughts_are_dropped_and_open_ones_are_noticed() -> None:
    """Nested blocks and a closing tag from the chat template are thoughts too."""
    assert spoken("a<think>b<think>c</think>d</think>e") == "ae"
    assert spoken("b</THINK>e") == "e"
    assert spoken("a<think>b") is None


def test_labels_never_conflict_even_as_look_alikes(tmp_path: Path) -> None:
    """A word of two grades is refused, also when only its letters' scripts differ."""
    words = read_lexicon(LABELS_FILE)
    assert {
        words.labels[word_key(word)] for word in ("верен", "poprawna", "helyes", "Правільны")
    } == {CORRECT}
    path = tmp_path / "labels.yaml"
    path.write_text(
        "en: {CORRECT: [OK], INCORRECT: [ОК]}\nletters: {}\nhints: {}\n", encoding="utf-8"
    )
    with pytest.raises(UsageError, match="stands for CORRECT and for INCORRECT"):
        read_lexicon(path)


@pytest.mark.parametrize(
    "text",
    ["- a", "en: {}", "en: {CORRECT: x}\nletters: {}\nhints: {}", "en: x\nletters: {}\nhints: {}"],
)
def test_a_wrong_labels_file_is_refused(tmp_path: Path, text: str) -> None:
    """The shape of the file is checked; the message names it."""
    path = tmp_path / "labels.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"labels\.yaml"):
        read_lexicon(path)


REGISTERS = ("formal", "informal", "mixed", "no register")


@tabled("text", "label")
def test_a_rubrics_own_labels_are_read_like_the_grades(text: str, label: str | None) -> None:
    """Labels are an argument: by name, or by letter in their order, alone, in JSON or in a call."""
    call = ToolCall(name="grade", arguments=json.dumps({"grade": label or "neutral"}))
    for reply, wanted in ((Reply(text=text), label), (Reply(text="", calls=(call,)), label)):
        found = read_grade(reply, labels=REGISTERS)
        assert (None if isinstance(found, Invalid) else found) == wanted


def test_a_grade_among_a_rubrics_labels_keeps_its_words() -> None:
    """CORRECT is read in every language next to labels of the rubric's own."""
    labels = ("CORRECT", "PARTLY")
    assert read_grade(Reply(text="Оценка: ВЕРЕН"), labels=labels) == "CORRECT"
    assert read_grade(Reply(text="B"), labels=labels) == "PARTLY"
    assert isinstance(read_grade(Reply(text="INCORRECT"), labels=labels), Invalid)


@tabled("labels", "text", "label")
def test_labels_that_differ_little_are_read_as_written(
    labels: list[str], text: str, label: str | None
) -> None:
    """A label written out is that label, with any signs; a word of two labels is neither."""
    found = read_grade(Reply(text=text), labels=tuple(labels))
    assert (None if isinstance(found, Invalid) else found) == label
    call = ToolCall(name="grade", arguments=json.dumps({"grade": text}))
    found = read_grade(Reply(text="", calls=(call,)), labels=tuple(labels))
    assert (None if isinstance(found, Invalid) else found) == label
