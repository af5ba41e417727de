"""What a signer is told of the judge: how often it agreed with labels, and whose these are."""

from collections.abc import Sequence
from dataclasses import dataclass

from qagate.evaluators.statistics.intervals import Estimate
from qagate.reports.render.measure_words import percent
from qagate.reports.render.names import Names
from qagate.reports.run.evidence import Calibration
from qagate.reports.run.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeTrust:
    """How often the judge of a slice is right, and how often it has to be."""

    low: float | None
    high: float | None
    needed: float


def agreement_of(calibration: Calibration) -> Estimate | None:
    """Return the share of labels that the judge agrees with; of ratings, which side of the bar."""
    name = "agreement" if calibration.pass_bar is None else "pass_agreement"
    return calibration.measures.get(name)


def trust_of(report: Report, slice_name: str) -> JudgeTrust | None:
    """Return how far the judge of a slice is trusted; None where no labels say it."""
    for calibration in report.judging.calibrations:
        if slice_name not in calibration.graders:
            continue
        agreement = agreement_of(calibration)
        if agreement is None:
            continue
        floors = [*calibration.floor_limit.values(), *calibration.floor.values()]
        return JudgeTrust(
            low=agreement.low, high=agreement.high, needed=min(floors, default=0.0)
        )
    return None


def judge_sentence(report: Report, slice_names: Sequence[str]) -> str:
    """Return in one or two sentences how far the judge can be believed.

    ``slice_names`` are the slices that explain the verdict; the first is named.
    """
    judging = report.judging
    if any(part.stand_in for part in judging.calibrations):
        return "A placeholder judge graded: this run tests the setup, not a model."
    measuring = [part for part in judging.calibrations if part.graders]
    counted = [_counted(part) for part in measuring]
    total = sum(labels for _, labels in counted)
    if not total:
        if not judging.graded:
            return "No judge was needed: code read the answers."
        return "Nothing shows how often it is right."
    agreed = sum(right for right, _ in counted)
    text = (
        f"It agreed with **{agreed:,} of {total:,}** answers graded beforehand "
        f"({percent(agreed / total)})"
    )
    text += _in_telling_language(report, measuring, slice_names)
    return f"{text}. {_whose(measuring, total)}"


def _counted(calibration: Calibration) -> tuple[int, int]:
    """Return on how many labels the judge agreed, and how many there are."""
    agreement = agreement_of(calibration)
    if agreement is None or agreement.value is None:
        return 0, 0
    return round(agreement.value * agreement.n), agreement.n


def _in_telling_language(
    report: Report, measuring: Sequence[Calibration], slice_names: Sequence[str]
) -> str:
    if len(measuring) < 2 or not slice_names:
        return ""
    name = slice_names[0]
    counted = [_counted(part) for part in measuring if name in part.graders]
    labels = sum(total for _, total in counted)
    if not labels:
        return ""
    agreed = sum(right for right, _ in counted)
    called = Names.of(report).of_slice(name)
    return f", in {called} with {agreed:,} of {labels:,}"


def _whose(measuring: Sequence[Calibration], total: int) -> str:
    """Return how many of the labels are the user's own."""
    own = sum(_counted(part)[1] for part in measuring if not part.bundled)
    if not own:
        return "None of them are yours."
    if own == total:
        return "All of them are yours."
    return f"{own:,} of them are yours."
