"""The command that goes on from a run that did not pass, with the names of this run."""

import math
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from reports.render.words import headline, run_name, urgent
from reports.run.report import Report

FEW_LABELS = 30  # below, the next step is to label more; `qagate new` asks for as many
_NARROWING = ("-k", "-m", "--limit", "--shard", "--languages")  # options that leave items out
_REST = "    # asks only for what is missing"
_MENDED = "    # once that is mended"


def next_step(report: Report, folder: Path) -> list[str]:
    """Return the line for a terminal, none where no command is known, for the report's folder."""
    return [f"next: {step}" for step in _steps(report, folder) if step][:1]


def _steps(report: Report, folder: Path) -> Iterator[str]:
    home, again = shlex.quote(_near(folder)), str(report.run.get("command", ""))
    line, code = report.decision.line, report.decision.code
    if code == 1:
        yield _after_fail(report, home)
    elif code in (2, 4) and again:
        key = re.search(r"--key-env \S+=NAME", line)
        yield f"{again} {key.group()}" if key else again + (_REST if code == 2 else _MENDED)
    elif report.shards:
        merge = f"qagate merge {shlex.quote(_near(folder.parent) + '/*')} --to reports/out"
        yield again and (again + _REST if code else merge)  # a merged report has no command
    elif line.startswith(("NO GATE", "NO drop")):
        file = f"echo '{_first_gates(report, change=line.startswith('NO drop'))}' > gates.yaml"
        yield f"{file}; qagate gate {home} --gates gates.yaml --to reports/decided"
    elif line.startswith("NO BASELINE"):
        known = report.trend[-1].name if report.trend else ""
        yield f"{again} --baseline={known}" if known else f"qagate promote v1 {home} --anyway"
    elif code == 6:
        yield from _after_doubt(report, home, again)


def _near(path: Path) -> str:
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _first_gates(report: Report, *, change: bool) -> str:
    decided = {gate.slice for gate in report.decision.gates if gate.threshold.paired or not change}
    made: dict[str, list[str]] = {}
    for one in report.slices:
        name, found = next(iter(headline(one).items()), ("", None))
        low = found.low if found and found.low is not None else 0.0
        gate = "drop: {max: 0.05}" if change else f"{name}: {{min: {math.floor(10 * low) / 10:g}}}"
        if one.kind.answered and one.name not in decided:
            made.setdefault(one.dataset, []).append(f"{one.language}: {{{gate}}}")
    return "{" + ", ".join(f"{name}: {{{', '.join(own)}}}" for name, own in made.items()) + "}"


def _after_fail(report: Report, home: str) -> str:
    """Return what shows the items behind a FAIL: the comparison, else the first that missed."""
    failed = [gate for gate in report.decision.gates if gate.state == "FAIL"]
    if paired := [gate for gate in failed if gate.threshold.paired]:
        earlier = report.anchor if all(gate.anchored for gate in paired) else report.baseline
        return f"qagate compare {shlex.quote(run_name(_near(Path(earlier))))} {home}"
    slices = {gate.slice for gate in failed}
    missed = (one for one in urgent(report) if one.outcome == "failed")
    keys = (one.key for one in missed if f"{one.dataset}:{one.language}" in slices)
    return next((f"qagate show {shlex.quote(key)} {home}" for key in keys), "")


def _after_doubt(report: Report, home: str, again: str) -> Iterator[str]:
    """Yield what would decide, the surest first: labels, people, a whole run, grades, rows."""
    unclear = [one for one in report.decision.gates if one.state == "INCONCLUSIVE"]
    why = " ".join([report.decision.line, *(one.reason for one in unclear)])
    lacks = "; ".join(f"{one.remedy} for {one.slice}" for one in unclear if one.remedy)
    if labels := re.search(r"qagate new [^,;)]+", why):
        yield f"{labels.group()}    # answers that you label: they measure the judge"
    if audited := re.search(r"qagate review RUN( --\S+ --until-decided)", why):
        yield f"qagate review {home}{audited.group(1)} --to audit"
    if again:
        yield from _run_again(report, why, lacks, again)
    if re.search(r"label|\bjudge", lacks):
        yield f"qagate review {home} --to review    # people judge what matters most"
    if again and (rows := re.search(r"about [\d,]+ more (pair|item)s for [^;]+", lacks)):
        yield f"{again}    # after you added {rows.group()}"


def _run_again(report: Report, why: str, lacks: str, again: str) -> Iterator[str]:
    if "--fresh NAME" in why:
        yield f"{again} --fresh NAME"
    if why.startswith("INCONCLUSIVE") or any(one.obstacle for one in report.slices):
        yield whole_run(again)
    if report.session.left or "grade " in lacks:
        yield again + _REST
    if "name a model as the judge" in why:
        yield f"{again} --judge anthropic:claude-opus-4-1 --dry-run"
    few = re.search(r"judge (?:not trusted|measured too little) in .*?\(n=(\d+)", why)
    if few and int(few.group(1)) < FEW_LABELS:
        yield f"{again}    # after you labelled {FEW_LABELS} answers or more; now {few.group(1)}"
    if blocked := [one for one in report.decision.gates if "rejudge" in one.remedy]:
        role = "anchor" if all(one.anchored for one in blocked) else "baseline"
        run = _near(Path(report.anchor if role == "anchor" else report.baseline))
        own = ("--model", "--baseline", "--anchor", "--report-dir")
        words = _kept(re.sub("^(pytest|qagate run) ?", "", again), own)
        rejudge = shlex.join(["qagate", "rejudge", run_name(run), *words])
        yield f"{rejudge}    # then this run again, with --{role}=reports/rejudged"


def whole_run(command: str) -> str:
    """Return a command without the options and node ids that leave items out."""
    kept = list[str]()
    for word in _kept(command, _NARROWING):
        path, is_test, _ = word.partition("::")
        kept += [] if is_test and path in kept else [path if is_test else word]
    return shlex.join(kept)


def _kept(command: str, left_out: Sequence[str]) -> Iterator[str]:
    words = iter(shlex.split(command))
    for word in words:
        name, equals, _ = word.partition("=")
        if name not in left_out:
            yield word
        elif not equals:
            next(words, "")
