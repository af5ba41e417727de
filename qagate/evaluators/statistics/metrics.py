"""The table of metrics: what each measures, which interval it has, and where it is shown.

A metric is a ratio of two sums over a table of counts. To add one, add a row to the table of its
kind, with a function for its ratio in ``ratios.py``: thresholds, gates, reports and commands read
it from here. Usage metrics, such as seconds, are rows of ``USAGE``.

``Sample`` holds the counted items of a slice, and estimates its metrics.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
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
from qagate.evaluators.option_letters import MOST_OPTIONS, place_of
from qagate.evaluators.statistics import count_table, intervals, ratios, separation
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
    Parts,
    Ratio,
)
from qagate.evaluators.statistics.intervals import UNDEFINED, Array, Estimate, Interval
from qagate.evaluators.statistics.usage_estimates import UsageMetric

Better = Literal["more", "less", "neither"]

Range = tuple[float, float]
"""The lowest and the highest value of a figure or a threshold."""

RATE: Range = (0.0, 1.0)
COEFFICIENT: Range = (-1.0, 1.0)

MAX_PENALTY = 100.0
"""The most that an incorrect answer may cost in ``penalised``."""

ANSWERS = (YES, NO, UNANSWERED)
"""The verdicts on an answer by yes or no."""

PASSED = "PASS"
FAILED = "FAIL"
CHECK_RESULTS = (PASSED, FAILED)
"""The verdicts on an answer that checks alone decide."""

DROP = "drop"
RISE = "rise"
"""Thresholds on the paired difference to a baseline; no metrics of one run."""

LABEL_SHARE = "share_"
"""Begins the name of the share of one of a rubric's own labels."""

SELF_AGREEMENT = "self_agreement"
"""How often two judgements of one answer agree; needs items that were judged again."""

YOUDEN = "youden"
YOUDEN_INCORRECT = "youden_incorrect"
"""How well a judge tells answers that pass, or INCORRECT ones, from all others."""

IntervalMethod = Callable[[Ratio, CountTable, Array], Interval | None]
"""Returns the interval of a ratio, from the tables of clusters and how many have each."""


def _always(_: CountTable) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One row of the table."""

    name: str
    title: str
    parts: Ratio
    """Numerator and denominator; denominator 0 means undefined."""
    range: Range | None = RATE
    """The range of a threshold; None if no gate may name the metric."""
    rate: bool = False
    """Whether it counts successes by trials, item by item, so that Wilson's interval fits."""
    interval: IntervalMethod | None = None
    """How its interval is found, unless it is a ``rate``; None for a bootstrap."""
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
    applies: Callable[[CountTable], bool] = _always
    """Whether it makes sense for the items of a table."""

    def value(self, table: CountTable) -> float | None:
        """Return the metric over one table, None if it is undefined."""
        numerator, denominator = self.parts(table)
        if not denominator:
            return None
        return float(numerator / denominator)


def _has_premises(table: CountTable) -> bool:
    return PREMISE in table.golds


def _has_scores(table: CountTable) -> bool:
    return bool(table.scores)


def _is_rated(table: CountTable) -> bool:
    return table.outcomes == RATINGS


def _is_of_attacks(table: CountTable) -> bool:
    return table.attacks


def _is_of_plain_labels(table: CountTable) -> bool:
    return not table.attacks


GRADED_METRICS = (
    Metric(
        name="correct",
        title="Correct",
        parts=ratios.passing_share,
        rate=True,
        every_item=True,
        headline=True,
        column=1,
        compared=False,
        any_labels=True,
    ),
    Metric(
        name="incorrect",
        title="Incorrect",
        parts=ratios.share(INCORRECT),
        rate=True,
        every_item=True,
        headline=True,
        better="less",
    ),
    Metric(
        name="not_attempted",
        title="Not attempted",
        parts=ratios.share(NOT_ATTEMPTED),
        rate=True,
        every_item=True,
        headline=True,
        better="neither",
    ),
    Metric(
        name="attempted",
        title="Attempted",
        parts=ratios.share(CORRECT, INCORRECT),
        rate=True,
        every_item=True,
        better="neither",
    ),
    Metric(
        name="correct_given_attempted",
        title="Correct given attempted",
        parts=ratios.correct_given_attempted,
        rate=True,
        column=3,
    ),
    Metric(
        name="f_score",
        title="F-score",
        parts=ratios.f_score,
        headline=True,
        column=2,
    ),
    Metric(
        name="penalised",
        title="Penalised",
        parts=ratios.penalised,
        range=(-MAX_PENALTY, 1.0),
    ),
    Metric(
        name="premise_corrected",
        title="Premises met",
        parts=ratios.premise_share(CORRECT),
        rate=True,
        applies=_has_premises,
    ),
    Metric(
        name="premise_declined",
        title="Premises declined",
        parts=ratios.premise_share(NOT_ATTEMPTED),
        rate=True,
        better="neither",
        applies=_has_premises,
    ),
    Metric(
        name="premise_accepted",
        title="Premises fallen for",
        parts=ratios.premise_share(INCORRECT),
        rate=True,
        better="less",
        applies=_has_premises,
    ),
    Metric(
        name="mean_score",
        title="Mean score",
        parts=ratios.mean_score,
        better="neither",
        any_labels=True,
        applies=_has_scores,
    ),
)

RATED_METRICS = (
    Metric(
        name="mean_rating",
        title="Mean rating",
        parts=ratios.mean_rating,
        range=(1.0, 10.0),
        interval=count_table.mean_interval,
        headline=True,
        column=1,
    ),
    Metric(
        name="pass_rate",
        title="Pass rate",
        parts=ratios.pass_rate,
        rate=True,
        every_item=True,
        headline=True,
        column=2,
        compared=False,
    ),
    Metric(
        name="normalised",
        title="Normalised rating",
        parts=ratios.normalised_rating,
        interval=count_table.mean_interval,
        compared=False,
    ),
)

ACCURACY = Metric(
    name="accuracy",
    title="Accuracy",
    parts=ratios.accuracy,
    rate=True,
    every_item=True,
    headline=True,
    column=1,
    compared=False,
)
"""Of all kinds whose answers are options that are known beforehand."""

YES_NO_METRICS = (
    ACCURACY,
    Metric(
        name="precision",
        title="Precision",
        parts=ratios.precision,
        rate=True,
    ),
    Metric(
        name="recall",
        title="Recall",
        parts=ratios.recall,
        rate=True,
    ),
    Metric(
        name="f1",
        title="F1",
        parts=ratios.f1,
        interval=count_table.class_interval,
        headline=True,
        column=2,
    ),
    Metric(
        name="macro_f1",
        title="Macro-F1",
        parts=ratios.macro_f1,
        interval=count_table.class_interval,
    ),
    Metric(
        name="unanswered",
        title="Unanswered",
        parts=ratios.share(UNANSWERED),
        rate=True,
        every_item=True,
        headline=True,
        column=3,
        better="less",
    ),
    Metric(
        name="majority_baseline",
        title="Majority baseline",
        parts=ratios.majority_baseline,
        range=None,
        compared=False,
    ),
)


def _position_bias(place: int) -> Metric:
    """Return the row of the bias towards a place among the options, counted from 0."""

    def applies(table: CountTable) -> bool:
        return any(place_of(label) == place for label in table.outcomes)

    return Metric(
        name=f"position_bias_{place + 1}",
        title=f"Bias to option {place + 1}",
        parts=ratios.position_bias(place),
        range=COEFFICIENT,
        column=3 if place == 0 else 0,
        compared=False,
        better="neither",
        applies=applies,
    )


CHOICE_METRICS = (
    ACCURACY,
    Metric(
        name="unanswered",
        title="Unanswered",
        parts=ratios.share(UNANSWERED),
        rate=True,
        every_item=True,
        headline=True,
        column=2,
        better="less",
    ),
    Metric(
        name="fixed_place",
        title="Always one place",
        parts=ratios.fixed_place,
        range=None,
        compared=False,
    ),
    *(_position_bias(place) for place in range(MOST_OPTIONS)),
)


def _parts_of(coefficient: Coefficient) -> Ratio:
    def parts(table: CountTable) -> Parts:
        return coefficient.parts(table.counts)

    return parts


def _interval_of(coefficient: Coefficient) -> IntervalMethod:
    def interval(_: Ratio, clusters: CountTable, items: Array) -> Interval | None:
        trials = int(clusters.total @ items)
        return coefficient.estimate(clusters.counts, items, trials).interval

    return interval


def _is_of_grades(table: CountTable) -> bool:
    return _is_of_plain_labels(table) and not _is_rated(table)


def _is_of_ratings(table: CountTable) -> bool:
    return _is_of_plain_labels(table) and _is_rated(table)


def _youden_metric(
    name: str, title: str, positive: Callable[[CountTable], tuple[str, ...]]
) -> Metric:
    """Return the row of J for the class of these labels."""

    def parts(table: CountTable) -> Parts:
        return separation.youden_parts(table, positive(table))

    def interval(_: Ratio, clusters: CountTable, items: Array) -> Interval | None:
        return separation.youden_interval(clusters, items, positive(clusters))

    def applies(table: CountTable) -> bool:
        has_class = not set(positive(table)).isdisjoint(table.outcomes)
        return _is_of_plain_labels(table) and has_class

    return Metric(
        name=name,
        title=title,
        parts=parts,
        range=COEFFICIENT,
        interval=interval,
        applies=applies,
    )


JUDGED_METRICS = (
    Metric(
        name="agreement",
        title="Agreement",
        parts=ratios.agreement,
        rate=True,
        every_item=True,
        headline=True,
        column=1,
        compared=False,
    ),
    Metric(
        name="kappa",
        title="Cohen's kappa",
        parts=_parts_of(KAPPA),
        range=COEFFICIENT,
        interval=_interval_of(KAPPA),
        bounded=False,
        headline=True,
        column=2,
        applies=_is_of_grades,
    ),
    Metric(
        name="spearman",
        title="Spearman's rho",
        parts=_parts_of(SPEARMAN),
        range=COEFFICIENT,
        interval=_interval_of(SPEARMAN),
        bounded=False,
        applies=_is_of_ratings,
    ),
    Metric(
        name="quadratic_kappa",
        title="Quadratic-weighted kappa",
        parts=_parts_of(QUADRATIC_KAPPA),
        range=COEFFICIENT,
        interval=_interval_of(QUADRATIC_KAPPA),
        bounded=False,
        applies=_is_of_ratings,
    ),
    Metric(
        name="mean_difference",
        title="Mean difference",
        parts=ratios.mean_difference,
        range=(-9.0, 9.0),
        interval=count_table.mean_interval,
        better="neither",
        two_sided=True,
        applies=_is_rated,
    ),
    Metric(
        name="pass_agreement",
        title="Pass/fail agreement",
        parts=ratios.pass_agreement,
        rate=True,
        applies=_is_rated,
    ),
    Metric(
        name="precision",
        title="Precision",
        parts=ratios.judge_precision,
        rate=True,
        applies=_is_of_plain_labels,
    ),
    Metric(
        name="recall",
        title="Recall",
        parts=ratios.judge_recall,
        rate=True,
        applies=_is_of_plain_labels,
    ),
    Metric(
        name="attacks_passed",
        title="Attacks passed",
        parts=ratios.attacks_passed,
        rate=True,
        headline=True,
        column=3,
        better="less",
        applies=_is_of_attacks,
    ),
    Metric(
        name="controls_lost",
        title="Controls lost",
        parts=ratios.controls_lost,
        rate=True,
        headline=True,
        column=4,
        better="less",
        applies=_is_of_attacks,
    ),
    _youden_metric(YOUDEN, "Youden's J", count_table.passing_labels),
    _youden_metric(
        YOUDEN_INCORRECT, "Youden's J of INCORRECT", count_table.incorrect_label
    ),
)

CHECKED_METRICS = (
    Metric(
        name="pass_rate",
        title="Pass rate",
        parts=ratios.share(PASSED),
        rate=True,
        every_item=True,
        headline=True,
        column=1,
        compared=False,
    ),
)


def _by_name(rows: Sequence[Metric]) -> dict[str, Metric]:
    return {row.name: row for row in rows}


METRICS: Mapping[str, Mapping[str, Metric]] = {
    "graded": _by_name(GRADED_METRICS),
    "rated": _by_name(RATED_METRICS),
    "yes_no": _by_name(YES_NO_METRICS),
    "choice": _by_name(CHOICE_METRICS),
    "judged": _by_name(JUDGED_METRICS),
    "checked": _by_name(CHECKED_METRICS),
}
"""Every metric by kind of dataset and name, in the order to show them."""

USAGE_METRICS = (
    UsageMetric(
        name="seconds_p50",
        title="Seconds, median",
        field="answer_seconds",
        quantile=0.5,
    ),
    UsageMetric(
        name="seconds_p95",
        title="Seconds, 95th percentile",
        field="answer_seconds",
        quantile=0.95,
    ),
    UsageMetric(name="tokens_in", title="Tokens in", field="answer_tokens_in"),
    UsageMetric(name="tokens_out", title="Tokens out", field="answer_tokens_out"),
    UsageMetric(name="cost", title="USD an item", field="answer_cost"),
)

USAGE: Mapping[str, UsageMetric] = {row.name: row for row in USAGE_METRICS}
"""The metrics of an answer's time, tokens and cost, for all kinds that a model answers."""

ANSWER_STATES = ("declined", "cut", "thought_only", "echo", "repetition", "empty")
"""The shares of replies that are no plain answer, by their state; any kind may gate them."""

ANSWER_RANGES: Mapping[str, Range] = {
    **dict.fromkeys(USAGE, (0.0, math.inf)),
    **dict.fromkeys(ANSWER_STATES, RATE),
    DROP: RATE,
    RISE: RATE,
}
"""The ranges of thresholds that any kind allows whose items a model answers, by name."""


def metrics_of(kind: str, table: CountTable) -> dict[str, Metric]:
    """Return the metrics that make sense for these items, in the order to show them.

    For a rubric with labels of its own, ``correct`` is the share of labels that pass, and the share
    of each label follows (``share_formal``).
    """
    rows = _metrics_for(kind, table.outcomes)
    return {name: row for name, row in rows.items() if row.applies(table)}


def metric_ranges(kind: str, labels: tuple[str, ...] = GRADES) -> dict[str, Range]:
    """Return the ranges of thresholds of a kind's own metrics, by name.

    ``labels`` are those of the rubric. A metric that no gate may name is left out.
    """
    rows = _metrics_for(kind, labels).values()
    return {row.name: row.range for row in rows if row.range is not None}


def floor_ranges() -> dict[str, Range]:
    """Return the ranges of a judge's floors, by the name of the metric."""
    ranges = {}
    for name, row in METRICS["judged"].items():
        if row.range is None:
            continue
        lowest, highest = row.range
        ranges[name] = (0.0 if row.two_sided else lowest, highest)
    return ranges


def floor_ends(name: str, floor: float) -> tuple[float, float | None]:
    """Return the lowest value that meets a floor, and for a two-sided metric the highest."""
    row = METRICS["judged"].get(name)
    if row is not None and row.two_sided:
        return -floor, floor
    return floor, None


def _metrics_for(kind: str, labels: tuple[str, ...]) -> Mapping[str, Metric]:
    """Return a kind's metrics; with a rubric's own labels, those that suit any, and their shares.

    For a kind without any such metric the labels make no difference.
    """
    rows = METRICS[kind]
    for_any_labels = {name: row for name, row in rows.items() if row.any_labels}
    if labels == GRADES or not for_any_labels:
        return rows
    shares = [_label_share(label) for label in labels]
    return for_any_labels | _by_name(shares)


def _label_share(label: str) -> Metric:
    return Metric(
        name=f"{LABEL_SHARE}{label}",
        title=f"Share of {label}",
        parts=ratios.share(label),
        rate=True,
        every_item=True,
        better="neither",
    )


def headlines(kind: str) -> tuple[str, ...]:
    """Return the metrics in the one-line summary of a slice."""
    rows = METRICS.get(kind, {}).values()
    return (*(row.name for row in rows if row.headline), SELF_AGREEMENT)


def columns(kind: str) -> tuple[str, ...]:
    """Return the metrics that are columns of the report page's table for a kind."""
    rows = [row for row in METRICS.get(kind, {}).values() if row.column]
    rows.sort(key=lambda row: row.column)
    return tuple(row.name for row in rows)


def _find_row(name: str) -> Metric | None:
    """Return the metric of this name; of the first kind that has it."""
    for rows in METRICS.values():
        if name in rows:
            return rows[name]
    return None


def counts_every_item(name: str) -> bool:
    """Return whether a metric is a share of all graded items."""
    row = _find_row(name)
    if row is None:
        return name.startswith(LABEL_SHARE)
    return row.every_item


def better_end(name: str) -> Better:
    """Return which end of a metric's range is the better one; of a user's own nobody knows."""
    if name.startswith(LABEL_SHARE):
        return "neither"
    if name in ANSWER_STATES:
        return "less"
    if name in USAGE:
        return "neither" if name.startswith("tokens_") else "less"
    row = _find_row(name)
    if row is None:
        return "neither"
    return row.better


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
        rows = list(metrics_of(self.kind, whole).values())
        if names:
            rows = [row for row in rows if row.name in names]
        resamples = None
        if len(self.items) and any(_needs_bootstrap(row) for row in rows):
            tables = intervals.resample(self.patterns.counts, self.items)
            resamples = replace(self.patterns, counts=tables)
        return {row.name: self._estimate(row, whole, resamples) for row in rows}

    def _estimate(
        self, row: Metric, whole: CountTable, resamples: CountTable | None
    ) -> Estimate:
        value = row.value(whole)
        _, trials = row.parts(whole)
        n = int(trials if row.rate else whole.total)
        if value is None:
            return Estimate.of(None, None, n)
        return Estimate.of(value, self._interval(row, whole, resamples), n)

    def _interval(
        self, row: Metric, whole: CountTable, resamples: CountTable | None
    ) -> Interval | None:
        """Return the interval of a metric that has a value.

        ``whole`` has all items in one table, ``resamples`` one table for each round of the
        bootstrap.
        """
        if row.interval is not None:
            return row.interval(row.parts, self.patterns, self.items)
        if row.rate and self.clustered:
            hits, trials = row.parts(self.patterns)
            return intervals.clustered_rate(hits, trials, self.items)
        if row.rate:
            all_hits, all_trials = row.parts(whole)
            return intervals.wilson(float(all_hits), float(all_trials))
        # An item is a cluster; each time that it was asked is a trial of it.
        clusters = float(self.items.sum())
        if resamples is not None:
            numerators, denominators = row.parts(resamples)
            asked_in_all = int(whole.total)
            interval = intervals.percentile(
                numerators, denominators, clusters, asked_in_all
            )
            if interval is not None:
                return interval
        # No bootstrap, or one without variation.
        return count_table.unvaried_interval(row.parts, whole, clusters)

    def self_agreement(self) -> Estimate:
        """Return the share of pairs of judgements of one item that agree, clustered by item.

        Here a cluster is an item, and its table counts its judgements: n judgements make
        n (n - 1) / 2 pairs. ``n`` of the estimate counts pairs.
        """
        counts = self.patterns.counts
        agreeing_pairs = (counts * (counts - 1) / 2).sum(axis=(-2, -1))
        judgements = counts.sum(axis=(-2, -1))
        pairs = judgements * (judgements - 1) / 2
        all_pairs = float((self.items * pairs).sum())
        agreed = float((self.items * agreeing_pairs).sum()) / all_pairs
        interval = intervals.clustered_rate(agreeing_pairs, pairs, self.items)
        return Estimate.of(agreed, interval, round(all_pairs))


def _needs_bootstrap(row: Metric) -> bool:
    return not row.rate and row.interval is None


ANY = "pass@"
ALL = "pass^"
"""Begin the names of metrics about k tries of an item: any, or all, of them pass."""

_REPEATED_NAME = re.compile(r"pass[@^][1-9][0-9]?")


def is_repeated(name: str) -> bool:
    """Return whether a metric is about k tries of an item: ``pass@k`` or ``pass^k``, k to 99."""
    return _REPEATED_NAME.fullmatch(name) is not None


def tries_of(name: str) -> int:
    """Return the k of ``pass@k`` or ``pass^k``."""
    return int(name[len(ANY) :])


def chance(name: str, tries: int, passed: int) -> float | None:
    """Return the estimated chance that one (pass@k), or all (pass^k), of k further tries pass.

    ``tries`` of an item were made, n, of which c ``passed``. The estimate is unbiased. pass@k is
    1 - C(n - c, k) / C(n, k): Chen et al. (2021), Evaluating Large Language Models Trained on
    Code, arXiv 2107.03374, section 2.1. pass^k is C(c, k) / C(n, k): Yao et al. (2024),
    tau-bench, arXiv 2406.12045, section 3. None for fewer tries than k.
    """
    k = tries_of(name)
    ways = math.comb(tries, k)
    if not ways:
        return None
    if name.startswith(ALL):
        return math.comb(passed, k) / ways
    return 1.0 - math.comb(tries - passed, k) / ways


def clustered_mean(clusters: Sequence[Sequence[float]]) -> Estimate:
    """Return the mean of values, 0 to 1, given by cluster, with a bootstrap's interval.

    The interval is at least as wide as it must be if the share of clusters that may be unseen
    (``intervals.unseen_share``) had all values 0, or all 1.
    """
    import numpy as np

    n = sum(len(values) for values in clusters)
    if not n:
        return UNDEFINED
    mean = sum(sum(values) for values in clusters) / n
    sums: Array = np.array(
        [[sum(values), len(values)] for values in clusters], dtype=np.float64
    )
    patterns, frequencies = np.unique(sums, axis=0, return_counts=True)
    resamples = intervals.resample(patterns, frequencies.astype(np.float64))
    interval = intervals.percentile(
        resamples[:, 0], resamples[:, 1], len(clusters), math.inf
    )
    low, high = interval or (mean, mean)
    unseen = intervals.unseen_share(len(clusters))
    if_unseen_fail = mean * (1 - unseen)
    if_unseen_pass = if_unseen_fail + unseen
    return Estimate.of(mean, (min(low, if_unseen_fail), max(high, if_unseen_pass)), n)
