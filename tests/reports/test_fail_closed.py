"""The verdict fails closed: nothing that is left out of a run makes it pass."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.cases.config import DatasetGates, GatesFile, with_gates
from qagate.cases.dataset import Dataset, Threshold
from qagate.evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED
from qagate.evaluators.kinds import kind_of
from qagate.reports.gates.decide import SessionFacts
from qagate.reports.run.record import Record
from qagate.reports.run.report import Decision
from qagate.reports.verdict.assemble import Facts, ReportInputs, decision_of
from tests.support import made_runs
from tests.support.made_records import make_record

BARS = (
    Threshold(measure="correct", min=0.6),
    Threshold(measure="correct", min=0.3, evidence="confident"),
    Threshold(measure="f_score", min=0.5),
    Threshold(measure="incorrect", max=0.4),
)
CHANGES = (
    Threshold(measure="drop", max=0.3, evidence="confident", fail="margin"),
    Threshold(measure="drop", max=0.1, fail="zero"),
    Threshold(
        measure="drop", max=0.3, of="f_score", evidence="confident", fail="margin"
    ),
    Threshold(
        measure="rise", max=0.25, of="incorrect", evidence="confident", fail="margin"
    ),
    Threshold(measure="rise", max=0.1, of="incorrect", fail="margin"),
)
EASY = Threshold(measure="correct", min=0.0)
WIDE = Threshold(measure="drop", max=0.9, evidence="confident", fail="margin")
MORE = tuple(
    replace(one, dataset="more", key=f"more-{one.row}", metadata={})
    for one in made_runs.answered("c" * 60)
)
FLOORS: tuple[dict[str, float], ...] = (
    {"agreement": 0.6}, {"agreement": 0.8}, {"kappa": 0.4}, {"youden": 0.3},
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A run, its baseline and its labelled items, as letters: c, i, n; e and m have no grade.

    The same facts are asked in two languages; in Bulgarian the old answers stay.
    """

    new: str
    old: str
    labels: tuple[tuple[str, str], ...]
    floor: Mapping[str, float]
    bars: tuple[Threshold, ...]
    changes: tuple[Threshold, ...] = ()
    pooled: tuple[Threshold, ...] = ()
    again: tuple[Threshold, ...] | None = None
    """The gates of a gates file, if there is one."""
    unasked: frozenset[int] = frozenset()
    """Planned, and not among the records."""
    removed: frozenset[int] = frozenset()
    """No longer in the data."""
    unpaired: frozenset[int] = frozenset()
    """Missing from the baseline."""
    unlabelled: frozenset[int] = frozenset()
    """Labelled items without a verdict of the judge."""
    unlisted: frozenset[int] = frozenset()
    """Labelled items that were not judged at all."""
    edited: frozenset[int] = frozenset()
    """English items whose data are not those of the baseline."""
    languages: frozenset[str] = frozenset({"en", "bg"})
    """Those that are asked."""
    datasets: frozenset[str] = frozenset({"facts", "more"})
    """Those whose folder is there; ``more`` has English items that both runs answer rightly."""
    releases: frozenset[str] = frozenset({"new-1"})
    """What the provider calls the model."""

    def passes(self) -> bool:
        return self.decision().code == 0

    def decision(self) -> Decision:
        run = [
            self._as_run(one)
            for one in self._asked(self.new, self.unasked | self.removed)
        ]
        run = [one for one in run if one.language in self.languages]
        run = [one for one in run if one.dataset in self.datasets]
        records = (*run, *self._judged())
        size = len(self.old) - len(self.removed)
        inputs = ReportInputs(
            datasets=self._datasets(),
            records=records,
            whole=dict.fromkeys(("facts:en", "facts:bg"), size)
            | {"more:en": len(MORE)}
            | dict.fromkeys(("judges:en", "judges:bg"), len(self.labels)),
        )
        failed = any(one.outcome != "passed" for one in records)
        facts = Facts(
            model="openai:new", judge=made_runs.SPEC, session=SessionFacts(pytest_code=int(failed)),
            provenance={"slices": dict.fromkeys(inputs.whole, made_runs.ORIGIN)}, run={},
        )  # fmt: skip
        asked = self._asked(self.old, frozenset())
        baseline = made_runs.before(made_runs.run_of(asked, *self._declared()))
        then = (
            replace(one, seconds=0.5) for one in self._asked(self.old, self.unpaired)
        )
        kept = tuple(then)
        return decision_of(inputs, facts, made_runs.with_records(baseline, kept))

    def _as_run(self, one: Record) -> Record:
        edited = one.language == "en" and one.row - 1 in self.edited
        model = sorted(self.releases)[one.row % len(self.releases)]
        question = f"{one.question} (edited)" if edited else one.question
        return replace(one, model=model, question=question)

    def _datasets(self) -> tuple[Dataset, ...]:
        return tuple(
            one for one in self._declared() if one.name in {*self.datasets, "judges"}
        )

    def _declared(self) -> tuple[Dataset, ...]:
        """Return facts in two languages, other facts in one, and labelled items."""
        slices = [
            made_runs.graded_slice(language, *self.bars, *self.changes)
            for language in ("en", "bg")
        ]
        kind = kind_of("judged")
        labels = {
            "dataset": "judges",
            "kind": kind,
            "thresholds": (),
            "floor": self.floor,
        }
        judged = (
            made_runs.graded_slice(language, **labels) for language in ("en", "bg")
        )
        judges = made_runs.facts_dataset(
            *judged, name="judges", kind=kind, judge_unmeasured=False
        )
        facts = made_runs.facts_dataset(
            *slices, pooled=self.pooled, judge_unmeasured=False
        )
        own = replace(made_runs.graded_slice("en", EASY, WIDE), dataset="more")
        more = made_runs.facts_dataset(own, name="more", judge_unmeasured=False)
        if self.again is not None:
            gates = DatasetGates(languages={"en": self.again})
            facts = with_gates(facts, GatesFile(datasets={"facts": gates}))
        return facts, more, judges

    def _asked(self, letters: str, left_out: frozenset[int]) -> list[Record]:
        every = [
            *made_runs.answered(letters),
            *made_runs.answered(self.old.replace("e", "c"), "bg"),
        ]
        return [*MORE, *(one for one in every if one.row - 1 not in left_out)]

    def _judged(self) -> list[Record]:
        """Return the labelled items of both languages; what is lost is lost in English."""
        lost = {("en", number) for number in self.unlabelled}
        return [
            _verdict(
                language, number, label, "" if (language, number) in lost else given
            )
            for language in ("en", "bg")
            for number, (label, given) in enumerate(self.labels)
            if language == "bg" or number not in self.unlisted
        ]


def _verdict(language: str, number: int, label: str, given: str) -> Record:
    state = "error" if not given else "passed" if label == given else "failed"
    return make_record(
        number, dataset="judges", language=language, key=f"judges-{language}-{number}",
        question=f"Question {number}?", outcome=state, label=label, grade=given or None,
        error="" if given else "content: refused", judge="judge-2026",
    )  # fmt: skip


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    """A run of 20 to 60 facts that is mostly right, much like its baseline."""
    old = "".join(draw(st.lists(st.sampled_from("ccccccin"), min_size=20, max_size=60)))
    flips = draw(
        st.dictionaries(
            st.integers(0, len(old) - 1), st.sampled_from("cinc"), max_size=9
        )
    )
    grades = st.sampled_from((CORRECT, INCORRECT, NOT_ATTEMPTED))
    right = st.builds(lambda grade: (grade, grade), grades)
    label = st.one_of(right, right, right, st.tuples(grades, grades))
    changes = st.lists(
        st.sampled_from(CHANGES), max_size=2, unique_by=lambda one: one.name
    )
    pooled = st.lists(st.sampled_from(CHANGES), max_size=1)
    return Situation(
        new="".join(flips.get(place, letter) for place, letter in enumerate(old)), old=old,
        labels=tuple(draw(st.lists(label, min_size=30, max_size=90))),
        floor=draw(st.sampled_from(FLOORS)), bars=(draw(st.sampled_from(BARS)),),
        changes=tuple(draw(changes)),
        pooled=tuple(replace(one, pool=True) for one in draw(pooled)),
    )  # fmt: skip


Loss = Callable[[Situation, int], Situation]
"""What a run is like with one thing less; the number says which."""


def _ungraded(one: Situation, place: int) -> Situation:
    at = place % len(one.new)
    return replace(one, new=one.new[:at] + "me"[place % 2] + one.new[at + 1 :])


def _ungraded_before(one: Situation, place: int) -> Situation:
    at = place % len(one.old)
    return replace(one, old=one.old[:at] + "e" + one.old[at + 1 :])


def _left_out(field: str) -> Loss:
    """Return the loss of one more place of those that a field names."""

    def lose(one: Situation, place: int) -> Situation:
        size = len(one.labels if field.startswith("unl") else one.old)
        gone: frozenset[int] = getattr(one, field)
        return replace(one, **{field: gone | {place % size}})  # type: ignore[arg-type]

    return lose


def _cut(one: Situation, place: int) -> Situation:
    """Out of the data that the run is of; the first row stays, as a file without one is refused."""
    return replace(one, removed=one.removed | {place % (len(one.old) - 1) + 1})


def _sixteenth(one: Situation, place: int) -> list[int]:
    """Return so many places of those that both runs have, just more than 5 % of all."""
    gone = one.removed | one.unasked | one.unpaired
    left = [at for at in range(1, len(one.old)) if at not in gone]
    start = place % max(1, len(left))
    return (left[start:] + left[:start])[: len(one.old) // 20 + 1]


def _much_cut(one: Situation, place: int) -> Situation:
    return replace(one, removed=one.removed.union(_sixteenth(one, place)))


def _edited(one: Situation, place: int) -> Situation:
    return replace(one, edited=one.edited.union(_sixteenth(one, place)))


def _unmeasured(one: Situation, place: int) -> Situation:
    return replace(one, unlisted=frozenset(range(len(one.labels))))


def _always_yes(one: Situation, place: int) -> Situation:
    """The judge says CORRECT to every labelled answer, as if it could not read."""
    return replace(one, labels=tuple((label, CORRECT) for label, _ in one.labels))


def _undeclared(one: Situation, place: int) -> Situation:
    """Under a gates file that has only some of the gates again."""
    every = (*one.bars, *one.changes)
    again = tuple(gate for bit, gate in enumerate(every) if place >> bit & 1)
    return replace(one, again=again)


LOSSES: Mapping[str, Loss] = {
    "a grade": _ungraded,
    "a question": _left_out("unasked"),
    "an item of the run's data": _cut,
    "a grade of the baseline": _ungraded_before,
    "a partner": _left_out("unpaired"),
    "a verdict on a label": _left_out("unlabelled"),
    "a labelled item": _left_out("unlisted"),
    "all labelled items": _unmeasured,
    "a judge that can read": _always_yes,
    "a gate in a file": _undeclared,
    "a language": lambda one, _: replace(one, languages=frozenset({"en"})),
    "a data set": lambda one, _: replace(one, datasets=frozenset({"facts"})),
    "6 % of the run's data": _much_cut,
    "the release of some answers": lambda one, _: replace(
        one, releases=one.releases | {"new-2"}
    ),
    "the questions of 6 %": _edited,
}


@pytest.mark.untraced
@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=7)
@given(
    situations(),
    st.integers(0),
    st.lists(st.tuples(st.sampled_from([*LOSSES]), st.integers(0)), max_size=3),
)
def test_never_passes(
    loss: str, whole: Situation, place: int, more: list[tuple[str, int]]
) -> None:
    """Nothing that is not asked, graded, paired, labelled or declared again gives a PASS (F26)."""
    # Last, as few edits may leave the comparison: a cut of edited items would make them few.
    lost = sorted([(loss, place), *more], key=lambda one: LOSSES[one[0]] is _edited)
    if any(LOSSES[name] is _cut for name, _ in lost):
        whole = replace(whole, bars=(EASY,))
    less = whole
    for name, at in lost:
        less = LOSSES[name](less, at)
    assert not less.passes() or whole.passes()


def _laxer(gate: Threshold, by: float) -> Threshold:
    """Return the gate with a bar or margin that lets more pass."""
    if gate.min is not None:
        return replace(gate, min=max(0.01, gate.min - by))
    return replace(gate, max=min(0.99, (gate.max or 0.0) + by))


@settings(max_examples=30)
@given(
    situations(),
    st.floats(0.05, 0.5),
    st.lists(st.tuples(st.sampled_from([*LOSSES]), st.integers(0)), max_size=2),
)
def test_a_laxer_file_is_said(
    whole: Situation, by: float, lost: list[tuple[str, int]]
) -> None:
    """What it lets pass names each laxer gate in the last line, with all else that is lost."""
    less = whole
    for name, at in (one for one in lost if one[0] != "a gate in a file"):
        less = LOSSES[name](less, at)
    laxer = replace(
        less, again=tuple(_laxer(one, by) for one in (*less.bars, *less.changes))
    )
    decision = laxer.decision()
    if decision.code == 0:
        for gate in (*less.bars, *less.changes):
            assert f"facts:en {gate.name}" in decision.line.partition("laxer: ")[2]


RIGHT = (CORRECT, CORRECT), (INCORRECT, INCORRECT)


def situation(new: str) -> Situation:
    """Return thirty facts that were all right before, under a judge that is always right."""
    floor = {"agreement": 0.8}
    bars, changes = BARS[:1], CHANGES[:1]
    return Situation(
        new=new,
        old="c" * 30,
        labels=RIGHT * 40,
        floor=floor,
        bars=bars,
        changes=changes,
    )


def test_a_laxer_gates_file_can_pass_and_says_so() -> None:
    """A lower bar passes and is said; a judge that refuses its one test proves nothing."""
    some = situation("c" * 16 + "i" * 14)
    assert not some.passes()
    line = replace(
        some, again=tuple(_laxer(one, 0.6) for one in (*some.bars, *some.changes))
    )
    assert "exit 0" in line.decision().line
    assert (
        "the gates file is laxer: facts:en correct >= 0.01 in place of"
        in line.decision().line
    )
    labels = ((INCORRECT, CORRECT), *[(CORRECT, CORRECT)] * 6)
    whole = replace(situation("c" * 30), labels=labels, floor={"agreement": 0.6})
    assert not whole.passes()
    assert not LOSSES["a verdict on a label"](whole, 0).passes()


@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_left_out_can_end_a_pass(loss: str) -> None:
    """The run that the losses are taken from can pass, and each of them for long ends that."""
    some = situation("c" * 30)
    assert some.passes()
    for place in range(30):
        some = LOSSES[loss](some, place)
    # A slice that the baseline does not have at all is there for the first time.
    assert some.passes() == (loss in {"a gate in a file", "a partner"})
