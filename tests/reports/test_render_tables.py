"""CSV files, texts made safe for every file, and what the sections of the page are given."""

import csv
import io
import math
import re
import sys
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qagate.cases.extras.review.sheet import csv_twin
from qagate.evaluators import output
from qagate.evaluators import text as plain
from qagate.evaluators.core import Vote
from qagate.evaluators.kinds import kind_of
from qagate.evaluators.statistics.betting import DECISIVE
from qagate.evaluators.statistics.intervals import Estimate
from qagate.reports.extras.builder.command import error_sheet
from qagate.reports.render import html, views, words, writer
from qagate.reports.render.language_sections import language_sections
from qagate.reports.render.views import draw, growth, reach_of
from qagate.reports.run import clean
from qagate.reports.run.baselines import BASELINES
from qagate.reports.run.evidence import AuditStep, AuditTrail, ConfusionCell
from qagate.reports.run.record import Record, safe
from qagate.reports.run.report import Report
from qagate.reports.run.report_folder import GRADED_NAME
from tests.support.hostile import HOSTILE
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of
from tests.support.projects import ROOT
from tests.support.reviewing import sheet, sheet_item
from tests.support.samples import full, part, record, report
from tests.support.tables import kept


def rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def test_results_have_a_row_an_item_and_a_column_a_field() -> None:
    """A mark of UTF-8, a row an item; None is empty, metadata one order, long texts cut."""
    made = full(5)
    text = "".join(writer.results(made))
    assert text.startswith("\ufeff")
    header, *items = rows(text[1:])
    assert header == [field.name for field in fields(Record)]
    assert len(items) == len(made.records)
    assert {len(row) for row in items} == {len(header)}
    item = record(answer=None, score=0.5, metadata={"b": [1], "a": "Изкуство"})
    header, row = rows("".join(writer.results(report((item,))))[1:])
    cells = dict(zip(header, row, strict=True))
    assert (cells["answer"], cells["score"], cells["row"]) == ("", "0.5", "1")
    assert cells["metadata"] == '{"a": "Изкуство", "b": [1]}'
    cell = output.cell("😀" * 100_000)
    assert len(cell.encode("utf-16-le")) // 2 < 32_767  # what a spreadsheet takes
    assert cell.endswith("[…cut, 100,000 characters in all]")


def results_of(text: str) -> str:
    return "".join(
        writer.results(report((record(answer=text, metadata={"note": text}),)))
    )


def letters_of(text: str) -> str:
    (graded_file,) = writer.graded(report((record(grade=text),))).values()
    return graded_file


def sheet_of(text: str) -> str:
    return csv_twin(
        sheet(sheet_item("a", fields={text or "-": text}, edit=text), reviewer=text)
    )


def errors_of(text: str) -> str:
    one = record(question=text, context=text, label="YES", grade="NO", outcome="failed")
    return error_sheet({text: [one]})


WRITERS = (results_of, letters_of, sheet_of, errors_of)

"""Every writer of a CSV file that people open."""

FORMULA = re.compile(r"\s*[=+@＝＋＠－-]")


@pytest.mark.parametrize("write", WRITERS)
@given(
    text=st.text("a=+@-＝;,\t\n\r \"'\u202e", max_size=12) | st.sampled_from(HOSTILE)
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_cell_is_a_formula_by_any_separator(
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


def test_graded_files_have_letters_by_row() -> None:
    """A, B, C by grade, ERROR without one; no other module of the product writes CSV."""
    records = (
        record(3, outcome="failed", grade="NOT_ATTEMPTED"),
        record(2, outcome="failed", grade="INCORRECT"),
        record(1),
        record(1, repeat=2, grade="INCORRECT"),
        record(4, outcome="error", grade=None),
        record(5, outcome="missing", grade="CORRECT"),
        record(6, grade=None),
    )
    ((name, text),) = writer.graded(report(records)).items()
    letters = ["A", "B", "C", "ERROR", "ERROR", "ERROR"]
    head = ["Question number", "Classification"]
    assert (name, rows(text)[0]) == ("simpleqa-en-graded.csv", head)
    assert rows(text)[1:] == [[str(n), letter] for n, letter in enumerate(letters, 1)]
    names = set(writer.graded(full(3)))
    assert names == {f"simpleqa-{code}-graded.csv" for code in ("en", "bg", "pl", "hu")}
    modules = list((ROOT / "qagate").rglob("*.py"))
    texts = {path: path.read_text(encoding="utf-8") for path in modules}
    # `start` divides the user's own file by language; its cells stay as they are.
    assert {path.name for path, text in texts.items() if "csv.writer(" in text} == {
        "output.py",
        "spreadsheet.py",
    }
    calls = re.compile(r"spreadsheet_text\(|sheet_lines\(")
    users = {path.name for path, text in texts.items() if calls.search(text)}
    assert users == {
        "output.py",
        "writer.py",
        "sheet.py",
        "command.py",
        "rendering.py",
    }


def named(*names: tuple[str, str]) -> Report:
    """Return a report with a graded slice for each dataset and language."""
    items = tuple(record(i, dataset=d, language=c) for i, (d, c) in enumerate(names, 1))
    return report(
        items, slices=tuple(part("graded", (item,), {"correct": 1.0}) for item in items)
    )


@pytest.mark.parametrize(
    "name", ["../../etc", ".hidden", "a/b\\c", "имя", "", "x" * 300, "-rf"]
)
def test_file_names_are_safe(name: str) -> None:
    """No path, no hidden file, no other script; one for each slice on every file system."""
    (file,) = writer.graded(named((name, "en")))
    assert GRADED_NAME.fullmatch(file)
    assert len(file) < 150
    files = writer.graded(
        named(
            (name, "c"),
            ("a-b", "c"),
            ("a", "b-c"),
            ("A", "B-C"),
            ("имя", "en"),
            ("име", "en"),
        )
    )
    assert len({one.casefold() for one in files}) == 6
    assert all(GRADED_NAME.fullmatch(one) for one in files)


ANY_TEXT = st.text(st.characters(), max_size=300) | st.sampled_from(HOSTILE)
KEYS: list[str] = kept(__file__, "keys")
NO_KEYS: list[str] = kept(__file__, "no_keys")


@pytest.mark.parametrize("key", KEYS)
def test_key_shaped_text_is_masked(key: str) -> None:
    """No part of the secret is left, in any sentence."""
    shown = clean.mask(text := f"before {key} after")
    assert plain.may_hold_key(text)
    assert shown.startswith("before ")
    assert clean.MASK in shown
    assert key.rsplit(maxsplit=1)[-1] not in shown


SECRETS = ("https://joe:pa55word@h.example/a", f"github_pat_{'a1B2' * 6}", *KEYS)


@given(st.sampled_from(SECRETS), ANY_TEXT, ANY_TEXT)
def test_what_mask_changes_is_known_to_hold_a_key(
    secret: str, before: str, after: str
) -> None:
    """Records are masked only where this says so."""
    text = f"{before} {secret} {after}"
    assert clean.mask(secret) != secret
    assert plain.may_hold_key(text) or clean.mask(text) == text


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
    assert (clean.cut("abc", 3), clean.cut("abcd", 3)) == ("abc", "ab…")
    assert output.visible("a\x00\u202e\U000e0041\ud800\r\nb") == (
        "a\\u0000\\u202e\\udb40\\udc41\\ud800\nb"
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
def test_a_record_is_made_safe_wherever_a_key_stands(
    changes: Mapping[str, Any],
) -> None:
    """Texts, names and nested values are masked once; all else is as it was."""
    made = safe(record(**changes))
    assert KEY not in repr(made)
    assert clean.MASK in repr(made)
    assert (made.row, made.grade, made.cost) == (
        record().row,
        record().grade,
        record().cost,
    )
    assert clean.masked(made) is made


@pytest.mark.parametrize(
    "unit", ["eyJ", "sk-", "bearer ", "_", "api_key=", "##a", " ", "`"]
)
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
    shown = output.visible(text)
    element = ET.Element("a", b=shown)
    element.text = shown
    parsed = ET.fromstring(ET.tostring(element, encoding="utf-8"))
    assert (parsed.text or "", parsed.get("b")) == (shown, shown)
    assert not output.HIDDEN.search(shown)


@given(ANY_TEXT)
def test_one_line_stays_one_line_and_no_command(text: str) -> None:
    """Neither a terminal nor a CI log can be steered, wherever the line breaks were."""
    line = clean.line(text)
    assert len(line.splitlines()) <= 1
    assert not re.match(r"\s*::", line)
    assert not re.search(r"##[a-z]*\[", line)
    assert "\x1b" not in line


@pytest.mark.parametrize(
    "start", ["=", "+", "-", "@", "\t", "\n", "＝", "﹣", "  =", "\xa0@"]
)
def test_formula_cells_get_an_apostrophe(start: str) -> None:
    """Also full-width and small forms, and behind white space that a spreadsheet drops."""
    assert output.cell(f"{start}1+2").startswith("'")


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
    assert not [
        one for one in every if unicodedata.normalize("NFKC", one)[:1] in tuple("=+-@")
    ]
    assert output.cell("3 = 3") == "3 = 3"


def test_a_bar_is_filled_by_its_parts() -> None:
    """Right, silent, wrong and ungraded sum to the plan; only what occurred is named."""
    run = run_of(answered("cciinem"))
    assert [one[1:] for one in views.segments(run.slices[0])] == [
        ("correct", 2), ("not attempted", 1), ("incorrect", 2), ("ungraded", 2),
        ("stopped", 0),
    ]  # fmt: skip
    bar = re.compile(
        r'<rect class="(\w+)" x="([\d.]+)" y="0" width="([\d.]+)" height="14"/>'
    )
    drawn = [
        (tone, float(x), float(width))
        for tone, x, width in bar.findall(html.render(run))
    ]
    tones = [
        "right",
        "silent",
        "wrong",
        "ungraded",
        "right",
        "wrong",
        "ungraded",
        "ungraded",
    ]
    assert [tone for tone, _, _ in drawn] == tones
    assert [sum(width for *_, width in one) for one in (drawn[:4], drawn[4:])] == [
        pytest.approx(300, abs=0.2)
    ] * 2
    assert drawn[3][1] == pytest.approx(300 * 5 / 7, abs=0.03)
    made = html.render(run_of(answered("ccien"), baseline=run_of(answered("cic"))))
    (others,) = re.findall('data-label="Others">(.*)</td>', made)
    assert re.sub("<[^>]*>", " ", others).split("  ") == [" 1 right in both", "2 new "]


def test_every_kind_has_its_words_and_columns() -> None:
    """Headline measures a kind; columns from 1 to 10, marked below the bar; 10 after 9."""
    sections = language_sections(full(5))
    assert list(sections[0].shown) == ["correct", "f_score", "correct_given_attempted"]
    assert "penalised" in sections[0].rest
    assert sections[-1].segments[0][1] == "agree"
    declared = graded_slice(dataset="eba", kind=kind_of("rated"), pass_bar=6)
    known = (facts_dataset(declared, name="eba"),)
    for datasets, wrong in (((), 0), (known, 5)):
        page = html.render(replace(full(5), datasets=datasets))
        columns = re.findall(
            r'<rect class="(\w+)"[^>]* width="18.0" height="([\d.]+)"/>', page
        )
        assert columns == [
            (
                "wrong" if rating <= wrong else "right",
                str(round(60 * rating**2 / 100, 2)),
            )
            for rating in range(1, 11)
        ]
    cells = [("10", "9", 1), ("9", "10", 2), ("9", "9", 3)]
    grades, rows = views.matrix(
        ConfusionCell(label=a, grade=b, count=n) for a, b, n in cells
    )
    assert grades == ["9", "10"]
    assert rows == {"9": [("9", 3), ("10", 2)], "10": [("9", 1), ("10", 0)]}


def test_figures_times_and_names_are_short() -> None:
    """In UTC; three decimals, more where a bar is finer; a promoted run by its name."""
    assert words.date("2026-11-21T21:37:43+00:00") == "2026-11-21 21:37 UTC"
    assert words.date(None) == "unknown"
    shown = [views.fixed(x) for x in (0.00296, -0.0001, 0.5, None, float("nan"))]
    assert shown == ["0.003", "0.000", "0.500", "undefined", "undefined"]
    assert words.run_name(str(Path("/home/ana") / BASELINES / "2026-11")) == "2026-11"
    for path in ("last-release/run.json", "baselines/x", "run", ""):
        assert words.run_name(path) == path


def test_the_evidence_of_people_is_two_lines() -> None:
    """From 1, on the same height for both, to what decides; the worst is drawn at 1/100."""
    steps = (
        AuditStep(looked=0, passing=0.0, failing=0.0),
        AuditStep(looked=40, passing=math.log10(DECISIVE), failing=-9.0),
    )
    nothing = Estimate(value=None, low=None, high=None, n=0)
    trail = AuditTrail(
        pairs=99,
        alike=0,
        looked=40,
        open=0,
        next=0,
        judged=nothing,
        corrected=nothing,
        steps=steps,
    )
    drawn = growth(trail)
    assert drawn.enough == 4
    assert drawn.passing == [(0, drawn.start), (100, 4)]
    assert drawn.failing == [(0, drawn.start), (100, 84)]
    assert growth(replace(trail, steps=())).passing == []


def test_differences_share_an_axis_that_holds_them_all() -> None:
    """Lines one below the other can be compared, and no whisker is cut."""
    some = [Estimate(value=v, low=v - 0.1, high=v + 0.1, n=9) for v in (-0.3, 0.2)]
    reach = reach_of(some)
    assert reach > 0.4
    drawn = [draw(one, -reach, reach) for one in some]
    assert {one.zero for one in drawn} == {50}
    assert 0 < (drawn[0].low or 0) < (drawn[0].value or 0) < 50 < (drawn[1].value or 0)
    assert reach_of([]) == 1
