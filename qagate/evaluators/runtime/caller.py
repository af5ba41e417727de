"""How one request becomes a reply: the ledger first, then the network within all limits.

Every call of a run goes this way. ``Caller`` looks into the ledger and sends what is not
there, once even if several items ask it at a time. ``Sender`` tries a call until it
succeeds or is given up: each try sets money aside, waits until Admission lets it in, and
settles. A reply is in the ledger before anybody uses it, so nothing is paid for twice. A
``Meter`` adds up what the replies for one item took, and where they come from.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    nullcontext,
    suppress,
)
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from qagate.evaluators import core
from qagate.evaluators.core import (
    CallError,
    FatalError,
    Model,
    RefusedError,
    Reply,
    ReplyOrigin,
    Request,
    StoppedError,
    TransientError,
)
from qagate.evaluators.kept_requests import (
    Document,
    documents_of,
    fresh_key,
    judge_identity,
    request_key,
)
from qagate.evaluators.ledger import KeptReply, Ledger, LedgerError, PaidReply
from qagate.evaluators.ledger.kept import ANY, Kept, only_of
from qagate.evaluators.ledger.place import LedgerPlace
from qagate.evaluators.ledger.rows import RowId
from qagate.evaluators.ledger.runs import RunProcess
from qagate.evaluators.negotiation import (
    Negotiated,
    formed,
    other_forms,
    stands,
)
from qagate.evaluators.run_identity import NO_RUN, RunIdentity
from qagate.evaluators.runtime.budget import Budget
from qagate.evaluators.runtime.limits import Admission, ModelQueue
from qagate.evaluators.runtime.negotiations import Negotiations
from qagate.evaluators.runtime.server import (
    LONGEST_WAIT_SECONDS,
    NEVER,
    OWN_LACK,
    RATE_LIMIT,
    TIMEOUT,
)

T = TypeVar("T")

DEADLINE = "deadline"
"""The kind of a StoppedError for a run whose time is used up."""

BATCH = "batch"
"""The kind of a StoppedError for an item whose calls are still with a provider, and of the
ledger's documents about them."""

DEADLINE_GRACE_SECONDS = 1.5
"""So long may a call in flight go on after the run's time is used up."""

PROBES_PER_CALL = 4
"""A refused call goes first again, to see whether the server is back. After this many
refusals another call has its turn: the fault may lie in the call, not in the server."""

MAY_BE_BILLED = frozenset({"bad_body", "timeout"})
"""Kinds of failures for which the provider may want money all the same."""

TRIES_BY_KIND = {
    "bad_body": 3,
    "error_body": 3,
    TIMEOUT: 2,
    RATE_LIMIT: 20,
    OWN_LACK: 1000,
}
"""How often a request is sent that fails in these ways. A rate limit has many tries, as the
server and not the call decides when it may succeed; a machine that lacks sockets more, as
other calls give theirs back. A reply without an end is not waited for
five times."""

SHORT_CALL = "short call"
"""What a call is named that only shows whether a server answers; also its slice."""
SHORT_CALL_TOKENS = 16
"""The longest reply to it; some APIs allow no shorter one."""

LOOK_SECONDS = 5.0
"""Between looks at whether another run has begun batches on this ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a failing call is tried, with which pauses; a failing server has its own."""

    attempts: int = 5
    """Tries of one call, the first one included; TRIES_BY_KIND wins."""
    first: float = 0.5
    """The longest pause after the first try in seconds; it doubles with each try."""
    longest: float = 20.0
    """The longest pause in seconds."""

    def pause(self, tried: int, failure: TransientError, draw: float) -> float:
        """Return the seconds to wait after so many tries; ``draw`` (0 to 1) spreads them."""
        doublings = min(tried - 1, 60)  # more would not fit into a float
        longest = min(self.longest, self.first * 2.0**doublings)
        return max(longest * draw, failure.retry_after or 0.0)

    def is_last(self, failure: TransientError, failures: Counter[str]) -> bool:
        """Return whether a call is given up after these failures, counted by kind."""
        if (failure.retry_after or 0.0) > LONGEST_WAIT_SECONDS:
            return True
        if failure.kind in TRIES_BY_KIND:
            return failures[failure.kind] >= TRIES_BY_KIND[failure.kind]
        return failures.total() >= self.attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettings:
    """How models are asked: the ledger that keeps every call, and what is allowed at most."""

    ledger: LedgerPlace = Path(".qa/ledger.sqlite3")
    concurrency: int = 16
    """Calls in flight."""
    rpm: int | None = None
    """Requests a minute of all models together; None means no limit, as below."""
    deadline: float | None = None
    """Seconds that all calls may take."""
    max_cost: float | None = None
    """USD that all calls may cost."""
    spending: str = ""
    """Processes with this name that share the ledger spend ``max_cost`` together."""
    process: RunProcess | None = None
    """What is known of the run before its ledger is open; None for a command that is none."""
    beside: tuple[Path, ...] = ()
    """Files with a judge's replies of earlier reports, which are read and not written."""
    replay: bool = False
    """Send nothing: answer from the ledger."""
    fresh: str = ""
    """Names a release: everything is asked again under this name, and found again by it."""
    transcripts: bool = True
    """Keep what is sent together with the replies."""
    negotiated: Mapping[str, Negotiated] = field(default_factory=dict)
    """How models are written to at first, by SPEC: as a baseline's were. What the ledger knows
    of a model wins."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    random: Callable[[], float] = random.random
    """Draws numbers from 0 to 1 that spread pauses."""


@dataclass(slots=True)
class ItemClock:
    """The time of one item: it begins with its first call and ends at ``until``."""

    until: float = NEVER
    slice_name: str = ""
    """The slice of the item; empty for a call that is of none."""


@dataclass(slots=True, kw_only=True)
class _Call:
    """One request on its way, through all of its tries."""

    queue: ModelQueue
    model: Model
    request: Request
    item: ItemClock
    started: float = 0.0
    """When its latest try began."""
    failed_at: float | None = None
    """When it failed for the first time."""
    refusals: int = 0
    """Tries for which the server was to blame."""
    failures: Counter[str] = field(default_factory=Counter)
    """The other tries that failed, by kind."""
    server_is_to_blame: bool = False
    """Whether it was for the latest try."""

    @property
    def tries(self) -> int:
        """How many tries have failed."""
        return self.refusals + self.failures.total()

    @property
    def is_urgent(self) -> bool:
        """Whether it goes before new items: its item has begun, and it has not failed.

        A call that has just failed waits with the new ones: a server that answers others
        must not be tried with that call alone.
        """
        return self.item.until != NEVER and self.failed_at is None

    @property
    def is_probe(self) -> bool:
        """Whether it goes first in its queue, to see whether the server is back."""
        return 0 < self.refusals <= PROBES_PER_CALL


class Sender:
    """Sends requests within all limits, the budget and the time of the run.

    Attributes::

    :requests: How many were sent.

    :retried: After which failures a call was tried again, by kind.

    :stops: Why calls are no longer made, a line by kind.

    :end: When the run's time is used up, by the loop's clock.

    :note_timeout: Told of each time-out, by its slice, before the call is tried again.
    """

    def __init__(self, settings: CallSettings, budget: Budget | None = None) -> None:
        self.note_timeout: Callable[[str], None] = lambda slice_name: None
        self.requests = 0
        self.retried: Counter[str] = Counter()
        self.stops: dict[str, str] = {}
        self.end = NEVER
        self.budget = budget
        self.admission = Admission(settings.concurrency, settings.rpm, settings.random)
        self._settings = settings

    def begin(self) -> None:
        """Start the run's clock unless it is running."""
        if self._settings.deadline is not None and self.end == NEVER:
            self.end = asyncio.get_running_loop().time() + self._settings.deadline

    def halt(self, error: StoppedError) -> None:
        """Start no further call; calls in flight go on."""
        self.admission.halt(error)

    async def before_the_end(
        self, awaited: Awaitable[T], grace_seconds: float = 0.0
    ) -> T:
        """Return what is awaited; StoppedError once the run's time and the grace are over."""
        if self.end == NEVER:
            return await awaited
        try:
            async with asyncio.timeout_at(self.end + grace_seconds) as limit:
                return await awaited
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._stop_for_lack_of_time() from None

    async def reserve(
        self, model: Model, request: Request, *, urgent: bool, batch: bool = False
    ) -> float:
        """Set aside the most that a call can cost and return it, in USD; 0 without a budget."""
        if self.budget is None:
            return 0.0
        try:
            return await self.budget.reserve(model, request, urgent=urgent, batch=batch)
        except StoppedError as error:
            self.stops[error.kind] = str(error)
            raise

    def settle(self, reserved: float, spec: str, reply: Reply | None) -> None:
        """Book what a reply cost in place of what was set aside for it."""
        if self.budget is not None:
            self.budget.settle(reserved, spec, reply)

    async def send(
        self,
        model: Model,
        request: Request,
        item: ItemClock,
        check_server: Callable[[], Awaitable[None]] | None = None,
    ) -> Reply:
        """Return the reply, after several tries if need be; StoppedError if it was never sent.

        ``check_server`` makes a short call, to see after a time-out whether anything is
        answered.
        """
        call = self._new_call(model, request, item)
        while True:
            try:
                return await self._try(call)
            except TransientError as error:
                failure = error
            if call.server_is_to_blame:
                call.refusals += 1
            else:
                call.failures[failure.kind] += 1
            if self._settings.retry.is_last(failure, call.failures):
                if call.tries > 1:
                    failure.args = (f"{failure} (tried {call.tries} times)",)
                raise failure
            now = asyncio.get_running_loop().time()
            if call.failed_at is None:
                call.failed_at = now
            self.retried[failure.kind] += 1
            if failure.kind == TIMEOUT:
                self.note_timeout(item.slice_name)
                server = call.queue.server
                if check_server is not None and server.begin_check(call.started):
                    await check_server()
                    now = asyncio.get_running_loop().time()
            time_left = min(item.until, self.end) - now
            pause = min(self._pause_after(failure, call), time_left)
            await asyncio.sleep(max(0.0, pause))

    async def send_once(self, model: Model, request: Request, item: ItemClock) -> Reply:
        """Return the reply to a single try. Raises CallError if there is none."""
        return await self._try(self._new_call(model, request, item))

    def _new_call(self, model: Model, request: Request, item: ItemClock) -> _Call:
        return _Call(
            queue=self.admission.open_queue(model),
            model=model,
            request=request,
            item=item,
        )

    def _pause_after(self, failure: TransientError, call: _Call) -> float:
        """Return the seconds before a call is tried again.

        Zero where Admission holds back every call to the server.
        """
        is_held_back = call.server_is_to_blame and failure.kind != TIMEOUT
        if is_held_back or failure.kind == RATE_LIMIT:
            return 0.0
        draw = self._settings.random()
        return self._settings.retry.pause(call.tries, failure, draw)

    async def _try(self, call: _Call) -> Reply:
        """Send a request once: set money aside, wait, send, and settle in any case."""
        # Read before the first wait: meanwhile another call may start the item's clock.
        urgent = call.is_urgent
        reserved = await self.reserve(call.model, call.request, urgent=urgent)
        billed: Reply | None = None
        try:
            billed = await self._send_in_turn(call, urgent=urgent)
            return billed
        except TimeoutError:
            raise self._out_of_time(call.queue) from None
        except TransientError as error:
            if error.kind in MAY_BE_BILLED:
                billed = Reply()  # it names no tokens: booked at all that was set aside
            raise
        finally:
            self.settle(reserved, call.queue.spec, billed)

    async def _send_in_turn(self, call: _Call, *, urgent: bool) -> Reply:
        """Wait until a call may go, and send it. Raises TimeoutError once its time is used up."""
        queue = call.queue
        item = call.item
        until = min(item.until, self.end)
        if until <= asyncio.get_running_loop().time():
            raise TimeoutError
        tokens = queue.tokens.estimate(call.request)
        try:
            started = await self.admission.enter(
                queue, tokens, until, urgent=urgent, as_probe=call.is_probe
            )
        except FatalError as error:
            self.stops.setdefault(error.kind, str(error))
            if call.failed_at is not None:
                raise
            raise StoppedError(error.kind, str(error)) from None
        item.until = min(item.until, started + queue.limits.item_deadline)
        reply = await self._complete(call, started)
        queue.tokens.correct(tokens, call.request, reply)
        return reply

    async def _complete(self, call: _Call, started: float) -> Reply:
        """Make a call that was let in, and count it as ended, however it ends."""
        self.requests += 1
        call.started = started
        failure: BaseException | None = None
        try:
            async with self._deadline(call, started):
                return await call.model.complete(call.request)
        except (RefusedError, FatalError) as error:
            failure = call.queue.note_refusal(error)
            raise failure from None
        except BaseException as error:
            failure = error
            raise
        finally:
            if isinstance(failure, FatalError):
                # Only the user can mend it, and no answer could be judged meanwhile.
                self.stops.setdefault(failure.kind, str(failure))
                self.halt(StoppedError(failure.kind, str(failure)))
            call.server_is_to_blame = self.admission.leave(
                call.queue, started, failure, call.failed_at, call.item.slice_name
            )

    def _deadline(
        self, call: _Call, started: float
    ) -> AbstractAsyncContextManager[object]:
        """Return what ends a call in time, unless the model's own deadline comes first."""
        end = min(call.item.until, self.end + DEADLINE_GRACE_SECONDS)
        if started + call.queue.limits.deadline <= end:
            return nullcontext()
        return asyncio.timeout_at(end)

    def _out_of_time(self, queue: ModelQueue) -> CallError:
        """Return the error of a call whose item, or whose run, has no time left."""
        now = asyncio.get_running_loop().time()
        if now >= self.end:
            return self._stop_for_lack_of_time()
        message = f"{queue.spec}: the {queue.limits.item_deadline:g} s of this item are used up"
        reason = self.admission.describe(now)
        if reason:
            message += f" ({reason})"
        return CallError("item_deadline", message)

    def _stop_for_lack_of_time(self) -> StoppedError:
        """Note that the run's time is used up; return the error for calls that are not made."""
        message = f"the run's {self._settings.deadline:g} s are used up (--deadline)"
        reason = self.admission.describe(asyncio.get_running_loop().time())
        if reason:
            message += f"; {reason}"
        self.stops.setdefault(DEADLINE, message)
        return StoppedError(DEADLINE, message)


@dataclass(slots=True)
class Meter:
    """Adds up what the replies for one item took. Each item has its own."""

    price: core.Price
    usage: core.Usage = field(default_factory=core.Usage)
    models: dict[str, str] = field(default_factory=dict)
    """The names that providers returned, by the SPEC of the model that was asked."""
    answering: core.Usage = field(default_factory=core.Usage)
    """What the answer alone took."""
    asked: ReplyOrigin = field(default_factory=ReplyOrigin)
    """Where the oldest reply comes from that made the answer."""
    graded: ReplyOrigin = field(default_factory=ReplyOrigin)
    """Where the oldest reply comes from that judged it."""
    clock: ItemClock = field(default_factory=ItemClock)
    waiting: int = 0
    """Replies that the item waits for now."""
    kept_only: bool = False
    """Whether nothing is sent: only replies in the ledger count."""
    missed: bool = False
    """Whether one was not there."""
    is_answered: bool = False
    """Whether what is asked now judges the answer."""
    _asked: dict[str, tuple[object, ...]] = field(default_factory=dict)
    """The ledger keys of all requests, each with its place in their order."""

    @property
    def calls(self) -> tuple[str, ...]:
        """The ledger keys of all requests, those without a reply too.

        Their order is the same in every run, whichever reply came first.
        """
        return tuple(sorted(self._asked, key=self._asked.__getitem__))

    def end_answer(self) -> None:
        """Note that the answer is there; what is asked from now on judges it."""
        self.is_answered = True
        self.answering = self.usage

    def note(self, key: str, model: Model, request: Request) -> None:
        """Note what was asked."""
        order = (
            self.is_answered,
            model.spec,
            request.version,
            request.repeat,
            request.attempt,
            key,
        )
        self._asked.setdefault(key, order)

    def add(
        self,
        model: Model,
        kept: KeptReply,
        *,
        sent: int,
        is_answer: bool,
        earlier: bool,
    ) -> None:
        """Count one reply, for which this run ``sent`` requests; an ``earlier`` run may have paid.

        ``is_answer`` tells one that makes the answer from one that judges it.
        """
        if is_answer:
            self.asked = _older(self.asked, kept)
        else:
            self.graded = _older(self.graded, kept)
        reply = kept.reply
        cost = self.price(model.spec, reply)
        known_cost = 0.0 if cost is None else cost
        self.usage += core.Usage(
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
            seconds=reply.seconds,
            cost=cost,
            known=known_cost,
            requests=sent,
            spent=known_cost if sent else 0.0,
            earlier=int(earlier),
            imported=int(earlier and kept.is_imported),
            cache_read_tokens=reply.cache_read_tokens,
        )
        self.models[model.spec] = reply.model or model.spec

    def add_cost(self, model: Model, reply: Reply) -> None:
        """Count what a short call cost, as part of what the item took."""
        cost = self.price(model.spec, reply)
        known_cost = 0.0 if cost is None else cost
        self.usage += core.Usage(
            cost=cost, known=known_cost, requests=1, spent=known_cost
        )


def _older(origin: ReplyOrigin, kept: KeptReply) -> ReplyOrigin:
    """Return where the older of two replies comes from."""
    if origin.at is not None and origin.at <= kept.at:
        return origin
    return ReplyOrigin(at=kept.at, run=kept.run)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCall:
    """What is put to a model: the key of its reply, and which kept replies may stand in for it."""

    model: Model
    request: Request
    key: str
    identity: Mapping[str, object]
    """What tells the model from every other, as the key has it."""
    kept: Kept


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptInForm:
    """A kept reply, with the call in whose form it came."""

    call: KeptCall
    reply: KeptReply
    stands: bool
    """Whether it may be used; otherwise the call was made again in another form."""


class CallRoute:
    """A way to replies other than direct calls: a provider's batches. This one is none."""

    takes_all = False
    """Whether all items should be at work at once."""

    def item(self, meter: Meter) -> AbstractContextManager[None]:
        """Count an item as at work while the block runs."""
        return nullcontext()

    async def reply(
        self, call: KeptCall, row: partial[PaidReply], *, urgent: bool
    ) -> KeptReply | None:
        """Return a reply that is in the ledger; None if the call is to be made directly."""
        return None

    def halt(self, error: StoppedError) -> None:
        """Begin nothing more."""

    def describe(self) -> str:
        """Return in a few words what calls wait for; empty if for nothing."""
        return ""

    async def close(self) -> None:
        """Return once all that came back is kept."""


class Caller:
    """Puts requests to models, in one event loop; what two items ask at a time is sent once.

    Attributes::

    :run: The run that asks.

    :negotiations: How each model is written to, as its server wants it.

    :route: The way that calls are tried first: batches, or none.

    :_find_route: Finds the route; None where nothing is sent. Another run may begin batches on
       this ledger at any time, so it is looked for again and again, until there is one.

    :_look_at: When to look for a route next, by the loop's clock.

    :_under_way: The calls that are being made, by ledger key.

    :_short_calls: How many calls were made only to see whether a server answers.
    """

    def __init__(
        self,
        ledger: Ledger,
        settings: CallSettings,
        price: core.Price,
        budget: Budget | None = None,
        find_route: "Callable[[Caller], CallRoute | None] | None" = None,
        *,
        run: RunIdentity = NO_RUN,
    ) -> None:
        self.ledger = ledger
        self.run = run
        self.sender = Sender(settings, budget)
        self.price = price
        self.negotiations = Negotiations(
            ledger, settings.negotiated, keeps=not settings.replay
        )
        self.route = CallRoute()
        self._settings = settings
        self._find_route = None if settings.replay else find_route
        self._look_at = -NEVER
        self._under_way: dict[str, asyncio.Task[tuple[KeptReply, int]]] = {}
        self._short_calls = 0

    @property
    def is_replay(self) -> bool:
        """Whether nothing is sent."""
        return self._settings.replay

    def open(self) -> None:
        """Look for a route before the first call, and for damage to the ledger from now on."""
        self.ledger.begin_search()
        if self._find_route is not None:
            with suppress(LedgerError):  # the first call looks again, and reports it
                self._take_route(self._find_route(self))

    def halt(self, error: StoppedError) -> None:
        """Start no further call; calls in flight go on."""
        self.sender.halt(error)
        self.route.halt(error)

    def describe(self, now: float) -> str:
        """Return in a few words what calls wait for; empty if nothing is held back."""
        reasons = [self.route.describe(), self.sender.admission.describe(now)]
        return "; ".join(reason for reason in reasons if reason)

    async def close(self) -> None:
        """Return once all that was paid for is kept; the ledger stays open."""
        await self.route.close()
        await self.ledger.flush()

    def metered(
        self, meter: Meter, *, answers: Kept = ANY, judging: Kept = ANY
    ) -> core.Ask:
        """Return an ``ask`` that adds every reply to this meter.

        ``answers`` says which kept replies may stand in for a new one until the answer is
        there, ``judging`` which ones may from then on.
        """
        return partial(self._reply, meter, answers, judging)

    async def _reply(
        self, meter: Meter, answers: Kept, judging: Kept, model: Model, request: Request
    ) -> Reply:
        """Return the reply to a request, and count it for the item that asked.

        A reply that was paid for before its model got another form counts: some models call a
        function for one item and not for the next. One that cannot be used is counted as when
        it came, and asked for anew.

        Raises CallError if there is none, and LedgerError if it cannot be kept.
        """
        is_answer = not meter.is_answered
        kept = answers if is_answer else judging
        others = await self._kept_in_other_forms(
            model, request, kept, is_answer=is_answer
        )
        for other in others:
            if not other.stands:
                self._count(meter, other.call, other.reply, sent=0)
        if others:
            call = self._call(model, request, kept, is_answer=is_answer)
            found = await self._newest(others, call)
            if found is not None and found.call is not call:
                self._count(meter, found.call, found.reply, sent=0)
                return found.reply.reply
        refused: list[Negotiated] = []
        """How the model was written to when its server refused this very call."""
        while True:
            negotiated = self.negotiations.of(model)
            call = self._call(model, request, kept, is_answer=is_answer)
            meter.waiting += 1
            try:
                reply, sent = await self._find_or_ask(meter, call)
            except StoppedError:  # it was not asked
                raise
            except CallError as error:
                if self.negotiations.learn_from_refusal(
                    model, call.request, negotiated, error, refused
                ):
                    refused.append(negotiated)
                    continue
                if refused:
                    self.negotiations.unlearn(model, negotiated)
                meter.note(call.key, model, call.request)
                raise
            finally:
                meter.waiting -= 1
            self._count(meter, call, reply, sent=sent)
            if refused and sent > 0:
                await self.negotiations.keep_lesson(model, negotiated)
            if await self.negotiations.learn_from_reply(
                model, call.request, negotiated, reply.reply
            ):
                continue
            return reply.reply

    def _count(
        self, meter: Meter, call: KeptCall, reply: KeptReply, *, sent: int
    ) -> None:
        """Count a reply, for which ``sent`` requests were made, for the item that asked."""
        meter.note(call.key, call.model, call.request)
        earlier = RowId(call.key, reply.run) not in self.ledger.own
        is_answer = not meter.is_answered
        meter.add(call.model, reply, sent=sent, is_answer=is_answer, earlier=earlier)

    async def find_kept(
        self, meter: Meter, model: Model, request: Request
    ) -> KeptInForm | None:
        """Return the newest reply that is kept of a request, whoever asked for it, or None."""
        is_answer = not meter.is_answered
        others = await self._kept_in_other_forms(
            model, request, ANY, is_answer=is_answer
        )
        call = self._call(model, request, ANY, is_answer=is_answer)
        return await self._newest(others, call)

    async def _kept_in_other_forms(
        self, model: Model, request: Request, kept: Kept, *, is_answer: bool
    ) -> list[KeptInForm]:
        """Return what is kept of a request in other forms than the present one."""
        found = []
        for form in other_forms(request, self.negotiations.of(model)):
            call = self._call(model, request, kept, is_answer=is_answer, form=form)
            reply = await self._find(call)
            if reply is not None:
                is_usable = stands(form, call.request, reply.reply)
                found.append(KeptInForm(call=call, reply=reply, stands=is_usable))
        return found

    async def _newest(
        self, others: Sequence[KeptInForm], call: KeptCall
    ) -> KeptInForm | None:
        """Return the newest usable reply, of a call in its present form and in the others."""
        usable = [other for other in others if other.stands]
        reply = await self._find(call)
        if reply is not None:
            negotiated = self.negotiations.of(call.model)
            if stands(negotiated, call.request, reply.reply):
                usable.append(KeptInForm(call=call, reply=reply, stands=True))
        return max(usable, key=self._order_of, default=None)

    def _order_of(self, found: KeptInForm) -> tuple[bool, float]:
        """Return the order of kept replies: by age, but in a replay the run's own come last."""
        is_own = self.is_replay and found.reply.run == self.run.id
        return is_own, found.reply.at

    async def _find(self, call: KeptCall) -> KeptReply | None:
        """Return the newest reply that counts, or None; in a replay one of the run itself first.

        Another run may have asked the same since: its replies are not what the run decided on.
        """
        if self.is_replay and self.run.id:
            kept = await self.ledger.find(call.key, only_of(self.run.id))
            if kept is not None and call.kept.counts(kept.run, kept.at):
                return kept
        return await self.ledger.find(call.key, call.kept)

    def use_kept(self, meter: Meter, kept: KeptInForm) -> Reply:
        """Return a reply that ``find_kept`` has found, and count it for the item that asked."""
        self._count(meter, kept.call, kept.reply, sent=0)
        return kept.reply.reply

    def _call(
        self,
        model: Model,
        request: Request,
        kept: Kept,
        *,
        is_answer: bool,
        form: Negotiated | None = None,
    ) -> KeptCall:
        """Return a call in the form that its model takes, unless another is given."""
        identity = model.identity if is_answer else judge_identity(model.identity)
        request = formed(request, form or self.negotiations.of(model))
        return KeptCall(
            model=model,
            request=request,
            key=fresh_key(request_key(identity, request), self._settings.fresh),
            identity=identity,
            kept=kept,
        )

    async def _find_or_ask(self, meter: Meter, call: KeptCall) -> tuple[KeptReply, int]:
        """Return the reply, out of the ledger if it is there, and how many requests were sent."""
        while True:
            kept = await self._find(call)
            if kept is not None:
                return kept, 0
            if self._settings.replay or meter.kept_only:
                meter.missed = True
                message = (
                    f"{call.model.spec}: this request is not in the ledger (--replay)"
                )
                raise CallError("not_in_ledger", message)
            # No await from here to the entry in ``_under_way``: two items would send it twice.
            others_task = self._under_way.get(call.key)
            if others_task is None:
                task = asyncio.create_task(self._ask(meter, call))
                self._under_way[call.key] = task
                task.add_done_callback(lambda _: self._under_way.pop(call.key, None))
                return await task
            # Shielded: this item may be cancelled, and the other one not.
            reply, _ = await asyncio.shield(others_task)
            if call.kept.counts(reply.run, reply.at):
                return reply, 0

    async def _ask(self, meter: Meter, call: KeptCall) -> tuple[KeptReply, int]:
        """Ask by the route, or else directly; return the reply with the number of requests sent."""
        documents: tuple[Document, ...] = ()
        if self._settings.transcripts:
            documents = documents_of(
                call.model.spec,
                call.identity,
                call.request,
                call.key,
                self._settings.fresh,
            )
        row = partial(
            PaidReply,
            key=call.key,
            spec=call.model.spec,
            run=self.run.id,
            documents=documents,
        )
        try:
            await self._look_for_route()
            # An item that has a reply goes on before others begin.
            urgent = bool(meter.models)
            reply = await self.route.reply(call, row, urgent=urgent)
            if reply is not None:
                return reply, 1
            return await self._ask_directly(meter, call, row)
        except StoppedError:
            raise
        except CallError:
            for document in documents:  # a request without a reply is shown as well
                await self.ledger.keep(*document)
            raise

    async def _ask_directly(
        self, meter: Meter, call: KeptCall, row: partial[PaidReply]
    ) -> tuple[KeptReply, int]:
        """Send a request unless another run does; keep the reply before it is returned."""
        async with AsyncExitStack() as stack:
            claim = self.ledger.claim(
                call.key, call.kept, seconds=call.model.limits.item_deadline
            )
            claiming = stack.enter_async_context(claim)
            kept = await self.sender.before_the_end(claiming)
            if kept is not None:  # another run asked it meanwhile
                return kept, 0
            check_server = None
            if meter.clock.slice_name and not call.model.limits.takes_case:
                check_server = partial(self._check_server, meter, call.model)
            reply = await self.sender.send(
                call.model, call.request, meter.clock, check_server
            )
            return await self.ledger.put(row(reply=reply)), 1

    async def _check_server(self, meter: Meter, model: Model) -> None:
        """Make a short call, so that its server shows whether it answers; keep the reply.

        What comes of it is seen where all calls end, see ``ServerState``.
        """
        self._short_calls += 1
        request = Request(
            messages=(core.Message(role="user", content="Say OK."),),
            parameters={"max_tokens": SHORT_CALL_TOKENS},
            version=f"{SHORT_CALL} of {self.run.id}",
            repeat=self._short_calls,
        )
        call = self._call(model, request, ANY, is_answer=True)
        clock = ItemClock(slice_name=SHORT_CALL)
        try:
            reply = await self.sender.send_once(model, request, clock)
        except CallError:
            return
        paid = PaidReply(key=call.key, spec=model.spec, run=self.run.id, reply=reply)
        await self.ledger.put(paid)
        meter.add_cost(model, reply)

    async def _look_for_route(self) -> None:
        """Look whether another run has begun batches on this ledger, every few seconds."""
        now = asyncio.get_running_loop().time()
        if self._find_route is None or now < self._look_at:
            return
        self._look_at = now + LOOK_SECONDS  # before the wait: one call looks for all
        self._take_route(await asyncio.to_thread(self._find_route, self))

    def _take_route(self, route: CallRoute | None) -> None:
        """Use a route from now on; None if there is none yet."""
        if route is None:
            self._look_at = asyncio.get_running_loop().time() + LOOK_SECONDS
        else:
            self.route = route
            self._look_at = NEVER
