"""A folder with sources, two model servers, and the command that builds a dataset from them."""

import contextlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from cases.__main__ import main
from tests.support.building import rows
from tests.support.building_texts import pages, write_dump, write_news
from tests.support.loopback import Handler, Loopback, loopback

ROOT = Path(__file__).parents[2]
FEW = 16  # of the encyclopaedia, and half as many news
STEPS = ("sample", "generate", "check", "validate", "probe")
ALL_STEPS = (*STEPS, "review", "accept", "freeze")


@dataclass
class Site:
    """A folder with sources, two model servers, and the command that builds from them."""

    path: Path
    generator: Loopback
    validator: Loopback
    provider: str = "openai"  # of the validator

    def words(self, *more: str, folder: str = "work") -> list[str]:
        return [
            *("build", "boolq", "--folder", str(self.path / folder), "--language", "be"),
            *("--ledger", str(self.path / f"{folder}.sqlite3"), "--concurrency", "4"),
            *more,
        ]

    def sources(self, count: int) -> list[str]:
        return [
            *("--source", f"encyclopaedia={self.path / 'be.xml.bz2'}"),
            *("--licence", "encyclopaedia=CC BY-SA 4.0"),
            *("--source", f"news={self.path / 'news.jsonl'}"),
            *("--count", f"encyclopaedia={count}", "--count", f"news={count // 2}"),
        ]

    @property
    def writer(self) -> list[str]:
        return ["--generator", f"openai:writer@{self.generator.url}/v1"]

    @property
    def checker(self) -> list[str]:
        return ["--validator", f"{self.provider}:checker@{self.validator.url}/v1"]

    def build(self, *more: str, folder: str = "work") -> int:
        return main(self.words(*more, folder=folder))

    def all(self, *more: str, folder: str = "work", count: int = 60) -> int:
        """Do every step; returns the exit code."""
        words = [*self.sources(count), *self.writer, *self.checker]
        return self.build(*words, *more, folder=folder)

    def start(self, folder: str) -> subprocess.Popen[bytes]:
        words = self.words(*self.sources(FEW), *self.writer, *self.checker, folder=folder)
        command = [sys.executable, "-m", "cases", *words]
        return subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    @property
    def asked(self) -> Counter[str]:
        """How often each request has come."""
        seen = [*self.generator.requests, *self.validator.requests]
        return Counter(json.dumps(one.body, sort_keys=True) for one in seen)

    def files(self, folder: str, steps: Sequence[str] = STEPS) -> dict[str, bytes]:
        return {step: (self.path / folder / f"{step}.jsonl").read_bytes() for step in steps}


@contextlib.contextmanager
def site(path: Path, handler: Handler, articles: int = 320) -> Iterator[Site]:
    """Run both models for a block, beside a dump of so many articles and a file of 80."""
    write_dump(path / "be.xml.bz2", pages(articles))
    write_news(path / "news.jsonl", 80)
    with loopback(handler=handler) as generator, loopback(handler=handler) as validator:
        yield Site(path, generator, validator)


def funnel_adds_up(folder: Path, steps: Sequence[str] = STEPS) -> dict[str, Any]:
    """Return the report after a look whether any item is lost or counted twice."""
    report: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    sampled = [row["id"] for row in rows(folder, "sample")]
    assert len(set(sampled)) == len(sampled) == report["items"] == sum(report["final"].values())
    for before, after in pairwise(steps):
        kept = [row["id"] for row in rows(folder, before) if row["state"] == "kept"]
        assert sorted(kept) == sorted(row["id"] for row in rows(folder, after))
    for step in steps:
        told = report["steps"][step]
        assert told["in"] == told["kept"] + told["dropped"] + told["pending"]
        assert all(row["reason"] for row in rows(folder, step) if row["state"] != "kept")
    return report
