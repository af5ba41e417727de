"""The checks and metrics that a data set can name; deepeval is loaded by ``judges/metric.py``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from evaluators.core import Ask, CallError, Case, JudgeError

GEVAL = "geval_"
"""Begins the name of a metric with the user's own criteria."""

CHECK = "check_"
"""Begins the name of a check's metric."""

FIELDS = ("input", "actual_output", "expected_output", "context", "retrieval_context")
"""The fields of an item that a metric can read, by deepeval's names."""

CONTEXTS = frozenset({"context", "retrieval_context"})


@dataclass(frozen=True, slots=True)
class Known:
    """One of deepeval's metrics."""

    class_: str
    fields: tuple[str, ...]
    """What it reads of an item."""
    calls: int
    """How many an item usually takes."""


_ANSWER = ("input", "actual_output")
_RETRIEVED = ("input", "retrieval_context")
_EXPECTED = (*_RETRIEVED, "expected_output")

METRICS: Mapping[str, Known] = {
    "faithfulness": Known("FaithfulnessMetric", (*_ANSWER, "retrieval_context"), 3),
    "answer_relevancy": Known("AnswerRelevancyMetric", _ANSWER, 2),
    "contextual_precision": Known("ContextualPrecisionMetric", _EXPECTED, 1),
    "contextual_recall": Known("ContextualRecallMetric", _EXPECTED, 1),
    "contextual_relevancy": Known("ContextualRelevancyMetric", _RETRIEVED, 1),
    "hallucination": Known("HallucinationMetric", (*_ANSWER, "context"), 1),
    "bias": Known("BiasMetric", _ANSWER, 2),
    "toxicity": Known("ToxicityMetric", _ANSWER, 2),
    "pii_leakage": Known("PIILeakageMetric", _ANSWER, 2),
}
"""Metrics by the name that a dataset gives them; for all of them 1 is best and 0 is worst."""

_GEVAL_CALLS = 2  # for the steps, the same for all items, and for the score


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """A metric that a dataset asks for; a ``geval_`` name alone has the fields below the name."""

    name: str
    criteria: str = ""
    """What is judged."""
    steps: tuple[str, ...] = ()
    """How it is judged; the model writes the steps if none are given."""
    fields: tuple[str, ...] = ()
    """What the model is shown of the item."""

    @property
    def needs_context(self) -> bool:
        """Whether it needs an item with a context."""
        return not CONTEXTS.isdisjoint(METRICS[self.name].fields if self.known else self.fields)

    @property
    def known(self) -> bool:
        """Whether it is one of deepeval's own."""
        return self.name in METRICS

    @property
    def calls(self) -> int:
        """About how many calls it takes for an item."""
        if self.known:
            return METRICS[self.name].calls
        return _GEVAL_CALLS - bool(self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSpec:
    """A check by code that a data set names."""

    name: str
    check: str
    """``python:MODULE:FUNCTION``, or the name of a bundled check."""
    text: str = ""
    """The pattern of ``regex``, or the schema of ``json_schema`` as JSON."""

    @property
    def metric(self) -> str:
        """The name of its metric, which gates can name."""
        return f"{CHECK}{self.name}"


class MetricRunner(Protocol):
    """Gives an answer a number from 0 to 1 in addition to its verdict."""

    @property
    def spec(self) -> MetricSpec:
        """The metric."""

    async def measure(self, case: Case, answer: str, ask: Ask) -> float:
        """Return the number. Raises CallError or JudgeError if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricResults:
    """The extra metrics of one answer."""

    values: Mapping[str, float | None] = field(default_factory=dict)
    """By the metric's name; None for those in ``unmeasured``."""
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    """The errors, by the metric's name."""
    failure: str = ""
    """Why the ledger keeps no further reply, else empty."""


async def measure_all(
    metric_runners: Sequence[MetricRunner], case: Case, answer: str, ask: Ask
) -> MetricResults:
    """Return every metric of an answer; one that fails does not affect the others."""
    import asyncio  # noqa: PLC0415  # workers load the specs and measure nothing

    from evaluators.ledger import LedgerError  # noqa: PLC0415
    from evaluators.text import mask, one_line  # noqa: PLC0415

    asked = (runner.measure(case, answer, ask) for runner in metric_runners)
    found = await asyncio.gather(*asked, return_exceptions=True)
    values: dict[str, float | None] = {}
    unmeasured: dict[str, str] = {}
    failure = ""
    for runner, result in zip(metric_runners, found, strict=True):
        name = runner.spec.name
        if not isinstance(result, BaseException):
            values[name] = result
            continue
        if not isinstance(result, Exception):
            raise result
        values[name] = None
        if isinstance(result, CallError | JudgeError):
            unmeasured[name] = f"{result.kind}: {result}"
            continue
        kind = "internal"
        if isinstance(result, LedgerError):
            kind, failure = "ledger", str(result)
        unmeasured[name] = f"{kind}: {one_line(mask(f'{type(result).__name__}: {result}'))}"
    return MetricResults(values=values, unmeasured=unmeasured, failure=failure)
