"""Settings that only read kept answers otherwise: as they are now, and as the earlier run had them.

Whoever changes a ``pass_bar``, a gold or a cluster column changes a verdict without asking any
model anew. So a gate is read in several ways: by today's settings, by each setting that differs
as it was, and by all of them as they were. The worse verdict stands and names its setting. A
change of settings alone hence never moves a gate to PASS.

A setting is a name with two functions: whether it differs, and the slice as of then.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from qagate.cases.dataset import Slice
from qagate.evaluators.core import Verdict
from qagate.reports.compare.sides import PairedSlice, Sides
from qagate.reports.compare.states import Pair, Pairing, paired_as
from qagate.reports.run.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to read both runs."""

    name: str
    """The setting that is as it was then; empty where all are as now."""
    sides: Sides


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Something that reads kept answers, and may differ between two runs."""

    name: str
    differs: Callable[[PairedSlice, Slice], bool]
    as_then: Callable[[PairedSlice, Slice], PairedSlice]
    """Both are given a side, and its slice as the earlier run declared it."""


def ways_of(sides: Sides) -> list[Way]:
    """Return the ways to read these slices, first as now, and last with all settings as then."""
    ways = [Way(name="", sides=sides)]
    turned: list[Setting] = []
    for setting in SETTINGS:
        if any(_differs(side, setting) for side in sides):
            turned.append(setting)
            ways.append(_way_of(setting.name, sides, [setting]))
    if len(turned) > 1:
        names = ", ".join(setting.name for setting in turned)
        ways.append(_way_of(names, sides, turned))
    return ways


def _way_of(name: str, sides: Sides, settings: Sequence[Setting]) -> Way:
    sides_then = []
    for side in sides:
        side_then = side
        for setting in settings:
            if _differs(side_then, setting) and side_then.slice_then is not None:
                side_then = setting.as_then(side_then, side_then.slice_then)
        sides_then.append(side_then)
    return Way(name=name, sides=sides_then)


def _differs(side: PairedSlice, setting: Setting) -> bool:
    return side.slice_then is not None and setting.differs(side, side.slice_then)


# Golds, words and checks


def _golds_differ(side: PairedSlice, then: Slice) -> bool:
    return side.pairing_then is not None


def _golds_then(side: PairedSlice, then: Slice) -> PairedSlice:
    assert side.pairing_then is not None
    return replace(side, pairing=side.pairing_then, pairing_then=None)


def pairing_by_then(
    pairing: Pairing, old_then: Iterable[Record], new_then: Iterable[Record]
) -> Pairing | None:
    """Return the pairs with the readings by golds, words and checks of then; None without any."""
    old_of = {(record.id, record.repeat): record for record in old_then}
    new_of = {(record.id, record.repeat): record for record in new_then}
    if not old_of and not new_of:
        return None
    pairs = []
    for pair in pairing.pairs:
        identity = pair.new.id, pair.new.repeat
        old = _graded_as(pair.old, old_of.get(identity))
        new = pair.new
        if pair.state not in ("absent", "edited"):
            new = _graded_as(pair.new, new_of.get(identity))
        pairs.append(paired_as(old, new, pair.state))
    return replace(pairing, pairs=tuple(pairs))


def _graded_as(record: Record, reading: Record | None) -> Record:
    """Return a record with the grade of another reading of its answer; as it is without one."""
    if reading is None:
        return record
    return replace(
        record,
        expected=reading.expected,
        golds=reading.golds,
        label=reading.label,
        outcome=reading.outcome,
        grade=reading.grade,
        rating=reading.rating,
        score=reading.score,
        measures=reading.measures,
        votes=reading.votes,
        adjudicated_by=reading.adjudicated_by,
        judge_grade=reading.judge_grade,
        judge_rating=reading.judge_rating,
    )


# What passes, and what a grade is worth


def _bar_differs(side: PairedSlice, then: Slice) -> bool:
    return side.slice_.kind.rated and side.slice_.pass_bar != then.pass_bar


def _bar_then(side: PairedSlice, then: Slice) -> PairedSlice:
    return _read_by(side, replace(side.slice_, pass_bar=then.pass_bar))


def _passing_differs(side: PairedSlice, then: Slice) -> bool:
    """Only grades that both rubrics have can pass otherwise: others are given anew in any case."""
    is_same_set = set(side.slice_.labels) == set(then.labels)
    return is_same_set and set(side.slice_.passing) != set(then.passing)


def _passing_then(side: PairedSlice, then: Slice) -> PairedSlice:
    rubric = side.slice_.rubric
    if rubric is None:
        return side
    rubric_then = replace(rubric, passing=then.passing)
    return _read_by(side, replace(side.slice_, rubric=rubric_then))


def _scores_differ(side: PairedSlice, then: Slice) -> bool:
    if side.slice_.rubric is None or then.rubric is None:
        return False
    return dict(side.slice_.rubric.scores) != dict(then.rubric.scores)


def _scores_then(side: PairedSlice, then: Slice) -> PairedSlice:
    rubric = side.slice_.rubric
    if rubric is None or then.rubric is None:
        return side
    rubric_then = replace(rubric, scores=then.rubric.scores)
    return _read_by(side, replace(side.slice_, rubric=rubric_then))


def _penalty_differs(side: PairedSlice, then: Slice) -> bool:
    return side.slice_.penalty != then.penalty


def _penalty_then(side: PairedSlice, then: Slice) -> PairedSlice:
    return replace(side, slice_=replace(side.slice_, penalty=then.penalty))


def _read_by(side: PairedSlice, slice_: Slice) -> PairedSlice:
    """Return the side with its kept grades read by another slice."""
    pairs: list[Pair] = []
    for pair in side.pairing.pairs:
        old = read_by(pair.old, slice_)
        new = read_by(pair.new, slice_)
        pairs.append(paired_as(old, new, pair.state))
    pairing = replace(side.pairing, pairs=tuple(pairs))
    return replace(side, slice_=slice_, pairing=pairing)


def read_by(record: Record, slice_: Slice) -> Record:
    """Return a graded record with what its grade is worth by the settings of a slice."""
    if not record.is_graded:
        return record
    verdict = Verdict(grade=record.grade, rating=record.rating)
    passes = slice_.kind.passes(record, verdict, slice_.passing, slice_.pass_bar)
    score = record.score
    if slice_.rubric is not None and record.grade is not None:
        score = slice_.rubric.scores.get(record.grade)
    return replace(record, outcome="passed" if passes else "failed", score=score)


# Which items belong together, and which are left out


def _cluster_differs(side: PairedSlice, then: Slice) -> bool:
    return side.slice_.cluster != then.cluster


def _cluster_then(side: PairedSlice, then: Slice) -> PairedSlice:
    return replace(side, slice_=replace(side.slice_, cluster=then.cluster))


def _cluster_values_differ(side: PairedSlice, then: Slice) -> bool:
    """By the column of now or of then, of an item that both runs have."""
    retired = set(side.slice_.retired.ids)
    for pair in side.pairing.of_other_metadata:
        if pair.old.id in retired:
            continue
        for slice_ in (side.slice_, replace(side.slice_, cluster=then.cluster)):
            if slice_.cluster_of(pair.old) != slice_.cluster_of(pair.new):
                return True
    return False


def _cluster_values_then(side: PairedSlice, then: Slice) -> PairedSlice:
    return replace(side, clusters_of="old")


def _retired_differ(side: PairedSlice, then: Slice) -> bool:
    return set(side.slice_.retired.ids) != set(then.retired.ids)


def _retired_then(side: PairedSlice, then: Slice) -> PairedSlice:
    """Retired items come back, and those that count again are left out, as then."""
    slice_ = replace(side.slice_, retired=then.retired)
    return replace(side, slice_=slice_)


def _order_differs(side: PairedSlice, then: Slice) -> bool:
    """Another order over the same two runs would be another ticket in a lottery."""
    return side.slice_.order != then.order


def _order_then(side: PairedSlice, then: Slice) -> PairedSlice:
    return replace(side, slice_=replace(side.slice_, order=then.order))


# The judge's labels


def _labels_differ(side: PairedSlice, then: Slice) -> bool:
    return side.judge_then is not None


def _labels_then(side: PairedSlice, then: Slice) -> PairedSlice:
    assert side.judge_then is not None
    return replace(side, judge=side.judge_then, judge_then=None)


SETTINGS: Sequence[Setting] = (
    # The first: the other settings read its grades.
    Setting(name="golds, words or checks", differs=_golds_differ, as_then=_golds_then),
    Setting(name="pass_bar", differs=_bar_differs, as_then=_bar_then),
    Setting(name="passing grades", differs=_passing_differs, as_then=_passing_then),
    Setting(name="choice_scores", differs=_scores_differ, as_then=_scores_then),
    Setting(name="penalty", differs=_penalty_differs, as_then=_penalty_then),
    Setting(name="cluster", differs=_cluster_differs, as_then=_cluster_then),
    Setting(
        name="values of the cluster column",
        differs=_cluster_values_differ,
        as_then=_cluster_values_then,
    ),
    Setting(name="retired items", differs=_retired_differ, as_then=_retired_then),
    Setting(name="order", differs=_order_differs, as_then=_order_then),
    Setting(name="labels of the judge", differs=_labels_differ, as_then=_labels_then),
)
"""In the order in which they are turned back together."""
