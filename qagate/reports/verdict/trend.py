"""The trend of a report: the headline figures of the promoted runs before it."""

from dataclasses import replace
from pathlib import Path

from qagate.evaluators.core import UsageError
from qagate.evaluators.text import mask
from qagate.reports.render.words import headline
from qagate.reports.run.baselines import promoted
from qagate.reports.run.evidence import TrendFigure, TrendPoint
from qagate.reports.run.json_data import inner
from qagate.reports.run.report import Report
from qagate.reports.run.run_json import load_report

MOST_POINTS = 12
"""Promoted runs in a trend: the latest ones."""


def with_trend(report: Report, here: Path) -> Report:
    """Return the report with its trend over promoted runs, oldest first; notes name unread ones."""
    points, unread = [], []
    for folder in promoted(here):
        try:
            points.append(_point(folder, report))
        except UsageError as problem:
            unread.append(mask(f"left out of the trend: {problem}"))
    points.sort(key=lambda point: point.started)
    found = tuple(point for point in points if point.slices)[-MOST_POINTS:]
    return replace(report, trend=found, notes=(*report.notes, *unread))


def _point(folder: Path, report: Report) -> TrendPoint:
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
