"""What a drop gate decides from people's verdicts: ``python -m tests.benchmarks.audited [RUNS]``.

Simulated are 1,000 items, their two answers, whether people let each pass, and a judge that errs on
a share of the answers, each for itself (one judge errs 10 points more often on wrong answers of the
new model alone). Pairs are looked at by the plan: never where both answers are the same text,
always where the judge sees a difference, else with a probability of 0.25 or 0.5. A model that is
worse by exactly the margin must not pass, looked at after every label; the figures are shares of
the rounds. In some rows four items are one fact, on which a model is right or wrong as a whole.

The last rows change plan: all pairs of the first plan are looked at, then those of another share,
or of another judge. The product refuses that; where no plan was kept, the greater probability
counts. With all pairs looked at, the estimate must be the plain mean.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from qagate.evaluators.statistics.betting import Observations, first_above
from tests.benchmarks.common import SEED, Array, percent, show

ITEMS = 1000
SHARE = 0.25
MARGINS = (0.10, 0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A judge that is right on a share ``quality`` of all answers, and two models.

    ``fooled`` is by how much less often it sees that an answer of the new model is wrong. ``drop``
    is by how much the new model is worse; on ``discordance`` of the items the two differ, and on
    ``alike`` of them they give the same text. ``size`` items are one fact, on all of which a model
    is right or wrong alike. ``shares`` of the pairs that nothing speaks for are looked at, one
    share after the other; with ``blind``, the judge of all but the last sees no difference.
    """

    quality: float
    fooled: float = 0.0
    drop: float = 0.0
    discordance: float = 0.10
    alike: float = 0.30
    right: float = 0.75
    size: int = 1
    shares: tuple[float, ...] = (SHARE,)
    blind: bool = False


JUDGES = (
    Situation(quality=0.98),
    Situation(quality=0.90),
    Situation(quality=0.80),
    Situation(quality=0.90, fooled=0.10),
)
LINKED = (
    Situation(quality=0.90, shares=(0.5,)),
    Situation(quality=0.90, size=4),
    Situation(quality=0.90, size=4, shares=(0.5,)),
)
CHANGED = (
    Situation(quality=0.90, shares=(SHARE, 0.5)),
    Situation(quality=0.90, shares=(SHARE, 0.5, 1.0)),
    Situation(quality=0.70, shares=(SHARE, SHARE), blind=True),
)


class Looks(NamedTuple):
    """Weighed differences of each fact in each round, and how many of its pairs were looked at."""

    values: Array
    looked: Array
    share: float
    truth: Array
    """The plain mean of each round."""


def looks_of(
    one: Situation, rounds: int, random: np.random.Generator
) -> Iterator[Looks]:
    """Yield what people find who look where each plan sends them, one plan after the other."""
    shape, facts = (rounds, ITEMS), (rounds, ITEMS // one.size)
    # Of a fact: same text, then broke, then unchanged, then fixed.
    kind = np.repeat(random.random(facts), one.size, axis=1)
    right = np.repeat(random.random(facts) < one.right, one.size, axis=1)
    same = kind < one.alike
    broke = ~same & (kind < one.alike + (one.discordance + one.drop) / 2)
    fixed = kind >= 1 - (one.discordance - one.drop) / 2
    old, new = (right | broke) & ~fixed, (right | fixed) & ~broke
    slips = random.random(shape) >= one.quality - np.where(new, 0.0, one.fooled)
    judged_old = old ^ (random.random(shape) >= one.quality)
    flipped = ~same & (judged_old != new ^ slips)
    drawn, chance = (
        random.random(shape),
        np.zeros(shape),
    )  # the same numbers for every plan
    truth = new.astype(np.float64) - old
    for plan, share in enumerate(one.shares, start=1):
        sees = flipped & (plan == len(one.shares) or not one.blind)
        chance = np.maximum(chance, np.where(same, 0.0, np.where(sees, 1.0, share)))
        looked = drawn < chance
        values = np.divide(truth, chance, out=np.zeros(shape), where=looked)
        parts = (*facts, one.size)
        yield Looks(
            values=values.reshape(parts).sum(axis=2),
            looked=looked.reshape(parts).sum(axis=2),
            share=share,
            truth=truth.mean(axis=1),
        )


class Outcome(NamedTuple):
    """How often the gate ever passed, and the median of the pairs looked at, of all rounds."""

    passed: float
    looked: float
    off: tuple[float, float]
    """How far the last estimate is from the plain mean: on average, and at most."""


def outcome_of(
    one: Situation, margin: float, rounds: int, random: np.random.Generator
) -> Outcome:
    """Return how the gate of this margin ends."""
    sizes = np.full(ITEMS // one.size, float(one.size))
    passed, counts, off = (
        np.zeros(rounds, dtype=bool),
        np.zeros(rounds),
        np.zeros(rounds),
    )
    for looks in looks_of(one, rounds, random):
        seen = (
            Observations(
                totals=row, sizes=sizes, bound=1 / looks.share, largest=one.size
            )
            for row in looks.values
        )
        ends = np.array(
            [first_above(row, -margin) for row in seen]
        )  # infinity for never
        passed |= np.isfinite(ends)
        last = np.minimum(ends, looks.looked.shape[1]).astype(int)
        counts = np.array(
            [row[:end].sum() for row, end in zip(looks.looked, last, strict=True)]
        )
        off = looks.values.sum(axis=1) / ITEMS - looks.truth
    most = (float(off.mean()), float(np.abs(off).max()))
    return Outcome(float(passed.mean()), float(np.median(counts)), most)


def lines(rounds: int) -> Iterator[str]:
    random = np.random.default_rng(SEED)
    names = (
        "margin",
        "judge",
        "fooled",
        "shares",
        "a fact",
        "worse by margin",
        "unchanged",
    )
    heads = (*names, "pairs looked at (median)", "off, mean", "off, most")
    yield f"seed {SEED}, {rounds:,} rounds of {ITEMS:,} items; passes in percent"
    yield "  ".join(heads)
    for margin in MARGINS:
        for judge in (*JUDGES, *LINKED, *CHANGED):
            worse = replace(judge, drop=margin)
            wrong, power = (
                outcome_of(one, margin, rounds, random) for one in (worse, judge)
            )
            shares = " then ".join(f"{share:g}" for share in judge.shares)
            cells = (
                f"{margin:.2f}",
                f"{judge.quality:.2f}",
                f"{judge.fooled:.2f}",
                shares,
            )
            found = (
                *percent(wrong.passed),
                f"{100 * power.passed:.1f}",
                f"{power.looked:.0f}",
            )
            off = (f"{value:.5f}" for value in power.off)
            texts = zip(heads, (*cells, f"{judge.size}", *found, *off), strict=True)
            yield "  ".join(f"{text:>{len(head)}}" for head, text in texts)


if __name__ == "__main__":
    show(lines, 2000)
