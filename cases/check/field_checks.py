"""Checks of what rows hold beside their texts: fields, aliases, ids, facts, raters, gates."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from cases.check.findings import Note, Subject, error, rows_listed, warning
from cases.dataset import Dataset, Threshold, clusters_in
from cases.loading import GOOD_ID, raters
from cases.rows import ALIAS_MARK, id_of
from evaluators.core import Case
from evaluators.kinds import FACT
from evaluators.statistics.paired import smallest_n
from evaluators.text import listed, shown

SHARED = ("topic", "answer_type")
"""Fields that a fact has in every language alike."""
PART, SHARED_PART = "part", "shared"
FIELDS = (*SHARED, FACT, "as_of")
SOURCE = "label_source"
AGREEMENT = 0.8
"""The lowest share of equal pairs of labels that passes without a word."""


def missing_fields(subject: Subject) -> Iterator[Note]:
    """Yield the fields that some rows have and others lack: an error for those of ``by:``."""
    by = subject.slice_.by
    for field in dict.fromkeys((*by, *FIELDS)):
        bare = [case.row for case in subject.cases if not has_field(case, field)]
        if 0 < len(bare) < len(subject.cases):
            message = (
                f"{field!r} is missing in {len(bare)} of {len(subject.cases)} rows "
                f"({rows_listed(bare)}); fill it in"
            )
            yield (error if field in by else warning)(bare[0], message)


def has_field(case: Case, field: str) -> bool:
    """Return whether an item has a value in this metadata field."""
    return str(case.metadata.get(field) or "").strip() != ""


def unused_breakdowns(dataset: Dataset, subjects: Mapping[str, Subject]) -> Iterator[Note]:
    """Yield the fields of ``by:`` and ``cluster:`` that no row has.

    An error where none of any language has it, else a warning about a field of ``by:``.
    """
    slices = dataset.slices.values()
    keys = {field: "by" for slice_ in slices for field in slice_.by}
    keys |= {slice_.cluster: "cluster" for slice_ in slices if slice_.cluster}
    for field, key in keys.items():
        bare = [
            own
            for own in subjects.values()
            if not any(has_field(case, field) for case in own.cases)
        ]
        if bare and len(bare) == len(subjects):
            message = f"{key!r} names {field!r}, which no row has; correct the name or take it out"
            yield error(0, message)
        else:
            for own in bare if key == "by" else ():
                message = f"no row has {field!r}, which 'by' names; add it to this file too"
                yield warning(0, message, own.slice_.path)


def aliases(subject: Subject) -> Iterator[Note]:
    """Yield the cells of aliases with an empty entry, or with a bar that separates nothing."""
    for row in subject.rows:
        _, cell = row.find("aliases")
        if not isinstance(cell, str) or not cell.strip():
            continue
        forms = cell.split(ALIAS_MARK)
        if not all(form.strip(" |") for form in forms):
            yield warning(row.record.row, f"an empty entry in aliases {shown(cell)}; take it out")
        elif any("|" in form for form in forms):
            message = f"aliases {shown(cell)} have a bar without spaces; separate them with ' | '"
            yield warning(row.record.row, message)


def ids(subject: Subject) -> Iterator[Note]:
    """Yield the ids that change when a text is corrected, or that reports will not show."""
    given = {row.record.row: id_of(row) for row in subject.rows}
    bare = [number for number, id_ in given.items() if id_ is None]
    if 0 < len(bare) < len(given):
        message = (
            f"{len(bare)} of {len(given)} rows have no id ({rows_listed(bare)}): theirs comes from "
            "the content and changes with it; give every row one"
        )
        yield warning(bare[0], message)
    odd = {row: id_ for row, id_ in given.items() if id_ and not GOOD_ID.fullmatch(id_)}
    if odd:
        message = (
            f"{len(odd)} of {len(given)} ids are replaced by hashes, such as "
            f"{listed(list(odd.values())[:3])}; use at most 64 of A-Z, a-z, 0-9, '.', '_' and '-'"
        )
        yield warning(min(odd), message)


def repeated_facts(subject: Subject) -> Iterator[Note]:
    """Yield the rows whose fact is asked before in the same slice.

    Judged items are left out: several answers to one question are what they are for.
    """
    if not subject.slice_.kind.answered:
        return
    first: dict[str, Case] = {}
    for case in subject.cases:
        fact = _fact(case)
        before = first.setdefault(fact, case) if fact else case
        if before is not case:
            message = f"fact_id {shown(fact)} is also that of row {before.row}; keep one"
            yield error(case.row, message)


def missing_facts(dataset: Dataset, subjects: Mapping[str, Subject]) -> Iterator[Note]:
    """Yield the facts that a declared language lacks, and those whose shared fields differ.

    ``subjects`` holds the slices that could be loaded. Datasets without ``fact_id`` have none, and
    a language without a single one asks other questions than the rest. A fact whose ``part`` is
    anything but ``shared`` is one of that language alone.
    """
    found = {code: _facts(own.cases) for code, own in subjects.items() if code in dataset.slices}
    facts = {code: own for code, own in found.items() if own}
    every = dict.fromkeys(fact for own in facts.values() for fact in own)
    for code, own in facts.items():
        lacking = [fact for fact in every if fact not in own]
        if lacking:
            there = f"{len(lacking)} of {len(every)} facts of the other languages"
            message = f"lacks {there}: {listed(lacking)}; add them or drop them everywhere"
            yield error(0, message, subjects[code].slice_.path)
    for fact in every:
        asked = [(code, own[fact]) for code, own in facts.items() if fact in own]
        yield from _differing(asked, subjects)


def _differing(
    asked: Sequence[tuple[str, Case]], subjects: Mapping[str, Subject]
) -> Iterator[Note]:
    """Yield where a fact's shared fields differ from those in the first language that has it."""
    reference, first = asked[0]
    for code, case in asked[1:]:
        for field in SHARED:
            mine, other = case.metadata.get(field), first.metadata.get(field)
            if has_field(case, field) and has_field(first, field) and mine != other:
                message = (
                    f"fact {shown(_fact(case))} has {field} {shown(mine)} here and {shown(other)} "
                    f"in {reference!r}; make them agree"
                )
                yield error(case.row, message, subjects[code].slice_.path)


def _facts(cases: Sequence[Case]) -> dict[str, Case]:
    found: dict[str, Case] = {}
    for case in cases:
        if not has_field(case, PART) or case.metadata[PART] == SHARED_PART:
            found.setdefault(_fact(case), case)
    return {fact: case for fact, case in found.items() if fact}


def _fact(case: Case) -> str:
    return str(case.metadata.get(FACT) or "").strip()


def label_sources(subject: Subject) -> Iterator[Note]:
    """Yield that judged rows do not say who gave their labels."""
    if subject.slice_.kind.answered:
        return
    bare = [case.row for case in subject.cases if not has_field(case, SOURCE)]
    if bare:
        message = (
            f"{SOURCE!r} is missing in {len(bare)} of {len(subject.cases)} rows "
            f"({rows_listed(bare)}); say who gave the label, for instance 'human'"
        )
        yield warning(bare[0] if len(bare) < len(subject.cases) else 0, message)


def rater_agreement(subject: Subject) -> Iterator[Note]:
    """Yield that a slice's raters agree too seldom; ratings, which differ by degrees, are left."""
    rated = _rated(subject)
    pairs = [pair for _, labels in rated for pair in combinations(labels, 2)]
    if not pairs or any(label.isdigit() for label in rated[0][1]):
        return
    equal = sum(one == two for one, two in pairs)
    if equal < AGREEMENT * len(pairs):
        message = (
            f"the raters agree in {equal} of {len(pairs)} pairs of labels, below {AGREEMENT:.0%}; "
            "settle the rules of labelling and label again"
        )
        yield warning(0, message)


def lone_labels(subject: Subject) -> Iterator[Note]:
    """Yield the rows whose label no rater gave; for ratings, one outside of what they gave."""
    for case, labels in _rated(subject):
        label, numbers = case.label or "", [int(given) for given in labels if given.isdigit()]
        if numbers and label.isdigit():
            among = min(numbers) <= int(label) <= max(numbers)
        else:
            among = label in labels
        if not among:
            given = listed(dict.fromkeys(labels))
            message = f"label {shown(case.label)} is that of no rater ({given}); correct it"
            yield warning(case.row, message)


def _rated(subject: Subject) -> list[tuple[Case, list[str]]]:
    """Return the judged items that raters labelled, each with these labels."""
    cases = () if subject.slice_.kind.answered else subject.cases
    rated = ((case, [str(case.metadata[name]) for name in raters(case.metadata)]) for case in cases)
    return [(case, labels) for case, labels in rated if labels]


def ungated(dataset: Dataset, subjects: Mapping[str, Subject]) -> Iterator[Note]:
    """Yield the declared languages without a gate of their own: nothing there stops an upgrade."""
    for code in subjects:
        if code in dataset.slices and not dataset.slices[code].thresholds:
            yield warning(0, f"language {code!r} has no gates; add 'gates:' with a measure and bar")


def narrow_margins(dataset: Dataset, subjects: Mapping[str, Subject]) -> Iterator[Note]:
    """Yield the gates on a change that so few items can never pass, even if no answer changes."""
    declared = [own for code, own in subjects.items() if code in dataset.slices]
    clusters = clusters_in((own.slice_, case) for own in declared for case in own.cases)
    for code, some in clusters.items():
        for threshold in dataset.slices[code].thresholds:
            yield from _too_narrow(f"{dataset.name}:{code}", threshold, len(some))
    for threshold in dataset.pooled:
        count = len(set().union(*clusters.values()))
        yield from _too_narrow(f"{dataset.name}:*", threshold, count)


def _too_narrow(where: str, threshold: Threshold, count: int) -> Iterator[Note]:
    margin = threshold.max or 0.0
    if not threshold.of_share or threshold.evidence != "confident" or margin >= 1:
        return
    change = threshold.measure
    if margin == 0:
        yield warning(0, f"{where}: no number of items can show a {change} of 0; give a margin")
    elif count < smallest_n(margin):
        yield warning(
            0,
            f"{where}: {count} independent items can never show a {change} below {margin:g}; "
            f"it takes {smallest_n(margin):,}, or widen the margin",
        )
