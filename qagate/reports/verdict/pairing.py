"""The slices of a run beside those of an earlier one, with all that may keep gates open."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from qagate.cases.dataset import Slice
from qagate.evaluators.core import RECORDED
from qagate.evaluators.models.versions import asked_name
from qagate.evaluators.text import first_of
from qagate.reports.compare.people import with_fair_verdicts
from qagate.reports.compare.same_file import (
    AskedNames,
    name_of_both,
    other_source,
    same_files,
    same_model,
    same_run,
)
from qagate.reports.compare.sides import Compared, PairedSlice
from qagate.reports.compare.states import Pairing, pair_records
from qagate.reports.compare.ways import pairing_by_then
from qagate.reports.gates.gone import lacking_slices
from qagate.reports.judge.favour import JudgeFavour, favour_of, shown_favours
from qagate.reports.judge.measuring import read_by
from qagate.reports.judge.slice_judge import SliceJudge
from qagate.reports.run.accepted import NOTHING_ACCEPTED, Accepted
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.candidates import ONE_CANDIDATE, Candidates
from qagate.reports.run.changes import changed_judge, changed_requests
from qagate.reports.run.json_data import inner
from qagate.reports.run.measured import is_foreign, obstacle_of
from qagate.reports.run.record import Record, by_slice
from qagate.reports.run.report import Obstacle, SliceSummary


class PairedRun(Protocol):
    """What of a counted run is paired; mappings are keyed by the slice's name."""

    @property
    def slices(self) -> Mapping[str, Slice]:
        """The slices that were run."""

    @property
    def records(self) -> Mapping[str, Sequence[Record]]:
        """Their records."""

    @property
    def summaries(self) -> Mapping[str, SliceSummary]:
        """Their counts."""

    @property
    def judges(self) -> Mapping[str, SliceJudge]:
        """Whoever grades, where a judge does."""

    def distrust(self, name: str) -> str:
        """Return why a slice's judge is not trusted; empty where it is."""


NO_MODEL = (RECORDED, "")
"""What stands for the model where answers come from a file, of a data set or of another tool."""


def paired_slices(
    run: PairedRun,
    judge: str,
    baseline: Baseline | None,
    origin: Mapping[str, object] = {},
    *,
    model: str = "",
    accepted: Accepted = NOTHING_ACCEPTED,
    tries: Mapping[str, tuple[str, ...]] = {},
    unsettled: Mapping[str, Collection[str]] = {},
    candidates: Candidates = ONE_CANDIDATE,
) -> dict[str, PairedSlice]:
    """Return the slices of a run paired with those of an earlier one, by name.

    A slice that the earlier run lacks is there for the first time: it has nothing to be compared
    with, and its paired gates hold nothing up, unless the earlier run has a slice that is missing
    here. ``model`` is the new run's, and ``origin`` its provenance, both if known. ``tries`` say by
    slice how the earlier sets of answers of this model ended beside the baseline, and ``unsettled``
    which items were retired only after the first of them. ``candidates`` are decided together with
    this run, beside the same baseline.
    """
    if baseline is None:
        return {}
    lacking = lacking_slices(run.slices, baseline, accepted)
    sides = {}
    for name, slice_ in run.slices.items():
        if name in baseline.slices:
            sides[name] = _paired_slice(
                run,
                slice_,
                baseline,
                judge=judge,
                origin=origin,
                model=model,
                accepted=accepted,
                unsettled=unsettled.get(name, ()),
            )
        elif lacking:
            sides[name] = _slice_of_other_name(slice_, baseline, lacking)
    for name, favour in _favours(run, sides).items():
        blocked = sides[name].blocked or favour.obstacle
        sides[name] = replace(sides[name], favour=favour, blocked=blocked)
    if baseline.role == "baseline":
        for name, side in sides.items():
            sides[name] = replace(
                side, tries=tries.get(name, ()), candidates=candidates
            )
    if model == baseline.report.model and model in NO_MODEL:
        for name, reason in same_files(sides, baseline.role).items():
            sides[name] = _blocked(sides[name], reason)
    return sides


def _favours(
    run: PairedRun, sides: Mapping[str, PairedSlice]
) -> dict[str, JudgeFavour]:
    """Return how far judges may favour one of the runs, by slice, where labels say so."""
    favours = {}
    for name, side in sides.items():
        if side.judge is None or side.judge.is_read or not side.judge.labels.own:
            continue
        old = [pair.old for pair in side.pairing.pairs]
        favour = favour_of(side.slice_, side.judge.labels, run.records[name], old)
        if favour is not None:
            favours[name] = (side.slice_.language, favour)
    return shown_favours(favours)


def _paired_slice(
    run: PairedRun,
    slice_: Slice,
    baseline: Baseline,
    *,
    judge: str,
    origin: Mapping[str, object],
    model: str,
    accepted: Accepted,
    unsettled: Collection[str],
) -> PairedSlice:
    name = slice_.name
    summary = run.summaries[name]
    slice_then = slice_as_of_then(baseline, slice_)
    if slice_then is not None and unsettled:
        slice_then = _counting_again(slice_then, unsettled)
    pairing, pairing_then = _pairings(slice_, slice_then, run.records[name], baseline)
    narrow = summary.obstacle or baseline.obstacle(name)
    narrow = narrow or _forgotten(baseline, name, unsettled)
    if not narrow and model and slice_.kind.answered:
        narrow = other_source(model, baseline.report.model, baseline.role)
    if not narrow and slice_.kind.answered:
        narrow = same_run(pairing, baseline.role)
    names = asked_names(model, origin, baseline)
    if not narrow and slice_.kind.answered:
        narrow = same_model(pairing, names, baseline.role)
    changed = ""
    lacking_grades = ""
    if baseline.reading is None:
        # Each run's own grades are compared, so they have to be alike.
        measured = obstacle_of(
            name, origin, baseline.report.provenance, accepted=accepted
        )
        new = run.records[name]
        old = baseline.slices[name]
        changed = changed_judge(slice_, new, old, baseline, judge)
        changed = changed or changed_requests(slice_, baseline, judge, origin)
        changed = changed or measured
    else:
        lacking_grades = baseline.reading.lacking.get(name, "")
    blocked = run.distrust(name) or changed or lacking_grades or narrow
    return PairedSlice(
        slice_=slice_,
        pairing=pairing,
        pairing_then=pairing_then,
        slice_then=slice_then,
        role=baseline.role,
        path=baseline.path,
        blocked=summary.obstacle or blocked,
        changed=changed,
        narrow=narrow,
        named_alike=name_of_both(pairing, names) if slice_.kind.answered else "",
        judge=_judge_of(run, name, pairing),
        people=baseline.people,
        plan=baseline.plan,
    )


def _counting_again(slice_: Slice, ids: Collection[str]) -> Slice:
    """Return a slice as if it had not retired these items."""
    kept = tuple(id_ for id_ in slice_.retired.ids if id_ not in ids)
    return replace(slice_, retired=replace(slice_.retired, ids=kept))


def _forgotten(baseline: Baseline, name: str, unsettled: Collection[str]) -> str:
    """Return why items that count both ways cannot; empty where the earlier run has them."""
    asked = {record.id for record in baseline.slices[name]}
    gone = [id_ for id_ in unsettled if id_ not in asked]
    if not gone:
        return ""
    return (
        f"{first_of(gone)}: retired after this model was first tried, and the {baseline.role} "
        f"has no answer to them; {Obstacle.OTHER_ITEMS} a baseline that has"
    )


def _judge_of(run: PairedRun, name: str, pairing: Pairing) -> SliceJudge | None:
    """Return whoever graded a slice, with the grades that both runs got."""
    judge = run.judges.get(name)
    if judge is None:
        return None
    old = [pair.old for pair in pairing.pairs]
    return read_by(judge, run.records[name], old)


def beside_baseline(compared: Sequence[Compared], name: str) -> PairedSlice | None:
    """Return a slice beside the baseline's; None where no baseline has it."""
    for sides in compared:
        side = sides.get(name)
        if side is not None and side.role == "baseline":
            return side
    return None


def slice_as_of_then(baseline: Baseline, slice_: Slice) -> Slice | None:
    """Return a slice as the earlier run declared it; None where that is not known."""
    for dataset in baseline.report.datasets:
        if dataset.name == slice_.dataset:
            return dataset.slices.get(slice_.language)
    return None


def asked_names(
    model: str, origin: Mapping[str, object], baseline: Baseline
) -> AskedNames:
    """Return by which names the models of a run and of an earlier one were asked."""
    earlier = baseline.report.model
    earlier_origin = baseline.report.provenance
    return AskedNames(
        model=model,
        new=asked_name(model, inner(origin, "sent", model)),
        old=asked_name(earlier, inner(earlier_origin, "sent", earlier)),
    )


def _pairings(
    slice_: Slice,
    slice_then: Slice | None,
    new: Sequence[Record],
    baseline: Baseline,
) -> tuple[Pairing, Pairing | None]:
    """Return the pairs by today's golds, and by those of then where they differ."""
    old = baseline.slices[slice_.name]
    answered = slice_.kind.answered
    reading = baseline.reading
    if reading is None or not answered:
        whole = not answered or is_foreign(baseline.report.provenance)
        pairing = pair_records(new, old, by_digest=whole)
        pairing_then = None
    else:
        read = by_slice(reading.old).get(slice_.name, ())
        pairing = pair_records(new, old, read)
        pairing_then = pairing_by_then(
            pairing,
            by_slice(reading.old_then).get(slice_.name, ()),
            by_slice(reading.new_then).get(slice_.name, ()),
        )
    retired_then = set(slice_then.retired.ids) if slice_then else set[str]()
    pairing = _fair(pairing, slice_, baseline, retired_then)
    if pairing_then is not None:
        pairing_then = _fair(pairing_then, slice_, baseline, retired_then)
    return pairing, pairing_then


def _fair(
    pairing: Pairing, slice_: Slice, baseline: Baseline, retired_then: Collection[str]
) -> Pairing:
    """Return the pairs without those that were retired then and are gone now, by fair verdicts."""
    kept = []
    for pair in pairing.pairs:
        if pair.state != "absent" or pair.old.id not in retired_then:
            kept.append(pair)
    pairing = replace(pairing, pairs=tuple(kept))
    return with_fair_verdicts(pairing, slice_)


def _slice_of_other_name(
    slice_: Slice, baseline: Baseline, lacking: Sequence[str]
) -> PairedSlice:
    """Return a slice without pairs, which may be one of those that seem to be missing."""
    reason = (
        f"the {baseline.role} knows no {slice_.name}, and {Obstacle.LACKING} "
        f"{', '.join(lacking)}; run the slices under their names"
    )
    return PairedSlice(
        slice_=slice_,
        pairing=Pairing(),
        role=baseline.role,
        path=baseline.path,
        blocked=reason,
        narrow=reason,
    )


def _blocked(side: PairedSlice, reason: str) -> PairedSlice:
    return replace(side, blocked=side.blocked or reason, narrow=side.narrow or reason)
