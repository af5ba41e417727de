"""One slice's records counted: end states, metrics, extra metrics, repeats and breakdowns."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import chain

from qagate.cases.dataset import Slice
from qagate.evaluators.core import CORRECT, Outcome, QAError
from qagate.evaluators.kinds import NOT_CORRECT, TWO_WAY, Axes, Cluster, Kind, is_right
from qagate.evaluators.output import plural
from qagate.evaluators.statistics import metrics
from qagate.evaluators.statistics.betting import Bounds, Evidence
from qagate.evaluators.statistics.count_table import CountTable, Fill, count_patterns
from qagate.evaluators.statistics.intervals import Array, Estimate, Places
from qagate.reports.run.columns import Clusters, columns_of, counted_kinds, numbered
from qagate.reports.run.evidence import ConfusionCell
from qagate.reports.run.record import Record
from qagate.reports.run.report import Counts, SliceSummary
from qagate.reports.run.usage import usage_estimate


def gated_repeats(slice_: Slice) -> tuple[str, ...]:
    """Return the metrics of repeats that a slice's gates name."""
    return tuple(
        one.measure for one in slice_.thresholds if metrics.is_repeated(one.measure)
    )


def repeat_estimate(
    records: Iterable[Record], slice_: Slice, name: str, fill: bool | None = None
) -> Estimate:
    """Return one metric of repeats; its interval is over the slice's clusters.

    ``fill`` is the result of ungraded tries; None leaves them out, and items with too few tries.
    """
    tries: dict[tuple[Cluster, str], list[bool]] = defaultdict(list)
    for record in records:
        ended = record.outcome == "passed" if record.is_graded else fill
        tries[slice_.cluster_of(record), record.id] += [] if ended is None else [ended]
    clusters: dict[Cluster, list[float]] = defaultdict(list)
    for (cluster, _), passed in tries.items():
        if (value := metrics.chance(name, len(passed), sum(passed))) is not None:
            clusters[cluster].append(value)
    return metrics.clustered_mean(list(clusters.values()))


NO_VALUE = "(none)"  # the heading of the items that lack the field of a breakdown


def count(records: Sequence[Record]) -> Counts:
    """Count the records by end state; each is one planned item."""
    states: Counter[str] = Counter()
    for record, times in counted_kinds(records):
        states[record.outcome] += times
    return Counts(
        planned=len(records),
        passed=states["passed"],
        failed=states["failed"],
        error=states["error"],
        missing=states["missing"],
        stopped=states["stopped"],
    )


def summarise(
    records: Sequence[Record],
    slice_: Slice,
    partial: bool = False,
    for_gates: bool = False,
    sample: metrics.Sample | None = None,
) -> SliceSummary:
    """Return the summary of one slice.

    ``for_gates`` leaves out breakdowns, and metrics that no gate of an answered slice names.
    """
    sample = sample or tabulate(records, slice_)
    measures = _measures(
        sample, records, slice_, brief=for_gates and slice_.kind.answered
    )
    totals, counts = sample.whole.counts.sum(axis=0), count(records)
    if counts.stopped and not for_gates:
        measures = _at_any_look(measures, sample.whole, records, slice_)
    return SliceSummary(
        dataset=slice_.dataset,
        language=slice_.language,
        kind=slice_.kind,
        counts=counts,
        measures=measures,
        labels={
            label: int(n)
            for label, n in zip(sample.patterns.outcomes, totals, strict=True)
        },
        confusion=tuple(
            ConfusionCell(label=gold, grade=outcome, count=int(cell))
            for gold in sorted(sample.whole.golds if slice_.kind.has_labels else ())
            for outcome in sorted(sample.whole.outcomes)
            if (cell := sample.whole.of(outcome, gold))
        ),
        breakdowns={} if for_gates else _breakdowns(records, slice_),
        partial=partial,
    )


def _measures(
    sample: metrics.Sample, records: Sequence[Record], slice_: Slice, *, brief: bool
) -> dict[str, Estimate]:
    """Return every metric of a slice, or if ``brief`` those that its own gates name."""
    gated = {one.measure for one in slice_.thresholds}
    wanted, tries = gated - metrics.USAGE.keys(), 1
    found: dict[str, Estimate] = {}
    if wanted or not brief:
        found = sample.estimates(wanted if brief else ())
    if slice_.kind.answered and brief and not gated_repeats(slice_):
        tries = 1
    elif slice_.kind.answered:
        tries = max((record.repeat for record in records), default=1)
    else:  # of repeated judgements also how often two agree
        by_item = tabulate(records, slice_, cluster_of=lambda record: (record.id,))
        found |= (
            {metrics.SELF_AGREEMENT: by_item.self_agreement()}
            if by_item.clustered
            else {}
        )
    repeated = (
        ()
        if brief or tries == 1
        else (f"{metrics.ANY}{tries}", f"{metrics.ALL}{tries}")
    )
    for name in (*repeated, *gated_repeats(slice_)):
        if metrics.tries_of(name) <= tries:
            found[name] = repeat_estimate(records, slice_, name)
    found |= extra_estimates(records, slice_, wanted if brief else None)
    found |= state_estimates(records, slice_)
    for name, row in metrics.USAGE.items() if slice_.kind.answered else ():
        if name in gated or not brief:
            used = usage_estimate(records, slice_, row)
            found |= {name: used} if used.n else {}
    return found


def _breakdowns(
    records: Sequence[Record], slice_: Slice
) -> dict[str, dict[str, dict[str, Estimate]]]:
    found = {}
    for by in slice_.by:
        groups: dict[str, list[Record]] = defaultdict(list)
        for record in records:
            if record.is_graded:
                groups[str(record.metadata.get(by, NO_VALUE))].append(record)
        if groups.keys() != {NO_VALUE}:
            found[by] = {
                text: {
                    **tabulate(some, slice_).estimates(),
                    **extra_estimates(some, slice_),
                }
                for text, some in sorted(groups.items())
            }
    return found


def gold_of(record: Record, kind: Kind) -> str:
    """Return the label that the outcome is compared with; empty where there is none."""
    return kind.gold_label(record.label, record.expected)


def is_counted(record: Record, slice_: Slice) -> bool:
    """Return whether a record has the label that its kind needs: raters may have tied on it."""
    return slice_.kind.answered or record.label is not None


def on_axis(label: str, axis: Sequence[str], slice_: Slice) -> str:
    """Return a label or verdict as the axis names it; right or wrong on a two-way axis."""
    if tuple(axis) != TWO_WAY or label in ("", *TWO_WAY):
        return label
    return CORRECT if is_right(label, slice_.passing, slice_.pass_bar) else NOT_CORRECT


Cell = tuple[str, str | None]
"""The gold label and the result of a record; None where it has no grade."""


def cell_of(record: Record, slice_: Slice) -> Cell:
    """Return where a record is counted."""
    return gold_of(record, slice_.kind), record.result if record.is_graded else None


def axes_of(cells: AbstractSet[Cell], slice_: Slice) -> Axes:
    """Return the gold labels and the outcomes to count, in the order to show them."""
    results = {result for _, result in cells if result is not None}
    return slice_.kind.axes(slice_.labels, {gold for gold, _ in cells}, results)


def tabulate(
    records: Sequence[Record],
    slice_: Slice,
    fill: Fill | None = None,
    cluster_of: Callable[[Record], Cluster] | None = None,
) -> metrics.Sample:
    """Count the graded records; with ``fill``, the ungraded ones too, by the outcome it gives.

    By the slice's clusters, if no others. Raises QAError for labels or grades of another kind.
    """
    columns = columns_of(records, slice_)
    clusters = numbered(columns.clusters)
    if cluster_of is not None:
        clusters = numbered(Clusters(names=[cluster_of(record) for record in records]))
    cells: dict[int, Cell] = {}
    for place, record in enumerate(columns.column.kinds):
        if is_counted(record, slice_):
            cells[place] = cell_of(record, slice_)
    golds, outcomes = axes_of(set(cells.values()), slice_)
    places = [NOT_COUNTED] * len(columns.column.kinds)
    for place, (gold_label, result) in cells.items():
        if result is None and fill is None:
            continue
        gold = on_axis(gold_label, golds, slice_)
        outcome = (fill or {}).get(gold, "") if result is None else result
        outcome = on_axis(outcome, outcomes, slice_)
        if gold not in golds or outcome not in outcomes:
            key = columns.column.kinds[place].key
            what = f"label {gold!r} with {outcome!r} makes no sense"
            raise QAError(f"{key}: {what} for kind {slice_.kind}")
        places[place] = golds.index(gold) * len(outcomes) + outcomes.index(outcome)
    patterns, items, clustered = _patterns(
        columns.column.valued(places), clusters, (len(golds), len(outcomes))
    )
    return metrics.Sample(
        kind=slice_.kind,
        patterns=count_table(
            slice_, patterns, (golds, outcomes), scores_of(columns.column.kinds, slice_)
        ),
        items=items,
        clustered=clustered,
    )


NOT_COUNTED = -1
"""The place of a record in a count table that it does not stand in."""


def _patterns(
    places: Places, clusters: Places, shape: tuple[int, int]
) -> tuple[Array, Array, bool]:
    """Return the distinct tables of clusters, how many have each, and if any has several items.

    ``places`` are those of records in a table, ``clusters`` the numbers of their clusters.
    """
    import numpy as np

    are_counted = places != NOT_COUNTED
    places = places[are_counted]
    clusters = clusters[are_counted]
    clustered = bool(np.bincount(clusters).max(initial=0) > 1)
    if not clustered:
        totals = np.bincount(places, minlength=shape[0] * shape[1])
        used = np.flatnonzero(totals)
        tables = np.eye(len(totals))[used].reshape(-1, *shape)
        return tables, totals[used].astype(np.float64), clustered
    cells: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for cluster, place in zip(clusters.tolist(), places.tolist(), strict=True):
        cells[cluster].append(divmod(place, shape[1]))
    patterns, items = count_patterns(cells.values(), shape)
    return patterns, items, clustered


def scores_of(records: Sequence[Record], slice_: Slice) -> Mapping[str, float]:
    """Return what each grade is worth, empty where no record has a score."""
    seen = {
        one.grade: one.score for one in records if one.grade and one.score is not None
    }
    return {**(slice_.rubric.scores if seen and slice_.rubric else {}), **seen}


def count_table(
    slice_: Slice, counts: Array, axes: Axes, scores: Mapping[str, float]
) -> CountTable:
    """Return counts over these axes with the slice's bar, penalty and passing grades."""
    golds, outcomes = axes
    return CountTable(
        counts=counts,
        golds=golds,
        outcomes=outcomes,
        pass_bar=slice_.pass_bar,
        penalty=slice_.penalty,
        scores=scores,
        passing=slice_.passing,
        attacks=slice_.attacks,
    )


def counted_outcomes(row: metrics.Metric, table: CountTable) -> set[tuple[str, str]]:
    """Return the (gold label, outcome) pairs that a share of all items counts."""
    import numpy as np

    cells = [(gold, outcome) for gold in table.golds for outcome in table.outcomes]
    shape = (len(table.golds), len(table.outcomes))
    hits, _ = row.parts(replace(table, counts=np.eye(len(cells)).reshape(-1, *shape)))
    return {cell for cell, hit in zip(cells, hits, strict=True) if hit}


def _at_any_look(
    measures: Mapping[str, Estimate],
    table: CountTable,
    records: Sequence[Record],
    slice_: Slice,
) -> dict[str, Estimate]:
    """Return the metrics of a slice that was stopped once it was decided.

    Shares of all items have an interval that holds then, ungraded items at either end; others none.
    """
    rows, found = metrics.metrics_of(slice_.kind, table), {}
    units: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        units[slice_.place_of(record)].append(record)
    for name, one in measures.items():
        found[name] = replace(one, low=None, high=None)
        row = rows.get(name)
        if row and row.every_item and one.value is not None:
            hits = counted_outcomes(row, table)

            def ends(
                record: Record, hits: AbstractSet[tuple[str, str]] = hits
            ) -> Bounds:
                gold = on_axis(gold_of(record, slice_.kind), table.golds, slice_)
                hit = (gold, on_axis(record.result, table.outcomes, slice_)) in hits
                return (2 * hit - 1, 2 * hit - 1) if record.is_graded else (-1, 1)

            seen = Evidence.of(list(map(ends, units[place])) for place in sorted(units))
            if seen.interval:
                low, high = seen.interval
                found[name] = replace(one, low=(low + 1) / 2, high=(high + 1) / 2)
    return found


def missing_extras(records: Sequence[Record]) -> dict[str, int]:
    """Return how many items lack each extra metric, those without a grade included."""
    missing = {}
    kinds = counted_kinds(records)
    for name in _extra_names(record for record, _ in kinds):
        missing[name] = 0
        for record, times in kinds:
            is_lacking = name in record.measures or not record.is_graded
            if record.measures.get(name) is None and is_lacking:
                missing[name] += times
    return missing


def gated_states(slice_: Slice) -> tuple[str, ...]:
    """Return the states of answers whose share a slice's gates name."""
    measures = [threshold.measure for threshold in slice_.thresholds]
    return tuple(name for name in metrics.ANSWER_STATES if name in measures)


def state_estimates(records: Sequence[Record], slice_: Slice) -> dict[str, Estimate]:
    """Return the share of replies in each state that a gate names, over the slice's clusters."""
    estimates = {}
    for name in gated_states(slice_):
        clusters: dict[Cluster, list[float]] = defaultdict(list)
        for record in records:
            is_in_state = record.is_in_state(name)
            if is_in_state is not None:
                clusters[slice_.cluster_of(record)].append(float(is_in_state))
        estimates[name] = metrics.clustered_mean(list(clusters.values()))
    return estimates


def missing_states(records: Sequence[Record], slice_: Slice) -> dict[str, int]:
    """Return how many items have no reply, for each state that a gate names."""
    states = gated_states(slice_)
    if not states:
        return {}
    without_reply = sum(not record.answer_state for record in records)
    return dict.fromkeys(states, without_reply)


def extra_estimates(
    records: Sequence[Record], slice_: Slice, names: AbstractSet[str] | None = None
) -> dict[str, Estimate]:
    """Return the mean of each extra metric, or of the named ones, bootstrapped over clusters."""
    if names is not None and not names:
        return {}
    found = {}
    columns = columns_of(records, slice_)
    numbers = numbered(columns.clusters).tolist()
    for name in _extra_names(columns.column.kinds):
        if names is not None and name not in names:
            continue
        of_kinds = [record.measures.get(name) for record in columns.column.kinds]
        clusters: dict[int, list[float]] = defaultdict(list)
        places = columns.column.places.tolist()
        for number, place in zip(numbers, places, strict=True):
            value = of_kinds[place]
            if value is not None:
                clusters[number].append(value)
        found[name] = metrics.clustered_mean(list(clusters.values()))
    return found


def _extra_names(records: Iterable[Record]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(chain.from_iterable(record.measures for record in records))
    )


def extra_notes(
    slices: Iterable[Slice], outcomes: Iterable[Outcome], judge: str
) -> list[str]:
    """Return notes on extra metrics that items lack, or asked of a ``judge`` without a model."""
    notes = []
    if judge:
        for slice_ in slices:
            names = ", ".join(metric.name for metric in slice_.metrics)
            if names:
                why = f"not measured: --judge {judge} asks no model"
                notes.append(f"{slice_.name}: {names} {why}")
    reasons: dict[str, list[str]] = defaultdict(list)
    for outcome in outcomes:
        for name, reason in outcome.unmeasured.items():
            reasons[name].append(reason)
    for name, lacking in reasons.items():
        items = plural(len(lacking), "item")
        notes.append(f"{name}: {items} not measured: {lacking[0]}")
    return notes
