"""The steps from articles to a dataset: what a step is, its calls to models, and doing them all."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import dropwhile
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from qagate.cases.extras.builder import work_folder
from qagate.cases.extras.builder.recipe import Recipe
from qagate.cases.extras.builder.rules import question_only
from qagate.cases.extras.builder.work_folder import (
    BuildError,
    DraftItem,
    Items,
    Say,
    Values,
    WorkFolder,
    kept,
)
from qagate.evaluators.core import (
    Ask,
    CallError,
    Model,
    RefusedError,
    Usage,
    UsageError,
)
from qagate.evaluators.ledger.place import LedgerPlace
from qagate.evaluators.models import connect
from qagate.evaluators.models.catalogue import load_catalogue
from qagate.evaluators.models.keys import read_key_names, require_key
from qagate.evaluators.models.spec import Spec, check_judge, parse
from qagate.evaluators.number_text import money
from qagate.evaluators.runtime.caller import Caller, CallSettings
from qagate.evaluators.runtime.session import CallSession, ask_each

MANY_JOBS = 50  # from which progress is shown in tenths
DISPUTED = (
    "conflict",
    "against_answer",
)  # reasons of items that another person must look at
STEPS = (
    "sample",
    "generate",
    "check",
    "validate",
    "probe",
    "review",
    "accept",
    "freeze",
)
"""All steps; each takes the kept items of the one before it."""
BY_PEOPLE = (
    "review",
    "accept",
    "freeze",
)  # steps that are done only if the user names them
Role = Literal["generator", "validator"]
"""A model's part in a build; its name is also the key of that model in a step's settings."""
T = TypeVar("T")
AskingJob = Callable[[Ask], Awaitable[T]]
"""One piece of work that asks; its result must follow from the replies alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """What the user said; what may also stand in the recipe is empty if it was not said here."""

    step: str
    files: Sequence[Path]
    """What reviewers sent back."""
    recipe: Path | None
    language: str | None
    folder: Path | None
    generator: str | None
    validator: str | None
    reviewers: Sequence[str]
    unreviewed: bool
    """Ask nobody, or keep what too few people have seen."""
    to: str | None
    run: Sequence[tuple[str, Path]]
    """Models that are compared: name and report folder."""
    ledger: LedgerPlace
    concurrency: int
    rpm: int | None
    key_env: Sequence[str]
    models: Path | None
    max_cost: float | None
    """In USD."""
    deadline: float | None
    """In seconds."""
    replay: bool
    leave_out_failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What every step of one command works with."""

    options: BuildOptions
    recipe: Recipe
    folder: WorkFolder
    say: Say

    # Each of these is what the command line says, else the recipe, else what the step was
    # done with; empty if none of them says anything.

    def model_name(self, role: Role, step: str) -> str:
        """Return the SPEC of the model that has a role in a step."""
        if role == "generator":
            given = self.options.generator or self.recipe.build.generator
        else:
            given = self.options.validator or self.recipe.build.validator
        return str(given or self.folder.options(step).get(role) or "")

    def reviewers(self) -> list[str]:
        """Return the names of those who review."""
        given = self.options.reviewers or self.recipe.build.reviewers
        return list(given or self.folder.options("review").get("reviewers") or ())

    def destination(self) -> str:
        """Return the folder of the frozen dataset."""
        given = self.options.to or self.recipe.build.to
        return str(given or self.folder.options("freeze").get("to") or "")

    def model(self, role: Role, text: str) -> Spec:
        """Return the model that a SPEC names. Raises UsageError that names its role."""
        try:
            return check_judge(parse(text, load_catalogue(own=self.options.models)))
        except UsageError as problem:
            raise UsageError(f"--{role}: {problem}") from None


@dataclass(slots=True, kw_only=True)
class StepCalls:
    """The calls of one step to one model."""

    caller: Caller
    say: Say
    used: Usage = field(default_factory=Usage)

    async def ask_all(
        self, name: str, jobs: Sequence[AskingJob[T]]
    ) -> list[T | CallError]:
        """Return each job's result, or the CallError that ended it, in the order of the jobs."""
        parts, done = 10 if len(jobs) >= MANY_JOBS else 1, 0

        def ended(usage: Usage) -> None:
            nonlocal done
            done += 1
            self.used += usage
            if parts * done // len(jobs) > parts * (done - 1) // len(jobs):
                self.say(f"{name}: {done} of {len(jobs)}")

        return await ask_each(self.caller, jobs, ended)

    async def ask_items(
        self, name: str, items: Items, job: Callable[..., Awaitable[DraftItem]]
    ) -> list[DraftItem]:
        """Return each item as ``job`` leaves it: refused ones dropped, failed ones pending."""
        done, jobs = [], [partial(job, item) for item in items]
        for item, result in zip(items, await self.ask_all(name, jobs), strict=True):
            if isinstance(result, RefusedError):
                done.append(item.dropped(result.kind, f"{result}"))
            elif isinstance(result, CallError):
                done.append(item.pending(result.kind, f"{result}"))
            else:
                done.append(result)
        return done


class ModelCalls:
    """The calls of one command, with one deadline and budget. Raises UsageError without a key."""

    def __init__(self, options: BuildOptions, specs: Sequence[Spec], say: Say) -> None:
        self._say = say
        by_text = {spec.text: spec for spec in specs}
        key_names = read_key_names(options.key_env)
        models = {}
        for text, spec in by_text.items():
            key = None if options.replay else require_key(spec, key_names)
            models[text] = connect(spec, key)
        settings = CallSettings(
            ledger=options.ledger,
            concurrency=options.concurrency,
            rpm=options.rpm,
            deadline=options.deadline,
            max_cost=options.max_cost,
            replay=options.replay,
        )
        self._session = CallSession(models, by_text, settings)

    def run(
        self, name: str, spec: Spec, work: Callable[[Model, StepCalls], Awaitable[T]]
    ) -> T:
        """Return what ``work`` makes of a model; all paid replies are in the ledger then."""

        async def metered(caller: Caller) -> T:
            calls = StepCalls(caller=caller, say=self._say)
            try:
                return await work(self._session.models[spec.text], calls)
            finally:
                used, paid, cost = calls.used, "", "at an unknown price"
                if used.cost is not None:
                    paid, cost = f" for {money(used.spent)}", money(used.cost)
                sent = f"{caller.sender.requests} requests sent{paid}"
                tokens = f"{used.input_tokens + used.output_tokens:,} tokens"
                self._say(f"{name}: {sent}; all replies: {tokens}, {cost}")
                for line in caller.ledger.notes:
                    self._say(line)

        return self._session.run(metered)


class BuildStep(ABC):
    """One step, with the settings that decide its result, ``values``: they must stay the same."""

    name: ClassVar[str]
    help: ClassVar[str]
    models: ClassVar[tuple[Role, ...]] = ()
    """Which of its settings are SPECs of models."""
    renewed: ClassVar[bool] = False
    """Asks no model, and is done again when its settings changed."""

    def __init__(self, build: Build) -> None:
        self.build = build
        self.values = dict(self.settings())
        folder = build.folder
        before = {} if self.renewed else folder.options(self.name)
        for name, value in self.values.items() if before else ():
            if before.get(name) != value:
                what = f"made with another {name} ({before.get(name)!r:.80}, now {value!r:.80})"
                advice = "give the same, take another --folder, or delete that file"
                raise UsageError(f"{folder.file(self.name)}: {what}; {advice}")

    @abstractmethod
    def settings(self) -> Values:
        """Return the settings of the step. Raises UsageError if one is missing or wrong."""

    @abstractmethod
    def work(self, items: Items, calls: ModelCalls) -> list[DraftItem]:
        """Return the items as the step leaves them. Raises BuildError if it cannot be done."""

    def finish(self, report: Values) -> None:  # noqa: B027  # most steps have nothing to add
        """Write the step's other files; every run does it again."""

    def named(self, role: Role, step: str = "") -> str:
        """Return the SPEC of a model. Raises UsageError if none was given, now or before."""
        spec = self.build.model_name(role, step or self.name)
        if spec:
            return spec
        needed = "the model that writes"
        if role == "validator":
            needed = "a model of another provider"
        raise UsageError(
            f"build: {self.name}: name {needed}: --{role} provider:NAME, "
            f"or the recipe's key 'build: {role}'"
        )

    def spec(self, role: Role) -> Spec:
        """Return the model of a role."""
        return self.build.model(role, self.values[role])

    @property
    def is_done(self) -> bool:
        """Whether the step and all before it are made, and nothing is left to do."""
        folder, name = self.build.folder, self.name
        same = not self.renewed or folder.options(name) == self.values
        same = same and name in made_steps(folder)
        return same and all(item.state != "pending" for item in folder.read(name))


def run_steps(build: Build, steps: Sequence[type[BuildStep]]) -> Values:
    """Do these steps as far as needed; return the report. Raises UsageError before any is done."""
    made = [step(build) for step in steps]
    # Only the models from the first unfinished step on are connected to.
    left = dropwhile(lambda step: step.is_done, made)
    specs = [
        step.spec(role)
        for step in left
        for role in step.models
        if step.values.get(role)
    ]
    calls = ModelCalls(build.options, specs, build.say)
    for step in made:
        name, folder = step.name, build.folder
        if step.is_done:
            build.say(f"{summary(name, folder.read(name))} (done before)")
            step.finish(write_report(build))
            continue
        source, taken = "", list[DraftItem]()
        if name != STEPS[0]:
            before = STEPS[STEPS.index(name) - 1]
            if before not in made_steps(folder):
                what = f"{name} comes after {before}, which is not done; run `{before}` first"
                raise UsageError(f"build: {what}")
            record = folder.record(before)
            assert record is not None  # it is among the made steps
            source, taken = record.output, folder.read(before)
            check_finished(before, taken)
        items = step.work(kept(taken), calls)
        if step.models and build.options.leave_out_failed:
            items = work_folder.drop_failed(items)
        folder.publish(name, items, step.values, source)
        build.say(summary(name, items))
        step.finish(write_report(build))
        check_finished(name, items)
    return write_report(build)


def made_steps(folder: WorkFolder) -> list[str]:
    """Return the steps up to the first that is not made, or made from older rows."""
    found, source = list[str](), ""
    for name in STEPS:
        record = folder.record(name)
        if record is None or record.input != source:
            break
        found.append(name)
        source = record.output
    return found


def check_finished(step: str, items: Items) -> None:
    """Raise BuildError, with what to do next, if items of a step are pending, or all dropped."""
    pending = [item for item in items if item.state == "pending"]
    if items and not pending and not kept(items):
        raise BuildError(
            f"{summary(step, items)}: none is left; change the recipe or the sources"
        )
    if not pending:
        return
    why = next((item for item in pending if item.reason != "stopped"), pending[0])
    advice = "run the command again to go on"
    if why.reason in DISPUTED:
        advice = "run accept with that person's file"
    elif step in BY_PEOPLE:
        advice = "run accept with the files that are still out, or with --unreviewed"
    elif why.reason in work_folder.FAILURES:
        advice += "; --leave-out-failed drops what fails every time"
    raise BuildError(
        f"{step}: {len(pending)} items are not done ({why.detail}); {advice}"
    )


def write_report(build: Build) -> Values:
    """Return, and write to ``report.json``, the counts of all steps made so far."""
    steps = {step: build.folder.read(step) for step in made_steps(build.folder)}
    left = kept(list(steps.values())[-1]) if steps else []
    answered = [item for item in left if item.answer]
    last: dict[str, str] = {}  # of each sampled item, at the last step that it reached
    for step, items in steps.items():
        for item in items:
            word = "kept by" if item.state == "kept" else f"{item.state} at"
            last[item.id] = f"{word} {step}" + (
                f": {item.reason}" if item.reason else ""
            )
    found = {
        "steps": {step: _counts(items) for step, items in steps.items()},
        "final": dict(sorted(Counter(last.values()).items())),
        "items": len(last),
        "answers": dict(sorted(Counter(item.answer for item in answered).items())),
        "sources": dict(sorted(Counter(item.origin.group for item in left).items())),
        "licences": dict(sorted(Counter(item.origin.licence for item in left).items())),
        "question_only": question_only(answered, build.recipe.question.negations),
    }
    build.folder.write_json(work_folder.REPORT, found)
    return found


def _counts(items: Items) -> dict[str, Any]:
    found: dict[str, Any] = {"in": len(items)}
    for state in ("kept", "dropped", "pending"):
        reasons = Counter(item.reason for item in items if item.state == state)
        found[state] = reasons.total()
        if reasons and state != "kept":
            found[f"{state}_why"] = dict(sorted(reasons.items()))
    return found


def summary(step: str, items: Items) -> str:
    """Return one line about a step."""
    counts = _counts(items)
    parts = [f"{counts['in']} in, {counts['kept']} kept"]
    for state in ("dropped", "pending"):
        if why := Counter(counts.get(f"{state}_why", {})):
            listed = ", ".join(
                f"{reason} {count}" for reason, count in why.most_common()
            )
            parts.append(f"{why.total()} {state} ({listed})")
    return f"{step}: {', '.join(parts)}"
