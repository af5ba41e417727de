"""The calls that items would take, and their tokens and cost, before any is made.

A forecast runs the item's own answerer and judge with an ``ask`` that looks up kept replies and
notes the requests without one. So it cannot differ from the run.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from qagate.evaluators import core
from qagate.evaluators.judges.members import single_judges
from qagate.evaluators.kept_requests import judge_identity, request_key
from qagate.evaluators.models.pricing import Pricing
from qagate.evaluators.models.spec import Spec
from qagate.evaluators.runtime import budget
from qagate.evaluators.runtime.task import MetricRunner, Task

BYTES_PER_TOKEN = 3.5
"""UTF-8 bytes. Current tokenizers: 4 to 5 for English and Cyrillic, 3 for Polish and Hungarian."""

CACHEABLE_TOKENS = 1024
"""The shortest prefix that OpenAI and, for most models, Anthropic cache."""

REPLY_TOKENS = 100
"""The assumed length of a reply: a short answer, or a verdict with its reason."""

PLACEHOLDER_ANSWER = "A short answer of a sentence or two. " * 10
"""Stands for an answer that is not known yet; about ``REPLY_TOKENS`` long."""

_NOT_KEPT = "not_kept"

Kept = Callable[[str], core.Reply | None]
"""The reply kept under a request's key, or None."""


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


async def calls_ahead(task: Task, kept: Kept) -> list[Call]:
    """Return the calls of one item; as long as its answer is unknown, every judge may be asked."""
    calls: list[Call] = []
    ask = _noting(calls, kept)
    ask_judge = _noting(calls, kept, judge_identity)
    judges = [task.judge]
    try:
        answer = await task.answerer.answer(task.case, task.repeat, ask)
    except core.CallError as error:
        if error.kind != _NOT_KEPT:
            return calls
        answer = PLACEHOLDER_ANSWER
        judges = list(single_judges(task.judge))
    for judge in judges:
        with suppress(core.CallError, core.JudgeError):
            await judge.judge(task.case, answer, ask_judge)
    for runner in task.metric_runners:
        calls += await _measured(runner, task.case, answer, kept)
    return calls


async def known_outcome(task: Task, kept: Kept) -> core.Outcome:
    """Return the outcome that the recorded answer and kept replies give; without them missing."""
    ask = _noting([], kept)
    ask_judge = _noting([], kept, judge_identity)
    try:
        answer = await task.answerer.answer(task.case, task.repeat, ask)
        verdict = await task.judge.judge(task.case, answer, ask_judge)
    except (core.CallError, core.JudgeError) as error:
        return core.Outcome(
            key=task.key, state="missing", kind=error.kind, message=str(error)
        )
    return core.Outcome(
        key=task.key,
        state="passed" if task.passes(task.case, verdict) else "failed",
        answer=answer,
        verdict=verdict,
        model=task.answerer.spec,
        judge=task.judge.spec,
    )


Identity = Mapping[str, object]


def _noting(
    calls: list[Call], kept: Kept, identify: Callable[[Identity], Identity] = dict
) -> core.Ask:
    """Return an ``ask`` that adds every call to ``calls``, and answers from kept replies.

    ``identify`` makes of a model's identity the one that the ledger's key has.
    """

    async def ask(model: core.Model, request: core.Request) -> core.Reply:
        reply = kept(request_key(identify(model.identity), request))
        calls.append(Call(spec=model.spec, request=request, kept=reply is not None))
        if reply is None:
            raise core.CallError(_NOT_KEPT, model.spec)
        return reply

    return ask


async def _measured(
    runner: MetricRunner, case: core.Case, answer: str, kept: Kept
) -> list[Call]:
    """Return an extra metric's calls; unknown ones are assumed to be like the last known one."""
    calls: list[Call] = []
    ask = _noting(calls, kept, judge_identity)
    try:
        await runner.measure(case, answer, ask)
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
