"""Measure whole runs: collection, answers, judging, assertions and report, against a slow server.

``python -m tests.benchmarks.speed`` prints the wall time of each way to start pytest as a multiple
of a bare client that makes the same calls, the time before the first call and after the last
reply, and the time of a re-run from the ledger. ``--only shards`` prints what two shards, their
merge and Ray take an item, recorded and asked; ``--items`` says how many items, ``--quick`` takes a
tenth of them.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from aiohttp import ClientSession, TCPConnector

from qagate.evaluators.output import say
from tests.benchmarks.common import ROOT
from tests.benchmarks.server import Load, Server, serving

LATENCY = 0.2
QUESTION = "In which year was the bridge number {} over the river finished, if ever?"
ITEMS = 4326  # as many as SimpleQA has
QUIET = ("-q", "--tb=no", "--no-header", "-p", "no:cacheprovider")
QAGATE = "import sys; from qagate.reports.plugin.qagate import main; sys.exit(main(sys.argv[1:]))"


class Spent(NamedTuple):
    """What a command took, its children included."""

    start: float
    """The monotonic time at which it was started."""
    wall: float
    cpu: float = 0.0
    memory: float = 0.0


class Bench:
    """A folder with items in it, and runs of pytest over them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def items(self, count: int, *, recorded: bool) -> Path:
        """Write a data file; where ``recorded``, a third of its recorded answers are wrong."""
        path = self.folder / f"items-{count}-{recorded}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for number in range(count):
                said = {
                    "predicted_answer": f"In {1000 + number if number % 3 else 999}."
                }
                row = {
                    "question": QUESTION.format(number),
                    "answer": f"{1000 + number}",
                }
                file.write(json.dumps(row | said if recorded else row) + "\n")
        return path

    def spend(self, *words: str) -> Spent:
        """Run Python with these words of the command line."""
        command = [sys.executable, *words]
        env = {**os.environ, "OPENAI_API_KEY": "none", "PYTHONPATH": str(ROOT)}
        start = time.monotonic()
        with (self.folder / "output.txt").open("w") as output:
            process = subprocess.Popen(
                command, cwd=ROOT, env=env, stdout=output, stderr=output
            )
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1, 6):  # the gates have no say here
            raise SystemExit((self.folder / "output.txt").read_text()[-2000:])
        cpu, memory = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        return Spent(start, time.monotonic() - start, cpu, memory)

    def run(self, items: Path, *options: str, report: str = "report") -> Spent:
        """Run the suite over a file of items; the exit code is pytest's own."""
        return self.spend("-m", "pytest", *QUIET, *self.words(items, report), *options)

    def words(self, items: Path, report: str) -> list[str]:
        """Return what is run, over which items, without gates, and where the report goes."""
        given = (f"--items=simpleqa:en={items}", "--gates=off")
        return ["cases/simpleqa", *given, f"--report-dir={self.folder / report}"]


async def _bare(url: str, calls: int, concurrency: int) -> None:
    """Put as many calls as a run makes by a client that does nothing else."""
    body = {
        "model": "bare",
        "messages": [{"role": "user", "content": "How high is it? " * 20}],
    }
    left = iter(range(calls))

    async def work(session: ClientSession) -> None:
        for _ in left:
            async with session.post(
                f"{url}/v1/chat/completions", json=body
            ) as response:
                await response.read()

    async with ClientSession(connector=TCPConnector(limit=concurrency)) as session:
        await asyncio.gather(*(work(session) for _ in range(concurrency)))


def asking(bench: Bench, server: Server, count: int) -> None:
    """Print runs that ask a model and a judge: wall time over a bare client's, load, requests."""
    items = bench.items(count, recorded=False)
    spec = f"openai:any@{server.url}/v1"
    common = (
        f"--model={spec}",
        f"--judge=openai:judge@{server.url}/v1",
    )
    say(sys.stdout, f"{count} items, answer and judge, {LATENCY} s a call")
    for concurrency in (64, 128):
        for workers in ("8", "2", "0"):
            # Just before each run, as other work on the machine changes from minute to minute.
            start = time.monotonic()
            asyncio.run(_bare(server.url, 2 * count, concurrency))
            bare = Spent(start=start, wall=time.monotonic() - start)
            _line(
                f"bare client, {concurrency} in flight", bare, bare.wall, server.load()
            )
            ledger = bench.folder / f"ledger-{concurrency}-{workers}.sqlite3"
            options = (*common, f"--ledger={ledger}", f"--concurrency={concurrency}")
            spent = bench.run(items, "-n", workers, *options)
            _line(
                f"-n {workers}, {concurrency} in flight",
                spent,
                bare.wall,
                server.load(),
            )
    spent = bench.run(items, "-n", "8", *options)
    _line("-n 8, everything in the ledger", spent, bare.wall, server.load())


def shards(bench: Bench, count: int, *options: str) -> None:
    """Print what two shards, their merge, and two shards on Ray take for this many items."""
    items, merging = (
        bench.items(count, recorded=not options),
        ("-m", "reports", "merge"),
    )
    names = [f"shards-{count}-{bool(options)}-{number}" for number in (1, 2)]
    for number, name in enumerate(names, start=1):
        ledger = f"--ledger={bench.folder / name}.sqlite3"
        spent = bench.run(
            items, "-n2", ledger, f"--shard={number}/2", *options, report=name
        )
        _item_line(f"{count} items, shard {number} of 2", spent, count / 2)
    folders = [str(bench.folder / name) for name in names]
    spent = bench.spend(*merging, *folders, f"--to={bench.folder / 'merged'}")
    _item_line(f"{count} items, merge", spent, count)
    words = [*bench.words(items, "ray"), "--on=ray", "--shards=2", *options]
    ledger = f"--ledger={bench.folder / f'ray-{count}'}.sqlite3"
    spent = bench.spend("-c", QAGATE, "run", *words, ledger)
    _item_line(f"{count} items, --on ray --shards 2", spent, count)


def _item_line(name: str, spent: Spent, count: float) -> None:
    each = f"{1000 * spent.wall / count:6.2f} ms an item"
    say(
        sys.stdout,
        f"{name:34} {spent.wall:7.1f} s  {each}  memory {spent.memory:4.0f} MB",
    )


def _line(name: str, spent: Spent, unit: float, load: Load) -> None:
    parts = [
        f"{name:34} {spent.wall:7.1f} s = {spent.wall / unit:4.2f} x {unit:6.1f} s"
    ]
    if spent.cpu:
        parts.append(f"cpu {spent.cpu:6.1f} s  memory {spent.memory:4.0f} MB")
    parts.append(
        f"{load.requests} requests, {load.mean:.0f} in flight (peak {load.peak})"
    )
    if load.requests:
        before, after = load.first - spent.start, spent.start + spent.wall - load.last
        parts.append(f"{before:.1f} s before the first, {after:.1f} s after the last")
    say(sys.stdout, "  ".join(parts))


def main() -> None:
    """Print the whole table."""
    parser = argparse.ArgumentParser(description="Whole runs against a slow server.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the items")
    parser.add_argument("--only", choices=("asking", "shards"), help="one part")
    parser.add_argument(
        "--items", type=int, nargs="*", help="of shards, recorded and asked"
    )
    parser.add_argument(
        "--ways", choices=("recorded", "asked"), nargs="*", help="of shards"
    )
    given = parser.parse_args()
    share = 10 if given.quick else 1
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        if given.only in (None, "asking"):
            with serving(LATENCY) as server:
                asking(bench, server, ITEMS // share)
        if given.only in (None, "shards"):
            ways = given.ways or ("recorded", "asked")
            counts = [
                count // share for count in given.items or (1_000, 10_000, 100_000)
            ]
            with serving(LATENCY) as server:
                asked = (f"--model=openai:any@{server.url}/v1",)
                judged = (f"--judge=openai:judge@{server.url}/v1", "--concurrency=128")
                for way in ways:
                    for count in counts:
                        shards(
                            bench, count, *((*asked, *judged) if way == "asked" else ())
                        )


if __name__ == "__main__":
    main()
