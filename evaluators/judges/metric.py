"""The one door to deepeval: its metrics on our models, and our judges as its metrics.

deepeval is kept quiet: no telemetry, no ``.env`` read, no folder of its own. Its environment
variables count when it is loaded, hence the order below.
"""

import asyncio
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NoReturn

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

from evaluators.core import Ask, Case, Judge, Model, Verdict  # noqa: E402
from evaluators.extra_metrics import METRICS, MetricSpec  # noqa: E402
from evaluators.judges import deepeval_bridge  # noqa: E402
from evaluators.judges.factory import DEFAULT_RUBRIC, Place, rubric_for  # noqa: E402
from evaluators.judges.judge_session import Judged, JudgeSession  # noqa: E402
from evaluators.replies import Invalid, read_yes_no  # noqa: E402
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
class DeepEvalMeasurer:
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


def measurers_of(specs: Sequence[MetricSpec], model: Model) -> tuple[DeepEvalMeasurer, ...]:
    """Return what measures by these metrics, on this model."""
    with warnings.catch_warnings():
        # Said once a process, of scores that were the other way round in versions before 4.3.
        warnings.filterwarnings("ignore", "'.*' now scores in the same direction")
        for spec in specs:
            build(spec, Bridge(model, deepeval_bridge.ask_nobody))
    return tuple(DeepEvalMeasurer(spec=spec, model=model) for spec in specs)


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


class _JudgeMetric(BaseMetric):  # type: ignore[no-untyped-call]
    """What our metrics share: the state that deepeval's runners read."""

    _title: ClassVar[str] = ""

    @property
    def __name__(self) -> str:
        """The metric's name in deepeval's reports."""
        return self._title

    def is_successful(self) -> bool:
        """Return whether the last answer reached the threshold; False where there is no score."""
        self.success = False
        if self.error is None and self.score is not None:
            self.success = self.threshold is None or self.score >= self.threshold
        return self.success


class _ModelMetric(_JudgeMetric):  # type: ignore[no-untyped-call]
    """A metric whose judge is named by a SPEC.

    ``judge`` is ``lexical``, a model's SPEC, ``lexical+SPEC``, several with a space between them,
    or the JudgeSession of one: give it to choose the ledger and the limits, or to share them.
    ``rubric`` is a bundled rubric's name or a path. Raises UsageError for what is not known.
    """

    _style: ClassVar[Literal["graded", "rated"]] = "graded"

    def __init__(
        self,
        judge: str | JudgeSession = "lexical",
        language: str = "en",
        rubric: str = "",
        threshold: float | None = 1.0,
    ) -> None:
        # deepeval copies a metric by its constructor's arguments: the copies share the session.
        self.judge = JudgeSession(judge) if isinstance(judge, str) else judge
        self.language = language
        self.rubric = rubric or DEFAULT_RUBRIC[self._style]
        self.threshold = threshold
        self.evaluation_model = self.judge.name
        found = rubric_for(self.rubric, language, self._style)
        self._passing = found.passing
        place = Place(style=self._style, rubric=found, audited=False, name=self._title)
        self._asked: Judge = self.judge.judges.build(place)

    def measure(self, test_case: LLMTestCase, *args: object, **options: object) -> float:
        """Return the score, from 0 to 1; an event loop may be running. Raises as ``a_measure``."""
        try:
            case, answer = _begin(self, test_case, self.language)
            judged = self.judge.ask(self._asked, case, answer).result()
        except Exception as error:
            self.error = str(error)
            raise
        return self._settle(judged)

    async def a_measure(self, test_case: LLMTestCase, *args: object, **options: object) -> float:
        """Return the score, from 0 to 1.

        Raises CallError or JudgeError, and keeps its text as ``error``, where the judge cannot be
        reached or read: there is no score then. What a call cost is kept even if this is cancelled.
        """
        try:
            case, answer = _begin(self, test_case, self.language)
            asked = asyncio.wrap_future(self.judge.ask(self._asked, case, answer))
            judged = await asyncio.shield(asked)
        except Exception as error:
            self.error = str(error)
            raise
        return self._settle(judged)

    def _settle(self, judged: Judged) -> float:
        self.reason = judged.verdict.reason
        self.evaluation_cost = judged.usage.cost
        self.input_tokens = judged.usage.input_tokens
        self.output_tokens = judged.usage.output_tokens
        score = self._score(judged.verdict)
        self.score = score
        self.is_successful()
        return score

    def _score(self, verdict: Verdict) -> float:
        raise NotImplementedError


class SimpleQAMetric(_ModelMetric):  # type: ignore[no-untyped-call]
    """1 for CORRECT; 0 for INCORRECT and NOT_ATTEMPTED, which ``score_breakdown`` tells apart.

    By a rubric with labels of its own: 1 for a passing label.
    """

    _title = "SimpleQA"

    def _score(self, verdict: Verdict) -> float:
        self.score_breakdown = {str(verdict.grade): 1.0}
        return float(verdict.grade in self._passing)


class RatingMetric(_ModelMetric):  # type: ignore[no-untyped-call]
    """(rating - 1) / 9 of a rating from 1 to 10; by default a rating of 7 passes."""

    _title = "Rating"
    _style = "rated"

    def __init__(
        self,
        judge: str | JudgeSession = "lexical",
        language: str = "en",
        rubric: str = "",
        threshold: float | None = 6 / 9,
    ) -> None:
        super().__init__(judge, language, rubric, threshold)

    def _score(self, verdict: Verdict) -> float:
        rating = verdict.rating or 1
        self.score_breakdown = {"rating": float(rating), **verdict.parts}
        return (rating - 1) / 9


class BooleanMetric(_JudgeMetric):  # type: ignore[no-untyped-call]
    """1 where the answer says the expected one of two words, by rule; 0 where it does not."""

    _title = "Boolean"

    def __init__(self, yes: str = "Yes", no: str = "No", threshold: float | None = 1.0) -> None:
        self.yes = yes
        self.no = no
        self.threshold = threshold
        self.evaluation_model = "rule:yes_no"

    def measure(self, test_case: LLMTestCase, *args: object, **options: object) -> float:
        """Return 1 or 0. Raises UsageError where the expected output is neither word."""
        try:
            case, answer = _begin(self, test_case, "en")
            gold = deepeval_bridge.gold_word(case.expected, self.yes, self.no)
        except Exception as error:
            self.error = str(error)
            raise
        said = read_yes_no(answer, "stop", (self.yes,), (self.no,))
        self.reason = said.reason if isinstance(said, Invalid) else f"the answer says {said}"
        score = float(said == gold)
        self.score = score
        self.is_successful()
        return score

    async def a_measure(self, test_case: LLMTestCase, *args: object, **options: object) -> float:
        """Return 1 or 0; nobody is asked."""
        return self.measure(test_case)


def _begin(metric: _JudgeMetric, test_case: LLMTestCase, language: str) -> tuple[Case, str]:
    """Forget the test case before, and return this one as ours, with its answer."""
    metric.score = metric.success = metric.reason = metric.error = None
    metric.score_breakdown = {}
    metric.evaluation_cost = metric.input_tokens = metric.output_tokens = None
    if missing := deepeval_bridge.missing_field(test_case):
        raise MissingTestCaseParamsError(
            f"'{missing}' cannot be None for the '{metric.__name__}' metric"
        )
    return deepeval_bridge.case_of(test_case, language), str(test_case.actual_output)
