"""How often intervals hold over dependent items: ``python -m tests.benchmarks.clusters``.

Simulated with a fixed seed, by code of its own; the intervals are the product's.

Gates: 60 facts in 4 languages, a model truly worse by the margin. Changes within a fact correlate
by so much, in two ways: a fact draws one change and each language copies it with probability
√correlation (``copied``), or all languages change alike in so large a share of the facts
(``alike``). Wrong PASS is the share of runs that a drop gate lets pass.

Rates: 60 passages with 3 or 5 questions each, right or wrong alike in so large a share of them.

Panels: 60 items judged 3 or 5 times by several judges; a repeat copies the item's first labels with
probability 0.8, or is drawn anew.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from qagate.evaluators.statistics.agreement import cohen_kappa, krippendorff_alpha
from qagate.evaluators.statistics.intervals import clustered_rate
from qagate.reports.compare.shares import difference_of
from tests.benchmarks.common import SEED, show

Labels = npt.NDArray[np.int64]

ROUNDS = 4000
FACTS, LANGUAGES, MARGIN = 60, 4, 0.10
CORRELATIONS = (0.0, 0.1, 0.3, 0.5, 0.7, 1.0)
DISCORDANCES = (0.15, 0.25)
RATES = (0.5, 0.8, 0.95)
WAYS = ("copied", "alike")
ITEMS, COPIED = 60, 0.8


class Held(NamedTuple):
    """Shares of the rounds: whose interval held the truth, and (of a gate) that passed wrongly."""

    coverage: float
    wrong_pass: float = 0.0


def changes(
    random: np.random.Generator,
    way: str,
    discordance: float,
    correlation: float,
    facts: int,
) -> Labels:
    """Return the change of every fact (row) in every language: 1 fixed, -1 broke, 0 neither."""
    chances = ((discordance - MARGIN) / 2, (discordance + MARGIN) / 2, 1 - discordance)
    own = random.choice((1, -1, 0), p=chances, size=(facts, LANGUAGES))
    shared = random.choice((1, -1, 0), p=chances, size=(facts, 1))
    if way == "copied":
        return np.where(
            random.random((facts, LANGUAGES)) < correlation**0.5, shared, own
        )
    return np.where(random.random((facts, 1)) < correlation, shared, own)


def gate(
    way: str,
    discordance: float,
    correlation: float,
    rounds: int = ROUNDS,
    facts: int = FACTS,
) -> Held:
    """Return how often the pooled difference's interval holds, and a drop gate passes wrongly."""
    random = np.random.default_rng(SEED)
    held = passed = 0
    for _ in range(rounds):
        drawn = changes(random, way, discordance, correlation, facts)
        low, high = difference_of(drawn.tolist()).interval
        held += low <= -MARGIN <= high
        passed += low > -MARGIN
    return Held(coverage=held / rounds, wrong_pass=passed / rounds)


def rate_coverage(
    rate: float, correlation: float, questions: int, rounds: int = ROUNDS
) -> Held:
    """Return how often the interval of the share of right answers holds."""
    random = np.random.default_rng(SEED)
    ones, sizes = np.ones(FACTS), np.full(FACTS, float(questions))
    held = 0
    for _ in range(rounds):
        own = random.random((FACTS, questions)) < rate
        shared = random.random((FACTS, 1)) < rate
        alike = random.random((FACTS, 1)) < correlation
        hits = np.where(alike, shared, own).sum(axis=1).astype(np.float64)
        low, high = clustered_rate(hits, sizes, ones) or (0.0, 1.0)
        held += low - 1e-9 <= rate <= high + 1e-9
    return Held(coverage=held / rounds)


class Panel(NamedTuple):
    """Judges that see an item's label with probability ``skill``, and else draw one by ``shares``.

    Each draws for itself, so that kappa of two and alpha of all are ``skill`` squared.
    """

    judges: int
    skill: float
    shares: tuple[float, ...]

    def draw(self, random: np.random.Generator, items: int, repeats: int) -> Labels:
        """Return the labels of every item (first axis), repeat and judge."""

        def judged(times: int) -> Labels:
            size = (items, times, self.judges)
            truth = random.choice(
                len(self.shares), p=self.shares, size=(items, times, 1)
            )
            guess = random.choice(len(self.shares), p=self.shares, size=size)
            return np.where(random.random(size) < self.skill, truth, guess)

        first, anew = judged(1), judged(repeats)
        return np.where(random.random((items, repeats, 1)) < COPIED, first, anew)


PANELS = (
    Panel(2, 0.98, (0.5, 0.3, 0.2)),
    Panel(2, 0.9, (0.5, 0.3, 0.2)),
    Panel(2, 0.7, (0.8, 0.2)),
    Panel(3, 0.95, (0.5, 0.3, 0.2)),
    Panel(3, 0.8, (0.6, 0.4)),
)


def panel_coverage(panel: Panel, repeats: int, rounds: int = ROUNDS) -> Held:
    """Return how often the interval of kappa (two judges) or alpha (more) holds."""
    random = np.random.default_rng(SEED)
    clusters = [item for item in range(ITEMS) for _ in range(repeats)]
    found = []
    for _ in range(rounds):
        drawn = panel.draw(random, ITEMS, repeats).reshape(-1, panel.judges)
        rows = [[str(label) for label in row] for row in drawn.tolist()]
        if panel.judges > 2:
            agreed = krippendorff_alpha(rows, clusters)
        else:
            agreed = cohen_kappa([(row[0], row[1]) for row in rows], clusters=clusters)
        found.append(agreed.interval)
    truth = panel.skill**2
    held = sum(one is not None and one[0] <= truth <= one[1] for one in found)
    return Held(coverage=held / sum(one is not None for one in found))


def lines(rounds: int) -> Iterator[str]:
    yield f"seed {SEED}, {rounds} rounds"
    yield f"{FACTS} facts x {LANGUAGES} languages, worse by the margin of {MARGIN:g}"
    yield "wrong PASS | coverage of the 95 % interval"
    yield "correlation within a fact:  " + "".join(f"{c:>14g}" for c in CORRELATIONS)
    for way, discordance in product(WAYS, DISCORDANCES):
        found = [
            gate(way, discordance, correlation, rounds) for correlation in CORRELATIONS
        ]
        cells = "".join(f"{one.wrong_pass:>7.3f} |{one.coverage:.3f}" for one in found)
        yield f"{way}, {discordance:.0%} of the pairs differ{cells}"
    yield f"{FACTS} passages with several questions: coverage of the share of right answers"
    for rate, questions in product(RATES, (3, 5)):
        held = [
            rate_coverage(rate, one, questions, rounds).coverage for one in CORRELATIONS
        ]
        yield f"{questions} each, {rate:g} right: {'  '.join(f'{one:.3f}' for one in held)}"
    yield f"{ITEMS} items judged again and again: coverage of kappa (2 judges) and alpha (3)"
    for panel, repeats in product(PANELS, (3, 5)):
        share = panel_coverage(panel, repeats, rounds).coverage
        yield (
            f"{panel.judges} judges, {repeats} repeats, agreement {panel.skill**2:.2f}, "
            f"labels {panel.shares}: {share:.3f}"
        )


if __name__ == "__main__":
    show(lines, ROUNDS)
