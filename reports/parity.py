"""The same facts asked in several languages: what a language costs in right answers."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from cases.slices import Dataset
from evaluators.statistics.paired import mcnemar
from reports.compare import right
from reports.contrast import net
from reports.evidence import LanguageGap, MissedFact
from reports.flips import paired_difference
from reports.record import Record

FACT = "fact_id"

Facts = Mapping[str, Mapping[int, Record]]
"""Graded records of a slice by fact and repeat."""


def parity(dataset: Dataset, records: Mapping[str, Sequence[Record]]) -> tuple[LanguageGap, ...]:
    """Return the gap of every language to the first one declared, over the facts they share.

    ``records`` holds the dataset's by language. Items pair by their ``fact_id`` and repeat; a fact
    that a language asks more than once pairs with nothing. No gap without a shared, graded fact.
    """
    facts = {
        language: found
        for language in dataset.slices
        if (found := _facts(records.get(language, ())))
    }
    reference, *others = facts or [""]
    gaps = (_gap(dataset.name, reference, other, facts) for other in others)
    return tuple(gap for gap in gaps if gap)


def _facts(records: Sequence[Record]) -> Facts:
    found: dict[str, dict[int, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        fact = str(record.metadata.get(FACT) or "")
        if fact and right(record) is not None:
            found[fact][record.repeat].append(record)
    return {
        fact: {repeat: same[0] for repeat, same in repeats.items()}
        for fact, repeats in found.items()
        if all(len(same) == 1 for same in repeats.values())
    }


def _gap(
    dataset: str, reference: str, other: str, facts: Mapping[str, Facts]
) -> LanguageGap | None:
    home, away = facts[reference], facts[other]
    pairs = {
        fact: [(home[fact][n], away[fact][n]) for n in home[fact] if n in away[fact]]
        for fact in home
        if fact in away
    }
    changes = [
        [int(bool(right(there))) - int(bool(right(here))) for here, there in repeats]
        for repeats in pairs.values()
        if repeats
    ]
    if not changes:
        return None
    return LanguageGap(
        dataset=dataset,
        reference=reference,
        language=other,
        difference=paired_difference(changes),
        p_value=mcnemar(*net(changes)),
        lapses=tuple(
            MissedFact(fact=fact, reference=here.key, other=there.key)
            for fact, repeats in pairs.items()
            for here, there in repeats
            if right(here) and not right(there)
        ),
        ahead=sum(item.count(1) for item in changes),
    )
