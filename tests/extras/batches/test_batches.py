"""Calls in batches, over a server of both APIs: sent once, waited for, killed at any step."""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from json import dumps, loads
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from qagate.evaluators.core import CallError, Reply, StoppedError, TransientError
from qagate.evaluators.extras.batches import waves
from qagate.evaluators.extras.batches.batches import Batches, find_batches
from qagate.evaluators.extras.batches.waves import (
    BatchSettings,
    Wave,
    keep_wave,
    open_runs,
    waves_in,
)
from qagate.evaluators.ledger import Ledger, LedgerError, PaidReply
from qagate.evaluators.ledger.kept import ANY, NEVER, Kept
from qagate.evaluators.ledger.place import LedgerPlace
from qagate.evaluators.ledger.sqlite import open_store
from qagate.evaluators.models import connect
from qagate.evaluators.models.spec import BatchLimits
from qagate.evaluators.run_identity import RunIdentity
from qagate.evaluators.runtime.caller import Caller, CallSettings, Meter, RetryPolicy
from qagate.evaluators.text import Key
from tests.support.batch_server import BatchServer, batch_server
from tests.support.fixtures import Patch
from tests.support.loopback import Answer, Seen
from tests.support.model_calls import PROVIDERS, SECRET, asked, spec_of
from tests.support.tables import tabled

QUICK = BatchSettings(settle=0.3, quiet=0.02, pause=0.02, first=0.01, longest=0.05)
RETRY = RetryPolicy(attempts=2, first=0.0, longest=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What came of some calls, in their order, and what the run says of itself."""

    results: Sequence[Reply | CallError]
    stops: dict[str, str]
    retried: dict[str, int]
    sent: int

    @property
    def texts(self) -> list[str]:
        """The replies' texts; for a call without one the kind of its error."""
        return [
            one.text if isinstance(one, Reply) else one.kind for one in self.results
        ]


@dataclass
class BatchRuns:
    """Runs on one ledger, each of which asks one model for replies to some texts."""

    folder: Path
    server: BatchServer
    provider: str
    ledger: LedgerPlace | None = None  # in place of a file in the folder

    @property
    def place(self) -> LedgerPlace:
        return self.ledger or self.folder / "ledger"

    def run(
        self,
        texts: Sequence[str],
        settings: BatchSettings | None = QUICK,
        seconds: float | None = None,
        kept: Kept = ANY,
        **spec: Any,
    ) -> Asked:
        """Ask for all texts at once, for so many ``seconds`` at most, then for nothing more.

        The run's id is that of ``kept``, by which it looks for replies.
        """
        calls = CallSettings(retry=RETRY, deadline=seconds)
        with Ledger(self.place) as ledger:
            return asyncio.run(
                self._run(ledger, texts, calls, settings, spec, kept=kept)
            )

    def run_killed(
        self, texts: Sequence[str], arm: Callable[[Callable[[], object]], None]
    ) -> None:
        """Ask for all texts; ``arm`` is given what kills the run, to be called by any thread.
        Nothing of the run is carried on or tidied up then; its locks are the system's to give
        back."""
        ledger = Ledger(self.place)
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda _, context: None)
        arm(lambda: loop.call_soon_threadsafe(loop.stop))
        task = loop.create_task(
            self._run(ledger, texts, CallSettings(retry=RETRY), QUICK, {})
        )
        task.add_done_callback(lambda _: loop.stop())
        loop.run_forever()
        assert not task.done(), "the run was over before it was killed"
        _ABANDONED.append((loop, task))
        ledger.close()

    @property
    def waves(self) -> list[Wave]:
        """What the ledger remembers of batches, in the order they were begun."""
        with Ledger(self.place, read_only=True) as ledger:
            return sorted(waves_in(ledger).values(), key=lambda wave: wave.at)

    async def _run(
        self,
        ledger: Ledger,
        texts: Sequence[str],
        settings: CallSettings,
        batch: BatchSettings | None,
        changes: dict[str, Any],
        *,
        kept: Kept = ANY,
    ) -> Asked:
        spec = spec_of(self.provider, self.server.loopback, **changes)
        model = connect(spec, Key(SECRET))

        def find(caller: Caller) -> Batches | None:
            if batch is None:
                return find_batches(caller, begins=False)
            return Batches(caller, batch)

        run = RunIdentity(id=kept.run, started=0.0)
        caller = Caller(ledger, settings, lambda *_: 0.01, None, find, run=run)
        caller.open()
        caller.sender.begin()

        async def ask(text: str) -> Reply | CallError:
            meter = Meter(price=caller.price)
            with caller.route.item(meter):
                try:
                    asking = caller.metered(meter, answers=kept)
                    return await asking(model, asked(text))
                except CallError as error:
                    return error

        try:
            results = await asyncio.gather(*map(ask, texts))
        finally:
            await caller.close()
            await model.close()
        sender = caller.sender
        return Asked(
            results=results,
            stops=dict(sender.stops),
            retried=dict(sender.retried),
            sent=sender.requests,
        )


_ABANDONED: list[object] = []  # a loop that is collected would tidy up after itself


DAY = 86_400.0
TEXTS = [f"What is number {number}? [[answer=n{number}]]" for number in range(12)]
ANSWERS = [f"n{number}" for number in range(12)]


wires = pytest.mark.parametrize("provider", ["openai", "anthropic"])


def number_of(prompt: str) -> int:
    return int(prompt.partition("number ")[2].partition("?")[0])


def failing(word: str, *numbers: int, batches: int = 1) -> Callable[[str, int], str]:
    return lambda prompt, batch: (
        word if batch <= batches and number_of(prompt) in numbers else ""
    )


@pytest.mark.parametrize("provider", PROVIDERS)
def test_calls_of_a_wave_are_one_batch_and_replies_are_kept(
    tmp_path: Path, provider: str
) -> None:
    """Out of order and twice as they come, each reply reaches its own call; none is asked again."""
    with batch_server() as server:
        runs = BatchRuns(tmp_path, server, provider)
        assert runs.run(TEXTS).texts == ANSWERS
        assert (server.sizes, server.direct) == ([12], [])
        seen = server.loopback.count
        again = runs.run(TEXTS)
        assert (again.texts, again.sent, server.loopback.count) == (ANSWERS, 0, seen)
    (wave,) = runs.waves
    assert (wave.state, wave.done, wave.failed, wave.keys) == ("read", 12, 0, ())
    assert all(
        isinstance(one, Reply) and one.batch and one.seconds == 0
        for one in again.results
    )


@wires
@pytest.mark.parametrize(
    "word", ["error", "expired", "unreadable", "missing", "other model"]
)
def test_what_has_no_reply_is_asked_again(
    tmp_path: Path, provider: str, word: str
) -> None:
    """A line that failed, expired, is broken or is not there is no reply: it goes once more."""
    with batch_server(fault=failing(word, 3, 5)) as server:
        done = BatchRuns(tmp_path, server, provider).run(TEXTS)
        assert done.texts == ANSWERS
        assert sum(done.retried.values()) == 2
        assert (server.sizes, server.direct) == ([12, 2], [])


@wires
def test_an_empty_answer_is_read_again(tmp_path: Path, provider: str) -> None:
    answers = iter(["\n", "\n"])
    with batch_server(change=lambda text, number: next(answers, text)) as server:
        done = BatchRuns(tmp_path, server, provider).run(TEXTS)
        assert (done.texts, server.sizes, server.direct) == (ANSWERS, [12], [])


@wires
def test_a_batch_of_which_nothing_comes_is_kept(tmp_path: Path, provider: str) -> None:
    """The provider may be out of reach: what it counts as done is paid for."""
    with batch_server(change=lambda text, number: "\n") as server:
        done = BatchRuns(tmp_path, server, provider).run(TEXTS)
        assert (done.texts, server.sizes, server.direct) == (["batch"] * 12, [12], [])
        assert "give it up: qagate ledger batches --cancel" in f"{done.stops}"


@wires
def test_a_cancelled_batch_of_which_nothing_comes_is_asked_again(
    tmp_path: Path, provider: str
) -> None:
    def nothing_of_the_first(text: str, number: int) -> str:
        return "\n" if number == 1 else text

    with batch_server(change=nothing_of_the_first) as server:
        runs = BatchRuns(tmp_path, server, provider)
        runs.run(TEXTS)
        (wave,) = runs.waves
        with Ledger(runs.place) as ledger:
            asyncio.run(keep_wave(ledger, replace(wave, cancelled=True)))
        assert runs.run(TEXTS).texts == ANSWERS
        assert server.sizes == [12, 12]


@wires
def test_the_results_of_a_cancelled_batch_outlast_an_outage(
    tmp_path: Path, provider: str
) -> None:
    """They are paid for, and come once the provider is within reach again."""
    is_down = True

    def step(name: str, seen: Seen) -> Answer | None:
        return Answer(status=503) if name == "results" and is_down else None

    with batch_server(step=step) as server:
        runs = BatchRuns(tmp_path, server, provider)
        runs.run(TEXTS)
        (wave,) = runs.waves
        with Ledger(runs.place) as ledger:
            asyncio.run(keep_wave(ledger, replace(wave, cancelled=True)))
        assert runs.run(TEXTS).texts == ["batch"] * 12
        is_down = False
        assert runs.run(TEXTS).texts == ANSWERS
        assert (server.sizes, server.direct) == ([12], [])


def cut(results: str) -> str:
    return results[: len(results) * 3 // 4]


def without_a_line(results: str) -> str:
    """Return the results without those of one call."""
    key = key_of(results.splitlines()[-1])
    lines = [line for line in results.splitlines() if key not in line]
    return "\n".join(lines) + "\n"


def without_an_id(results: str) -> str:
    key = key_of(results.splitlines()[-1])
    return results.replace(f'"custom_id": "{key}"', '"other_id": "x"')


def key_of(line: str) -> str:
    return str(loads(line)["custom_id"])


@wires
@pytest.mark.parametrize("change", [cut, without_a_line, without_an_id])
def test_what_a_batch_lacks_goes_into_the_next_wave(
    tmp_path: Path, provider: str, change: Callable[[str], str]
) -> None:
    """The results that came are kept, though the provider counts more."""

    def of_the_first(results: str, number: int) -> str:
        return change(results) if number == 1 and results else results

    with batch_server(change=of_the_first) as server:
        runs = BatchRuns(tmp_path, server, provider)
        done = runs.run(TEXTS)
        assert (done.texts, done.stops, server.direct) == (ANSWERS, {}, [])
        lacking = server.sizes[1]
        assert 1 <= lacking < 12
        assert (server.sizes, server.repeats) == ([12, lacking], lacking)
        assert done.retried == {"no_result": lacking}
        first, second = runs.waves
        assert (first.state, first.done, first.failed) == (
            "read",
            12 - lacking,
            lacking,
        )
        assert (second.state, second.done) == ("read", lacking)


@wires
def test_what_came_before_the_provider_went_away_is_kept(
    tmp_path: Path, provider: str
) -> None:
    away = Answer(status=503, body={"error": {"message": "away"}})
    reads = 0

    def step(name: str, seen: Seen) -> Answer | None:
        nonlocal reads
        if name != "results":
            return None
        reads += 1
        return None if reads == 1 else away

    with batch_server(step=step, change=lambda text, number: cut(text)) as server:
        runs = BatchRuns(tmp_path, server, provider)
        done = runs.run(TEXTS)
        came = sum(text != "batch" for text in done.texts)
        (wave,) = runs.waves
        with Ledger(runs.place, read_only=True) as ledger:
            assert len(ledger.replies(wave.keys)) == came
        assert 1 <= came < 12
        assert (wave.state, server.sizes) == ("sent", [12])
        server.step = lambda name, seen: None
        server.change = lambda text, number: text
        assert runs.run(TEXTS).texts == ANSWERS
        assert server.repeats == 0


@wires
def test_a_call_is_part_of_three_waves_at_most(tmp_path: Path, provider: str) -> None:
    """What fails each time ends as an error by name; what is itself at fault is asked once."""
    with batch_server(fault=failing("expired", 3, batches=99)) as server:
        done = BatchRuns(tmp_path, server, provider).run(TEXTS)
        assert done.texts == [*ANSWERS[:3], "expired", *ANSWERS[4:]]
        said = "1 call was not answered in 3 batches; the same command asks again"
        assert done.stops == {"batch": said}
        assert server.sizes == [12, 1, 1]
    with batch_server(fault=failing("refused", 3, batches=99)) as server:
        done = BatchRuns(tmp_path / "refused", server, provider).run(TEXTS)
        assert (done.texts, server.sizes) == (
            [*ANSWERS[:3], "bad_request", *ANSWERS[4:]],
            [12],
        )


@wires
def test_the_most_calls_of_a_batch_split_a_wave(tmp_path: Path, provider: str) -> None:
    """No more calls go into a batch than it may hold, and no call is left out."""
    with batch_server() as server:
        runs = BatchRuns(tmp_path, server, provider)
        assert runs.run(TEXTS, batch=BatchLimits(calls=5)).texts == ANSWERS
        assert server.sizes == [5, 5, 2]
        assert server.repeats == 0


@wires
def test_the_most_bytes_of_a_batch_split_a_wave(tmp_path: Path, provider: str) -> None:
    """No more bytes go into a batch than it may hold, and no call is left out."""
    most = 999
    with batch_server() as server:
        runs = BatchRuns(tmp_path, server, provider)
        assert runs.run(TEXTS, batch=BatchLimits(size=most)).texts == ANSWERS
        sizes = [
            sum(len(dumps(line)) for line in batch.lines.values())
            for batch in server.batches.values()
        ]
        assert max(sizes) <= most
        assert len(sizes) > 2
        assert sum(server.sizes) == len(TEXTS)
        assert server.repeats == 0


@wires
def test_a_run_that_does_not_wait_leaves_it_to_the_next(
    tmp_path: Path, provider: str
) -> None:
    """What is sent is not waited for beyond --batch-wait; the next run sends nothing and reads. It
    reads the batch whole: replies that it did not ask for are paid for too."""
    with batch_server(looks=3) as server:
        runs = BatchRuns(tmp_path, server, provider)
        first = runs.run(TEXTS, replace(QUICK, wait=0.0))
        assert first.texts == ["batch"] * 12
        line = "12 calls are still with the provider; run the same command again"
        assert first.stops == {"batch": line}
        part = runs.run(TEXTS[:4], replace(QUICK, wait=0.0))
        assert (part.texts, part.stops) == (["batch"] * 4, {"batch": line})
        assert runs.run(TEXTS[:2]).texts == ANSWERS[:2]
        assert runs.run(TEXTS).texts == ANSWERS
        assert len(server.batches) == 1
        assert server.repeats == 0


@wires
def test_a_direct_run_asks_nothing_that_is_in_a_batch(
    tmp_path: Path, provider: str
) -> None:
    """Without --batch such calls are MISSING until the batch is over; then its replies are read."""
    with batch_server(looks=4, fault=failing("expired", 3)) as server:
        runs = BatchRuns(tmp_path, server, provider)
        runs.run(TEXTS, replace(QUICK, wait=0.0))
        early = runs.run([*TEXTS[:2], "What is number 99? [[answer=n99]]"], None)
        assert early.texts == ["batch", "batch", "n99"]
        assert "add --batch to wait" in early.stops["batch"]
        assert [number_of(seen.prompt) for seen in server.direct] == [99]
        server.looks = 0
        assert runs.run(TEXTS, None).texts == ANSWERS
        assert [number_of(seen.prompt) for seen in server.direct] == [99, 3]
        assert server.repeats == 0


def test_a_direct_run_notices_new_batches(tmp_path: Path, monkeypatch: Patch) -> None:
    """A direct run that began on a ledger without batches sends no call that another run gave."""
    monkeypatch.setattr("qagate.evaluators.runtime.caller.LOOK_SECONDS", 0.0)
    with batch_server(looks=3) as server:
        runs = BatchRuns(tmp_path, server, "openai")
        began: list[Caller] = []

        def find(caller: Caller) -> Batches | None:
            if not began:  # the first look, before the other run
                began.append(caller)
                return None
            return find_batches(caller, begins=False)

        with Ledger(runs.place) as ledger:
            caller = Caller(
                ledger, CallSettings(), lambda spec, reply: 0.01, None, find
            )

            async def ask() -> None:
                caller.open()
                await asyncio.to_thread(runs.run, TEXTS, replace(QUICK, wait=0.0))
                model = connect(spec_of("openai", server.loopback), Key(SECRET))
                meter = Meter(price=caller.price)
                with pytest.raises(StoppedError, match="with the provider in a batch"):
                    await caller.metered(meter)(model, asked(TEXTS[0]))
                await caller.close()
                await model.close()

            asyncio.run(ask())
        assert server.direct == []


@pytest.mark.parametrize(
    ("provider", "how"),
    [("openai", "status"), ("openai", "upload"), ("anthropic", "upload")],
)
def test_a_refused_batch_names_the_direct_way(
    tmp_path: Path, provider: str, how: str
) -> None:
    """A provider that takes no batch ends the run with its own words; nothing is sent again."""
    said = {
        "error": {
            "message": "this model has no batches",
            "type": "invalid_request_error",
        }
    }

    def step(name: str, seen: Seen) -> Answer | None:
        first = "create" if provider == "anthropic" else "upload"
        return (
            Answer(status=400, body=said) if how == "upload" and name == first else None
        )

    with batch_server(step=step) as server:
        server.refusal = "this model has no batches" if how == "status" else ""
        done = BatchRuns(tmp_path, server, provider).run(TEXTS)
        (why,) = done.stops.values()
        assert "the provider took no batch" in why
        assert "this model has no batches" in why
        assert why.endswith("leave --batch out to ask directly")
        assert not any(isinstance(one, Reply) for one in done.results)
        assert len(server.batches) <= 1
        assert server.direct == []


@wires
@pytest.mark.parametrize(
    ("was_taken", "ahead"), [(True, 0), (True, DAY), (True, -DAY), (False, 0)]
)
def test_a_creation_without_an_answer_is_looked_up_before_it_is_tried_again(
    tmp_path: Path, provider: str, was_taken: bool, ahead: float
) -> None:
    """The line breaks while a batch is made: one that was made is found, at any time of day."""
    broken: list[str] = []

    def step(name: str, seen: Seen) -> Answer | None:
        if name != "create" or broken:
            return None
        broken.append(name)
        return Answer(status=0 if was_taken else 1, action="reset")

    with batch_server(step=step) as server:
        runs = BatchRuns(tmp_path, server, provider)
        runs.run(TEXTS[:2])
        broken.clear()
        with pytest.MonkeyPatch.context() as patch:
            clock = SimpleNamespace(
                time=lambda: time.time() + ahead, monotonic=time.monotonic
            )
            patch.setattr(waves, "time", clock)
            assert runs.run(TEXTS).texts == ANSWERS
        assert len(server.batches) == 2
        assert server.repeats == 0
    assert [wave.was_found for wave in runs.waves] == [was_taken] * 2


def test_a_batch_of_others_that_looks_alike_is_not_taken_for_ones_own(
    tmp_path: Path,
) -> None:
    """Anthropic's batches have no name: one of as many calls is read, and known by its results."""
    with batch_server() as server:
        begun: list[str] = []

        def step(name: str, seen: Seen) -> Answer | None:
            if name != "create" or begun:
                return None
            begun.append(name)
            calls = [
                {**one, "custom_id": f"x{one['custom_id']}"}
                for one in seen.body["requests"]
            ]
            server.create_messages(replace(seen, body={"requests": calls}))
            return Answer(status=500, body={"error": {"message": "later"}})

        server.step = step
        assert BatchRuns(tmp_path, server, "anthropic").run(TEXTS).texts == ANSWERS
        assert (len(server.batches), server.repeats) == (2, 0)


@wires
def test_an_outage_is_waited_out(tmp_path: Path, provider: str) -> None:
    """Looks that fail are no news of a batch, and results that break off are read again."""
    fails = {"status": 2, "results": 1}

    def step(name: str, seen: Seen) -> Answer | None:
        if not fails.get(name):
            return None
        fails[name] -= 1
        return Answer(status=503, body={"error": {"message": "down"}})

    with batch_server(step=step) as server:
        assert BatchRuns(tmp_path, server, provider).run(TEXTS).texts == ANSWERS
        assert len(server.batches) == 1


@wires
def test_a_batch_that_the_key_does_not_know_is_not_resent(
    tmp_path: Path, provider: str
) -> None:
    """Another account has it, or it was deleted: the user says which, and nothing is paid twice."""
    with batch_server(looks=3) as server:
        runs = BatchRuns(tmp_path, server, provider)
        runs.run(TEXTS, replace(QUICK, wait=0.0))
        (name,) = server.batches
        gone = server.batches.pop(name)
        (why,) = runs.run(TEXTS).stops.values()
        assert f"does not know the batch {name}" in why
        assert "--cancel" in why
        assert server.batches == {}
        server.batches[name] = gone
        assert runs.run(TEXTS).texts == ANSWERS


def test_no_key_is_shown_or_sent_elsewhere(tmp_path: Path) -> None:
    """Results come from the server that was asked, wherever their address leads; no key is kept."""
    with batch_server() as server, batch_server() as thief:
        shown = server.shown_message
        server.shown_message = lambda seen, batch: {  # type: ignore[method-assign]
            **shown(seen, batch),
            "results_url": f"{thief.url}/v1/messages/batches/x/results",
        }
        runs = BatchRuns(tmp_path, server, "anthropic")
        done = runs.run(TEXTS)
        assert thief.loopback.count == 0
        assert done.texts == ANSWERS
        assert SECRET not in repr(runs.waves) + repr(done)


def test_runs_at_one_moment_share_their_batches(
    place: LedgerPlace, tmp_path: Path
) -> None:
    """What one gives away the others wait for, in a file or a database; each is paid for once."""
    with batch_server(looks=4) as server:
        runs = [BatchRuns(tmp_path, server, "openai", place) for _ in range(3)]
        with ThreadPoolExecutor() as pool:
            done = list(pool.map(lambda run: run.run(TEXTS), runs))
        assert [one.texts for one in done] == [ANSWERS] * 3
        assert runs[0].run(TEXTS).texts == ANSWERS
        assert (server.repeats, server.direct) == (0, [])


@wires
def test_a_deadline_of_the_run_ends_the_wait(tmp_path: Path, provider: str) -> None:
    """--deadline holds for batches too; what was sent is there for the next run."""
    with batch_server(looks=10**6) as server:
        runs = BatchRuns(tmp_path, server, provider)
        assert set(runs.run(TEXTS, seconds=0.5).texts) == {"deadline"}
        server.looks = 0
        assert runs.run(TEXTS).texts == ANSWERS
        assert len(server.batches) == 1


def test_a_failing_ledger_lets_no_call_wait(tmp_path: Path, monkeypatch: Patch) -> None:
    """A full disk while results are read ends the run; the batch is there for the next one."""

    async def full(ledger: Ledger, row: PaidReply) -> None:
        raise LedgerError("the disk is full")

    with batch_server() as server:
        runs = BatchRuns(tmp_path, server, "openai")
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "put", full)
            with pytest.raises(LedgerError, match="the disk is full"):
                runs.run(TEXTS)
        assert runs.run(TEXTS).texts == ANSWERS
        assert len(server.batches) == 1


def test_a_wave_that_was_read_but_not_noted_so_is_in_nobodys_way(
    tmp_path: Path,
) -> None:
    """A run is killed after the last reply is kept: nothing is asked again, and others go on."""
    with batch_server() as server:
        runs = BatchRuns(tmp_path, server, "openai")
        runs.run(TEXTS[:4], replace(QUICK, wait=0.0))
        (before,) = runs.waves
        runs.run(TEXTS[:4])
        with Ledger(runs.place) as ledger:
            asyncio.run(keep_wave(ledger, before))
        assert runs.run(TEXTS).texts == ANSWERS
        assert (server.sizes, server.repeats) == ([4, 8], 0)


def runs_in(place: LedgerPlace) -> list[tuple[str, float]]:
    """Return by which run, and when, each reply of a ledger was asked for."""
    with closing(open_store(place, read_only=True)) as store:
        return store.read("SELECT DISTINCT run, at FROM calls ORDER BY at")


@pytest.mark.parametrize("settings", [QUICK, None])
def test_a_batch_of_another_run_is_waited_for_where_its_replies_count(
    tmp_path: Path, settings: BatchSettings | None
) -> None:
    """They are kept as that run's, asked when it sent the batch."""
    with batch_server() as server:
        runs = BatchRuns(tmp_path, server, "openai")
        runs.run(TEXTS[:4], replace(QUICK, wait=0.0), kept=Kept(run="first"))
        (wave,) = runs.waves
        second = Kept(run="second", since=wave.at)
        assert runs.run(TEXTS[:4], settings, kept=second).texts == ANSWERS[:4]
        assert (server.sizes, server.direct) == ([4], [])
        assert runs_in(runs.place) == [("first", wave.at)]


def test_a_batch_of_another_run_is_not_waited_for_where_its_replies_are_too_old(
    tmp_path: Path,
) -> None:
    """What a run is to ask itself goes into a batch of its own."""
    with batch_server() as server:
        runs = BatchRuns(tmp_path, server, "openai")
        runs.run(TEXTS[:4], replace(QUICK, wait=0.0), kept=Kept(run="first"))
        second = Kept(run="second", since=NEVER)
        assert runs.run(TEXTS[:4], kept=second).texts == ANSWERS[:4]
        assert server.sizes == [4, 4]
        _, wave = runs.waves
        assert runs_in(runs.place) == [("second", wave.at)]
        assert runs.run(TEXTS[:4], kept=Kept(run="first", since=NEVER)).sent == 0


def test_a_run_with_calls_at_a_provider_is_open(tmp_path: Path) -> None:
    with batch_server() as server:
        runs = BatchRuns(tmp_path, server, "openai")
        runs.run(TEXTS[:4], replace(QUICK, wait=0.0), kept=Kept(run="first"))
        with Ledger(runs.place, read_only=True) as ledger:
            assert open_runs(ledger) == {"first"}
        runs.run(TEXTS[:4], kept=Kept(run="first"))
        with Ledger(runs.place, read_only=True) as ledger:
            assert open_runs(ledger) == frozenset()


@wires
def test_what_a_full_queue_refuses_is_sent_later(tmp_path: Path, provider: str) -> None:
    """Providers bound what is queued: the second part goes when the first is over."""

    def step(name: str, seen: Seen) -> Answer | None:
        waiting = any(
            not (one.refusal or server.is_over(one)) for one in server.batches.values()
        )
        if provider == "openai":
            server.refusal = (
                "token_limit_exceeded" if waiting and name == "create" else ""
            )
            return None
        said = {"error": {"type": "rate_limit_error", "message": "too much is queued"}}
        return Answer(status=429, body=said) if waiting and name == "create" else None

    with batch_server(looks=12, step=step) as server:
        done = BatchRuns(tmp_path, server, provider).run(
            TEXTS, batch=BatchLimits(calls=6)
        )
        assert (done.texts, done.stops, server.repeats) == (ANSWERS, {}, 0)
        assert [
            len(one.lines) for one in server.batches.values() if not one.refusal
        ] == [6, 6]


def test_a_queue_that_empties_after_the_last_refusal_takes_the_rest(
    tmp_path: Path,
) -> None:
    """What was refused while another batch was out is sent again, though none is out any more."""
    refused = list[str]()

    def step(name: str, seen: Seen) -> Answer | None:
        if name != "create" or not server.batches or len(refused) == waves.TRIES:
            return None
        refused.append(name)
        if len(refused) == waves.TRIES:
            server.looks = 0  # the batch is over before the run goes on
        said = {"error": {"type": "rate_limit_error", "message": "too much is queued"}}
        return Answer(status=429, body=said)

    with batch_server(looks=10**9, step=step) as server:
        done = BatchRuns(tmp_path, server, "anthropic").run(
            TEXTS, batch=BatchLimits(calls=6)
        )
        assert (done.texts, done.stops, server.sizes) == (ANSWERS, {}, [6, 6])


@tabled("provider", "step", "is_done")
def test_a_killed_run_goes_on(
    tmp_path: Path, provider: str, step: str, is_done: bool
) -> None:
    """Before and after each request of the way: one batch in the end, and every reply."""
    kill: list[Callable[[], object]] = []

    def on(name: str, seen: Seen) -> Answer | None:
        if name != step or not kill:
            return None
        kill.pop()()
        # Carried out or not, nobody hears of it.
        return Answer(status=0 if is_done else 1, action="reset", delay=0.05)

    with batch_server(step=on) as server:
        runs = BatchRuns(tmp_path, server, provider)
        runs.run_killed(TEXTS[:8], kill.append)
        assert runs.run(TEXTS[:8]).texts == ANSWERS[:8]
        assert (server.sizes, server.repeats, server.direct) == ([8], 0, [])
        assert [wave.state for wave in runs.waves][-1] == "read"


@pytest.mark.parametrize(
    ("announced", "seconds"),
    [(None, 4.0), (30.0, 30.0), (86_400.0, 120.0), (float("inf"), 120.0)],
)
def test_a_server_cannot_make_a_batch_wait_for_a_day(
    announced: float | None, seconds: float
) -> None:
    poller: Any = SimpleNamespace(_settings=SimpleNamespace(pause=1.0))
    failure = TransientError("rate_limit", "later", announced)
    assert waves.BatchPoller._pause_after(poller, failure, 2) == seconds
