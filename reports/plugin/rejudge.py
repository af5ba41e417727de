"""``--model recorded:RUN``: the answers of an earlier run, judged anew by today's golds.

Every answer of the run is judged, so nothing can be chosen; no answer is asked for again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cases.dataset import Plan, PlannedItem
from cases.plan import make_plan
from evaluators.core import Outcome, Usage, UsageError
from reports.plugin.options import RunOptions
from reports.run.baseline import Baseline, load_baseline
from reports.run.json_data import inner
from reports.run.record import Record
from reports.verdict.assemble import Facts

Name = tuple[str | int, ...]
"""Data set, language, repeat, and the id of an item or its question and context."""
Answers = Mapping[Name, Record]


def planned(
    files: Sequence[Path], options: RunOptions, labelled: Iterable[Path] = ()
) -> tuple[RunOptions, Plan]:
    """Return the options with the run's sample, and a plan with its answers. Raises UsageError."""
    assert options.answers is not None
    earlier = load_baseline(options.answers)
    origin = inner(earlier.run, "provenance")
    limit, seed, repeats = (origin.get(name) for name in ("limit", "seed", "repeats"))
    choice = replace(  # the sample and the repeats of the run
        options.choice,
        limit=limit if isinstance(limit, int) else None,
        seed=seed if isinstance(seed, int) else 0,
        repeats=repeats if isinstance(repeats, int) else 1,
        first=None,
    )
    options = replace(options, choice=choice)
    plan, before = make_plan(files, options.choice, labelled), _answers(earlier)
    there = {item.slice.name for item in plan.items.values()}
    if lost := sorted({f"{one.dataset}:{one.language}" for one in earlier.records} - there):
        raise UsageError(
            f"{earlier.path} also has answers of {', '.join(lost)}; name the paths of all its data "
            "sets, as no part of a run may be chosen"
        )
    items = {
        key: replace(item, case=replace(item.case, recorded=old.answer if old else None))
        for key, item in plan.items.items()
        for old in [_old(item, before)]
        if item.slice.kind.answered
    }
    return options, replace(plan, items={**plan.items, **items})


def ended(
    run: Path, plan: Plan, outcomes: Mapping[str, Outcome], facts: Facts
) -> tuple[dict[str, Outcome], Facts]:
    """Return outcomes and facts with what the run says of its answers, and of items now gone."""
    earlier = load_baseline(run)
    before = _answers(earlier)
    found = dict(outcomes)
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
    there = {name for item in plan.items.values() for name in _names_now(item)}
    gone = (one for one in earlier.records if there.isdisjoint(_names(one)))
    note = f"the answers of {earlier.path}, judged anew; no model was asked for an answer"
    facts = replace(
        facts,
        model=str(earlier.run.get("model", "")),
        provenance=_origin(facts.provenance, earlier),
        notes=(*facts.notes, note),
        kept=tuple(gone),
    )
    return found, facts


def _answers(earlier: Baseline) -> Answers:
    return {name: one for one in reversed(earlier.records) for name in _names(one)}


def _names(one: Record) -> tuple[Name, Name]:
    place = one.dataset, one.language, one.repeat
    return (*place, one.id), (*place, one.question, one.context)


def _names_now(item: PlannedItem) -> tuple[Name, Name]:
    """Return the item by id and question: without an id of its own, a new gold changes the id."""
    case, place = item.case, (item.case.dataset, item.case.language, item.repeat)
    return (*place, case.id), (*place, case.question, case.context)


def _old(item: PlannedItem, before: Answers) -> Record | None:
    """Return the record of an item that was asked in the same words; None for labelled answers."""
    identity, asked = _names_now(item)
    old = before.get(identity)
    if old is None or _names(old)[1] != asked:
        old = before.get(asked)
    return old if item.slice.kind.answered else None


def _origin(provenance: Mapping[str, object], earlier: Baseline) -> dict[str, object]:
    before, slices = inner(earlier.run, "provenance"), {}
    for name in inner(provenance, "slices"):
        prompt = inner(before, "slices", name).get("prompt", "")
        slices[name] = {**inner(provenance, "slices", name), "prompt": prompt}
    return {
        **provenance,
        "model": earlier.run.get("model"),
        "sent": {**inner(before, "sent"), **inner(provenance, "sent")},
        "slices": slices,
        "rejudged": earlier.sha256,
    }
