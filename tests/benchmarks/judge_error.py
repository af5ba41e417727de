"""What a judge's errors do to a drop gate: ``python -m tests.benchmarks.judge_error``.

Simulated are models that are truly worse by exactly the margin, and unchanged ones, item by item:
whether the old and the new answer are right, then whether a judge that errs on a share of all
answers, on each for itself, says so. The same judge reads labelled answers, from which J is
estimated. The gate passes where the lower end of Tango's interval is above -margin × J, J at the
lower end of its own interval; without J it passes where it is above -margin. A language with few
labels borrows from others, in which the judge may err less.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt

from qagate.evaluators.core import CORRECT, INCORRECT
from qagate.evaluators.output import aligned_table
from qagate.evaluators.statistics.count_table import CountTable
from qagate.evaluators.statistics.intervals import Z95, Estimate
from qagate.evaluators.statistics.metrics import YOUDEN
from qagate.evaluators.statistics.separation import (
    Separation,
    class_rates,
    youden_interval,
)
from qagate.reports.judge.judging import expected_scale
from qagate.reports.run.evidence import Calibration
from tests.benchmarks.common import SEED, Array, show
from tests.benchmarks.coverage import scores
from tests.support.made_records import make_slice

QUALITIES = (0.75, 0.80, 0.85, 0.90, 0.95, 0.98, 1.0)
SIZES = (240, 1000, 4326)
MARGINS = (0.05, 0.10)
LABELS = ((27, 40), (300, 300))
"""Labelled answers that are right, and that are not: of the smallest bundled language, and many."""
OTHERS = (150, 150)
BORROWED = ((0.9, 0.9, (20, 29)), (0.8, 0.95, (20, 29)), (0.7, 0.95, (10, 15)))
"""The judge's quality in a language with few labels, and in others; the few labels."""
OLD_RATE = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A judge right on a share ``quality`` of all answers, ``n`` items, and the labels.

    ``discordance`` is the share of items whose two answers are truly not alike right or wrong;
    ``drop`` is by how much the new model is truly worse. ``others`` is the judge's quality in other
    languages, with labels of their own; 0 without any.
    """

    quality: float
    n: int
    margin: float
    labels: tuple[int, int]
    discordance: float = 0.15
    drop: float = 0.0
    others: float = 0.0


def observed(
    one: Situation, rounds: int, random: np.random.Generator
) -> tuple[Array, Array]:
    """Return how many items the judge says were fixed, and broke, in each round."""
    fixed, broke = (one.discordance - one.drop) / 2, (one.discordance + one.drop) / 2
    truth = [fixed, broke, OLD_RATE - broke, 1 - OLD_RATE - fixed]
    counts = random.multinomial(one.n, truth, size=rounds)
    seen_fixed, seen_broke = np.zeros(rounds), np.zeros(rounds)
    for place, (old, new) in enumerate([(0, 1), (1, 0), (1, 1), (0, 0)]):
        says_old, says_new = (
            one.quality if right else 1 - one.quality for right in (old, new)
        )
        chances = [(1 - says_old) * says_new, says_old * (1 - says_new)]
        said = random.multinomial(
            counts[:, place], [*chances, max(0.0, 1 - sum(chances))]
        )
        seen_fixed, seen_broke = seen_fixed + said[:, 0], seen_broke + said[:, 1]
    return seen_fixed, seen_broke


def lowest_j(one: Situation, rounds: int, random: np.random.Generator) -> Array:
    """Return the lower end of the interval of J in each round, from fresh labels."""
    judges = [
        (one.quality, one.labels),
        *([(one.others, OTHERS)] if one.others else []),
    ]
    hits = [
        random.binomial(n, rate, size=rounds) for rate, labels in judges for n in labels
    ]
    distinct, places = np.unique(np.stack(hits, axis=-1), axis=0, return_inverse=True)
    lows = np.array(
        [low_of([int(number) for number in row], one.labels) for row in distinct]
    )
    return lows[places.reshape(-1)]


def low_of(hits: Sequence[int], labels: tuple[int, int]) -> float:
    """Return the gate's lower end of J by labels of a class judged right, other languages too."""
    found = [separation((hits[0], hits[1]), labels)]
    found += [separation((hits[2], hits[3]), OTHERS)] if len(hits) > 2 else []
    known = [
        Calibration(
            dataset="labels",
            language=language,
            measures={},
            graders=(f"d:{language}",),
            separations={YOUDEN: one},
        )
        for language, one in zip(("bg", "pl"), found, strict=False)
    ]
    scale = expected_scale([(make_slice(), 1)], known)
    return -1.0 if scale is None or scale.youden.low is None else scale.youden.low


def separation(hits: tuple[int, int], labels: tuple[int, int]) -> Separation:
    """Return J and its rates where so many labels of either class were judged right."""
    (right, wrong), (passed, refused) = labels, hits
    cells = np.array(
        [passed, right - passed, wrong - refused, refused], dtype=np.float64
    )
    names = (CORRECT, INCORRECT)
    table = CountTable(counts=np.eye(4).reshape(4, 2, 2), golds=names, outcomes=names)
    value = sum(hit / n for hit, n in zip(hits, labels, strict=True)) - 1
    interval = youden_interval(table, cells, (CORRECT,))
    return Separation(
        youden=Estimate.of(value, interval, sum(labels)),
        rates=class_rates(table, cells, (CORRECT,)),
    )


def is_shown_within(
    margin: float, fixed: Array, broke: Array, n: int, low: Array
) -> npt.NDArray[np.bool_]:
    """Return whether each lower end is above -margin × J, where J is above 0 for sure."""
    return (scores(fixed, broke, n, -margin * np.maximum(low, 0.0)) > Z95) & (low > 0)


def pass_rates(
    one: Situation, rounds: int, random: np.random.Generator
) -> tuple[float, float]:
    """Return how often the gate passes: on the judge's scale, and as if the judge never erred."""
    fixed, broke = observed(one, rounds, random)
    scaled = is_shown_within(
        one.margin, fixed, broke, one.n, lowest_j(one, rounds, random)
    )
    plain = scores(fixed, broke, one.n, -one.margin) > Z95
    return float(scaled.mean()), float(plain.mean())


def grid(sizes: tuple[int, ...] = SIZES) -> Iterator[Situation]:
    """Yield every situation of the table, the new model worse by exactly the margin."""
    for margin, n, labels, quality in product(MARGINS, sizes, LABELS, QUALITIES):
        yield Situation(quality=quality, n=n, margin=margin, labels=labels, drop=margin)
    for margin, n, (quality, others, labels) in product(MARGINS, sizes, BORROWED):
        worse = Situation(
            quality=quality, n=n, margin=margin, labels=labels, drop=margin
        )
        yield replace(worse, others=others)


def lines(rounds: int) -> Iterator[str]:
    """Yield how often a model worse by the margin passes, and an unchanged one."""
    random = np.random.default_rng(SEED)
    head = (
        "margin",
        "items",
        "labels",
        "judge",
        "others",
        "worse by margin",
        "unchanged",
    )
    rows: list[Sequence[str]] = [head]
    highest = 0.0
    for one in grid():
        passed = [
            pass_rates(each, rounds, random) for each in (one, replace(one, drop=0.0))
        ]
        highest = max(highest, passed[0][0])
        labels, others = (
            "+".join(map(str, one.labels)),
            f"{one.others:.2f}" if one.others else "",
        )
        figures = (
            f"{100 * scaled:.2f} ({100 * plain:.2f})" for scaled, plain in passed
        )
        place = (f"{one.margin:.2f}", f"{one.n}", labels, f"{one.quality:.2f}", others)
        rows.append((*place, *figures))
    said = (
        f"seed {SEED}, {rounds:,} rounds a row; passes in percent, on the judge's scale"
    )
    yield from (f"{said} (as if it never erred)", *aligned_table(rows))
    yield f"highest chance that a model worse by the margin passes: {100 * highest:.2f} %"


if __name__ == "__main__":
    show(lines, 20_000)
