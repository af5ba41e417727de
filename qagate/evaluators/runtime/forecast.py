"""The calls that items would take, and their tokens and cost, before any is made.

A forecast runs the item's own answerer and judge with an ``ask`` that looks up kept replies and
notes the requests without one. So it cannot differ from the run. ``KeptReplies`` says which kept
replies the run would use: answers that are young enough, and grades that no run found void.

What is judged besides the run's own answers is foretold apart, and said with its cause: the
answers of earlier runs (``reading_calls``), kept grades that are asked anew (``canary_calls``),
and answers that rules settled (``rule_check_calls``). Labelled answers are tasks like others.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from qagate.evaluators import core
from qagate.evaluators.judges.drift import GradeSide, JudgePlace, draw
from qagate.evaluators.judges.members import judging_models, single_judges
from qagate.evaluators.judges.rule_checks import in_drawn_order, is_settled_by, rules_of
from qagate.evaluators.kept_requests import judge_identity, request_key
from qagate.evaluators.ledger import KeptReply
from qagate.evaluators.ledger.voids import JudgedPart
from qagate.evaluators.models.pricing import Pricing
from qagate.evaluators.models.spec import Spec
from qagate.evaluators.negotiation import (
    AS_MOST,
    Negotiated,
    formed,
    other_forms,
    stands,
)
from qagate.evaluators.run_identity import NO_RUN, RunIdentity
from qagate.evaluators.runtime import budget
from qagate.evaluators.runtime.answer_ages import AnswerAge, kept_answer
from qagate.evaluators.runtime.canaries import graded_answers, judge_place, side_of
from qagate.evaluators.runtime.slice_stops import slice_name_of
from qagate.evaluators.runtime.task import MetricRunner, Task, judged

BYTES_PER_TOKEN = 3.5
"""UTF-8 bytes. Current tokenizers: 4 to 5 for English and Cyrillic, 3 for Polish and Hungarian."""

CACHEABLE_TOKENS = 1024
"""The shortest prefix that OpenAI and, for most models, Anthropic cache."""

REPLY_TOKENS = 100
"""The assumed length of a reply: a short answer, or a verdict with its reason."""

PLACEHOLDER_ANSWER = "A short answer of a sentence or two. " * 10
"""Stands for an answer that is not known yet; about ``REPLY_TOKENS`` long."""

_NOT_KEPT = "not_kept"

FindReply = Callable[[str], KeptReply | None]
"""Returns the newest reply that is kept under a request's key, or None."""


def _no_voids(part: JudgedPart) -> float:
    """Return from when on a judge's grades count where none were found void."""
    return 0.0


def _as_most(model: core.Model) -> Negotiated | None:
    """Return that nothing is known of how a model is written to."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptReplies:
    """The kept replies that a run would use."""

    find: FindReply
    run: RunIdentity = NO_RUN
    """The run that is foretold."""
    counts_since: Callable[[JudgedPart], float] = _no_voids
    """Returns from when on grades of a judge count, in seconds since 1970."""
    negotiated: Callable[[core.Model], Negotiated | None] = _as_most
    """Returns how a model is known to be written to; None if nothing is known."""

    def answer(
        self, model: core.Model, request: core.Request, age: AnswerAge
    ) -> core.Reply | None:
        """Return the kept reply that may stand for a new answer.

        Of a version that one call may confirm it is assumed that it does.
        """
        kept = self._newest(model, request, model.identity)
        if kept is None:
            return None
        name = str(model.identity.get("name", ""))
        decision = kept_answer(kept, age, self.run, name, frozenset())
        return None if decision == "ask" else kept.reply

    def grade(
        self, model: core.Model, request: core.Request, language: str
    ) -> core.Reply | None:
        """Return the kept reply of a judge, unless it is void."""
        part = JudgedPart(
            judge=model.identity, language=language, rubric=request.version
        )
        kept = self._newest(model, request, judge_identity(model.identity))
        if kept is None or kept.at < self.counts_since(part):
            return None
        return kept.reply

    def _newest(
        self,
        model: core.Model,
        request: core.Request,
        identity: Mapping[str, object],
    ) -> KeptReply | None:
        """Return the newest reply that is kept of a request in any form, as the run does."""
        known = self.negotiated(model) or AS_MOST
        usable = []
        for form in (known, *other_forms(request, known)):
            asked = formed(request, form)
            kept = self.find(request_key(identity, asked))
            if kept is not None and stands(form, asked, kept.reply):
                usable.append(kept)
        return max(usable, key=lambda kept: kept.at, default=None)


def _nothing(key: str) -> KeptReply | None:
    return None


NOTHING_KEPT = KeptReplies(find=_nothing)
"""Of a run on an empty ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of an item."""

    spec: str
    request: core.Request
    kept: bool
    """Whether the ledger has the reply, so that the call costs nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The total of some calls, in estimated tokens and USD; an amount is None without a price.

    Repeated questions after an unreadable reply are not included.
    """

    calls: int = 0
    kept: int = 0
    """Calls whose reply is kept; the other fields leave them out."""
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = 0.0
    known: float = 0.0
    """The cost of the calls whose price is known."""
    cached: float | None = 0.0
    """The cost if the provider caches the prefixes that calls share."""
    most: float | None = 0.0
    """The cost if every reply has the greatest length allowed."""

    def __add__(self, other: "Forecast") -> "Forecast":
        """Return the total of both."""
        return Forecast(
            calls=self.calls + other.calls,
            kept=self.kept + other.kept,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            cost=core.sum_if_known(self.cost, other.cost),
            known=self.known + other.known,
            cached=core.sum_if_known(self.cached, other.cached),
            most=core.sum_if_known(self.most, other.most),
        )


async def calls_ahead(task: Task, kept: KeptReplies) -> list[Call]:
    """Return the calls of one item; as long as its answer is unknown, every judge may be asked.

    The readings of earlier answers are not among them.
    """
    noted = _Noted(kept)
    asking = noted.asking_judge(task.case)
    try:
        answer = await task.answerer.answer(
            task.case, task.repeat, noted.asking_model(task.age)
        )
    except core.CallError as error:
        if error.kind != _NOT_KEPT:
            return noted.calls
        answer = core.ReadAnswer(text=PLACEHOLDER_ANSWER)
        for judge in single_judges(task.judge):
            with suppress(core.CallError, core.JudgeError):
                await judge.judge(task.case, answer.text, asking)
    else:
        if task.state_rules.problem(answer):
            return noted.calls
        with suppress(core.CallError, core.JudgeError):
            await judged(task, answer, asking)
    for runner in task.metric_runners:
        noted.calls += await _measured(runner, task.case, answer.text, kept)
    return noted.calls


async def reading_calls(
    task: Task, kept: KeptReplies, calls_of_item: Iterable[Call]
) -> dict[str, list[Call]]:
    """Return the calls that read an item's further answers, by the name of the reading.

    Equal requests are one call: those of the item's own answer (``calls_ahead``) are left out.
    """
    known = {_identity_of(call) for call in calls_of_item}
    by_name: dict[str, list[Call]] = {}
    for name, reading in task.readings.items():
        if reading.answer is None:  # none, or the new answer, which may not be known
            continue
        if reading.state_rules.problem(reading.answer):
            continue
        noted = _Noted(kept)
        with suppress(core.CallError, core.JudgeError):
            asking = noted.asking_judge(reading.case)
            await judged(reading, reading.answer, asking)
        for runner in reading.metric_runners:
            noted.calls += await _measured(
                runner, reading.case, reading.answer.text, kept
            )
        by_name[name] = [
            call for call in noted.calls if _identity_of(call) not in known
        ]
        known.update(map(_identity_of, by_name[name]))
    return by_name


async def canary_calls(tasks: Sequence[Task], kept: KeptReplies) -> list[Call]:
    """Return the calls that ask kept grades anew.

    How many there are of each grade does not depend on the run; which ones, its id draws.
    """
    grades: dict[str, _KnownGrade] = {}
    for graded in graded_answers(tasks):
        for member in judging_models(graded.judge):
            noted = _Noted(kept)
            asking = noted.asking_judge(graded.case)
            try:
                verdict = await member.judge(graded.case, graded.answer, asking)
            except (core.CallError, core.JudgeError):
                continue
            key = _identity_of(noted.calls[0])
            grade = _KnownGrade(
                place=judge_place(graded.case, member),
                side=side_of(verdict, graded.calls_right),
                rank=graded.rank,
                key=key,
                call=replace(noted.calls[-1], kept=False),
            )
            grades.setdefault(key, grade)
    return [grade.call for grade in draw(grades.values(), kept.run.id)]


async def rule_check_calls(
    tasks: Sequence[Task], kept: KeptReplies, most: int
) -> list[Call]:
    """Return the calls by which a model checks rules before it, at most so many a slice.

    Of answers that are known. Where one is not, its grade counts as the model's (``calls_ahead``).
    """
    by_slice: dict[str, dict[str, Task]] = defaultdict(dict)
    for task in tasks:
        if rules_of(task.judge.spec) and not task.is_labelled:
            by_slice[slice_name_of(task.case)][task.key] = task
    calls: list[Call] = []
    for of_slice in by_slice.values():
        checked = 0
        for key in in_drawn_order(of_slice):
            if checked == most:
                break
            calls_of_check = await _calls_of_check(of_slice[key], kept)
            checked += bool(calls_of_check)
            calls += calls_of_check
    return calls


async def _calls_of_check(task: Task, kept: KeptReplies) -> list[Call]:
    """Return the calls by which a model checks what rules say of an answer; none if they do not."""
    outcome = await known_outcome(task, kept)
    verdict = outcome.verdict
    rules = rules_of(task.judge.spec)
    if verdict is None or not is_settled_by(rules, verdict.votes):
        return []
    noted = _Noted(kept)
    (model,) = judging_models(task.judge)
    with suppress(core.CallError, core.JudgeError):
        asking = noted.asking_judge(task.case)
        await model.judge(task.case, outcome.answer or "", asking)
    return noted.calls


@dataclass(frozen=True, slots=True, kw_only=True)
class _KnownGrade:
    """A kept grade that may be drawn as a canary."""

    place: JudgePlace
    side: GradeSide
    rank: int
    key: str
    call: Call


def judged_anew(count: int, whose: str, why: str) -> str:
    """Return in words that answers are judged anew, and why: kept grades would cost nothing."""
    if count == 1:
        return f"1 answer of {whose} is judged anew: {why}"
    return f"{count:,} answers of {whose} are judged anew: {why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedBy:
    """What made the grades of a slice in one run."""

    judge: str
    """The SPECs of the judges."""
    rubric: str
    """The rubric's version; empty without one."""
    fresh: str = ""
    """The name of ``--fresh``."""


def why_anew(then: GradedBy, now: GradedBy) -> str:
    """Return why grades of an earlier run cannot stand for new ones."""
    if now.judge != then.judge:
        return f"the judge was {then.judge or 'none'}"
    if now.rubric != then.rubric:
        return "the rubric changed"
    if now.fresh != then.fresh:
        return f"--fresh {now.fresh}" if now.fresh else f"it was --fresh {then.fresh}"
    return "their grades are not kept here, or are void"


async def known_outcome(task: Task, kept: KeptReplies) -> core.Outcome:
    """Return the outcome that the recorded answer and kept replies give; without them missing."""
    noted = _Noted(kept)
    try:
        answer = await task.answerer.answer(
            task.case, task.repeat, noted.asking_model(task.age)
        )
        problem = task.state_rules.problem(answer)
        if problem:
            return core.Outcome(
                key=task.key, state="error", kind=answer.state, message=problem
            )
        verdict = await judged(task, answer, noted.asking_judge(task.case))
    except (core.CallError, core.JudgeError) as error:
        return core.Outcome(
            key=task.key, state="missing", kind=error.kind, message=str(error)
        )
    return core.Outcome(
        key=task.key,
        state="passed" if task.passes(task.case, verdict) else "failed",
        answer=answer.text,
        answer_state=answer.state,
        finish=answer.finish,
        reply=answer.reply,
        verdict=verdict,
        model=task.answerer.spec,
        judge=task.judge.spec,
    )


class _Noted:
    """Notes every call in ``calls``, and answers from kept replies."""

    def __init__(self, kept: KeptReplies) -> None:
        self.calls: list[Call] = []
        self._kept = kept

    def asking_model(self, age: AnswerAge) -> core.Ask:
        """Return what the answerer asks by."""

        async def ask(model: core.Model, request: core.Request) -> core.Reply:
            return self._note(model, request, self._kept.answer(model, request, age))

        return ask

    def asking_judge(self, case: core.Case) -> core.Ask:
        """Return what a judge of this case asks by, or a metric."""

        async def ask(model: core.Model, request: core.Request) -> core.Reply:
            reply = self._kept.grade(model, request, case.language)
            return self._note(model, request, reply)

        return ask

    def _note(
        self, model: core.Model, request: core.Request, reply: core.Reply | None
    ) -> core.Reply:
        self.calls.append(
            Call(spec=model.spec, request=request, kept=reply is not None)
        )
        if reply is None:
            raise core.CallError(_NOT_KEPT, model.spec)
        return reply


def _identity_of(call: Call) -> str:
    """Return what is equal for calls of which the first one's reply serves all."""
    return request_key({"spec": call.spec}, call.request)


async def _measured(
    runner: MetricRunner, case: core.Case, answer: str, kept: KeptReplies
) -> list[Call]:
    """Return an extra metric's calls; unknown ones are assumed to be like the last known one."""
    noted = _Noted(kept)
    calls = noted.calls
    try:
        await runner.measure(case, answer, noted.asking_judge(case))
    except (core.CallError, core.JudgeError):
        await asyncio.sleep(0)  # concurrent questions of the metric are noted as well
        ahead = [call for call in calls if not call.kept]
        missing = runner.spec.calls - len(calls)
        if ahead and missing > 0:
            return [*calls, *[ahead[-1]] * missing]
    return calls


Prefixes = set[tuple[str, core.Message, str]]
"""Cached system messages, each with its model's SPEC and its tool's name."""


def make_forecast(
    calls: Iterable[Call],
    specs: Mapping[str, Spec],
    pricing: Mapping[str, Pricing | None],
    prefixes: Prefixes | None,
) -> Forecast:
    """Return the total of calls; ``specs`` and ``pricing`` are by SPEC.

    ``prefixes`` holds those of earlier calls and receives those of these calls: the first writes
    its prefix to the provider's cache, the others read it. None where no cache can be relied on,
    as in batches.
    """
    total = Forecast()
    for call in calls:
        if call.kept:
            total += Forecast(calls=1, kept=1)
        else:
            price = pricing.get(call.spec)
            total += _forecast_of(call, specs[call.spec], price, prefixes)
    return total


def _forecast_of(
    call: Call, spec: Spec, price: Pricing | None, prefixes: Prefixes | None
) -> Forecast:
    """Return the forecast of a call without a kept reply; its prefix joins ``prefixes``."""
    limit = budget.output_limit(spec, call.request)
    tokens_in = _estimated_tokens(call.request)
    tokens_out = REPLY_TOKENS if limit is None else min(REPLY_TOKENS, limit)
    if price is None:
        return Forecast(
            calls=1,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            cost=None,
            cached=None,
            most=None,
        )
    longest = budget.longest_reply(spec, call.request, batch=prefixes is None)
    cost = price.cost(tokens_in, tokens_out)
    cache = CacheUse() if prefixes is None else _cache_use(call, prefixes)
    return Forecast(
        calls=1,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost=cost,
        known=cost,
        cached=price.cost(
            tokens_in, tokens_out, read=cache.read, written=cache.written
        ),
        most=price.most(budget.most_input_tokens(call.request), longest),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheUse:
    """The input tokens of a call that go through the provider's cache."""

    read: int = 0
    written: int = 0


def _cache_use(call: Call, prefixes: Prefixes) -> CacheUse:
    """Return what a call reads from the cache, or writes to it; its prefix is noted then."""
    first_message, *others = call.request.messages
    prefix_tokens = _estimated_tokens(replace(call.request, messages=(first_message,)))
    if not others or prefix_tokens < CACHEABLE_TOKENS:
        return CacheUse()
    tool = call.request.tool
    prefix = (call.spec, first_message, "" if tool is None else tool.name)
    if prefix in prefixes:
        return CacheUse(read=prefix_tokens)
    prefixes.add(prefix)
    return CacheUse(written=prefix_tokens)


def _estimated_tokens(request: core.Request) -> int:
    return round(budget.text_bytes(request) / BYTES_PER_TOKEN)
