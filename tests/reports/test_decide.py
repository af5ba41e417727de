"""Claims about the exit code and the last line: one row for each way a session can end."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from cases.dataset import Threshold
from evaluators.statistics.intervals import Estimate
from reports.gates.decide import SessionFacts, decide
from reports.run.report import GateResult, GateState

STATES: dict[str, GateState] = {"P": "PASS", "F": "FAIL", "I": "INCONCLUSIVE"}


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


TABLE = Path(__file__).with_name("decide.txt").read_text(encoding="utf-8")


def rows() -> Iterator[tuple[list[GateState], SessionFacts, str]]:
    """Yield the gates' states, the session's facts and the last line of each row."""
    text = re.sub(r"\n {4,}", "\t", re.sub("(?m)^#.*\n", "", TABLE)).strip()
    tuples = "ungated", "unmet", "unpaired", "lost", "cautions"
    for row in text.splitlines():
        head, _, line = row.partition("\t")
        letters, _, given_facts = head.partition(" ")
        known = yaml.safe_load(given_facts)
        known |= {name: tuple(known.get(name, ())) for name in tuples}
        states = [STATES[one] for one in letters if one in STATES]
        yield states, SessionFacts(**{"selected": 500, **known}), line.replace("\t", " ")


@pytest.mark.parametrize(("states", "session", "line"), list(rows()))
def test_exit_code_and_last_line(
    states: Sequence[GateState], session: SessionFacts, line: str
) -> None:
    """The contract, row by row; each line names its exit code."""
    given_gates = gates(*states)
    decision = decide(given_gates, session)
    assert decision.line == line
    assert re.findall(r"\bexit (\d+)", line) == [str(decision.code)]
    assert decision.gates == tuple(given_gates)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([*STATES.values()]), max_size=4),
    st.builds(
        SessionFacts,
        **{
            name: st.integers(0, 2)
            for name in ("selected", "misses", "other_failures", "errors", "missing")
        },
        **{
            name: st.lists(st.just("simpleqa:pl"), max_size=1).map(tuple)
            for name in ("ungated", "unmet", "unpaired")
        },
        interrupted=st.booleans(),
        pytest_code=st.sampled_from([0, 1, 2]),
    ),
)
def test_zero_means_that_everything_passed(states: list[GateState], session: SessionFacts) -> None:
    """Exit 0 with items selected: at least one gate, all PASS, and no slice without one."""
    decision = decide(gates(*states), session)
    if decision.code == 0 and session.selected:
        assert set(states) == {"PASS"}
        assert not (session.other_failures or session.ungated or session.interrupted)
        assert not (session.unmet or session.unpaired)
    assert f"exit {decision.code}" in decision.line
