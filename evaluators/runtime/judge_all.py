"""Judging many answers with one judge: the engine of a run, without a test beside it."""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

from evaluators.answerers import RecordedAnswer
from evaluators.core import Case, Judge, Outcome, QAError, Verdict
from evaluators.judges.factory import JudgeFactory
from evaluators.ledger import Ledger
from evaluators.runtime.engine import Engine, Settings, Task
from evaluators.runtime.hosting import EngineThread
from evaluators.runtime.outcomes import OutcomeStore
from evaluators.runtime.prices import cost_of, pricing_of
from evaluators.runtime.schedule import Schedule

POLL_SECONDS = 0.05
LAST_SECONDS = 30.0  # how long the engine may take to close once all is judged

Watch = Callable[[Mapping[str, Outcome], int], None]
"""Told again and again what is judged so far, and how many answers there are."""


class InterruptedJudgingError(QAError):
    """The user stopped it; what was paid for is in the ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One answer to be judged: ``key`` names it, ``repeat`` counts from 1, as the judge does."""

    key: str
    case: Case
    judge: Judge
    repeat: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Where calls are kept, how many may be in flight, and the day whose prices hold.

    ``replay`` sends nothing.
    """

    ledger: Path
    day: date
    replay: bool = False
    concurrency: int = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """How every answer ended, by its job's key, and how many requests were sent for it."""

    outcomes: Mapping[str, Outcome]
    requests: int


def judge_all(jobs: Sequence[Job], judges: JudgeFactory, store: Store, watch: Watch) -> Judged:
    """Judge every answer and return how each ended; errors are outcomes too.

    A judge that asks nothing opens no ledger. Raises InterruptedJudgingError on Ctrl-C, after
    what is in flight had a moment to arrive; QAError where calls can no longer be kept.
    """
    with tempfile.TemporaryDirectory(prefix="qa-") as name:
        folder = Path(name)
        path = store.ledger if judges.models else folder / "ledger"
        with Ledger(path, read_only=store.replay and bool(judges.models)) as ledger:
            board = OutcomeStore(folder / "board")
            try:
                return _judge_all(jobs, judges, store, (ledger, board, watch))
            finally:
                board.close()


def _judge_all(
    jobs: Sequence[Job],
    judges: JudgeFactory,
    store: Store,
    means: tuple[Ledger, OutcomeStore, Watch],
) -> Judged:
    ledger, board, watch = means
    settings = Settings(concurrency=store.concurrency, replay=store.replay)
    tasks = {job.key: _task(job) for job in jobs}
    tariffs = {spec.text: pricing_of(spec, store.day) for spec in judges.specs.values()}
    engine = Engine(tasks, ledger, board, partial(cost_of, tariffs), settings)
    schedule = Schedule(list(tasks), window=len(tasks) + 1)
    thread = EngineThread(engine, schedule, tuple(judges.models.values()))
    thread.start()
    try:
        while len(engine.outcomes) < len(tasks) and not engine.failure:
            time.sleep(POLL_SECONDS)
            watch(dict(engine.outcomes), len(tasks))
    except KeyboardInterrupt:
        thread.stop()
        done, planned = len(engine.outcomes), len(tasks)
        msg = f"interrupted: {done} of {planned} judged; replies are kept, run again to go on"
        raise InterruptedJudgingError(msg) from None
    thread.stop(LAST_SECONDS)
    if engine.failure:
        raise QAError(engine.failure)
    return Judged(outcomes=dict(engine.outcomes), requests=engine.status.requests)


def _task(job: Job) -> Task:
    return Task(
        key=job.key,
        case=job.case,
        repeat=job.repeat,
        answerer=RecordedAnswer(),
        judge=job.judge,
        passes=_always,
    )


def _always(case: Case, verdict: Verdict) -> bool:
    return True
