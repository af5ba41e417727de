"""Whether a judge may decide the gates of a slice, and what a report says of that."""

from collections.abc import Sequence

from cases.dataset import Dataset, Slice
from cases.plan import rates
from evaluators.judge_spec import PanelSpec
from reports.run.evidence import Calibration

CALIBRATION_OFF = "calibration is off"
"""Why nothing measures a judge where the user wants that."""


def distrust(
    datasets: Sequence[Dataset], slice_: Slice, calibrations: Sequence[Calibration], judge: str
) -> str:
    """Return why the judge of a slice may not decide its gates, empty where it may.

    A judge of rules may decide unmeasured, unless a labelled data set says
    ``require_calibration``. A model has to reach a floor, unless the slice's data set says
    ``judge: unmeasured``.
    """
    own = [one for one in calibrations if slice_.name in one.graders]
    offline = PanelSpec.parse(judge).is_offline
    blocks = next((one.blocks for one in own if one.blocks), "")
    if blocks and offline:
        return f"{blocks}; name a model as the judge (--judge)"
    if blocks or not slice_.kind.by_rubric or any(one.trusted for one in own):
        return blocks
    alike = [one for one in datasets if not one.kind.answered and rates(one) == slice_.kind.rated]
    waived = any(one.judge_unmeasured for one in datasets if one.name == slice_.dataset)
    measured = next((one.dataset for one in own if is_measured(one)), "")
    if not measured and any(one.require_calibration for one in alike):
        return f"judge not measured in {slice_.language}, and calibration is required"
    if waived or offline:
        return ""
    why = next((one.reason for one in own), "no labelled items were judged")
    lacks = f"not measured in {slice_.language}: {why}"
    remedy = f"label answers by the same rubric ({_new_labels(slice_)})"
    if why == CALIBRATION_OFF:
        remedy = "leave out --calibration off"
    if measured:
        lacks = f"not trusted in {slice_.language}: {measured} has no floor for it"
        remedy = "give one (floor: {agreement: 0.9})"
    waiver = f"say judge: unmeasured in the dataset.yaml of {slice_.dataset}"
    return f"judge {lacks}; {remedy}, or {waiver}"


def _new_labels(slice_: Slice) -> str:
    """Return the command that writes a labelled data set for the judge of a slice."""
    name = f"labels_{slice_.language.lower().replace('-', '_')}"
    kind = "judged-ratings" if slice_.kind.rated else "judged"
    return f"qagate new {name} --kind {kind} --lang {slice_.language}"


def is_measured(found: Calibration) -> bool:
    """Return whether at least one labelled item was graded."""
    return any(one.value is not None for one in found.measures.values())


def calibration_notes(calibrations: Sequence[Calibration]) -> list[str]:
    """Return a line for each language: the judge's figures there, or why there are none."""
    notes = []
    for one in calibrations:
        slices = ", ".join(one.graders)
        if one.stand_in:
            notes.append(f"judge in {one.language} (for {slices or 'no slice'}): {one.stand_in}")
        if one.source == "records":
            continue
        if not one.measures:
            notes.append(f"judge not measured in {one.language} (for {slices}): {one.reason}")
            continue
        told = {name: one.measures.get(name) for name in ("agreement", "youden", *one.floor)}
        figures = ", ".join(f"{name} {found.text()}" for name, found in told.items() if found)
        earlier = ", measured earlier" if one.source == "ledger" else ""
        lost = f", {one.ungraded} without a grade" if one.ungraded else ""
        trust = f"; {one.reason}" if one.reason else "" if one.floor else "; it has no floor"
        notes.append(
            f"judge in {one.language} (for {slices}){earlier}: {figures} over "
            f"{one.labels} ({one.dataset}){lost}{trust}"
        )
    return notes
