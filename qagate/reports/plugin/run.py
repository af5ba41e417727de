"""The engine of a run, with all that it needs; everything is checked before the first call.

An EngineRun is made from options and plan: models are connected, earlier runs and people's
verdicts are read, and each item becomes a task. ``open`` hands the tasks to the engine's
process, ``start`` says which of them have a test, and ``host`` is the engine from then on.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from qagate.cases.dataset import Plan
from qagate.cases.earlier import EarlierAnswers
from qagate.cases.tasks import make_tasks
from qagate.evaluators import doors
from qagate.evaluators.adjudications import ADJUDICATIONS_FILE, Adjudications
from qagate.evaluators.core import LEXICAL, QAError, UsageError, parse_judges
from qagate.evaluators.judges.rule_checks import checks_in_part, rules_of
from qagate.evaluators.languages.word_lists import own_files
from qagate.evaluators.ledger import Ledger, LedgerError
from qagate.evaluators.ledger.rows import VARIABLE
from qagate.evaluators.ledger.runs import (
    DECIDED,
    RunProcess,
    begin_run,
    end_run,
    last_run,
)
from qagate.evaluators.models import load
from qagate.evaluators.models.keys import variables_of
from qagate.evaluators.models.versions import asked_spec
from qagate.evaluators.negotiation import Negotiated, negotiated_of
from qagate.evaluators.reading import file_hash
from qagate.evaluators.run_identity import NO_RUN, RunIdentity
from qagate.evaluators.runtime.budget import BUDGET
from qagate.evaluators.runtime.caller import (
    BATCH,
    DEADLINE,
    Caller,
    CallRoute,
    CallSettings,
)
from qagate.evaluators.runtime.engine import Engine, Job, Stopping
from qagate.evaluators.runtime.outcomes import (
    EngineHandle,
    OutcomeSource,
    OutcomeWriter,
)
from qagate.evaluators.runtime.process import EngineProcess, begin
from qagate.evaluators.runtime.schedule import UNLIMITED, Schedule
from qagate.evaluators.runtime.session import CallSession
from qagate.evaluators.runtime.task import Task
from qagate.reports.gates.gone import check_accepted
from qagate.reports.plugin.calibrator import Calibrator, find_labelled
from qagate.reports.plugin.options import RunOptions, check_judge_is_named
from qagate.reports.plugin.run_models import RunModels, connect_models
from qagate.reports.plugin.run_process import run_process, spending_name
from qagate.reports.run.report_folder import JUDGE_REPLIES, folder_of

if TYPE_CHECKING:
    from qagate.reports.run.baseline import Baseline
    from qagate.reports.run.evidence import AuditPlan

ITEMS_AHEAD_PER_CALL = 4
"""How far ahead of the tests the engine may work, in items for each call in flight."""
MIN_ITEMS_AHEAD = 64
HEAD_START_PER_CALL = 16
"""How many items may start before the tests are collected, for each call in flight."""
TRIAL_ITEMS = 4
"""How many items are under way until one has an outcome: little is paid if a key is wrong."""
USED_UP = (BUDGET, DEADLINE, BATCH)
"""Why a run ends before its items did where nothing is wrong: what the user allowed is used up."""


class EngineRun:
    """The engine of a run. Without ``calling`` it is only described: no key is needed."""

    host: EngineHandle
    """The opened engine."""

    def __init__(
        self, options: RunOptions, plan: Plan, root: Path, *, calling: bool
    ) -> None:
        """Read and connect what the run needs; ``root`` is pytest's rootdir. Raises UsageError."""
        self.options = options
        self.plan = plan
        self._identity_without_ledger = RunIdentity(id=uuid4().hex, started=time.time())
        self.earlier = _earlier_runs(options)
        """The baseline and the anchor."""
        needs_key = calling and not options.replay
        self.connected = connect_models(options, needs_key=needs_key)
        _check_monitor(options, self.earlier[0], self.connected)
        check_accepted(
            options.accepted, plan.datasets, _planned_slices(plan), self.earlier[0]
        )
        self.adjudications, self.audit_plan = _verdicts_by_people(options, plan)
        self.earlier_answers = _earlier_answers(plan, self.earlier)
        """What baseline and anchor answered to the plan's items, in this order."""
        self.tasks: Mapping[str, Task] = make_tasks(
            plan.items.values(),
            self.connected.model,
            self.connected.judges,
            self.adjudications,
            self.earlier_answers,
        )
        """The tasks by key; empty once the engine has them."""
        # A mistyped model or a missing key is said before what the command lacks.
        check_judge_is_named(options, plan)
        self.takes_extras = any(task.metric_runners for task in self.tasks.values())
        """Whether some answer gets extra metrics."""
        labelled = find_labelled(options, plan, root)
        self.calibrator = Calibrator(plan, labelled, self.connected.judges, options)
        self.process = run_process(options, plan, self.earlier)
        self.stopping: Stopping | None = None
        """What says which items need no longer be asked; a feature may set it."""
        self._session = CallSession(
            self.connected.models,
            self.connected.specs,
            replace(
                _call_settings(options, self.process),
                negotiated=_negotiated_of(self.earlier[0]),
            ),
            find_route=partial(_find_batches, options),
        )
        self.judge_replies = self._session.settings.beside
        """The files in which the judge's replies of earlier runs may be."""
        self.pricing = self._session.pricing
        """What each model's tokens cost, by SPEC; None where that is not known."""
        self._is_started = False

    @property
    def key_variables(self) -> tuple[str, ...]:
        """The variables of the environment with the keys of models, and of the ledger."""
        variables = [VARIABLE]
        for spec in self.connected.specs.values():
            variables += variables_of(spec, self.options.key_names)
        return tuple(dict.fromkeys(variables))

    @property
    def has_fixed_order(self) -> bool:
        """Whether items are asked in the plan's order, and not as the tests come to them."""
        return self.stopping is not None

    @property
    def identity(self) -> RunIdentity:
        """What tells this run from every other, as the ledger names it."""
        run = self.host.status.run
        return self._identity_without_ledger if run == NO_RUN else run

    @property
    def spent(self) -> float:
        """What the requests cost in USD, as far as prices are known."""
        if self.host.status.spent is not None:
            return self.host.status.spent
        outcomes = self.host.arrivals.outcomes.values()
        spent_on_items = sum(outcome.usage.spent for outcome in outcomes)
        return spent_on_items + self.host.status.judges_usage.spent

    @property
    def sent(self) -> dict[str, object]:
        """What tells each model's requests, or a user's own words, from others; no keys."""
        sent: dict[str, object] = {}
        for text, model in self.connected.models.items():
            sent[text] = dict(model.identity)
        rules = [member.rules for member in parse_judges(self.options.judges).members]
        if LEXICAL in rules:
            for name, file in own_files().items():
                sent[f"{LEXICAL}:{name}"] = {"words": file_hash(file)[:12]}
        return sent

    def open(
        self, store: Path | None, early: EngineProcess | None, *, ahead: bool
    ) -> OutcomeSource:
        """Prepare the engine, in its own process if possible; return where tests here wait.

        Outcomes go into the file ``store`` for workers. ``early`` is a process that was
        started for this engine. With ``ahead`` all items may be asked before their tests.
        """
        items = list(self.plan.items)
        labelled = self.calibrator.select(items)
        # Needed where no test is collected of a labelled data set that is planned.
        spare = self.calibrator.tasks.keys() - labelled
        schedule = Schedule(
            [*labelled, *items, *sorted(spare)],
            self._items_ahead(everything=ahead),
            trial=UNLIMITED if self.options.batch else TRIAL_ITEMS,
            head_start=0,
        )
        specs = [] if self.options.replay else list(self.connected.specs.values())
        tasks = {**self.tasks, **self.calibrator.tasks}
        job = Job(
            make=partial(
                _make_engine,
                tasks,
                self._session,
                self.stopping,
                _parts_of(self.plan),
            ),
            schedule=schedule,
            models=tuple(self.connected.models.values()),
            prepare=partial(load, specs),
            store=store,
        )
        self.host = begin(job, early)
        self.tasks = {}  # the engine has them; this side needs the memory
        return self.host.arrivals

    def _items_ahead(self, *, everything: bool) -> int:
        """Return how many items the engine may be ahead of the tests; a batch takes all."""
        if everything or self.options.batch:
            return len(self.plan.items)
        return max(MIN_ITEMS_AHEAD, ITEMS_AHEAD_PER_CALL * self.options.concurrency)

    def lead(self, *, with_workers: bool) -> None:
        """Begin before the tests are collected; return when the first call goes out."""
        if self.options.batch:
            return
        self.host.allow_head_start(HEAD_START_PER_CALL * self.options.concurrency)
        if with_workers:
            self.host.wait_until_ready()

    def start(self, keys: Sequence[str]) -> None:
        """Work on these items, in the plan's order if it is fixed, after the labelled ones."""
        self._is_started = True
        if self.has_fixed_order:
            chosen = set(keys)
            keys = [key for key in self.plan.items if key in chosen]
        labelled = self.calibrator.select(keys)
        self.host.select([*labelled, *keys], len(labelled))

    def note_end(self, code: int) -> None:
        """Note in the ledger that this process has decided, if ``code`` says so.

        Until that is noted, the same command goes on with the run.
        """
        run = self.host.status.run
        if code not in DECIDED or run == NO_RUN or self.options.replay:
            return
        with suppress(QAError), Ledger(self.options.ledger) as ledger:
            end_run(ledger, self.process, run, time.time(), code)

    @property
    def is_judge_measured(self) -> bool:
        """Whether the judge is measured, or will not be."""
        if not self._is_started or not self.host.is_alive:
            return True
        if rules_of(" ".join(self.options.judges)):
            return False  # the engine ends by itself, once it has checked the rules
        return self.calibrator.is_complete(self.host.arrivals.outcomes)


def _verdicts_by_people(
    options: RunOptions, plan: Plan
) -> "tuple[Adjudications, AuditPlan]":
    """Return people's verdicts, and which pairs they were to look at. Raises UsageError."""
    files = _adjudication_files(options, plan)
    if not files:
        return {}, {}
    from qagate.cases.adjudication_files import load_people  # noqa: PLC0415  # few runs have any
    from qagate.reports.run.audit_plan import load_plan  # noqa: PLC0415

    audit_plan: AuditPlan = {}
    for file in files:
        audit_plan = {**audit_plan, **load_plan(file)}
    return load_people(files), audit_plan


def _adjudication_files(options: RunOptions, plan: Plan) -> list[Path]:
    """Return the files of people's verdicts: the one given, else those beside the data sets."""
    if options.adjudications_off:
        return []
    if options.adjudications:
        return [options.adjudications]
    folders = dict.fromkeys(dataset.folder for dataset in plan.datasets)
    files = [folder / ADJUDICATIONS_FILE for folder in folders]
    return [file for file in files if file.is_file()]


def _earlier_runs(options: RunOptions) -> "tuple[Baseline | None, Baseline | None]":
    """Return the baseline and the anchor. Raises UsageError for a run that may be none."""
    if options.baseline is None and options.anchor is None:
        return None, None
    from qagate.reports.run.baseline import load_baseline  # noqa: PLC0415  # not at the start of every run

    baseline = None
    anchor = None
    if options.baseline:
        baseline = load_baseline(options.baseline)
        _check_may_decide(options, baseline)
    if options.anchor:
        anchor = load_baseline(options.anchor, "anchor")
        _check_may_decide(options, anchor)
    return baseline, anchor


def _check_may_decide(options: RunOptions, earlier: "Baseline") -> None:
    """Raise UsageError for an earlier run that may decide nothing about this one."""
    if options.gates_off or earlier.anyway:
        return
    from qagate.reports.run.decisions import why_no_baseline  # noqa: PLC0415  # as above
    from qagate.reports.run.known_decisions import known_here  # noqa: PLC0415

    known = known_here(options.here, options.report_dir, options.ledger)
    why = why_no_baseline(earlier.report, known)
    if why:
        raise UsageError(
            f"--{earlier.role}: {earlier.path}: {why}; `qagate compare` shows what changed all the "
            "same, and `qagate promote NAME RUN --anyway REASON` makes it a baseline that says so"
        )


def _check_monitor(
    options: RunOptions, baseline: "Baseline | None", connected: RunModels
) -> None:
    """Raise UsageError for ``--monitor`` of another model than the baseline's."""
    if not options.monitor or baseline is None:
        return
    from qagate.reports.run.json_data import inner, ordered  # noqa: PLC0415  # few runs monitor

    former = baseline.report.model
    sent_then = inner(baseline.report.provenance, "sent", former)
    sent_now: Mapping[str, object] = {}
    if connected.model is not None:
        sent_now = ordered(connected.model.identity)
    asked_then = asked_spec(former, sent_then)
    asked_now = asked_spec(options.model, sent_now)
    if asked_now != asked_then:
        raise UsageError(
            f"--monitor: looks at the baseline's own model, {asked_then}; this run's is "
            f"{asked_now}: leave --monitor out, or give --model {former}"
        )
    then = sent_then.get("parameters")
    now = sent_now.get("parameters")
    if then != now:
        raise UsageError(
            f"--monitor: the parameters of {former} are not the baseline's: {now} in place of "
            f"{then}; leave --monitor out, or restore them in the models file"
        )


def _planned_slices(plan: Plan) -> list[str]:
    """Return the names of the slices of which items are planned."""
    return list(dict.fromkeys(item.slice.name for item in plan.items.values()))


def _earlier_answers(
    plan: Plan, earlier: "Sequence[Baseline | None]"
) -> tuple[EarlierAnswers, ...]:
    """Return what the earlier runs that there are answered to the items of a plan."""
    runs = [baseline for baseline in earlier if baseline is not None]
    if not runs:
        return ()
    from qagate.reports.run.earlier_answers import answers_to  # noqa: PLC0415  # with a baseline only

    return tuple(answers_to(plan, run) for run in runs)


def _call_settings(options: RunOptions, process: RunProcess) -> CallSettings:
    """Return how models are asked."""
    return CallSettings(
        ledger=options.ledger,
        concurrency=options.concurrency,
        rpm=options.rpm,
        deadline=options.deadline,
        max_cost=options.max_cost,
        spending=spending_name(process, options.choice.shard),
        process=process,
        beside=_judge_replies(options),
        replay=options.replay,
        fresh=options.fresh,
        transcripts=not options.no_transcripts,
    )


def _negotiated_of(baseline: "Baseline | None") -> Mapping[str, Negotiated]:
    """Return how the baseline's models were written to, by SPEC, so that its grades serve."""
    if baseline is None:
        return {}
    from qagate.reports.run.json_data import inner  # noqa: PLC0415  # with a baseline only

    known = inner(baseline.report.provenance, "negotiated")
    return {spec: negotiated_of(data) for spec, data in known.items()}


def _judge_replies(options: RunOptions) -> tuple[Path, ...]:
    """Return the files in which the judge's replies of earlier runs may be."""
    runs = [run for run in (options.baseline, options.anchor) if run is not None]
    return tuple(folder_of(run) / JUDGE_REPLIES for run in runs)


def _find_batches(options: RunOptions, caller: Caller) -> CallRoute | None:
    if not options.batch and not caller.ledger.documents(BATCH):
        return None
    find = doors.load_call_route("batches")  # brings aiohttp along
    return find(caller, begins=options.batch, wait=options.batch_wait)


def _make_engine(
    tasks: dict[str, Task],
    session: CallSession,
    stopping: Stopping | None,
    parts: int,
    writer: OutcomeWriter,
) -> Engine:
    """Build the engine in its own process; an open ledger cannot be pickled.

    The run is one of so many ``parts``, which share the checks of rules before a model.
    """
    settings = session.settings
    ledger = session.open_ledger()
    caller = session.caller(ledger, run=_begin_run(session, ledger))
    return Engine(
        tasks,
        caller,
        writer,
        settings.concurrency,
        stopping,
        checked_answers=checks_in_part(parts),
    )


def _parts_of(plan: Plan) -> int:
    """Return into how many shards a plan is parted."""
    return plan.shard.of if plan.shard is not None else 1


def _begin_run(session: CallSession, ledger: Ledger) -> RunIdentity:
    """Return the run that this process belongs to; the last one of its name in a replay."""
    process = session.settings.process
    if process is None or not session.models:
        return NO_RUN
    with suppress(LedgerError):  # the first call reports it
        if session.settings.replay:
            last = last_run(ledger, process.name)
            return NO_RUN if last is None else last.identity
        return begin_run(ledger, process, time.time(), _open_batches(ledger))
    return NO_RUN


def _open_batches(ledger: Ledger) -> frozenset[str]:
    """Return the ids of the runs of which a provider still has calls."""
    if not ledger.documents(BATCH):
        return frozenset()
    open_runs = doors.load_open_runs("batches")  # brings aiohttp along
    return open_runs(ledger)
