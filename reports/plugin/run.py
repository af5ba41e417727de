"""One run's machinery: models, ledger, engine; everything checked before the first call."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from cases.plan import Plan
from cases.tasks import RULES, Rules, make_tasks
from evaluators.answerers import RECORDED
from evaluators.calls import Price
from evaluators.core import Model, Outcome, Reply, UsageProblem
from evaluators.engine import Engine, EngineThread, Settings
from evaluators.ledger import Ledger
from evaluators.models import connect
from evaluators.models.catalogue import load_catalogue
from evaluators.models.secrets import require_key
from evaluators.models.spec import Spec, parse
from evaluators.outcomes import Board
from evaluators.schedule import Schedule
from reports.plugin.options import Options

WINDOW_PER_CALL = 4  # how far ahead of the tests the engine may work, per call in flight
SMALLEST_WINDOW = 64


class Run:
    """The engine of one run and what it needs. Raises UsageProblem for what the user got wrong.

    Without ``calling``, for a dry run, no key is asked for and the user's ledger stays closed.
    """

    def __init__(self, options: Options, plan: Plan, board: Path, *, calling: bool) -> None:
        answering, judging = _specs(options)
        needs_key = calling and not options.replay
        model = _connect(answering, needs_key=needs_key) if answering else None
        judge = judging if isinstance(judging, Rules) else _connect(judging, needs_key=needs_key)
        self.tasks = make_tasks(plan.items.values(), model, judge)
        self._models = [one for one in (model, judge) if one and not isinstance(one, Rules)]
        self._settings = Settings(
            concurrency=options.concurrency,
            window=max(SMALLEST_WINDOW, WINDOW_PER_CALL * options.concurrency),
            replay=options.replay,
        )
        ledger = options.ledger if calling else board.with_name("ledger")
        self._ledger = Ledger(ledger, read_only=options.replay and calling)
        self._board = Board(board)
        price = _pricer([spec for spec in (answering, judging) if isinstance(spec, Spec)])
        self._engine = Engine(self.tasks, self._ledger, self._board, price, self._settings)
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
        return sum(one.usage.spent for one in self.outcomes.values())

    @property
    def failure(self) -> str:
        """Why the engine had to stop, or nothing."""
        return self._engine.failure

    @property
    def damaged(self) -> int:
        """How many rows of the ledger were damaged, set aside and asked again."""
        return self._ledger.damaged

    def start(self, keys: Sequence[str]) -> None:
        """Begin to work on these items, in this order."""
        self._schedule = Schedule(keys, self._settings.window)
        self._thread = EngineThread(self._engine, self._schedule, self._models)
        self._thread.start()

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


def _specs(options: Options) -> tuple[Spec | None, Spec | Rules]:
    if len(options.judges) > 1:
        msg = f"--judge: one judge at a time, got {', '.join(options.judges)}"
        raise UsageProblem(msg)
    model, judge = options.model, options.judges[0]
    catalogue = load_catalogue() if {model, judge} - {RECORDED, *RULES} else {}
    answering = None if model == RECORDED else parse(model, catalogue)
    if answering is None and options.choice.prompts:
        msg = "--prompt: the recorded answers need no prompt; name a --model"
        raise UsageProblem(msg)
    if judge in RULES:
        return answering, RULES[judge]
    try:
        judging = parse(judge, catalogue)
    except UsageProblem as problem:
        msg = f"--judge: {problem}; offline: {', '.join(RULES)}"
        raise UsageProblem(msg) from None
    same = answering is not None and _address(answering) == _address(judging)
    if same and not options.allow_self_judge:
        msg = (
            f"--judge {judge} is the model under test; name another judge, "
            "or give --allow-self-judge"
        )
        raise UsageProblem(msg)
    return answering, judging


def _address(spec: Spec) -> tuple[str, str, str]:
    return spec.provider, spec.base_url, spec.name


def _connect(spec: Spec, *, needs_key: bool) -> Model:
    return connect(spec, require_key(spec, os.environ) if needs_key else None)


def _pricer(specs: Sequence[Spec]) -> Price:
    prices = {spec.text: spec.prices for spec in specs}

    def price(spec: str, reply: Reply) -> float | None:
        known = prices.get(spec)
        if known is None:
            return None
        return (reply.input_tokens * known.input + reply.output_tokens * known.output) / 1e6

    return price
