"""Reports made up for tests: gates in all states, five languages, hostile text."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from qagate.cases.dataset import Threshold
from qagate.evaluators.core import State
from qagate.evaluators.kinds import kind_of
from qagate.evaluators.statistics.intervals import Estimate
from qagate.evaluators.typed_data import decode
from qagate.reports.render.writer import Files
from qagate.reports.run.clean import masked
from qagate.reports.run.evidence import ConfusionCell
from qagate.reports.run.record import Record
from qagate.reports.run.report import (
    Cause,
    Counts,
    Decision,
    GateResult,
    GateState,
    Report,
    SliceSummary,
)
from tests.support.hostile import HOSTILE
from tests.support.made_records import BLANK
from tests.support.tables import kept

QUESTIONS = kept(__file__, "questions")


def record(number: int = 1, **changes: object) -> Record:
    own = {"key": f"simpleqa-en-{number}", "id": f"item-{number}", "row": number}
    own["digest"] = f"{number:064x}"
    return replace(BLANK, **kept(__file__, "record") | own | changes)


def ended(number: int, language: str, state: State, **changes: object) -> Record:
    question, gold, wrong = QUESTIONS[language]
    settled = state in ("passed", "failed")
    grade = {"passed": "CORRECT", "failed": "INCORRECT"}.get(state)
    values: dict[str, object] = {
        "key": f"simpleqa-{language}-{number}",
        "language": language,
        "question": question,
        "expected": gold,
        "answer": {"passed": gold, "failed": wrong}.get(state),
        "outcome": state,
        "grade": grade,
        "reason": f"The answer is judged {grade}." if settled else "",
        "error": {"error": "timeout: no reply in 60 s", "missing": "stopped: -x"}.get(
            state, ""
        ),
    }
    return record(number, **(values | changes))


def hostile() -> tuple[Record, ...]:
    """Return a failed record for each hostile text, in question, answer and judge's reason."""
    texts = {
        "question": HOSTILE,
        "answer": HOSTILE,
        "reason": HOSTILE,
        "error": HOSTILE,
    }
    return tuple(
        record(
            1000 + i,
            key=f"simpleqa-en-{1000 + i}",
            outcome="failed",
            grade="INCORRECT",
            metadata={"note": text},
            **{name: values[i] for name, values in texts.items()},
        )
        for i, text in enumerate(HOSTILE)
    )


def count(records: tuple[Record, ...]) -> Counts:
    states = Counter(item.outcome for item in records)
    return Counts(
        planned=len(records),
        passed=states["passed"],
        failed=states["failed"],
        error=states["error"],
        missing=states["missing"],
    )


def estimate(value: float | None, n: int = 60) -> Estimate:
    if value is None:
        return Estimate(value=None, low=None, high=None, n=0)
    return Estimate(value=value, low=max(0.0, value - 0.11), high=value + 0.11, n=n)


def gate(state: GateState, measure: str = "correct", **changes: object) -> GateResult:
    value = {"PASS": 0.61, "FAIL": 0.21, "INCONCLUSIVE": 0.4}[state]
    values: dict[str, object] = {
        "dataset": "simpleqa",
        "language": "en",
        "threshold": Threshold(measure=measure, min=0.35),
        "state": state,
        "estimate": estimate(value),
        "worst": value - 0.06,
        "best": value + 0.04,
        "reason": f"The estimate is {value}; with every ungraded item against it {value - 0.06}.",
    }
    return GateResult(**(values | changes))  # type: ignore[arg-type]


def part(
    kind: str,
    records: tuple[Record, ...],
    measures: Mapping[str, float | None],
    **changes: object,
) -> SliceSummary:
    first = records[0]
    shown = {name: estimate(value, len(records)) for name, value in measures.items()}
    values: dict[str, object] = {
        "dataset": first.dataset,
        "language": first.language,
        "kind": kind_of(kind),
        "counts": count(records),
        "measures": shown,
        "labels": Counter(item.grade for item in records if item.grade),
        "breakdowns": {},
    }
    return SliceSummary(**(values | changes))  # type: ignore[arg-type]


def report(records: tuple[Record, ...] = (), **changes: object) -> Report:
    """Return a report on records of ``simpleqa:en`` with one gate that passes, made safe."""
    records = records or (record(),)
    slices = (part("graded", records, {"correct": 0.61, "incorrect": 0.3}),)
    values: dict[str, object] = {
        "counts": count(records),
        "slices": slices,
        "decision": Decision(
            gates=(gate("PASS"),),
            code=0,
            cause=Cause.PASSED,
            line="GATES PASS (1 of 1): exit 0",
        ),
        "records": records,
        "provenance": {"python": "3.11", "data": {"simpleqa:en": "ab" * 32}},
    }
    return masked(Report(**kept(__file__, "report") | values | changes))


GRADED = kept(__file__, "graded")
YES_NO = {
    "accuracy": 0.82,
    "precision": 0.8,
    "recall": 0.85,
    "f1": 0.824,
    "unanswered": 0.03,
}
ANSWERS = (
    ("NO", "NO", 16),
    ("NO", "UNANSWERED", 4),
    ("YES", "NO", 2),
    ("YES", "YES", 18),
)
"""How many items with a label have a grade."""


def cells(*counted: tuple[str, str, int]) -> tuple[ConfusionCell, ...]:
    return tuple(
        ConfusionCell(label=one, grade=two, count=n) for one, two, n in counted
    )


def full(size: int = 40) -> Report:
    groups = _groups(size)
    records = tuple(item for items in groups.values() for item in items) + hostile()
    line = "GATES FAIL (3 of 7 pass, 2 fail, 2 inconclusive): exit 1; 152 misses are counted"
    return report(
        records,
        counts=count(records),
        slices=_slices(groups),
        decision=Decision(gates=_gates(), code=1, cause=Cause.GATE_FAILED, line=line),
        baseline="last-release/run.json",
        notes=(
            "The judge was not measured for hu.",
            "languages.default served no slice.",
        ),
        cost=1.2345,
        tokens=1_234_567,
    )


def _slices(groups: Mapping[str, tuple[Record, ...]]) -> tuple[SliceSummary, ...]:
    by_topic = {name: estimate(value) for name, value in GRADED.items()}
    topics = {"topic": dict.fromkeys(("Art", "History", "| <b>Science</b>"), by_topic)}
    rated = {"mean_rating": 6.85, "pass_rate": 0.7, "normalised": 0.65}
    ratings = {str(number): number * number for number in range(1, 11)}
    given = cells(("CORRECT", "CORRECT", 30), ("INCORRECT", "CORRECT", 1))
    graded = (groups[f"simpleqa:{code}"] for code in ("en", "bg", "pl", "hu"))
    return (
        *(part("graded", items, GRADED, breakdowns=topics) for items in graded),
        part(
            "rated",
            groups["eba:en"],
            rated,
            labels=ratings,
            note="overlap: a placeholder judge",
        ),
        part(
            "yes_no",
            groups["boolq:be"],
            YES_NO,
            confusion=cells(*ANSWERS),
            partial=True,
        ),
        part(
            "judged",
            groups["judges:en"],
            {"agreement": 0.93, "kappa": None},
            confusion=given,
        ),
    )


def _groups(size: int) -> dict[str, tuple[Record, ...]]:
    states: list[State] = kept(__file__, "states")
    groups: dict[str, tuple[Record, ...]] = {}
    for code in ("en", "bg", "pl", "hu"):
        states += ["missing"] * (code == "hu")
        groups[f"simpleqa:{code}"] = tuple(
            ended(i, code, states[i % len(states)]) for i in range(1, size + 1)
        )
    for dataset, code in (("eba", "en"), ("boolq", "be"), ("judges", "en")):
        changes: dict[str, Any] = {"dataset": dataset, "context": "A passage. " * 30}
        changes |= {"rating": 7, "grade": None} if dataset == "eba" else {"label": "NO"}
        groups[f"{dataset}:{code}"] = tuple(
            replace(
                ended(i, code, states[i % 5]), key=f"{dataset}-{code}-{i}", **changes
            )
            for i in range(1, size + 1)
        )
    return groups


def _gates() -> tuple[GateResult, ...]:
    made = []
    for given in kept(__file__, "gates"):
        state, measure = given.pop("state"), given.pop("measure", "correct")
        if bounds := given.pop("threshold", {}):
            given["threshold"] = Threshold(measure=measure, **bounds)
        if "estimate" in given:
            given["estimate"] = decode(Estimate, given["estimate"])
        made.append(gate(state, measure, **given))
    return tuple(made)


def rendered(made: Report) -> dict[str, str]:
    return {name: "".join(map(str, pieces)) for name, pieces in Files(made)}
