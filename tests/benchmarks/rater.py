"""Measure the offline overlap rater against given scores.

Run as ``python -m tests.benchmarks.rater SHARED_FOLDER``. For each set found there it prints
Spearman's rank correlation of the ratings with the scores, and its 95 % interval from a percentile
bootstrap over questions (2,000 rounds, fixed seed): the answers to one question are drawn together.
"""

import csv
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from evaluators.judges.offline import rate
from evaluators.statistics.intervals import Interval
from tests.benchmarks.labelled import case

ROUNDS, SEED = 2000, 20240913
TEXTS = ("expected", "output")
TAG = re.compile(r"\s*\[#[^\]]*\]")  # source tags, which no answer of a person would have


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One answer to a question, the rater's rating (1 to 10) and the score it was given."""

    question: str
    rating: int
    score: float


Reader = Callable[[Path], Iterator[Scored]]


def mohler(data: Path) -> Iterator[Scored]:
    """Yield students' short answers with the mean of two people's marks (0 to 5)."""
    path = data / "asag_mohler" / "mohler.csv"
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                texts = row["question"], row["desired_answer"], row["student_answer"]
                yield scored(*texts, float(row["score_avg"]))


def regulatory(name: str, measure: str) -> Reader:
    """Return a reader of answers on regulation with a score of 0 to 1 that an LLM gave."""

    def read(data: Path) -> Iterator[Scored]:
        path = data / "regulatory_qa_rated" / name
        if path.exists():
            with path.open(encoding="utf-8") as file:
                for row in map(json.loads, file):
                    if row[measure] is not None:
                        expected, answer = (TAG.sub("", row[key] or "") for key in TEXTS)
                        yield scored(row["question"], expected, answer, float(row[measure]))

    return read


def scored(question: str, expected: str, answer: str, score: float) -> Scored:
    """Return an answer with the rater's rating beside the score it was given."""
    rating = rate(case(question, [expected]), answer).rating or 0
    return Scored(question=question, rating=rating, score=score)


SETS: Mapping[str, tuple[str, Reader]] = {
    "asag_mohler": ("two people", mohler),
    "regulatory ADGM, relevance": ("LLM", regulatory("adgm_schema.jsonl", "gpt_relevance")),
    "regulatory ADGM, faithfulness": ("LLM", regulatory("adgm_schema.jsonl", "gpt_faithfulness")),
    "regulatory UK, relevance": ("LLM", regulatory("ukfin_dpel.jsonl", "gpt_relevance")),
    "regulatory UK, faithfulness": ("LLM", regulatory("ukfin_dpel.jsonl", "gpt_faithfulness")),
}


def correlation(answers: list[Scored]) -> float:
    """Return Spearman's rank correlation of ratings and scores; NaN where either never varies."""
    found = spearmanr([one.rating for one in answers], [one.score for one in answers])
    return float(found.statistic)


def interval(answers: list[Scored]) -> Interval:
    """Return the percentile interval of the correlation over questions drawn anew."""
    groups: dict[str, list[Scored]] = {}
    for one in answers:
        groups.setdefault(one.question, []).append(one)
    chosen = [*groups.values()]
    draws = np.random.default_rng(SEED).integers(len(chosen), size=(ROUNDS, len(chosen)))
    rounds = [correlation([one for place in row for one in chosen[place]]) for row in draws]
    low, high = np.nanpercentile(rounds, [2.5, 97.5])
    return float(low), float(high)


def main(shared: Path) -> None:
    """Print a line for every set that stands in the shared folder."""
    for name, (raters, read) in SETS.items():
        answers = list(read(shared / "data"))
        if answers:
            low, high = interval(answers)
            figures = f"Spearman {correlation(answers):.3f} [{low:.3f}, {high:.3f}]"
            sys.stdout.write(f"{name}: {len(answers)} answers, scores by {raters}: {figures}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
