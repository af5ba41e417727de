"""Reading grades, ratings and yes/no from calls and text: one reading, or Invalid."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.evaluators.core import (
    CORRECT,
    INCORRECT,
    NOT_ATTEMPTED,
    Reply,
    ToolCall,
    UsageError,
)
from qagate.evaluators.replies import readers as reading
from qagate.evaluators.replies.labels import lexicon, word_key
from tests import robustness_adapter
from tests.support.tables import grown, kept, tabled


def grade_of(text: str, finish: str = "stop") -> str | None:
    grade = reading.read_grade(Reply(text=text, finish=finish))
    return None if isinstance(grade, reading.Invalid) else grade


READ = kept(__file__, "read")


def cells(lines: list[str]) -> list[str]:
    return [cell.strip(" \n") for line in lines for cell in line.split(" | ")]


@pytest.mark.parametrize(
    ("text", "grade"),
    [(text, grade) for grade, lines in READ.items() for text in cells(lines)],
)
def test_a_reply_with_one_reading_is_read(text: str, grade: str) -> None:
    """Case, quotes, markdown, look-alikes and markers leave the one reading; all languages do."""
    assert grade_of(text) == grade


@tabled("text", "grade")
def test_reasons_may_precede_the_verdict(text: str, grade: str | None) -> None:
    """A marked verdict, or the one alone on the last line, counts; a quoted one does not."""
    assert grade_of(text) == grade


@tabled("text")
def test_lines_without_one_reading_are_invalid(text: str) -> None:
    """Verdicts that are reported, reasoned away, contradicted or not the last word."""
    assert isinstance(reading.read_grade(Reply(text=grown(text))), reading.Invalid)


@pytest.mark.parametrize(
    "text", [*cells(kept(__file__, "unread")), "\ud800", "A\ud800"]
)
def test_a_reply_without_one_reading_is_invalid(text: str) -> None:
    """Substrings, doubts, two grades, refusals, reported verdicts: no grade, but a reason."""
    grade = reading.read_grade(Reply(text=text))
    assert isinstance(grade, reading.Invalid)
    assert grade.reason


@pytest.mark.untraced
@given(
    st.sampled_from(sorted(READ)),
    st.sampled_from(["", "*", "**", '"', "`", " ", "\n", "\u200b"]),
    st.data(),
)
def test_decoration_does_not_change_a_reading(
    grade: str, mark: str, data: st.DataObject
) -> None:
    """The words of the menu mean the same in any case and any decoration."""
    word = "".join(
        data.draw(st.sampled_from([letter.lower(), letter])) for letter in grade
    )
    assert grade_of(f"{mark}{word}{mark}") == grade


def test_reasons_and_thoughts() -> None:
    """Thoughts are dropped, open ones noticed; a reason is text of any length, or empty."""
    for before in (" " * 300_000, "The two names are the same. " * 40 + "\n"):
        assert grade_of(f"{before}A") == CORRECT
    assert (
        reading.read_reason(called('{"reason": "wrong year", "grade": "B"}'))
        == "wrong year"
    )
    explained = Reply(text='So: {"grade": "B", "explanation": "a year off"}')
    assert reading.read_reason(explained) == "a year off"
    for without in (Reply(text="B"), called("["), called('{"reason": 1}')):
        assert reading.read_reason(without) == ""


def test_a_word_has_one_grade() -> None:
    """In every language; a label that is the word of another is refused, as a look-alike too."""
    words = lexicon()
    own = ("верен", "poprawna", "helyes", "Правільны")
    assert {words.labels[word_key(word)] for word in own} == {CORRECT}
    look_alike = "poprawn\N{CYRILLIC SMALL LETTER A}"
    with pytest.raises(
        UsageError, match=rf"labels\.yaml.*stands for CORRECT and for {look_alike}"
    ):
        lexicon((CORRECT, look_alike))


REGISTERS = ("formal", "informal", "mixed", "no register")


@tabled("text", "label")
def test_a_rubrics_own_labels_are_read_like_the_grades(
    text: str, label: str | None
) -> None:
    """Labels are an argument: by name, or by letter in their order, alone, in JSON or in a call."""
    call = ToolCall(name="grade", arguments=json.dumps({"grade": label or "neutral"}))
    for reply, wanted in (
        (Reply(text=text), label),
        (Reply(text="", calls=(call,)), label),
    ):
        found = reading.read_grade(reply, labels=REGISTERS)
        assert (None if isinstance(found, reading.Invalid) else found) == wanted


def test_a_grade_among_a_rubrics_labels_keeps_its_words() -> None:
    """CORRECT is read in every language next to labels of the rubric's own."""
    labels = ("CORRECT", "PARTLY")
    assert reading.read_grade(Reply(text="Оценка: ВЕРЕН"), labels=labels) == "CORRECT"
    assert reading.read_grade(Reply(text="B"), labels=labels) == "PARTLY"
    assert isinstance(
        reading.read_grade(Reply(text="INCORRECT"), labels=labels), reading.Invalid
    )


@tabled("labels", "text", "label")
def test_labels_that_differ_little(
    labels: list[str], text: str, label: str | None
) -> None:
    """A label written out is that label, with any signs; a word of two labels is neither."""
    found = reading.read_grade(Reply(text=text), labels=tuple(labels))
    assert (None if isinstance(found, reading.Invalid) else found) == label
    call = ToolCall(name="grade", arguments=json.dumps({"grade": text}))
    found = reading.read_grade(Reply(text="", calls=(call,)), labels=tuple(labels))
    assert (None if isinstance(found, reading.Invalid) else found) == label


KIT = Path(__file__).parents[3] / "shared" / "robustness"


def called(
    *arguments: str, name: str = "grade", text: str = "", finish: str = "stop"
) -> Reply:
    calls = tuple(ToolCall(name=name, arguments=one) for one in arguments)
    return Reply(text=text, calls=calls, finish=finish)


def made(said: dict[str, Any]) -> Reply:
    return called(
        *map(grown, said["calls"]), **{key: said[key] for key in said if key != "calls"}
    )


@pytest.mark.parametrize("finish", ["length", "content_filter", "incomplete"])
def test_cut_and_filtered_replies_are_invalid(finish: str) -> None:
    """A reply that is known to be cut leaves doubt in every protocol."""
    assert isinstance(
        reading.read_grade(Reply(text="A", finish=finish)), reading.Invalid
    )
    assert isinstance(
        reading.read_grade(called('{"grade": "A"}', finish=finish)), reading.Invalid
    )
    assert isinstance(
        reading.read_rating(called('{"rating": 7}', name="rate", finish=finish)),
        reading.Invalid,
    )


@pytest.mark.parametrize("finish", ["", "stop", "done", "\ud800"])
def test_an_unknown_finish_casts_no_doubt_on_a_reply(finish: str) -> None:
    assert reading.read_grade(Reply(text="A", finish=finish)) == "CORRECT"


@tabled("said", "grade")
def test_a_forced_call_is_read_by_its_one_field(
    said: dict[str, Any], grade: str | None
) -> None:
    """The right function, one field, a label of the menu, and no text that says otherwise."""
    found = reading.read_grade(made(said))
    assert (None if isinstance(found, reading.Invalid) else found) == grade


@tabled("value", "rating")
def test_a_rating_is_an_integer_from_one_to_ten(value: str, rating: int | None) -> None:
    """No rounding, no clamping, no booleans; a text of plain digits is the number it writes."""
    found = reading.read_rating(called(f'{{"rating": {value}}}', name="rate"))
    assert (None if isinstance(found, reading.Invalid) else found) == rating
    assert type(found) in (int, reading.Invalid)


@tabled("said")
def test_a_rating_comes_from_the_one_right_call(said: dict[str, Any]) -> None:
    """Prose, other fields, cut JSON, calls that differ are Invalid; one JSON object is good."""
    assert isinstance(reading.read_rating(made(said)), reading.Invalid)
    for text in ('{"rating": 8}', '```json\n{"reason": "so", "rating": 8}\n```'):
        assert reading.read_rating(Reply(text=text)) == 8


@pytest.mark.parametrize("reason", [7, 1.5, True, ["A"], {"grade": "B"}])
def test_a_reason_that_is_no_text_is_asked_again(reason: object) -> None:
    """A number where text is needed leaves doubt about the verdict next to it (R7, F1)."""
    found = reading.read_grade(
        called(json.dumps({"reason": reason, "grade": "CORRECT"}))
    )
    assert isinstance(found, reading.Invalid)
    rated = reading.read_rating(
        called(json.dumps({"reason": reason, "rating": 7}), name="rate")
    )
    assert isinstance(rated, reading.Invalid)


@given(
    st.text(alphabet=st.characters(), max_size=80)
    | st.text(alphabet="ABCАВС \"'{}[]:.,\n>`<think/>ergad", max_size=60)
)
def test_no_text_raises(text: str) -> None:
    """Any text, lone surrogates included, is read or Invalid, alone, in a call or next to one."""
    grades = (CORRECT, INCORRECT, NOT_ATTEMPTED)
    inside = called(json.dumps({"grade": text}))
    for reply in (
        Reply(text=text),
        called(text),
        called('{"grade": "A"}', text=text),
        inside,
    ):
        grade = reading.read_grade(reply)
        assert isinstance(grade, reading.Invalid) or grade in grades
    assert isinstance(
        reading.read_rating(called(text, name="rate")), int | reading.Invalid
    )


@pytest.mark.skipif(
    not KIT.exists(), reason="the robustness kit is not next to the repository"
)
def test_the_robustness_kit_finds_no_wrong_grade(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every example of the kit gets an accepted reading."""
    spec = importlib.util.spec_from_file_location("kit", KIT / "kit.py")
    assert spec is not None
    assert spec.loader is not None
    kit = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kit)
    readers = {"grade": "parse_grade", "rating": "parse_rating", "yesno": "parse_yesno"}
    for row in kit.read_jsonl("judge_outputs.jsonl"):
        read = getattr(robustness_adapter, readers[row["kind"]])
        assert read(row["reply"], row["lang"]) in row["accept"], row["id"]
