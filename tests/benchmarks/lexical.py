"""Measure the lexical judge against given labels.

Run as ``python -m tests.benchmarks.lexical SHARED_FOLDER``. For each set found there, and for this
repository's own items, it prints agreement with the labels, precision and recall of CORRECT, the
share of sure verdicts and how many of them agree: all of them, those that say CORRECT and the rest.
Each rate has its 95 % interval, by question: several answers to one question are no independent
evidence.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from evaluators.core import CORRECT
from evaluators.judges.lexical.judge import grade
from evaluators.statistics.intervals import Interval, clustered_rate
from tests.benchmarks.labelled import OTHER, SETS, Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One item: its question, its label, the judge's grade and whether that is sure."""

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
    """A share of 0 to 1 with its interval, which is None where nothing was counted."""

    hits: int
    n: int
    interval: Interval | None

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
    """How far the judge agrees with the labels.

    ``precision`` and ``recall`` are those of CORRECT; ``sure`` is the share of sure verdicts,
    ``settled`` the share of them that agree, ``settled_right`` and ``settled_other`` the same for
    those that say CORRECT and for the rest; ``milliseconds`` is the time an item took.
    """

    agreement: Rate
    precision: Rate
    recall: Rate
    sure: Rate
    settled: Rate
    settled_right: Rate
    settled_other: Rate
    milliseconds: float


def judge(items: list[Item]) -> list[Judged]:
    """Return the items with the judge's verdicts."""
    verdicts = [(grade(asked, answer), asked, label) for asked, answer, label in items]
    return [
        Judged(question=asked.question, label=label, grade=v.grade or "", sure=v.sure)
        for v, asked, label in verdicts
    ]


def measure(items: list[Item]) -> Measured:
    """Return how far the judge's grades agree with the labels of the items."""
    start = time.perf_counter()
    judged = judge(items)
    elapsed = time.perf_counter() - start
    right = [one for one in judged if one.grade == CORRECT]
    wanted = [one for one in judged if one.label == CORRECT]
    sure = [one for one in judged if one.sure]
    return Measured(
        agreement=rate((one.question, one.agrees) for one in judged),
        precision=rate((one.question, one.agrees) for one in right),
        recall=rate((one.question, one.agrees) for one in wanted),
        sure=rate((one.question, one.sure) for one in judged),
        settled=rate((one.question, one.agrees) for one in sure),
        settled_right=rate((one.question, one.agrees) for one in sure if one.grade == CORRECT),
        settled_other=rate((one.question, one.agrees) for one in sure if one.grade != CORRECT),
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


FIELDS = [field.name for field in fields(Measured) if field.name != "milliseconds"]


def main(shared: Path) -> None:
    """Print a block for every set that stands in the shared folder."""
    for name, (labels, read) in SETS.items():
        items = list(read(shared / "data"))
        if not items:
            continue
        found = measure(items)
        head = f"{name}: {len(items)} items, {labels} labels, {found.milliseconds:.2f} ms an item"
        figures = (f"  {field:14}{getattr(found, field)}" for field in FIELDS)
        sys.stdout.write("\n".join((head, *figures)) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
