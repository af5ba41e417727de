"""A run compared with its baseline: what flipped or moved, slice by slice and item by item."""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace

from qagate.evaluators.output import plural
from qagate.evaluators.statistics.intervals import Estimate
from qagate.evaluators.statistics.paired import holm
from qagate.reports.compare.differences import differences
from qagate.reports.compare.shares import (
    PairedDifference,
    interval_at_any_look,
    share_difference,
)
from qagate.reports.compare.sides import Compared, PairedSlice, Sides
from qagate.reports.compare.states import Pair
from qagate.reports.compare.tables import pairs_of
from qagate.reports.compare.usage_changes import usage_shifts
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.evidence import Change, Comparison, Flip, SliceComparison
from qagate.reports.run.provenance import named_model


def compare(
    sides: Sides, baseline: Baseline, warnings: Iterable[str] = ()
) -> Comparison:
    """Return the comparison of all slices, pooled ones too; ``warnings`` are what else differs."""
    by_dataset: dict[str, list[PairedSlice]] = defaultdict(list)
    for side in sides:
        by_dataset[side.slice_.dataset].append(side)
    slices = [compare_slices([side]) for side in sides]
    for sides_of_dataset in by_dataset.values():
        if len(sides_of_dataset) > 1:
            slices.append(compare_slices(sides_of_dataset))
    changes: list[Change] = []
    if baseline.role == "baseline":
        for side in sides:
            changes += _changes(side)
    own_grades = [
        f"{side.slice_.name}: {side.changed}; the difference may be the judge's own"
        for side in sides
        if side.changed
    ]
    return Comparison(
        model=named_model(baseline.report.model, baseline.report.provenance),
        judge=baseline.report.judge,
        sha256=baseline.sha256,
        slices=tuple(slices),
        changes=tuple(changes),
        warnings=(*own_grades, *warnings),
    )


def compare_slices(sides: Sides) -> SliceComparison:
    """Return how one slice, or all languages of a data set together, moved."""
    difference = share_difference(sides)
    is_stopped = any(pair.state == "stopped" for _, pair in pairs_of(sides))
    estimate = difference.estimate
    odds = difference.odds
    others = differences(sides)
    if is_stopped:  # what is for a fixed number of items does not hold
        estimate = _at_any_look(sides, difference)
        odds = replace(odds, low=None, high=None)
        others = {
            name: replace(other, low=None, high=None) for name, other in others.items()
        }
    right_before = sum(
        bool(pair.old.passes(side.bar)) for side in sides for pair in side.graded
    )
    both_right = right_before - int(difference.broke)
    moved = int(difference.fixed + difference.broke)
    added = sum(len(side.added) for side in sides)
    repeats = sum(_further_repeats(side) for side in sides)
    return SliceComparison(
        dataset=sides[0].slice_.dataset,
        language=sides[0].slice_.language if len(sides) == 1 else "",
        difference=estimate,
        p_value=difference.p_value if difference.n and not is_stopped else None,
        odds=odds,
        fixed=int(difference.fixed),
        broke=int(difference.broke),
        both_right=both_right,
        both_wrong=int(difference.n) - both_right - moved,
        ungraded=sum(side.count("ungraded", "stopped") for side in sides),
        added=added - repeats,
        changed=sum(side.count("edited") for side in sides),
        repeats=repeats,
        removed=sum(side.count("absent") for side in sides),
        differences=others,
        usage=usage_shifts(sides),
        detectable=None if is_stopped else difference.detectable,
        blocked="; ".join(
            dict.fromkeys(side.changed for side in sides if side.changed)
        ),
        respelt=sum(_respelt(side) for side in sides),
        other_golds=sum(_with_other_golds(side) for side in sides),
    )


def _at_any_look(sides: Sides, difference: PairedDifference) -> Estimate:
    """Return the difference with an interval that holds although a slice was stopped early."""
    places = []
    for side, pair in pairs_of(sides):
        place = side.place_of(pair)
        places.append((place, pair.old.passes(side.bar), pair.new.passes(side.bar)))
    value = difference.estimate.value
    return Estimate.of(value, interval_at_any_look(places), int(difference.n))


def _further_repeats(side: PairedSlice) -> int:
    """Return how many added records are repeats of items that the earlier run has."""
    known_ids = {pair.new.id for pair in side.pairs}
    return sum(record.id in known_ids for record in side.added)


def _respelt(side: PairedSlice) -> int:
    """Return how many added records ask what an absent one asked, only spelt otherwise.

    They are no pairs: the model was asked another text. But who compares two files of the same
    questions wants to know why so few of them are pairs.
    """
    absent = {
        _letters(pair.old.question) for pair in side.pairs if pair.state == "absent"
    }
    return sum(_letters(record.question) in absent for record in side.added)


def _with_other_golds(side: PairedSlice) -> int:
    """Return how many pairs have other golds than the earlier run had.

    Each run's own grade is by its own golds, so such a pair may flip with the answer unchanged.
    """
    count = 0
    for pair in side.pairs:
        golds = {_letters(gold) for gold in pair.new.golds}
        if golds != {_letters(gold) for gold in pair.old.golds}:
            count += 1
    return count


def _letters(text: str) -> str:
    """Return a text without case, blanks and signs."""
    return "".join(sign for sign in text.casefold() if sign.isalnum())


def _changes(side: PairedSlice) -> Iterator[Change]:
    """Yield the items of this run that differ from the baseline's.

    An item differs if it flipped, or if its grade or rating moved without a flip; each
    such change shows what the baseline said. Added items come last.
    """
    for pair in side.pairs:
        if pair.state in ("stopped", "absent"):
            continue
        if pair.state == "edited":
            yield Change(key=pair.new.key, flip="changed")
            continue
        flip = _flip(pair, side.bar)
        if flip == "same" and not _is_regraded(pair):
            continue
        yield Change(
            key=pair.new.key,
            flip=flip,
            answer=pair.old.answer,
            grade=pair.old.grade,
            rating=pair.old.rating,
            reason=pair.old.reason,
        )
    for record in side.added:
        yield Change(key=record.key, flip="new")


def _flip(pair: Pair, bar: int | None) -> Flip:
    """Return how a pair moved over the bar."""
    passes_now = pair.new.passes(bar)
    passed_before = pair.old.passes(bar)
    if passes_now is None or passed_before is None:
        return "ungraded"
    if passes_now and not passed_before:
        return "fixed"
    if passed_before and not passes_now:
        return "broke"
    return "same"


def _is_regraded(pair: Pair) -> bool:
    """Whether the grade or the rating moved."""
    return pair.new.grade != pair.old.grade or pair.new.rating != pair.old.rating


def lost_answers(compared: Sequence[Compared], failed: Container[str]) -> Iterator[str]:
    """Yield what each slice lost that is shown to be worse than before, most of it first.

    By McNemar's exact test with Holm's adjustment, or where a pooled gate of it ``failed``.
    """
    for sides in compared:
        for side, difference in shown_losses(sides, failed):
            yield loss_text(side, difference)


def shown_losses(
    sides: Compared, failed: Container[str] = ()
) -> Iterator[tuple[PairedSlice, PairedDifference]]:
    """Yield each slice that is shown to be worse than before, with its difference; worst first.

    Those of a data set whose pooled gate ``failed`` are shown to be if they lost anything.
    """
    differences_of_slices = []
    for side in sides.values():
        if side.slice_.kind.answered:
            difference = share_difference([side])
            if difference.n:
                differences_of_slices.append((side, difference))
    p_values = holm([difference.p_value for _, difference in differences_of_slices])
    tested = list(zip(differences_of_slices, p_values, strict=True))
    tested.sort(key=lambda entry: entry[0][1].value)
    for (side, difference), p_value in tested:
        is_shown = p_value < 0.05 or f"{side.slice_.dataset}:*" in failed
        if is_shown and difference.value < 0:
            yield side, difference


def loss_text(side: PairedSlice, difference: PairedDifference) -> str:
    """Return how many answers a slice lost and won, of how many."""
    text = f"{side.slice_.name} lost {difference.broke:,}"
    if difference.fixed:
        text += f" and won {difference.fixed:,}"
    text += f" of {plural(int(difference.n), 'answer')}"
    if side.role == "anchor":
        text += " since the anchor"
    return text
