"""Facts that are asked in several languages: ``fact_id`` ties the rows together."""

from collections.abc import Iterator, Mapping, Sequence

from cases.dataset import Dataset
from cases.tools.check.findings import Note, Subject, error
from cases.tools.check.gaps import has_field
from evaluators.core import Case
from evaluators.text import listed, shown

FACT = "fact_id"
SHARED = ("topic", "answer_type")


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
    """Yield the facts that a declared language lacks, and those told apart by their fields.

    ``subjects`` holds the slices that could be loaded. Datasets without ``fact_id`` have none, and
    a language without a single one asks other questions than the rest.
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
        yield from _told_apart(asked, subjects)


def _told_apart(
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
        found.setdefault(_fact(case), case)
    return {fact: case for fact, case in found.items() if fact}


def _fact(case: Case) -> str:
    return str(case.metadata.get(FACT) or "").strip()
