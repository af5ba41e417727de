"""What a gate can tell with so many items, said before the run."""

import math
from collections.abc import Iterator, Mapping

from cases.rules import MEASURES, RATE
from cases.slices import Dataset, Slice, Threshold
from evaluators.output import plural
from evaluators.statistics.intervals import wilson
from evaluators.statistics.paired import detectable_drop, smallest_n
from reports.gate import DROP
from reports.wording import figure

DISCORDANCE = 0.1  # share of the pairs taken to differ
_RATING_SPREAD = 2.5  # standard deviation taken for ratings of 1 to 10
_ALL_ITEMS = frozenset(
    {"correct", "incorrect", "not_attempted", "attempted", "accuracy", "unanswered"}
    | {"agreement", "pass_rate"}
)


def power_lines(dataset: Dataset, items: Mapping[str, int], *, baseline: bool) -> Iterator[str]:
    """Yield a sentence for each gate of a dataset; ``items`` counts distinct items by language."""
    for language, count in items.items():
        slice_ = dataset.slices[language]
        for rule in slice_.rules:
            yield f"{slice_.name} {_bar(rule)}: {_power(rule, slice_, count, baseline=baseline)}"
    for rule in dataset.pooled if items else ():
        total = sum(items.values())
        yield f"{dataset.name}:* {_bar(rule)}: {_drop(rule, total, baseline=baseline)}"


def _bar(rule: Threshold) -> str:
    bars = [(">=", rule.min), ("<=", rule.max)]
    shown = " and ".join(f"{sign} {bar:g}" for sign, bar in bars if bar is not None)
    return f"{rule.measure} {shown}"


def _power(rule: Threshold, slice_: Slice, count: int, *, baseline: bool) -> str:
    if rule.measure == DROP:
        return _drop(rule, count, baseline=baseline)
    bar = rule.max if rule.min is None else rule.min
    if rule.measure == "mean_rating":
        half = 1.96 * _RATING_SPREAD / math.sqrt(count)
        return (
            f"{_within(half, rule, count)} (if ratings have a standard deviation of "
            f"{_RATING_SPREAD:g})"
        )
    if bar is None or MEASURES[slice_.kind].get(rule.measure) != RATE:
        return "no forecast for this measure"
    low, high = wilson(bar * count, count) or (0.0, 1.0)
    share = "" if rule.measure in _ALL_ITEMS else " at best, as not every item counts in it"
    return _within((high - low) / 2, rule, count) + share


def _within(half: float, rule: Threshold, count: int) -> str:
    """Return the half-width of the interval at the bar, as a difference that can be told."""
    shown = figure(half)
    asked = (
        f"only a value {shown} or more beyond the bar passes or fails"
        if rule.evidence == "confident"
        else f"a value within {shown} of the bar may be chance"
    )
    return f"95 % interval ± {shown} with {plural(count, 'item')}; {asked}"


def _drop(rule: Threshold, count: int, *, baseline: bool) -> str:
    margin = rule.max or 0.0
    smallest = detectable_drop(count, DISCORDANCE)
    if not 0 < margin < 1 or smallest is None:
        return "no forecast for this margin"
    fewest = smallest_n(margin)
    missing = "" if baseline else "; without --baseline it is not decided"
    if rule.evidence == "confident" and count < fewest:
        return (
            f"can never pass with {plural(count, 'pair')}; it takes {fewest:,} even if none "
            f"differs{missing}"
        )
    return (
        f"{plural(count, 'pair')} confirm a margin of {figure(smallest)} or more (80 % power if "
        f"nothing changed and {DISCORDANCE:.0%} of the pairs differ){missing}"
    )
