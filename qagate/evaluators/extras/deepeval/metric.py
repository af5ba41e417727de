"""deepeval's metrics on our models, and our judges as its metrics; only this module imports it.

deepeval sends no telemetry, reads no ``.env`` file and creates no folder here. It reads its
environment variables on import, so they are set first.
"""

import asyncio
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
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

from qagate.evaluators import core  # noqa: E402
from qagate.evaluators.judges.factory import Place, connect_judges, rubric_for  # noqa: E402
from qagate.evaluators.judges.rubric_judge import ask_until_read  # noqa: E402
from qagate.evaluators.metric_specs import MetricSpec  # noqa: E402
from qagate.evaluators.models.keys import require_key  # noqa: E402
from qagate.evaluators.reading import parse_json  # noqa: E402
from qagate.evaluators.replies.readers import Invalid, unfinished  # noqa: E402
from qagate.evaluators.replies.said import said_in  # noqa: E402
from qagate.evaluators.rubric import encode, shortened  # noqa: E402
from qagate.evaluators.runtime.caller import Caller, CallSettings, Meter  # noqa: E402
from qagate.evaluators.runtime.session import CallSession, CallThread  # noqa: E402
from qagate.evaluators.text import mask, one_line, sendable  # noqa: E402

PARAMETERS = {"temperature": 0, "max_tokens": 4096}
"""The least random reply, with room for a list of statements."""
CLASSES: Mapping[str, type[BaseMetric]] = {
    "faithfulness": deepeval.metrics.FaithfulnessMetric,
    "answer_relevancy": deepeval.metrics.AnswerRelevancyMetric,
    "contextual_precision": deepeval.metrics.ContextualPrecisionMetric,
    "contextual_recall": deepeval.metrics.ContextualRecallMetric,
    "contextual_relevancy": deepeval.metrics.ContextualRelevancyMetric,
    "hallucination": deepeval.metrics.HallucinationMetric,
    "bias": deepeval.metrics.BiasMetric,
    "toxicity": deepeval.metrics.ToxicityMetric,
    "pii_leakage": deepeval.metrics.PIILeakageMetric,
}
"""The classes of the metrics that ``metric_specs.DEEPEVAL_METRICS`` lists."""

FENCED = re.compile(r"```(?:json)?(.*)```", re.DOTALL | re.IGNORECASE)


def read_text(schema: type[BaseModel] | None, reply: core.Reply) -> str | Invalid:
    """Return a reply's text, without a Markdown fence; with a schema, the JSON that follows it."""
    if cut := unfinished(reply.finish):
        return cut
    text = said_in(reply.text)
    if text is None:
        return Invalid("no answer outside of thoughts")
    if schema is None:
        return text
    text = text.strip()
    if fenced := FENCED.fullmatch(text):
        text = fenced[1].strip()
    try:
        parse_json(text)
        schema.model_validate_json(text, strict=True)
    except ValueError as error:
        reason = str(error).partition(" [type=")[0]  # what follows repeats the reply
        return Invalid(f"not as {schema.__name__} asks: {one_line(mask(reason), 120)}")
    return text


class Bridge(DeepEvalBaseLLM):  # type: ignore[no-untyped-call]
    """One of our models, called by deepeval through our ledger and limits; only asynchronously."""

    def __init__(self, model: core.Model, ask: core.Ask) -> None:
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
        """Raise NotImplementedError: a blocking call would hold up all others."""
        raise NotImplementedError(
            "this model is asked in an event loop only; use a_measure"
        )

    async def a_generate(
        self, prompt: str, schema: type[BaseModel] | None = None
    ) -> Any:
        """Return the text, or an instance of ``schema``. Raises CallError or JudgeError."""
        request = core.Request(
            messages=(core.Message(role="user", content=sendable(prompt)),),
            parameters=PARAMETERS,
            version=f"deepeval {schema.__name__}" if schema else "deepeval",
        )
        text, _ = await ask_until_read(
            self._asked, request, self._ask, partial(read_text, schema)
        )
        return text if schema is None else schema.model_validate_json(text, strict=True)

    async def a_generate_with_schema(
        self, *prompts: Any, schema: type[BaseModel] | None = None, **options: Any
    ) -> Any:
        """Call ``a_generate``; deepeval's own version would retry without the schema."""
        return await self.a_generate(prompts[0], schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepEvalMetricRunner:
    """One of deepeval's metrics, judged by one of our models."""

    spec: MetricSpec
    model: core.Model

    async def measure(self, case: core.Case, answer: str, ask: core.Ask) -> float:
        """Return the metric's score, from 0 to 1. Raises CallError or JudgeError."""
        name, context = self.spec.name, [case.context] if case.context else None
        metric = build(self.spec, Bridge(self.model, ask))
        tested = LLMTestCase(
            input=case.question,
            # As judges see it: one JSON text, which cannot break out of its slot.
            actual_output=encode(shortened(answer)) if answer.strip() else answer,
            expected_output=case.expected,
            context=context,
            retrieval_context=list(context) if context else None,
        )
        tested.multimodal = False  # an answer that names an image is still text
        try:
            score = await metric.a_measure(tested, _show_indicator=False)
        except Exception as error:  # noqa: BLE001  # deepeval raises more than it documents
            is_lacking = isinstance(error, MissingTestCaseParamsError)
            kind = "not_measurable" if is_lacking else "metric_failed"
            line = one_line(mask(f"{type(error).__name__}: {error}"))
            link: BaseException | None = (
                error  # an error of ours may have caused deepeval's
            )
            while link is not None and not isinstance(link, core.QAError):
                link = link.__cause__ or link.__context__
            found = link or core.JudgeError(f"{name}: {line}", kind=kind)
        else:
            if isinstance(score, int | float) and 0 <= score <= 1:
                return float(score)
            found = core.JudgeError(
                f"{name}: the score is {str(score)[:40]}, not a number from 0 to 1"
            )
        raise found


def metric_runners_of(
    specs: Sequence[MetricSpec], model: core.Model
) -> tuple[DeepEvalMetricRunner, ...]:
    """Return what runs these metrics on this model."""

    async def ask_nobody(model: core.Model, request: core.Request) -> core.Reply:
        raise core.UsageError(f"{model.spec}: nobody is asked here")

    with warnings.catch_warnings():
        # deepeval warns once a process that scores were the other way round before 4.3.
        warnings.filterwarnings("ignore", "'.*' now scores in the same direction")
        for spec in specs:
            build(spec, Bridge(model, ask_nobody))
    return tuple(DeepEvalMetricRunner(spec=spec, model=model) for spec in specs)


def build(spec: MetricSpec, model: DeepEvalBaseLLM) -> BaseMetric:
    """Return a metric of deepeval; it holds the state of one test case, so each case needs one."""
    if spec.is_deepevals:
        make: Callable[..., BaseMetric] = CLASSES[spec.name]
        # A reason would cost a further call.
        return make(model=model, eval_mode="llm", include_reason=False)
    return GEval(
        name=spec.name,
        criteria=spec.criteria or None,
        evaluation_steps=list(spec.steps) or None,
        evaluation_params=[SingleTurnParams(field) for field in spec.fields],
        model=model,
    )


class JudgeSession(CallThread):
    """The models, ledger and limits of one judge, which metrics may share. Raises UsageError."""

    def __init__(self, judge: str, settings: CallSettings | None = None) -> None:
        self.name, self.settings = judge, settings or CallSettings()
        key_of = (lambda spec: None) if self.settings.replay else require_key
        self.judges = made = connect_judges(core.parse_judges(judge.split(" ")), key_of)
        super().__init__(
            CallSession(made.models, made.specs, self.settings, "max_cost")
        )


class JudgeMetric(BaseMetric):  # type: ignore[no-untyped-call]
    """One of our judges in deepeval: 1 for a passing label, else 0; if rated, (rating - 1) / 9."""

    __name__ = "Judge"

    def __init__(
        self,
        judge: str | JudgeSession = "lexical",
        language: str = "en",
        rubric: str = "simpleqa",
        threshold: float | None = None,
    ) -> None:
        """Raise UsageError for an unknown judge or rubric.

        ``judge`` is what ``--judge`` takes, or a JudgeSession to share. ``threshold`` defaults to
        1 for grades and to the rubric's pass bar for ratings.
        """
        # deepeval copies a metric by its constructor's arguments: the copies share the session.
        self.judge = JudgeSession(judge) if isinstance(judge, str) else judge
        self.language, self.rubric, self.evaluation_model = (
            language,
            rubric,
            self.judge.name,
        )
        self._rubric = found = rubric_for(rubric, language)
        bar = (found.pass_bar - 1) / 9 if found.style == "rated" else 1.0
        self.threshold = bar if threshold is None else threshold
        place = Place(style=found.style, rubric=found, name=self.__name__)
        self._asked = self.judge.judges.build(place)

    def measure(
        self, test_case: LLMTestCase, *args: object, **options: object
    ) -> float:
        """Return the score, from 0 to 1. Raises as ``a_measure``."""
        return self._settled(lambda: self._ask(test_case).result())

    async def a_measure(
        self, test_case: LLMTestCase, *args: object, **options: object
    ) -> float:
        """Return the score, from 0 to 1. Raises CallError or JudgeError where there is none.

        A reply that was paid for is kept even if this is cancelled.
        """
        await asyncio.wait([asked := asyncio.wrap_future(self._ask(test_case))])
        return self._settled(asked.result)

    def _ask(self, test_case: LLMTestCase) -> Future[tuple[core.Verdict, core.Usage]]:
        self.score = self.success = self.reason = self.error = None
        needed = {
            "input": test_case.input,
            "actual_output": test_case.actual_output,
            "expected_output": test_case.expected_output,
        }
        for name, text in needed.items():
            if not isinstance(text, str):
                raise MissingTestCaseParamsError(
                    f"'{name}' cannot be None for the 'Judge' metric"
                )
        shown: Sequence[object] = test_case.retrieval_context or test_case.context or []
        context = "\n\n".join(str(getattr(part, "context", part)) for part in shown)
        case = core.Case(id="deepeval", dataset="deepeval", language=self.language, row=1,
                    question=test_case.input, golds=(str(test_case.expected_output),),
                    context=context)  # fmt: skip

        async def judged(caller: Caller) -> tuple[core.Verdict, core.Usage]:
            ask = caller.metered(meter := Meter(price=caller.price))
            return await self._asked.judge(
                case, str(test_case.actual_output), ask
            ), meter.usage

        return self.judge.submit(judged)

    def _settled(self, result: Callable[[], tuple[core.Verdict, core.Usage]]) -> float:
        self.evaluation_cost = self.input_tokens = self.output_tokens = None
        try:
            verdict, usage = result()
        except Exception as error:
            self.error = str(error)
            raise
        passed = float(verdict.grade in self._rubric.passing)
        self.score = score = (verdict.rating - 1) / 9 if verdict.rating else passed
        self.reason, self.evaluation_cost = verdict.reason, usage.cost
        self.input_tokens, self.output_tokens = usage.input_tokens, usage.output_tokens
        self.is_successful()
        return score
