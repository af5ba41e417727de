"""Measure the lexical judge against given labels.

Run as ``python -m tests.benchmarks.lexical SHARED_FOLDER``; prints agreement with the labels, and
precision and recall of CORRECT, for each set found there.
"""

import csv
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaluators.core import CORRECT, Case
from evaluators.judges.lexical import grade

Item = tuple[Case, str, str]
Row = Mapping[str, Any]
LETTERS = {"A": "CORRECT", "B": "INCORRECT", "C": "NOT_ATTEMPTED"}


def case(question: str, golds: Iterable[str], language: str = "en") -> Case:
    """Return a case with nothing but what the judge looks at."""
    return Case(
        id="x", dataset="x", language=language, row=1, question=question, golds=tuple(golds)
    )


def evouna(data: Path) -> Iterator[Item]:
    """Yield natural questions with human yes/no labels; unfit questions left out."""
    for row in _lines(data / "evouna" / "nq_long.jsonl"):
        if not row["improper"]:
            label = "CORRECT" if row["human_correct"] else "OTHER"
            yield case(row["question"], row["gold"]), row["predicted"], label


def nq301(data: Path) -> Iterator[Item]:
    """Yield the 301 questions with adjudicated human labels."""
    for row in _lines(data / "nq301_human" / "nq301.jsonl"):
        label = "CORRECT" if row["human"] == "Yes" else "OTHER"
        yield case(row["question"], row["gold"]), row["predicted"], label


def simpleqa_en(data: Path) -> Iterator[Item]:
    """Yield English SimpleQA answers graded by an LLM."""
    yield from _graded(data / "simpleqa_graded_en", "sgr_*.csv", lambda name: "en")


def simpleqa_cs(data: Path) -> Iterator[Item]:
    """Yield Czech SimpleQA answers graded by an LLM: a language without a data file."""
    yield from _graded(data / "simpleqa_graded_cs", "*-*-*.csv", lambda name: "cs")


def trivia(data: Path) -> Iterator[Item]:
    """Yield Bulgarian, Polish and English trivia graded by an LLM."""
    yield from _graded(data / "trivia_bg_pl_en_graded", "*.joined.csv", lambda name: name[:2])


SETS: Mapping[str, Callable[[Path], Iterator[Item]]] = {
    "evouna": evouna,
    "nq301": nq301,
    "simpleqa_graded_en": simpleqa_en,
    "simpleqa_graded_cs": simpleqa_cs,
    "trivia_bg_pl_en": trivia,
}


def _lines(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def _graded(folder: Path, pattern: str, language: Callable[[str], str]) -> Iterator[Item]:
    for path in sorted(folder.glob(pattern)):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                label = LETTERS.get(row["Grade"], row["Grade"])
                asked = case(row["Question"], [row["Answers"]], language(path.name))
                yield asked, row["Predicted answers"], label


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How far the judge agrees with the labels; all are shares of 0 to 1 but ``milliseconds``.

    ``precision`` and ``recall`` are those of CORRECT; ``sure`` is the share of sure verdicts and
    ``sure_right`` the share of them that agree; ``milliseconds`` is the time an item took.
    """

    items: int
    agreement: float
    precision: float
    recall: float
    sure: float
    sure_right: float
    milliseconds: float


def measure(items: list[Item]) -> Measured:
    """Return how far the judge's grades agree with the labels of the items."""
    start = time.perf_counter()
    verdicts = [grade(asked, answer) for asked, answer, _ in items]
    elapsed = time.perf_counter() - start
    pairs = [(v.grade or "", label) for v, (_, _, label) in zip(verdicts, items, strict=True)]
    sure = [_agrees(*pair) for pair, v in zip(pairs, verdicts, strict=True) if v.sure]
    hits = pairs.count((CORRECT, CORRECT))
    return Measured(
        items=len(items),
        agreement=sum(_agrees(*pair) for pair in pairs) / len(pairs),
        precision=hits / max(1, sum(said == CORRECT for said, _ in pairs)),
        recall=hits / max(1, sum(label == CORRECT for _, label in pairs)),
        sure=len(sure) / len(pairs),
        sure_right=sum(sure) / max(1, len(sure)),
        milliseconds=1000 * elapsed / len(pairs),
    )


def _agrees(said: str, label: str) -> bool:
    return said == label or (label == "OTHER" and said != CORRECT)


def main(shared: Path) -> None:
    """Print a line for every set that stands in the shared folder."""
    for name, read in SETS.items():
        found = asdict(measure(list(read(shared / "data"))))
        figures = (f"{key} {value:.4g}" for key, value in found.items())
        sys.stdout.write(f"{name:20}" + "  ".join(figures) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
