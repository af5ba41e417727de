"""From a baseline's folder to what this run reads of it, and from the outcomes to the reading.

``answers_to`` finds the earlier answer to each planned item before the run. The engine judges it
with the item. ``reading_of`` makes records of what the judge said, for comparison and report.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from qagate.cases.dataset import Plan, PlannedItem, Slice
from qagate.cases.earlier import (
    NOW,
    NOW_THEN,
    THEN,
    EarlierAnswer,
    EarlierAnswers,
)
from qagate.evaluators.core import Case, Outcome
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.partners import EarlierRecords, is_edited
from qagate.reports.run.provenance import sent_spec
from qagate.reports.run.readings import Reading
from qagate.reports.run.record import Record, make_record


def answers_to(plan: Plan, earlier: Baseline) -> EarlierAnswers:
    """Return what an earlier run answered to the items of a plan."""
    records = EarlierRecords.of(earlier.records)
    by_key: dict[str, EarlierAnswer] = {}
    for key, item in plan.items.items():
        record = records.partner(item.case, item.repeat)
        if record is not None and item.slice.kind.answered:
            by_key[key] = _earlier_answer(item, record)
    return EarlierAnswers(
        role=earlier.role,
        model=sent_spec(earlier.report.model, earlier.report.provenance),
        by_key=by_key,
        slices_then=dict(_slices_then(plan, earlier)),
    )


def _earlier_answer(item: PlannedItem, record: Record) -> EarlierAnswer:
    if is_edited(item.case, record):
        return EarlierAnswer(
            reply=record.as_it_came,
            finish=record.finish,
            case=_case_then(item.case, record),
        )
    then: Case | None = None
    was_graded_otherwise = (
        record.golds != item.case.golds or record.label != item.case.label
    )
    if was_graded_otherwise:
        then = replace(item.case, golds=record.golds, label=record.label)
    return EarlierAnswer(
        reply=record.as_it_came, finish=record.finish, case=item.case, then=then
    )


def _case_then(case: Case, record: Record) -> Case:
    """Return the item as the earlier run asked it, under today's id."""
    return replace(
        case,
        question=record.question,
        context=record.context,
        golds=record.golds,
        label=record.label,
        metadata=record.metadata,
        digest=record.digest,
        options=record.options,
    )


def _slices_then(plan: Plan, earlier: Baseline) -> Iterator[tuple[str, Slice]]:
    """Yield the slices whose words or checks were others, with those of then."""
    slices_then = {
        slice_.name: slice_
        for dataset in earlier.report.datasets
        for slice_ in dataset.slices.values()
    }
    slices_now = {item.slice.name: item.slice for item in plan.items.values()}
    for name, now in slices_now.items():
        then = slices_then.get(name)
        if then is None:
            continue
        words_then = (then.yes, then.no)
        if (now.yes, now.no) != words_then or now.checks != then.checks:
            yield name, replace(now, yes=then.yes, no=then.no, checks=then.checks)


def reading_of(
    plan: Plan,
    earlier: Baseline,
    answers: EarlierAnswers,
    outcomes: Mapping[str, Outcome],
    lacking: Mapping[str, str],
) -> Reading:
    """Return how this run's judge reads the answers of an earlier run.

    ``outcomes`` are those of the planned items, with their readings. ``lacking`` says why grades
    of a slice may not be asked, by the name of the slice.
    """
    records = EarlierRecords.of(earlier.records)
    old: list[Record] = []
    old_then: list[Record] = []
    new_then: list[Record] = []
    for key, answer in answers.by_key.items():
        outcome = outcomes.get(key)
        item = plan.items[key]
        partner = records.partner(item.case, item.repeat)
        if outcome is None or partner is None:
            continue
        case_then = answer.then or answer.case
        readings = outcome.readings
        if f"{answers.role}{NOW}" in readings:
            read = readings[f"{answers.role}{NOW}"]
            old.append(_old_record(item, answer.case, read, partner))
        if f"{answers.role}{THEN}" in readings:
            read = readings[f"{answers.role}{THEN}"]
            old_then.append(_old_record(item, case_then, read, partner))
        if f"{answers.role}{NOW_THEN}" in readings:
            read = readings[f"{answers.role}{NOW_THEN}"]
            new_then.append(make_record(replace(item, case=case_then), read))
    return Reading(
        old=tuple(old),
        old_then=tuple(old_then),
        new_then=tuple(new_then),
        lacking=lacking,
    )


def _old_record(
    item: PlannedItem, case: Case, outcome: Outcome, partner: Record
) -> Record:
    """Return the record of an old answer: today's grade, with what it took and came from then."""
    record = make_record(replace(item, case=case), outcome)
    return replace(
        record,
        model=partner.model,
        metadata=partner.metadata,
        answer_seconds=partner.answer_seconds,
        answer_tokens_in=partner.answer_tokens_in,
        answer_tokens_out=partner.answer_tokens_out,
        answer_cost=partner.answer_cost,
        asked_at=partner.asked_at,
        asked_by=partner.asked_by,
    )
