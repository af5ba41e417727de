"""What a data set declares beside its judge: extra metrics, and checks by code.

Here are the declarations, which every process reads, and what a check of the user may return. What
runs them is in rooms:
``extras/deepeval`` for metrics and ``extras/checks`` for checks.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from qagate.evaluators.core import PYTHON
from qagate.evaluators.models.targets import FunctionTarget

CHECK_PREFIX = "check_"
"""Begins the name of a check's metric."""

GEVAL_PREFIX = "geval_"
"""Begins the name of a metric with the user's own criteria."""

ITEM_FIELDS = (
    "input",
    "actual_output",
    "expected_output",
    "context",
    "retrieval_context",
)
"""The fields of an item that a metric can read, by deepeval's names."""

ANSWER_FIELDS = ("input", "actual_output")
RETRIEVAL_FIELDS = ("input", "retrieval_context")
EXPECTED_FIELDS = (*RETRIEVAL_FIELDS, "expected_output")


@dataclass(frozen=True, slots=True)
class DeepEvalMetric:
    """One of deepeval's own metrics."""

    fields: tuple[str, ...]
    """What it reads of an item."""
    calls: int
    """How many calls an item usually takes."""


DEEPEVAL_METRICS: Mapping[str, DeepEvalMetric] = {
    "faithfulness": DeepEvalMetric((*ANSWER_FIELDS, "retrieval_context"), 3),
    "answer_relevancy": DeepEvalMetric(ANSWER_FIELDS, 2),
    "contextual_precision": DeepEvalMetric(EXPECTED_FIELDS, 1),
    "contextual_recall": DeepEvalMetric(EXPECTED_FIELDS, 1),
    "contextual_relevancy": DeepEvalMetric(RETRIEVAL_FIELDS, 1),
    "hallucination": DeepEvalMetric((*ANSWER_FIELDS, "context"), 1),
    "bias": DeepEvalMetric(ANSWER_FIELDS, 2),
    "toxicity": DeepEvalMetric(ANSWER_FIELDS, 2),
    "pii_leakage": DeepEvalMetric(ANSWER_FIELDS, 2),
}
"""Metrics by the name that a data set gives them; for all of them 1 is best and 0 is worst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """A metric that a data set asks for; only a ``geval_`` name has the fields below the name."""

    name: str
    criteria: str = ""
    """What is judged."""
    steps: tuple[str, ...] = ()
    """How it is judged; the model writes the steps if none are given."""
    fields: tuple[str, ...] = ()
    """What the model is shown of the item."""
    unmeasured: bool = False
    """Whether its gates decide although no label shows how its judge errs."""
    worst: float | None = None
    """Its value for a wrong answer, where grades are read off it; None where they are not."""

    @property
    def is_deepevals(self) -> bool:
        """Whether it is one of deepeval's own, and not one with the user's criteria."""
        return self.name in DEEPEVAL_METRICS

    @property
    def needs_context(self) -> bool:
        """Whether it can measure only items that have a context."""
        fields = self.fields
        if self.is_deepevals:
            fields = DEEPEVAL_METRICS[self.name].fields
        return "context" in fields or "retrieval_context" in fields

    @property
    def calls(self) -> int:
        """About how many calls it takes for an item."""
        if self.is_deepevals:
            return DEEPEVAL_METRICS[self.name].calls
        if self.steps:
            return 1
        return 2  # one that writes the steps, and one that scores


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
        return f"{CHECK_PREFIX}{self.name}"


def version_of(spec: CheckSpec) -> str:
    """Return the version of the user's function that a check calls; empty for a bundled check.

    It changes with the function's code. Raises UsageError if there is no such function.
    """
    if not spec.check.startswith(PYTHON):
        return ""
    function = FunctionTarget(name=spec.check.removeprefix(PYTHON))
    return function.release


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The result of a check."""

    value: float | None
    """From 0 to 1; None where the check cannot tell, and the answer does not count."""
    reason: str = ""
