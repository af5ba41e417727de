"""``qagate attack --metric``: one of deepeval's metrics in the place of a judge."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from cases.attack_pack import Probe
from evaluators.core import CORRECT, INCORRECT, Ask, Case, UsageError, Verdict
from evaluators.extra_metrics import CONTEXTS, GEVAL, METRICS, Measurer, MetricSpec
from evaluators.judges.factory import JudgeFactory

MIN_SCORE = 0.7
RIGHTNESS = CONTEXTS | {"expected_output"}
"""What a metric has to see beside an answer to know whether it is right."""
ATTACKED = tuple(
    name
    for name, known in METRICS.items()
    if "actual_output" in known.fields and not RIGHTNESS.isdisjoint(known.fields)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricJudge:
    """Takes an answer for right where the metric gives it ``min_score`` or more."""

    measurer: Measurer
    min_score: float
    spec: str

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return CORRECT or INCORRECT. Raises CallError or JudgeError where there is no score."""
        score = await self.measurer.measure(case, answer, ask)
        grade = CORRECT if score >= self.min_score else INCORRECT
        return Verdict(grade=grade, reason=f"{self.measurer.spec.name} {score:.2f}")


def add_metric_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a metric and the score from which on an attack has worked."""
    add = parser.add_argument
    add("--metric", metavar="NAME",
        help=f"attack one of deepeval's metrics on the judge's model: {', '.join(ATTACKED)}, or "
             f"{GEVAL}NAME with --criteria")  # fmt: skip
    add("--criteria", default="", metavar="TEXT", help=f"what a metric {GEVAL}NAME judges")
    add("--min-score", type=float, default=MIN_SCORE, metavar="X",
        help="the score from which on it has worked; default: %(default)s")  # fmt: skip


def metric_judge(
    options: argparse.Namespace, judges: JudgeFactory, probes: Sequence[Probe]
) -> MetricJudge:
    """Return the metric that the options name, as a judge of these probes. Raises UsageError."""
    spec = _metric(options)
    model = judges.first_model
    if model is None:
        raise UsageError(f"--metric {spec.name}: a model has to judge; name one with --judge")
    without = [one.case.id for one in probes if spec.needs_context and not one.case.context]
    if without:
        raise UsageError(
            f"--metric {spec.name}: it reads a context, and attack {without[0]!r} has none; say "
            "--kind rated, or give a --pack whose attacks have one"
        )
    from evaluators.judges.metric import measurers_of  # noqa: PLC0415  # loads deepeval

    (measurer,) = measurers_of([spec], model)
    return MetricJudge(measurer=measurer, min_score=options.min_score, spec=model.spec)


def _metric(options: argparse.Namespace) -> MetricSpec:
    name, criteria = options.metric, options.criteria
    if name in ATTACKED and not criteria:
        return MetricSpec(name=name)
    if name.startswith(GEVAL) and criteria:
        fields = ("input", "actual_output", "expected_output")
        return MetricSpec(name=name, criteria=criteria, fields=fields)
    raise UsageError(
        f"--metric {name[:40]!r}: want {', '.join(ATTACKED)}, or {GEVAL}NAME with --criteria TEXT; "
        "the others do not look at whether an answer is right"
    )
