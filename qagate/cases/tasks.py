"""From planned items to the engine's tasks: who answers, who judges, and what passes.

The answer is the recorded one, or a model's to the slice's prompt. Who judges follows from the
kind: code alone, the options of a closed question, or a judge with a rubric. A person's verdict on
exactly this answer stands before theirs. What earlier runs answered is read by the same judge.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from qagate.cases.dataset import PlannedItem, Slice
from qagate.cases.earlier import (
    BASELINE,
    NOW,
    NOW_THEN,
    THEN,
    EarlierAnswer,
    EarlierAnswers,
)
from qagate.evaluators import core, doors
from qagate.evaluators.adjudications import AdjudicatedJudge, Adjudications
from qagate.evaluators.answers.reader import Asked, read_reply, read_text
from qagate.evaluators.answers.state_rules import StateRules
from qagate.evaluators.answers.states import BREAK
from qagate.evaluators.core import Ask, CallError, Case, Judge, Model, UsageError
from qagate.evaluators.judges.factory import JudgeFactory, Place
from qagate.evaluators.judges.offline import ChoiceJudge, YesNoJudge
from qagate.evaluators.kinds import is_right
from qagate.evaluators.languages.word_lists import read, tables
from qagate.evaluators.models.targets import HTTP
from qagate.evaluators.models.versions import asked_spec, may_be_one_spec
from qagate.evaluators.negotiation import MAX_TOKENS, Negotiable
from qagate.evaluators.optional import require
from qagate.evaluators.rubric import Prompt, Style, chat_messages, fill
from qagate.evaluators.runtime.answer_ages import THIS_RUN, AnswerAge
from qagate.evaluators.runtime.task import Around, MetricRunner, ReadingTask, Task


def answer_messages(prompt: Prompt, case: Case) -> tuple[core.Message, ...]:
    """Return what the model under test is asked; the case's text goes in as it is."""
    values = {"question": case.question, "context": case.context}
    user = fill(prompt.user, values)
    if not case.context:
        user = user.lstrip("\n")  # a prompt may begin with the context
    return chat_messages(fill(prompt.system, values), user)


OWN_LIMIT = 4_096
"""Tokens of an answer to a short question, where the user sets no limit. It is far more than an
answer takes. An answer without an end comes to one within the call's deadline, of 120 s, where
the server writes 35 tokens a second."""


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """Gives the answer recorded in the data file."""

    spec: str = core.RECORDED

    async def answer(self, case: Case, repeat: int, ask: Ask) -> core.ReadAnswer:
        """Return the recorded answer as read. Raises CallError if the file has none."""
        if case.recorded is None:
            message = "the data file has no recorded answer; name a --model"
            raise CallError("no_recorded_answer", message)
        return read_text(case.recorded, asked=asked_of(None, case))


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptedAnswer:
    """Gives a model's answer to a prompt."""

    model: Model
    prompt: Prompt | None
    """None for a model that takes the case itself."""
    limits_length: bool = False
    """Whether replies have a limit of ours, ``OWN_LIMIT``, if the user gave none."""

    @property
    def spec(self) -> str:
        """The model's SPEC."""
        return self.model.spec

    async def answer(self, case: Case, repeat: int, ask: Ask) -> core.ReadAnswer:
        """Return the reply as read. Raises CallError if none came."""
        request = self._request(case, repeat)
        reply = await ask(self.model, request)
        limit = self.model.limits.max_tokens
        if reply.output_tokens == request.own_limit:
            # So many, neither more nor fewer: it was sent, and ended the reply.
            limit = request.own_limit
        return read_reply(reply, asked_of(self.prompt, case), limit)

    def _request(self, case: Case, repeat: int) -> core.Request:
        messages: tuple[core.Message, ...] = ()
        version = ""
        if self.prompt is not None:
            messages = answer_messages(self.prompt, case)
            version = self.prompt.version
        asked_case = None
        if self.model.limits.takes_case:
            asked_case = core.AskedCase(
                question=case.question,
                context=case.context,
                language=case.language,
                metadata=case.metadata,
                messages=messages,
            )
        return core.Request(
            messages=messages,
            version=version,
            repeat=repeat,
            case=asked_case,
            own_limit=self._own_limit,
        )

    @property
    def _own_limit(self) -> int | None:
        """The limit of ours on a reply; None where there is one, or none can be sent."""
        limits = self.model.limits
        identity = self.model.identity
        is_api = isinstance(self.model, Negotiable) and identity.get("provider") != HTTP
        if not self.limits_length or not is_api:
            return None
        if limits.takes_case or limits.max_tokens is not None:
            return None
        omitted = identity.get("omit")
        if isinstance(omitted, list) and MAX_TOKENS in omitted:
            return None
        return OWN_LIMIT


def asked_of(prompt: Prompt | None, case: Case) -> Asked:
    """Return what an answer to a case is held against, to know an echo.

    The words of the context are none of the prompt's own, nor are those that may be chosen.
    """
    question = _without_choices(case)
    texts = [question]
    if prompt is not None:
        values = {"question": question, "context": BREAK}
        texts += [fill(prompt.system, values), fill(prompt.user, values)]
    return Asked(
        language=case.language,
        question=case.question,
        texts=tuple(texts),
        golds=case.golds,
    )


_LABEL = re.compile(r"(?:^|[\s(])[^\W_][).]\s")
"""Stands before an option: ``A)``, ``(b)``, ``1.``."""


def _without_choices(case: Case) -> str:
    """Return a case's question with ``BREAK`` in place of what it lets choose.

    Whoever repeats that answers. A question that asks "X or Y?" is left out as a whole, as
    nobody knows where its alternatives begin.
    """
    question = case.question
    for option in sorted(case.options, key=len, reverse=True):
        question = re.sub(rf"(?<!\w){re.escape(option)}(?!\w)", BREAK, question)
    # The first word parts nothing: Polish "czy" opens any question for yes or no.
    words = read(question).words[1:]
    if tables(case.language).any_of("alternatives", words):
        return BREAK
    labels = [match.start() for match in _LABEL.finditer(question)]
    if len(labels) > 1:
        question = question[: labels[0]] + BREAK
    if ":" in question:  # behind the last one may be options
        question = question.rpartition(":")[0] + BREAK
    return question


def read_earlier(
    earlier: EarlierAnswer, prompt: Prompt | None
) -> core.ReadAnswer | None:
    """Return an earlier run's answer as today's reader reads its reply; None if it had none."""
    if earlier.reply is None:
        return None
    return read_text(earlier.reply, earlier.finish, asked_of(prompt, earlier.case))


def make_tasks(
    items: Collection[PlannedItem],
    model: Model | None,
    judges: JudgeFactory,
    adjudications: Adjudications | None = None,
    earlier: Sequence[EarlierAnswers] = (),
) -> dict[str, Task]:
    """Return the task of each item, by key; ``model`` None means the recorded answers.

    ``adjudications`` come before every judge that is not itself tested, and the answers of
    ``earlier`` runs are read with their items. Raises UsageError.
    """
    by_slice: dict[str, list[PlannedItem]] = defaultdict(list)
    for item in items:
        by_slice[item.slice.name].append(item)
    tasks: dict[str, Task] = {}
    for items_of_slice in by_slice.values():
        maker = _SliceTasks(items_of_slice, model, judges, adjudications or {})
        for item in items_of_slice:
            tasks[item.key] = maker.task(item, earlier)
    return {item.key: tasks[item.key] for item in items}


class _SliceTasks:
    """Makes the tasks of the items of one slice, which have answerer, judge and metrics in common.

    Raises UsageError where nobody can answer or judge them.
    """

    def __init__(
        self,
        items: Sequence[PlannedItem],
        model: Model | None,
        judges: JudgeFactory,
        adjudications: Adjudications,
    ) -> None:
        self._slice = items[0].slice
        self._cases = [item.case for item in items]
        self._judges = judges
        self._adjudications = adjudications
        self._judge_of: dict[tuple[str, int], Judge] = {}
        """The judges made so far, by the run whose words they read and the judged repeat."""
        self._answerer = _answerer(self._slice, self._cases, model)
        self._asked = core.RECORDED
        """The SPEC of the model that is asked."""
        if model is not None:
            self._asked = asked_spec(model.spec, model.identity)
        self._runners = metric_runners(self._slice, self._cases, judges.first_model)
        self._state_rules = state_rules_of(
            self._slice, _place(self._slice, self._cases, 1)
        )
        self._passes = partial(
            self._slice.kind.passes,
            passing=self._slice.passing,
            pass_bar=self._slice.pass_bar,
        )

    def task(self, item: PlannedItem, earlier: Sequence[EarlierAnswers]) -> Task:
        """Return the task of an item, with the readings of what ``earlier`` runs answered."""
        readings: dict[str, ReadingTask] = {}
        for answers in earlier:
            if item.key in answers.by_key:
                readings.update(self._readings(item, answers))
        return Task(
            key=item.key,
            case=item.case,
            repeat=item.repeat,
            answerer=self._answerer,
            judge=self._judge(item),
            passes=self._passes,
            metric_runners=self._runners,
            readings=readings,
            age=self._age(earlier),
            calls_right=partial(
                _calls_right, passing=self._slice.passing, bar=self._slice.pass_bar
            ),
            is_labelled=not self._slice.kind.answered,
            state_rules=self._state_rules,
            around=self._around(self._slice),
        )

    def _age(self, earlier: Sequence[EarlierAnswers]) -> AnswerAge:
        """Return which kept answers count.

        The baseline's own model is asked anew: its kept answers may be those of the baseline.
        """
        for answers in earlier:
            is_baseline = answers.role == BASELINE
            if is_baseline and may_be_one_spec(answers.model, self._asked):
                return THIS_RUN
        return AnswerAge(seconds=self._slice.max_age_seconds, dated_may_be_older=True)

    def _readings(
        self, item: PlannedItem, earlier: EarlierAnswers
    ) -> Iterator[tuple[str, ReadingTask]]:
        """Yield what is read of an earlier run's answer to an item, each with its name.

        Where golds, words or checks were others then, both runs' answers are read by those too;
        but no answer to a question by the golds of another one.
        """
        answer = earlier.by_key[item.key]
        old = read_earlier(answer, self._slice.prompt)
        now = self._reading(answer.case, self._judge(item), old, self._slice)
        yield f"{earlier.role}{NOW}", now
        slice_then = earlier.slices_then.get(item.slice.name)
        is_edited = answer.case != item.case
        if is_edited or (answer.then is None and slice_then is None):
            return
        case_then = answer.then or item.case
        judge_then = self._judge(item, slice_then, earlier.role)
        slice_read = slice_then or self._slice
        old_then = self._reading(case_then, judge_then, old, slice_read)
        yield f"{earlier.role}{THEN}", old_then
        new_then = self._reading(case_then, judge_then, None, slice_read)
        yield f"{earlier.role}{NOW_THEN}", replace(new_then, reads_new_answer=True)

    def _reading(
        self,
        case: Case,
        judge: Judge,
        answer: core.ReadAnswer | None,
        slice_: Slice,
    ) -> ReadingTask:
        return ReadingTask(
            case=case,
            judge=judge,
            passes=self._passes,
            answer=answer,
            metric_runners=self._runners,
            state_rules=self._state_rules,
            around=self._around(slice_),
        )

    def _around(self, slice_: Slice) -> Around:
        """Return what stands before the judge of a slice."""
        return partial(around, slice_=slice_, adjudications=self._adjudications)

    def _judge(
        self, item: PlannedItem, slice_then: Slice | None = None, role: str = ""
    ) -> Judge:
        """Return who judges an item; with a slice of then by the words and checks of that run."""
        repeat = _judged_repeat(item)
        if slice_then is None:
            role = ""
        if (role, repeat) not in self._judge_of:
            slice_ = slice_then or self._slice
            place = _place(self._slice, self._cases, repeat)
            self._judge_of[role, repeat] = _judge_of_slice(
                slice_, place, self._judges, self._adjudications
            )
        return self._judge_of[role, repeat]


def _calls_right(verdict: core.Verdict, passing: Collection[str], bar: int) -> bool:
    """Return whether a verdict calls an answer right."""
    return is_right(verdict.label, passing, bar)


def _judged_repeat(item: PlannedItem) -> int:
    """Return which time the same answer is judged: a model gives another one each time."""
    return 1 if item.slice.kind.answered else item.repeat


def _place(slice_: Slice, cases: Iterable[Case], repeat: int) -> Place:
    """Return what a judge needs to know of a slice."""
    style: Style = "graded"
    if slice_.rates or any((case.label or "").isdigit() for case in cases):
        style = "rated"
    return Place(
        style=style,
        rubric=slice_.rubric,
        labelled=not slice_.kind.answered,
        name=slice_.name,
        repeat=repeat,
    )


def _answerer(
    slice_: Slice, cases: Iterable[Case], model: Model | None
) -> core.Answerer:
    """Return who answers: the model, or the data file. Raises UsageError if nobody can."""
    if model is not None and slice_.kind.answered:
        if slice_.prompt is None and not model.limits.takes_case:
            raise UsageError(
                f"{slice_.name}: no answer prompt for {slice_.language!r}; "
                f"add answer.{slice_.language}.yaml next to its dataset.yaml, "
                "or give --prompt"
            )
        is_short = not slice_.rates and not slice_.kind.by_checks
        return PromptedAnswer(model=model, prompt=slice_.prompt, limits_length=is_short)
    if all(case.recorded is None for case in cases):
        raise UsageError(
            f"{slice_.path}: no item has a recorded answer, so there is nothing to judge; "
            "name a --model, or by PATH and --languages data that have answers"
        )
    return RecordedAnswer()


def _judge_of_slice(
    slice_: Slice, place: Place, judges: JudgeFactory, adjudications: Adjudications
) -> Judge:
    """Return the judge of a slice, with its checks and behind people's verdicts.

    People judge a model's answers. They do not come before a judge that is itself tested.
    """
    if slice_.kind.by_checks:
        make_checked = doors.load_checked_judge()
        return make_checked(checks=slice_.checks)
    judge: Judge
    if slice_.kind.words:
        judge = YesNoJudge(yes=slice_.yes, no=slice_.no)
    elif slice_.kind.closed:
        judge = ChoiceJudge()
    else:
        judge = judges.build(place)
    return around(judge, slice_=slice_, adjudications=adjudications)


def around(judge: Judge, *, slice_: Slice, adjudications: Adjudications) -> Judge:
    """Return a judge of a slice with what stands before it: people's verdicts, and checks."""
    if adjudications and slice_.kind.answered:
        labels = slice_.kind.fixed or slice_.labels
        judge = AdjudicatedJudge(
            behind=judge, adjudications=adjudications, labels=labels
        )
    if slice_.checks:
        make_checked = doors.load_checked_judge()
        judge = make_checked(checks=slice_.checks, behind=judge)
    return judge


def state_rules_of(slice_: Slice, place: Place) -> StateRules:
    """Return what the states of a slice's answers are graded as."""
    is_json = any(check.check == "json_schema" for check in slice_.checks)
    if slice_.kind.by_checks:
        return StateRules(needs_whole=is_json)
    if place.style == "rated":
        return StateRules(rates_empty=True, needs_whole=is_json)
    silent = slice_.kind.silent or core.NOT_ATTEMPTED
    if silent == core.NOT_ATTEMPTED and place.labels != core.GRADES:
        silent = ""  # a rubric's own labels say what such an answer is
    is_closed = slice_.kind.closed
    return StateRules(
        silent=silent, needs_whole=is_json or is_closed, reads_refusals=is_closed
    )


def metric_runners(
    slice_: Slice, cases: Sequence[Case], model: Model | None
) -> tuple[MetricRunner, ...]:
    """Return what takes a slice's extra metrics. Raises UsageError for a case without context."""
    if not slice_.metrics or model is None:
        return ()
    for metric in slice_.metrics:
        if not metric.needs_context:
            continue
        for case in cases:
            if not case.context:
                raise UsageError(
                    f"{slice_.path}: metric {metric.name} reads an item's context, "
                    f"and item {case.id!r} has none; add it, or take the metric out"
                )
    require("deepeval", f"{slice_.path}: metric {slice_.metrics[0].name}")
    # Loads deepeval: seconds, and only for those who ask for it.
    make_runners = doors.load_metric_runners()
    return make_runners(slice_.metrics, model)
