"""``python -m reports run``: a run as pytest makes it, without tests; for millions of items."""

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from evaluators.core import UsageError
from evaluators.output import UnwrittenError, progress_on, say
from reports.commands.recorded_runs import Parser
from reports.plugin.finish import ci_lines
from reports.plugin.on_ray import RayTasks, load_ray
from reports.plugin.options import Options, declare, read_options
from reports.plugin.run_paths import DATASET_FILE, check_report_folder, check_there, dataset_files
from reports.plugin.shard_run import Executor, InThisProcess, ShardedRun
from reports.render import console
from reports.run.clean import mask
from reports.run.report import Report

RAY = "ray"
PLACES = "--languages, paths, --items, --limit, --first and --shard choose items here"
PYTESTS = ("until_decided", "show_misses", "dry_run")
"""Our options that only pytest can serve."""


class _Words(argparse.Namespace):
    """The words of the command, as ``read_options`` wants them."""

    def getoption(self, name: str) -> Any:
        """Return the value of an option."""
        return getattr(self, name)


def main(argv: Sequence[str]) -> int:
    """Make the run, print its gates and return its exit code."""
    words, here = _parse(argv), Path.cwd()
    options = read_options(words, here)
    for name in PYTESTS:
        if getattr(options, name):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} needs pytest's tests: `pytest {words.paths[0]} {option} …`")
    check_there(words.paths, here)
    root = Path(os.path.commonpath([here, *(here / path for path in words.paths)]))
    files = dataset_files(words.paths, here, root)
    if not files:
        raise UsageError(f"no {DATASET_FILE} is in, under or beside the given paths; try cases/")
    check_report_folder(options.report_dir)
    return _run(words, options, files, root, shlex.join(["python", "-m", "reports", "run", *argv]))


def _parse(argv: Sequence[str]) -> _Words:
    parser = Parser(
        "run",
        "Answer, judge and decide as pytest does over the same data sets and with the same "
        "options, without a test an item: memory does not grow with their texts.",
        "those of pytest: 0 every gate passed, 1 a gate failed, 2 interrupted, 3 the report could "
        "not be written, 4 wrong arguments or nothing graded, 6 INCONCLUSIVE",
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", help="folders with a dataset.yaml")
    text = "ray, this machine's processors, or ray:ADDRESS, a cluster's (pip install 'qagate[ray]')"
    parser.add_argument("--on", metavar="ray[:ADDRESS]", default="", help=text)
    text = "how many tasks to make of it (default: 1, with --on 64)"
    parser.add_argument("--shards", metavar="N", type=int, default=0, help=text)
    declare(parser.add_argument)
    words, others = parser.parse_known_intermixed_args(argv, _Words())
    for word in (*others, *(path for path in words.paths if "::" in path)):
        raise UsageError(f"{word}: only pytest knows it, and there are no tests here; {PLACES}")
    if words.shards < 0 or words.shards > 100_000:
        raise UsageError(f"--shards: a number from 1 to 100,000 is needed, got {words.shards}")
    return words


def _run(words: _Words, options: Options, files: Sequence[Path], root: Path, command: str) -> int:
    engine, _, address = words.on.partition(":")
    if engine not in ("", RAY):
        raise UsageError(f"--on: ray or ray:ADDRESS is needed, got {words.on!r}")
    if options.batch and (engine or words.shards > 1):
        raise UsageError("--batch: one process can wait for all of it; leave out --on and --shards")
    ray = load_ray(address) if engine else None

    def executor() -> Executor:
        return RayTasks(ray, address, options) if engine else InThisProcess()

    progress = progress_on(sys.stderr)
    run = ShardedRun(
        options=options,
        files=files,
        root=root,
        count=words.shards or (64 if engine else 1),
        executor=executor,
        command=mask(command),
        say=progress.show,
    )
    former = signal.signal(signal.SIGTERM, _interrupt)
    try:
        report, warning = run.report()
    except OSError as error:
        raise UnwrittenError(
            f"{options.report_dir}: cannot be written ({error.strerror}); free space, run again"
        ) from None
    finally:
        signal.signal(signal.SIGTERM, former)
        progress.close()
    _show(report, warning, options.report_dir)
    return report.decision.code


def _show(report: Report, warning: str, folder: Path) -> None:
    """Print the gates, what was not graded or broke, notes, and the last line."""
    say(
        sys.stdout,
        *console.gate_table(report),
        *console.brief(report),
        *console.origin(report),
        *console.totals(report),
        *ci_lines(report, os.environ),
        *([f"warning: {warning}"] if warning else []),
        f"report: {folder / 'report.html'}",
        report.decision.line,
    )


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Let SIGTERM end a run as Ctrl-C does."""
    raise KeyboardInterrupt
