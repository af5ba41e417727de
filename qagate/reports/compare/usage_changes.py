"""How far seconds, tokens and cost of the answers moved, graded or not."""

import math
from dataclasses import dataclass, field, replace
from functools import partial

from qagate.evaluators.kinds import Cluster
from qagate.evaluators.output import plural
from qagate.evaluators.statistics.intervals import TAIL
from qagate.evaluators.statistics.metrics import USAGE
from qagate.evaluators.statistics.usage_estimates import UsageMetric
from qagate.reports.compare.change import ChangeCase, MetricChange
from qagate.reports.compare.sides import Sides
from qagate.reports.compare.tables import pairs_of
from qagate.reports.run.evidence import UsageShift
from qagate.reports.run.usage import taken

EXTREMES = ((0.0, math.inf), (math.inf, 0.0))
"""Unknown figures, old and new, at their extremes. The first is the worst, as a rise harms."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What the answers of both runs took, pair by pair."""

    old: list[float] = field(default_factory=list)
    new: list[float] = field(default_factory=list)
    clusters: list[Cluster] = field(default_factory=list)

    def scaled(self, times: float) -> "Figures":
        """Return the same figures, each of so many clusters, a whole number."""
        if times == 1:
            return self
        copies = range(int(times))
        clusters = []
        for copy in copies:
            clusters += [(*cluster, f"copy {copy}") for cluster in self.clusters]
        return Figures(self.old * len(copies), self.new * len(copies), clusters)


def figures_of(
    sides: Sides,
    row: UsageMetric,
    fills: tuple[float | None, float | None] = (None, None),
) -> Figures:
    """Return the figures of the pairs.

    ``fills`` stand for unknown figures, old and new; None leaves such a pair out.
    """
    figures = Figures()
    fill_old, fill_new = fills
    for side, pair in pairs_of(sides):
        old = taken(pair.old, row)
        new = taken(pair.new, row)
        old = fill_old if old is None else old
        new = fill_new if new is None else new
        if old is not None and new is not None:
            figures.old.append(old)
            figures.new.append(new)
            figures.clusters.append(side.cluster_of(pair))
    return figures


def usage_change(
    sides: Sides, row: UsageMetric, *, relative: bool, tail: float = TAIL
) -> MetricChange | str:
    """Return the change of seconds, tokens or cost, or why it is unknown."""
    known = figures_of(sides, row)
    cases = [_case(row, known, relative, tail, 1.0)]
    unknown = sum(len(side.pairs) for side in sides) - len(known.old)
    if unknown:
        for fills in EXTREMES:
            filled = figures_of(sides, row, fills)
            cases.append(_case(row, filled, relative, tail, 1.0))
    if not all(case.strict.interval for case in cases[1:]):
        return f"{row.name} is not known of {plural(unknown, 'item')} in both runs"
    return MetricChange(cases=cases, units=len(set(known.clusters)))


def _case(
    row: UsageMetric, figures: Figures, relative: bool, tail: float, times: float
) -> ChangeCase:
    scaled = figures.scaled(times)
    change = row.change(scaled.old, scaled.new, scaled.clusters, relative=relative)
    strict = change
    if tail != TAIL:
        strict = row.change(
            scaled.old, scaled.new, scaled.clusters, relative=relative, tail=tail
        )
    return ChangeCase(
        change=change,
        strict=strict,
        scaled=partial(_case, row, figures, relative, tail),
    )


def usage_shifts(sides: Sides) -> dict[str, UsageShift]:
    """Return what answers took then and now, by each usage metric that some pairs know."""
    shifts = {}
    for name, row in USAGE.items():
        figures = figures_of(sides, row)
        change = row.change(figures.old, figures.new, figures.clusters, relative=True)
        if change.value is None or not math.isfinite(change.value):
            continue
        factor = replace(
            change,
            value=change.value + 1,
            low=None if change.low is None else change.low + 1,
            high=None if change.high is None else change.high + 1,
        )
        shifts[name] = UsageShift(
            before=row.estimate(figures.old, figures.clusters),
            now=row.estimate(figures.new, figures.clusters),
            factor=factor,
        )
    return shifts
