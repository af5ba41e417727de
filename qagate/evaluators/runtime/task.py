"""What is to be done for one planned item: answer it, judge the answer, and read earlier ones.

A ``Task`` is data and the objects that do the work; the engine does it. Its readings are further
answers that the same judge reads after the item's own: those of earlier runs, and the own one by
the golds of then. A reading goes with its item, so that whatever selects items selects these too.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from qagate.evaluators import core
from qagate.evaluators.answers.state_rules import JUDGE_ALL, SettledByState, StateRules
from qagate.evaluators.core import CallError, Verdict
from qagate.evaluators.ledger import LedgerError
from qagate.evaluators.metric_specs import MetricSpec
from qagate.evaluators.runtime.answer_ages import ANY_AGE, AnswerAge
from qagate.evaluators.text import mask, one_line


class MetricRunner(Protocol):
    """Gives an answer a number from 0 to 1 in addition to its verdict."""

    @property
    def spec(self) -> MetricSpec:
        """The metric."""

    async def measure(self, case: core.Case, answer: str, ask: core.Ask) -> float:
        """Return the number. Raises CallError or JudgeError if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """The metrics of one answer."""

    values: Mapping[str, float | None] = field(default_factory=dict)
    """By the metric's name; None for one that failed."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Why a metric failed, by its name."""
    ledger_failure: str = ""
    """Why the ledger keeps no further reply; empty if it does."""


async def measure_all(
    metric_runners: Sequence[MetricRunner], case: core.Case, answer: str, ask: core.Ask
) -> Measurements:
    """Return every metric of an answer. One that fails does not affect the others."""
    results = await asyncio.gather(
        *(runner.measure(case, answer, ask) for runner in metric_runners),
        return_exceptions=True,
    )
    values: dict[str, float | None] = {}
    errors: dict[str, str] = {}
    ledger_failure = ""
    for runner, result in zip(metric_runners, results, strict=True):
        name = runner.spec.name
        if not isinstance(result, BaseException):
            values[name] = result
            continue
        if not isinstance(result, Exception):
            raise result
        values[name] = None
        errors[name] = _metric_error(result)
        if isinstance(result, LedgerError):
            ledger_failure = str(result)
    return Measurements(values=values, errors=errors, ledger_failure=ledger_failure)


def _metric_error(error: Exception) -> str:
    """Return why a metric failed, in one line that begins with a kind."""
    if isinstance(error, CallError | core.JudgeError):
        return f"{error.kind}: {error}"
    kind = "ledger" if isinstance(error, LedgerError) else "internal"
    return f"{kind}: {one_line(mask(f'{type(error).__name__}: {error}'))}"


Passes = Callable[[core.Case, Verdict], bool]
"""Returns whether an answer to the case passes with this verdict."""


CallsRight = Callable[[Verdict], bool]
"""Returns whether a verdict calls an answer right."""


def is_correct(verdict: Verdict) -> bool:
    """Return whether a verdict calls an answer right where no rubric says otherwise."""
    return verdict.grade == core.CORRECT


Around = Callable[[core.Judge], core.Judge]
"""Puts what stands before every judge of a slice before one: people's verdicts, and checks."""


def alone(judge: core.Judge) -> core.Judge:
    """Return the judge as it is: nothing stands before it."""
    return judge


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingTask:
    """A further answer that is judged with an item."""

    case: core.Case
    """The case by which it is judged: today's, or with what an earlier run held it against."""
    judge: core.Judge
    passes: Passes
    answer: core.ReadAnswer | None = None
    """The answer of an earlier run, as read today; None where that run had none."""
    reads_new_answer: bool = False
    """Whether it is this run's own answer that is judged once more."""
    metric_runners: tuple[MetricRunner, ...] = ()
    state_rules: StateRules = JUDGE_ALL
    around: Around = alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One planned item: its case, who answers and who judges it, and what passes."""

    key: str
    case: core.Case
    repeat: int
    answerer: core.Answerer
    judge: core.Judge
    passes: Passes
    metric_runners: tuple[MetricRunner, ...] = ()
    """Extra metrics, computed once the answer has a verdict."""
    readings: Mapping[str, ReadingTask] = field(default_factory=dict)
    """Further answers to judge after the item's own, by the name of the reading."""
    age: AnswerAge = ANY_AGE
    """Which kept answers of other runs may stand for a new one."""
    calls_right: CallsRight = is_correct
    """Whether a verdict calls an answer right; of a labelled one ``passes`` says otherwise."""
    is_labelled: bool = False
    """Whether the judge is what is tested, on a recorded answer whose label is known."""
    state_rules: StateRules = JUDGE_ALL
    """What the states of its answer are graded as, where no judge is asked."""
    around: Around = alone
    """What stands before the judge, and before such a verdict as well."""


async def judged(
    work: Task | ReadingTask, answer: core.ReadAnswer, ask: core.Ask
) -> Verdict:
    """Return the verdict on an answer: by its state, or else by the judge.

    Raises JudgeError and CallError as the judge does.
    """
    judge = work.judge
    settled = work.state_rules.verdict(work.case, answer)
    if settled is not None:
        judge = work.around(SettledByState(spec=judge.spec, settled=settled))
    return await judge.judge(work.case, answer.text, ask)
