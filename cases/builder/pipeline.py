"""Doing the steps that are not done, and counting what became of every item."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Any

from cases.builder.build_options import ALL
from cases.builder.build_step import Build, ModelCalls, Step
from cases.builder.closed_book import ProbeStep
from cases.builder.freeze import FreezeStep
from cases.builder.generation import GenerateStep
from cases.builder.people import DISPUTED, AcceptStep, ReviewStep
from cases.builder.question_rules import CheckStep, question_only
from cases.builder.sampling import SampleStep
from cases.builder.validation import ValidateStep
from cases.builder.work_folder import (
    FAILURES,
    REPORT,
    BuildError,
    Folder,
    Item,
    Values,
    drop_failed,
    kept,
)
from evaluators.core import NO, YES, UsageError

STEPS: Mapping[str, type[Step]] = {
    "sample": SampleStep,
    "generate": GenerateStep,
    "check": CheckStep,
    "validate": ValidateStep,
    "probe": ProbeStep,
    "review": ReviewStep,
    "accept": AcceptStep,
    "freeze": FreezeStep,
}
"""Each step by its name, in their order."""


def run_steps(build: Build) -> Values:
    """Do the steps that were asked for and return the report.

    All options are checked before anything is done. Raises UsageError for a wrong one, BuildError
    where a step could not be finished.
    """
    alone = [name for name, step in STEPS.items() if not step.by_people]
    names = alone if build.options.step == ALL else [build.options.step]
    steps = [STEPS[name](build) for name in names]
    # The models to be asked are those from the first step on that is not done.
    first = next((at for at, step in enumerate(steps) if not is_done(step)), len(steps))
    specs = [spec for step in steps[first:] for spec in step.specs]
    calls = ModelCalls(build.options, specs, build.say)
    for step in steps:
        _do(step, calls)
    return write_report(build)


def write_report(build: Build) -> Values:
    """Return the counts of all steps made so far, and write them beside the rows."""
    folder = build.folder
    # Up to the first step that is not made, or made from older rows.
    made = {step: folder.read(step) for step in takewhile(partial(is_current, folder), STEPS)}
    found = report(made, build.recipe.question.negations)
    folder.write_json(REPORT, found)
    return found


def _do(step: Step, calls: ModelCalls) -> None:
    build, folder = step.build, step.build.folder
    if is_done(step):
        build.say(f"{summary(step.name, folder.read(step.name))} (done before)")
        step.finish(write_report(build))
        return
    source = source_of(folder, step.name)
    items = step.work(_items_for(step), calls)
    if step.models and build.options.leave_out_failed:
        items = drop_failed(items)
    folder.publish(step.name, items, step.record(), source)
    build.say(summary(step.name, items))
    step.finish(write_report(build))
    check_finished(step, items)


def _items_for(step: Step) -> Sequence[Item]:
    """Return the items that a step takes. Raises UsageError where the step before is not done."""
    if not step.after:
        return ()
    folder, after = step.build.folder, STEPS[step.after]
    if not _is_whole(folder, after.name):
        raise UsageError(
            f"build: {step.name} comes after {after.name}, which is not done; "
            f"run `{after.name}` first"
        )
    items = folder.read(after.name)
    check_finished(after, items)
    return kept(items)


def is_done(step: Step) -> bool:
    """Return whether a step is made as it would be made now, with nothing pending."""
    folder = step.build.folder
    if not is_current(folder, step.name):
        return False
    if step.renewed and folder.options(step.name) != step.record():
        return False
    return all(item.state != "pending" for item in folder.read(step.name))


def is_current(folder: Folder, name: str) -> bool:
    """Return whether a step is made, and from what the step before it holds now."""
    return folder.made(name) and folder.record(name).get("input") == source_of(folder, name)


def source_of(folder: Folder, name: str) -> str:
    """Return the hash of what a step would be made from now; empty for the first step."""
    after = STEPS[name].after
    return str(folder.record(after).get("output", "")) if after else ""


def _is_whole(folder: Folder, name: str) -> bool:
    """Return whether a step and all those before it are as they would be made now."""
    return not name or (is_current(folder, name) and _is_whole(folder, STEPS[name].after))


def check_finished(step: Step | type[Step], items: Sequence[Item]) -> None:
    """Raise BuildError, with what to do next, where items of a step are pending."""
    pending = [item for item in items if item.state == "pending"]
    if not pending:
        return
    why = next((item for item in pending if item.reason != "stopped"), pending[0])
    if why.reason in DISPUTED:
        advice = "run accept with that person's file"
    elif step.by_people:
        advice = "run accept with the files that are still out, or with --unreviewed"
    else:
        advice = "run the command again to go on"
        if why.reason in FAILURES:
            advice += "; --leave-out-failed drops what fails every time"
    raise BuildError(f"{step.name}: {len(pending)} items are not done ({why.detail}); {advice}")


def report(steps: Mapping[str, Sequence[Item]], negations: frozenset[str]) -> Values:
    """Return the counts of all steps, and the balance and the sources of what is left."""
    left = kept(list(steps.values())[-1]) if steps else []
    answered = [item for item in left if item.answer]
    return {
        "steps": {step: _counts(items) for step, items in steps.items()},
        "final": dict(sorted(final_states(steps).items())),
        "items": len({item.id for items in steps.values() for item in items}),
        "answers": {
            answer: sum(item.answer == answer for item in answered) for answer in (YES, NO)
        },
        "sources": dict(sorted(Counter(item.origin.group for item in left).items())),
        "licences": dict(sorted(Counter(item.origin.licence for item in left).items())),
        "question_only": question_only(answered, negations),
    }


def _counts(items: Sequence[Item]) -> dict[str, Any]:
    found: dict[str, Any] = {"in": len(items)}
    for state in ("kept", "dropped", "pending"):
        reasons = Counter(item.reason for item in items if item.state == state)
        found[state] = reasons.total()
        if reasons and state != "kept":
            found[f"{state}_why"] = dict(sorted(reasons.items()))
    return found


def final_states(steps: Mapping[str, Sequence[Item]]) -> Counter[str]:
    """Return how many sampled items are where: each is counted once, at the last step it reached.

    A state is ``dropped at STEP: REASON``, ``pending at STEP: REASON``, or ``kept by STEP``.
    """
    last: dict[str, str] = {}
    for step, items in steps.items():
        for item in items:
            why = f": {item.reason}" if item.reason else ""
            word = "kept by" if item.state == "kept" else f"{item.state} at"
            last[item.id] = f"{word} {step}{why}"
    return Counter(last.values())


def summary(step: str, items: Sequence[Item]) -> str:
    """Return one line on a step."""
    parts = [f"{len(items)} in, {len(kept(items))} kept"]
    for state in ("dropped", "pending"):
        if why := Counter(item.reason for item in items if item.state == state):
            listed = ", ".join(f"{reason} {count}" for reason, count in why.most_common())
            parts.append(f"{why.total()} {state} ({listed})")
    return f"{step}: {', '.join(parts)}"
