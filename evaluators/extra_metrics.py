"""Which checks and metrics can be named; only ``judges/metric.py`` loads deepeval itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from evaluators.core import Ask, CallError, Case, JudgeError

GEVAL = "geval_"
"""What the name of a metric with criteria of one's own begins with."""

CHECK = "check_"
"""What the name of the measure that a check gives begins with."""

FIELDS = ("input", "actual_output", "expected_output", "context", "retrieval_context")
"""What of an item a metric can be shown, in deepeval's words."""

CONTEXTS = frozenset({"context", "retrieval_context"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One of deepeval's metrics: its class, what it reads, how many calls an item usually takes."""

    class_: str
    fields: tuple[str, ...]
    calls: int


_ANSWER = ("input", "actual_output")
_RETRIEVED = ("input", "retrieval_context")

METRICS: Mapping[str, Known] = {
    "faithfulness": Known(
        class_="FaithfulnessMetric", fields=(*_ANSWER, "retrieval_context"), calls=3
    ),
    "answer_relevancy": Known(class_="AnswerRelevancyMetric", fields=_ANSWER, calls=2),
    "contextual_precision": Known(
        class_="ContextualPrecisionMetric", fields=(*_RETRIEVED, "expected_output"), calls=1
    ),
    "contextual_recall": Known(
        class_="ContextualRecallMetric", fields=(*_RETRIEVED, "expected_output"), calls=1
    ),
    "contextual_relevancy": Known(class_="ContextualRelevancyMetric", fields=_RETRIEVED, calls=1),
    "hallucination": Known(class_="HallucinationMetric", fields=(*_ANSWER, "context"), calls=1),
    "bias": Known(class_="BiasMetric", fields=_ANSWER, calls=2),
    "toxicity": Known(class_="ToxicityMetric", fields=_ANSWER, calls=2),
    "pii_leakage": Known(class_="PIILeakageMetric", fields=_ANSWER, calls=2),
}
"""Metrics by the name that a dataset gives them; of all of them 1 is best and 0 is worst."""

_GEVAL_CALLS = 2  # the steps, which are asked once for all items, and the score


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """A metric that a dataset asks for.

    ``criteria``, ``steps`` and ``fields`` are only for names that begin with ``geval_``: what is to
    be judged, how (found by the model where not given), and what of the item is shown.
    """

    name: str
    criteria: str = ""
    steps: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()

    @property
    def needs_context(self) -> bool:
        """Whether it can only be taken of an item that has a context."""
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
    """A check by code that a data set names: ``python:MODULE:FUNCTION``, or a bundled one.

    ``text`` is the pattern of ``regex``, or the schema of ``json_schema`` as JSON.
    """

    name: str
    check: str
    text: str = ""

    @property
    def measure(self) -> str:
        """The name of its measure, which gates can name."""
        return f"{CHECK}{self.name}"


class MetricRunner(Protocol):
    """Whatever gives an answer a number from 0 to 1 beside its verdict."""

    @property
    def spec(self) -> MetricSpec:
        """What it measures."""
        ...

    async def measure(self, case: Case, answer: str, ask: Ask) -> float:
        """Return the number. Raises CallError or JudgeError where there is none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricResults:
    """Extra measures of one answer: the value by name, None where ``unmeasured`` says why.

    ``failure`` is why no further reply can be kept, or empty.
    """

    values: Mapping[str, float | None] = field(default_factory=dict)
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    failure: str = ""


async def measure_all(
    metric_runners: Sequence[MetricRunner], case: Case, answer: str, ask: Ask
) -> MetricResults:
    """Return every metric of an answer; one that fails does not affect the others."""
    import asyncio  # noqa: PLC0415  # workers load the specs, and measure nothing

    from evaluators.ledger import LedgerError  # noqa: PLC0415
    from evaluators.secrets import mask, one_line  # noqa: PLC0415

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
