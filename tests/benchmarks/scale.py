"""What runs of ``python -m reports run`` take as items grow: time and memory of the controller.

``python -m tests.benchmarks.scale [--on ray] [--shards N] [--items N ...]`` writes data sets of
recorded answers, which the rules judge, and runs each in a process of its own. Time is linear
where the seconds an item are the same; the controller's memory is the highest it ever had.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evaluators.output import say

ROOT = Path(__file__).parents[2]
POLL_SECONDS = 0.05
QUIET = subprocess.DEVNULL
WORDS = ("Sofia", "Plovdiv", "Varna", "Ruse", "Pleven")
YAML = "kind: graded\nlanguages:\n  en: {file: en.jsonl, gates: {correct: {min: 0.5}}}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one run took; memory in MB."""

    items: int
    seconds: float
    memory: float
    code: int


def write_project(folder: Path, items: int) -> None:
    """Write a data set of so many recorded answers, four of five of them right."""
    home = folder / "qa" / "towns"
    home.mkdir(parents=True)
    (home / "dataset.yaml").write_text(YAML, encoding="utf-8")
    with (home / "en.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows(items))


def rows(items: int) -> Iterator[dict[str, object]]:
    """Yield the rows, texts as long as those of a public benchmark."""
    for number in range(items):
        gold = WORDS[number % len(WORDS)]
        answer = gold if number % 5 else "I believe that it was a town elsewhere, perhaps Vidin"
        yield {
            "id": f"t{number}",
            "question": f"In which town was the trader number {number} born, who sold wool, "
            "copper and salt along the river for most of a long life, and died far from home?",
            "answer": gold,
            "predicted_answer": f"The town is {answer}.",
        }


def measure(items: int, options: list[str]) -> Taken:
    """Return what a run over so many items takes."""
    with tempfile.TemporaryDirectory(prefix="qa-scale-") as name:
        folder = Path(name)
        write_project(folder, items)
        command = [sys.executable, "-m", "reports", "run", "qa", *options]
        began = time.monotonic()
        known = {**os.environ, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(
            command, cwd=folder, env=known, stdout=QUIET, stderr=QUIET
        ) as process:
            memory = 0.0
            while process.poll() is None:
                memory = max(memory, _peak(process.pid))
                time.sleep(POLL_SECONDS)
            seconds = time.monotonic() - began
        return Taken(items=items, seconds=seconds, memory=memory, code=process.returncode)


def _peak(pid: int) -> float:
    """Return the most memory that a process has had so far, in MB; 0 once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    found = [line.split()[1] for line in lines if line.startswith("VmHWM")]
    return int(found[0]) / 1024 if found else 0.0


def main() -> None:
    """Print a line a run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", default="")
    parser.add_argument("--shards", type=int, default=0)
    parser.add_argument("--items", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    given = parser.parse_args()
    options = [f"--on={given.on}"] if given.on else []
    options += [f"--shards={given.shards}"] if given.shards else []
    for items in given.items:
        taken = measure(items, options)
        each = 1000 * taken.seconds / items
        took = f"{items:>9,} items {taken.seconds:8.1f} s {each:7.2f} ms an item"
        say(sys.stdout, f"{took} {taken.memory:7.0f} MB exit {taken.code}")


if __name__ == "__main__":
    main()
