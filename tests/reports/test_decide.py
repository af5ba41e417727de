"""Claims about the exit code and the last line: one row for each way a session can end."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases.dataset import Threshold
from evaluators.statistics.intervals import Estimate
from reports.gates.decide import SessionFacts, decide
from reports.run.report import GateResult, GateState

P: GateState = "PASS"
F: GateState = "FAIL"
I: GateState = "INCONCLUSIVE"  # noqa: E741 - the table below is read by its letters


def gates(*states: GateState) -> list[GateResult]:
    return [
        GateResult(
            dataset="simpleqa",
            language="bg",
            threshold=Threshold(measure=f"m{number}", min=0.3),
            state=state,
            estimate=Estimate(value=None, low=None, high=None, n=0),
            worst=None,
            best=None,
            reason="",
        )
        for number, state in enumerate(states)
    ]


def facts(**fields: object) -> SessionFacts:
    return SessionFacts(**{"selected": 500, **fields})  # type: ignore[arg-type]


TABLE = [
    # every gate PASS and nothing failed but misses that the gates counted
    ((P, P), facts(), 0, "GATES PASS (2 of 2): exit 0; 0 misses are counted in the measures"),
    (
        (P,) * 7,
        facts(misses=152, pytest_code=1),
        0,
        "GATES PASS (7 of 7): exit 0; 152 misses are counted in the measures",
    ),
    (
        (P,),
        facts(misses=1, errors=2, missing=1, pytest_code=1),
        0,
        "GATES PASS (1 of 1): exit 0; 1 miss is counted in the measures, 3 ungraded items would "
        "not change it",
    ),
    (
        (P,),
        facts(placeholder_judge=True),
        0,
        "GATES PASS (1 of 1): exit 0; 0 misses are counted in the measures; a placeholder judge "
        "graded: this tests the setup, not a model",
    ),
    # -x under xdist ends with pytest's code 2, and nobody interrupted
    (
        (P,),
        facts(misses=1, missing=9, pytest_code=2),
        0,
        "GATES PASS (1 of 1): exit 0; 1 miss is counted in the measures, 9 ungraded items would "
        "not change it",
    ),
    # a gate FAIL, or a failure that is no graded miss
    (
        (P, F, I),
        facts(misses=9, pytest_code=1),
        1,
        "GATES FAIL (1 of 3 failed): exit 1; simpleqa:bg m1",
    ),
    (
        (F,) * 5,
        facts(),
        1,
        "GATES FAIL (5 of 5 failed): exit 1; simpleqa:bg m0, simpleqa:bg m1, simpleqa:bg m2 and 2 "
        "more",
    ),
    (
        (F,),
        facts(other_failures=2, pytest_code=1),
        1,
        "GATES FAIL (1 of 1 failed): exit 1; simpleqa:bg m0; 2 failures that no item accounts for",
    ),
    (
        (P,),
        facts(other_failures=1, pytest_code=1),
        1,
        "GATES PASS (1 of 1): exit 1; 1 failure that no item accounts for",
    ),
    (
        (P, I),
        facts(other_failures=1, pytest_code=1),
        1,
        "GATES INCONCLUSIVE (1 of 2): exit 1; 1 failure that no item accounts for",
    ),
    (
        (),
        facts(other_failures=1, pytest_code=1),
        1,
        "NO GATES: exit 1; 1 failure that no item accounts for",
    ),
    # a code that the counts do not explain is never turned into 0
    (
        (P,),
        facts(pytest_code=1),
        1,
        "GATES PASS (1 of 1): exit 1; 1 failure that no item accounts for",
    ),
    (
        (P,),
        facts(pytest_code=2),
        1,
        "GATES PASS (1 of 1): exit 1; 1 failure that no item accounts for",
    ),
    # interrupted
    (
        (F, I),
        facts(interrupted=True, pytest_code=2, missing=100, errors=15, stopped=5),
        2,
        "INTERRUPTED: exit 2; 380 of 500 answered and kept, no gate decides; "
        "run the same command again for the rest",
    ),
    (
        (),
        facts(interrupted=True, gates_off=True, dry_run=True),
        2,
        "INTERRUPTED: exit 2; 500 of 500 answered and kept, no gate decides; "
        "run the same command again for the rest",
    ),
    # pytest's own
    ((P,), facts(pytest_code=3), 3, "pytest ended with an internal error: exit 3"),
    ((), facts(dry_run=True, pytest_code=3), 3, "pytest ended with an internal error: exit 3"),
    ((), facts(pytest_code=4), 4, "pytest ended with a usage error: exit 4"),
    ((), facts(selected=0, pytest_code=5), 5, "no item selected: exit 5"),
    ((), facts(selected=0, other_failures=1, pytest_code=1), 1, "no item selected: exit 1"),
    ((P,), facts(pytest_code=77), 77, "exit 77, as pytest or a plugin has it"),
    # nothing graded, and the reason known
    (
        (I,),
        facts(errors=1, missing=498, stopped=1, cause="m: HTTP 401", pytest_code=1),
        4,
        "NOTHING GRADED: exit 4; m: HTTP 401",
    ),
    (
        (I,),
        facts(errors=1, missing=498, cause="m: HTTP 401", pytest_code=1),
        6,
        "GATES INCONCLUSIVE (1 of 1): exit 6; simpleqa:bg m0",
    ),
    (
        (I,),
        facts(errors=1, missing=499, cause="m: HTTP 401", other_failures=1, pytest_code=1),
        1,
        "GATES INCONCLUSIVE (1 of 1): exit 1; 1 failure that no item accounts for",
    ),
    (
        (),
        facts(errors=1, missing=499, cause="m: HTTP 401", gates_off=True, pytest_code=1),
        1,
        "gates off: exit 1, as pytest has it",
    ),
    # no FAIL, and something left open
    (
        (P, I, I),
        facts(misses=3, pytest_code=1),
        6,
        "GATES INCONCLUSIVE (2 of 3): exit 6; simpleqa:bg m1, simpleqa:bg m2",
    ),
    ((), facts(), 6, "NO GATES: exit 6; 500 items selected, no gate decides"),
    (
        (),
        facts(selected=1, misses=1, ungated=("simpleqa:bg",), pytest_code=1),
        6,
        "NO GATES: exit 6; 1 item selected, no gate decides",
    ),
    (
        (P, P),
        facts(ungated=("simpleqa:pl",)),
        6,
        "NO GATE for simpleqa:pl: exit 6; GATES PASS (2 of 2) elsewhere",
    ),
    (
        (P,),
        facts(misses=4, ungated=("a:bg", "a:pl", "a:hu", "a:en"), pytest_code=1),
        6,
        "NO GATE for a:bg, a:pl, a:hu and 1 more: exit 6; GATES PASS (1 of 1) elsewhere",
    ),
    (
        (P, I),
        facts(ungated=("simpleqa:pl",)),
        6,
        "GATES INCONCLUSIVE (1 of 2): exit 6; simpleqa:bg m1",
    ),
    # --dry-run and --gates off
    (
        (),
        facts(dry_run=True, pytest_code=5),
        0,
        "dry run: exit 0; 500 items planned, no call made",
    ),
    (
        (),
        facts(dry_run=True, other_failures=1, pytest_code=2),
        1,
        "NO GATES: exit 1; 1 failure that no item accounts for",
    ),
    ((F,), facts(gates_off=True), 0, "gates off: exit 0, as pytest has it"),
    (
        (P,),
        facts(gates_off=True, misses=1, pytest_code=1),
        1,
        "gates off: exit 1, as pytest has it",
    ),
]


@pytest.mark.parametrize(("states", "session", "code", "line"), TABLE)
def test_exit_code_and_last_line(
    states: Sequence[GateState], session: SessionFacts, code: int, line: str
) -> None:
    """The contract, row by row."""
    given_gates = gates(*states)
    decision = decide(given_gates, session)
    assert (decision.code, decision.line) == (code, line)
    assert decision.gates == tuple(given_gates)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([P, F, I]), max_size=4),
    st.builds(
        SessionFacts,
        **{
            name: st.integers(0, 2)
            for name in ("selected", "misses", "other_failures", "errors", "missing")
        },
        ungated=st.lists(st.just("simpleqa:pl"), max_size=1).map(tuple),
        interrupted=st.booleans(),
        pytest_code=st.sampled_from([0, 1, 2]),
    ),
)
def test_zero_means_that_everything_passed(states: list[GateState], session: SessionFacts) -> None:
    """Exit 0 with items selected: at least one gate, all PASS, and no slice without one."""
    decision = decide(gates(*states), session)
    if decision.code == 0 and session.selected:
        assert set(states) == {P}
        assert not (session.other_failures or session.ungated or session.interrupted)
    assert f"exit {decision.code}" in decision.line
