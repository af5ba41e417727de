"""Whose verdicts count in a paired gate: people's, or the judge's on both sides.

A person who corrects the judge on one side of a comparison only moves the difference: of the
losses that the judge made up some go, of the gains none do. So people's verdicts count in a slice
only if everything that flipped, either way, had both its answers read by people. Else the judge's
own grades stand on both sides. What an audit drew counts in its own gate, which weighs each pair by
the chance that it was drawn.
"""

from collections.abc import Sequence
from dataclasses import replace

from qagate.cases.dataset import Slice
from qagate.evaluators.adjudications import answer_digest
from qagate.evaluators.text import digest
from qagate.reports.compare.states import Pair, Pairing, paired_as, ungraded
from qagate.reports.compare.ways import read_by
from qagate.reports.run.record import Record


def pair_key(old: Record, new: Record) -> str:
    """Return the name of two answers to one item in a plan of an audit."""
    answers = [answer_digest(record, record.answer or "") for record in (old, new)]
    return digest(["audit", *answers])[:32]


def with_fair_verdicts(pairing: Pairing, slice_: Slice) -> Pairing:
    """Return the pairs with people's verdicts, or with the judge's on both sides."""
    if not any(_has_person(pair) for pair in pairing.pairs):
        return pairing
    judged = [_as_judged(pair, slice_) for pair in pairing.pairs]
    if _all_flips_read(pairing.pairs, judged):
        return pairing
    return replace(pairing, pairs=tuple(judged))


def _has_person(pair: Pair) -> bool:
    return bool(pair.old.adjudicated_by or pair.new.adjudicated_by)


def _is_read(pair: Pair) -> bool:
    """Whether people read both answers."""
    return bool(pair.old.adjudicated_by and pair.new.adjudicated_by)


def _all_flips_read(pairs: Sequence[Pair], judged: Sequence[Pair]) -> bool:
    for pair, by_judge in zip(pairs, judged, strict=True):
        flipped = by_judge.old.passes() != by_judge.new.passes()
        is_open = flipped or _has_person(pair)
        if is_open and not _is_read(pair):
            return False
    return True


def _as_judged(pair: Pair, slice_: Slice) -> Pair:
    old = as_judged(pair.old, slice_)
    new = as_judged(pair.new, slice_)
    return paired_as(old, new, pair.state)


def as_judged(record: Record, slice_: Slice) -> Record:
    """Return a record with the judge's own grade where a person's stands."""
    if not record.adjudicated_by:
        return record
    by_judge = replace(
        record,
        grade=record.judge_grade,
        rating=record.judge_rating,
        adjudicated_by="",
        judge_grade=None,
        judge_rating=None,
    )
    if by_judge.grade is None and by_judge.rating is None:
        return ungraded(by_judge)
    return read_by(by_judge, slice_)
