"""Which of deepeval's metrics can be named; only ``judges/metric.py`` loads deepeval itself."""

from collections.abc import Mapping
from dataclasses import dataclass

from evaluators.core import Kind

GEVAL = "geval_"
"""What the name of a metric with criteria of one's own begins with."""

FIELDS = ("input", "actual_output", "expected_output", "context", "retrieval_context")
"""What of an item a metric can be shown, in deepeval's words."""

CONTEXTS = frozenset({"context", "retrieval_context"})
KINDS: tuple[Kind, ...] = ("graded", "rated", "yes_no")
"""The kinds of dataset that may have extra measures: those in which a model answers."""


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
