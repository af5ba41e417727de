"""Measure the lexical judge against given labels.

Run as ``python -m tests.benchmarks.lexical FOLDER``, FOLDER holding the labelled sets in ``data/``.
It prints one Markdown table: agreement with the labels, precision of CORRECT, the share of sure
verdicts and how many of those are right, in each set and in this repository's own items. Each
rate has its 95 % interval over questions: several answers to one question are no independent
evidence.
"""

import csv
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qagate.cases.rows import ALIAS_MARK
from qagate.evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, Case
from qagate.evaluators.extras.lexical.judge import grade
from qagate.evaluators.statistics.intervals import Interval, clustered_rate

Item = tuple[Case, str, str]  # what is asked, the answer, and its label
Row = Mapping[str, Any]
Reader = Callable[[Path], Iterator[Item]]

OTHER = "OTHER"  # anything but CORRECT, where people said no more
LETTERS = {"A": CORRECT, "B": INCORRECT, "C": NOT_ATTEMPTED}
OURS = Path(__file__).parents[2] / "cases" / "judges"


def case(question: str, golds: Iterable[str], language: str = "en") -> Case:
    return Case(
        id="x",
        dataset="x",
        language=language,
        row=1,
        question=question,
        golds=tuple(golds),
    )


def human(path: str, column: str) -> Reader:
    """Return a reader of English answers that people labelled, right or not."""

    def read(data: Path) -> Iterator[Item]:
        for row in _lines(data / path):
            if not row.get("improper"):
                label = CORRECT if row[column] in (True, "Yes") else OTHER
                yield case(row["question"], row["gold"]), row["predicted"], label

    return read


def graded(folder: str, pattern: str, language: str) -> Reader:
    """Return a reader of answers in one language that an LLM graded with three labels."""

    def read(data: Path) -> Iterator[Item]:
        for path in sorted((data / folder).glob(pattern)):
            for row in _rows(path):
                label = LETTERS.get(row["Grade"]) or str(row["Grade"])
                asked = case(row["Question"], [row["Answers"]], language)
                yield asked, row["Predicted answers"], label

    return read


def variants(path: str, language: str) -> Reader:
    """Return a reader of labels by construction, from questions with all their accepted answers.
    Each further accepted answer is put to the judge with only the first as gold (CORRECT), and the
    answer of the next question with all of them (OTHER, unless it is accepted there as well)."""

    def read(data: Path) -> Iterator[Item]:
        rows = [*_lines(data / path)] if (data / path).exists() else []
        for row, following in zip(rows, [*rows[1:], *rows[:1]], strict=True):
            first, *others = row["answers"]
            for other in others:
                yield case(row["question"], [first], language), other, CORRECT
            if following["answer"] not in row["answers"]:
                yield (
                    case(row["question"], row["answers"], language),
                    following["answer"],
                    OTHER,
                )

    return read


def ours(language: str) -> Reader:
    """Return a reader of this repository's own calibration items in one language."""

    def read(data: Path) -> Iterator[Item]:
        for row in _rows(OURS / f"{language}.csv"):
            aliases = [form for form in row["aliases"].split(ALIAS_MARK) if form]
            asked = case(row["question"], [row["answer"], *aliases], language)
            yield asked, row["predicted_answer"], row["label"]

    return read


TRIVIA = "trivia_bg_pl_en_graded"
SETS: Mapping[str, tuple[str, Reader]] = {
    "evouna en": ("human", human("evouna/nq_long.jsonl", "human_correct")),
    "nq301 en": ("human", human("nq301_human/nq301.jsonl", "human")),
    "simpleqa en": ("gpt-4o", graded("simpleqa_graded_en", "sgr_*.csv", "en")),
    "simpleqa cs": ("LLM", graded("simpleqa_graded_cs", "*-*-*.csv", "cs")),
    **{
        f"trivia {one}": ("gpt-4o", graded(TRIVIA, f"{one}_*.joined.csv", one))
        for one in ("bg", "pl", "en")
    },
    "poleval pl": ("constructed", variants("poleval2021_pl/dev-0.jsonl", "pl")),
    "fill-in hu": (
        "constructed",
        variants("hungarian_fib/hu_standard_fib.jsonl", "hu"),
    ),
    **{
        f"ours {one}": ("constructed", ours(one))
        for one in ("en", "bg", "pl", "hu", "be")
    },
}


def _lines(path: Path) -> Iterator[Row]:
    if path.exists():
        with path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)


def _rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


HEAD = "| set | labels | items | agreement | precision of CORRECT | sure | sure and right | ms |"


class Judged(NamedTuple):
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


class Rate(NamedTuple):
    """A share of 0 to 1 with its 95 % interval; None where nothing was counted."""

    value: float
    interval: Interval | None

    def __str__(self) -> str:
        low, high = self.interval or (0.0, 0.0)
        return f"{self.value:.3f} [{low:.3f}, {high:.3f}]" if self.interval else "-"


class Measured(NamedTuple):
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
    verdicts = [(grade(asked, answer), asked, label) for asked, answer, label in items]
    return [
        Judged(asked.question, label, v.grade or "", v.sure)
        for v, asked, label in verdicts
    ]


def measure(items: list[Item]) -> Measured:
    """Return how far the judge's grades agree with the labels of the items."""
    start = time.process_time()
    judged = judge(items)
    elapsed = time.process_time() - start
    return Measured(
        agreement=rate((one.question, one.agrees) for one in judged),
        precision=rate(
            (one.question, one.agrees) for one in judged if one.grade == CORRECT
        ),
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
    return Rate(hits.total() / max(1, sizes.total()), interval)


def main(shared: Path) -> None:
    """Print a row for every set that stands in the folder."""
    rows = [HEAD, "|---" * HEAD.count(" | ") + "|---|"]
    for name, (labels, read) in SETS.items():
        if items := list(read(shared / "data")):
            found = measure(items)
            rates = (found.agreement, found.precision, found.sure, found.settled)
            cells = [
                name,
                labels,
                f"{len(items):,}",
                *map(str, rates),
                f"{found.milliseconds:.2f}",
            ]
            rows.append(f"| {' | '.join(cells)} |")
    sys.stdout.write("\n".join(rows) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
