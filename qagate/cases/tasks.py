"""From planned items to the engine's tasks: who answers, who judges, and what passes."""

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from qagate.cases.dataset import PlannedItem, Slice
from qagate.evaluators import core, doors
from qagate.evaluators.adjudications import AdjudicatedJudge, Adjudications
from qagate.evaluators.core import Ask, CallError, Case, Judge, Model, UsageError
from qagate.evaluators.judges.factory import JudgeFactory, Place
from qagate.evaluators.judges.single import YesNoJudge
from qagate.evaluators.models.adapter import INCOMPLETE
from qagate.evaluators.optional import require
from qagate.evaluators.reading import parse_json
from qagate.evaluators.replies.readers import unfinished
from qagate.evaluators.rubric import Prompt, Style, chat_messages, fill
from qagate.evaluators.runtime.engine import MetricRunner, Task


def answer_messages(prompt: Prompt, case: Case) -> tuple[core.Message, ...]:
    """Return what the model under test is asked; the case's text goes in as it is."""
    values = {"question": case.question, "context": case.context}
    return chat_messages(fill(prompt.system, values), fill(prompt.user, values))


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """Gives the answer recorded in the data file."""

    spec: str = core.RECORDED

    async def answer(self, case: Case, repeat: int, ask: Ask) -> str:
        """Return the recorded text unchanged. Raises CallError if the file has none."""
        if case.recorded is None:
            message = "the data file has no recorded answer; name a --model"
            raise CallError("no_recorded_answer", message)
        return case.recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptedAnswer:
    """Gives a model's answer to a prompt."""

    model: Model
    prompt: Prompt | None
    """None for a model that takes the case itself."""
    whole: bool = False
    """Refuse an answer cut at its token limit: the start of a word may be another word."""

    @property
    def spec(self) -> str:
        """The model's SPEC."""
        return self.model.spec

    async def answer(self, case: Case, repeat: int, ask: Ask) -> str:
        """Return the reply's text, perhaps empty. Raises CallError for a filtered or cut one."""
        messages = answer_messages(self.prompt, case) if self.prompt else ()
        version = self.prompt.version if self.prompt else ""
        asked = core.AskedCase(
            question=case.question,
            context=case.context,
            language=case.language,
            metadata=case.metadata,
            messages=messages,
        )
        taken = asked if self.model.limits.takes_case else None
        request = core.Request(
            messages=messages, version=version, repeat=repeat, case=taken
        )
        reply = await ask(self.model, request)
        if reply.finish == "content_filter":
            raise CallError(
                "filtered", f"{self.spec}: the provider filtered the answer"
            )
        cut = reply.finish == "length" and (self.whole or not reply.text.strip())
        if cut or reply.finish == INCOMPLETE:
            raise CallError(
                "cut", f"{self.spec}: the answer was cut at the token limit; raise it"
            )
        if reply.finish != "length" and (odd := unfinished(reply.finish)):
            raise CallError(
                "cut", f"{self.spec}: {odd.reason}, not as a complete answer does"
            )
        return answer_of(reply)


def answer_of(reply: core.Reply) -> str:
    """Return the text of a reply; if it has only tool calls, these as JSON."""
    if reply.text.strip() or not reply.calls:
        return reply.text
    calls = []
    for call in reply.calls:
        arguments: object = call.arguments
        with suppress(ValueError):  # it stays text where it is no JSON
            arguments = parse_json(call.arguments)
        calls.append({"name": call.name, "arguments": arguments})
    return json.dumps(calls, ensure_ascii=False)


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
        # Labels test a judge better than an audit does.
        place = Place(style=style, rubric=slice_.rubric, audited=answered, name=name)
        by_repeat = {
            repeat: _judge(
                slice_, replace(place, repeat=repeat), judges, adjudications or {}
            )
            for repeat in dict.fromkeys(1 if answered else item.repeat for item in part)
        }
        passes = partial(
            slice_.kind.passes, passing=slice_.passing, pass_bar=slice_.pass_bar
        )
        extras = metric_runners(
            slice_, [item.case for item in part], judges.first_model
        )
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


def _answerer(slice_: Slice, model: Model | None, *, recorded: bool) -> core.Answerer:
    if model is not None and slice_.kind.answered:
        if slice_.prompt is None and not model.limits.takes_case:
            what = (
                f"{slice_.name}: no answer prompt for {slice_.language!r}; add answer."
            )
            advice = "next to its dataset.yaml, or give --prompt"
            raise UsageError(f"{what}{slice_.language}.yaml {advice}")
        return PromptedAnswer(
            model=model, prompt=slice_.prompt, whole=slice_.kind.words
        )
    if not recorded:
        what = "no item has a recorded answer, so there is nothing to judge; name a --model, or"
        raise UsageError(
            f"{slice_.path}: {what} by PATH and --languages data that have answers"
        )
    return RecordedAnswer()


def _judge(
    slice_: Slice, place: Place, judges: JudgeFactory, known: Adjudications
) -> Judge:
    """Return the judge of a slice, behind the adjudications where a model's answer is judged."""
    judge: Judge
    if slice_.kind.by_checks:
        make_checked = doors.load_checked_judge()
        return make_checked(checks=slice_.checks)
    if slice_.kind.words:
        judge = YesNoJudge(yes=(slice_.yes,), no=(slice_.no,))
    else:
        judge = judges.build(place)
    if known and slice_.kind.answered:
        labels = slice_.kind.fixed or slice_.labels
        judge = AdjudicatedJudge(behind=judge, adjudications=known, labels=labels)
    if not slice_.checks:
        return judge
    make_checked = doors.load_checked_judge()
    return make_checked(checks=slice_.checks, behind=judge)


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
    require("deepeval", f"{slice_.path}: metric {slice_.metrics[0].name}")
    # Loads deepeval: seconds, and only for those who ask for it.
    make_runners = doors.load_metric_runners()
    return make_runners(slice_.metrics, model)
