"""Whether the gates of a slice would notice if its right answers were lost.

A gate says something about an upgrade only if a worse model can fail it. Any loss passes where the
only gate is one on the rise of ``attempted``, or where a margin is as wide as the share that was
right. So each slice is asked what its gates would show if every right answer became a wrong one,
once for each verdict that does not pass; one gate at least has to notice each time. Of ratings
all become the lowest. Gates on a change have to notice the loss of half of the right answers as
well: a metric of the answers that are left, such as ``correct_given_attempted``, may see the end
of all and no loss before it.

What answers take, and what their replies look like (``cut``, ``declined``), says nothing about
which are right: gates on these notice no loss.

Figures are compared without their intervals: no evidence lets a gate pass whose own figure is
beyond its bar or margin.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from qagate.cases.dataset import Slice, Threshold
from qagate.evaluators.core import Verdict
from qagate.evaluators.statistics.metrics import ANSWER_STATES, DROP
from qagate.reports.compare.differences import harm_sign
from qagate.reports.compare.sides import PairedSlice, Sides
from qagate.reports.compare.states import Pair, Pairing
from qagate.reports.compare.values import before_and_now, value_of
from qagate.reports.compare.ways import read_by
from qagate.reports.metrics.gate import ROUNDING, side_of
from qagate.reports.run.record import Record

LOWEST_RATING = 1
PASSING_SHARES = ("correct", "pass_rate", "accuracy")
"""The metric of each kind that is the share of answers that pass."""

HALF = 2
"""One of so many right answers is lost."""

Changes = Sequence[tuple[Threshold, Sides]]
"""Gates on a change, each with the slices that it is about."""


def unnoticed_loss(
    slice_: Slice,
    records: Sequence[Record],
    bars: Sequence[Threshold],
    changes: Changes,
) -> str:
    """Return what all right answers of a slice could become unnoticed; empty where nothing is.

    It is a verdict, such as ``NOT_ATTEMPTED``. ``bars`` are gates on this run, which has these
    ``records``, and ``changes`` gates on the change since an earlier run.
    """
    if _can_be_lost(slice_) and _is_on_what_passes(bars, changes):
        return ""
    bars = [bar for bar in bars if _is_about_answers(bar)]
    changes = [change for change in changes if _is_about_answers(change[0])]
    for place, name in enumerate(_losses(slice_)):
        lost = [_lost(record, slice_, place) for record in records]
        if any(_notices(bar, slice_, lost) for bar in bars):
            continue
        for one_in in (1, HALF):
            if not _any_change_notices(changes, place, one_in):
                return name
    return ""


def _is_about_answers(threshold: Threshold) -> bool:
    """Return whether a gate is on what answers say, not on what they take or look like."""
    metric = threshold.of if threshold.paired else threshold.measure
    return not threshold.of_usage and metric not in ANSWER_STATES


def _is_on_what_passes(bars: Iterable[Threshold], changes: Changes) -> bool:
    """Return whether a gate notices each loss, as it is on the share that passes.

    Nothing is counted anew for it, and most slices have such a gate.
    """
    for bar in bars:
        if bar.measure in PASSING_SHARES and (bar.min or 0.0) > ROUNDING:
            return True
    for threshold, sides in changes:
        if threshold.measure == DROP and not threshold.of:
            right, _ = before_and_now("", sides)
            if right is not None and right > (threshold.max or 0.0) + ROUNDING:
                return True
    return False


def _any_change_notices(changes: Changes, place: int, one_in: int) -> bool:
    """Return whether a margin is exceeded if one in so many right answers is lost."""
    for threshold, sides in changes:
        lost = [_with_losses(side, place, one_in) for side in sides]
        harm = _harm(threshold, lost)
        if harm is None or harm > (threshold.max or 0.0) + ROUNDING:
            return True
    return False


# Losses


def _can_be_lost(slice_: Slice) -> bool:
    """Return whether there is a verdict that does not pass."""
    if slice_.kind.rated:
        return slice_.pass_bar > LOWEST_RATING
    labels = slice_.kind.fixed or slice_.labels
    return slice_.kind.words or any(label not in slice_.passing for label in labels)


def _losses(slice_: Slice) -> list[str]:
    """Return the names of the verdicts that a right answer may get when it is lost."""
    if slice_.kind.rated:
        return [f"rating {LOWEST_RATING}"]
    if slice_.kind.words:
        return ["the other answer", slice_.kind.silent]
    labels = slice_.kind.fixed or slice_.labels
    failing = [label for label in labels if label not in slice_.passing]
    if slice_.kind.by_checks:
        failing = [labels[-1]]
    return failing or list(labels)


def _lost(record: Record, slice_: Slice, place: int) -> Record:
    """Return an answer with the verdict at this place of ``_losses``, if it was right.

    A rating, and a metric that says which answers are right, is at its worst in any case.
    """
    if not record.is_graded:
        return record
    record = replace(record, measures=_lost_measures(record, slice_))
    if slice_.kind.rated:
        return read_by(replace(record, rating=LOWEST_RATING), slice_)
    if record.outcome != "passed":
        return record
    names = _losses(slice_)
    # Slices of one pool may have labels of their own, and another number of them.
    grade = names[min(place, len(names) - 1)]
    if slice_.kind.words and place == 0:
        grade = _other_answer(record, slice_)
    return read_by(replace(record, grade=grade), slice_)


def _lost_measures(record: Record, slice_: Slice) -> Mapping[str, float | None]:
    """Return the extra metrics of a lost answer: those change that say which answers are right."""
    if slice_.kind.by_checks:
        return dict.fromkeys(record.measures, 0.0)
    measures = dict(record.measures)
    for metric in slice_.metrics:
        if metric.worst is not None:
            measures[metric.name] = metric.worst
    return measures


def _other_answer(record: Record, slice_: Slice) -> str:
    for answer in slice_.kind.fixed:
        verdict = Verdict(grade=answer)
        if not slice_.kind.passes(record, verdict, (), slice_.pass_bar):
            return answer
    return slice_.kind.silent


def _with_losses(side: PairedSlice, place: int, one_in: int) -> PairedSlice:
    """Return a slice whose new answers are the earlier ones, but for lost ones.

    One in so many of those that were right is lost.
    """
    pairs = []
    right_so_far = 0
    for pair in side.graded:
        new = pair.old
        if pair.old.outcome == "passed":
            right_so_far += 1
        if right_so_far % one_in == 0:
            new = _lost(pair.old, side.slice_, place)
        pairs.append(Pair(old=pair.old, new=new, state=pair.state))
    return replace(side, pairing=Pairing(pairs=tuple(pairs)))


# What gates show of them


def _notices(bar: Threshold, slice_: Slice, records: Sequence[Record]) -> bool:
    """Return whether a bar is missed over these records, or its metric is undefined."""
    value = value_of(bar.measure, slice_, records)
    return value is None or side_of(bar, (value, value)) != "PASS"


def _harm(threshold: Threshold, sides: Sides) -> float | None:
    """Return how far the metric of a margin fell, or rose; None where it is undefined."""
    before, now = before_and_now(threshold.of, sides)
    if before is None or now is None:
        return None
    return harm_sign(threshold) * (now - before)
