"""Text made harmless, medium by medium; the properties hold for any text at all."""

import re
import sys
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators import secrets
from evaluators.core import Vote
from reports.run import clean
from reports.run.record import safe
from tests.support.hostile import HOSTILE
from tests.support.samples import record
from tests.support.tables import kept

ANY_TEXT = st.text(st.characters(), max_size=300) | st.sampled_from(HOSTILE)

KEYS: list[str] = kept(__file__, "keys")
NO_KEYS: list[str] = kept(__file__, "no_keys")


@pytest.mark.parametrize("key", KEYS)
def test_key_shaped_text_is_masked(key: str) -> None:
    """No part of the secret is left, in whatever sentence it stands."""
    shown = clean.mask(f"before {key} after")
    assert shown.startswith("before ")
    assert clean.MASK in shown
    assert key.rsplit(maxsplit=1)[-1] not in shown


@pytest.mark.parametrize("text", NO_KEYS)
def test_ordinary_words_are_not_masked(text: str) -> None:
    """Finance and software have words that only begin like a key."""
    assert clean.mask(text) == text


def test_a_password_in_an_address_is_masked() -> None:
    """What calls models and what shows their texts know the same secrets."""
    text = "https://joe:pa55word@h.example/a and sk-test-0123456789abcdef"
    assert clean.mask(text) == f"https://{clean.MASK}@h.example/a and {clean.MASK}"
    assert secrets.mask(text) == clean.mask(text).replace(clean.MASK, secrets.MASK)


KEY = "sk-test-0123456789abcdef0123456789"
DIRTY: tuple[Mapping[str, Any], ...] = (
    {"answer": f"It is {KEY}."},
    {"question": KEY, "key": KEY, "id": KEY},
    {"votes": (Vote(judge="openai:a", grade="CORRECT", reason=f"x {KEY}"),)},
    {"metadata": {"deep": [{"er": KEY}], KEY: 1}},
    {"measures": {KEY: 0.5}, "error": f"auth: {KEY}"},
)


@pytest.mark.parametrize("changes", DIRTY)
def test_a_record_is_made_safe_wherever_a_key_stands(changes: Mapping[str, Any]) -> None:
    """Texts, names and nested values are masked once; all else is as it was."""
    made = safe(record(**changes))
    assert KEY not in repr(made)
    assert clean.MASK in repr(made)
    assert (made.row, made.grade, made.cost) == (record().row, record().grade, record().cost)
    assert clean.masked(made) is made


def test_what_holds_no_key_is_the_same_object() -> None:
    """Nothing is copied for the many texts in which there is nothing to mask."""
    made = record(question="The capital of Asia has an api: bearer of news")
    assert safe(made) is made


def test_cut_never_leaves_half_a_key() -> None:
    """Masking comes first, so a limit inside the key shows none of it."""
    text = safe(record(answer="x" * 190 + KEY)).answer or ""
    assert "sk-test" not in clean.span(text) + clean.prose(text, 200)


@pytest.mark.parametrize("unit", ["eyJ", "sk-", "bearer ", "_", "api_key=", "##a", " ", "`"])
def test_a_flood_of_beginnings_is_read_in_one_pass(unit: str) -> None:
    """Half a million characters that nearly match come to an end: no pattern backtracks."""
    assert len(clean.span(unit * (500_000 // len(unit)))) < 700


@given(ANY_TEXT)
def test_masking_twice_is_masking_once(text: str) -> None:
    """Text that went through several layers reads the same."""
    assert clean.mask(clean.mask(text)) == clean.mask(text)


@given(ANY_TEXT)
def test_visible_text_is_legal_in_xml_and_utf8(text: str) -> None:
    """Any text, made visible, parses as XML content and as an attribute, and comes back whole."""
    shown = clean.visible(text)
    element = ET.Element("a", b=shown)
    element.text = shown
    parsed = ET.fromstring(ET.tostring(element, encoding="utf-8"))
    assert (parsed.text or "", parsed.get("b")) == (shown, shown)
    assert not clean.HIDDEN.search(shown)


@given(ANY_TEXT)
def test_one_line_stays_one_line_and_no_command(text: str) -> None:
    """Neither a terminal nor a CI log can be steered, wherever the line breaks were."""
    line = clean.line(text)
    assert len(line.splitlines()) <= 1
    assert not re.match(r"\s*::", line)
    assert not re.search(r"##[a-z]*\[", line)
    assert "\x1b" not in line


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\n", "＝", "﹣", "  =", "\xa0@"])
def test_formula_cells_get_an_apostrophe(start: str) -> None:
    """Also full-width and small forms, and behind white space that a spreadsheet drops."""
    assert clean.cell(f"{start}1+2").startswith("'")


def test_a_cell_fits_a_spreadsheet_and_says_that_it_was_cut() -> None:
    """The longest text stays below 32,767 UTF-16 units."""
    cell = clean.cell("😀" * 100_000)
    assert len(cell.encode("utf-16-le")) // 2 < 32_767
    assert cell.endswith("[…cut, 100,000 characters in all]")


@given(ANY_TEXT)
def test_a_code_span_is_closed_by_its_own_fence_only(text: str) -> None:
    """No run of backticks inside is as long as the fence, and the text is at most 200 long."""
    span = clean.span(text)
    if span == "*(empty)*":
        return
    fence = span[: len(span) - len(span.lstrip("`"))]
    inner = span.removeprefix(f"{fence} ").removesuffix(f" {fence}")
    assert span == f"{fence} {inner} {fence}"
    assert len(fence) not in {len(run) for run in re.findall("`+", inner)}
    assert len(inner) <= 200
    assert "\n" not in span


@given(ANY_TEXT)
def test_prose_has_no_live_markup(text: str) -> None:
    """Everything that Markdown or GitHub acts on is escaped, replaced, or an address in code."""
    prose = re.sub(r"`[^`|]+://[^`|]+`", "", clean.prose(text))
    prose = re.sub(r"\\[\\*_\[\]>&|~!$/.]|&lt;", "", prose)
    assert not re.search(r"[*_\[\]<>|`@#]", prose)


def test_no_formula_starts_with_a_letter_or_digit() -> None:
    """What NFKC makes of any alphanumeric character is no sign that a spreadsheet obeys."""
    every = filter(str.isalnum, map(chr, range(sys.maxunicode + 1)))
    assert not [one for one in every if unicodedata.normalize("NFKC", one)[:1] in tuple("=+-@")]
    assert clean.cell("3 = 3") == "3 = 3"


def test_cut_marks_what_it_cuts() -> None:
    """A text within the limit is itself; a longer one ends in the mark and keeps the limit."""
    assert clean.cut("abc", 3) == "abc"
    assert clean.cut("abcd", 3) == "ab…"


def test_hidden_characters_are_written_out() -> None:
    """What the eye cannot see is shown by its number, below and above U+FFFF."""
    assert clean.visible("a\x00\u202e\U000e0041\ud800\r\nb") == (
        "a\\u0000\\u202e\\U000e0041\\ud800\nb"
    )
