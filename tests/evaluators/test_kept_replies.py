"""Several runs keep a reply to one request; a look-up says which of them count."""

import asyncio
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.command import main
from qagate.evaluators.core import Reply
from qagate.evaluators.kept_requests import judge_identity, request_key
from qagate.evaluators.ledger import KeptReply, Ledger, PaidReply
from qagate.evaluators.ledger.kept import ANY, NEVER, Kept
from qagate.evaluators.ledger.place import LedgerPlace
from qagate.evaluators.ledger.runs import RunIdentity
from qagate.evaluators.runtime.caller import Caller, CallSettings, Meter
from tests.support.places import ask, change
from tests.support.recorded import key_of, put, reply_in
from tests.support.scripted import Scripted, ask_for

KEY = key_of(0)
RUNS = ("a", "b", "c")


def paid(run: str, at: float, key: str = KEY) -> PaidReply:
    return PaidReply(
        key=key, spec="openai:m", reply=Reply(text=f"{run} {at}"), run=run, at=at
    )


@pytest.fixture
def three_runs(place: LedgerPlace) -> LedgerPlace:
    """Return a ledger in which the runs a, b and c asked the same at 1, 2 and 3."""
    with Ledger(place) as ledger:
        put(ledger, [paid("a", 1.0), paid("b", 2.0), paid("c", 3.0)])
    return place


def text_of_newest(place: LedgerPlace, kept: Kept) -> str | None:
    with Ledger(place, read_only=True) as ledger:
        reply = ledger.get(KEY, kept)
    return None if reply is None else reply.text


def test_the_newest_reply_of_all_runs_is_found(three_runs: LedgerPlace) -> None:
    assert text_of_newest(three_runs, ANY) == "c 3.0"


def test_a_reply_before_since_does_not_count(three_runs: LedgerPlace) -> None:
    assert text_of_newest(three_runs, Kept(since=3.5)) is None


def test_a_reply_at_since_counts(three_runs: LedgerPlace) -> None:
    assert text_of_newest(three_runs, Kept(since=3.0)) == "c 3.0"


def test_a_run_has_its_own_reply_however_old(three_runs: LedgerPlace) -> None:
    assert text_of_newest(three_runs, Kept(run="a", since=NEVER)) == "a 1.0"


def test_no_run_has_replies_of_its_own(place: LedgerPlace) -> None:
    """What a command kept that is no run is another's, also to one that is none."""
    with Ledger(place) as ledger:
        put(ledger, [paid("", 1.0)])
    assert text_of_newest(place, Kept(run="", since=NEVER)) is None


def test_a_newer_reply_of_another_run_comes_before_an_own_one(
    three_runs: LedgerPlace,
) -> None:
    assert text_of_newest(three_runs, Kept(run="a", since=2.0)) == "c 3.0"


def test_where_a_reply_comes_from_is_said(three_runs: LedgerPlace) -> None:
    with Ledger(three_runs) as ledger:
        kept = asyncio.run(ledger.find(KEY, Kept(run="b", since=NEVER)))
    assert kept == KeptReply(reply=Reply(text="b 2.0"), at=2.0, run="b")


def test_a_run_keeps_its_first_reply(place: LedgerPlace) -> None:
    with Ledger(place) as ledger:
        put(ledger, [paid("a", 1.0)])
        put(ledger, [paid("a", 2.0)])
    assert text_of_newest(place, ANY) == "a 1.0"


def test_a_damaged_newest_reply_leaves_the_one_before(three_runs: LedgerPlace) -> None:
    change(three_runs, "UPDATE calls SET reply = 'x' WHERE run = 'c'")
    assert text_of_newest(three_runs, ANY) == "b 2.0"
    with Ledger(three_runs) as ledger:
        assert reply_in(ledger.look_up(KEY)) == Reply(text="b 2.0")
        assert "1 damaged row" in str(ledger.notes)
    assert ask(three_runs, "SELECT count(*) FROM calls") == 2


@pytest.mark.parametrize("damage", ["run = 'd'", "at = 9.0"])
def test_a_reply_does_not_change_its_run_or_its_time(
    three_runs: LedgerPlace, damage: str
) -> None:
    """Otherwise an old reply could be made a new one of this run."""
    change(three_runs, f"UPDATE calls SET {damage} WHERE run = 'a'")
    assert text_of_newest(three_runs, Kept(run="d", since=4.0)) is None


def test_a_claim_gives_only_a_reply_that_counts(three_runs: LedgerPlace) -> None:
    async def claimed(ledger: Ledger, kept: Kept) -> Reply | None:
        async with ledger.claim(KEY, kept) as found:
            return reply_in(found)

    with Ledger(three_runs) as ledger:
        assert asyncio.run(claimed(ledger, Kept(run="d", since=NEVER))) is None
        assert asyncio.run(claimed(ledger, Kept(since=2.0))) == Reply(text="c 3.0")


def test_replies_of_all_runs_are_carried_elsewhere(
    three_runs: LedgerPlace, tmp_path: Path
) -> None:
    file = tmp_path / "out.jsonl"
    place = three_runs if isinstance(three_runs, Path) else three_runs.url
    assert main(["ledger", "export", str(file), "--ledger", str(place)]) == 0
    elsewhere = tmp_path / "elsewhere"
    with Ledger(elsewhere) as ledger:
        put(ledger, [paid("b", 7.0), paid("d", 0.5)])
    assert main(["ledger", "import", str(file), "--ledger", str(elsewhere)]) == 0
    with Ledger(elsewhere) as ledger:
        by_run = {
            run: reply_in(ledger.look_up(KEY, Kept(run=run, since=NEVER)))
            for run in ("a", "b", "c", "d")
        }
    texts = {"a": "a 1.0", "b": "b 7.0", "c": "c 3.0", "d": "d 0.5"}
    assert by_run == {run: Reply(text=text) for run, text in texts.items()}


ROWS = st.dictionaries(st.sampled_from(RUNS), st.integers(0, 5), max_size=3)
KEPT = st.builds(
    Kept,
    run=st.sampled_from(["", *RUNS, "d"]),
    since=st.sampled_from([0.0, 1.0, 2.0, 3.0, 5.0, 6.0, NEVER]),
    without=st.sampled_from(["", *RUNS]),
)


def test_the_newest_row_that_counts_is_found(memory: Path) -> None:
    """Whatever is kept, in one query with other look-ups or alone: ``Kept.counts`` decides."""
    numbers = count()

    @settings(max_examples=150, deadline=None)
    @given(by_key=st.lists(st.tuples(ROWS, KEPT), min_size=1, max_size=4))
    def is_found(by_key: list[tuple[dict[str, int], Kept]]) -> None:
        keys = [key_of(next(numbers)) for _ in by_key]
        rows = []
        for key, (ages, _) in zip(keys, by_key, strict=True):
            rows += [paid(run, float(at), key) for run, at in ages.items()]
        put(ledger, rows)
        for key, (ages, kept) in zip(keys, by_key, strict=True):
            counting = [
                (at, run) for run, at in ages.items() if kept.counts(run, float(at))
            ]
            expected = None
            if counting:
                at, run = max(counting)
                expected = KeptReply(
                    reply=Reply(text=f"{run} {float(at)}"), at=float(at), run=run
                )
            assert ledger.look_up(key, kept) == expected

    with Ledger(memory / "l") as ledger:
        is_found()


def test_look_ups_in_one_query_each_have_their_own_kept(place: LedgerPlace) -> None:
    async def all_at_once(ledger: Ledger) -> list[Reply | None]:
        found = await asyncio.gather(
            ledger.find(KEY, Kept(run="a", since=NEVER)),
            ledger.find(KEY, Kept(run="b", since=NEVER)),
            ledger.find(KEY, Kept(run="d", since=NEVER)),
            ledger.find(KEY),
        )
        return [reply_in(kept) for kept in found]

    with Ledger(place) as ledger:
        put(ledger, [paid("a", 1.0), paid("b", 2.0)])
        found = asyncio.run(all_at_once(ledger))
    assert found == [
        Reply(text="a 1.0"),
        Reply(text="b 2.0"),
        None,
        Reply(text="b 2.0"),
    ]


# The caller, by the same Kept.


def caller_of(ledger: Ledger, run: str) -> Caller:
    return Caller(
        ledger,
        CallSettings(),
        lambda *_: 0.0,
        run=RunIdentity(id=run, started=0.0),
    )


def answering(text: str, url: str = "https://x.example/v1") -> Scripted:
    return Scripted(lambda _: Reply(text=text), base_url=url)


def answer_of(caller: Caller, model: Scripted, kept: Kept) -> str:
    async def answer() -> str:
        meter = Meter(price=lambda *_: 0.0)
        reply = await caller.metered(meter, answers=kept)(model, ask_for("q"))
        return reply.text

    return asyncio.run(answer())


def test_a_run_that_takes_only_its_own_asks_and_keeps_both(place: LedgerPlace) -> None:
    with Ledger(place) as ledger:
        answer_of(caller_of(ledger, "old"), answering("old"), ANY)
        model = answering("new")
        only_own = Kept(run="new", since=NEVER)
        for _ in range(2):
            assert answer_of(caller_of(ledger, "new"), model, only_own) == "new"
        assert len(model.requests) == 1
        assert answer_of(caller_of(ledger, "old"), model, Kept(run="old", since=NEVER))
    assert ask(place, "SELECT count(*) FROM calls") == 2
    assert len(model.requests) == 1


def test_two_items_that_ask_the_same_send_it_once(tmp_path: Path) -> None:
    """Also where one of them takes older replies and the other only those of this run."""
    model = answering("new")

    async def both(caller: Caller) -> None:
        asks = [
            caller.metered(Meter(price=lambda *_: 0.0), answers=kept)
            for kept in (ANY, Kept(run="new", since=NEVER))
        ]
        await asyncio.gather(*(ask(model, ask_for("q")) for ask in asks))

    with Ledger(tmp_path / "l") as ledger:
        asyncio.run(both(caller_of(ledger, "new")))
    assert len(model.requests) == 1


def test_a_meter_says_where_the_oldest_reply_comes_from(tmp_path: Path) -> None:
    """Of the replies that made the answer, and apart from them of those that judged it."""
    model = answering("new")
    key = request_key(model.identity, ask_for("first"))
    meter = Meter(price=lambda *_: 0.0)

    async def answer_and_judge(caller: Caller) -> None:
        asking = caller.metered(meter)
        for question in ("first", "second"):
            await asking(model, ask_for(question))
        meter.end_answer()
        await asking(model, ask_for("is it right?"))

    with Ledger(tmp_path / "l", clock=lambda: 50.0) as ledger:
        put(ledger, [paid("old", 7.0, key)])
        asyncio.run(answer_and_judge(caller_of(ledger, "new")))
    assert (meter.asked.at, meter.asked.run) == (7.0, "old")
    assert (meter.graded.at, meter.graded.run) == (50.0, "new")


HERE = ("localhost", "127.0.0.1", "[::1]", "0.0.0.0", "models.localhost")


@pytest.mark.parametrize("host", HERE)
def test_a_port_of_this_machine_is_no_part_of_a_judge(host: str) -> None:
    first, second = (
        judge_identity({"base_url": f"http://{host}:{port}/v1", "name": "j"})
        for port in (8000, 9000)
    )
    assert first == second == {"base_url": f"http://{host}/v1", "name": "j"}


def test_a_port_of_another_machine_is_part_of_a_judge() -> None:
    identity = {"base_url": "https://models.example:8443/v1", "name": "j"}
    assert judge_identity(identity) == identity


@pytest.mark.parametrize(("is_answer", "requests"), [(True, 1), (False, 0)])
def test_a_local_judge_at_another_port_is_asked_nothing_again(
    tmp_path: Path, is_answer: bool, requests: int
) -> None:
    """Of a model under test every port may be another model."""
    first, second = (
        answering("x", f"http://127.0.0.1:{port}/v1") for port in (8000, 9000)
    )

    async def asked(ledger: Ledger, model: Scripted) -> None:
        meter = Meter(price=lambda *_: 0.0)
        if not is_answer:
            meter.end_answer()
        await caller_of(ledger, "r").metered(meter)(model, ask_for("q"))

    with Ledger(tmp_path / "l") as ledger:
        asyncio.run(asked(ledger, first))
        asyncio.run(asked(ledger, second))
    assert len(second.requests) == requests
