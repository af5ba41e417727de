"""What a baseline shows beyond its drop gates: effect sizes, counts, and which items flipped."""

from collections import defaultdict
from collections.abc import Collection, Sequence

from evaluators.statistics.paired import detectable_drop, mcnemar, odds_ratio
from reports.compare import Pair, right
from reports.contrast import PairedSlice, bar_of, changes_of, contrast_of, net
from reports.differences import differences
from reports.evidence import UNDEFINED, Change, Comparison, Estimate, Flip, SliceComparison
from reports.trust import Baseline


def compare(sides: Sequence[PairedSlice], baseline: Baseline) -> Comparison:
    """Return the comparison of a run with its baseline over all slices they may share.

    ``sides`` holds every slice of the run; datasets of several languages are pooled as well.
    """
    slices = [_slice((one,)) for one in sides]
    by_dataset: dict[str, list[PairedSlice]] = defaultdict(list)
    for one in sides:
        by_dataset[one.slice_.dataset].append(one)
    pooled = [_slice(parts) for parts in by_dataset.values() if len(parts) > 1]
    return Comparison(
        model=str(baseline.run.get("model", "")),
        judge=str(baseline.run.get("judge", "")),
        sha256=baseline.sha256,
        slices=tuple(slices + pooled),
        changes=tuple(change for one in sides for change in _changes(one)),
        warnings=tuple(
            f"{one.slice_.name}: {one.changed}; the difference may be the judge's own"
            for one in sides
            if one.changed
        ),
    )


def _slice(sides: Sequence[PairedSlice]) -> SliceComparison:
    changes = changes_of(sides).values()
    before = [right(p.old, bar_of(one.slice_)) for one in sides for p in _graded(one)]
    fixed = sum(item.count(1) for item in changes)
    broke = sum(item.count(-1) for item in changes)
    both_right = sum(map(bool, before)) - broke
    lone = [one.pairing.reasons for one in sides]
    pairs = sum(len(one.pairing.pairs) for one in sides)
    return SliceComparison(
        dataset=sides[0].slice_.dataset,
        language=sides[0].slice_.language if len(sides) == 1 else "",
        difference=paired_difference(changes),
        p_value=mcnemar(*net(changes)) if before else None,
        odds=_odds(changes),
        fixed=fixed,
        broke=broke,
        both_right=both_right,
        both_wrong=len(before) - both_right - fixed - broke,
        ungraded=pairs - len(before) + sum(reasons.get("ungraded", 0) for reasons in lone),
        added=sum(reasons.get("added", 0) for reasons in lone),
        changed=sum(reasons.get("changed", 0) for reasons in lone),
        removed=sum(one.pairing.removed for one in sides),
        differences=differences(sides[0]) if len(sides) == 1 else {},
        detectable=_detectable(changes),
        blocked="; ".join(dict.fromkeys(one.changed for one in sides if one.changed)),
    )


def paired_difference(changes: Collection[list[int]]) -> Estimate:
    """Return the mean change with its interval; undefined where there is no pair."""
    if not changes:
        return UNDEFINED
    contrast = contrast_of(changes)
    low, high = contrast.interval
    return Estimate(value=contrast.value, low=low, high=high, n=contrast.n)


def _odds(changes: Collection[list[int]]) -> Estimate:
    better, worse = net(changes)
    value, low, high = odds_ratio(better, worse)
    return Estimate(value=value, low=low, high=high, n=better + worse)


def _detectable(changes: Collection[list[int]]) -> float | None:
    if not changes:
        return None
    contrast = contrast_of(changes)
    share = (contrast.fixed + contrast.broke) / contrast.n
    return detectable_drop(int(contrast.n * contrast.weight), share)


def _graded(side: PairedSlice) -> list[Pair]:
    return [pair for pair in side.pairing.pairs if right(pair.new) is not None]


def _changes(side: PairedSlice) -> list[Change]:
    bar = bar_of(side.slice_)
    found = [_change(pair, bar) for pair in side.pairing.pairs]
    flips: dict[str, Flip] = {"added": "new", "changed": "changed", "ungraded": "ungraded"}
    lone = [Change(key=key, flip=flips[why]) for key, why in side.pairing.lone.items()]
    return [change for change in found if change] + lone


def _change(pair: Pair, bar: int | None) -> Change | None:
    """Return what changed about an item, None where it came to the same."""
    new, old = pair.new, pair.old
    flip = _flip(right(new, bar), bool(right(old, bar)))
    if flip == "same" and (new.grade, new.rating) == (old.grade, old.rating):
        return None
    return Change(
        key=new.key,
        flip=flip,
        answer=old.answer,
        grade=old.grade,
        rating=old.rating,
        reason=old.reason,
    )


def _flip(now: bool | None, before: bool) -> Flip:
    if now is None:
        return "ungraded"
    return "same" if now == before else "fixed" if now else "broke"
