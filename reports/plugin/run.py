"""One run's machinery: models, ledger, engine; everything checked before the first call."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from cases.calibration import Labelled
from cases.plan import Plan
from cases.tasks import make_tasks
from evaluators.budget import BUDGET, budget_of
from evaluators.core import Outcome
from evaluators.engine import Engine, EngineThread, Settings
from evaluators.ledger import Ledger
from evaluators.limits.sender import DEADLINE
from evaluators.outcomes import Board
from evaluators.prices import cost_of, tariff_of
from evaluators.schedule import Schedule
from reports.evidence import Calibration
from reports.plugin.adjudications import adjudications_of
from reports.plugin.calibration import Calibrator, way_of
from reports.plugin.judges import connect_parties
from reports.plugin.options import Options
from reports.plugin.progress import Activity

WINDOW_PER_CALL = 4  # how far ahead of the tests the engine may work, per call in flight
SMALLEST_WINDOW = 64
FIRST_ITEMS = (
    4  # under way until one has an outcome: so little is paid for if the judge's key is wrong
)


class Run:
    """The engine of one run and what it needs. Raises UsageProblem for what the user got wrong.

    Without ``calling``, where tests are only listed, no key is asked for and the user's ledger
    stays closed.
    """

    def __init__(
        self,
        options: Options,
        plan: Plan,
        board: Path,
        *,
        calling: bool,
        labelled: Sequence[Labelled] = (),
    ) -> None:
        parties = connect_parties(options, needs_key=calling and not options.replay)
        self.adjudications = adjudications_of(options, plan)
        self.tasks = make_tasks(
            plan.items.values(), parties.model, parties.judge, self.adjudications
        )
        self._calibrator = Calibrator.of(plan, labelled, way_of(options), parties.judge)
        self._models = parties.models
        today = datetime.now(UTC).date()
        self._tariffs = {spec.text: tariff_of(spec, today) for spec in parties.specs}
        self.budget = budget_of(options.max_cost, parties.specs, self._tariffs)
        self._settings = Settings(
            concurrency=options.concurrency,
            window=max(SMALLEST_WINDOW, WINDOW_PER_CALL * options.concurrency),
            replay=options.replay,
            reask_invalid=options.reask_invalid,
            rpm=options.rpm,
            deadline=options.deadline,
            budget=self.budget,
        )
        ledger = options.ledger if calling else board.with_name("ledger")
        self._ledger = Ledger(ledger, read_only=options.replay and calling)
        self._board = Board(board)
        price = partial(cost_of, self._tariffs)
        tasks = {**self.tasks, **self._calibrator.tasks}
        self._engine = Engine(tasks, self._ledger, self._board, price, self._settings)
        self._schedule: Schedule | None = None
        self._thread: EngineThread | None = None

    @property
    def outcomes(self) -> Mapping[str, Outcome]:
        """How the items ended so far, by key."""
        return self._engine.outcomes

    @property
    def requests(self) -> int:
        """How many requests were sent to models."""
        return self._engine.requests

    @property
    def spent(self) -> float:
        """What those requests cost in USD, as far as prices are known."""
        if self.budget is not None:
            return self.budget.spent
        return sum(one.usage.spent for one in self.outcomes.values())

    @property
    def stopped(self) -> str:
        """The kind of what ended the run before its items did (budget, deadline), or nothing."""
        return next((kind for kind in (BUDGET, DEADLINE) if kind in self._engine.stops), "")

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The SPECs of the models whose price is not known."""
        return tuple(text for text, tariff in self._tariffs.items() if tariff is None)

    @property
    def activity(self) -> Activity:
        """What the engine is at, for whoever watches; may be read from any thread."""
        return Activity(
            requests=self._engine.requests,
            in_flight=self._engine.in_flight,
            limit=self._engine.limit,
            retried=self._engine.retried,
            waiting=self._engine.waiting,
        )

    @property
    def failure(self) -> str:
        """Why the engine had to stop, or nothing."""
        return self._engine.failure

    @property
    def takes_extras(self) -> bool:
        """Whether some answer gets measures beside its verdict."""
        return any(task.measurers for task in self.tasks.values())

    @property
    def ledger_notes(self) -> tuple[str, ...]:
        """What the report says of the ledger: damage, and who could have changed it."""
        return self._ledger.notes

    def start(self, keys: Sequence[str]) -> None:
        """Begin to work on these items, in this order, after those that measure the judge."""
        beside = self._calibrator.select(keys)
        self._schedule = Schedule(
            [*beside, *keys], self._settings.window, frozenset(beside), FIRST_ITEMS
        )
        self._thread = EngineThread(self._engine, self._schedule, self._models)
        self._thread.start()

    @property
    def is_judge_measured(self) -> bool:
        """Whether nothing is left to be waited for before the judge is known."""
        working = self._thread is not None and self._thread.is_alive
        return not working or self._calibrator.is_complete(self.outcomes)

    def calibrations(self) -> tuple[Calibration, ...]:
        """Return how far the judge can be believed in each language; once the engine is over."""
        return self._calibrator.calibrations(self.outcomes, self._ledger.get)

    def refuse(self, why: str) -> None:
        """Let no test wait: nothing will be asked."""
        self._board.end(why)

    def want(self, key: str) -> None:
        """Put an item first: its test is waiting."""
        if self._schedule is not None:
            self._schedule.want(key)

    def test_ended(self) -> None:
        """Let the engine work one item further ahead."""
        if self._schedule is not None:
            self._schedule.ended()

    def stop(self) -> None:
        """Start no further call; what is in flight may still arrive for a moment."""
        if self._thread is not None:
            self._thread.stop()

    def close(self) -> None:
        """Close the files."""
        self._board.close()
        self._ledger.close()
