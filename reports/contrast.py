"""The difference between two runs over the same items.

New - old of the share of items that pass (graded: CORRECT; rated: at or above the new run's bar;
yes/no: right), under each fate of the new run's ungraded items.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cases.slices import Slice
from evaluators.statistics.intervals import Interval
from evaluators.statistics.paired import drop_p_value, shrink, tango
from reports.compare import PairedRecords, right


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedSlice:
    """One slice beside the baseline's.

    ``blocked`` says why its drop gates cannot be decided (another judge or rubric, a partial
    slice, a judge that is not trusted), empty where they can; ``changed`` is the first of these
    reasons alone.
    """

    slice_: Slice
    pairing: PairedRecords
    blocked: str = ""
    changed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """The paired difference under one fate of the new run's ungraded items.

    ``weight`` is the share of pairs that count as independent: 1 unless items were repeated.
    """

    n: int
    fixed: int
    broke: int
    weight: float

    @property
    def value(self) -> float:
        """New - old."""
        return (self.fixed - self.broke) / self.n

    @property
    def interval(self) -> Interval:
        """Tango's 95 % interval; under repeats with as many pairs as count as independent.

        Not a bootstrap: where no pair differs that would have no width, and pass any slice.
        """
        scaled = (count * self.weight for count in (self.fixed, self.broke, self.n))
        return tango(*scaled) or (-1.0, 1.0)

    @property
    def p_value(self) -> float:
        """That of "the rate fell", below 0.05 where the interval lies below zero."""
        return drop_p_value(self.fixed * self.weight, self.broke * self.weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifferences:
    """The graded pairs alone, and all pairs with every ungraded item wrong, and right."""

    seen: PairedDifference
    worst: PairedDifference
    best: PairedDifference


def contrasts_of(sides: Sequence[PairedSlice]) -> PairedDifferences:
    """Return the contrasts over all pairs of these slices; at least one pair must be graded."""
    return PairedDifferences(
        seen=_contrast(sides, None), worst=_contrast(sides, False), best=_contrast(sides, True)
    )


def _contrast(sides: Sequence[PairedSlice], fate: bool | None) -> PairedDifference:
    return contrast_of(changes_of(sides, fate).values())


def changes_of(
    sides: Sequence[PairedSlice], fate: bool | None = None
) -> Mapping[tuple[str, str], list[int]]:
    """Return 1 (fixed), -1 (broke) or 0 for each pair, by language and id.

    The new run's ungraded items count as ``fate``; None leaves them out.
    """
    changes: dict[tuple[str, str], list[int]] = defaultdict(list)
    for one in sides:
        bar = bar_of(one.slice_)
        for pair in one.pairing.pairs:
            now = right(pair.new, bar)
            now = fate if now is None else now
            if now is not None:
                changes[pair.new.language, pair.new.id].append(now - bool(right(pair.old, bar)))
    return changes


def bar_of(slice_: Slice) -> int | None:
    """Return the rating that passes in both runs, None where items are not rated."""
    return slice_.pass_bar if slice_.kind == "rated" else None


def contrast_of(changes: Collection[list[int]]) -> PairedDifference:
    """Return the contrast over clusters of changes: one an item, one entry a repeat of it."""
    flat = [change for item in changes for change in item]
    weight = _weight(changes) if len(flat) > len(changes) else 1.0
    return PairedDifference(n=len(flat), fixed=flat.count(1), broke=flat.count(-1), weight=weight)


def net(changes: Collection[list[int]]) -> tuple[int, int]:
    """Return how many items came out better and how many worse, the repeats of each taken together.

    McNemar's exact test asks for independent pairs, which repeats of one item are not.
    """
    sums = [sum(item) for item in changes]
    return sum(total > 0 for total in sums), sum(total < 0 for total in sums)


def _weight(items: Collection[list[int]]) -> float:
    import numpy as np

    sums = np.array([sum(item) for item in items], dtype=np.float64)
    squares = np.array([sum(map(abs, item)) for item in items], dtype=np.float64)
    return shrink(sums, squares, np.array([len(item) for item in items], dtype=np.float64))
