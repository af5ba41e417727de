"""A run compared with its baseline, and its languages with each other: what flipped or moved."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from qagate.cases.dataset import Dataset, Slice
from qagate.evaluators.kinds import FACT, Cluster
from qagate.evaluators.output import plural
from qagate.evaluators.statistics.intervals import Estimate
from qagate.evaluators.statistics.paired import holm
from qagate.evaluators.text import first_of
from qagate.reports.compare import pairs
from qagate.reports.compare.differences import differences, usage_shifts
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.evidence import (
    Change,
    Comparison,
    Flip,
    LanguageGap,
    MissedFact,
    SliceComparison,
)
from qagate.reports.run.provenance import named_model
from qagate.reports.run.record import Record


def compare(
    sides: Sequence[pairs.PairedSlice], baseline: Baseline, changed: Iterable[str] = ()
) -> Comparison:
    """Return the comparison of all slices, pooled ones too; ``changed`` is what else differs."""
    by_dataset: dict[str, list[pairs.PairedSlice]] = defaultdict(list)
    for one in sides:
        by_dataset[one.slice_.dataset].append(one)
    listed = sides if baseline.role == "baseline" else ()
    pooled = [parts for parts in by_dataset.values() if len(parts) > 1]
    moved = ((one.slice_.name, one.changed) for one in sides if one.changed)
    warnings = (
        f"{name}: {why}; the difference may be the judge's own" for name, why in moved
    )
    return Comparison(
        model=named_model(baseline.report.model, baseline.report.provenance),
        judge=baseline.report.judge,
        sha256=baseline.sha256,
        slices=tuple(_compare(parts) for parts in [*([one] for one in sides), *pooled]),
        changes=tuple(change for one in listed for change in _changes(one)),
        warnings=(*warnings, *changed),
    )


def lacking(sides: Mapping[str, pairs.PairedSlice], earlier: Baseline) -> Iterator[str]:
    """Yield in words the slices, and large parts of slices, that an earlier run alone has."""
    slices = earlier.slices.items()
    gone = [
        f"{name} ({plural(len(own), 'item')})"
        for name, own in slices
        if name not in sides
    ]
    parts = ((name, one.pairing.gone) for name, one in sides.items())
    large = ((name, share) for name, share in parts if share > pairs.MOST_UNPAIRED)
    gone += [f"{share:.0%} of {name}'s items" for name, share in large]
    if gone:
        yield f"this run lacks {first_of(gone)}, which the {earlier.role} has"


def lost_answers(
    compared: Sequence[Mapping[str, pairs.PairedSlice]], failed: Container[str]
) -> Iterator[str]:
    """Yield what each slice lost that is shown to be worse than before, most of it first.

    By McNemar's exact test with Holm's adjustment, or where a pooled gate of it ``failed``.
    """
    for sides in compared:
        asked = [one for one in sides.values() if one.slice_.kind.answered]
        found = [(one, one.difference) for one in asked if one.difference.n]
        both = zip(
            found, holm([difference.p_value for _, difference in found]), strict=True
        )
        for (one, change), p_value in sorted(both, key=lambda pair: pair[0][1].value):
            if (
                p_value < 0.05 or f"{one.slice_.dataset}:*" in failed
            ) and change.value < 0:
                won = f" and won {change.fixed:,}" if change.fixed else ""
                since = " since the anchor" if one.role == "anchor" else ""
                of = plural(change.n, "answer")
                yield f"{one.slice_.name} lost {change.broke:,}{won} of {of}{since}"


def _compare(sides: Sequence[pairs.PairedSlice]) -> SliceComparison:
    found = sides[0].difference if len(sides) == 1 else pairs.paired_difference(sides)
    stopped = any(
        p.new.outcome == "stopped" for one in sides for p in one.pairing.pairs
    )
    estimate, others = found.estimate, differences(sides)
    if stopped:  # what is for a fixed number of items does not hold
        others = {
            name: replace(one, low=None, high=None) for name, one in others.items()
        }
        ends = pairs.interval_at_any_look(
            (
                one.slice_.place_of(new),
                old.passes(one.bar) if old else None,
                new.passes(one.bar),
            )
            for one in sides
            for old, new in one.matches
        )
        estimate = Estimate.of(estimate.value, ends, estimate.n)
    right_before = sum(bool(p.old.passes(one.bar)) for one in sides for p in one.graded)
    both_right = right_before - found.broke
    asked = sum(len(one.pairing.pairs) for one in sides)
    lone = Counter(why for one in sides for why in one.pairing.lone.values())
    return SliceComparison(
        dataset=sides[0].slice_.dataset,
        language=sides[0].slice_.language if len(sides) == 1 else "",
        difference=estimate,
        p_value=found.p_value if found.n and not stopped else None,
        odds=replace(found.odds, low=None, high=None) if stopped else found.odds,
        fixed=found.fixed,
        broke=found.broke,
        both_right=both_right,
        both_wrong=found.n - both_right - found.fixed - found.broke,
        ungraded=asked - found.n + lone["ungraded"],
        added=lone["added"],
        changed=lone["changed"],
        repeats=lone["repeat"],
        removed=sum(one.pairing.removed for one in sides),
        differences=others,
        usage=usage_shifts(sides),
        detectable=None if stopped else found.detectable,
        blocked="; ".join(dict.fromkeys(one.changed for one in sides if one.changed)),
    )


_UNPAIRED_FLIPS: Mapping[pairs.Lone, Flip] = {
    "added": "new",
    "repeat": "new",
    "changed": "changed",
}
"""What the reason why an item has no pair says of it; any other leaves it ungraded."""


def _changes(side: pairs.PairedSlice) -> Iterator[Change]:
    """Yield the items of a slice that differ from the baseline's.

    An item differs if it flipped, or if its grade or rating moved without a flip; each
    such change shows what the baseline said. Items without a pair come last.
    """
    for pair in side.pairing.pairs:
        if pair.new.outcome == "stopped":
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
    for key, reason in side.pairing.lone.items():
        yield Change(key=key, flip=_UNPAIRED_FLIPS.get(reason, "ungraded"))


def _flip(pair: pairs.Pair, bar: int | None) -> Flip:
    """Return how a pair moved over the bar. Its old record is always graded."""
    passes_now = pair.new.passes(bar)
    passed_before = pair.old.passes(bar)
    if passes_now is None:
        return "ungraded"
    if passes_now and not passed_before:
        return "fixed"
    if passed_before and not passes_now:
        return "broke"
    return "same"


def _is_regraded(pair: pairs.Pair) -> bool:
    """Whether the grade or the rating moved."""
    return pair.new.grade != pair.old.grade or pair.new.rating != pair.old.rating


def parity(
    dataset: Dataset, records: Mapping[str, Sequence[Record]]
) -> Iterator[LanguageGap]:
    """Yield the gap of each language to the first one declared, over the facts they share.

    Items pair by ``fact_id`` and repeat, where a language asks a fact once; ungraded ones do not.
    """
    every: dict[str, dict[tuple[str, int], Record]] = {}
    for language, slice_ in dataset.slices.items():
        found, twice = dict[tuple[str, int], Record](), set[str]()
        for record in records.get(slice_.name, ()):
            fact = str(record.metadata.get(FACT) or "")
            if fact and found.setdefault((fact, record.repeat), record) is not record:
                twice.add(fact)
        every[language] = {
            key: one for key, one in found.items() if key[0] not in twice
        }
    graded = [
        name
        for name, facts in every.items()
        if any(r.is_graded for r in facts.values())
    ]
    for language in graded[1:]:
        here, there = every[graded[0]], every[language]
        both = [(here[key], there[key]) for key in here if key in there]
        if any(one.is_graded and other.is_graded for one, other in both):
            yield _gap(dataset.slices[graded[0]], language, both)


def _gap(
    reference: Slice, language: str, both: Sequence[tuple[Record, Record]]
) -> LanguageGap:
    """Return the gap over records of one fact each; if one was stopped, it holds at any look."""
    changes: dict[Cluster, list[int]] = defaultdict(list)
    for here, there in both:
        before, now = here.passes(), there.passes()
        if before is not None and now is not None:
            changes[reference.cluster_of(here)].append(now - before)
    found = pairs.difference_of(changes.values())
    estimate, stopped = (
        found.estimate,
        any("stopped" in (a.outcome, b.outcome) for a, b in both),
    )
    if stopped:
        places = (
            (reference.place_of(one), one.passes(), other.passes())
            for one, other in both
        )
        estimate = Estimate.of(
            estimate.value, pairs.interval_at_any_look(places), estimate.n
        )
    lapses = (pair for pair in both if pair[0].passes() and pair[1].passes() is False)
    return LanguageGap(
        dataset=reference.dataset,
        reference=reference.language,
        language=language,
        difference=estimate,
        p_value=None if stopped else found.p_value,
        lapses=tuple(
            MissedFact(
                fact=str(here.metadata[FACT]), reference=here.key, other=there.key
            )
            for here, there in lapses
        ),
        ahead=found.fixed,
    )
