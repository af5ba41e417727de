"""Which run a process belongs to: one command with its shards, attempts and repeats."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.evaluators.ledger import Ledger
from qagate.evaluators.ledger.place import LedgerPlace
from qagate.evaluators.ledger.runs import (
    LONGEST_RUN_SECONDS,
    WHOLE,
    KnownRun,
    RunName,
    RunPart,
    RunProcess,
    begin_run,
    current_run,
    end_run,
    goes_on_with,
    last_run,
    run_name,
    with_end,
)
from qagate.evaluators.run_identity import NO_RUN, RunIdentity
from tests.support.places import change, text_of

COMMAND = ["simpleqa", "openai:m"]
STARTED = 1_000_000.0
HOUR = 3600.0


def process_of(
    number: int = 1,
    of: int = 1,
    command: list[str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> RunProcess:
    return RunProcess(
        name=run_name(command or COMMAND, environment or {}),
        parts=(RunPart(number, of),),
    )


def begun(place: LedgerPlace, process: RunProcess, hours: float = 0.0) -> RunIdentity:
    with Ledger(place) as ledger:
        return begin_run(ledger, process, STARTED + hours * HOUR)


def ended(
    place: LedgerPlace, process: RunProcess, code: int, run: RunIdentity | None = None
) -> RunIdentity:
    """Begin a process, unless its run is given, and end it an hour later."""
    with Ledger(place) as ledger:
        run = run or begin_run(ledger, process, STARTED)
        end_run(ledger, process, run, STARTED + HOUR, code)
    return run


# Names.


def test_the_command_names_a_run() -> None:
    assert run_name(COMMAND, {}) == run_name(COMMAND, {"HOME": "/root"})
    assert run_name(COMMAND, {}) != run_name(["simpleqa", "openai:other"], {})


@pytest.mark.parametrize("variable", ["GITHUB_RUN_ID", "CI_PIPELINE_ID"])
def test_a_ci_run_and_the_command_name_a_run(variable: str) -> None:
    name = run_name(COMMAND, {variable: "7"})
    assert name.is_given
    assert name != run_name(COMMAND, {variable: "8"})
    assert name != run_name(["simpleqa", "openai:other"], {variable: "7"})


def test_qa_run_alone_names_a_run() -> None:
    name = run_name(COMMAND, {"QA_RUN": "release", "GITHUB_RUN_ID": "7"})
    assert name == run_name(["another command"], {"QA_RUN": "release"})


# Which run is this? A process after another one.


def test_a_command_that_did_not_decide_goes_on_with_its_run(
    place: LedgerPlace,
) -> None:
    run = ended(place, process_of(), code=6)
    assert begun(place, process_of(), hours=2) == run


def test_a_run_never_goes_on_with_the_baselines(place: LedgerPlace) -> None:
    """Under one name both are asked: before a deployment and after it, in one CI run."""
    process = process_of(environment={"QA_RUN": "release"})
    old = ended(place, process, code=0)
    beside = replace(process, compared_with=frozenset({old.id}))
    new = begun(place, beside, hours=2)
    assert new != old
    assert begun(place, beside, hours=3) == new


def test_a_killed_command_goes_on_with_its_run(place: LedgerPlace) -> None:
    run = begun(place, process_of())
    assert begun(place, process_of(), hours=2) == run


@pytest.mark.parametrize("code", [0, 1])
def test_a_command_that_decided_begins_a_new_run(place: LedgerPlace, code: int) -> None:
    run = ended(place, process_of(), code)
    assert begun(place, process_of(), hours=2).id != run.id


def test_a_run_that_ci_names_goes_on_after_it_decided(place: LedgerPlace) -> None:
    """Another attempt of the same job is the same run."""
    process = process_of(environment={"GITHUB_RUN_ID": "7"})
    run = ended(place, process, code=1)
    assert begun(place, process, hours=2) == run


@pytest.mark.parametrize("environment", [{}, {"QA_RUN": "nightly"}])
def test_a_run_takes_twelve_hours_at_most(
    place: LedgerPlace, environment: dict[str, str]
) -> None:
    process = process_of(environment=environment)
    run = begun(place, process)
    assert begun(place, process, hours=12) == run
    assert begun(place, process, hours=12.1).id != run.id


def test_a_run_in_batches_takes_as_long_as_its_batches(place: LedgerPlace) -> None:
    run = begun(place, process_of())
    later = STARTED + 30 * HOUR
    with Ledger(place) as ledger:
        assert begin_run(ledger, process_of(), later, [run.id]) == run
        assert begin_run(ledger, process_of(), later, ["other"]) != run


def test_shards_that_begin_one_after_the_other_are_one_run(place: LedgerPlace) -> None:
    """Also where the first has decided before the second begins."""
    run = ended(place, process_of(1, 2), code=0)
    assert begun(place, process_of(2, 2), hours=1) == run


def test_a_shard_that_is_done_again_begins_a_new_run(place: LedgerPlace) -> None:
    run = ended(place, process_of(1, 2), code=0)
    assert begun(place, process_of(1, 2), hours=1).id != run.id


def test_a_run_is_over_with_its_last_shard(place: LedgerPlace) -> None:
    run = ended(place, process_of(1, 2), code=0)
    ended(place, process_of(2, 2), 1, run)
    assert begun(place, process_of(), hours=2).id != run.id


def test_another_command_is_another_run(place: LedgerPlace) -> None:
    run = begun(place, process_of())
    other = process_of(command=["simpleqa", "openai:other"])
    assert begun(place, other).id != run.id


def test_the_end_of_a_former_run_does_not_end_the_present_one(
    place: LedgerPlace,
) -> None:
    former = begun(place, process_of())
    present = begun(place, process_of(), hours=13)
    ended(place, process_of(), 0, former)
    assert begun(place, process_of(), hours=14) == present


def test_a_replay_finds_the_last_run_whenever_it_was(place: LedgerPlace) -> None:
    run = ended(place, process_of(), code=0)
    with Ledger(place, read_only=True) as ledger:
        known = last_run(ledger, process_of().name)
        assert last_run(ledger, process_of(command=["another"]).name) is None
    assert known is not None
    assert (known.identity, known.code) == (run, 0)


def test_a_look_at_the_run_keeps_nothing(place: LedgerPlace) -> None:
    Ledger(place).close()
    with Ledger(place, read_only=True) as ledger:
        assert current_run(ledger, process_of(), STARTED) == NO_RUN
        assert ledger.documents("run") == {}


def test_a_damaged_run_is_replaced(place: LedgerPlace) -> None:
    run = begun(place, process_of())
    change(place, "UPDATE documents SET text = 'x'")
    new = begun(place, process_of())
    assert new.id != run.id
    assert begun(place, process_of()) == new


BEGIN = """
import sys
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.ledger.place import read_place
from qagate.evaluators.ledger.runs import RunName, RunPart, RunProcess, begin_run

with Ledger(read_place(sys.argv[1])) as ledger:
    name = RunName(key="k", is_given=False)
    input()
    for number in range(20):
        part = RunPart(int(sys.argv[2]), 4)
        process = RunProcess(name=RunName(key=str(number), is_given=False), parts=(part,))
        print(begin_run(ledger, process, 1e6).id)
"""


@pytest.mark.slow
def test_shards_that_begin_at_the_same_time_are_one_run(place: LedgerPlace) -> None:
    """Four processes, twenty times: the first one that is kept is the run of all."""
    Ledger(place).close()
    shards = [
        subprocess.Popen(
            [sys.executable, "-c", BEGIN, text_of(place), str(number)],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in (1, 2, 3, 4)
    ]
    outputs = {shard.communicate("\n", timeout=60)[0] for shard in shards}
    (ids,) = outputs
    assert len(set(ids.split())) == 20


# The decision itself.

PARTS = st.integers(1, 3).flatmap(
    lambda of: st.builds(RunPart, st.integers(1, of), st.just(of))
)
KNOWN = st.builds(
    KnownRun,
    id=st.just("a"),
    started=st.just(STARTED),
    decided=st.frozensets(PARTS, max_size=4),
)
PROCESSES = st.builds(
    RunProcess,
    name=st.builds(RunName, key=st.just("k"), is_given=st.booleans()),
    parts=st.lists(PARTS, min_size=1, max_size=2).map(tuple),
)


@given(known=KNOWN, process=PROCESSES, seconds=st.floats(0, 2 * LONGEST_RUN_SECONDS))
def test_which_run_is_this(
    known: KnownRun, process: RunProcess, seconds: float
) -> None:
    """It belongs to the last run if that is young enough and lacks this process's parts."""
    now = STARTED + seconds
    belongs = goes_on_with(known, process, now, has_open_batches=False)
    is_young = seconds <= LONGEST_RUN_SECONDS
    if process.name.is_given:
        assert belongs == is_young
    elif belongs:
        assert is_young
        assert not known.decided.intersection(process.parts)
        assert RunPart() not in known.decided
    # Batches prolong a run and end none.
    with_batches = goes_on_with(known, process, now, has_open_batches=True)
    assert with_batches or not belongs
    # Once this process has decided it is over, unless somebody named it.
    over = with_end(known, process.parts, now, 0)
    goes_on = goes_on_with(over, process, now, has_open_batches=True)
    assert goes_on == process.name.is_given
    # An end that decides nothing changes nothing.
    undecided = with_end(known, process.parts, now, 6)
    assert goes_on_with(undecided, process, now, has_open_batches=False) == belongs


def test_a_run_without_shards_is_its_only_part() -> None:
    over = with_end(KnownRun(id="a", started=STARTED), WHOLE, STARTED, 1)
    sharded = process_of(2, 8)
    assert not goes_on_with(over, sharded, STARTED, has_open_batches=False)
    fresh = replace(over, decided=frozenset())
    assert goes_on_with(fresh, sharded, STARTED, has_open_batches=False)
