"""The one order of everything that a report lists: what is worst comes first.

Slices stand by the worst verdict of their gates, then by what they lost, then by their share of
right answers. Gates, lost answers and items follow their slices. Terminal, summary, page and lists
all ask here, so that a language that fails is the first in each of them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from qagate.evaluators.core import NOT_ATTEMPTED, UNANSWERED
from qagate.evaluators.kinds import MARKS
from qagate.reports.render.words import headline
from qagate.reports.run.evidence import Change
from qagate.reports.run.record import Record
from qagate.reports.run.report import GateResult, GateState, Report

STATES: Sequence[GateState] = ("FAIL", "INCONCLUSIVE", "PASS")
FIVE = 5
"""Lost answers that a first screen shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostAnswer:
    """An item that was right in the baseline and is not any more."""

    record: Record
    change: Change
    """What the baseline said."""

    @property
    def slice(self) -> str:
        """The slice that it is of."""
        return f"{self.record.dataset}:{self.record.language}"


def slices(report: Report) -> list[str]:
    """Return the names of all slices, worst first, and each data set's pool after its slices."""
    states = worst_states(report)
    lost = _changes(report)
    right = {}
    for part in report.slices:
        estimates = list(headline(part).values())
        right[part.name] = estimates[0].value if estimates else None

    def rank(name: str) -> tuple[bool, int, float, float, str]:
        state = STATES.index(states.get(name, "PASS"))
        share = right.get(name)
        return (
            name.endswith(":*"),
            state,
            lost.get(name, 0.0),
            1.0 if share is None else share,
            name,
        )

    names = dict.fromkeys(part.name for part in report.slices)
    names |= dict.fromkeys(gate.slice for gate in report.decision.gates)
    return sorted(names, key=rank)


class OfSlice(Protocol):
    """Something that is about one slice."""

    @property
    def name(self) -> str:
        """The slice, or a pool."""


Part = TypeVar("Part", bound=OfSlice)


def by_slice(report: Report, parts: Iterable[Part]) -> list[Part]:
    """Return what is about single slices in the order of these; pools without a gate last."""
    place = {name: rank for rank, name in enumerate(slices(report))}
    return sorted(parts, key=lambda part: place.get(part.name, len(place)))


def worst_states(report: Report) -> Mapping[str, GateState]:
    """Return the worst verdict on each slice, its languages' part in a pool that fails included."""
    states: dict[str, list[GateState]] = defaultdict(list)
    for gate in report.decision.gates:
        states[gate.slice].append(gate.state)
        for language in gate.bands:
            states[f"{gate.dataset}:{language}"].append("FAIL")
    return {name: min(found, key=STATES.index) for name, found in states.items()}


def _changes(report: Report) -> Mapping[str, float]:
    """Return new - old of the share that passes, by slice."""
    compared = report.comparison.slices if report.comparison else ()
    changes = {}
    for part in compared:
        if part.difference.value is not None:
            changes[part.name] = part.difference.value
    return changes


def gates(report: Report) -> list[GateResult]:
    """Return the gates: FAIL, INCONCLUSIVE, PASS, each in the order of their slices."""
    place = {name: rank for rank, name in enumerate(slices(report))}
    return sorted(
        report.decision.gates,
        key=lambda gate: (STATES.index(gate.state), place[gate.slice]),
    )


def lost_answers(report: Report) -> list[LostAnswer]:
    """Return the items that passed before and fail now, worst first.

    Within a slice wrong answers come before refusals and cut ones, questions on a false premise
    last, then facts that are still right in more other languages, then the shorter question.
    """
    if report.comparison is None:
        return []
    place = {name: rank for rank, name in enumerate(slices(report))}
    records = {record.key: record for record in report.records}
    right_elsewhere = _languages_right_on(report.records)
    lost = [
        LostAnswer(record=records[change.key], change=change)
        for change in report.comparison.changes
        if change.flip == "broke" and change.key in records
    ]

    def rank(answer: LostAnswer) -> tuple[int, bool, bool, int, int, int, str]:
        record = answer.record
        return (
            place.get(answer.slice, len(place)),
            not is_plainly_wrong(record),
            record.expected.startswith(MARKS),
            (record.rating or 0) - (answer.change.rating or 0),
            -len(right_elsewhere.get(_fact_of(record), ())),
            len(record.question),
            record.key,
        )

    return sorted(lost, key=rank)


def is_plainly_wrong(record: Record) -> bool:
    """Return whether an answer says something wrong, rather than nothing, or half a thing."""
    is_silent = record.grade in (NOT_ATTEMPTED, UNANSWERED)
    return not is_silent and record.answer_state == "answered"


def _fact_of(record: Record) -> str:
    return f"{record.dataset}\n{record.metadata.get('fact_id', record.key)}"


def _languages_right_on(records: Sequence[Record]) -> Mapping[str, Collection[str]]:
    """Return the languages in which each fact is right."""
    right: dict[str, set[str]] = defaultdict(set)
    for record in records:
        if record.outcome == "passed":
            right[_fact_of(record)].add(record.language)
    return right


def telling_slices(report: Report) -> list[str]:
    """Return the slices that explain the verdict: those that fail, else that are open, else all."""
    states = worst_states(report)
    answered = {part.name for part in report.slices if part.kind.answered}
    for state in STATES:
        names = [
            name
            for name in slices(report)
            if name in answered and states.get(name) == state
        ]
        if names:
            return names
    return [name for name in slices(report) if name in answered]


def five_lost(report: Report) -> list[LostAnswer]:
    """Return the worst lost answers of the slices that explain the verdict, one a topic first."""
    telling = set(telling_slices(report))
    lost = [answer for answer in lost_answers(report) if answer.slice in telling]
    first: list[LostAnswer] = []
    others: list[LostAnswer] = []
    topics: set[object] = set()
    for answer in lost:
        topic = str(answer.record.metadata.get("topic", answer.record.key))
        if topic in topics:
            others.append(answer)
        else:
            topics.add(topic)
            first.append(answer)
    chosen = [*first, *others][:FIVE]
    return [answer for answer in lost if answer in chosen]


def items(report: Report) -> list[Record]:
    """Return the records: lost, without a grade, missed, others; of each the worst slice first."""
    place = {name: rank for rank, name in enumerate(slices(report))}
    lost = {answer.record.key: rank for rank, answer in enumerate(lost_answers(report))}
    ranks = {"error": 1, "missing": 1, "failed": 2, "passed": 3, "stopped": 4}

    def rank(record: Record) -> tuple[int, int, int]:
        slice_ = place.get(f"{record.dataset}:{record.language}", len(place))
        if record.key in lost:
            return 0, lost[record.key], slice_
        return ranks[record.outcome], slice_, record.row

    return sorted(report.records, key=rank)
