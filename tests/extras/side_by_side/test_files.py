"""The files of ``qagate compare``: page, Markdown, table and a drawing a figure."""

import csv
import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import replace

import pytest

from qagate.evaluators.kinds import kind_of
from qagate.evaluators.statistics.intervals import Estimate
from qagate.reports.extras.side_by_side import figures
from qagate.reports.extras.side_by_side.counting import (
    ChangeSinceFirst,
    SideBySide,
    count_runs,
)
from qagate.reports.extras.side_by_side.rendering import (
    files_of,
    finding_lines,
    sentence_of,
)
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.record import Record
from tests.support.made_runs import (
    answered,
    facts_dataset,
    graded_slice,
    run_of,
)

LANGUAGES = ("en", "bg")
FACTS = facts_dataset(*(graded_slice(language) for language in LANGUAGES))
RATED = facts_dataset(
    *(
        graded_slice(language, kind=kind_of("rated"), pass_bar=6)
        for language in LANGUAGES
    ),
    kind=kind_of("rated"),
)
GRADES = ("c" * 40, "c" * 20 + "i" * 20, "c" * 39 + "n", "c" * 30 + "e" * 10)
NAMES = ("old", "worse", "alike", "<b>odd</b>", "fifth", "sixth")


def graded_run(letters: str, name: str) -> Baseline:
    records = [*answered(letters), *answered("c" * 40, "bg")]
    made = run_of(records, FACTS, model=f"openai:{name}")
    return Baseline(path=f"runs/{name}", report=made, sha256=name)


def rated_run(rating: int, name: str) -> Baseline:
    records: list[Record] = []
    for language in LANGUAGES:
        for number, record in enumerate(answered("c" * 12, language)):
            own = min(10, rating + number % 3)
            rated = replace(record, grade=None, score=None, rating=own)
            if own < 6:
                rated = replace(rated, outcome="failed")
            records.append(rated)
    made = run_of(records, RATED, model=f"openai:{name}")
    return Baseline(path=f"runs/{name}", report=made, sha256=name)


@pytest.fixture(scope="module")
def compared() -> SideBySide:
    """Four runs in two languages; one is worse in English, and one has a hostile name."""
    pairs = zip(GRADES, NAMES, strict=False)
    return count_runs([graded_run(letters, name) for letters, name in pairs])


@pytest.fixture(scope="module")
def files(compared: SideBySide) -> Mapping[str, str]:
    return {name: "".join(pieces) for name, pieces in files_of(compared)}


def test_one_command_draws_six_models_by_language(files: Mapping[str, str]) -> None:
    """The chart of a notebook: a bar of grades a model, in each language."""
    six = [graded_run("c" * 39 + "i", name) for name in NAMES]
    drawn = {name: "".join(pieces) for name, pieces in files_of(count_runs(six))}
    chart = ET.fromstring(drawn["grades-facts.svg"])
    texts = [text.text for text in chart.iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if text in ("English", "Bulgarian")] == [
        "English",
        "Bulgarian",
    ]
    for name in NAMES:
        assert texts.count(name) == 3  # in each language and all together
    assert texts.count("97.5% (87.1 to 99.6)") == 6


def test_one_command_draws_the_distribution_of_ratings_of_six_models() -> None:
    six = [rated_run(3 + number, name) for number, name in enumerate(NAMES)]
    drawn = {name: "".join(pieces) for name, pieces in files_of(count_runs(six))}
    chart = drawn["scores-facts.svg"]
    labels = re.findall(r'aria-label="([^"]+: [^"]*rated[^"]*)"', chart)
    assert len(labels) == 6 * 3
    assert labels[0].startswith("old: 0 rated 1, 0 rated 2, 8 rated 3, 8 rated 4")
    assert chart.count('class="whisker"') == 6 * 3 * 10
    assert "mean 4.0 (" in chart


def test_each_drawing_is_well_formed_and_stands_alone(files: Mapping[str, str]) -> None:
    """No variable, script or address: programs for slides read it as it is."""
    drawings = [name for name in files if name.endswith(".svg")]
    assert drawings == ["grades-facts.svg", "scores-facts.svg", "changes-facts.svg"]
    for name in drawings:
        text = files[name]
        assert ET.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
        assert "var(" not in text
        assert "<script" not in text
        assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]


def test_the_page_shows_the_drawings_of_the_files(files: Mapping[str, str]) -> None:
    """One template draws a panel, for both."""
    panel = re.compile(r'<svg class="panel".*?aria-label="([^"]*)"')
    in_files = []
    for name, text in files.items():
        if name.endswith(".svg"):
            in_files += panel.findall(text)
    assert panel.findall(files["compare.html"]) == in_files
    assert len(in_files) == 9


def test_the_page_has_no_script_and_asks_for_nothing(files: Mapping[str, str]) -> None:
    page = files["compare.html"]
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert not re.search(r'(?:src|href)="(?!#)', page)


def test_a_hostile_name_is_text(files: Mapping[str, str]) -> None:
    for name, text in files.items():
        assert "<b>odd" not in text or name == "compare.csv"


def test_the_markdown_is_one_table(files: Mapping[str, str]) -> None:
    lines = files["compare.md"].splitlines()
    assert lines[0] == "# Of three other runs one is worse than old."
    rows = [line for line in lines if line.startswith("| ")]
    assert rows[0].startswith("| Slice | Run | Items | Right | Grades | Not known |")
    assert len(rows) == 2 + 3 * 4
    assert any(
        row.startswith("| English | worse | 40 | 50.0% (35.2 to 64.8)") for row in rows
    )
    assert "10 items without a grade (10 in facts:en)" in files["compare.md"]


def test_the_sheet_has_a_row_for_each_figure(files: Mapping[str, str]) -> None:
    rows = list(csv.DictReader(io.StringIO(files["compare.csv"])))
    (row,) = [
        row
        for row in rows
        if (row["run"], row["language"], row["figure"]) == ("worse", "en", "difference")
    ]
    assert float(row["value"]) == -0.5
    assert float(row["low"]) < -0.5 < float(row["high"])
    assert row["finding"] == "worse"
    kinds = {row["figure"].partition(" ")[0] for row in rows}
    assert kinds == {"right", "grade", "score", "mean", "difference"}
    for row in rows:
        assert row["low"] and row["high"], row  # no figure without its range


def test_a_column_that_is_empty_for_all_is_left_out() -> None:
    runs = count_runs([rated_run(5, "old"), rated_run(6, "new")])
    (markdown,) = ["".join(t) for name, t in files_of(runs) if name == "compare.md"]
    assert "| Grades |" not in markdown
    assert "| Mean |" in markdown


def test_a_drawn_difference_keeps_to_what_is_shown(compared: SideBySide) -> None:
    """A diamond for worse, a disc for better, a ring where nothing is shown."""
    (english,) = [part for part in compared.slices if part.name == "facts:en"]
    panel = figures.change_panel(english, figures.change_axis([english]))
    assert [row.state for row in panel.rows] == ["FAIL", "open", "open"]
    worse = panel.rows[0]
    assert worse.text.endswith(" worse")
    assert worse.picture.band is not None
    assert worse.picture.old is not None
    assert worse.picture.band.end < worse.picture.old


# The sentence


def findings(*rows: Mapping[str, float]) -> SideBySide:
    """Return runs whose differences by language are these, each shown."""
    runs = count_runs([graded_run("c" * 40, name) for name in NAMES[: len(rows) + 1]])
    slices = []
    for part in runs.slices:
        language = part.name.partition(":")[2]
        changed = [part.runs[0]]
        for figures_of_run, row in zip(part.runs[1:], rows, strict=True):
            value = row.get(language, 0.0)
            change = ChangeSinceFirst(
                difference=Estimate.of(value, (value - 0.1, value + 0.1), 40),
                p_value=1e-4,
                adjusted=1e-3 if value else 1.0,
            )
            changed.append(replace(figures_of_run, change=change))
        slices.append(replace(part, runs=changed))
    return replace(runs, slices=slices)


def test_the_sentence_counts_runs_that_are_worse_and_better() -> None:
    runs = findings({"en": -0.3}, {"bg": -0.2}, {"en": 0.2})
    assert (
        sentence_of(runs)
        == "Of three other runs two are worse and one is better than old."
    )


def test_a_run_may_be_worse_in_part_and_better_in_part() -> None:
    runs = findings({"en": -0.3, "bg": 0.2})
    assert sentence_of(runs) == (
        "Of one other run one is worse in part and better in part than old."
    )


def test_no_shown_difference_is_not_called_equal() -> None:
    assert sentence_of(findings({}, {})) == (
        "Of two other runs none is shown to differ from old."
    )


def test_grades_of_other_judges_are_not_compared() -> None:
    """Nor counted among the runs that were compared."""
    runs = findings({"en": -0.3})
    slices = []
    for part in runs.slices:
        first, second = part.runs
        assert second.change is not None
        change = replace(second.change, caution="the judge changed")
        slices.append(replace(part, runs=[first, replace(second, change=change)]))
    assert sentence_of(replace(runs, slices=slices)) == (
        "Nothing can be compared with old: other judges graded the other runs."
    )


def test_a_finding_names_where_most_was_lost_and_where_else() -> None:
    runs = findings({"en": -0.3, "bg": -0.2, "*": -0.25})
    assert finding_lines(runs) == [
        "worse: worse in English by −30.0 (−40.0 to −20.0) points; "
        "also in all languages together and Bulgarian."
    ]
