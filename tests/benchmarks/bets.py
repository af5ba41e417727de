"""What a sequential gate decides: ``python -m tests.benchmarks.bets [RUNS]``.

Pairs are drawn here, each on its own, and the bets on them are made by code of this file alone. The
first table has independent items: how often an unchanged model is passed, how many items that
takes, and how often a model passes that is worse by just the margin, looked at after every item. In
the second some facts are asked in several languages, and all that the new model lost are items of
one language. The order there is the product's (``Slice.place_of``).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qagate.evaluators.output import markdown_table
from qagate.evaluators.statistics.betting import BETS
from tests.benchmarks.common import SEED, Array, show
from tests.support.made_records import make_record, make_slice

AT_ONCE = 100  # runs, for the memory's sake


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Items of which a share ``differ`` between two runs, and the gate's margin."""

    items: int
    margin: float
    differ: float


SETTINGS = (
    *(
        Setting(items=4326, margin=0.05, differ=differ)
        for differ in (0.1, 0.2, 0.3, 0.4)
    ),
    *(Setting(items=4326, margin=0.03, differ=differ) for differ in (0.1, 0.2, 0.3)),
    Setting(items=2165, margin=0.05, differ=0.3),
    Setting(items=1000, margin=0.1, differ=0.1),
)


def first(values: Array, sizes: Array, mean: float) -> Array:
    """After how many units each row's bets show that its mean is above; infinity for never."""
    gains = (values - mean * sizes) / ((1 + mean) * sizes.max())
    capital = sum(
        np.exp(np.cumsum(np.log1p(bet * gains), axis=1)) for bet in BETS
    ) / len(BETS)
    enough = capital >= 40
    return np.where(enough.any(axis=1), enough.argmax(axis=1) + 1.0, math.inf)


class Found(NamedTuple):
    """How runs ended, as shares of them, and the median and the mean of their items."""

    passed: float
    failed: float
    median: float
    mean: float


def crossings(one: Setting, worse: float, runs: int) -> Array:
    """Return after how many items each run shows PASS (first row) and FAIL (second row)."""
    random, sizes, parts = np.random.default_rng(SEED), np.ones(one.items), []
    for start in range(0, runs, AT_ONCE):
        draws = random.random((min(AT_ONCE, runs - start), one.items))
        lost, won = (
            draws < (one.differ + worse) / 2,
            draws >= 1 - (one.differ - worse) / 2,
        )
        values = won.astype(np.float64) - lost
        parts.append(
            [first(values, sizes, -one.margin), first(-values, sizes, one.margin)]
        )
    return np.concatenate(parts, axis=1)


def ends(one: Setting, worse: float, runs: int) -> Found:
    """Return how runs of a model end that is worse by so much."""
    passing, failing = crossings(one, worse, runs)
    items = np.minimum(np.minimum(passing, failing), one.items)
    passed, failed = (
        float(np.mean(one)) for one in (passing < failing, failing < passing)
    )
    return Found(passed, failed, float(np.median(items)), float(items.mean()))


class Mixed(NamedTuple):
    """So many facts in ``languages`` languages each, and ``single`` items in one alone."""

    facts: int
    languages: int
    single: int
    margin: float


MIXED = (Mixed(500, 4, 2000, 0.05), Mixed(300, 10, 3000, 0.05), Mixed(264, 5, 660, 0.1))


def losses_in_single_items(one: Mixed, runs: int) -> float:
    """Return how often a model passes that is worse by the margin, in single items alone."""
    random, part = np.random.default_rng(SEED), make_slice(cluster="fact")
    sizes = np.repeat([float(one.languages), 1.0], [one.facts, one.single])
    lost = one.margin * sizes.sum() / one.single
    found = []
    for run in range(runs):
        places = []
        for place, size in enumerate(sizes):
            fact = f"{run} {place}" if size > 1 else ""
            item = make_record(place, digest=f"{run} {place}", metadata={"fact": fact})
            places.append(part.place_of(item))
        draws = random.random(len(sizes))
        values = (draws >= 0.98) * sizes - (draws < 0.02) * sizes
        values = np.where(
            sizes == 1, -1.0 * (draws < lost + 0.02) + (draws >= 0.98), values
        )
        order = np.argsort(places)
        found.append(first(values[order][None], sizes[order], -one.margin)[0])
    return float(np.mean(np.isfinite(found)))


def lines(runs: int) -> Iterator[str]:
    """Yield both tables."""
    rows, cells = [], []
    for one in SETTINGS:
        same, worse, twice = (ends(one, drop * one.margin, runs) for drop in (0, 1, 2))
        shares = (
            f"{100 * share:.1f} %"
            for share in (same.passed, worse.passed, twice.failed)
        )
        named = (
            f"{one.items:,}",
            f"{one.margin:g}",
            f"{one.differ:.0%}",
            f"{same.median:,.0f}",
        )
        rows.append((*named, *shares))
    header = (
        "items",
        "margin",
        "differ",
        "median",
        "unchanged: PASS",
        "worse by the margin: PASS",
    )
    yield from (f"{runs:,} runs, seed {SEED}", "")
    yield from (*markdown_table((*header, "by two margins: FAIL"), rows), "")
    for mixed in MIXED:
        wrong = losses_in_single_items(mixed, max(1, runs // 4))
        kinds = (
            f"{mixed.facts} in {mixed.languages} languages",
            f"{mixed.single:,} in one",
        )
        cells.append((*kinds, f"{mixed.margin:g}", f"{100 * wrong:.1f} %"))
    head = (
        "facts",
        "items",
        "margin",
        "worse by the margin, in the items in one: PASS",
    )
    yield from markdown_table(head, cells)


if __name__ == "__main__":
    show(lines, 4000)
