"""How often gates on any metric's change are right: ``python -m tests.benchmarks.differences``.

Simulated with a fixed seed, by code of its own; the intervals and verdicts are the product's. Items
are drawn from a table of probabilities (old outcome by new outcome, for each gold label), of which
the true difference of each metric is computed here. Each table keeps the two runs' outcomes alike
on a share of the items and draws the rest apart. A gate's margin is the true harm (a PASS is then
wrong) or twice that (a FAIL is wrong: the model is worse by half the margin).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from qagate.cases.dataset import Fail, Threshold
from qagate.evaluators.core import CORRECT, GRADES, INCORRECT, NOT_ATTEMPTED
from qagate.evaluators.kinds import KINDS
from qagate.evaluators.statistics.count_table import CountTable
from qagate.evaluators.statistics.intervals import Estimate
from qagate.evaluators.statistics.metrics import METRICS
from qagate.reports.compare.change import ChangeCase, MetricChange
from qagate.reports.compare.shares import difference_of
from qagate.reports.compare.tables import PairCounts
from qagate.reports.gates.change_evidence import ChangeEvidence
from qagate.reports.run.report import GateState
from tests.benchmarks.common import SEED, Array, show

SIZES = (60, 120, 240)
SCORES = {CORRECT: 1.0, INCORRECT: 0.0, NOT_ATTEMPTED: 0.5}

TRUTHS: Mapping[str, Callable[[Array], float]] = {
    # of a table of probabilities, one row for each gold label
    "incorrect": lambda p: p[0, 1],
    "f_score": lambda p: 2 * p[0, 0] / (1 + p[0, 0] + p[0, 1]),
    "correct_given_attempted": lambda p: p[0, 0] / (p[0, 0] + p[0, 1]),
    "penalised": lambda p: p[0, 0] - p[0, 1],
    "mean_score": lambda p: p[0, 0] + p[0, 2] / 2,
    "mean_rating": lambda p: float(p[0] @ np.arange(1, 11)),
    "unanswered": lambda p: p[:, 2].sum(),
    "precision": lambda p: p[0, 0] / (p[0, 0] + p[1, 0]),
    "recall": lambda p: p[0, 0] / p[0].sum(),
    "f1": lambda p: _f1(p[0, 0], p[1, 0], p[0].sum()),
    "macro_f1": lambda p: (
        (_f1(p[0, 0], p[1, 0], p[0].sum()) + _f1(p[1, 1], p[0, 1], p[1].sum())) / 2
    ),
}


def _f1(hits: float, false: float, positives: float) -> float:
    precision, recall = hits / (hits + false), hits / positives
    return 2 * precision * recall / (precision + recall)


class Situation(NamedTuple):
    """Probabilities of the items of a kind: ``joint[gold, old outcome, new outcome]``."""

    name: str
    kind: str
    joint: Array

    def truth(self, metric: str) -> float:
        """Return the true new - old."""
        old, new = self.joint.sum(axis=2), self.joint.sum(axis=1)
        return TRUTHS[metric](new) - TRUTHS[metric](old)

    def draw(self, random: np.random.Generator, n: int) -> PairCounts:
        """Return n independent items of this situation."""
        counts = random.multinomial(n, self.joint.ravel())
        seen = np.flatnonzero(counts)
        golds, olds, news = np.unravel_index(seen, self.joint.shape)
        patterns = np.zeros((len(seen), 2, *self.joint.shape[:2]))
        every = np.arange(len(seen))
        patterns[every, 0, golds, olds] = 1
        patterns[every, 1, golds, news] = 1
        labels, outcomes = KINDS[self.kind].axes(GRADES, (), ())
        table = CountTable(
            counts=patterns, golds=labels, outcomes=outcomes, scores=SCORES
        )
        clusters = counts[seen].astype(np.float64)
        return PairCounts(kind=self.kind, patterns=table, clusters=clusters, pairs=n)


def _joint(
    old: Sequence[Sequence[float]], new: Sequence[Sequence[float]], alike: float
) -> Array:
    """Return probabilities with these margins, gold by gold; ``alike`` is the share kept alike."""
    tables = []
    for before, after in zip(np.array(old, float), np.array(new, float), strict=True):
        whole = before.sum()
        same = np.minimum(before, after)
        lost, gained = before - same, after - same
        moved = np.outer(lost, gained) / lost.sum() if lost.sum() > 1e-12 else 0.0
        tables.append(
            alike * (np.diag(same) + moved)
            + (1 - alike) * np.outer(before, after) / whole
        )
    found: Array = np.array(tables) / np.sum(tables)
    return found


def situations(alike: Sequence[float] = (0.6, 0.9)) -> Iterator[Situation]:
    """Yield the situations, each with so large shares of items alike in both runs."""
    tens = ([1, 2, 4, 8, 14, 19, 20, 16, 10, 6], [2, 3, 6, 10, 16, 19, 18, 13, 8, 5])
    skewed = ([5, 2, 1, 1, 2, 4, 5, 10, 50, 20], [9, 3, 2, 2, 3, 4, 5, 9, 45, 18])
    graded = {
        "half right": ([[0.5, 0.3, 0.2]], [[0.44, 0.4, 0.16]]),
        "most right": ([[0.85, 0.1, 0.05]], [[0.78, 0.17, 0.05]]),
        "few right": ([[0.15, 0.5, 0.35]], [[0.1, 0.65, 0.25]]),
        "as before": ([[0.5, 0.3, 0.2]], [[0.5, 0.3, 0.2]]),
    }
    rated = {
        "bell-shaped": ([tens[0]], [tens[1]]),
        "skewed": ([skewed[0]], [skewed[1]]),
        "skewed, as before": ([skewed[0]], [skewed[0]]),
    }
    balanced = [[0.4, 0.08, 0.02], [0.1, 0.38, 0.02]]
    rare = [[0.68, 0.1, 0.02], [0.06, 0.13, 0.01]]
    yes_no = {
        "balanced": (balanced, [[0.34, 0.11, 0.05], [0.15, 0.3, 0.05]]),
        "rare no": (rare, [[0.6, 0.16, 0.04], [0.09, 0.09, 0.02]]),
        "as before": (balanced, balanced),
    }
    for kind, cases in (("graded", graded), ("rated", rated), ("yes_no", yes_no)):
        for name, (old, new) in cases.items():
            for share in alike:
                label = f"{kind}, {name}, {share:.0%} alike"
                yield Situation(name=label, kind=kind, joint=_joint(old, new, share))


@dataclass(slots=True, kw_only=True)
class Rates:
    """In how many of the rounds the interval held the truth, and verdicts were wrong.

    ``wrong_pass`` is at a margin of the true harm, ``wrong_fail`` at twice that, under
    ``fail: margin`` and ``fail: zero``; they stay 0 where the metric is not truly worse.
    """

    held: int = 0
    wrong_pass: int = 0
    wrong_fail: int = 0
    wrong_fail_zero: int = 0

    def add(self, found: Estimate, metric: str, truth: float) -> None:
        """Count one round; ``truth`` is the true new - old."""
        low, high = found.interval or (-np.inf, np.inf)
        self.held += bool(low - 1e-12 <= truth <= high + 1e-12)
        if abs(truth) > 1e-9:
            double = 2 * abs(truth)
            self.wrong_pass += verdict(found, metric, truth, abs(truth)) == "PASS"
            self.wrong_fail += verdict(found, metric, truth, double) == "FAIL"
            self.wrong_fail_zero += (
                verdict(found, metric, truth, double, "zero") == "FAIL"
            )


def difference(counts: PairCounts, metric: str) -> Estimate:
    """Return the product's difference of one metric."""
    row = METRICS[counts.kind][metric]
    if not row.every_item:
        return counts.difference(row)
    runs = (
        replace(counts.patterns, counts=counts.patterns.counts[:, run])
        for run in (0, 1)
    )
    old, new = (row.parts(run)[0] for run in runs)
    changes = np.repeat((new - old).astype(int), counts.clusters.astype(int))
    return difference_of([[change] for change in changes.tolist()]).estimate


def verdict(
    found: Estimate, metric: str, truth: float, margin: float, fail: Fail = "margin"
) -> GateState:
    """Return the verdict of a gate on the direction in which the truth is worse."""
    measure = "drop" if truth < 0 else "rise"
    rule = Threshold(
        measure=measure, of=metric, max=margin, evidence="confident", fail=fail
    )
    case = ChangeCase(change=found, strict=found)
    change = MetricChange(cases=(case,), units=found.n)
    shown = ChangeEvidence(threshold=rule, sides=(), change=change)
    return shown.state(shown.p_value())


def rates(situation: Situation, n: int, rounds: int) -> dict[str, Rates]:
    """Return how often the product is right about each metric of a situation with n pairs."""
    random = np.random.default_rng([SEED, n, *situation.name.encode()])
    found = {name: Rates() for name in METRICS[situation.kind] if name in TRUTHS}
    for _ in range(rounds):
        counts = situation.draw(random, n)
        for name, one in found.items():
            one.add(difference(counts, name), name, situation.truth(name))
    return found


def lines(rounds: int) -> Iterator[str]:
    """Yield, by metric and number of pairs, the means and extremes over the situations."""
    yield f"seed {SEED}, {rounds:,} rounds a situation; all in percent"
    yield "holds on average and at least; wrong PASS at the margin, at most; wrong FAIL at half the"
    yield "the margin with fail: margin, and with fail: zero"
    every = list(situations())
    for kind, n in product(("graded", "rated", "yes_no"), SIZES):
        found = {one.name: rates(one, n, rounds) for one in every if one.kind == kind}
        for metric in next(iter(found.values())):
            own = {name: 100 * one[metric].held / rounds for name, one in found.items()}
            worst = min(own, key=lambda name: own[name])
            row = f"{metric:<24} n={n:<4} {np.mean(list(own.values())):5.1f} {own[worst]:5.1f}"
            for wrong in ("wrong_pass", "wrong_fail", "wrong_fail_zero"):
                most = max(getattr(one[metric], wrong) for one in found.values())
                row += f" {100 * most / rounds:5.1f}"
            yield f"{row}  (lowest: {worst})"


if __name__ == "__main__":
    show(lines, 800)
