"""The engine of a run with its models and ledger; everything is checked before the first call."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from qagate.cases.dataset import Plan, Shards
from qagate.cases.tasks import make_tasks
from qagate.evaluators import doors
from qagate.evaluators.adjudications import ADJUDICATIONS_FILE, Adjudications
from qagate.evaluators.core import (
    LEXICAL,
    RECORDED,
    Model,
    PanelSpec,
    UsageError,
    parse_judges,
)
from qagate.evaluators.judges.factory import (
    JudgeFactory,
    address,
    check_panel,
    resolve_judges,
)
from qagate.evaluators.languages.word_lists import own_files
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.models import connect, load
from qagate.evaluators.models.catalogue import load_catalogue, replaced_entries
from qagate.evaluators.models.keys import require_key
from qagate.evaluators.models.spec import Spec, parse
from qagate.evaluators.reading import file_hash
from qagate.evaluators.runtime.budget import BATCH, BUDGET
from qagate.evaluators.runtime.caller import DEADLINE, Caller, CallRoute, CallSettings
from qagate.evaluators.runtime.engine import Engine, Job, Stopping, Task
from qagate.evaluators.runtime.outcomes import (
    EngineHandle,
    OutcomeSource,
    OutcomeWriter,
)
from qagate.evaluators.runtime.process import EngineProcess, begin
from qagate.evaluators.runtime.schedule import UNLIMITED, Schedule
from qagate.evaluators.runtime.session import CallSession
from qagate.evaluators.text import digest
from qagate.reports.plugin.calibrator import Calibrator, find_labelled
from qagate.reports.plugin.options import RunOptions

if TYPE_CHECKING:
    from qagate.reports.run.baseline import Baseline
    from qagate.reports.run.evidence import AuditPlan

WINDOW_PER_CALL = (
    4  # how far ahead of the tests the engine may work, per call in flight
)
SMALLEST_WINDOW = 64
LEAD_PER_CALL = 16  # items started, per call in flight, before the tests are collected
# Under way until one has an outcome: so little is paid for if the judge's key is wrong.
FIRST_ITEMS = 4
USED_UP = (BUDGET, DEADLINE, BATCH)
"""Why a run ends before its items did where nothing is wrong: what the user allowed is used up."""

QA_RUN = "QA_RUN"  # the variable that names a run of several tasks: what they spend is added up
_CI_RUNS = ("GITHUB_RUN_ID", "CI_PIPELINE_ID")


class EngineRun:
    """The engine of a run, for UsageErrors too; without ``calling`` it needs no key or ledger."""

    host: EngineHandle
    """The opened engine."""

    def __init__(
        self, options: RunOptions, plan: Plan, root: Path, *, calling: bool
    ) -> None:
        self.options, self.plan = options, plan
        self.earlier = _earlier_runs(options)
        self.connected = connect_models(
            options, needs_key=calling and not options.replay
        )
        self.adjudications, self.audit_plan = _verdicts_by_people(options, plan)
        model, judges = self.connected.model, self.connected.judges
        self.tasks: Mapping[str, Task] = make_tasks(
            plan.items.values(), model, judges, self.adjudications
        )
        """The tasks by key; empty once the engine has them."""
        self.takes_extras = any(task.metric_runners for task in self.tasks.values())
        """Whether some answer gets extra metrics."""
        self.calibrator = Calibrator(
            plan, find_labelled(options, plan, root), judges, options
        )
        self.stopping: Stopping | None = None
        """What says which items need no longer be asked; a feature may set it."""
        models, find = self.connected.models, partial(_find_batches, options)
        settings = _call_settings(options)
        self._session = CallSession(
            models, self.connected.specs, settings, find_route=find
        )
        self.pricing = self._session.pricing
        """What each model's tokens cost, by SPEC; None where that is not known."""
        self._has_tests = False

    @property
    def has_fixed_order(self) -> bool:
        """Whether items are asked in the plan's order, and not as the tests come to them."""
        return self.stopping is not None

    @property
    def spent(self) -> float:
        """What the requests cost in USD, as far as prices are known."""
        spent, outcomes = self.host.status.spent, self.host.arrivals.outcomes.values()
        return sum(one.usage.spent for one in outcomes) if spent is None else spent

    @property
    def sent(self) -> dict[str, object]:
        """What tells each model's requests, or a user's own words, from others; no keys."""
        rules = [one.rules for one in parse_judges(self.options.judges).members]
        own = own_files() if LEXICAL in rules else {}
        return {
            **{
                text: dict(model.identity)
                for text, model in self.connected.models.items()
            },
            **{
                f"{LEXICAL}:{name}": {"words": file_hash(own[name])[:12]}
                for name in own
            },
        }

    def open(
        self, store: Path | None, early: EngineProcess | None, *, ahead: bool
    ) -> OutcomeSource:
        """Prepare the engine, in its own process if possible; return where tests here wait."""
        keys = list(self.plan.items)
        labelled = self.calibrator.select(keys)
        # Needed where no test is collected of a labelled data set that is planned.
        spare = self.calibrator.tasks.keys() - labelled
        ahead = ahead or self.options.batch  # a batch takes all
        window = max(SMALLEST_WINDOW, WINDOW_PER_CALL * self.options.concurrency)
        schedule = Schedule(
            [*labelled, *keys, *sorted(spare)],
            len(keys) if ahead else window,
            trial=UNLIMITED if self.options.batch else FIRST_ITEMS,
            head_start=0,
        )
        specs = () if self.options.replay else tuple(self.connected.specs.values())
        tasks = {**self.tasks, **self.calibrator.tasks}
        job = Job(
            make=partial(_make, tasks, self._session, self.stopping),
            schedule=schedule,
            models=tuple(self.connected.models.values()),
            prepare=partial(load, specs),
            store=store,
        )
        self.host = begin(job, early)
        self.tasks = {}  # the engine has them; this side needs the memory
        return self.host.arrivals

    def lead(self, *, with_workers: bool) -> None:
        """Begin before the tests are collected; return when the first call goes out."""
        if not self.options.batch:
            self.host.allow_head_start(LEAD_PER_CALL * self.options.concurrency)
            if with_workers:
                self.host.wait_until_ready()

    def start(self, keys: Sequence[str]) -> None:
        """Work on these items, in the plan's order if it is fixed, after the labelled ones."""
        self._has_tests = True
        if self.has_fixed_order:
            chosen = set(keys)
            keys = [key for key in self.plan.items if key in chosen]
        labelled = self.calibrator.select(keys)
        self.host.select([*labelled, *keys], len(labelled))

    @property
    def is_judge_measured(self) -> bool:
        """Whether the judge is measured, or will not be."""
        if not (self._has_tests and self.host.is_alive):
            return True
        return self.calibrator.is_complete(self.host.arrivals.outcomes)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunModels:
    """Who answers and who judges."""

    model: Model | None
    """None means the recorded answers."""
    judges: JudgeFactory
    models: Mapping[str, Model]
    """All connections, by SPEC."""
    specs: Mapping[str, Spec]
    replaced: str
    """Which bundled names ``--models`` has too; empty without any."""


def connect_models(options: RunOptions, *, needs_key: bool) -> RunModels:
    """Return a run's models and judges; ``needs_key`` False reads no key. Raises UsageError."""
    judges = parse_judges(options.judges)
    answers = options.model != RECORDED
    needed = (
        answers or judges.models() or options.models
    )  # a file is checked, needed or not
    catalogue = load_catalogue(own=options.models) if needed else {}
    if shard := options.choice.shard:
        catalogue = {name: _of_shard(spec, shard) for name, spec in catalogue.items()}
    answering = parse(options.model, catalogue) if answers else None
    judging = resolve_judges(judges, catalogue)
    _check(options, answering, judges, judging)
    check_panel(judges, judging)
    specs = {
        spec.text: spec
        for spec in (*([answering] if answering else []), *judging.values())
    }
    models = {
        text: connect(spec, require_key(spec, options.key_names) if needs_key else None)
        for text, spec in specs.items()
    }
    own, seed = {text: models[text] for text in judging}, options.choice.seed
    factory = JudgeFactory(spec=judges, models=own, specs=judging, seed=seed)
    model = models[answering.text] if answering else None
    replaced = replaced_entries(options.models)
    return RunModels(
        model=model, judges=factory, models=models, specs=specs, replaced=replaced
    )


def _of_shard(spec: Spec, shard: Shards) -> Spec:
    """Return a model with this shard's share of its limits."""
    return replace(
        spec,
        concurrency=_share_of(spec.concurrency, shard),
        rpm=_share_of(spec.rpm, shard),
        tpm=_share_of(spec.tpm, shard),
    )


def _share_of(limit: int | None, shard: Shards) -> int | None:
    """Return a shard's share of a limit; None, which is no limit, stays None."""
    return None if limit is None else shard.share(limit)


def _check(
    options: RunOptions,
    answering: Spec | None,
    judges: PanelSpec,
    judging: dict[str, Spec],
) -> None:
    if answering is None and options.choice.prompts:
        raise UsageError(
            "--prompt: the recorded answers need no prompt; name a --model"
        )
    for one in judges.members:
        same = (
            answering
            and one.model
            and address(answering) == address(judging[one.model])
        )
        if same and not options.allow_self_judge:
            what = "is the model under test; name another judge, or give --allow-self-judge"
            raise UsageError(f"--judge {one.name} {what}")


def _verdicts_by_people(
    options: RunOptions, plan: Plan
) -> "tuple[Adjudications, AuditPlan]":
    """Return people's verdicts, and which pairs they were to look at. Raises UsageError."""
    folders = dict.fromkeys(dataset.folder for dataset in plan.datasets)
    files = [
        one for folder in folders if (one := folder / ADJUDICATIONS_FILE).is_file()
    ]
    files = [options.adjudications] if options.adjudications else files
    if options.adjudications_off or not files:
        return {}, {}
    from qagate.cases.adjudication_files import load_people  # noqa: PLC0415  # few runs have any
    from qagate.reports.run.audit_plan import load_plan  # noqa: PLC0415

    planned = {key: one for file in files for key, one in load_plan(file).items()}
    return load_people(files), planned


def _earlier_runs(options: RunOptions) -> "tuple[Baseline | None, Baseline | None]":
    """Return the baseline and the anchor. Raises UsageError if one cannot be read."""
    if options.baseline is None and options.anchor is None:
        return None, None
    from qagate.reports.run.baseline import load_baseline  # noqa: PLC0415  # not at the start of every run

    baseline = load_baseline(options.baseline) if options.baseline else None
    return baseline, load_baseline(options.anchor, "anchor") if options.anchor else None


def _call_settings(options: RunOptions) -> CallSettings:
    """Return how models are asked."""
    return CallSettings(
        ledger=options.ledger,
        concurrency=options.concurrency,
        rpm=options.rpm,
        deadline=options.deadline,
        max_cost=options.max_cost,
        run=_spending_name(options.choice.shard),
        replay=options.replay,
        fresh=options.fresh,
        transcripts=not options.no_transcripts,
    )


def _spending_name(shard: Shards | None) -> str:
    """Return the name by which a run's spending adds up; empty where it stands alone.

    QA_RUN names the run. Without it a shard is named by its CI run and command line, so
    that a repeated job goes on with the money that it has left.
    """
    parts = [os.environ.get(QA_RUN, "")]
    if shard and not parts[0]:
        ci_run = next(filter(None, map(os.environ.get, _CI_RUNS)), "")
        parts = [ci_run, *sys.argv]
    if not parts[0]:
        return ""
    shard_numbers = [shard.of, *shard.held] if shard else None
    return digest([*parts, shard_numbers])


def _find_batches(options: RunOptions, caller: Caller) -> CallRoute | None:
    if not options.batch and not caller.ledger.documents(BATCH):
        return None
    find = doors.load_call_route("batches")  # brings aiohttp along
    return find(caller, begins=options.batch, wait=options.batch_wait)


def _make(
    tasks: dict[str, Task],
    session: CallSession,
    stopping: Stopping | None,
    writer: OutcomeWriter,
) -> Engine:
    """Return the engine, in the process where it works: an open ledger cannot be sent there."""
    settings = session.settings
    ledger = Ledger(settings.ledger, read_only=settings.replay)
    return Engine(tasks, session.caller(ledger), writer, settings.concurrency, stopping)
