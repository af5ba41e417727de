"""``qagate compare``: runs side by side, and two of them item by item.

Comparing decides nothing: it ends in 0 whatever it shows. Gates decide (``qagate gate``).
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from qagate.evaluators.core import UsageError
from qagate.evaluators.output import aligned_table, say
from qagate.evaluators.text import shown
from qagate.reports.commands.given_runs import (
    RUN_HELP,
    RecordedRunParser,
    read_baseline,
    save,
)
from qagate.reports.extras.side_by_side import figures
from qagate.reports.extras.side_by_side.counting import SideBySide, count_runs
from qagate.reports.extras.side_by_side.rendering import (
    PAGE,
    files_of,
    finding_lines,
    sentence_of,
)
from qagate.reports.render import console, words
from qagate.reports.render.writer import write_files
from qagate.reports.run.baseline import Baseline, load_baseline
from qagate.reports.run.baselines import find_run
from qagate.reports.run.clean import line
from qagate.reports.run.report import Report
from qagate.reports.run.report_folder import check_apart, folder_of
from qagate.reports.run.run_json import load_report
from qagate.reports.verdict.rebuild import rebuilt


def main(argv: Sequence[str]) -> int:
    """Print the runs beside the first, and write page, tables and drawings where asked."""
    parser = RecordedRunParser(
        "compare",
        "Compare runs with the first of them over the same items: differences are the other run - "
        "the first. Two runs are compared item by item as well. Gates decide nothing here.",
        "0 compared, 3 could not be written, 4 wrong arguments or no readable run",
    )
    parser.add_argument("first", metavar="OLD", help=RUN_HELP)
    parser.add_argument(
        "others", metavar="NEW", nargs="+", help="runs to hold beside it"
    )
    parser.add_anchor()
    parser.add_to(
        "a folder for compare.html, compare.md, compare.csv and each figure as SVG; of two runs "
        "also for the report of NEW compared with OLD"
    )
    options = parser.parse_args(argv)
    given = [options.first, *options.others]
    _check_different(given)
    are_two = len(options.others) == 1
    if are_two:
        lines = _item_by_item(options)
    elif options.anchor:
        raise UsageError("--anchor: is for two runs; name it as one more run here")
    else:
        lines = []
    runs = [load_baseline(find_run(text)) for text in given]
    compared = count_runs(runs)
    if not are_two:
        lines = list(map(line, text_lines(compared)))
    if options.to:
        _check_places(runs, options.to)
        paths = write_files(files_of(compared), options.to)
        lines += [f"page: {path}" for path in paths if path.name == PAGE]
    say(sys.stdout, *lines)
    return 0


def _check_different(given: Sequence[str]) -> None:
    """Raise UsageError where a run is named twice."""
    places = set()
    for text in given:
        place = folder_of(find_run(text)).resolve()
        if place in places:
            raise UsageError(f"{shown(text)} is named twice; name each run once")
        places.add(place)


def _check_places(runs: Sequence[Baseline], to: Path) -> None:
    """Raise UsageError for a folder that is one of the runs' own."""
    for run in runs:
        check_apart(Path(run.path), to, "run", "--to")


def _item_by_item(options: argparse.Namespace) -> list[str]:
    """Return what broke and what was fixed from the first run to the second; write it too."""
    (new,) = options.others
    path = find_run(new)
    report = load_report(path)
    anchor = read_baseline(options.anchor, [report], "anchor", to=options.to)
    old = read_baseline(options.first, [report], to=options.to)
    compared = rebuilt(report, old, anchor)
    if not _have_items_in_common(compared):
        raise UsageError(
            f"{options.first} and {new} have no item in common; "
            "compare runs of one dataset"
        )
    return [*console.comparison(compared), *save(compared, options.to, path)]


def _have_items_in_common(compared: Report) -> bool:
    """Return whether an item of a report was in the earlier run too."""
    comparison = compared.comparison
    if comparison is None:
        return False
    return any(difference.shared for difference in comparison.slices)


def text_lines(runs: SideBySide) -> Iterator[str]:
    """Yield the sentence, a table of each slice, and what counts at its worst."""
    yield sentence_of(runs)
    yield from finding_lines(runs)
    for part in runs.slices:
        rows = [[part.name, "right", "not known", f"against {runs.first}", "Holm p"]]
        for run in part.runs:
            change = "–"
            adjusted = "–"
            if run.change is not None:
                finding = figures.FINDINGS[run.change.finding]
                change = f"{figures.change_text(run.change)} {finding}"
                adjusted = words.p_value(run.change.adjusted)
            unknown = f"{run.segments.unknown:,} of {run.items:,}"
            right = figures.share_text(run.right)
            rows.append([f"  {run.run}", right, unknown, change, adjusted])
        yield ""
        yield from aligned_table(rows)
        if part.asked_again is not None:
            yield f"  asked again: {'; '.join(figures.again_lines(part.asked_again))}"
    if runs.notes:
        yield ""
    yield from runs.notes
