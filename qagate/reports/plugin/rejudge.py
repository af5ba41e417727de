"""``--model recorded:RUN``: all answers of an earlier run, judged anew by today's golds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from qagate.cases.dataset import Plan, PlannedItem, Selection
from qagate.cases.plan import make_plan
from qagate.evaluators.core import Case, Outcome, Usage, UsageError
from qagate.reports.plugin.options import RunOptions
from qagate.reports.run.baseline import Baseline, load_baseline
from qagate.reports.run.json_data import inner
from qagate.reports.run.record import Record
from qagate.reports.verdict.assemble import Facts

Name = tuple[str | int, ...]
"""Data set, language, repeat, and the id of an item or its question and context."""
Answers = Mapping[Name, Record]
T = TypeVar("T")


def planned(
    files: Sequence[Path], options: RunOptions, labelled: Iterable[Path] = ()
) -> tuple[RunOptions, Plan]:
    """Return the options with the run's sample, and a plan with its answers. Raises UsageError."""
    assert options.answers is not None
    earlier = load_baseline(options.answers)
    choice = _selection_of(earlier, options.choice)
    plan = make_plan(files, choice, labelled)
    planned_slices = {item.slice.name for item in plan.items.values()}
    recorded_slices = {
        f"{record.dataset}:{record.language}" for record in earlier.records
    }
    lacking = sorted(recorded_slices - planned_slices)
    if lacking:
        raise UsageError(
            f"{earlier.path} also has answers of {', '.join(lacking)}; name the paths "
            "of all its data sets, as no part of a run may be chosen"
        )
    answers = _answers(earlier)
    items = dict(plan.items)
    for key, item in plan.items.items():
        if not item.slice.kind.answered:
            continue
        record = _old(item, answers)
        answer = record.answer if record else None
        items[key] = replace(item, case=replace(item.case, recorded=answer))
    return replace(options, choice=choice), replace(plan, items=items)


def _selection_of(earlier: Baseline, choice: Selection) -> Selection:
    """Return a selection that draws the sample of an earlier run."""
    origin = earlier.report.provenance
    return replace(
        choice,
        tests_per_slice=None,
        limit=_whole_number(origin.get("limit"), None),
        seed=_whole_number(origin.get("seed"), 0),
        repeats=_whole_number(origin.get("repeats"), 1),
    )


def _whole_number(value: object, default: T) -> int | T:
    return value if isinstance(value, int) else default


def ended(
    run: Path, plan: Plan, outcomes: Mapping[str, Outcome], facts: Facts
) -> tuple[dict[str, Outcome], Facts]:
    """Return outcomes and facts with what the run says of its answers, and of items now gone."""
    earlier = load_baseline(run)
    before, found = _answers(earlier), dict(outcomes)
    for key, one in outcomes.items():
        old = _old(plan.items[key], before)
        if old is not None and one.answer is not None:
            taken = Usage(
                input_tokens=old.answer_tokens_in or 0,
                output_tokens=old.answer_tokens_out or 0,
                seconds=old.answer_seconds or 0.0,
                cost=old.answer_cost,
            )
            found[key] = replace(one, model=old.model, answering=taken)
    present = {
        name for item in plan.items.values() for name in _names(item.case, item.repeat)
    }
    removed = (
        one for one in earlier.records if present.isdisjoint(_names(one, one.repeat))
    )
    note = (
        f"the answers of {earlier.path}, judged anew; no model was asked for an answer"
    )
    origin, slices = earlier.report.provenance, {}
    for name, part in inner(facts.provenance, "slices").items():
        slices[name] = {
            **part,
            "prompt": inner(origin, "slices", name).get("prompt", ""),
        }
    provenance = {
        **facts.provenance,
        "model": earlier.report.model,
        "sent": {**inner(origin, "sent"), **inner(facts.provenance, "sent")},
        "slices": slices,
        "rejudged": earlier.sha256,
    }
    model = earlier.report.model
    session = replace(facts.session, notes=(*facts.session.notes, note))
    changed = replace(facts, model=model, session=session, provenance=provenance)
    return found, replace(changed, kept=tuple(removed))


def _answers(earlier: Baseline) -> Answers:
    return {
        name: one
        for one in reversed(earlier.records)
        for name in _names(one, one.repeat)
    }


def _names(one: Record | Case, repeat: int) -> tuple[Name, Name]:
    """Return an item by id and question: without an id of its own, a new gold changes the id."""
    place = one.dataset, one.language, repeat
    return (*place, one.id), (*place, one.question, one.context)


def _old(item: PlannedItem, before: Answers) -> Record | None:
    """Return the record of an item that was asked in the same words; None for labelled answers."""
    identity, asked = _names(item.case, item.repeat)
    old = before.get(identity)
    if old is None or _names(old, old.repeat)[1] != asked:
        old = before.get(asked)
    return old if item.slice.kind.answered else None
