"""From planned items to the engine's tasks: who answers, who judges, and what passes."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import partial

from cases.dataset import PlannedItem, Slice
from evaluators.answerers import PromptedAnswer, RecordedAnswer
from evaluators.core import Answerer, Case, Judge, Model, UsageError
from evaluators.judges.ensemble import AdjudicatedJudge, Adjudications, CheckedJudge
from evaluators.judges.factory import JudgeFactory, Place
from evaluators.judges.offline import YesNoJudge
from evaluators.rubric import Style
from evaluators.runtime.engine import MetricRunner, Task


def make_tasks(
    items: Collection[PlannedItem],
    model: Model | None,
    judges: JudgeFactory,
    adjudications: Adjudications | None = None,
) -> dict[str, Task]:
    """Return the task of each item, by key; ``model`` None means the recorded answers.

    ``adjudications`` come before every judge that is not itself tested. Raises UsageError.
    """
    recorded = {item.slice.name for item in items if item.case.recorded is not None}
    rated = {item.slice.name for item in items if (item.case.label or "").isdigit()}
    parts: dict[str, list[PlannedItem]] = defaultdict(list)
    for item in items:
        parts[item.slice.name].append(item)
    tasks = {}
    for name, part in parts.items():
        slice_ = part[0].slice
        answerer = _answerer(slice_, model, recorded=name in recorded)
        style: Style = "rated" if slice_.rates or name in rated else "graded"
        answered = slice_.kind.answered  # only a recorded answer is judged again
        by_repeat = {
            repeat: _judge(slice_, style, repeat, judges, adjudications)
            for repeat in dict.fromkeys(1 if answered else item.repeat for item in part)
        }
        passes = partial(slice_.kind.passes, passing=slice_.passing, pass_bar=slice_.pass_bar)
        extras = metric_runners(slice_, [item.case for item in part], judges.first_model)
        for item in part:
            tasks[item.key] = Task(
                key=item.key,
                case=item.case,
                repeat=item.repeat,
                answerer=answerer,
                judge=by_repeat[1 if answered else item.repeat],
                passes=passes,
                metric_runners=extras,
            )
    return {item.key: tasks[item.key] for item in items}


def _answerer(slice_: Slice, model: Model | None, *, recorded: bool) -> Answerer:
    if model is not None and slice_.kind.answered:
        if slice_.prompt is None and not model.limits.takes_case:
            what = f"{slice_.name}: no answer prompt for {slice_.language!r}; add answer."
            advice = "next to its dataset.yaml, or give --prompt"
            raise UsageError(f"{what}{slice_.language}.yaml {advice}")
        return PromptedAnswer(model=model, prompt=slice_.prompt, whole=slice_.kind.words)
    if not recorded:
        what = "no item has a recorded answer, so there is nothing to judge; name a --model"
        raise UsageError(f"{slice_.path}: {what}")
    return RecordedAnswer()


def _judge(
    slice_: Slice,
    style: Style,
    repeat: int,
    judges: JudgeFactory,
    adjudications: Adjudications | None,
) -> Judge:
    """Return the judge of a slice, behind the adjudications where a model's answer is judged."""
    judge: Judge
    if slice_.kind.by_checks:
        return CheckedJudge(checks=slice_.checks)
    if slice_.kind.words:
        judge = YesNoJudge(yes=(slice_.yes,), no=(slice_.no,))
    else:
        audited = slice_.kind.answered  # labels test a judge better than an audit does
        rubric, name = slice_.rubric, slice_.name
        place = Place(style=style, rubric=rubric, repeat=repeat, audited=audited, name=name)
        judge = judges.build(place)
    if adjudications and slice_.kind.answered:
        labels = slice_.kind.labels(slice_.labels)
        judge = AdjudicatedJudge(behind=judge, adjudications=adjudications, labels=labels)
    return CheckedJudge(checks=slice_.checks, behind=judge) if slice_.checks else judge


def metric_runners(
    slice_: Slice, cases: Sequence[Case], model: Model | None
) -> tuple[MetricRunner, ...]:
    """Return what takes a slice's extra metrics. Raises UsageError for a case without context."""
    if not slice_.metrics or model is None:
        return ()
    needing = [metric.name for metric in slice_.metrics if metric.needs_context]
    without = [case.id for case in cases if not case.context] if needing else []
    if without:
        what = f"metric {needing[0]} reads an item's context, and item {without[0]!r} has none"
        raise UsageError(f"{slice_.path}: {what}; add it, or take the metric out")
    # Loads deepeval: seconds, and only for those who ask for it.
    from evaluators.judges.metric import metric_runners_of  # noqa: PLC0415

    return metric_runners_of(slice_.metrics, model)
