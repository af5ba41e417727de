"""The robustness kit's ``write_reports``: the suite's own writer, and pytest's own JUnit file."""

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the kit runs from a folder of its own

from qagate.cases.dataset import Slice  # noqa: E402
from qagate.evaluators.kinds import GRADED  # noqa: E402
from qagate.evaluators.text import sendable  # noqa: E402
from qagate.reports.metrics.summary import summarise  # noqa: E402
from qagate.reports.render.writer import write  # noqa: E402
from qagate.reports.run.clean import masked  # noqa: E402
from qagate.reports.run.record import Record, safe  # noqa: E402
from qagate.reports.run.report import Cause, Decision, Report  # noqa: E402
from tests.support import samples  # noqa: E402

Row = Mapping[str, str]
SESSION_SECONDS = 200


def write_reports(cases: Sequence[Row], outdir: str) -> None:
    """Write every report file, pytest's JUnit file with an item each, and the terminal's text. The
    report has a gate for each case, whose reason is the case's answer, so that ``gates.xml``
    carries all of them too."""
    folder = Path(outdir)
    write(_report(cases), folder)
    _run_pytest(cases, folder)


def _report(cases: Sequence[Row]) -> Report:
    groups = defaultdict(list)
    for row, case in enumerate(cases, 1):
        groups[case["language"]].append(_record(case, row))
    records = tuple(record for group in groups.values() for record in group)
    slices = tuple(
        summarise(
            group,
            Slice(dataset="kit", language=language, kind=GRADED, path=Path("kit")),
        )
        for language, group in groups.items()
    )
    gates = tuple(
        samples.gate(
            "FAIL", dataset="kit", language=case["language"], reason=case["predicted"]
        )
        for case in cases
    )
    line = f"GATES FAIL (0 of {len(gates)} pass): exit 1"
    decision = Decision(gates=gates, code=1, cause=Cause.GATE_FAILED, line=line)
    return masked(replace(samples.report(records), slices=slices, decision=decision))


def _record(case: Row, row: int) -> Record:
    texts = {
        "question": case["question"],
        "expected": case["gold"],
        "answer": case["predicted"],
    }
    record = samples.record(
        row,
        key=f"kit-{case['language']}-{case['id']}",
        id=case["id"],
        dataset="kit",
        language=case["language"],
        outcome="passed" if case["grade"] == "CORRECT" else "failed",
        grade=case["grade"],
        reason=case["predicted"],
        metadata={"note": case["predicted"]},
        **texts,
    )
    return safe(record)


def _run_pytest(cases: Sequence[Row], folder: Path) -> None:
    """Run the cases as recorded answers, offline: what a user's CI would show and keep."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        items = [
            f"--items=simpleqa:{one}={path}"
            for one, path in _files(cases, work).items()
        ]
        command = [
            sys.executable,
            "-m",
            "pytest",
            f"--rootdir={ROOT}",
            "-c",
            "pyproject.toml",
        ]
        command += [
            "cases/simpleqa",
            *items,
            "--gates=off",
            "-p",
            "no:cacheprovider",
            "-q",
        ]
        command += [f"--ledger={work / 'ledger'}", f"--report-dir={work / 'report'}"]
        command += [f"--junitxml={folder / 'items.xml'}", f"--basetemp={work / 'temp'}"]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "GITHUB_STEP_SUMMARY": "", "PYTHONUTF8": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SESSION_SECONDS,
            check=False,
        )
    (folder / "terminal.log").write_bytes(done.stdout)
    if done.returncode not in (0, 1):
        raise RuntimeError(
            f"pytest ended with {done.returncode}: {done.stdout.decode()[-500:]}"
        )


def _files(cases: Sequence[Row], folder: Path) -> dict[str, Path]:
    """Write a data file for each language; no data file may hold half a character."""
    paths: dict[str, Path] = {}
    for case in cases:
        path = paths.setdefault(case["language"], folder / f"{case['language']}.jsonl")
        names = {"id": "id", "question": "question", "gold": "answer"}
        line = {new: case[old] for old, new in names.items()}
        line["predicted_answer"] = sendable(case["predicted"])
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    return paths
