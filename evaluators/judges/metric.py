"""The only module that imports deepeval: its metrics on our models, and our judges as its metrics.

deepeval sends no telemetry, reads no ``.env`` and makes no folder here. It reads its environment
variables when it is imported, so they are set before.
"""

import asyncio
import os
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NoReturn

QUIET = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "DEEPEVAL_UPDATE_WARNING_OPT_IN": "0",
    "DEEPEVAL_NO_INSPECT_PROMPT": "1",
    "CONFIDENT_OPEN_BROWSER": "0",
}
os.environ.update(QUIET)

import deepeval.metrics  # noqa: E402
from deepeval.errors import MissingTestCaseParamsError  # noqa: E402
from deepeval.metrics import BaseMetric, GEval  # noqa: E402
from deepeval.models import DeepEvalBaseLLM  # noqa: E402
from deepeval.test_case import LLMTestCase, SingleTurnParams  # noqa: E402
from pydantic import BaseModel  # noqa: E402

from evaluators.core import Ask, Case, Judge, Model  # noqa: E402
from evaluators.extra_metrics import METRICS, MetricSpec  # noqa: E402
from evaluators.judges import deepeval_bridge  # noqa: E402
from evaluators.judges.factory import Place, rubric_for  # noqa: E402
from evaluators.judges.judge_session import Judged, JudgeSession  # noqa: E402
from evaluators.template import encode, shortened  # noqa: E402

NOT_MEASURABLE = "not_measurable"
FAILED = "metric_failed"


class Bridge(DeepEvalBaseLLM):  # type: ignore[no-untyped-call]
    """One of our models as deepeval knows models: its prompts go through our ledger and limits.

    It is asked in an event loop only.
    """

    def __init__(self, model: Model, ask: Ask) -> None:
        self._asked = model
        self._ask = ask
        super().__init__()

    def load_model(self) -> "Bridge":
        """Return itself: there is nothing to load."""
        return self

    def get_model_name(self) -> str:
        """Return the model's SPEC."""
        return self._asked.spec

    def generate(self, prompt: str, schema: type[BaseModel] | None = None) -> NoReturn:
        """Refuse: a call that blocks would hold up every other one."""
        raise NotImplementedError("this model is asked in an event loop only; use a_measure")

    async def a_generate(self, prompt: str, schema: type[BaseModel] | None = None) -> Any:
        """Return the reply's text, or what it says as this schema. Raises CallError, JudgeError."""
        return await deepeval_bridge.ask_model(self._asked, self._ask, prompt, schema)

    async def a_generate_with_schema(
        self, *prompts: Any, schema: type[BaseModel] | None = None, **options: Any
    ) -> Any:
        """Do as ``a_generate``; deepeval's own would ask again without the schema."""
        return await self.a_generate(prompts[0], schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepEvalMetricRunner:
    """One of deepeval's metrics, judged by a model of ours."""

    spec: MetricSpec
    model: Model

    async def measure(self, case: Case, answer: str, ask: Ask) -> float:
        """Return the metric's score, from 0 to 1. Raises CallError or JudgeError."""
        name = self.spec.name
        metric = build(self.spec, Bridge(self.model, ask))
        try:
            score = await metric.a_measure(_test_case(case, answer), _show_indicator=False)
        except Exception as error:  # noqa: BLE001  # deepeval raises more than it documents
            missing = isinstance(error, MissingTestCaseParamsError)
            found = deepeval_bridge.own_error(error) or deepeval_bridge.foreign_error(
                name, error, NOT_MEASURABLE if missing else FAILED
            )
        else:
            return deepeval_bridge.checked_score(name, score)
        raise found


def metric_runners_of(
    specs: Sequence[MetricSpec], model: Model
) -> tuple[DeepEvalMetricRunner, ...]:
    """Return what measures by these metrics, on this model."""
    with warnings.catch_warnings():
        # Said once a process, of scores that were the other way round in versions before 4.3.
        warnings.filterwarnings("ignore", "'.*' now scores in the same direction")
        for spec in specs:
            build(spec, Bridge(model, deepeval_bridge.ask_nobody))
    return tuple(DeepEvalMetricRunner(spec=spec, model=model) for spec in specs)


def build(spec: MetricSpec, model: DeepEvalBaseLLM) -> BaseMetric:
    """Return a metric of deepeval's; it holds one test case's state, so one is made for each."""
    if spec.known:
        class_ = getattr(deepeval.metrics, METRICS[spec.name].class_)
        # A reason would cost a further call.
        made: BaseMetric = class_(model=model, eval_mode="llm", include_reason=False)
        return made
    return GEval(
        name=spec.name,
        criteria=spec.criteria or None,
        evaluation_steps=list(spec.steps) or None,
        evaluation_params=[SingleTurnParams(field) for field in spec.fields],
        model=model,
    )


def _test_case(case: Case, answer: str) -> LLMTestCase:
    context = [case.context] if case.context else None
    made = LLMTestCase(
        input=case.question,
        # As judges see it: one JSON text, which cannot end the place that it stands in.
        actual_output=encode(shortened(answer)) if answer.strip() else answer,
        expected_output=case.expected,
        context=context,
        retrieval_context=list(context) if context else None,
    )
    made.multimodal = False  # an answer that names an image is text all the same
    return made


class JudgeMetric(BaseMetric):  # type: ignore[no-untyped-call]
    """One of our judges as a metric of deepeval's, for ``assert_test`` and ``evaluate``.

    A graded rubric scores 1 for a passing label and 0 for another; a rated one (rating - 1) / 9.
    """

    __name__ = "Judge"

    def __init__(
        self,
        judge: str | JudgeSession = "lexical",
        language: str = "en",
        rubric: str = "simpleqa",
        threshold: float | None = None,
    ) -> None:
        """Raise UsageError for a judge or rubric that is not known.

        ``judge`` is what ``--judge`` takes, several SPECs with a space between them, or the
        JudgeSession that metrics share. ``threshold`` is 1 for grades and the rubric's pass bar for
        ratings unless given.
        """
        # deepeval copies a metric by its constructor's arguments: the copies share the session.
        self.judge = JudgeSession(judge) if isinstance(judge, str) else judge
        self.language, self.rubric = language, rubric
        self.evaluation_model = self.judge.name
        self._rubric = found = rubric_for(rubric, language)
        bar = (found.pass_bar - 1) / 9 if found.style == "rated" else 1.0
        self.threshold = bar if threshold is None else threshold
        place = Place(style=found.style, rubric=found, audited=False, name=self.__name__)
        self._asked: Judge = self.judge.judges.build(place)

    def measure(self, test_case: LLMTestCase, *args: object, **options: object) -> float:
        """Return the score, from 0 to 1. Raises as ``a_measure``."""
        return self._settled(lambda: self._ask(test_case).result())

    async def a_measure(self, test_case: LLMTestCase, *args: object, **options: object) -> float:
        """Return the score, from 0 to 1.

        Raises CallError or JudgeError if the judge cannot be reached or read; there is no score
        then. A reply that is paid for is kept even if this is cancelled.
        """
        asked = asyncio.wrap_future(self._ask(test_case))
        await asyncio.wait([asked])
        return self._settled(asked.result)

    def _ask(self, test_case: LLMTestCase) -> Future[Judged]:
        self.score = self.success = self.reason = self.error = None
        self.evaluation_cost = self.input_tokens = self.output_tokens = None
        if missing := deepeval_bridge.missing_field(test_case):
            raise MissingTestCaseParamsError(f"'{missing}' cannot be None for the 'Judge' metric")
        case = deepeval_bridge.case_of(test_case, self.language)
        return self.judge.ask(self._asked, case, str(test_case.actual_output))

    def _settled(self, result: Callable[[], Judged]) -> float:
        try:
            judged = result()
        except Exception as error:
            self.error = str(error)
            raise
        verdict, usage = judged.verdict, judged.usage
        rating = verdict.rating
        score = (rating - 1) / 9 if rating else float(verdict.grade in self._rubric.passing)
        self.score, self.reason, self.evaluation_cost = score, verdict.reason, usage.cost
        self.input_tokens, self.output_tokens = usage.input_tokens, usage.output_tokens
        self.is_successful()
        return score

    def is_successful(self) -> bool:
        """Return whether the last answer reached the threshold; False if there is no score."""
        self.success = self.error is None and (self.score or 0.0) >= (self.threshold or 0.0)
        return self.success
