"""The work on one item: its answer, the verdict on it, and the readings of further answers.

``ItemWorker.outcome`` answers the item, then judges its answer and those of earlier runs side by
side. A reading is judged also where the item has no answer: what the earlier run said is known
all the same. Whatever fails is the end of that answer alone, with its reason; it is never a grade.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from qagate.evaluators import core
from qagate.evaluators.core import (
    CallError,
    Outcome,
    ReadAnswer,
    StoppedError,
    Verdict,
)
from qagate.evaluators.ledger import LedgerError
from qagate.evaluators.runtime.answer_ages import AnswerAge, AnswerAges
from qagate.evaluators.runtime.caller import Caller, ItemClock, Meter
from qagate.evaluators.runtime.task import (
    Measurements,
    ReadingTask,
    Task,
    judged,
    measure_all,
)

T = TypeVar("T")

NO_EARLIER_ANSWER = "no_earlier_answer"
"""The kind of a reading for which the earlier run had no answer."""

AskModel = Callable[[Meter, AnswerAge], core.Ask]
"""Returns what an answerer asks the model under test by."""
AskJudge = Callable[[Meter, core.Case], core.Ask]
"""Returns what a judge of this case asks its model by."""

JUDGING_GRACE_SECONDS = 1.75
"""So long may judges go on after the run's time is used up; their calls end before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoGrade:
    """Why an answer or a verdict is not there."""

    state: core.State
    """``error`` or ``missing``."""
    kind: str
    """A short word for reports and counts."""
    message: str
    votes: tuple[core.Vote, ...] = ()
    """What each judge of a panel said that could not agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """How an answer was judged and measured, as far as that came."""

    verdict: Verdict | None = None
    passed: bool = False
    failure: NoGrade | None = None
    measurements: Measurements = field(default_factory=Measurements)


class ItemWorker:
    """Brings items to their ends; many are at work at a time.

    Attributes::

    :ledger_failure: Why the ledger keeps nothing more; empty if it does. No further item may
       begin: its replies would be paid for and lost.
    """

    def __init__(
        self,
        caller: Caller,
        *,
        ask_model: AskModel | None = None,
        ask_judge: AskJudge | None = None,
    ) -> None:
        self.ledger_failure = ""
        self._caller = caller
        self._ask_model = ask_model or AnswerAges(caller).asking
        self._ask_judge = ask_judge

    async def outcome(self, task: Task, meter: Meter) -> Outcome:
        """Return how an item ended: answered, judged and measured, as far as that came."""
        with self._caller.route.item(meter):
            answer = await self._answer(task, meter)
        judging = self._judge_own(task, answer, meter)
        if not task.readings:
            return await judging
        reading = [
            self._read(task, further, answer, meter)
            for further in task.readings.values()
        ]
        outcome, *readings = await asyncio.gather(judging, *reading)
        by_name = dict(zip(task.readings, readings, strict=True))
        return _with_readings(outcome, by_name)

    async def _answer(self, task: Task, meter: Meter) -> ReadAnswer | NoGrade:
        """Return the item's answer, or why there is none."""
        ask = self._ask_model(meter, task.age)
        try:
            answer = await task.answerer.answer(task.case, task.repeat, ask)
        except Exception as error:  # noqa: BLE001  # one item's failure must not end the run
            return self._note_failure(error)
        meter.end_answer()
        return answer

    async def _judge_own(
        self, task: Task, answer: ReadAnswer | NoGrade, meter: Meter
    ) -> Outcome:
        """Return the outcome of the item itself, without its readings."""
        outcome = await self._outcome(task.key, task, answer, meter)
        return replace(
            outcome,
            model=meter.models.get(task.answerer.spec, task.answerer.spec),
            judge=returned_names(task.judge.spec, meter.models),
            usage=meter.usage,
            answering=meter.answering,
            calls=meter.calls,
            asked=meter.asked,
            graded=meter.graded,
        )

    async def _read(
        self,
        task: Task,
        reading: ReadingTask,
        new: ReadAnswer | NoGrade,
        items_meter: Meter,
    ) -> Outcome:
        """Return how a further answer is judged, such as the baseline's to the same item.

        ``new`` is the item's own answer. What the reading asks and costs is counted apart.
        """
        answer = _answer_to_read(reading, new)
        meter = Meter(
            price=self._caller.price,
            clock=ItemClock(slice_name=items_meter.clock.slice_name),
            kept_only=items_meter.kept_only,
        )
        meter.end_answer()
        outcome = await self._outcome(task.key, reading, answer, meter)
        if meter.missed:
            items_meter.missed = True
        return replace(
            outcome,
            judge=returned_names(reading.judge.spec, meter.models),
            usage=meter.usage,
            calls=meter.calls,
            graded=meter.graded,
        )

    async def _outcome(
        self,
        key: str,
        work: Task | ReadingTask,
        answer: ReadAnswer | NoGrade,
        meter: Meter,
    ) -> Outcome:
        """Return how an answer is graded, or why there is none to grade."""
        if isinstance(answer, NoGrade):
            return _outcome(key, None, Grading(failure=answer))
        problem = work.state_rules.problem(answer)
        if problem:
            return _unread(key, answer, problem)
        return _outcome(key, answer, await self._grade(work, answer, meter))

    async def _grade(
        self, work: Task | ReadingTask, answer: ReadAnswer, meter: Meter
    ) -> Grading:
        """Return the verdict on an answer and its metrics; an answer without one has no metrics."""
        ask = self._asking(meter, work.case)
        with self._caller.route.item(meter):
            try:
                verdict = await self._before_the_end(judged(work, answer, ask))
                passed = work.passes(work.case, verdict)
            except Exception as error:  # noqa: BLE001  # as in _answer
                return Grading(failure=self._note_failure(error))
            measurements = await self._measure(work, answer.text, ask)
        return Grading(verdict=verdict, passed=passed, measurements=measurements)

    def _asking(self, meter: Meter, case: core.Case) -> core.Ask:
        """Return what a judge asks its model by."""
        if self._ask_judge is None:
            return self._caller.metered(meter)
        return self._ask_judge(meter, case)

    async def _measure(
        self, work: Task | ReadingTask, answer: str, ask: core.Ask
    ) -> Measurements:
        """Return the metrics of a judged answer; all have failed if the run's time is used up."""
        if not work.metric_runners:
            return Measurements()
        measuring = measure_all(work.metric_runners, work.case, answer, ask)
        try:
            measurements = await self._before_the_end(measuring)
        except StoppedError as error:
            names = [runner.spec.name for runner in work.metric_runners]
            return Measurements(
                values=dict.fromkeys(names), errors=dict.fromkeys(names, str(error))
            )
        if not self.ledger_failure:
            self.ledger_failure = measurements.ledger_failure
        return measurements

    async def _before_the_end(self, judging: Awaitable[T]) -> T:
        return await self._caller.sender.before_the_end(judging, JUDGING_GRACE_SECONDS)

    def _note_failure(self, error: Exception) -> NoGrade:
        """Return why an answer or a verdict is not there; note a ledger that keeps nothing."""
        if isinstance(error, LedgerError):
            self.ledger_failure = str(error)
            return NoGrade(state="missing", kind="ledger", message=str(error))
        if isinstance(error, StoppedError):
            return NoGrade(state="missing", kind=error.kind, message=str(error))
        if isinstance(error, CallError):
            return NoGrade(state="error", kind=error.kind, message=str(error))
        if isinstance(error, core.JudgeError):
            return NoGrade(
                state="error", kind=error.kind, message=str(error), votes=error.votes
            )
        message = f"{type(error).__name__}: {error}"
        return NoGrade(state="error", kind="internal", message=message)


def _answer_to_read(
    reading: ReadingTask, new: ReadAnswer | NoGrade
) -> ReadAnswer | NoGrade:
    """Return the answer that a reading is about, or why there is none."""
    if reading.reads_new_answer:
        return new
    if reading.answer is None:
        message = "the earlier run has no answer to this item"
        return NoGrade(state="missing", kind=NO_EARLIER_ANSWER, message=message)
    return reading.answer


def _outcome(key: str, answer: ReadAnswer | None, grading: Grading) -> Outcome:
    """Return the outcome of an answer that was judged, or that has a failure in place of that."""
    failure = grading.failure
    if failure is not None:
        outcome = Outcome(
            key=key,
            state=failure.state,
            verdict=Verdict(votes=failure.votes) if failure.votes else None,
            kind=failure.kind,
            message=failure.message,
        )
        return _with_answer(outcome, answer)
    measures = dict(grading.measurements.values)
    unmeasured = dict(grading.measurements.errors)
    if grading.verdict is not None:
        measures.update(grading.verdict.scores)
        measures.update(dict.fromkeys(grading.verdict.unscored))
        unmeasured.update(grading.verdict.unscored)
    outcome = Outcome(
        key=key,
        state="passed" if grading.passed else "failed",
        verdict=grading.verdict,
        measures=measures,
        unmeasured=unmeasured,
    )
    return _with_answer(outcome, answer)


def _unread(key: str, answer: ReadAnswer, problem: str) -> Outcome:
    """Return the outcome of a reply that is no answer. The reply is kept as it came."""
    return Outcome(
        key=key,
        state="error",
        kind=answer.state,
        message=problem,
        answer_state=answer.state,
        finish=answer.finish,
        reply=answer.text if answer.reply is None else answer.reply,
    )


def _with_answer(outcome: Outcome, answer: ReadAnswer | None) -> Outcome:
    """Return an outcome with the answer that it is about."""
    if answer is None:
        return outcome
    return replace(
        outcome,
        answer=answer.text,
        answer_state=answer.state,
        finish=answer.finish,
        reply=answer.reply,
    )


def _with_readings(outcome: Outcome, readings: Mapping[str, Outcome]) -> Outcome:
    """Return an outcome with its readings, and with what this run paid for them."""
    if not readings:
        return outcome
    usage = outcome.usage
    for reading in readings.values():
        usage += core.Usage(requests=reading.usage.requests, spent=reading.usage.spent)
    return replace(outcome, usage=usage, readings=readings)


def returned_names(spec: str, models: Mapping[str, str]) -> str:
    """Return a judge's SPEC with each model's name as its provider returned it.

    ``models`` has these names by the SPEC that was asked. A member that is not in it was
    not asked, and keeps its SPEC.
    """
    names = []
    for member in core.parse_judges(spec.split(" ")).members:
        if member.model in models:
            returned = replace(member, model=models[member.model])
            names.append(returned.name)
        else:
            names.append(member.name)
    return " ".join(names)
