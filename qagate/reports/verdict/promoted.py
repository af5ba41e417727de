"""Runs that were promoted: kept by name under ``reports/baselines``, and shown as a trend."""

from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from qagate.evaluators.core import UsageError
from qagate.evaluators.text import mask, shown

if TYPE_CHECKING:
    from qagate.reports.run.evidence import TrendPoint
    from qagate.reports.run.report import Report

BASELINES = Path("reports", "baselines")
"""Where promoted runs lie, from the working folder: a folder each, to be committed."""
_MOST = 12  # promoted runs in a trend, the latest ones


def find_run(given: str, here: Path = Path()) -> Path:
    """Return the run of a path or a promoted run's name; raises UsageError with names there are."""
    path, named = here / given, here / BASELINES / given
    if path.exists() or Path(given).name != given:
        return path
    if (named / "run.json").is_file():
        return named
    names = [one.name for one in promoted(here)]
    near = get_close_matches(given, names, n=1)
    hint = (
        f"did you mean {near[0]!r}?"
        if near
        else f"promoted: {', '.join(names) or 'none'}"
    )
    raise UsageError(
        f"{given}: no such path, and no run was promoted under this name; {hint}"
    )


def promoted(here: Path) -> list[Path]:
    """Return the folders of the promoted runs, by name."""
    return sorted(path.parent for path in (here / BASELINES).glob("*/run.json"))


def with_trend(report: "Report", here: Path) -> "Report":
    """Return the report with its trend over promoted runs, oldest first; notes name unread ones."""
    points, unread = [], []
    for folder in promoted(here):
        try:
            points.append(_point(folder, report))
        except UsageError as problem:
            unread.append(mask(f"left out of the trend: {problem}"))
    points.sort(key=lambda point: point.started)
    found = tuple(point for point in points if point.slices)[-_MOST:]
    return replace(report, trend=found, notes=(*report.notes, *unread))


def _point(folder: Path, report: "Report") -> "TrendPoint":
    from qagate.reports.render.words import headline  # noqa: PLC0415  # workers only look for a name
    from qagate.reports.run.evidence import TrendFigure, TrendPoint  # noqa: PLC0415
    from qagate.reports.run.run_json import inner, load_report  # noqa: PLC0415

    earlier = load_report(folder, items=False)
    then = {one.name: one for one in earlier.slices if not one.partial}
    found = {}
    for now in report.slices:
        measure, before = next(iter(headline(now)), ""), then.get(now.name)
        if before is not None and measure in before.measures:
            both = earlier.provenance, report.provenance
            was, is_ = (inner(one, "slices", now.name) for one in both)
            names = {
                "data": "data_sha256",
                "rubric": "rubric",
            }  # figures depend on them too
            odd = [
                what for what, name in names.items() if was.get(name) != is_.get(name)
            ]
            odd += ["judge"] if earlier.judge != report.judge else []
            figure = before.measures[measure]
            found[now.name] = TrendFigure(
                measure=measure, estimate=figure, changed=tuple(odd)
            )
    return TrendPoint(
        name=folder.name,
        started=str(earlier.run.get("started", "")),
        model=earlier.model,
        slices=found,
    )


def check_name(name: str) -> str:
    """Return a name for a run to be promoted under; raises UsageError where it is no plain one."""
    if (
        not name.replace("-", "").replace("_", "").replace(".", "").isalnum()
        or name[0] in ".-"
    ):
        raise UsageError(
            f"{shown(name)}: a name of letters, digits, '.', '_' and '-' is needed"
        )
    return name
