"""How a session exits, and the one line that says why: both follow from its gates and facts.

``decide`` asks the rules below in their order, and the first that has an answer decides: first
what happened outside the gates, then the gates, then what no gate decided. 0 is left over: every
slice that was to decide has a gate of its own that passed. A gate that pools languages does not
count as a slice's own: it may pass while one language fails. ERROR and MISSING items do not change
exit 0: a gate that passes has already counted them as failures.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from qagate.cases.dataset import Shards
from qagate.evaluators.output import plural
from qagate.evaluators.text import first_of
from qagate.reports.metrics.gate import GRADE
from qagate.reports.run.report import Cause, Decision, GateResult, SessionStatus

OK, FAILED, INTERRUPTED, INTERNAL, USAGE, NOTHING, INCONCLUSIVE = range(7)
NO_GATE, NO_BASELINE, NO_CHANGE_GATE = "NO GATE", "NO BASELINE", "NO drop OR rise GATE"
NO_LOSS_SEEN = "NO GATE SEES A LOSS"
LOSS_IN_A_POOL = "LOSS HIDDEN IN A POOL"
NOTHING_GRADED = "NOTHING GRADED"
UNHEALTHY = "UNHEALTHY ANSWERS"
MOST_SYMPTOMS = 3
"""Sentences on the health of answers in the last line; the page has all."""
MERGE = "a shard decides nothing: qagate merge decides over all of them"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts(SessionStatus):
    """All that happened in the session, apart from the gates. Counts are of items."""

    selected: int = 0
    """Planned items."""
    misses: int = 0
    """Items graded as failed."""
    undecided: tuple[str, ...] = ()
    """The slices that were to decide, and have no gate of their own that did."""
    unpaired: tuple[str, ...] = ()
    """The slices that are compared with an earlier run, and have no gate on the difference."""
    blind: tuple[str, ...] = ()
    """The slices whose gates would pass without any right answer, each with what these become."""
    outvoted: tuple[str, ...] = ()
    """What slices lost beyond the margin of the pool that stands in for a gate of their own."""
    unmet: str = ""
    """Why a baseline is needed, where there is none, and which to give."""
    lost: tuple[str, ...] = ()
    """What each slice lost that is shown to be worse than in an earlier run."""
    cautions: tuple[str, ...] = ()
    """What else a reader of the verdict has to know: what was waived, accepted or made laxer."""
    unhealthy: tuple[str, ...] = ()
    """Of what so many answers are ill that no grade of them can be trusted, and what to do."""
    placeholder_judge: bool = False
    """Whether rules graded recorded answers, in place of a model."""
    ungraded: int = 0
    """Items without a grade: ERROR or MISSING."""
    causes: tuple[str, ...] = ()
    """Why items have none, each with how many they are; the commonest first."""
    stopped: int = 0
    """Items that were not asked, as every gate was decided before."""
    superseded: str = ""
    """A command that came after the run and wrote no report over this one."""
    crash: str = ""
    """What is to be said of an error that nobody foresaw."""
    gates_off: bool = False
    shards: Shards | None = None
    """The shards that the items come from; None where none is missing."""
    doubts: tuple[str, ...] = ()
    """What keeps the whole run from passing, in words: slices that it lacks, answers of two
    versions."""
    one_shard: bool = False
    """Whether the user asked for one shard only, and so for no decision."""

    @property
    def graded(self) -> int:
        """The number of items with a grade."""
        return self.selected - self.ungraded - self.stopped

    @property
    def unexplained(self) -> bool:
        """Whether pytest reports a failure that none of the counts explains."""
        counted = self.misses + self.failures + self.ungraded
        return self.pytest_code in (FAILED, INTERRUPTED) and not counted

    @property
    def other_failures(self) -> int:
        """Failures that no item accounts for."""
        return self.failures + int(self.unexplained)

    def end(self) -> SessionStatus:
        """Return the facts that deciding again, from the report alone, needs."""
        return SessionStatus(
            pytest_code=INTERNAL if self.crash else self.pytest_code,
            failures=self.other_failures,
            interrupted=self.interrupted,
            cause=self.cause,
            left=self.left,
            expected=self.expected,
            notes=self.notes,
            superseded=self.superseded,
        )


CodeAndLine = tuple[int, str]
Rule = Callable[[Sequence[GateResult], SessionFacts], CodeAndLine | None]
"""Returns the exit code and its line; None where the next rule has to say."""


def decide(gates: Sequence[GateResult], facts: SessionFacts) -> Decision:
    """Return the exit code of a session and its line; with ``--gates off`` gates decide nothing."""
    ruling = _first(OUTSIDE_THE_GATES, gates, facts)
    is_by_gates = ruling is None
    if ruling is None:
        ruling = _first(BY_GATES, gates, facts) or (
            Cause.PASSED,
            _passed(gates, facts),
        )
    cause, (code, line) = ruling
    remarks: list[str] = []
    cautions: tuple[str, ...] = ()
    if is_by_gates and _is_whole(code, facts):
        remarks = _remarks(code, gates, facts)
        cautions = facts.cautions
    clauses = [line, *remarks, *cautions, facts.left]
    whole_line = "; ".join(clause for clause in clauses if clause)
    return Decision(
        gates=tuple(gates),
        code=code,
        cause=cause,
        line=whole_line,
        about=_about(cause, facts),
        cautions=cautions,
    )


def _first(
    rules: Mapping[Cause, Rule], gates: Sequence[GateResult], facts: SessionFacts
) -> tuple[Cause, CodeAndLine] | None:
    """Return what the first rule says that has an answer, and its cause."""
    for cause, rule in rules.items():
        code_and_line = rule(gates, facts)
        if code_and_line is not None:
            return cause, code_and_line
    return None


def _about(cause: Cause, facts: SessionFacts) -> tuple[str, ...]:
    """Return the slices, or the reasons, that a cause names; most causes name none."""
    named: Mapping[Cause, tuple[str, ...]] = {
        Cause.BROKEN_OFF: (facts.crash,) if facts.crash else (),
        Cause.NOTHING_SELECTED: facts.expected,
        Cause.NOTHING_GRADED: (facts.cause,) if facts.cause else (),
        Cause.DOUBT: facts.doubts,
        Cause.SLICE_WITHOUT_GATE: facts.undecided,
        Cause.NO_BASELINE: (facts.unmet,),
        Cause.NO_CHANGE_GATE: facts.unpaired,
        Cause.BLIND: facts.blind,
        Cause.OUTVOTED: facts.outvoted,
        Cause.UNHEALTHY: facts.unhealthy,
    }
    return named.get(cause, ())


def _is_whole(code: int, facts: SessionFacts) -> bool:
    """Whether the run is no part of one: of a part, nothing is said but what the gates say."""
    return not facts.shards and code != USAGE


def _remarks(code: int, gates: Sequence[GateResult], facts: SessionFacts) -> list[str]:
    """Return what is ill or lacks grades, and what was lost, beside what the gates say."""
    remarks = list(facts.unhealthy[:MOST_SYMPTOMS])
    if facts.graded and any(_lacks_grades(gate) for gate in gates):
        remarks += facts.causes[:1]
    if facts.lost:
        losses = first_of(facts.lost)
        remarks.append(f"but {losses}" if code == OK else losses)
    return remarks


def _lacks_grades(gate: GateResult) -> bool:
    """Return whether a gate would decide if items without a grade had one."""
    return gate.state == "INCONCLUSIVE" and gate.remedy.startswith(f"{GRADE} ")


# Rules outside the gates


def _broken_off(gates: Sequence[GateResult], facts: SessionFacts) -> CodeAndLine | None:
    code = facts.pytest_code
    if facts.crash:
        return INTERNAL, facts.crash
    if code not in (INTERNAL, USAGE):
        return None
    what = "an internal error" if code == INTERNAL else "a usage error"
    return code, f"pytest ended with {what}: exit {code}"


def _interrupted(
    gates: Sequence[GateResult], facts: SessionFacts
) -> CodeAndLine | None:
    if not facts.interrupted:
        return None
    graded = f"{facts.graded:,} of {facts.selected:,} items graded, no gate decides"
    if facts.replies_kept:
        replies = "reply" if facts.replies_kept == 1 else "replies"
        graded = f"{facts.replies_kept:,} {replies} kept, {graded}"
    again = "run the same command again for the rest"
    return INTERRUPTED, f"INTERRUPTED: exit {INTERRUPTED}; {graded}; {again}"


def _gates_off(gates: Sequence[GateResult], facts: SessionFacts) -> CodeAndLine | None:
    if not facts.gates_off:
        return None
    code = facts.pytest_code
    if facts.left and code == OK:
        return INCONCLUSIVE, f"gates off: exit {INCONCLUSIVE}"
    if not facts.graded and code in (OK, FAILED):
        line = f"gates off: exit {INCONCLUSIVE}; {NOTHING_GRADED}, so there is nothing to look at"
        return INCONCLUSIVE, line
    return code, f"gates off: exit {code}, as pytest has it"


def _nothing_selected(
    gates: Sequence[GateResult], facts: SessionFacts
) -> CodeAndLine | None:
    if facts.selected or facts.shards is not None:
        return None
    if not facts.expected:
        code = facts.pytest_code
        return code, f"no item selected: exit {code}"
    return INCONCLUSIVE, (
        f"NO ITEM SELECTED: exit {INCONCLUSIVE}; {first_of(facts.expected)} were to decide, and "
        f"no item of them was run: {LEFT_OUT}"
    )


def _plugins_code(
    gates: Sequence[GateResult], facts: SessionFacts
) -> CodeAndLine | None:
    code = facts.pytest_code
    if code in (OK, FAILED, INTERRUPTED, NOTHING):
        return None
    return code, f"exit {code}, as pytest or a plugin has it"


LEFT_OUT = "-k, -m, --lf, --deselect, a conftest or a plugin left it out"
OUTSIDE_THE_GATES: Mapping[Cause, Rule] = {
    Cause.BROKEN_OFF: _broken_off,
    Cause.INTERRUPTED: _interrupted,
    Cause.GATES_OFF: _gates_off,
    Cause.NOTHING_SELECTED: _nothing_selected,
    Cause.PLUGIN: _plugins_code,
}
"""What decides without the gates, in this order."""


# Rules about the gates


def _counts(gates: Sequence[GateResult]) -> str:
    """Return how many gates there are of the state that tells most, in words."""
    if not gates:
        return "NO GATES"
    unclear = [gate for gate in gates if gate.state == "INCONCLUSIVE"]
    if unclear:
        return f"GATES INCONCLUSIVE ({len(unclear)} of {len(gates)})"
    return f"GATES PASS ({len(gates)} of {len(gates)})"


def _failed(gates: Sequence[GateResult], facts: SessionFacts) -> CodeAndLine | None:
    failed = [gate for gate in gates if gate.state == "FAIL"]
    if not failed:
        return None
    share = f"{len(failed)} of {len(gates)} failed"
    names = _names(failed)
    line = f"GATES FAIL ({share}): exit {FAILED}; {names}{_others(facts)}"
    return FAILED, line


def _other_failures(
    gates: Sequence[GateResult], facts: SessionFacts
) -> CodeAndLine | None:
    if not facts.other_failures:
        return None
    return FAILED, f"{_counts(gates)}: exit {FAILED}{_others(facts)}"


def _others(facts: SessionFacts) -> str:
    if not facts.other_failures:
        return ""
    failures = plural(facts.other_failures, "failure")
    return f"; {failures} that no item accounts for"


def _nothing_graded(
    gates: Sequence[GateResult], facts: SessionFacts
) -> CodeAndLine | None:
    if facts.graded:
        return None
    if facts.cause:
        return USAGE, f"{NOTHING_GRADED}: exit {USAGE}; {facts.cause}"
    if facts.ungraded and not facts.shards:
        why = facts.causes[0] if facts.causes else "the warnings say why"
        return INCONCLUSIVE, f"{NOTHING_GRADED}: exit {INCONCLUSIVE}; {why}"
    return None


def _of_shards(gates: Sequence[GateResult], facts: SessionFacts) -> CodeAndLine | None:
    """Return what a part says: the only shard present, or which are missing of several."""
    shards = facts.shards
    if shards is None:
        return None
    if len(shards.held) == 1:
        name = f"SHARD {shards.held[0]} of {shards.of}"
    else:
        noun = "SHARDS" if len(shards.missing) > 1 else "SHARD"
        numbers = first_of([str(number) for number in shards.missing])
        name = f"{noun} {numbers} of {shards.of} MISSING"
    graded = f"{facts.graded:,} of {plural(facts.selected, 'item')} graded"
    code = INCONCLUSIVE
    if facts.one_shard and not facts.ungraded:
        code = OK
    return code, f"{name}: exit {code}; {graded}; {MERGE}"


def _doubts(gates: Sequence[GateResult], facts: SessionFacts) -> CodeAndLine | None:
    if not facts.doubts:
        return None
    reasons = "; ".join(facts.doubts)
    line = f"INCONCLUSIVE: exit {INCONCLUSIVE}; {reasons}; {_counts(gates)} apart from that"
    return INCONCLUSIVE, line


def _unclear(gates: Sequence[GateResult], facts: SessionFacts) -> CodeAndLine | None:
    unclear = [gate for gate in gates if gate.state == "INCONCLUSIVE"]
    if not unclear:
        return None
    return INCONCLUSIVE, f"{_counts(gates)}: exit {INCONCLUSIVE}; {_names(unclear)}"


def _no_gates(gates: Sequence[GateResult], facts: SessionFacts) -> CodeAndLine | None:
    if gates:
        return None
    selected = plural(facts.selected, "item")
    line = f"NO GATES: exit {INCONCLUSIVE}; {selected} selected, no gate decides"
    return INCONCLUSIVE, line


def _undecided(gates: Sequence[GateResult], facts: SessionFacts) -> CodeAndLine | None:
    if not facts.undecided:
        return None
    names = first_of(facts.undecided)
    line = f"{NO_GATE} for {names}: exit {INCONCLUSIVE}; {_counts(gates)} elsewhere"
    return INCONCLUSIVE, line


def _baseline_lacks(
    gates: Sequence[GateResult], facts: SessionFacts
) -> CodeAndLine | None:
    if not facts.unmet:
        return None
    return INCONCLUSIVE, f"{NO_BASELINE}: exit {INCONCLUSIVE}; {facts.unmet}"


def _unpaired(gates: Sequence[GateResult], facts: SessionFacts) -> CodeAndLine | None:
    if not facts.unpaired:
        return None
    names = first_of(facts.unpaired)
    reason = "nothing holds what changed since the baseline"
    return (
        INCONCLUSIVE,
        f"{NO_CHANGE_GATE} for {names}: exit {INCONCLUSIVE}; {reason}",
    )


def _blind(gates: Sequence[GateResult], facts: SessionFacts) -> CodeAndLine | None:
    if not facts.blind:
        return None
    names = first_of(facts.blind)
    reason = (
        "they would pass if half of the right answers, or all, became what stands there; "
        "give a gate on correct, "
        "or a drop with a margin below the share that was right"
    )
    return INCONCLUSIVE, f"{NO_LOSS_SEEN} in {names}: exit {INCONCLUSIVE}; {reason}"


def _outvoted(gates: Sequence[GateResult], facts: SessionFacts) -> CodeAndLine | None:
    if not facts.outvoted:
        return None
    losses = first_of(facts.outvoted)
    reason = (
        "shown to be worse, and by more than the margin of the pool that stands in for a gate of "
        "its own; give the language a drop"
    )
    return INCONCLUSIVE, f"{LOSS_IN_A_POOL}: exit {INCONCLUSIVE}; {losses}: {reason}"


def _unhealthy(gates: Sequence[GateResult], facts: SessionFacts) -> CodeAndLine | None:
    """Return that a PASS is none, as too many answers are ill; the remarks say of what.

    It is asked last: a FAIL stays a FAIL.
    """
    if not facts.unhealthy:
        return None
    line = f"{UNHEALTHY}: exit {INCONCLUSIVE}; {_counts(gates)} apart from that"
    return INCONCLUSIVE, line


def _passed(gates: Sequence[GateResult], facts: SessionFacts) -> CodeAndLine:
    counted = (
        (facts.misses, "item", "missed, as the gates allow"),
        (facts.ungraded, "ungraded item", "would not change it"),
        (facts.stopped, "item", "not asked, as it was decided before"),
    )
    line = f"{_counts(gates)}: exit {OK}"
    for count, noun, text in counted:
        if count:
            line += f"; {plural(count, noun)} {text}"
    if facts.placeholder_judge:
        line += "; a placeholder judge graded: this tests the setup, not a model"
    return OK, line


BY_GATES: Mapping[Cause, Rule] = {
    Cause.GATE_FAILED: _failed,
    Cause.OWN_TESTS: _other_failures,
    Cause.NOTHING_GRADED: _nothing_graded,
    Cause.SHARD: _of_shards,
    Cause.DOUBT: _doubts,
    Cause.GATE_OPEN: _unclear,
    Cause.NO_GATES: _no_gates,
    Cause.SLICE_WITHOUT_GATE: _undecided,
    Cause.NO_BASELINE: _baseline_lacks,
    Cause.NO_CHANGE_GATE: _unpaired,
    Cause.BLIND: _blind,
    Cause.OUTVOTED: _outvoted,
    Cause.UNHEALTHY: _unhealthy,
}
"""What decides by the gates, in this order; where none of them does, the run passed."""


def _names(gates: Sequence[GateResult]) -> str:
    names = []
    for gate in gates:
        way_out = f" ({gate.remedy})" if gate.remedy else ""
        names.append(f"{gate.slice} {gate.name}{way_out}")
    return first_of(names)
