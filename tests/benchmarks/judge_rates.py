"""How often what labels say of a judge holds: ``python -m tests.benchmarks.judge_rates``.

Simulated are labelled answers, three to a question: with a chance of √rho each the judge's error on
an answer is that of its question, so that two of them have the correlation rho. From them come J
with the lower end of its interval, and the share of right answers of a run of other answers, freed
of the judge's errors (Rogan and Gladen). The truth is what was put in.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from qagate.evaluators.core import CORRECT, INCORRECT
from qagate.evaluators.output import aligned_table
from qagate.evaluators.statistics.count_table import CountTable
from qagate.evaluators.statistics.intervals import corrected_rate
from qagate.evaluators.statistics.separation import class_rates, youden_interval
from tests.benchmarks.common import SEED, Array, percent, show

NAMES = (CORRECT, INCORRECT)
LABELS = ((30, 30), (30, 270), (270, 30), (150, 150))
JUDGES = ((0.95, 0.95), (0.90, 0.80), (0.80, 0.75), (1.0, 0.90))
CORRELATIONS = (0.0, 0.5)
RATES = (0.1, 0.5, 0.9)
ANSWERS = 3


class Situation(NamedTuple):
    """A judge's sensitivity and specificity, and how many right and other answers have a label."""

    judge: tuple[float, float]
    labels: tuple[int, int]
    correlation: float = 0.0


class Held(NamedTuple):
    """Shares of rounds in which the truth lay where it should.

    ``low``: J at or above the lower end of its interval; ``both``: within it; ``rates``: the
    corrected rate within its interval, by the true rate of right answers.
    """

    low: float
    both: float
    rates: tuple[float, ...]


def labelled(one: Situation, random: np.random.Generator) -> Array:
    """Return for each question how often each label (row) met each verdict (column)."""
    right = np.arange(sum(one.labels)) < one.labels[0]
    random.shuffle(right)
    n = len(right)
    questions = np.arange(n) // ANSWERS
    shared = random.random(questions[-1] + 1)[questions]
    luck = np.where(random.random(n) < one.correlation**0.5, shared, random.random(n))
    is_hit = luck < np.where(right, *one.judge)
    counts = np.zeros((questions[-1] + 1, 2, 2))
    np.add.at(
        counts, (questions, 1 - right.astype(int), (right != is_hit).astype(int)), 1
    )
    return counts


def held(
    one: Situation, rounds: int, random: np.random.Generator, n: int = 240
) -> Held:
    """Return how often the figures from fresh labels hold; ``n`` other answers were judged."""
    sensitivity, specificity = one.judge
    youden = sensitivity + specificity - 1
    low, both, rates = 0, 0, np.zeros(len(RATES))
    for _ in range(rounds):
        counts = labelled(one, random)
        table = CountTable(counts=counts, golds=NAMES, outcomes=NAMES)
        ones = np.ones(len(counts))
        interval = youden_interval(table, ones, (CORRECT,)) or (-1.0, 1.0)
        low += youden >= interval[0] - 1e-12
        both += interval[0] - 1e-12 <= youden <= interval[1] + 1e-12
        first, second = (
            rate.independent for rate in class_rates(table, ones, (CORRECT,))
        )
        for place, rate in enumerate(RATES):
            called = rate * sensitivity + (1 - rate) * (1 - specificity)
            found = corrected_rate((random.binomial(n, called), n), first, second)
            ends = (found and found.interval) or (0.0, 1.0)
            rates[place] += ends[0] <= rate <= ends[1]
    return Held(low=low / rounds, both=both / rounds, rates=tuple(rates / rounds))


def lines(rounds: int) -> Iterator[str]:
    """Yield how often J and corrected rates hold the truth, in percent."""
    random = np.random.default_rng(SEED)
    names = (f"rate {rate:g}" for rate in RATES)
    rows = [("rho", "labels", "Se", "Sp", "J, low end", "J", *names)]
    found = []
    for correlation, labels, judge in product(CORRELATIONS, LABELS, JUDGES):
        one = held(Situation(judge, labels, correlation), rounds, random)
        found.append(one)
        place = (f"{correlation:.1f}", "+".join(map(str, labels)))
        shares = percent(one.low, one.both, *one.rates, places=1)
        rows.append((*place, *(f"{share:.2f}" for share in judge), *shares))
    low, rate = (min(one.low for one in found), min(min(one.rates) for one in found))
    yield f"seed {SEED}, {rounds:,} rounds a row, {ANSWERS} answers a question"
    yield from aligned_table(rows)
    yield f"lowest: low end of J {100 * low:.1f} %, corrected rate {100 * rate:.1f} %"


if __name__ == "__main__":
    show(lines, 2000)
