"""The files of several runs side by side: page, Markdown, table and a drawing for each figure.

``files_of`` yields them all. The page holds the same drawings as the SVG files: one template
draws a panel (``figures.j2``), and a file only puts panels beside each other. There is no
script; a page is whole without one.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from qagate.evaluators.output import (
    cell,
    content_policy,
    markdown_table,
    sheet_lines,
    visible,
)
from qagate.reports.extras.side_by_side import figures
from qagate.reports.extras.side_by_side.counting import (
    ChangeSinceFirst,
    RunFigures,
    SideBySide,
    SliceOfRuns,
)
from qagate.reports.extras.side_by_side.figures import Figure, Panel
from qagate.reports.extras.side_by_side.tidy import FIELDS, figure_rows
from qagate.reports.render import html, words
from qagate.reports.render.names import ALL_LANGUAGES, listed, number_word
from qagate.reports.run import clean

FOLDER = Path(__file__).parent
PAGE = "compare.html"
SUMMARY = "compare.md"
TABLE = "compare.csv"
HEADINGS = {
    "grades": "Grades",
    "scores": "Scores",
    "changes": "Differences",
    "nights": "Night by night",
}
LEADS = {
    "grades": "How the items of each run came out. The line is the range of the share that is "
    "right.",
    "scores": "How often each rating or score was given, with its range, and the mean.",
    "changes": "Points by which each run is right more or less often than the first, over the "
    "same items.",
    "nights": "The share that is right when the same model is asked again and again, with its "
    "range, beside the verdicts that change from one time to the next.",
}
COLUMNS = (
    "Run",
    "Items",
    "Right",
    "Grades",
    "Not known",
    "Mean",
    "Against {}",
    "Holm p",
)
NOTHING = "–"
COLUMN = 340
"""Pixels of a panel in a file, as the ones below."""
GAP = 28
EDGE = 24
MOST_COLUMNS = 3
LEGEND = 40
MOST_LINES = 6
"""Findings above the figures; the table has all."""


def files_of(runs: SideBySide) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the name and the text of each file."""
    drawn = figures.figures_of(runs)
    for figure in drawn:
        yield f"{figure.name}.svg", (svg(figure),)
    yield TABLE, list(sheet(runs))
    yield SUMMARY, (markdown(runs),)
    yield PAGE, (page(runs, drawn),)


@cache
def _environment() -> Environment:
    return html.environment("page", visible, html.PAGE_FILTERS, FOLDER)


def page(runs: SideBySide, drawn: Sequence[Figure]) -> str:
    """Return the page, with all text escaped and without a script."""
    shared = files("qagate.reports.render").joinpath("page", "page.css")
    style = shared.read_text("utf-8")
    columns, rows = table_of(runs)
    return _environment().get_template("compare.html.j2").render(
        runs=runs,
        words=words,
        sentence=sentence_of(runs),
        lines=finding_lines(runs),
        most_lines=MOST_LINES,
        shown_figures=drawn,
        has_several=len(figures.by_dataset(runs)) > 1,
        headings=HEADINGS,
        leads=LEADS,
        columns=columns,
        rows=rows,
        titles=_titles(runs),
        policy=Markup(content_policy("", style)),  # base64 and fixed words
        style=Markup(style),
    )  # fmt: skip


def svg(figure: Figure) -> str:
    """Return one figure as a file of its own, for documents and slides."""
    places: list[tuple[Panel, int, int]] = []
    columns = min(MOST_COLUMNS, len(figure.panels))
    y = EDGE
    for start in range(0, len(figure.panels), columns):
        row = figure.panels[start : start + columns]
        for number, panel in enumerate(row):
            places.append((panel, EDGE + number * (COLUMN + GAP), y))
        y += max(panel.height for panel in row) + GAP
    height = y + (LEGEND if figure.legend else 0)
    return _environment().get_template("figure.svg.j2").render(
        figure=figure,
        places=places,
        column=COLUMN,
        width=2 * EDGE + columns * COLUMN + (columns - 1) * GAP,
        height=height,
        title=f"{HEADINGS[figure.kind]} of {figure.name.partition('-')[2]}",
        style=Markup((FOLDER / "figure.css").read_text("utf-8")),
    )  # fmt: skip


def markdown(runs: SideBySide) -> str:
    """Return the tables in Markdown, with what is said beside them."""
    lines = [f"# {clean.prose(sentence_of(runs))}", ""]
    lines += [f"{clean.prose(line)}\n" for line in finding_lines(runs)]
    columns, rows_by_slice = table_of(runs)
    titles = _titles(runs)
    rows = []
    for part in runs.slices:
        for row in rows_by_slice[part.name]:
            rows.append([clean.prose(text) for text in (titles[part.name], *row)])
    header = [clean.prose(column) for column in ("Slice", *columns)]
    lines += [*markdown_table(header, rows), ""]
    for part in runs.slices:
        if part.asked_again is not None:
            again = "; ".join(figures.again_lines(part.asked_again))
            text = f"{titles[part.name]}, asked again: {again}."
            lines.append(f"- {clean.prose(text)}")
    lines += [f"- {clean.prose(note)}" for note in runs.notes]
    return "\n".join(lines).strip() + "\n"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# The sentence


def sentence_of(runs: SideBySide) -> str:
    """Return in a sentence how many runs are shown to be worse or better than the first."""
    counts = Counter(_results_by_run(runs).values())
    compared = len(runs.runs) - 1 - counts["not comparable"]
    if not compared:
        return f"Nothing can be compared with {runs.first}: other judges graded the other runs."
    noun = "run" if compared == 1 else "runs"
    others = f"{number_word(compared)} other {noun}"
    clauses = []
    for result in ("worse", "better", "worse in part and better in part"):
        count = counts[result]
        if count:
            verb = "is" if count == 1 else "are"
            clauses.append(f"{number_word(count)} {verb} {result}")
    if not clauses:
        return f"Of {others} none is shown to differ from {runs.first}."
    return f"Of {others} {listed(clauses)} than {runs.first}."


def _results_by_run(runs: SideBySide) -> Mapping[str, str]:
    """Return by run what is shown of it in all its slices together; nothing where nothing is."""
    results = {}
    for named in runs.runs:
        findings = {change.finding for _, change in _changes_of(runs, named.name)}
        if findings == {"not comparable"}:
            results[named.name] = "not comparable"
        elif findings.issuperset(("worse", "better")):
            results[named.name] = "worse in part and better in part"
        elif "worse" in findings:
            results[named.name] = "worse"
        elif "better" in findings:
            results[named.name] = "better"
    return results


def _changes_of(
    runs: SideBySide, name: str
) -> Iterator[tuple[SliceOfRuns, ChangeSinceFirst]]:
    for part in runs.slices:
        for run in part.runs:
            if run.run == name and run.change is not None:
                yield part, run.change


def finding_lines(runs: SideBySide) -> list[str]:
    """Return a line for each run that differs: where most, by how much, and where else."""
    lines = []
    for named in runs.runs:
        for finding in ("worse", "better"):
            shown = [
                (part, change)
                for part, change in _changes_of(runs, named.name)
                if change.finding == finding
            ]
            if shown:
                lines.append(_finding_line(runs, named.name, shown))
    return lines


def _finding_line(
    runs: SideBySide,
    name: str,
    shown: Sequence[tuple[SliceOfRuns, ChangeSinceFirst]],
) -> str:
    titles = _titles(runs)
    largest_first = sorted(
        shown, key=lambda entry: -abs(entry[1].difference.value or 0.0)
    )
    most, change = largest_first[0]
    others = [_within_sentence(titles[part.name]) for part, _ in largest_first[1:]]
    text = (
        f"{name}: {change.finding} in {_within_sentence(titles[most.name])} by "
        f"{figures.change_text(change)} points"
    )
    if others:
        text += f"; also in {listed(others)}"
    return f"{text}."


def _within_sentence(title: str) -> str:
    return title.replace(_capital(ALL_LANGUAGES), ALL_LANGUAGES)


def _titles(runs: SideBySide) -> Mapping[str, str]:
    """Return what people call each slice; with its data set, where there are several."""
    has_several = len(figures.by_dataset(runs)) > 1
    titles = {}
    for part in runs.slices:
        title = figures.title_of(part.name)
        if has_several:
            title += f" in {part.name.partition(':')[0]}"
        titles[part.name] = title
    return titles


# The table


def table_of(runs: SideBySide) -> tuple[list[str], dict[str, list[list[str]]]]:
    """Return the heads of the table, and its rows by slice; no column is empty in all rows."""
    rows = {part.name: [_row(part, run) for run in part.runs] for part in runs.slices}
    filled = []
    for place in range(len(COLUMNS)):
        texts = {row[place] for part in rows.values() for row in part}
        if texts != {NOTHING}:
            filled.append(place)
    columns = [COLUMNS[place].format(runs.first) for place in filled]
    shown = {
        name: [[row[place] for place in filled] for row in part]
        for name, part in rows.items()
    }
    return columns, shown


def _row(part: SliceOfRuns, run: RunFigures) -> list[str]:
    grades = [
        f"{name} {figures.share_text(grade.share)}"
        for name, grade in run.grades.items()
    ]
    change = NOTHING
    adjusted = NOTHING
    if run.change is not None:
        finding = figures.FINDINGS[run.change.finding]
        change = f"{figures.change_text(run.change)}; {finding}"
        adjusted = words.p_value(run.change.adjusted)
    return [
        run.run,
        f"{run.items:,}",
        figures.share_text(run.right),
        "; ".join(grades) or NOTHING,
        f"{run.segments.unknown:,}",
        figures.mean_text(run, is_rated=part.is_rated),
        change,
        adjusted,
    ]


def sheet(runs: SideBySide) -> Iterator[str]:
    """Return the lines of the figures as CSV, a figure each; no text is a formula."""
    rows: list[list[str]] = [list(FIELDS)]
    for row in figure_rows(runs):
        rows.append([_cell(value) for value in astuple(row)])
    return sheet_lines(rows)


def _cell(value: object) -> str:
    """Return a text harmless, a number as it is, and nothing where there is none."""
    if value is None:
        return ""
    return cell(value) if isinstance(value, str) else str(value)
