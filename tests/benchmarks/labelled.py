"""Answers with labels given beforehand, from the shared folder and from this repository."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, Case

Item = tuple[Case, str, str]  # what is asked, the answer, and its label
Row = Mapping[str, Any]
Reader = Callable[[Path], Iterator[Item]]

OTHER = "OTHER"  # anything but CORRECT, where people said no more
LETTERS = {"A": CORRECT, "B": INCORRECT, "C": NOT_ATTEMPTED}
OURS = Path(__file__).parents[2] / "cases" / "judges"


def case(question: str, golds: Iterable[str], language: str = "en") -> Case:
    """Return a case with nothing but what the judge looks at."""
    return Case(
        id="x", dataset="x", language=language, row=1, question=question, golds=tuple(golds)
    )


def evouna(data: Path) -> Iterator[Item]:
    """Yield natural questions with human yes/no labels; unfit questions left out."""
    for row in _lines(data / "evouna" / "nq_long.jsonl"):
        if not row["improper"]:
            label = CORRECT if row["human_correct"] else OTHER
            yield case(row["question"], row["gold"]), row["predicted"], label


def nq301(data: Path) -> Iterator[Item]:
    """Yield the 301 questions with adjudicated human labels."""
    for row in _lines(data / "nq301_human" / "nq301.jsonl"):
        label = CORRECT if row["human"] == "Yes" else OTHER
        yield case(row["question"], row["gold"]), row["predicted"], label


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
    answer of the next question with all of them (OTHER, unless it is accepted there as well).
    """

    def read(data: Path) -> Iterator[Item]:
        rows = [*_lines(data / path)] if (data / path).exists() else []
        for row, following in zip(rows, [*rows[1:], *rows[:1]], strict=True):
            first, *others = row["answers"]
            for other in others:
                yield case(row["question"], [first], language), other, CORRECT
            if following["answer"] not in row["answers"]:
                yield case(row["question"], row["answers"], language), following["answer"], OTHER

    return read


def ours(language: str) -> Reader:
    """Return a reader of this repository's own calibration items in one language."""

    def read(data: Path) -> Iterator[Item]:
        for row in _rows(OURS / f"{language}.csv"):
            asked = case(row["question"], [row["answer"]], language)
            yield asked, row["predicted_answer"], row["label"]

    return read


TRIVIA = "trivia_bg_pl_en_graded"
SETS: Mapping[str, tuple[str, Reader]] = {
    "evouna en": ("human", evouna),
    "nq301 en": ("human", nq301),
    "simpleqa en": ("gpt-4o", graded("simpleqa_graded_en", "sgr_*.csv", "en")),
    "simpleqa cs": ("LLM", graded("simpleqa_graded_cs", "*-*-*.csv", "cs")),
    "trivia bg": ("gpt-4o", graded(TRIVIA, "bg_*.joined.csv", "bg")),
    "trivia pl": ("gpt-4o", graded(TRIVIA, "pl_*.joined.csv", "pl")),
    "trivia en": ("gpt-4o", graded(TRIVIA, "en_*.joined.csv", "en")),
    "poleval pl": ("constructed", variants("poleval2021_pl/dev-0.jsonl", "pl")),
    "fill-in hu": ("constructed", variants("hungarian_fib/hu_standard_fib.jsonl", "hu")),
    "ours en": ("constructed", ours("en")),
    "ours bg": ("constructed", ours("bg")),
    "ours pl": ("constructed", ours("pl")),
    "ours hu": ("constructed", ours("hu")),
    "ours be": ("constructed", ours("be")),
}


def _lines(path: Path) -> Iterator[Row]:
    if path.exists():
        with path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)


def _rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)
