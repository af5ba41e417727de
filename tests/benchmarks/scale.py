"""What runs of ``python -m reports run`` take as items grow: time, processors and memory.

``python -m tests.benchmarks.scale [--on ray] [--shards N] [--items N ...]`` writes data sets of
recorded answers, which the rules judge, and runs each in a process of its own. On a machine that
others use seconds of the processors, of all processes together, say more than those of the clock.
``linear`` compares them an item with those between the two runs before: 1.00 is linear. The
memory is the most that the controller has ever had.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from evaluators.output import say

ROOT = Path(__file__).parents[2]
POLL_SECONDS = 0.1
QUIET = subprocess.DEVNULL
WORDS = ("Sofia", "Plovdiv", "Varna", "Ruse", "Pleven")
YAML = "kind: graded\nlanguages:\n  en: {file: en.jsonl, gates: {correct: {min: 0.5}}}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one run took: seconds of the clock and of processors; memory in MB."""

    items: int
    seconds: float
    cpu: float
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
            memory, cpu = 0.0, Counter[int]()
            while process.poll() is None:
                memory = max(memory, _peak(process.pid))
                cpu.update(_used(process.pid, cpu))
                time.sleep(POLL_SECONDS)
            seconds = time.monotonic() - began
        return Taken(
            items=items,
            seconds=seconds,
            cpu=cpu.total() / os.sysconf("SC_CLK_TCK"),
            memory=memory,
            code=process.returncode,
        )


def _peak(pid: int) -> float:
    """Return the most memory that a process has had so far, in MB; 0 once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    found = [line.split()[1] for line in lines if line.startswith("VmHWM")]
    return int(found[0]) / 1024 if found else 0.0


def _used(root: int, before: Counter[int]) -> dict[int, int]:
    """Return how many ticks more a process and all below it have used, by process."""
    parents, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            pid = int(path.parent.name)
            parents[pid], ticks[pid] = int(fields[1]), int(fields[11]) + int(fields[12])
    return {pid: ticks[pid] - before[pid] for pid in ticks if _is_below(pid, root, parents)}


def _is_below(pid: int, root: int, parents: Mapping[int, int]) -> bool:
    while pid in parents and pid != root:
        pid = parents[pid]
    return pid == root


def main() -> None:
    """Print a line a run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", default="")
    parser.add_argument("--shards", type=int, default=0)
    parser.add_argument("--items", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    given = parser.parse_args()
    options = [f"--on={given.on}"] if given.on else []
    options += [f"--shards={given.shards}"] if given.shards else []
    runs: list[Taken] = []
    for items in given.items:
        runs.append(one := measure(items, options))
        each = [
            1000 * (after.cpu - before.cpu) / (after.items - before.items)
            for before, after in pairwise(runs)
        ]
        linear = f"linear {each[-1] / each[-2]:.2f}" if len(each) > 1 else ""
        took = f"{items:>9,} items {one.seconds:8.1f} s, {one.cpu:8.1f} s of processors"
        say(sys.stdout, f"{took} {one.memory:7.0f} MB exit {one.code} {linear}")


if __name__ == "__main__":
    main()
