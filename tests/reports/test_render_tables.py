"""CSV files for people, and texts made safe for every file: masked, cut, visible, no formula."""

import csv
import io
import re
import sys
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases.review.sheet import csv_twin
from evaluators import text as plain
from evaluators.core import Vote
from reports.commands.build import error_sheet
from reports.render import csv_files
from reports.run import clean
from reports.run.record import Record, safe
from reports.run.report import Report
from reports.run.report_folder import GRADED_NAME
from tests.support.hostile import HOSTILE
from tests.support.projects import ROOT
from tests.support.reviewing import sheet, sheet_item
from tests.support.samples import full, part, record, report
from tests.support.tables import kept


def rows(text: str) -> list[list[str]]:
    """Return the rows of a CSV text."""
    return list(csv.reader(io.StringIO(text, newline="")))


def test_results_have_a_row_an_item_and_a_column_a_field() -> None:
    """The byte-order mark lets a spreadsheet see UTF-8."""
    made = full(5)
    text = "".join(csv_files.results(made))
    assert text.startswith("\ufeff")
    header, *items = rows(text[1:])
    assert header == [field.name for field in fields(Record)]
    assert len(items) == len(made.records)
    assert {len(row) for row in items} == {len(header)}


def results_of(text: str) -> str:
    return "".join(csv_files.results(report((record(answer=text, metadata={"note": text}),))))


def letters_of(text: str) -> str:
    (graded_file,) = csv_files.graded(report((record(grade=text),))).values()
    return graded_file


def sheet_of(text: str) -> str:
    return csv_twin(sheet(sheet_item("a", fields={text or "-": text}, edit=text), reviewer=text))


def errors_of(text: str) -> str:
    one = record(question=text, context=text, label="YES", grade="NO", outcome="failed")
    return error_sheet({text: [one]})


WRITERS = (results_of, letters_of, sheet_of, errors_of)

"""Every writer of a CSV file that people open."""

FORMULA = re.compile(r"\s*[=+@＝＋＠－-]")


@pytest.mark.parametrize("write", WRITERS)
@given(text=st.text("a=+@-＝;,\t\n\r \"'\u202e", max_size=12) | st.sampled_from(HOSTILE))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_cell_is_a_formula_whatever_the_separator(
    write: Callable[[str], str], text: str
) -> None:
    """Read with commas, semicolons or tabs, with quotes or without, no cell begins a formula."""
    written = write(text).removeprefix("\ufeff")
    assert all(line.startswith('"') for line in written.splitlines()[:1])
    for separator in ",;\t":
        for row in csv.reader(io.StringIO(written, newline=""), delimiter=separator):
            assert not [cell for cell in row if FORMULA.match(cell)]
    for piece in re.split(r"[;\t\r\n]", written):
        assert not FORMULA.match(piece)


def test_the_writers_are_all() -> None:
    """No other module of the product writes CSV: each goes through ``sheet_lines``."""
    modules = [p for one in ("cases", "evaluators", "reports") for p in (ROOT / one).rglob("*.py")]
    texts = {path.name: path.read_text(encoding="utf-8") for path in modules}
    assert [name for name, text in texts.items() if "csv.writer(" in text] == ["output.py"]
    calls = re.compile(r"spreadsheet_text\(|sheet_lines\(")
    users = {name for name, text in texts.items() if calls.search(text)}
    assert users == {"output.py", "csv_files.py", "sheet.py", "build.py"}


def test_values_of_all_types_have_a_cell() -> None:
    """None is empty, text is itself, metadata is JSON in one order; a long one is cut."""
    item = record(answer=None, score=0.5, metadata={"b": [1], "a": "Изкуство"})
    header, row = rows("".join(csv_files.results(report((item,))))[1:])
    cells = dict(zip(header, row, strict=True))
    assert (cells["answer"], cells["score"], cells["row"]) == ("", "0.5", "1")
    assert cells["metadata"] == '{"a": "Изкуство", "b": [1]}'
    cell = clean.cell("😀" * 100_000)
    assert len(cell.encode("utf-16-le")) // 2 < 32_767  # what a spreadsheet takes
    assert cell.endswith("[…cut, 100,000 characters in all]")


def test_graded_files_have_letters_by_row() -> None:
    """A, B, C by grade; ERROR for an item that was not graded; repeats do not add lines.

    Rated, yes/no and judged slices have none.
    """
    records = (
        record(3, outcome="failed", grade="NOT_ATTEMPTED"),
        record(2, outcome="failed", grade="INCORRECT"),
        record(1),
        record(1, repeat=2, grade="INCORRECT"),
        record(4, outcome="error", grade=None),
        record(5, outcome="missing", grade="CORRECT"),
        record(6, grade=None),
    )
    ((name, text),) = csv_files.graded(report(records)).items()
    letters = ["A", "B", "C", "ERROR", "ERROR", "ERROR"]
    head = ["Question number", "Classification"]
    assert (name, rows(text)[0]) == ("simpleqa-en-graded.csv", head)
    assert rows(text)[1:] == [[str(n), letter] for n, letter in enumerate(letters, 1)]
    names = set(csv_files.graded(full(3)))
    assert names == {f"simpleqa-{code}-graded.csv" for code in ("en", "bg", "pl", "hu")}


def named(*names: tuple[str, str]) -> Report:
    """Return a report with a graded slice for each dataset and language."""
    items = tuple(record(i, dataset=d, language=c) for i, (d, c) in enumerate(names, 1))
    return report(items, slices=tuple(part("graded", (item,), {"correct": 1.0}) for item in items))


@pytest.mark.parametrize("name", ["../../etc", ".hidden", "a/b\\c", "имя", "", "x" * 300, "-rf"])
def test_file_names_are_safe(name: str) -> None:
    """Names come from the user's options: no path, no hidden file, no other script.

    Slices whose safe names fall together still have a file each, on every file system.
    """
    (file,) = csv_files.graded(named((name, "en")))
    assert GRADED_NAME.fullmatch(file)
    assert len(file) < 150
    files = csv_files.graded(
        named((name, "c"), ("a-b", "c"), ("a", "b-c"), ("A", "B-C"), ("имя", "en"), ("име", "en"))
    )
    assert len({one.casefold() for one in files}) == 6
    assert all(GRADED_NAME.fullmatch(one) for one in files)


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


def test_secrets_are_masked_before_a_cut() -> None:
    """Callers know the same secrets; a cut leaves no half key; what is hidden is written out."""
    text = "https://joe:pa55word@h.example/a and sk-test-0123456789abcdef"
    assert clean.mask(text) == f"https://{clean.MASK}@h.example/a and {clean.MASK}"
    assert plain.mask(text) == clean.mask(text).replace(clean.MASK, plain.MASK)
    made = record(question="The capital of Asia has an api: bearer of news")
    assert safe(made) is made
    text = safe(record(answer="x" * 190 + KEY)).answer or ""
    assert "sk-test" not in clean.span(text) + clean.prose(text, 200)
    assert clean.cut("abc", 3) == "abc"
    assert clean.cut("abcd", 3) == "ab…"
    assert clean.visible("a\x00\u202e\U000e0041\ud800\r\nb") == (
        "a\\u0000\\u202e\\U000e0041\\ud800\nb"
    )


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
