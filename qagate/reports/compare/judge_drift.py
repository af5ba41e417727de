"""How the judge reads this run and its baseline differently: by labels, and over time."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from qagate.evaluators.output import plural
from qagate.evaluators.statistics.metrics import DROP
from qagate.reports.compare.shares import share_difference
from qagate.reports.compare.sides import PairedSlice
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.evidence import Calibration


def drift_notes(
    calibrations: Sequence[Calibration],
    sides: Mapping[str, PairedSlice],
    baseline: Baseline | None,
) -> Iterator[str]:
    """Yield a line for each labelled set that the judge read in the baseline too."""
    before = {
        (calibration.dataset, calibration.language): calibration
        for calibration in calibrations_in(baseline)
    }
    for calibration in calibrations:
        name = f"{calibration.dataset}:{calibration.language}"
        change = ""
        if name in sides:
            change = _among_items(sides[name])
        if not change:
            former = before.get((calibration.dataset, calibration.language))
            change = _beside_items(calibration, former)
        if change:
            yield (
                f"judge compared with the baseline's, on the labelled items of {name}: "
                f"{change}"
            )


def favour_notes(sides: Mapping[str, PairedSlice]) -> Iterator[str]:
    """Yield how far the judge may favour a run, beside the margin, by slice."""
    for name, side in sides.items():
        if side.favour is None:
            continue
        margins = [gate.bar for gate in side.slice_.thresholds if gate.measure == DROP]
        beside = f"; the margin is {margins[0]}" if margins else ""
        yield (
            f"{name}: the judge may favour the new run (above 0) or the old one (below 0) by "
            f"{side.favour.text}{beside}"
        )


def _among_items(side: PairedSlice) -> str:
    """Return how agreement moved over labelled answers that are items of both runs."""
    difference = share_difference([side])
    if not difference.n:
        return ""
    agreed = sum(bool(pair.old.passes()) for pair in side.graded) / difference.n
    return (
        f"agreement {agreed:.3f} then, {agreed + difference.value:.3f} now, new - old "
        f"{difference.estimate.text()}, over {plural(int(difference.n), 'pair')}"
    )


def _beside_items(now: Calibration, then: Calibration | None) -> str:
    """Return how agreement moved over the same labels beside the items; empty if it did not."""
    if then is None or _labels(then) != _labels(now):
        return ""
    agreement_then = then.measures.get("agreement")
    agreement_now = now.measures.get("agreement")
    if not agreement_then or not agreement_now or agreement_then == agreement_now:
        return ""
    return f"agreement {agreement_then.text()} then, {agreement_now.text()} now"


def _labels(calibration: Calibration) -> Counter[str]:
    labels: Counter[str] = Counter()
    for cell in calibration.confusion:
        labels[cell.label] += cell.count
    return labels


def calibrations_in(baseline: Baseline | None) -> tuple[Calibration, ...]:
    """Return the calibrations of an earlier run; none without one."""
    return baseline.report.judging.calibrations if baseline else ()
