"""Which calls an item would take, before any is made: what is asked of whom, and how long it is.

The item's own answerer and judge are run, with an ``ask`` that looks replies up and notes the
requests that find none; so that a forecast cannot differ from the run it forecasts.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from evaluators.core import (
    Ask,
    CallError,
    Case,
    Judge,
    JudgeError,
    Message,
    Model,
    Outcome,
    Reply,
    Request,
)
from evaluators.extra_metrics import MetricRunner
from evaluators.judges.adjudicated import AdjudicatedJudge
from evaluators.judges.ensemble import CascadeJudge, CheckedJudge, PanelJudge
from evaluators.models.spec import Spec
from evaluators.runtime.budget import USUAL_OUTPUT, most_input_tokens, output_limit, text_bytes
from evaluators.runtime.engine import Task
from evaluators.runtime.prices import Pricing
from evaluators.text import request_key

BYTES_PER_TOKEN = 3.5
"""Of UTF-8. Current tokenizers: 4 to 5 for English and Cyrillic, 3 for Polish and Hungarian."""

CACHEABLE_TOKENS = 1024
"""The shortest beginning that OpenAI and, for most models, Anthropic keep in a cache."""

REPLY_TOKENS = 100
"""Taken as the usual length of a reply: a short answer, or a verdict with its reason."""

PLACEHOLDER_ANSWER = "A short answer of a sentence or two. " * 10  # about REPLY_TOKENS long
_NOT_KEPT = "not_kept"

Kept = Callable[[str], Reply | None]
"""The reply kept under a request's key, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call to come, or one whose reply is kept already and costs nothing."""

    spec: str
    request: Request
    kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What calls add up to; a reply that cannot be read, and so is asked again, is not foreseen.

    ``tokens_in``, ``tokens_out`` and ``cost`` (USD) are estimates for the ``calls`` that are not
    ``kept``; ``cached`` is what they cost where a provider reads the beginning that calls share
    from its cache, ``most`` if every reply is as long as it may be. These are None where a price is
    unknown.
    """

    calls: int = 0
    kept: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = 0.0
    cached: float | None = 0.0
    most: float | None = 0.0

    def __add__(self, other: "Forecast") -> "Forecast":
        return Forecast(
            calls=self.calls + other.calls,
            kept=self.kept + other.kept,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            cost=_sum(self.cost, other.cost),
            cached=_sum(self.cached, other.cached),
            most=_sum(self.most, other.most),
        )


async def calls_ahead(task: Task, kept: Kept) -> list[Call]:
    """Return the calls of one item. While its answer is not known, judges are foreseen at most."""
    calls, ask = _noting(kept)
    try:
        answer = await task.answerer.answer(task.case, task.repeat, ask)
    except CallError as error:
        if error.kind != _NOT_KEPT:
            return calls
        answer = PLACEHOLDER_ANSWER
        for judge in single_judges(task.judge):
            await _judged(judge, task, answer, ask)
    else:
        await _judged(task.judge, task, answer, ask)
    for runner in task.metric_runners:
        calls += await _measured(runner, task.case, answer, kept)
    return calls


async def known_outcome(task: Task, kept: Kept) -> Outcome:
    """Return how an item ends as far as its recorded answer and kept replies tell; else missing."""
    _, ask = _noting(kept)
    try:
        answer = await task.answerer.answer(task.case, task.repeat, ask)
        verdict = await task.judge.judge(task.case, answer, ask)
    except (CallError, JudgeError) as error:
        return Outcome(key=task.key, state="missing", kind=error.kind, message=str(error))
    return Outcome(
        key=task.key,
        state="passed" if task.passes(task.case, verdict) else "failed",
        answer=answer,
        verdict=verdict,
        model=task.answerer.spec,
        judge=task.judge.spec,
    )


def _noting(kept: Kept) -> tuple[list[Call], Ask]:
    """Return a list and an ``ask`` that notes every call there, and answers what is kept."""
    calls: list[Call] = []

    async def ask(model: Model, request: Request) -> Reply:
        reply = kept(request_key(model.identity, request))
        calls.append(Call(spec=model.spec, request=request, kept=reply is not None))
        if reply is None:
            raise CallError(_NOT_KEPT, model.spec)
        return reply

    return calls, ask


async def _measured(runner: MetricRunner, case: Case, answer: str, kept: Kept) -> list[Call]:
    """Return the calls of an extra measure: where not all are kept as many as it usually takes.

    What it asks next hangs on the replies, so those that cannot be foreseen are taken to be like
    the last one that can.
    """
    calls, ask = _noting(kept)
    try:
        await runner.measure(case, answer, ask)
    except (CallError, JudgeError):
        await asyncio.sleep(0)  # what it asks side by side is noted as well
        ahead = [call for call in calls if not call.kept]
        return [*calls, *ahead[-1:] * (runner.spec.calls - len(calls))]
    return calls


async def _judged(judge: Judge, task: Task, answer: str, ask: Ask) -> None:
    try:
        await judge.judge(task.case, answer, ask)
    except (CallError, JudgeError):
        return


def single_judges(judge: Judge) -> Iterator[Judge]:
    """Yield the judges that may be asked, one by one: a panel's members, a cascade's model."""
    if isinstance(judge, PanelJudge):
        for member in judge.judges:
            yield from single_judges(member)
    elif isinstance(judge, CheckedJudge):
        if judge.behind:
            yield from single_judges(judge.behind)
    elif isinstance(judge, AdjudicatedJudge):
        yield from single_judges(judge.behind)
    elif isinstance(judge, CascadeJudge):
        yield from single_judges(judge.model)
    else:
        yield judge


Prefixes = set[tuple[str, Message, str]]
"""By SPEC, the system messages that a provider's cache has by then, each with its tool."""


def make_forecast(
    calls: Iterable[Call],
    specs: Mapping[str, Spec],
    pricing: Mapping[str, Pricing | None],
    prefixes: Prefixes | None,
) -> Forecast:
    """Return what calls add up to; ``specs`` and ``pricing`` by SPEC.

    ``prefixes`` are those of earlier calls, and takes in those of these; None where no cache is to
    be counted on, as in batches.
    """
    total = Forecast()
    for call in calls:
        total += _forecast(call, specs[call.spec], pricing.get(call.spec), prefixes)
    return total


def _forecast(call: Call, spec: Spec, price: Pricing | None, prefixes: Prefixes | None) -> Forecast:
    if call.kept:
        return Forecast(calls=1, kept=1)
    limit = output_limit(spec, call.request)
    tokens_in = round(text_bytes(call.request) / BYTES_PER_TOKEN)
    tokens_out = REPLY_TOKENS if limit is None else min(REPLY_TOKENS, limit)
    longest = USUAL_OUTPUT if limit is None else limit
    return Forecast(
        calls=1,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost=None if price is None else price.cost(tokens_in, tokens_out),
        cached=None if price is None else _cached(call, price, (tokens_in, tokens_out), prefixes),
        most=None if price is None else price.most(most_input_tokens(call.request), longest),
    )


def _cached(
    call: Call, price: Pricing, tokens: tuple[int, int], prefixes: Prefixes | None
) -> float:
    """Return what a call costs where a provider's cache may have its beginning, or takes it in."""
    first, *rest = call.request.messages
    shared = replace(call.request, messages=(first,))
    held = round(text_bytes(shared) / BYTES_PER_TOKEN)
    if prefixes is None or not rest or held < CACHEABLE_TOKENS:
        return price.cost(*tokens)
    prefix = (call.spec, first, call.request.tool.name if call.request.tool else "")
    if prefix in prefixes:
        return price.cost(*tokens, read=held)
    prefixes.add(prefix)
    return price.cost(*tokens, written=held)


def _sum(one: float | None, two: float | None) -> float | None:
    return None if one is None or two is None else one + two
