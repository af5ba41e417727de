"""What the baseline had to keep to, and this run has not: slices, gates, floors, measurements.

Whoever takes out the gate that fails needs no better model. So nothing that the baseline was held
to vanishes quietly. A slice that this run lacks or calls otherwise, and a gate that is gone,
waived or easier, leave the run INCONCLUSIVE by name. What is meant can be accepted on the command
line, for one run, by exactly these slices or these changes: ``--accept-changed slices=NAMES``,
``--accept-changed gates=HASH``.

Evidence of another kind is no easier gate: that of then is held beside that of now
(``with_evidence_of_then``).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from qagate.cases.dataset import Dataset, Slice, Threshold
from qagate.evaluators.core import UsageError
from qagate.evaluators.output import plural
from qagate.evaluators.statistics.metrics import floor_ends
from qagate.evaluators.text import digest, first_of, shown
from qagate.reports.run.accepted import NOTHING_ACCEPTED, Accepted
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.report import LABEL, Obstacle

ACCEPT = "--accept-changed"
HASH_DIGITS = 12


# Slices


def lacking_slices(
    names: Collection[str], baseline: Baseline, accepted: Accepted = NOTHING_ACCEPTED
) -> list[str]:
    """Return the slices of the baseline that are not among ``names``, nor accepted as gone.

    Labelled answers are none: no candidate answers them. Rule 3 asks for what they measure.
    """
    return [
        name
        for name in baseline.answered
        if name not in names and name not in accepted.slices
    ]


def slice_doubts(
    names: Collection[str],
    baseline: Baseline,
    accepted: Accepted = NOTHING_ACCEPTED,
    *,
    selected: Collection[str] = (),
) -> Iterator[str]:
    """Yield in words which slices only the baseline has, and what leads on.

    What the command ``selected`` and a filter left out cannot be accepted as gone.
    """
    lacking = lacking_slices(names, baseline, accepted)
    if not lacking:
        return
    counted = [
        f"{name} ({plural(len(baseline.slices[name]), 'item')})" for name in lacking
    ]
    text = (
        f"{Obstacle.LACKING} {first_of(counted)}, which the {baseline.role} has; "
        "run all of its slices under their names"
    )
    gone = [name for name in lacking if name not in selected]
    if baseline.role == "baseline" and gone:
        text += f", or {ACCEPT} slices={','.join(gone)}"
    yield text


# Gates, floors and measurements


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneGate:
    """Something that the baseline had to keep to, and this run has not."""

    slice: str
    """Its slice, or its dataset with ``*`` for all languages."""
    text: str
    """What it was, and what has become of it."""


def gone_gates(
    datasets: Iterable[Dataset], earlier: Iterable[Dataset]
) -> list[GoneGate]:
    """Return what the earlier data sets had to keep to, and these of the same names have not.

    Slices that are gone as a whole are no matter of their gates (``lacking_slices``).
    """
    now_of = {dataset.name: dataset for dataset in datasets}
    gone: list[GoneGate] = []
    for then in earlier:
        now = now_of.get(then.name)
        if now is not None:
            gone += _gone_of_dataset(now, then)
    return sorted(gone, key=lambda gate: (gate.slice, gate.text))


def measurement_doubts(waived: Iterable[str], baseline: Baseline) -> Iterator[str]:
    """Yield in words for which slices labels measured the judge then, and a waiver counts now.

    ``waived`` are the slices whose judge goes unmeasured now. Labels that vanished showed errors.
    """
    measured: set[str] = set()
    for calibration in baseline.report.judging.calibrations:
        measured.update(calibration.graders)
    gone = [name for name in waived if name in measured]
    if gone:
        yield (
            f"labels measured the judge of {first_of(gone)} for the {baseline.role}, and none do "
            f"now; put them back, or label answers of this run: {LABEL}"
        )


def _gone_of_dataset(now: Dataset, then: Dataset) -> Iterator[GoneGate]:
    pool = f"{then.name}:*"
    for text in _gone_thresholds(now.pooled, then.pooled):
        yield GoneGate(slice=pool, text=text)
    if now.judge_unmeasured and not then.judge_unmeasured:
        yield GoneGate(slice=pool, text="the judge's errors count no more (unmeasured)")
    if now.health_off and not then.health_off:
        text = "the health of its answers counts no more (health: off)"
        yield GoneGate(slice=pool, text=text)
    for language, slice_then in then.slices.items():
        slice_now = now.slices.get(language)
        if slice_now is not None:
            yield from _gone_of_slice(slice_now, slice_then)


def _gone_of_slice(now: Slice, then: Slice) -> Iterator[GoneGate]:
    for text in _gone_thresholds(now.thresholds, then.thresholds):
        yield GoneGate(slice=then.name, text=text)
    floors = (
        ("floor", now.floor, then.floor),
        ("floor_limit", now.floor_limit, then.floor_limit),
        ("offline_floor", now.offline_floor, then.offline_floor),
    )
    for name, floor_now, floor_then in floors:
        for text in _gone_floors(name, floor_now, floor_then):
            yield GoneGate(slice=then.name, text=text)


def _gone_thresholds(
    now: Sequence[Threshold], then: Sequence[Threshold]
) -> Iterator[str]:
    """Yield the thresholds that none of today's holds as strictly, whatever their evidence."""
    for before in then:
        of_same_name = [gate for gate in now if _is_about_the_same(gate, before)]
        if not of_same_name:
            yield f"{before.text} is gone"
        elif not any(_holds(gate, before) for gate in of_same_name):
            yield f"{before.text} is laxer now: {of_same_name[0].text}"


def _is_about_the_same(gate: Threshold, before: Threshold) -> bool:
    return (
        gate.measure == before.measure
        and gate.of == before.of
        and gate.pool == before.pool
    )


def _holds(gate: Threshold, before: Threshold) -> bool:
    """Whether a gate asks at least as much as the one before it."""
    same_evidence = replace(gate, evidence=before.evidence, share=before.share)
    return not same_evidence.is_laxer(before)


def _gone_floors(
    name: str, now: Mapping[str, float], then: Mapping[str, float]
) -> Iterator[str]:
    """Yield the floors of a judge that are gone or easier.

    A floor is the least of a metric, or the largest distance from 0 of a two-sided one.
    """
    for measure, bar in then.items():
        if measure not in now:
            yield f"{name} {measure} {bar:g} is gone"
        elif _is_easier(measure, now[measure], bar):
            yield f"{name} {measure} {bar:g} is laxer now: {now[measure]:g}"


def _is_easier(measure: str, now: float, then: float) -> bool:
    _, highest = floor_ends(measure, then)
    if highest is not None:  # a distance from 0: the smaller, the stricter
        return now > then
    return now < then


def hash_of(gone: Sequence[GoneGate]) -> str:
    """Return the name of exactly these changes, for the command line; empty for none."""
    if not gone:
        return ""
    lines = sorted(f"{gate.slice}: {gate.text}" for gate in gone)
    return digest(lines)[:HASH_DIGITS]


def gate_doubts(gone: Sequence[GoneGate], accepted: Accepted) -> Iterator[str]:
    """Yield in words which gates are gone or easier, and the option that accepts just these."""
    if not gone or accepted.gates == hash_of(gone):
        return
    texts = [f"{gate.slice}: {gate.text}" for gate in gone]
    yield (
        f"{first_of(texts)}, and the baseline was held to it; "
        f"declare it again, or {ACCEPT} gates={hash_of(gone)}"
    )


def check_accepted(
    accepted: Accepted,
    datasets: Sequence[Dataset],
    names: Collection[str],
    baseline: Baseline | None,
) -> None:
    """Raise UsageError where the command line accepts what is not so.

    ``names`` are the slices that this run selects.
    """
    if baseline is None:
        if accepted.slices or accepted.gates:
            raise UsageError(
                f"{ACCEPT}: there is no baseline that anything changed since"
            )
        return
    lacking = lacking_slices(names, baseline)
    for name in accepted.slices:
        if name not in lacking:
            raise UsageError(
                f"{ACCEPT} slices={shown(name)}: the baseline has no such slice that this "
                f"run lacks; it lacks {first_of(lacking) or 'none'}"
            )
    if not accepted.gates:
        return
    gone = hash_of(gone_gates(datasets, baseline.report.datasets))
    if accepted.gates != gone:
        wanted = f"; for what is gone or easier now it is {gone}" if gone else ""
        raise UsageError(
            f"{ACCEPT} gates={shown(accepted.gates)}: no changes have this hash{wanted}"
        )


# Evidence


def with_evidence_of_then(dataset: Dataset, earlier: Iterable[Dataset]) -> Dataset:
    """Return a data set with each gate also by the evidence that the baseline had for it."""
    for then in earlier:
        if then.name == dataset.name:
            return _with_evidence(dataset, then)
    return dataset


def _with_evidence(dataset: Dataset, then: Dataset) -> Dataset:
    slices = {}
    for language, slice_ in dataset.slices.items():
        slices[language] = slice_
        slice_then = then.slices.get(language)
        if slice_then is not None:
            added = _by_evidence_of_then(slice_.thresholds, slice_then.thresholds)
            slices[language] = replace(slice_, thresholds=(*slice_.thresholds, *added))
    added = _by_evidence_of_then(dataset.pooled, then.pooled)
    return replace(dataset, slices=slices, pooled=(*dataset.pooled, *added))


def _by_evidence_of_then(
    now: Sequence[Threshold], then: Sequence[Threshold]
) -> Iterator[Threshold]:
    for before in then:
        alike = [gate for gate in now if _is_about_the_same(gate, before)]
        held_so = any(_evidence(gate) == _evidence(before) for gate in alike)
        if alike and not held_so:
            yield replace(alike[0], evidence=before.evidence, share=before.share)


def _evidence(gate: Threshold) -> tuple[object, ...]:
    share = gate.share if gate.evidence == "audited" else None
    return gate.evidence, share
