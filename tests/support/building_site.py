"""A folder with sources, two model servers, the build command, and people who fill in sheets."""

import contextlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from qagate.command import main
from tests.support.building import models, pages, rows, write_dump, write_news
from tests.support.loopback import Answer, Handler, Loopback, Seen, loopback, reply
from tests.support.reviewing import Fill, filled_in, sheet_rows

ROOT = Path(__file__).parents[2]
FEW = 16  # of the encyclopaedia, and half as many news
STEPS = ("sample", "generate", "check", "validate", "probe")
ALL_STEPS = (*STEPS, "review", "accept", "freeze")
TWO = ("--reviewer", "Ганна", "--reviewer", "Янка")
SPLITS = "overlap: 0.5, splits: {train: 0.5, test: 0.5}"


@dataclass
class Site:
    path: Path
    generator: Loopback
    validator: Loopback
    provider: str = "openai"  # of the validator

    def recipe(
        self, count: int = FEW, build: str = "", sources: str = "", more: str = ""
    ) -> Path:
        texts = sources or (
            "  encyclopaedia: {from: be.xml.bz2, licence: CC BY-SA 4.0, "
            f"count: {count}}}\n  news: {{from: news.jsonl, count: {max(1, count // 2)}}}\n"
        )
        language = "en" if "en.jsonl" in texts else "be"
        text = f"language: {language}\nsources:\n{texts}\nbuild: {{{build}}}\n{more}"
        (self.path / "mine.yaml").write_text(text, encoding="utf-8")
        return self.path / "mine.yaml"

    def words(self, *more: str, folder: str = "work") -> list[str]:
        return [
            *("build", "boolq", "--folder", str(self.path / folder)),
            *("--recipe", str(self.path / "mine.yaml")),
            *("--ledger", str(self.path / f"{folder}.sqlite3"), "--concurrency", "4"),
            *more,
        ]

    @property
    def writer(self) -> list[str]:
        return ["--generator", f"openai:writer@{self.generator.url}/v1"]

    @property
    def checker(self) -> list[str]:
        return ["--validator", f"{self.provider}:checker@{self.validator.url}/v1"]

    def build(self, *more: str, folder: str = "work") -> int:
        return main(self.words(*more, folder=folder))

    def all(self, *more: str, folder: str = "work") -> int:
        return self.build(*self.writer, *self.checker, *more, folder=folder)

    def start(self, folder: str) -> subprocess.Popen[bytes]:
        words = self.words(*self.writer, *self.checker, folder=folder)
        command = [sys.executable, "-m", "cases", *words]
        return subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    @property
    def asked(self) -> Counter[str]:
        seen = [*self.generator.requests, *self.validator.requests]
        return Counter(json.dumps(one.body, sort_keys=True) for one in seen)

    def files(self, folder: str, steps: Sequence[str] = STEPS) -> dict[str, bytes]:
        return {
            step: (self.path / folder / f"{step}.jsonl").read_bytes() for step in steps
        }


@contextlib.contextmanager
def site(
    path: Path, handler: Handler, articles: int = 36, **recipe: Any
) -> Iterator[Site]:
    """Run both models for a block, with a dump of so many articles, 80 news and a recipe."""
    write_dump(path / "be.xml.bz2", pages(articles))
    write_news(path / "news.jsonl", 80)
    with loopback(handler=handler) as generator, loopback(handler=handler) as validator:
        made = Site(path, generator, validator)
        made.recipe(**recipe)
        yield made


@contextlib.contextmanager
def reviewed_site(path: Path, count: int = 10) -> Iterator[Site]:
    with site(path, models(), articles=40, count=count, build=SPLITS) as made:
        assert made.all() == 0
        assert made.build("review", *TWO) == 0
        yield made


def funnel_adds_up(folder: Path, steps: Sequence[str] = STEPS) -> dict[str, Any]:
    """Return the report after checking that no item is lost or counted twice."""
    report: dict[str, Any] = json.loads(
        (folder / "report.json").read_text(encoding="utf-8")
    )
    sampled = [row["id"] for row in rows(folder, "sample")]
    assert (
        len(set(sampled))
        == len(sampled)
        == report["items"]
        == sum(report["final"].values())
    )
    for before, after in pairwise(steps):
        kept = [row["id"] for row in rows(folder, before) if row["state"] == "kept"]
        assert sorted(kept) == sorted(row["id"] for row in rows(folder, after))
    for step in steps:
        told = report["steps"][step]
        assert told["in"] == told["kept"] + told["dropped"] + told["pending"]
        assert all(
            row["reason"] for row in rows(folder, step) if row["state"] != "kept"
        )
    return report


def sent_back(sheet: Path, back: Path, fill: Fill) -> Path:
    """Fill a sheet in and return the file: a CSV, or the JSON that the form saves."""
    if back.suffix == ".json":
        filled = [
            row | fill(number, row) for number, row in enumerate(sheet_rows(sheet))
        ]
        keys = ("item", "verdict", "edited", "comment")
        said = [{key: row[key] for key in keys} for row in filled]
        saved = {"sheet": "x", "reviewer": filled[0]["reviewer"], "rows": said}
        back.write_text(json.dumps(saved, ensure_ascii=False), encoding="utf-8")
        return back
    return filled_in(sheet, fill, back)


def back_from_both(made: Site, fill: Fill) -> list[str]:
    sheets = made.path / "work" / "review"
    files = [
        sent_back(sheets / "be-1.csv", made.path / "back1.csv", fill),
        sent_back(sheets / "be-2.csv", made.path / "back2.json", fill),
    ]
    return [str(file) for file in files]


def answers_of(folder: Path) -> dict[str, str]:
    return {row["id"]: row["answer"] for row in rows(folder, "review")}


def other(answer: str) -> str:
    return "NO" if answer == "YES" else "YES"


def agreeing(answers: Mapping[str, str]) -> Fill:
    return lambda _, row: {"verdict": answers[row["item"]]}


def every_third_wrong(words: Mapping[str, str]) -> Callable[[Seen], Answer]:
    def handle(seen: Seen) -> Answer:
        turn = sum(seen.prompt.encode()) % 7
        said = "Не ведаю, ці так." if turn == 0 else words["YES" if turn % 2 else "NO"]
        return reply(seen, text=said)

    return handle
