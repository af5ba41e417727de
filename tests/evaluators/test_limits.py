"""Rates and overload: kept, learnt from refusals, waited out by a few probes, in virtual time."""

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from qagate.evaluators import core
from qagate.evaluators.runtime.caller import (
    CallSettings,
    ItemClock,
    RetryPolicy,
    Sender,
)
from qagate.evaluators.runtime.limits import TokenLimit
from qagate.evaluators.runtime.server import (
    FIRST_RATE,
    NEVER_ANSWERED_SECONDS,
    PAUSE_SPREAD,
    ServerState,
)
from tests.support.figures import some
from tests.support.scripted import ask_for
from tests.support.simulated import (
    Down,
    Ended,
    Metered,
    Server,
    asked,
    call_all,
    now,
    run,
)

FIVE_MINUTES = 300.0


def test_a_host_that_was_never_reached_is_given_up_soon() -> None:
    """A wrong address costs seconds and a few attempts; every item says so."""
    server = Server(refuse=Down(begin=0, end=1e9, kind="unreachable"))
    ended = asked(server, 500)
    assert ended.seconds <= 20
    assert len(server.at) <= 8
    assert ended.replies == 0
    assert "host could not be reached for" in ended.sender.stops["unreachable"]


@pytest.mark.parametrize("kind", ["server", "connection"])
def test_a_host_that_never_answered_is_given_up_sooner(kind: str) -> None:
    """One that has failed from the first call on has a minute and a half, not an item's time."""
    ended = asked(Server(refuse=Down(begin=0, end=1e9, kind=kind)), 500)
    assert (ended.replies, len(ended.errors) + ended.stopped) == (0, 500)
    assert NEVER_ANSWERED_SECONDS <= ended.seconds <= NEVER_ANSWERED_SECONDS + 15
    assert "host has given no reply for" in ended.sender.stops[kind]


def test_a_host_that_is_silent_from_the_first_call_on_is_given_up() -> None:
    """Its calls end by their own deadline: no item is tried five times, two minutes each."""

    class Silent(Server):
        async def complete(self, request: core.Request) -> core.Reply:
            await asyncio.sleep(120)
            raise core.TransientError("timeout", "no reply in time")

    ended = asked(Silent(), 500)
    assert (ended.replies, len(ended.errors) + ended.stopped) == (0, 500)
    assert ended.seconds <= 3 * 120


def test_the_run_s_deadline_ends_the_waiting() -> None:
    """When the run's time is used up whoever waits is MISSING, and nothing more is sent."""
    server = Server(refuse=Down(begin=10, end=1e9))
    ended = asked(server, 1500, deadline=60.0)
    assert ended.errors == []
    assert ended.replies + ended.stopped == 1500
    assert ended.seconds <= 60
    assert set(ended.sender.stops) == {"deadline"}
    assert max(server.at) < 60


def test_calls_in_flight_at_the_deadline_are_cut() -> None:
    """A reply that comes a moment late is kept; what hangs is cut within two seconds. Waiting for
    another run's call ends with the run's time; what comes before it is used."""
    limits = core.Limits(host="host", deadline=1e9, item_deadline=1e9)
    assert asked(Server(latency=61, limits=limits), 1, deadline=60.0).replies == 1
    ended = asked(Server(latency=1e6, limits=limits), 40, deadline=60.0)
    assert (ended.replies, ended.stopped) == (0, 40)
    assert 60 <= ended.seconds <= 62

    async def scenario() -> None:
        sender = Sender(CallSettings(deadline=60, random=lambda: 0.0))
        sender.begin()
        assert await sender.before_the_end(asyncio.sleep(59, "in time")) == "in time"
        with pytest.raises(core.StoppedError, match="60 s are used up"):
            await sender.before_the_end(asyncio.sleep(1e6))
        assert now() == 60

    run(scenario())


def kinds_of(ended: Ended) -> list[str]:
    return [error.kind for error in ended.errors if isinstance(error, core.CallError)]


def test_an_item_has_its_own_deadline() -> None:
    """Its calls, retries and waits end in time; waiting for the first slot does not count."""
    limits = core.Limits(host="host", deadline=1e9, item_deadline=50, concurrency=1)
    ended = asked(Server(latency=1e6, limits=limits), 3)
    assert kinds_of(ended) == ["item_deadline"] * 3
    assert ended.seconds == pytest.approx(150)
    limits = core.Limits(host="host", deadline=10, item_deadline=5)
    server = Server(refuse=Down(begin=0, end=1e9, kind="server"), limits=limits)
    patience = RetryPolicy(attempts=100, first=1.0, longest=1.0)
    ended = run(call_all(server, 1, CallSettings(retry=patience)))
    assert kinds_of(ended) == ["item_deadline"]
    assert ended.seconds == pytest.approx(5)


@pytest.mark.parametrize("kind", ["bad_body", "error_body"])
def test_what_cannot_be_read_is_tried_three_times(kind: str) -> None:
    """A body that is no reply has fewer tries than a network's failure, then it is an ERROR."""
    server = Server(refuse=Down(begin=0, end=1e9, kind=kind))
    ended = asked(server, 1)
    assert len(server.at) == 3
    assert [str(error) for error in ended.errors] == ["busy (tried 3 times)"]


TIMED_OUT = core.TransientError("timeout", "no reply in time")


def silent_for(seconds: float, *slices: str) -> ServerState:
    """Return a server of which a call of each slice timed out, the last after so long."""
    host = ServerState("host", 16, lambda: 0.0, give_up_after=900)
    for slice_name in slices:
        host.note_end(TIMED_OUT, 0, 1, None, slice_name)
    host.note_end(TIMED_OUT, 0, seconds, 0, slices[-1])
    return host


def test_a_server_is_not_given_up_for_the_time_outs_of_one_slice() -> None:
    host = silent_for(10_000, "smoke:bg", "smoke:bg")
    assert host.reason_not_to_wait("openai:m", 10_000) is None


@pytest.mark.parametrize("others", [("smoke:bg", "smoke:pl"), ("smoke:bg", "")])
def test_a_server_is_given_up_once_another_slice_or_command_waits_in_vain(
    others: tuple[str, str],
) -> None:
    host = silent_for(NEVER_ANSWERED_SECONDS + 1, *others)
    reason = some(host.reason_not_to_wait("openai:m", 100))
    assert "host has given no reply for 90 s" in str(reason)


def test_an_answer_shows_that_time_outs_were_those_of_items() -> None:
    host = silent_for(50, "smoke:bg", "smoke:pl")
    assert host.is_silent
    host.note_end(None, 51, 52, None, "smoke:en")
    assert not host.is_silent


def test_a_time_out_is_the_item_s_until_another_slice_times_out() -> None:
    host = ServerState("host", 16, lambda: 0.0, give_up_after=900)
    assert not host.note_end(TIMED_OUT, 0, 120, None, "smoke:bg")
    assert host.note_end(TIMED_OUT, 0, 120, None, "smoke:pl")


def test_one_short_call_is_due_where_nothing_was_answered_meanwhile() -> None:
    host = silent_for(120, "smoke:bg")
    assert [host.begin_check(0), host.begin_check(0)] == [True, False]
    host.note_end(None, 121, 122, None, "short call")
    assert not host.begin_check(60), "it has answered since"
    assert host.begin_check(123)


def test_an_overloaded_server_is_asked_by_fewer_at_once() -> None:
    """A server that bears 20 at once is not asked by 64 for long, and all is answered."""
    server = Server(latency=1.0)
    refused = 0

    def refuse(at: float) -> None:
        nonlocal refused
        if server.in_flight > 20:
            refused += 1
            raise core.TransientError("overloaded", "busy")

    server.refuse = refuse
    ended = asked(server, 1000, concurrency=64)
    assert (ended.replies, ended.errors) == (1000, [])
    assert refused <= 250


def test_a_model_s_own_concurrency() -> None:
    """An entry's limit holds below the run's, and the run's limit below an entry's."""
    small = Server(limits=core.Limits(concurrency=3))
    assert asked(small, 100, concurrency=16).replies == 100
    assert small.most == 3
    large = Server(limits=core.Limits(concurrency=99))
    ended = asked(large, 300, concurrency=16)
    assert (ended.replies, large.most, ended.sender.admission.limit) == (300, 16, 16)


def test_a_wrong_key_of_the_judge_stops_the_answers_too() -> None:
    """Where one model can never be asked, the other is asked no more: nothing could be judged."""

    def refuse(at: float) -> None:
        raise core.FatalError("auth", "no")

    answers = Server(spec="openai:answers")
    judge = Server(
        spec="anthropic:judge", refuse=refuse, limits=core.Limits(host="other")
    )

    async def item(sender: Sender, number: int) -> str:
        try:
            await sender.send(answers, ask_for(f"question {number}"), ItemClock())
            await sender.send(judge, ask_for(f"judge {number}"), ItemClock())
        except core.CallError as error:
            return type(error).__name__
        return "graded"

    async def scenario() -> list[str]:
        sender = Sender(CallSettings(random=lambda: 0.0))
        return await asyncio.gather(*(item(sender, number) for number in range(500)))

    assert Counter(run(scenario())) == {"FatalError": 1, "StoppedError": 499}
    assert (len(judge.at), len(answers.at)) == (1, 9)


@pytest.mark.parametrize("same_model", [True, False])
def test_an_item_that_has_begun_goes_before_new_ones(*, same_model: bool) -> None:
    """A run that is cut short has judged what it asked, but for what was in flight."""
    answers = Server(spec="answers")
    judge = answers if same_model else Server(spec="judge")

    async def item(sender: Sender, number: int) -> None:
        span = ItemClock()
        await sender.send(answers, ask_for(f"question {number}"), span)
        await sender.send(judge, ask_for(f"judge {number}"), span)
        done.append(number)

    async def scenario() -> None:
        sender = Sender(CallSettings(concurrency=8, random=lambda: 0.0))
        items = asyncio.gather(*(item(sender, number) for number in range(500)))
        await asyncio.sleep(10.1)
        sender.halt(core.StoppedError("stopped", "enough"))
        await asyncio.gather(items, return_exceptions=True)

    done: list[int] = []
    run(scenario())
    asked_first = len(answers.at) - (len(done) if same_model else 0)
    assert len(done) > 150
    assert asked_first - len(done) <= 2 * 8


def test_a_quota_that_ends_in_mid_run_stops_the_rest() -> None:
    """Calls in flight may be refused too; nobody is asked after them."""
    server = Server()

    def refuse(at: float) -> None:
        if len(server.at) > 100:
            raise core.FatalError("quota", "used up")

    server.refuse = refuse
    ended = asked(server, 1000)
    assert ended.replies == 100
    assert len(server.at) <= 116
    assert len(ended.errors) + ended.stopped == 900


def test_a_halted_run_starts_nothing() -> None:
    """After a stop those who wait are told so; what is in flight still brings its reply."""
    server = Server(latency=1.0)

    async def scenario() -> list[core.Reply | BaseException]:
        sender = Sender(CallSettings(concurrency=2, random=lambda: 0.0))
        asks = [
            sender.send(server, ask_for(str(one)), ItemClock()) for one in range(10)
        ]
        tasks = [asyncio.create_task(one) for one in asks]
        await asyncio.sleep(1.5)
        assert sender.admission.in_flight == 2
        sender.halt(core.StoppedError("stopped", "enough"))
        results = await asyncio.gather(*tasks, return_exceptions=True)
        with pytest.raises(core.StoppedError, match="enough"):
            await sender.send(server, ask_for("late"), ItemClock())
        return list(results)

    results = run(scenario())
    assert sum(isinstance(one, core.Reply) for one in results) == 3
    assert sum(isinstance(one, core.StoppedError) for one in results) == 7
    assert len(server.at) == 3


def test_a_cancelled_call_gives_its_place_back() -> None:
    """Cancelling calls that wait or are in flight leaves room for others."""
    server = Server(latency=10.0)

    async def scenario() -> None:
        sender = Sender(CallSettings(concurrency=1, random=lambda: 0.0))
        asks = (sender.send(server, ask_for(str(one)), ItemClock()) for one in range(3))
        tasks = [asyncio.create_task(one) for one in asks]
        await asyncio.sleep(1)
        tasks[1].cancel()
        tasks[0].cancel()
        await tasks[2]
        assert sender.admission.in_flight == 0

    run(scenario())
    assert len(server.at) == 2


def test_a_call_that_is_let_in_and_cancelled_at_once_gives_its_place_back() -> None:
    """Between being let in and waking up a call may be cancelled: its place is not lost."""
    server = Server(latency=1.0)

    async def scenario() -> None:
        sender = Sender(CallSettings(concurrency=1, random=lambda: 0.0))

        async def ask_then_cancel() -> None:
            await sender.send(server, ask_for("1"), ItemClock())
            second.cancel()  # its place is given to it already, but it has not woken up

        first = asyncio.create_task(ask_then_cancel())
        second = asyncio.create_task(sender.send(server, ask_for("2"), ItemClock()))
        await asyncio.wait([first, second])
        assert second.cancelled()
        await sender.send(server, ask_for("3"), ItemClock())
        assert sender.admission.in_flight == 0

    run(scenario())


def test_a_pause_holds_for_every_model_of_the_host() -> None:
    """One model's 429 keeps the other models of its server waiting too; other servers go on."""
    limits = {"slow": "one", "same": "one", "other": "two"}
    refusals = [core.TransientError("rate_limit", "later", 30.0)]

    def refuse(at: float) -> None:
        if refusals:
            raise refusals.pop()

    servers = {
        name: Server(spec=name, limits=core.Limits(host=host))
        for name, host in limits.items()
    }
    servers["slow"].refuse = refuse

    async def scenario() -> None:
        sender = Sender(CallSettings(random=lambda: 1.0))
        first = asyncio.create_task(
            sender.send(servers["slow"], ask_for("q"), ItemClock())
        )
        await asyncio.sleep(1)
        assert sender.admission.describe(now()) == "one paused 35 s"
        both = (
            sender.send(servers[name], ask_for("q"), ItemClock())
            for name in ("same", "other")
        )
        await asyncio.gather(first, *both)

    run(scenario())
    assert servers["slow"].at[1] >= 30
    assert servers["same"].at[0] >= 30
    assert servers["other"].at[0] == 1


@pytest.mark.parametrize("retry_after", [None, 1.0])
@pytest.mark.parametrize("concurrency", [16, 64])
def test_a_window_of_a_minute_is_used_up(
    concurrency: int, retry_after: float | None
) -> None:
    """300 calls in each minute, however wrong the announced pause: 5 minutes' worth takes five."""
    used: Counter[int] = Counter()

    def refuse(at: float) -> None:
        minute = int(at // 60)
        if used[minute] == 300:
            raise core.TransientError("rate_limit", "too many this minute", retry_after)
        used[minute] += 1

    server = Server(refuse=refuse)
    ended = asked(server, 1500, concurrency=concurrency)
    assert ended.replies == 1500
    assert ended.seconds <= 1.25 * 240
    assert len(server.at) <= 1.06 * 1500


def at_random(
    share: float, retry_after: float | None, seed: int = 1
) -> Callable[[float], None]:
    draws = Random(seed)

    def refuse(at: float) -> None:
        if draws.random() < share:
            raise core.TransientError("rate_limit", "not this one", retry_after)

    return refuse


@pytest.mark.parametrize(
    ("share", "concurrency"), [(0.005, 64), (0.02, 16), (0.05, 16), (0.05, 64)]
)
def test_single_refusals_of_any_pace_do_not_slow_a_run(
    share: float, concurrency: int
) -> None:
    """4,000 calls of which up to 5 % are refused at random take at most half as long again."""
    ended = asked(Server(refuse=at_random(share, None)), 4000, concurrency=concurrency)
    assert (ended.replies, ended.errors) == (4000, [])
    assert ended.seconds <= 1.5 * 4000 * 0.2 / concurrency


@pytest.mark.parametrize(("share", "longest"), [(0.005, 100), (0.02, 300)])
def test_an_announced_pause_is_kept_and_no_more(share: float, longest: float) -> None:
    """Where a refusal names a second's pause every one costs that, and the pace stays."""
    ended = asked(Server(refuse=at_random(share, 1.0)), 4000)
    assert (ended.replies, ended.errors) == (4000, [])
    assert ended.seconds <= longest


@pytest.mark.untraced
@pytest.mark.parametrize("concurrency", [16, 64])
@pytest.mark.parametrize(
    ("rate", "burst"), [(5, 1), (5, 5), (20, 1), (20, 20), (40, 40)]
)
def test_a_limit_without_a_word_is_found(
    rate: int, burst: int, concurrency: int
) -> None:
    """What says neither rate nor pause is used up within 1.3 times what it allows."""
    limit = Metered(rate=rate, burst=burst, retry_after=None)
    ended = asked(Server(refuse=limit), 200 * rate, concurrency=concurrency)
    assert (ended.replies, ended.errors) == (200 * rate, [])
    assert ended.seconds <= 1.3 * 200


def test_a_limit_is_found_among_single_refusals() -> None:
    """Both together: the limit's pace is not lost to refusals that have nothing to do with it."""
    limit, single = Metered(rate=5, burst=5, retry_after=None), at_random(0.05, None)

    def refuse(at: float) -> None:
        single(at)
        limit(at)

    ended = asked(Server(refuse=refuse), 500)
    assert (ended.replies, ended.errors) == (500, [])
    assert ended.seconds <= 2 * 100


def test_a_pace_that_nothing_refuses_is_given_up() -> None:
    """It doubles each second while calls wait, if only for a limit of the model, and ends there."""
    server = Server(
        limits=core.Limits(rpm=600), refuse=Down(begin=0, end=1, kind="rate_limit")
    )
    ended = asked(server, 200)
    assert (ended.replies, ended.sender.admission.describe(ended.seconds)) == (200, "")


def test_a_pace_recovers() -> None:
    """When a server allows more than before, the calls become faster again by themselves."""
    limit = Metered(rate=2, burst=1)

    def refuse(at: float) -> None:
        if at > 60:
            limit.rate = 40
        limit(at)

    server = Server(refuse=refuse)
    ended = asked(server, 2000)
    assert ended.replies == 2000
    assert len([at for at in server.ended if at > ended.seconds - 20]) / 20 > 10


@pytest.mark.parametrize(
    ("limits", "bounds"),
    [(core.Limits(rpm=120), {}), (core.Limits(), {"rpm": 120})],
    ids=["model", "run"],
)
def test_requests_a_minute(limits: core.Limits, bounds: dict[str, int]) -> None:
    """No minute sees more than its number, no start is a burst, and the rate is used up."""
    server = Server(limits=limits, refuse=Metered(rate=2.0001, burst=1))
    ended = asked(server, 500, **bounds)
    assert (ended.replies, dict(ended.sender.retried)) == (500, {})
    assert (
        max(sum(one <= at < one + 60 for at in server.at) for one in server.at) <= 121
    )
    assert ended.seconds <= 1.02 * 500 / 2


def test_a_run_s_limit_is_shared_by_its_models() -> None:
    """The requests a minute of a run are those of all its models together."""
    servers = [Server(spec=name, limits=core.Limits(host=name)) for name in "ab"]

    async def both() -> None:
        sender = Sender(CallSettings(rpm=60, random=lambda: 0.0))
        asks = (
            sender.send(server, ask_for("q"), ItemClock()) for server in servers * 30
        )
        await asyncio.gather(*asks)

    run(both())
    assert max(at for server in servers for at in server.at) == pytest.approx(59, abs=1)


def test_tokens_a_minute() -> None:
    """What replies report corrects the estimate: over a minute the tokens keep to their number."""
    reply = core.Reply(text="ok", input_tokens=900, output_tokens=100)
    server = Server(limits=core.Limits(tpm=60_000, max_tokens=50), reply=reply)
    ended = asked(server, 200)
    assert ended.replies == 200
    assert max(sum(one <= at < one + 60 for at in server.at) for one in server.at) <= 66
    assert ended.seconds <= 1.1 * 200


@pytest.mark.parametrize(
    "error",
    [
        core.TransientError("overloaded", "busy"),
        core.RefusedError("too_large", "refused"),
    ],
)
def test_one_bad_request_is_that_item_s_error(error: core.CallError) -> None:
    """An overload by one call opens no circuit; a size refused is not repeated; others go on."""

    class Picky(Server):
        async def complete(self, request: object) -> core.Reply:
            if "'13'" in str(request):
                raise error
            return await super().complete(request)  # type: ignore[arg-type]

    ended = asked(Picky(), 200)
    assert (ended.replies, kinds_of(ended)) == (199, [error.kind])


def test_an_estimate_learns_from_replies() -> None:
    """First characters and the longest reply, then what replies took; a server may not count."""
    tokens = TokenLimit(6000, 500)
    request = ask_for("x" * 400)
    assert tokens.estimate(request) == 400 / 4 + 500
    tokens.correct(600, request, core.Reply(text="uncounted"))
    assert tokens.estimate(request) == 600
    tokens.correct(600, request, core.Reply(input_tokens=200, output_tokens=20))
    assert tokens.estimate(request) == 220
    short = ask_for("x" * 400)
    limited = type(short)(messages=short.messages, parameters={"max_tokens": 10})
    assert tokens.estimate(limited) == 210
    assert TokenLimit(6000, None).estimate(limited) == 110


def test_a_host_says_what_it_waits_for() -> None:
    """Paused, overloaded, slowed down or nothing; 0 to 20 % are added to a pause, as drawn."""
    for draw in (0.0, 0.5, 1.0):
        host = ServerState("host", 16, partial(float, draw), give_up_after=900)
        host.note_start(0)
        host.note_end(core.TransientError("rate_limit", "later", 10.0), 0, 1, None)
        assert host.hold_back(1) == pytest.approx(10 * (1 + PAUSE_SPREAD * draw))
    host = ServerState("api.example", 16, lambda: 0.0, give_up_after=900)
    assert host.describe(0) == ""
    host.note_start(0)
    host.note_end(core.TransientError("rate_limit", "later", 12.0), 0, 0, None)
    assert host.describe(0) == "api.example paused 12 s"
    assert host.describe(20) == f"api.example at {FIRST_RATE:.1f} calls/s"
    for at in range(20, 30):
        host.note_start(at)
        host.note_end(core.TransientError("overloaded", "busy"), at, at, None)
    assert host.describe(40) == "api.example overloaded for 40 s, probing"
