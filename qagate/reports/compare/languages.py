"""The languages of a data set compared with each other, over the facts that they share."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from qagate.cases.dataset import Dataset, Slice
from qagate.evaluators.kinds import FACT, Cluster
from qagate.evaluators.statistics.intervals import Estimate
from qagate.reports.compare.shares import difference_of, interval_at_any_look
from qagate.reports.run.evidence import LanguageGap, MissedFact
from qagate.reports.run.record import Record

FactAsked = tuple[str, int]
"""A fact, and which repeat of its question."""


def parity(
    dataset: Dataset, records: Mapping[str, Sequence[Record]]
) -> Iterator[LanguageGap]:
    """Yield the gap of each language to the first one declared, over the facts they share.

    Items pair by ``fact_id`` and repeat, where a language asks a fact once; ungraded ones do not.
    """
    graded_languages: dict[str, Mapping[FactAsked, Record]] = {}
    for language, slice_ in dataset.slices.items():
        facts = _facts_asked_once(records.get(slice_.name, ()))
        if any(record.is_graded for record in facts.values()):
            graded_languages[language] = facts
    if not graded_languages:
        return
    reference, *others = graded_languages
    for language in others:
        here = graded_languages[reference]
        there = graded_languages[language]
        shared = [(here[fact], there[fact]) for fact in here if fact in there]
        if any(first.is_graded and second.is_graded for first, second in shared):
            yield _gap(dataset.slices[reference], language, shared)


def _facts_asked_once(records: Sequence[Record]) -> Mapping[FactAsked, Record]:
    facts: dict[FactAsked, Record] = {}
    asked_twice: set[str] = set()
    for record in records:
        fact = str(record.metadata.get(FACT) or "")
        if not fact:
            continue
        if (fact, record.repeat) in facts:
            asked_twice.add(fact)
        else:
            facts[fact, record.repeat] = record
    return {
        asked: record for asked, record in facts.items() if asked[0] not in asked_twice
    }


def _gap(
    reference: Slice, language: str, shared: Sequence[tuple[Record, Record]]
) -> LanguageGap:
    """Return the gap over records of one fact each; if one was stopped, it holds at any look."""
    changes: dict[Cluster, list[int]] = defaultdict(list)
    lapses = []
    is_stopped = False
    for here, there in shared:
        before = here.passes()
        now = there.passes()
        if before is not None and now is not None:
            changes[reference.cluster_of(here)].append(now - before)
        if before and now is False:
            fact = str(here.metadata[FACT])
            lapses.append(MissedFact(fact=fact, reference=here.key, other=there.key))
        if "stopped" in (here.outcome, there.outcome):
            is_stopped = True
    difference = difference_of(changes.values())
    estimate = difference.estimate
    if is_stopped:
        places = (
            (reference.place_of(here), here.passes(), there.passes())
            for here, there in shared
        )
        estimate = Estimate.of(estimate.value, interval_at_any_look(places), estimate.n)
    return LanguageGap(
        dataset=reference.dataset,
        reference=reference.language,
        language=language,
        difference=estimate,
        p_value=None if is_stopped else difference.p_value,
        lapses=tuple(lapses),
        ahead=int(difference.fixed),
    )
