"""Claims about gates that are decided in sequence, and about what stops a run at them."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from qagate.cases.dataset import Dataset, Plan, PlannedItem, Selection, Slice, Threshold
from qagate.cases.plan import make_plan
from qagate.cases.thresholds import read_gates
from qagate.evaluators.core import Case, Outcome, State, UsageError, Verdict
from qagate.evaluators.reading import load_settings
from qagate.evaluators.runtime.engine import stopped_outcome
from qagate.evaluators.statistics.betting import Observations, shown_below
from qagate.reports.extras.sequential.early_stopping import (
    MIN_IN_HAND,
    EarlyStopping,
    in_sequence,
)
from qagate.reports.extras.sequential.sequential import BROKEN, place_of
from qagate.reports.plugin.calibrator import Calibrator
from qagate.reports.run.record import Record, make_record
from qagate.reports.run.report import GateResult, Report
from tests.support.figures import some
from tests.support.made_runs import (
    SPEC,
    answered,
    before,
    facts_dataset,
    graded_slice,
    run_of,
)
from tests.support.tables import tabled

pytestmark = pytest.mark.untraced
CASES = Path(__file__).parents[3] / "cases"
DROP = Threshold(measure="drop", max=0.1, evidence="sequential", fail="margin")
N = 300


def gate_of(
    new: Sequence[Record], old: Sequence[Record], *gates: Threshold
) -> GateResult:
    dataset = facts_dataset(graded_slice("en", *gates))
    return run_of(new, dataset, baseline=run_of(old, dataset)).decision.gates[0]


OLD = answered("cci" * (N // 3))


@pytest.mark.parametrize(
    ("letters", "state", "words"),
    [
        ("cci" * (N // 3), "PASS", "shown to be within the margin of 0.1"),
        ("cii" * (N // 3), "FAIL", "shown to be beyond the margin of 0.1"),
        ("cci" * 4 + "cie" * (N // 3 - 4), "INCONCLUSIVE", "neither"),
    ],
)
def test_a_margin_has_three_verdicts(letters: str, state: str, words: str) -> None:
    """Unchanged passes, a third lost fails, ungraded items leave it open; so does a rise."""
    found = gate_of(answered(letters), OLD, DROP)
    assert (found.state, words in found.reason) == (state, True)
    assert "in a fixed order" in found.reason
    rise = replace(DROP, measure="rise", of="incorrect")
    assert gate_of(answered(letters), OLD, rise).state == state


def test_a_second_set_of_answers_is_held_to_more() -> None:
    """The bet has to reach 160, not 40: what passes the first time may be undecided then."""
    lost = "i" * 21 + "cci" * (N // 3 - 7)
    dataset = facts_dataset(graded_slice("en", DROP))
    old = run_of(OLD, dataset)
    states = []
    for tries in ((), ("FAIL",)):
        made = run_of(answered(lost), dataset, baseline=old, tries={"facts:en": tries})
        gate = made.decision.gates[0]
        states.append(gate.state)
        assert ("of answers of this model" in gate.reason) == bool(tries)
    assert states == ["PASS", "INCONCLUSIVE"]


POOLED = replace(DROP, pool=True)


def pool_of(lost: int, gate: Threshold = POOLED) -> GateResult:
    """Return the pooled gate of four languages of which one has lost so many of 150 answers."""
    names = ("en", "bg", "pl", "hu")
    dataset = facts_dataset(*map(graded_slice, names), pooled=(gate,))

    def run(polish: str) -> list[Record]:
        letters = {name: polish if name == "pl" else "c" * 150 for name in names}
        found = [one for name, said in letters.items() for one in answered(said, name)]
        return [replace(one, metadata={"fact_id": one.key}) for one in found]

    old, new = run("c" * 150), run("i" * lost + "c" * (150 - lost))
    return run_of(new, dataset, baseline=run_of(old, dataset)).decision.gates[-1]


@pytest.mark.parametrize("margin", [DROP.max, 0.2])
def test_a_pool_fails_by_the_name_of_a_language_that_lost(margin: float) -> None:
    """Shown to be beyond the margin alone, no matter what all languages together show."""
    gate = replace(POOLED, max=margin)
    found = pool_of(60, gate)
    said = "pl is shown to be beyond the margin: 95 % interval at any look -0.5"
    assert (found.state, found.reason.startswith(said)) == ("FAIL", True)
    assert "; all languages: new - old is -0.1" in found.reason
    assert pool_of(3, gate).state == "PASS"


def test_languages_at_the_margin_are_rarely_named() -> None:
    """Four that lost just the margin, looked at after every item: 2.5 % of pools name one."""
    draw, named = np.random.default_rng(20261123), 0
    for _ in range(400):
        values = draw.choice([-1.0, 0.0, 1.0], p=[0.2, 0.7, 0.1], size=(4, 400))
        seen = [
            Observations(totals=one, sizes=np.ones(400), bound=1.0) for one in values
        ]
        named += bool(shown_below(dict(zip("abcd", seen, strict=True)), -0.1))
    assert named <= 18  # 10 and 2.5 standard errors


@tabled("bar", "state")
def test_a_bar_is_decided_by_the_same_bets(bar: dict[str, float], state: str) -> None:
    """Two thirds are correct: the rate is shown to be above a bar, below it, or neither."""
    threshold = Threshold(measure="correct", evidence="sequential", **bar)  # type: ignore[arg-type]
    found = gate_of(OLD, OLD, threshold)
    low, high = some(found.estimate.interval)
    assert (found.state, low < 2 / 3 < high) == (state, True)


def in_order(letters: str, part: Slice) -> list[Record]:
    """Return records that come out like this in the order in which they are decided."""
    records = [
        replace(one, digest=f"d{one.id}", metadata={}) for one in answered(letters)
    ]
    ranked = sorted(records, key=lambda one: place_of(part, one))
    named = ("id", "key", "digest", "question", "row")
    return [
        replace(one, **{name: getattr(place, name) for name in named})
        for one, place in zip(records, ranked, strict=True)
    ]


RESULTS = st.lists(st.sampled_from("cciien"), min_size=20, max_size=120).map("".join)


@settings(max_examples=10)
@given(RESULTS, RESULTS, st.data())
def test_an_ungraded_item_never_makes_a_pass(
    new: str, old: str, data: st.DataObject
) -> None:
    """Nor fail: an unknown grade counts against both."""
    size = min(len(new), len(old))
    place = data.draw(st.integers(0, size - 1))
    for gate in (DROP, Threshold(measure="correct", min=0.4, evidence="sequential")):
        full = gate_of(
            answered(new[:size]), answered(old[:size].replace("e", "i")), gate
        )
        less = f"{new[:place]}e{new[place + 1 : size]}"
        lost = gate_of(answered(less), answered(old[:size].replace("e", "i")), gate)
        assert lost.state in (full.state, "INCONCLUSIVE")


def test_the_order_is_that_of_the_data() -> None:
    """Neither rows nor new items move it; a broken assumption decides nothing, a verdict stays."""
    records = [replace(one, digest=f"d{one.id}") for one in answered("c" * 30)]
    part = graded_slice("en")
    few, every = (
        [one.id for one in sorted(some, key=lambda one: place_of(part, one))]
        for some in (records[:20][::-1], records)
    )
    assert few == [one for one in every if one in few]
    assert every != [one.id for one in records]
    salted = replace(part, order="2027")
    assert every != [
        one.id for one in sorted(records, key=lambda one: place_of(salted, one))
    ]
    old, new = (
        in_order("i" * 300 + "c" * 300, part),
        in_order("c" * 300 + "i" * 300, part),
    )
    found = gate_of(new, old, DROP)
    assert (found.state, found.reason) == ("INCONCLUSIVE", BROKEN)
    assert found.estimate.interval is None
    old, new = in_order("c" * 1440, part), in_order("iccccccccccc" * 120, part)
    gates = [replace(DROP, max=0.13, fail=fail) for fail in ("zero", "margin")]
    assert [gate_of(new, old, gate).state for gate in gates] == ["FAIL", "PASS"]
    old = in_order("c" * N, part)
    for rest in ("c" * 150, "ccccccccci" * 15, "m" * 150):
        new = in_order("c" * 150 + rest, part)
        assert gate_of(new, old, replace(DROP, fail="zero")).state == "PASS", rest


@pytest.mark.parametrize("languages", [(), ("bg",)])
def test_the_size_of_a_unit_says_nothing_about_its_place(
    languages: tuple[str, ...],
) -> None:
    """Facts in five languages come no sooner; a choice of languages moves no item of one."""
    files = [CASES / name / "dataset.yaml" for name in ("simpleqa", "eba", "boolq")]
    plan = make_plan(files, Selection(languages=languages))
    for dataset in plan.datasets:
        sizes = Counter(one.slice.place_of(one.case) for one in plan.tests(dataset))
        if len(set(sizes.values())) > 1:
            found = spearmanr(
                range(len(sizes)), [sizes[place] for place in sorted(sizes)]
            )
            assert found.pvalue > 0.01, dataset.name
    whole = make_plan(files, Selection())
    places = {key: one.slice.place_of(one.case) for key, one in whole.items.items()}
    assert all(
        one.slice.place_of(one.case) == places[key] for key, one in plan.items.items()
    )


@tabled("text")
def test_only_shares_with_an_inner_bar_are_decided_in_turn(
    tmp_path: Path, text: str
) -> None:
    """Other metrics have no bets; a bar at the end could never be lost."""
    path = tmp_path / "gates.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match="evidence"):
        read_gates(load_settings(path), graded_slice("en").kind.ranges())


# What stops a run


def plan_of(dataset: Dataset, records: Sequence[Record]) -> Plan:
    """Return a plan whose items come out as these records say."""
    items = {}
    for one in records:
        names = ("id", "dataset", "language", "row", "question", "digest", "metadata")
        case = Case(golds=("Sofia",), **{name: getattr(one, name) for name in names})
        slice_ = dataset.slices[one.language]
        items[one.key] = PlannedItem(key=one.key, slice=slice_, case=case, repeat=1)
    return in_sequence(Plan(datasets=(dataset,), items=items), paired=True)


class Watching(Calibrator):
    """A calibrator that has measured the judge once it is told so."""

    measured: bool = True

    def __init__(self) -> None:
        pass

    def select(self, keys: object) -> tuple[str, ...]:
        return ()

    def is_complete(self, outcomes: object) -> bool:
        return Watching.measured

    def records(self, outcomes: object) -> tuple[Record, ...]:
        return ()

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        return ()


def watching(plan: Plan, old: Sequence[Record], ahead: int = 10**6) -> EarlyStopping:
    """Return what stops the run of a plan that is compared with an old one."""
    (dataset,) = plan.datasets
    return EarlyStopping(plan, Watching(), SPEC, [before(run_of(old, dataset))], ahead)


def ended(key: str, letter: str) -> Outcome:
    if letter == "e":
        return Outcome(key=key, state="error", kind="timeout", message="no reply")
    grade = {"c": "CORRECT", "i": "INCORRECT"}[letter]
    state: State = "passed" if letter == "c" else "failed"
    return Outcome(
        key=key,
        state=state,
        answer="?",
        verdict=Verdict(grade=grade),
        judge="judge-2026",
    )


def with_digests(letters: str) -> list[Record]:
    return [replace(one, digest=f"d{one.id}", metadata={}) for one in answered(letters)]


DATASET = facts_dataset(graded_slice("en", DROP))


@settings(max_examples=10)
@given(st.integers(0, 2**16), st.integers(0, 6))
@example(1, 0)
@example(1, 6)
@example(1173, 0)
def test_it_stops_where_the_report_is_decided_and_nowhere_before(
    seed: int, gone: int
) -> None:
    """One item less leaves it open, but for one that cannot fall; nobody waits for gone ones."""
    chance = random.Random(seed)
    old = with_digests("cci" * 40)
    plan = plan_of(DATASET, old[gone:])
    keys = list(plan.items)
    watch = watching(plan, old)
    outcomes = [ended(key, chance.choice("cccccciie")) for key in keys]
    asked = next(
        (count for count, one in enumerate(outcomes, 1) if watch.note(one)), len(keys)
    )
    open_, decided = (
        report_of(plan, [*outcomes[:count], *map(stopped_outcome, keys[count:])], old)
        for count in (asked - 1, asked)
    )
    last = plan.items[keys[asked - 1]].case.id
    harmless = any(one.id == last and one.outcome != "passed" for one in old)
    assert open_.decision.gates[0].state == "INCONCLUSIVE" or harmless
    assert (decided.decision.gates[0].state == "INCONCLUSIVE") <= (asked == len(keys))
    counts = decided.counts
    assert counts.stopped == len(keys) - asked
    assert (
        counts.planned == counts.passed + counts.failed + counts.error + counts.stopped
    )


def report_of(plan: Plan, outcomes: Sequence[Outcome], old: Sequence[Record]) -> Report:
    """Return the report of a plan with these outcomes, compared with an old run."""
    records = [make_record(plan.items[one.key], one) for one in outcomes]
    return run_of(records, *plan.datasets, baseline=run_of(old, *plan.datasets))


def test_figures_of_a_stopped_run_hold_at_any_look() -> None:
    """Intervals for a number of items that was fixed before are gone; a line says the lean."""
    old = with_digests("cci" * 100)
    plan = plan_of(DATASET, old)
    keys = list(plan.items)
    truth = {one.key: "ci"[one.outcome == "failed"] for one in old}
    outcomes = [ended(key, truth[key]) for key in keys[:150]]
    cut = report_of(plan, [*outcomes, *map(stopped_outcome, keys[150:])], old)
    whole = report_of(plan, [ended(key, truth[key]) for key in keys], old)
    ((part,), (full,)) = cut.slices, whole.slices
    correct = part.measures["correct"]
    assert some(correct.interval)[0] < some(full.measures["correct"].interval)[0]
    assert part.measures["f_score"].interval is None
    assert full.measures["f_score"].interval is not None
    (compared,) = some(cut.comparison).slices
    assert (compared.p_value, compared.detectable) == (None, None)
    assert compared.difference.interval == cut.decision.gates[0].estimate.interval
    assert any("lean to the side of the verdict" in note for note in cut.notes)


def test_few_items_are_in_hand_when_a_slice_is_settled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """16 in hand, or an eighth; nothing behind a gap or before the judge is measured counts."""
    old = with_digests("c" * N)
    plan = plan_of(DATASET, old)
    keys = list(plan.items)
    watch = watching(plan, old, ahead=20)
    assert [watch.is_due(key) for key in keys[:18]] == [True] * MIN_IN_HAND + [
        False
    ] * 2
    for key in keys[:200]:
        watch.note(ended(key, "e"))
    assert [watch.is_due(key) for key in keys[200:]].count(True) == 20
    assert watch.is_due("calibration:any")
    old = with_digests("c" * N)
    plan = plan_of(DATASET, old)
    first, *rest = plan.items
    watch = watching(plan, old)
    assert not any(watch.note(ended(key, "c")) for key in rest[:-20])
    assert set(watch.note(ended(first, "c"))) == set(rest[-20:])
    *keys, last, spare = plan.items
    watch = watching(plan, old)
    monkeypatch.setattr(Watching, "measured", False)
    assert not any(watch.note(ended(key, "c")) for key in keys)
    monkeypatch.setattr(Watching, "measured", True)
    assert list(watch.note(ended(last, "c"))) == [spare]


def test_a_slice_with_a_gate_of_another_evidence_is_asked_whole() -> None:
    """A slice with another gate may not stop; none waits for another to be settled."""
    both = facts_dataset(
        graded_slice("en", DROP, Threshold(measure="correct", min=0.1))
    )
    with pytest.raises(
        UsageError, match="no slice has gates with `evidence: sequential` alone"
    ):
        plan_of(both, with_digests("c" * 9))
    two = facts_dataset(graded_slice("en", DROP), graded_slice("bg", DROP))
    records = [*with_digests("c" * 20), *answered("c" * 20, "bg", metadata={})]
    languages = [item.slice.language for item in plan_of(two, records).items.values()]
    assert languages == ["en", "bg"] * 20
