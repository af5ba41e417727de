"""Claims about the exit code and the last line: one row for each way a session can end."""

import re
from collections.abc import Iterator, Sequence

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


TABLE = """
# every gate PASS and nothing failed but misses that the gates counted
PP {}
    GATES PASS (2 of 2): exit 0
PPPPPPP {misses: 152, pytest_code: 1}
    GATES PASS (7 of 7): exit 0; 152 items missed, as the gates allow
P {misses: 1, errors: 2, missing: 1, pytest_code: 1}
    GATES PASS (1 of 1): exit 0; 1 item missed, as the gates allow; 3 ungraded items would not
    change it
P {placeholder_judge: true}
    GATES PASS (1 of 1): exit 0; a placeholder judge
    graded: this tests the setup, not a model
# -x under xdist ends with pytest's code 2, and nobody interrupted
P {misses: 1, missing: 9, pytest_code: 2}
    GATES PASS (1 of 1): exit 0; 1 item missed, as the gates allow; 9 ungraded items would not
    change it
# a gate FAIL, or a failure that is no graded miss
PFI {misses: 9, pytest_code: 1}
    GATES FAIL (1 of 3 failed): exit 1; simpleqa:bg m1
FFFFF {}
    GATES FAIL (5 of 5 failed): exit 1; simpleqa:bg m0, simpleqa:bg m1, simpleqa:bg m2 and 2
    more
F {other_failures: 2, pytest_code: 1}
    GATES FAIL (1 of 1 failed): exit 1; simpleqa:bg m0; 2 failures that no item accounts for
P {other_failures: 1, pytest_code: 1}
    GATES PASS (1 of 1): exit 1; 1 failure that no item accounts for
PI {other_failures: 1, pytest_code: 1}
    GATES INCONCLUSIVE (1 of 2): exit 1; 1 failure that no item accounts for
- {other_failures: 1, pytest_code: 1}
    NO GATES: exit 1; 1 failure that no item accounts for
# a code that the counts do not explain is never turned into 0
P {pytest_code: 1}
    GATES PASS (1 of 1): exit 1; 1 failure that no item accounts for
P {pytest_code: 2}
    GATES PASS (1 of 1): exit 1; 1 failure that no item accounts for
# interrupted
FI {errors: 15, missing: 100, stopped: 5, interrupted: true, pytest_code: 2}
    INTERRUPTED: exit 2; 380 of 500 answered and kept, no gate decides; run the same command
    again for the rest
- {interrupted: true, gates_off: true, dry_run: true}
    INTERRUPTED: exit 2; 500 of 500 answered and kept, no gate decides; run the same command
    again for the rest
# pytest's own
P {pytest_code: 3}
    pytest ended with an internal error: exit 3
- {dry_run: true, pytest_code: 3}
    pytest ended with an internal error: exit 3
- {pytest_code: 4}
    pytest ended with a usage error: exit 4
- {selected: 0, pytest_code: 5}
    no item selected: exit 5
- {selected: 0, other_failures: 1, pytest_code: 1}
    no item selected: exit 1
P {pytest_code: 77}
    exit 77, as pytest or a plugin has it
# nothing graded, and the reason known
I {errors: 1, missing: 498, stopped: 1, pytest_code: 1, cause: 'm: HTTP 401'}
    NOTHING GRADED: exit 4; m: HTTP 401
I {errors: 1, missing: 498, pytest_code: 1, cause: 'm: HTTP 401'}
    GATES INCONCLUSIVE (1 of 1): exit 6; simpleqa:bg m0
I {other_failures: 1, errors: 1, missing: 499, pytest_code: 1, cause: 'm: HTTP 401'}
    GATES INCONCLUSIVE (1 of 1): exit 1; 1 failure that no item accounts for
- {errors: 1, missing: 499, gates_off: true, pytest_code: 1, cause: 'm: HTTP 401'}
    gates off: exit 1, as pytest has it
# no FAIL, and something left open
PII {misses: 3, pytest_code: 1}
    GATES INCONCLUSIVE (2 of 3): exit 6; simpleqa:bg m1, simpleqa:bg m2
- {}
    NO GATES: exit 6; 500 items selected, no gate decides
- {selected: 1, misses: 1, ungated: [simpleqa:bg], pytest_code: 1}
    NO GATES: exit 6; 1 item selected, no gate decides
PP {ungated: [simpleqa:pl]}
    NO GATE for simpleqa:pl: exit 6; GATES PASS (2 of 2) elsewhere
P {misses: 4, ungated: [a:bg, a:pl, a:hu, a:en], pytest_code: 1}
    NO GATE for a:bg, a:pl, a:hu and 1 more: exit 6; GATES PASS (1 of 1) elsewhere
PI {ungated: [simpleqa:pl]}
    GATES INCONCLUSIVE (1 of 2): exit 6; simpleqa:bg m1
- {unmet: [simpleqa]}
    NO GATES: exit 6; 500 items selected, no gate decides
P {unmet: [simpleqa], unpaired: [simpleqa:bg]}
    NO BASELINE for simpleqa: exit 6; baseline: required says that one decides; give --baseline
PP {unpaired: [simpleqa:bg]}
    NO drop OR rise GATE for simpleqa:bg: exit 6; nothing holds what changed since the baseline
F {unmet: [simpleqa], unpaired: [simpleqa:bg]}
    GATES FAIL (1 of 1 failed): exit 1; simpleqa:bg m0
# what slices lost and what weakens the gates stands in the line, wherever gates decide
P {lost: [simpleqa:pl lost 58 of 335 answers], cautions: [12 paired gates had no baseline]}
    GATES PASS (1 of 1): exit 0; but simpleqa:pl lost 58 of
    335 answers; 12 paired gates had no baseline
F {lost: [a:en lost 5 of 9 answers, a:bg lost 6 of 9 answers]}
    GATES FAIL (1 of 1 failed): exit 1; simpleqa:bg m0; a:en lost 5 of 9 answers, a:bg lost 6
    of 9 answers
I {cautions: [only 3 of 300 items of folk:en]}
    GATES INCONCLUSIVE (1 of 1): exit 6; simpleqa:bg m0; only 3 of 300 items of folk:en
P {cautions: [only 3 of 300 items of folk:en], gates_off: true}
    gates off: exit 0, as pytest has it
# --dry-run and --gates off
- {dry_run: true, pytest_code: 5}
    dry run: exit 0; 500 items planned, no call made
- {other_failures: 1, dry_run: true, pytest_code: 2}
    NO GATES: exit 1; 1 failure that no item accounts for
F {gates_off: true}
    gates off: exit 0, as pytest has it
P {misses: 1, gates_off: true, pytest_code: 1}
    gates off: exit 1, as pytest has it
"""


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
