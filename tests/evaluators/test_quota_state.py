"""What a quota grants: never more than there is, whatever runs report, in whatever order."""

import json
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.runtime.quota_messages import Grant, MoneyNeed, Need, Report, ServerNews, lease
from evaluators.runtime.quota_state import QuotaState, fair

RATE, CALLS, CAP = 600.0, 10, 20.0


@dataclass
class Client:
    """A run as its quota knows it: it keeps no more than it was granted, and spends of that."""

    calls: int = 0
    spent: float = 0.0
    lease: float = 0.0

    def report(self, name: str, wanted: int, kept: float, paid: float, leaves: bool) -> Report:
        self.spent += paid * self.lease
        self.lease -= paid * self.lease
        self.calls = int(self.calls * kept)
        self.lease *= kept
        money = MoneyNeed(
            most=CAP, spent=self.spent, kept=self.lease, wanted=wanted / 4, first=wanted / 20
        )
        return Report(
            run=name,
            rates={"rate": Need(most=RATE, wanted=wanted)},
            calls={"calls": Need(most=CALLS, wanted=wanted, kept=self.calls)},
            money=money,
            leaves=leaves,
        )

    def use(self, grant: Grant) -> None:
        self.calls, _ = grant.calls["calls"]
        self.lease = grant.money


share = st.floats(0, 1)
STEPS = st.lists(
    st.tuples(
        st.sampled_from("abcd"), st.integers(0, 40), share, share, st.booleans(), st.floats(0, 2)
    ),
    max_size=40,
)


@settings(max_examples=60)
@given(steps=STEPS)
def test_no_more_is_granted_than_there_is(
    steps: list[tuple[str, int, float, float, bool, float]],
) -> None:
    """Slots have one owner; calls and money of all runs fit the limits; what was paid counts."""
    state, now = QuotaState(), 1e9
    clients: dict[str, Client] = {}
    lives: Counter[str] = Counter()  # who begins again is another run
    paid = 0.0
    for who, wanted, kept, spends, leaves, seconds in steps:
        now += seconds
        for gone in [one for one in clients if now > state.runs[one].until]:
            paid += clients.pop(gone).spent
            lives[gone[0]] += 1
        name = f"{who}{lives[who]}"
        client = clients.setdefault(name, Client())
        grant = state.report(client.report(name, wanted, kept, spends, leaves), now)
        if leaves:
            paid += clients.pop(name).spent
            lives[who] += 1
        else:
            client.use(grant)
        state = QuotaState.of_json(json.loads(json.dumps(state.as_json())))
        slots = Counter(slot for one in state.runs.values() for slot in one.slots["rate"])
        assert not slots or max(slots.values()) == 1
        assert sum(one.calls for one in clients.values()) <= CALLS
        known = state.spent + sum(state.dead.values())
        assert known >= paid - 1e-6
        assert known + sum(one.spent + one.lease for one in clients.values()) <= CAP + 1e-6


@given(wants=st.lists(st.floats(0, 100), min_size=1, max_size=8), whole=st.floats(0, 200))
def test_shares_are_fair(wants: list[float], whole: float) -> None:
    """Nobody gets more than it wants, nothing is left that somebody wants, none envies another."""
    shares = [fair(whole, wants, want) for want in wants]
    assert all(share <= want + 1e-9 for share, want in zip(shares, wants, strict=True))
    assert sum(shares) == pytest.approx(min(whole, sum(wants)), abs=1e-6)
    least = min((s for s, w in zip(shares, wants, strict=True) if s < w - 1e-6), default=None)
    assert least is None or max(shares) <= least + 1e-6


def test_what_a_run_that_comes_back_had_spent_counts_once() -> None:
    """It was taken as dead, with its lease as spent; its own report takes the place of that."""
    state = QuotaState()
    money = MoneyNeed(most=CAP, spent=3.0, kept=2.0)
    state.report(Report(run="a", money=money), 1000.0)
    late = 1000.0 + lease(1) + 1
    assert state.report(Report(run="b", money=MoneyNeed(most=CAP)), late).elsewhere == 5.0
    state.report(Report(run="a", money=money), late)
    assert state.report(Report(run="b", money=MoneyNeed(most=CAP)), late).elsewhere == 3.0


def test_a_clock_that_is_put_back_ends_what_was_leased() -> None:
    """Nothing that was booked in what is now the future holds anybody up."""
    state = QuotaState()
    said = Report(run="a", rates={"rate": Need(most=RATE, wanted=10)})
    assert state.report(said, 1e6).rates["rate"].times
    again = state.report(said, 1e6 - 86_400.0)
    assert again.runs == 1
    times = again.rates["rate"].times
    assert times and all(0 < at - again.now <= 2.5 for at in times)


def test_an_announced_pause_is_the_longest_that_any_run_was_told() -> None:
    """It holds for runs that ask the same server, and for no other one."""
    state = QuotaState()
    told = ServerNews(pause=20.0, announced=18.0)
    state.report(Report(run="a", servers={"one": told, "two": ServerNews()}), 1000.0)
    state.report(Report(run="b", servers={"one": ServerNews(pause=5.0)}), 1001.0)
    heard = state.report(Report(run="c", servers={"one": ServerNews()}), 1004.0).servers
    assert heard == {"one": ServerNews(pause=16.0, announced=14.0)}
