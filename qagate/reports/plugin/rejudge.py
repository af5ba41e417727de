"""``qagate rejudge RUN``: today's judge and data read the answers of an earlier run once more.

No model answers. The report shows both readings: what the run said of its answers then, and what
is said of them now. It decides nothing and is no baseline, as every run reads its baseline's
answers itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from qagate.cases.dataset import Plan, Selection
from qagate.cases.plan import make_plan
from qagate.evaluators.core import Outcome, ReplyOrigin, Usage, UsageError
from qagate.evaluators.output import plural
from qagate.reports.gates.decide import INCONCLUSIVE, OK
from qagate.reports.plugin.options import RunOptions
from qagate.reports.run.baseline import Baseline, load_baseline
from qagate.reports.run.json_data import inner
from qagate.reports.run.partners import EarlierRecords, is_edited
from qagate.reports.run.report import Cause, Decision, Report

T = TypeVar("T")


def planned(
    files: Sequence[Path], options: RunOptions, labelled: Iterable[Path] = ()
) -> tuple[RunOptions, Plan]:
    """Return the options with the run's sample, and a plan with its answers. Raises UsageError."""
    assert options.answers is not None
    earlier = load_baseline(options.answers)
    choice = _selection_of(earlier, options.choice)
    plan = make_plan(files, choice, labelled)
    _check_slices(plan, earlier)
    records = EarlierRecords.of(earlier.records)
    items = dict(plan.items)
    for key, item in plan.items.items():
        record = records.partner(item.case, item.repeat)
        if not item.slice.kind.answered:
            continue
        answer = None
        if record is not None and not is_edited(item.case, record):
            answer = record.as_it_came
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


def _check_slices(plan: Plan, earlier: Baseline) -> None:
    """Raise UsageError where the paths of this command lack a slice of the run."""
    planned_slices = {item.slice.name for item in plan.items.values()}
    lacking = sorted(set(earlier.slices) - planned_slices)
    if lacking:
        raise UsageError(
            f"{earlier.path} also has answers of {', '.join(lacking)}; name the paths "
            "of all its data sets, as no part of a run may be chosen"
        )


def as_answered(
    plan: Plan, outcomes: Mapping[str, Outcome], earlier: Baseline
) -> dict[str, Outcome]:
    """Return the outcomes with who answered then, and what that took."""
    records = EarlierRecords.of(earlier.records)
    answered = dict(outcomes)
    for key, outcome in outcomes.items():
        item = plan.items[key]
        record = records.partner(item.case, item.repeat)
        is_answer = item.slice.kind.answered and outcome.answer is not None
        if record is None or not is_answer:
            continue
        answering = Usage(
            input_tokens=record.answer_tokens_in or 0,
            output_tokens=record.answer_tokens_out or 0,
            seconds=record.answer_seconds or 0.0,
            cost=record.answer_cost,
        )
        answered[key] = replace(
            outcome,
            model=record.model,
            answering=answering,
            asked=ReplyOrigin(at=record.asked_at, run=record.asked_by),
        )
    return answered


def provenance_of(
    provenance: Mapping[str, object], earlier: Baseline
) -> Mapping[str, object]:
    """Return what a reading was made with: today's judge, and the run's model and prompts."""
    origin = earlier.report.provenance
    slices = {}
    for name, part in inner(provenance, "slices").items():
        prompt = inner(origin, "slices", name).get("prompt", "")
        slices[name] = {**part, "prompt": prompt}
    return {
        **provenance,
        "model": earlier.report.model,
        "sent": {**inner(origin, "sent"), **inner(provenance, "sent")},
        "slices": slices,
        "rejudged": earlier.sha256,
    }


def decision_of(report: Report, earlier: Baseline) -> Decision:
    """Return 0 where every answer was read, 6 where grades lack, and how many read otherwise."""
    lacking = report.counts.ungraded
    changed = 0
    if report.comparison is not None:
        for change in report.comparison.changes:
            if change.flip in ("fixed", "broke", "same"):
                changed += 1
    answers = plural(report.counts.planned, "answer")
    line = (
        f"{answers} of {earlier.path} read anew: {changed:,} graded otherwise than then"
    )
    if lacking:
        line = f"READ IN PART: exit {INCONCLUSIVE}; {line}; {plural(lacking, 'grade')} lacking"
        return Decision(gates=(), code=INCONCLUSIVE, cause=Cause.READ_ANEW, line=line)
    line = f"READ ANEW: exit {OK}; {line}"
    return Decision(gates=(), code=OK, cause=Cause.READ_ANEW, line=line)
