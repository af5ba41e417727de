"""What a step of the way from articles to a dataset is, and the calls to models that it makes."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from cases.builder.build_options import Options
from cases.builder.recipe import Recipe
from cases.builder.work_folder import Folder, Item, Say, Values
from evaluators.core import Ask, CallError, Model, RefusedError, UsageError
from evaluators.models import connect
from evaluators.models.catalogue import load_catalogue
from evaluators.models.keys import read_key_names, require_key
from evaluators.models.spec import Spec, check_judge, parse
from evaluators.output import StepProgress
from evaluators.runtime.budget import money
from evaluators.runtime.calls import Caller
from evaluators.runtime.sender import CallSettings
from evaluators.runtime.session import CallSession, ask_each
from evaluators.usage import Usage

MANY = 50  # jobs
T = TypeVar("T")
Job = Callable[[Ask], Awaitable[T]]
"""One piece of work that asks; its result must follow from the replies alone."""


@dataclass(slots=True, kw_only=True)
class StepCalls:
    """The calls of one step to one model."""

    caller: Caller
    say: Say
    usages: list[Usage] = field(default_factory=list)

    @property
    def spent(self) -> str:
        """What the calls took, in a few words."""
        tokens = sum(one.input_tokens + one.output_tokens for one in self.usages)
        costs = [one.cost for one in self.usages if one.cost is not None]
        sent = f"{self.caller.sender.requests} requests sent"
        if len(costs) < len(self.usages):
            return f"{sent}; all replies: {tokens:,} tokens, at an unknown price"
        paid = money(sum(one.spent for one in self.usages))
        return f"{sent} for {paid}; all replies: {tokens:,} tokens, {money(sum(costs))}"

    async def ask_all(self, name: str, jobs: Sequence[Job[T]]) -> list[T | CallError]:
        """Return each job's result, or the CallError that ended it, in the order of the jobs.

        Cancelled, it waits a moment for what is in flight.
        """
        progress = StepProgress(self.say, parts=10 if len(jobs) >= MANY else 1)

        def ended(usage: Usage) -> None:
            self.usages.append(usage)
            done = len(self.usages) - before
            progress.show(f"{name}: {done} of {len(jobs)}", done, len(jobs))

        before = len(self.usages)
        return await ask_each(self.caller, jobs, ended)

    async def ask_items(
        self, name: str, items: Sequence[Item], jobs: Sequence[Job[Item]]
    ) -> list[Item]:
        """Return each item as its job leaves it: dropped where its text is refused, else pending.

        Pending is what another run may get.
        """
        done = []
        for item, result in zip(items, await self.ask_all(name, jobs), strict=True):
            if isinstance(result, RefusedError):
                done.append(item.dropped(result.kind, f"{result}"))
            elif isinstance(result, CallError):
                done.append(item.pending(result.kind, f"{result}"))
            else:
                done.append(result)
        return done


Work = Callable[[Model, StepCalls], Awaitable[T]]
"""What a step does with a model."""


class ModelCalls:
    """The calls of one command to models. Raises UsageError for a missing key or an unkept budget.

    ``specs`` are all models that may be asked. The deadline and the budget hold for all steps
    together.
    """

    def __init__(self, options: Options, specs: Sequence[Spec], say: Say) -> None:
        self._say = say
        by_text = {spec.text: spec for spec in specs}
        names = read_key_names(options.key_env)
        models = {
            text: connect(spec, None if options.replay else require_key(spec, names))
            for text, spec in by_text.items()
        }
        settings = CallSettings(
            ledger=options.ledger,
            concurrency=options.concurrency,
            rpm=options.rpm,
            deadline=options.deadline,
            max_cost=options.max_cost,
            replay=options.replay,
        )
        self._session = CallSession(models, by_text, settings)

    def run(self, name: str, spec: Spec, work: Work[T]) -> T:
        """Return what ``work`` makes of a model; all replies that were paid for are then kept."""

        async def metered(caller: Caller) -> T:
            calls = StepCalls(caller=caller, say=self._say)
            try:
                return await work(self._session.models[spec.text], calls)
            finally:
                for line in (f"{name}: {calls.spent}", *caller.ledger.notes):
                    self._say(line)

        return self._session.run(metered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What one command works with."""

    options: Options
    recipe: Recipe
    folder: Folder
    say: Say


class Step(ABC):
    """One step, with the options that it works with here, its ``values``.

    ``after`` is the step whose kept items it takes, empty for the first. ``models`` names those of
    its options that are SPECs. A step ``by_people`` is done only where the user names it. One that
    is ``renewed`` asks no model, and is made again where its options changed.
    """

    name: ClassVar[str]
    help: ClassVar[str]
    after: ClassVar[str] = ""
    models: ClassVar[tuple[str, ...]] = ()
    by_people: ClassVar[bool] = False
    renewed: ClassVar[bool] = False

    def __init__(self, build: Build) -> None:
        self.build = build
        self.values = self.settle()

    @abstractmethod
    def settle(self) -> Values:
        """Return the options of the step. Raises UsageError where one is missing or wrong."""

    @abstractmethod
    def work(self, items: Sequence[Item], calls: ModelCalls) -> list[Item]:
        """Return the items as the step leaves them. Raises BuildError where it cannot be done."""

    def record(self) -> Values:
        """Return what settings.json is to say of the step."""
        return self.values

    def finish(self, report: Values) -> None:  # noqa: B027  # most steps have nothing to add
        """Write what belongs outside of the step's file; done again in every run."""

    def remembered(self, **defaults: object) -> dict[str, Any]:
        """Return each option as given, else as the step was made with, else its default."""
        before, options = self._before(), self.build.options
        given = {name: getattr(options, name) for name in defaults}
        return {
            name: before.get(name, default) if given[name] is None else given[name]
            for name, default in defaults.items()
        }

    def fixed(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values. Raises UsageError where the step was made with others."""
        before = self._before()
        for name, value in values.items() if before else ():
            if before.get(name) != value:
                raise UsageError(
                    f"{self.build.folder.file(self.name)}: made with another {name} "
                    f"({before.get(name)!r:.80}, now {value!r:.80}); give the same, take another "
                    "--folder, or delete that file"
                )
        return values

    def _before(self) -> Values:
        folder = self.build.folder
        return folder.options(self.name) if folder.made(self.name) else {}

    @property
    def sample_seed(self) -> int:
        """The seed that the sample was made with: the default of later steps."""
        seed: int = self.build.folder.options("sample").get("seed", 1)
        return seed

    @staticmethod
    def need(option: str, values: Values, advice: str) -> None:
        """Raise UsageError where an option was neither given now nor before."""
        if not values[option]:
            raise UsageError(f"build: {advice}")

    def spec(self, option: str) -> Spec:
        """Return the model that an option names."""
        return parse_model(option, self.values[option], self.build.options.models)

    @property
    def specs(self) -> list[Spec]:
        """The models that it may ask with these options."""
        return [self.spec(option) for option in self.models if self.values.get(option)]


def parse_model(option: str, text: str, models: Path | None) -> Spec:
    """Return the model that an option names, also one of the user's own file of ``models``.

    Raises UsageError that names the option.
    """
    try:
        return check_judge(parse(text, load_catalogue(own=models)))
    except UsageError as problem:
        raise UsageError(f"--{option.replace('_', '-')}: {problem}") from None
