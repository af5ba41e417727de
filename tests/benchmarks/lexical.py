"""Measure the lexical judge against given labels.

Run as ``python -m tests.benchmarks.lexical FOLDER``, FOLDER holding the labelled sets in ``data/``.
It prints one Markdown table: agreement with the labels, precision of CORRECT, the share of sure
verdicts and how many of those are right, in each set and in this repository's own items. Each
rate has its 95 % interval over questions: several answers to one question are no independent
evidence.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluators.core import CORRECT
from evaluators.judges.lexical.judge import grade
from evaluators.statistics.intervals import Interval, clustered_rate
from tests.benchmarks.labelled import OTHER, SETS, Item

HEAD = "| set | labels | items | agreement | precision of CORRECT | sure | sure and right | ms |"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One item with the judge's verdict."""

    question: str
    label: str
    grade: str
    sure: bool

    @property
    def agrees(self) -> bool:
        """Whether the grade is the label; OTHER is any label but CORRECT."""
        other = self.label == OTHER and self.grade != CORRECT
        return other or self.grade == self.label


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A share of 0 to 1 with its 95 % interval."""

    hits: int
    n: int
    interval: Interval | None
    """None where nothing was counted."""

    @property
    def value(self) -> float:
        """The share; 0 where nothing was counted."""
        return self.hits / self.n if self.n else 0.0

    def __str__(self) -> str:
        if not self.interval:
            return "-"
        return f"{self.value:.3f} [{self.interval[0]:.3f}, {self.interval[1]:.3f}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How far the judge agrees with the labels of a set."""

    agreement: Rate
    precision: Rate
    """Of CORRECT."""
    sure: Rate
    settled: Rate
    """How many of the sure verdicts agree."""
    milliseconds: float
    """CPU time an item takes."""


def judge(items: list[Item]) -> list[Judged]:
    """Return the items with the judge's verdicts."""
    verdicts = [(grade(asked, answer), asked, label) for asked, answer, label in items]
    return [
        Judged(question=asked.question, label=label, grade=v.grade or "", sure=v.sure)
        for v, asked, label in verdicts
    ]


def measure(items: list[Item]) -> Measured:
    """Return how far the judge's grades agree with the labels of the items."""
    start = time.process_time()
    judged = judge(items)
    elapsed = time.process_time() - start
    return Measured(
        agreement=rate((one.question, one.agrees) for one in judged),
        precision=rate((one.question, one.agrees) for one in judged if one.grade == CORRECT),
        sure=rate((one.question, one.sure) for one in judged),
        settled=rate((one.question, one.agrees) for one in judged if one.sure),
        milliseconds=1000 * elapsed / len(judged),
    )


def rate(outcomes: Iterable[tuple[str, bool]]) -> Rate:
    """Return the share of true outcomes, with its interval over questions."""
    hits, sizes = Counter[str](), Counter[str]()
    for question, outcome in outcomes:
        hits[question] += outcome
        sizes[question] += 1
    won = np.array([float(hits[question]) for question in sizes])
    asked = np.array([float(size) for size in sizes.values()])
    interval = clustered_rate(won, asked, np.ones_like(asked)) if sizes else None
    return Rate(hits=sum(hits.values()), n=sum(sizes.values()), interval=interval)


def main(shared: Path) -> None:
    """Print a row for every set that stands in the folder."""
    rows = [HEAD, "|---" * HEAD.count(" | ") + "|---|"]
    for name, (labels, read) in SETS.items():
        if items := list(read(shared / "data")):
            found = measure(items)
            rates = (found.agreement, found.precision, found.sure, found.settled)
            cells = [name, labels, f"{len(items):,}", *map(str, rates), f"{found.milliseconds:.2f}"]
            rows.append(f"| {' | '.join(cells)} |")
    sys.stdout.write("\n".join(rows) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
