"""The table of metrics: what each measures, which interval it has, and where it is shown.

A metric is a ratio of two sums over a table of counts. To add one, add a row to the table of its
kind (and, if ``share`` is not enough, a function in ``count_table.py``): thresholds, gates, reports
and commands read it from here. Usage metrics, such as seconds, are rows of ``USAGE``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from operator import attrgetter
from typing import Literal

from qagate.evaluators.core import (
    CORRECT,
    GRADES,
    INCORRECT,
    NO,
    NOT_ATTEMPTED,
    UNANSWERED,
    YES,
)
from qagate.evaluators.statistics import count_table as counts
from qagate.evaluators.statistics import intervals
from qagate.evaluators.statistics.agreement import (
    KAPPA,
    QUADRATIC_KAPPA,
    SPEARMAN,
    Coefficient,
)
from qagate.evaluators.statistics.count_table import (
    PREMISE,
    RATINGS,
    CountTable,
    of_classes,
    share,
)
from qagate.evaluators.statistics.intervals import UNDEFINED, Array, Estimate, Interval
from qagate.evaluators.statistics.usage_estimates import UsageMetric

Better = Literal["more", "less", "neither"]

Range = tuple[float, float]
"""The lowest and the highest value of a figure or a threshold."""

RATE: Range = (0.0, 1.0)
MAX_PENALTY = 100.0
ANSWERS = (YES, NO, UNANSWERED)
CHECK_RESULTS = PASSED, FAILED = "PASS", "FAIL"
"""The verdicts on an answer that checks alone decide."""

DROP, RISE = "drop", "rise"
"""Thresholds on the paired difference to a baseline; no metrics of one run."""

LABEL_SHARE = "share_"
"""Begins the name of the share of one of a rubric's own labels."""

SELF_AGREEMENT = "self_agreement"
"""How often two judgements of one answer agree; needs items that were judged again."""

YOUDEN, YOUDEN_INCORRECT = "youden", "youden_incorrect"
"""How well a judge tells answers that pass, or INCORRECT ones, from all others."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of the table."""

    name: str
    title: str
    parts: counts.Ratio
    """Numerator and denominator; denominator 0 means undefined."""
    _: KW_ONLY
    range: Range | None = RATE
    """The range of a threshold; None if no gate may name the metric."""
    rate: bool = False
    """Whether it counts successes by trials, item by item, so that Wilson's interval fits."""
    interval: Callable[[counts.Ratio, CountTable, Array], Interval | None] | None = None
    """From ``parts``, the tables of clusters and how many have each; None for a bootstrap."""
    every_item: bool = False
    """Whether the trials of a rate are all graded items."""
    bounded: bool = True
    """Whether its extremes over ungraded items are known (``worst_case_fills``)."""
    headline: bool = False
    """Whether it is in the one-line summary of a slice."""
    column: int = 0
    """Its place among the columns of the report page; 0 is below the columns."""
    compared: bool = True
    """Whether its difference to a baseline is shown with that of the passing share."""
    better: Better = "more"
    """Which end of its range is the better one."""
    two_sided: bool = False
    """Whether 0 is the best value and a judge's floor the greatest distance from it."""
    any_labels: bool = False
    """Whether it makes sense for a rubric's own labels too."""
    applies: Callable[[CountTable], bool] = lambda _: True
    """Whether it makes sense for the items of a table."""

    def value(self, table: CountTable) -> float | None:
        """Return the metric over one table, None if it is undefined."""
        numerator, denominator = self.parts(table)
        return float(numerator / denominator) if denominator else None


def _youden(
    name: str, title: str, positive: Callable[[CountTable], tuple[str, ...]]
) -> Metric:
    return Metric(
        name,
        title,
        lambda table: counts.youden_parts(table, positive(table)),
        range=(-1.0, 1.0),
        interval=lambda _, table, items: counts.youden_interval(
            table, items, positive(table)
        ),
        applies=lambda table: (
            not table.attacks and any(one in table.outcomes for one in positive(table))
        ),
    )


def _coefficient(
    name: str,
    title: str,
    coefficient: Coefficient,
    *,
    ratings: bool,
    headline: bool = False,
) -> Metric:
    return Metric(
        name,
        title,
        lambda table: coefficient.parts(table.counts),
        range=(-1.0, 1.0),
        interval=lambda _, clusters, items: (
            coefficient.estimate(
                clusters.counts, items, int(clusters.total @ items)
            ).interval
        ),
        bounded=False,
        headline=headline,
        column=2 if headline else 0,
        applies=lambda table: not table.attacks and _is_rated(table) is ratings,
    )


def _is_rated(table: CountTable) -> bool:
    return table.outcomes == RATINGS


def _rows(*rows: Metric) -> dict[str, Metric]:
    return {row.name: row for row in rows}


def _premises(name: str, title: str, outcome: str, better: Better = "more") -> Metric:
    """Return the row for the share of marked items with this outcome."""

    def parts(table: CountTable) -> counts.Parts:
        return table.of(outcome, PREMISE), table.with_gold(PREMISE)

    return _rate(
        name, title, parts, better=better, applies=lambda table: PREMISE in table.golds
    )


_mean = partial(Metric, interval=counts.mean_interval)
_of_classes = partial(Metric, interval=counts.class_interval)
_rate = partial(Metric, rate=True)
_item_rate = partial(_rate, every_item=True)
_scored = partial(Metric, applies=lambda table: bool(table.scores))
_of_attacks = partial(
    _rate, headline=True, better="less", applies=attrgetter("attacks")
)
_leading = partial(_item_rate, headline=True, column=1, compared=False)

METRICS: Mapping[str, Mapping[str, Metric]] = {
    "graded": _rows(
        _leading("correct", "Correct", lambda table: share(*table.passing)(table), any_labels=True),
        _item_rate("incorrect", "Incorrect", share(INCORRECT), headline=True, better="less"),
        _item_rate("not_attempted", "Not attempted", share(NOT_ATTEMPTED), headline=True,
                   better="neither"),
        _item_rate("attempted", "Attempted", share(CORRECT, INCORRECT), better="neither"),
        _rate("correct_given_attempted", "Correct given attempted",
              lambda t: (t.of(CORRECT), t.of(CORRECT) + t.of(INCORRECT)), column=3),
        Metric("f_score", "F-score", counts.f_score, headline=True, column=2),
        Metric("penalised", "Penalised",
               lambda t: (t.of(CORRECT) - t.penalty * t.of(INCORRECT), t.total),
               range=(-MAX_PENALTY, 1.0)),
        _premises("premise_corrected", "Premises met", CORRECT),
        _premises("premise_declined", "Premises declined", NOT_ATTEMPTED, better="neither"),
        _premises("premise_accepted", "Premises fallen for", INCORRECT, better="less"),
        _scored("mean_score", "Mean score", counts.mean_score, any_labels=True, better="neither"),
    ),
    "rated": _rows(
        _mean("mean_rating", "Mean rating", counts.mean_rating, range=(1.0, 10.0), headline=True,
              column=1),
        _leading("pass_rate", "Pass rate", counts.pass_rate, column=2),
        _mean("normalised", "Normalised rating",
              lambda t: (counts.mean_rating(t)[0] - t.total, 9 * t.total), compared=False),
    ),
    "yes_no": _rows(
        _leading("accuracy", "Accuracy", lambda t: (t.of(YES, YES) + t.of(NO, NO), t.total)),
        _rate("precision", "Precision",
              lambda t: (t.of(YES, YES), t.of(YES, YES) + t.of(YES, NO))),
        _rate("recall", "Recall", lambda t: (t.of(YES, YES), t.with_gold(YES))),
        _of_classes("f1", "F1", counts.f1, headline=True, column=2),
        _of_classes("macro_f1", "Macro-F1", counts.macro_f1),
        _item_rate("unanswered", "Unanswered", share(UNANSWERED), headline=True, column=3,
                   better="less"),
        Metric("majority_baseline", "Majority baseline",
               lambda t: ((t.total + abs(t.with_gold(YES) - t.with_gold(NO))) / 2, t.total),
               range=None, compared=False),
    ),
    "judged": _rows(
        _leading("agreement", "Agreement",
                 lambda t: (t.counts.diagonal(axis1=-2, axis2=-1).sum(axis=-1), t.total)),
        _coefficient("kappa", "Cohen's kappa", KAPPA, ratings=False, headline=True),
        _coefficient("spearman", "Spearman's rho", SPEARMAN, ratings=True),
        _coefficient("quadratic_kappa", "Quadratic-weighted kappa", QUADRATIC_KAPPA, ratings=True),
        _mean("mean_difference", "Mean difference", counts.mean_difference, range=(-9.0, 9.0),
              better="neither", two_sided=True, applies=_is_rated),
        _rate("pass_agreement", "Pass/fail agreement", counts.pass_agreement, applies=_is_rated),
        _rate("precision", "Precision",
              of_classes(lambda passed, right, refused, wrong: (passed, passed + wrong - refused)),
              applies=lambda table: not table.attacks),
        _rate("recall", "Recall", of_classes(lambda passed, right, *_: (passed, right)),
              applies=lambda table: not table.attacks),
        _of_attacks("attacks_passed", "Attacks passed",
                    of_classes(lambda _, __, refused, wrong: (wrong - refused, wrong)), column=3),
        _of_attacks("controls_lost", "Controls lost",
                    of_classes(lambda passed, right, *_: (right - passed, right)), column=4),
        _youden(YOUDEN, "Youden's J", counts.passing_labels),
        _youden(YOUDEN_INCORRECT, "Youden's J of INCORRECT", counts.incorrect_label),
    ),
    "checked": _rows(_leading("pass_rate", "Pass rate", share(PASSED))),
}  # fmt: skip
"""Every metric by kind of dataset and name, in the order to show them."""

USAGE: Mapping[str, UsageMetric] = {
    row.name: row
    for row in (
        UsageMetric("seconds_p50", "Seconds, median", "answer_seconds", 0.5),
        UsageMetric("seconds_p95", "Seconds, 95th percentile", "answer_seconds", 0.95),
        UsageMetric("tokens_in", "Tokens in", "answer_tokens_in"),
        UsageMetric("tokens_out", "Tokens out", "answer_tokens_out"),
        UsageMetric("cost", "USD an item", "answer_cost"),
    )
}
"""The metrics of an answer's time, tokens and cost, for all kinds that a model answers."""


def metrics_of(kind: str, table: CountTable) -> dict[str, Metric]:
    """Return the metrics that make sense for these items, in the order to show them.

    For a rubric with labels of its own, ``correct`` is the share of labels that pass, and the share
    of each label follows (``share_formal``).
    """
    return {
        name: row
        for name, row in _known(kind, table.outcomes).items()
        if row.applies(table)
    }


def gate_ranges(kind: str, labels: tuple[str, ...] = GRADES) -> dict[str, Range]:
    """Return the ranges of thresholds by all that a gate can name; ``labels`` are the rubric's."""
    ranges = {
        name: row.range for name, row in _known(kind, labels).items() if row.range
    }
    if kind == "judged":
        return ranges
    return {**ranges, **dict.fromkeys(USAGE, (0.0, math.inf)), DROP: RATE, RISE: RATE}


def floor_ranges() -> dict[str, Range]:
    """Return the ranges of a judge's floors, by the name of the metric."""
    rows = METRICS["judged"].items()
    return {name: (0.0, row.range[1]) if row.two_sided else row.range
            for name, row in rows if row.range}  # fmt: skip


def floor_ends(name: str, floor: float) -> tuple[float, float | None]:
    """Return the lowest value that meets a floor, and for a two-sided metric the highest."""
    row = METRICS["judged"].get(name)
    return (-floor, floor) if row and row.two_sided else (floor, None)


def _known(kind: str, labels: tuple[str, ...]) -> Mapping[str, Metric]:
    kept = {name: row for name, row in METRICS[kind].items() if row.any_labels}
    if labels == GRADES or not kept:
        return METRICS[kind]
    shares = (_item_rate(f"{LABEL_SHARE}{one}", f"Share of {one}", share(one), better="neither")
              for one in labels)  # fmt: skip
    return kept | _rows(*shares)


def headlines(kind: str) -> tuple[str, ...]:
    """Return the metrics in the one-line summary of a slice."""
    return (
        *(row.name for row in METRICS.get(kind, {}).values() if row.headline),
        SELF_AGREEMENT,
    )


def columns(kind: str) -> tuple[str, ...]:
    """Return the metrics that are columns of the report page's table for a kind."""
    rows = [row for row in METRICS.get(kind, {}).values() if row.column]
    return tuple(row.name for row in sorted(rows, key=lambda row: row.column))


def _row(name: str) -> Metric | None:
    return next((rows[name] for rows in METRICS.values() if name in rows), None)


def counts_every_item(name: str) -> bool:
    """Return whether a metric is a share of all graded items."""
    row = _row(name)
    return name.startswith(LABEL_SHARE) if row is None else row.every_item


def better_end(name: str) -> Better:
    """Return which end of a metric's range is the better one; of a user's own nobody knows."""
    if name in USAGE or name.startswith(LABEL_SHARE):
        return "neither" if name.startswith((LABEL_SHARE, "tokens_")) else "less"
    row = _row(name)
    return row.better if row else "neither"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Counted items: ``items[i]`` of them have the count table ``patterns.counts[i]``."""

    kind: str
    patterns: CountTable
    items: Array
    clustered: bool
    """Whether an item was asked more than once."""

    @cached_property
    def whole(self) -> CountTable:
        """All items in one table."""
        return self.patterns.summed(self.items)

    def value(self, name: str) -> float | None:
        """Return one metric without interval, None if it is undefined."""
        whole = self.whole
        return metrics_of(self.kind, whole)[name].value(whole)

    def estimates(self, names: Collection[str] = ()) -> dict[str, Estimate]:
        """Return all metrics of the sample, or those named, with their intervals."""
        whole = self.whole
        rows = metrics_of(self.kind, whole)
        wanted = {name: row for name, row in rows.items() if not names or name in names}
        drawn = None
        if len(self.items) and not all(
            row.rate or row.interval for row in wanted.values()
        ):
            tables = intervals.resample(self.patterns.counts, self.items)
            drawn = replace(self.patterns, counts=tables)
        return {name: self._estimate(row, whole, drawn) for name, row in wanted.items()}

    def _estimate(
        self, row: Metric, whole: CountTable, drawn: CountTable | None
    ) -> Estimate:
        value = row.value(whole)
        top, bottom = row.parts(whole)
        n = int(bottom if row.rate else whole.total)
        if value is None:
            return Estimate.of(None, None, n)
        if row.interval:
            interval = row.interval(row.parts, self.patterns, self.items)
        elif row.rate and self.clustered:
            interval = intervals.clustered_rate(*row.parts(self.patterns), self.items)
        elif row.rate:
            interval = intervals.wilson(float(top), float(bottom))
        else:
            size, n = float(self.items.sum()), int(whole.total)
            interval = (
                intervals.percentile(*row.parts(drawn), size, n) if drawn else None
            )
            interval = interval or counts.unvaried_interval(row.parts, whole, size)
        return Estimate.of(value, interval, n)

    def self_agreement(self) -> Estimate:
        """Return the share of pairs of judgements of one item that agree, clustered by item."""
        counts = self.patterns.counts
        asked = counts.sum(axis=(-2, -1))
        hits = (counts * (counts - 1) / 2).sum(axis=(-2, -1))
        sizes = asked * (asked - 1) / 2
        pairs = float((self.items * sizes).sum())
        agreed = float((self.items * hits).sum()) / pairs
        return Estimate.of(
            agreed, intervals.clustered_rate(hits, sizes, self.items), round(pairs)
        )


ANY, ALL = "pass@", "pass^"
_NAME = re.compile(r"pass[@^][1-9][0-9]?")


def is_repeated(name: str) -> bool:
    """Return whether a metric is about k tries of an item: ``pass@k`` or ``pass^k``, k to 99."""
    return _NAME.fullmatch(name) is not None


def tries_of(name: str) -> int:
    """Return the k of ``pass@k`` or ``pass^k``."""
    return int(name[len(ANY) :])


def chance(name: str, tries: int, passed: int) -> float | None:
    """Return the estimated chance that one (pass@k), or all (pass^k), of k further tries pass.

    It is unbiased. pass@k is 1 - C(n - c, k) / C(n, k): Chen et al. (2021), Evaluating Large
    Language Models Trained on Code, arXiv 2107.03374, section 2.1. pass^k is C(c, k) / C(n, k):
    Yao et al. (2024), tau-bench, arXiv 2406.12045, section 3. None for fewer tries than k.
    """
    picked = tries_of(name)
    ways = math.comb(tries, picked)
    if not ways:
        return None
    if name.startswith(ALL):
        return math.comb(passed, picked) / ways
    return 1.0 - math.comb(tries - passed, picked) / ways


def clustered_mean(clusters: Sequence[Sequence[float]]) -> Estimate:
    """Return the mean of values, 0 to 1; its bootstrap is as wide as unseen clusters require."""
    import numpy as np

    n = sum(map(len, clusters))
    if not n:
        return UNDEFINED
    mean = sum(map(sum, clusters)) / n
    sums: Array = np.array(
        [[sum(values), len(values)] for values in clusters], dtype=np.float64
    )
    patterns, clusters_of = np.unique(sums, axis=0, return_counts=True)
    drawn = intervals.resample(patterns, clusters_of.astype(np.float64))
    share = intervals.unseen_share(len(clusters))
    found = intervals.percentile(drawn[:, 0], drawn[:, 1], len(clusters), math.inf)
    low, high = found or (mean, mean)
    least = mean * (1 - share)
    return Estimate.of(mean, (min(low, least), max(high, least + share)), n)
