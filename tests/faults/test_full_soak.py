"""The soak of whole runs counts what it says, and finds nothing in a small part of it."""

import time
from pathlib import Path

import pytest

from tests.benchmarks.full_soak import (
    SETTLED_SECONDS,
    STORM_SECONDS,
    STORMS,
    Figures,
    Grounds,
    Provider,
    Site,
    few_files,
    kills,
)
from tests.support.loopback import Loopback, Seen

NOW = 1_000.0


def seen(prompt: str, at: float) -> Seen:
    body = {"messages": [{"role": "user", "content": prompt}]}
    return Seen(
        method="POST", path="/v1/chat/completions", headers={}, body=body, at=at
    )


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Return a site whose server is not started: tests say what it has seen."""
    provider = Provider()
    server = Loopback((), provider.answer)
    return Site(folder=tmp_path, items=1, provider=provider, server=server)


@pytest.mark.parametrize(
    ("left_at", "asked_at", "late"),
    [
        (NOW - 2 * SETTLED_SECONDS, NOW + 1, 1),
        (NOW - SETTLED_SECONDS / 2, NOW + 1, 0),
        (NOW - 2 * SETTLED_SECONDS, NOW - 1, 0),
    ],
    ids=["settled", "just-left", "asked-before"],
)
def test_a_reply_is_late_if_it_had_left_well_before_the_kill_and_is_asked_again(
    site: Site, left_at: float, asked_at: float, late: int
) -> None:
    site.server.delivered = [(seen("q", NOW - 5), left_at)]
    site.server.requests = [seen("q", asked_at)]
    assert site._late(NOW) == late


def test_the_recovery_is_the_time_to_the_next_reply(site: Site) -> None:
    """One that was under way does not count."""
    site.server.delivered = [
        (seen("a", NOW - 1), NOW + 1),
        (seen("b", NOW + 2), NOW + 3),
        (seen("c", NOW + 2), NOW + 9),
    ]
    assert site.recovery(NOW) == 3.0
    assert site.recovery(NOW + 10) is None


def test_a_server_that_was_killed_keeps_what_it_saw(site: Site) -> None:
    site.server.start()
    site.server.delivered = [(seen("q", NOW), NOW)]
    site.server.requests = [seen("q", NOW)]
    site.kill_server(0.0)
    site.server.stop()
    assert [left_at for _, left_at in site.replies] == [NOW]
    assert [request.prompt for request in site.requests] == ["q"]


def test_a_storm_begins_after_some_requests_and_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:

    clock = [NOW]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    provider = Provider(storm=STORMS["429 after what is left"], storm_after=1)
    statuses = [provider.answer(seen("q", NOW)).status for _ in range(2)]
    clock[0] += STORM_SECONDS
    statuses.append(provider.answer(seen("q", NOW)).status)
    assert (statuses, provider.wasted) == ([200, 429, 200], 1)


def test_a_trial_says_what_must_not_be() -> None:
    line = str(Figures(name="kill 1", calls=3, lost=1, problems=("a lost item",)))
    assert line == "kill 1: 3 calls, wrong 0, lost 1, twice 0, late 0, a lost item"


@pytest.mark.slow
def test_a_killed_engine_loses_nothing(tmp_path: Path) -> None:
    (figures,) = kills(Grounds(folder=tmp_path, items=24, part=0.01))
    assert figures.problems == ()
    assert figures.struck


@pytest.mark.slow
def test_too_few_files_are_found_before_the_first_call(tmp_path: Path) -> None:
    (figures,) = few_files(Grounds(folder=tmp_path, items=6))
    assert figures.problems == ()
