"""The new results beside OLD: one, or several candidates that are decided together.

Each candidate is decided like a result given alone, in a folder of its own, but for the level that
its gates are held to: Holm's, over all candidates (``run/candidates.py``). Holm's steps are rounds.
In the first, each of five candidates needs evidence for a fifth of the usual error. Once two have
passed, the other three are asked again for a third of it, until no more pass; likewise for FAIL.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from qagate.cases.config import GatesFile, load_gates
from qagate.cases.dataset import Threshold
from qagate.evaluators.core import UsageError
from qagate.evaluators.statistics.metrics import DROP
from qagate.reports.extras.decide.comparability import (
    accepted_changes,
    remarks,
    same_run,
)
from qagate.reports.extras.decide.decisive import Decisive, decisive_scores
from qagate.reports.extras.decide.foreign_run import Choice, ForeignRun
from qagate.reports.extras.decide.imported_run import ImportedRun, slug
from qagate.reports.extras.decide.pool import TASKS, Pools
from qagate.reports.extras.decide.reading import read_run
from qagate.reports.extras.decide.stated import (
    contradictions,
    with_one_value_an_item,
)
from qagate.reports.gates.decide import OK
from qagate.reports.render.writer import Files, write_files
from qagate.reports.run.baseline import Baseline, load_baseline
from qagate.reports.run.candidates import ONE_CANDIDATE, Candidates
from qagate.reports.run.report import Report
from qagate.reports.verdict.assemble import Facts, ReportInputs, account

OLD = "-baseline"
"""What the name of a folder ends with that holds the baseline as a run of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A new result beside OLD, ready to be decided."""

    name: str
    """Which of several it is; empty for the only one."""
    folder: Path
    """Where its report goes."""
    inputs: ReportInputs
    facts: Facts
    baseline: Baseline

    def report(self, candidates: Candidates) -> Report:
        """Return its report, held to the level of so many candidates."""
        facts = replace(self.facts, candidates=candidates)
        return account(self.inputs, facts, self.baseline)


def decided_together(candidates: Sequence[Candidate]) -> list[Report]:
    """Return the report of each candidate, each held to Holm's level over all of them."""
    if len(candidates) == 1:
        return [candidates[0].report(ONE_CANDIDATE)]
    level = Candidates(number=len(candidates), open=len(candidates))
    reports = [candidate.report(level) for candidate in candidates]
    gates = sum(len(_change_gates(report)) for report in reports)
    level = replace(level, gates=max(1, gates))
    while True:
        reports = [candidate.report(level) for candidate in candidates]
        passed = sum(report.decision.code == OK for report in reports)
        failed = 0
        for report in reports:
            failed += _change_gates(report).count("FAIL")
        next_level = replace(
            level,
            open=min(level.open, max(1, len(candidates) - passed)),
            gates=min(level.gates, max(1, gates - failed)),
        )
        if next_level == level:
            return reports
        level = next_level


def _change_gates(report: Report) -> list[str]:
    """Return the states of the gates on a change: those on a bar compare nothing."""
    return [gate.state for gate in report.decision.gates if gate.threshold.paired]


# What the command line names


def candidates_of(options: argparse.Namespace) -> list[Candidate]:
    """Return the candidates that the command line names. Raises UsageError."""
    sides = options.new or [""]
    pairs = [(path, side) for path in options.result for side in sides]
    if len(pairs) > 1 and options.labels:
        raise UsageError(
            "--labels: what people say of one candidate's answers; give one NEW"
        )
    if options.pool and (options.gates or options.labels):
        raise UsageError("--pool: --gates and --labels are of each task; leave one out")
    names = _names(pairs)
    runs = [_imported_runs(options, path, side) for path, side in pairs]
    runs = _with_accepted_changes(options, runs)
    return [
        _candidate(options, name, new, old)
        for name, (new, old) in zip(names, runs, strict=True)
    ]


def _names(pairs: Sequence[tuple[Path, str]]) -> list[str]:
    """Return what each candidate is called: its side, or the part of its path that differs."""
    if len(pairs) == 1:
        return [""]
    paths = list(dict.fromkeys(path for path, _ in pairs))
    by_path = dict(zip(paths, _telling_parts(paths), strict=True))
    names = []
    for path, side in pairs:
        parts = [by_path[path]] if len(paths) > 1 else []
        if side:
            parts.append(slug(side, "-"))
        names.append("-".join(parts))
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"two candidates would both be {name!r}; give each once, or rename a file"
            )
    return names


def _telling_parts(paths: Sequence[Path]) -> list[str]:
    """Return the last part of each path that differs in all of them; numbers where none does."""
    parts_of_paths = [path.absolute().parts for path in paths]
    for place in range(1, min(map(len, parts_of_paths)) + 1):
        parts = [slug(Path(parts[-place]).stem, "-") for parts in parts_of_paths]
        if len(set(parts)) == len(paths):
            return parts
    return [f"candidate-{number}" for number in range(1, len(paths) + 1)]


def _candidate(
    options: argparse.Namespace, name: str, new: ImportedRun, old: ImportedRun
) -> Candidate:
    """Return a candidate, with OLD written down as a run of ours beside its report."""
    gates = None
    if options.gates is not None:
        gates = _foreign_gates(options.gates, new)
    folder = options.to / name
    old_folder = folder.with_name(folder.name + OLD)
    old_inputs, old_facts = _account_of(old, None, None, pool=options.pool)
    inputs, facts = _account_of(new, gates, options.labels, pool=options.pool)
    old_report = account(old_inputs, old_facts, None)
    write_files(Files(old_report, ["json"]), old_folder)
    return Candidate(
        name=name,
        folder=folder,
        inputs=inputs,
        facts=facts,
        baseline=load_baseline(old_folder),
    )


def _account_of(
    imported: ImportedRun, gates: GatesFile | None, labels: Path | None, *, pool: bool
) -> tuple[ReportInputs, Facts]:
    """Return what the report of a side is made of, its tasks put together if asked for."""
    inputs = imported.inputs(gates, labels)
    facts = imported.facts(inputs)
    if not pool:
        return inputs, facts
    pool_of = {}
    for name, task in imported.run.tasks.items():
        pool_of[slug(name)] = slug(task.group) if task.group else TASKS
    pools = Pools(pool_of=pool_of)
    return pools.inputs(inputs), pools.facts(facts)


def _imported_runs(
    options: argparse.Namespace, path: Path, side: str
) -> tuple[ImportedRun, ImportedRun]:
    """Return NEW and OLD, with the scores that decide. Raises UsageError."""
    new_choice = Choice(
        metrics=tuple(options.metric),
        slice=options.slice,
        cluster=options.cluster,
        scale=options.scale,
        side=side,
        columns=dict(options.column),
        words=dict(options.score),
        rows=options.rows,
    )
    old_choice = replace(new_choice, side=options.old)
    new = read_run(path, options.form, new_choice)
    old = read_run(options.baseline, options.form, old_choice)
    for column in new.lacks:
        if column in old.lacks:
            raise UsageError(f"--column {column}: neither result has such a column")
    if new.form != old.form:
        raise UsageError(
            f"{new.path} is of {new.tool}, {old.path} of {old.tool}; give two of one tool"
        )
    tasks = decisive_scores([new, old], new_choice)
    same = same_run(new, old, new_choice, old_choice)
    new = replace(new, notes=(*new.notes, *remarks(new, old)))
    main_scores = {task: main.name for task, main in tasks.items()}
    new_doubts = contradictions(new, main_scores)
    old_doubts = contradictions(old, main_scores)
    for task, main in tasks.items():
        new = with_one_value_an_item(new, task, main.name)
        old = with_one_value_an_item(old, task, main.name)
    unused = Decisive(name="", two_way=True)
    """Of a task that NEW lacks: nobody needs its scores."""
    old_tasks = {name: tasks.get(name, unused) for name in old.tasks}
    return (
        ImportedRun(
            run=new,
            tasks=tasks,
            choice=new_choice,
            margin=options.margin,
            doubt=same,
            doubts=new_doubts,
        ),
        ImportedRun(
            run=old,
            tasks=old_tasks,
            choice=old_choice,
            margin=options.margin,
            doubts=old_doubts,
        ),
    )


def _with_accepted_changes(
    options: argparse.Namespace, runs: Sequence[tuple[ImportedRun, ImportedRun]]
) -> list[tuple[ImportedRun, ImportedRun]]:
    """Return the runs with what ``--accept-changed`` accepts of each. Raises UsageError."""
    pairs: list[tuple[ForeignRun, ForeignRun]] = [
        (new.run, old.run) for new, old in runs
    ]
    accepted = accepted_changes(options.accept_changed, pairs)
    return [
        (replace(new, accepted=of_pair), old)
        for (new, old), of_pair in zip(runs, accepted, strict=True)
    ]


# Gates of a file


def _foreign_gates(path: Path, new: ImportedRun) -> GatesFile:
    """Return the gates of a file on scores of a run.

    Raises UsageError where a gate takes more for better of a score that less is better of.
    """
    names: list[str] = []
    less_is_better = set()
    for task in new.run.tasks.values():
        for score in task.scores.values():
            names.append(slug(score.name))
            if score.less_is_better or score.looks_less:
                less_is_better.add(slug(score.name))
    if new.choice.scale is not None:
        less_is_better -= {slug(main.name) for main in new.tasks.values()}
    gates = load_gates(path, names)
    wrong = set()
    for dataset in gates.datasets.values():
        for thresholds in (*dataset.languages.values(), dataset.pooled):
            wrong |= less_is_better & set(_wanting_more(thresholds))
    if wrong:
        raise UsageError(
            f"--gates: less {min(wrong)} is better; decide by it alone, with --metric"
        )
    return gates


def _wanting_more(thresholds: Sequence[Threshold]) -> Iterator[str]:
    """Yield the metrics that thresholds take more of for better."""
    for threshold in thresholds:
        if threshold.measure == DROP:
            yield threshold.of
        elif threshold.min is not None:
            yield threshold.measure
