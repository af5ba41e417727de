"""What `docs/verdict.md` guarantees, on few of the simulations that its scripts make."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.cases.dataset import Slice, Threshold
from qagate.evaluators.statistics.betting import Observations, first_above
from qagate.evaluators.statistics.intervals import Z95
from qagate.evaluators.statistics.metrics import METRICS
from qagate.evaluators.statistics.paired import tango
from qagate.reports.compare.sides import PairedSlice
from qagate.reports.compare.states import pair_records
from qagate.reports.extras.odds.odds import Simulation
from qagate.reports.gates.change import change_gates
from qagate.reports.run.record import Record
from tests.benchmarks import (
    audited,
    bets,
    coverage,
    differences,
    judge_error,
    operating,
)
from tests.benchmarks.common import SEED
from tests.benchmarks.coverage import Cell, grid, scores
from tests.benchmarks.erosion import Setting, erode, is_within
from tests.benchmarks.verdict_cost import WHOLE, price_of_items, simulate, table
from tests.support.made_records import make_dataset, make_record, make_slice
from tests.support.tables import tabled

pytestmark = pytest.mark.untraced
# No margin is of the size at which its square is lost.
MARGINS = st.integers(-900_000, 900_000).map(lambda millionths: millionths / 1_000_000)


# Independent pairs: Tango's interval, exactly


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 200), MARGINS)
def test_scores_and_intervals_say_the_same(
    fixed: int, broke: int, same: int, delta: float
) -> None:
    """What the exact enumeration counts is membership in the interval that reports show."""
    n = fixed + broke + same
    interval = tango(fixed, broke, n) if n else None
    if interval is None or min(abs(delta - end) for end in interval) < 1e-6:
        return
    (score,) = scores(np.array([fixed]), np.array([broke]), n, delta)
    assert (abs(score) <= Z95) == (interval[0] <= delta <= interval[1])


@pytest.mark.parametrize("n", [50, 200])
def test_the_interval_covers_as_often_as_it_says(n: int) -> None:
    """95 ± 1 % on average over rates and correlations, at least 92 % everywhere."""
    found = np.array([coverage.coverage(cell) for cell in grid((n,), (0.0, -0.1))])
    assert len(found) > 100
    assert abs(found.mean() - 0.95) < 0.01
    assert found.min() > 0.92
    assert not Cell(n=50, rate=0.05, correlation=0.5, difference=-0.1).possible


@pytest.mark.parametrize("margin", [0.03, 0.1])
def test_gates_over_pairs_are_rarely_wrong(margin: float) -> None:
    """One in twenty worse by the margin passes, hardly one by half fails where FAIL is not zero."""
    assert 0.01 < max(map(coverage.wrong_pass, grid((100, 500), (-margin,)))) < 0.05
    cells = list(grid((100, 500), (-margin / 2,)))
    assert max(coverage.wrong_fail(cell, margin) for cell in cells) < 0.025
    assert max(coverage.wrong_fail(cell, margin, zero=True) for cell in cells) > 0.2


# Other metrics


BY_KIND = {
    one.kind: one
    for one in differences.situations((0.9,))
    if "as before" not in one.name
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BY_KIND)
def test_differences_hold_and_gates_are_rarely_wrong(kind: str) -> None:
    """Nine in ten intervals hold at 60 pairs; half the margin fails where FAIL means zero."""
    rounds = 250
    found = differences.rates(BY_KIND[kind], differences.SIZES[0], rounds)
    assert found.keys() <= METRICS[kind].keys()
    for name, one in found.items():
        assert one.held >= 0.9 * rounds, name
        assert one.wrong_pass <= 0.08 * rounds, name
        assert one.wrong_fail <= 0.025 * rounds, name
    assert any(one.wrong_fail_zero > 0.1 * rounds for one in found.values())


# A judge that errs


@pytest.mark.parametrize("world", judge_error.WORLDS, ids=lambda world: world.name)
def test_no_judges_errors_pass_a_worse_model(world: judge_error.World) -> None:
    """At most 3 % (and two of the simulation's standard errors), whatever became of what."""
    random = np.random.default_rng(SEED)
    wrong = judge_error.passes(world, world.loss, 1_000, random)
    assert wrong.both <= 0.03 + 2 * (0.03 * 0.97 / 1_000) ** 0.5


def test_a_judge_that_is_believed_passes_a_worse_model() -> None:
    random = np.random.default_rng(SEED)
    lenient, *_ = judge_error.WORLDS
    assert judge_error.passes(lenient, lenient.loss, 200, random).believed > 0.9


def test_refusals_that_turn_into_wrong_answers_are_seen_by_class_alone() -> None:
    random = np.random.default_rng(SEED)
    (turned,) = [
        world
        for world in judge_error.WORLDS
        if world.name == "refusals turned wrong, 0.5 caught"
    ]
    wrong = judge_error.passes(turned, turned.loss, 200, random)
    assert wrong.by_youden > 0.9
    assert wrong.by_class < 0.07


def test_a_good_judge_lets_an_unchanged_model_pass() -> None:
    """Where 20 % of the items differ, and the margin of a language is 0.12."""
    random = np.random.default_rng(SEED)
    (good,) = [
        world
        for world in judge_error.WORLDS
        if world.name == "bundled labels, right on 0.97"
    ]
    same = judge_error.unchanged(good)
    assert judge_error.passes(same, 0.12, 400, random).both > 0.95


# Ten releases


def test_an_anchor_stops_an_erosion_that_the_last_release_does_not() -> None:
    """Where each release loses 0.02 some histories pass, with an anchor none; no loss passes."""
    found = erode(Setting(), 400)
    assert 0.8 < found.one < 0.87
    assert 0.06 < found.moving < 0.2
    assert found.anchored < 0.01
    assert erode(Setting(loss=0.0, discordance=0.02), 200).anchored > 0.9


@pytest.mark.parametrize(
    ("fixed", "broke"), [(20, 33), (20, 34), (20, 35), (40, 50), (40, 80)]
)
def test_the_simulation_decides_as_the_gate_does(fixed: int, broke: int) -> None:
    """On both sides of the counts at which the verdict changes."""
    after = (
        ["passed"] * fixed + ["failed"] * broke + ["passed"] * (1000 - fixed - broke)
    )
    before = ["failed"] * fixed + ["passed"] * (1000 - fixed)
    new, old = (
        [make_record(n, outcome=x) for n, x in enumerate(run)]
        for run in (after, before)
    )
    rule = Threshold(measure="drop", max=0.03, evidence="confident", fail="margin")
    side = PairedSlice(
        slice_=make_slice("graded", rule), pairing=pair_records(new, old)
    )
    (gate,) = change_gates(make_dataset(side.slice_), [side])
    assert (gate.state == "PASS") == is_within(fixed, broke, 1000, 0.03)


# Audited and sequential gates


@pytest.mark.parametrize(
    ("margin", "power", "looked"), [(0.10, 0.95, 120), (0.05, 0.65, 300)]
)
def test_people_let_no_worse_model_pass(
    margin: float, power: float, looked: int
) -> None:
    """2.5 % of rounds at any look, by any judge; an unchanged model passes after few pairs."""
    random = np.random.default_rng(SEED)
    for judge in (*audited.JUDGES, *audited.LINKED):
        worse = replace(judge, drop=margin)
        assert audited.outcome_of(worse, margin, 400, random).passed <= 0.025 + 0.013
    random = np.random.default_rng(SEED)
    for judge in audited.JUDGES:
        found = audited.outcome_of(judge, margin, 200, random)
        assert found.passed >= power
        assert found.looked <= looked


def test_a_changed_plan_leaves_no_weight_that_is_not_due() -> None:
    """No bias after changed plans; the benchmark's bets are ours, in single items too."""
    random = np.random.default_rng(SEED)
    for judge in audited.CHANGED:
        found = audited.outcome_of(replace(judge, drop=0.05), 0.05, 400, random)
        assert found.passed <= 0.025 * len(judge.shares) + 0.013
        assert abs(found.off[0]) < 0.002
        assert found.off[1] < 1e-12 or judge.shares[-1] < 1
    random = np.random.default_rng(SEED)
    values, sizes = (
        random.choice([-1.0, 0, 1, 2], size=(20, 500)),
        random.choice([1.0, 2], 500),
    )
    seen = [Observations(totals=row, sizes=sizes, bound=1, largest=2) for row in values]
    assert [first_above(one, -0.1) for one in seen] == list(
        bets.first(values, sizes, -0.1)
    )
    assert bets.losses_in_single_items(bets.MIXED[2], 60) <= 0.025 + 0.04


@tabled("margin", "differ", "power", "median")
def test_unchanged_is_decided(
    margin: float, differ: float, power: float, median: float
) -> None:
    """Of 4,326 items; worse by two margins it fails. The bars are those of 100 runs with noise."""
    setting = bets.Setting(items=4326, margin=margin, differ=differ)
    same = bets.ends(setting, 0, 100)
    assert (same.passed >= power, same.median <= median) == (True, True)
    assert bets.ends(setting, margin, 100).passed <= 0.025 + 0.045
    assert bets.ends(setting, 2 * margin, 50).failed >= (
        0.96 if margin == 0.05 else 0.8
    )


# The dry run's odds, and what a verdict costs


@pytest.mark.slow
@pytest.mark.parametrize("name", operating.FILES)
def test_the_odds_are_those_of_the_runs_drawn(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within three standard errors of 100 runs on either side, for each model."""
    monkeypatch.setattr(operating, "LOSSES", (0.0, 0.5))
    run = operating.of_file(operating.FILES[name])
    found = list(operating.rows(name, run, known="bars" in name, runs=100))
    assert [row.loss for row in found] == [0.0, 0.5]
    assert all(row.miss < 3 * (2 * 0.25 / 100) ** 0.5 for row in found)


@pytest.mark.slow
def test_bundled_gates_rarely_fail_a_model_that_did_not_change() -> None:
    """At most 5 % FAIL with a tenth of the items differing; the rest pass or stay open."""
    found = operating.failures(operating.bundled(), 0.1, 0.0, runs=20)
    assert found.get("exit 1", 0.0) <= 0.05
    assert found.get("exit 0", 0.0) + found.get("exit 6", 0.0) >= 0.95
    assert operating.failures(operating.bundled(), 0.1, 0.2, runs=3)["exit 1"] == 1


def test_stopping_early_costs_a_tenth() -> None:
    """Fixed, cascade, sequential, both: each is cheaper; what is clear is stopped soon."""
    many = simulate(WHOLE, 0.0, 300, concurrency=128)
    assert (many.median <= 400, many.passed > 0.99) == (True, True)
    worse = simulate(replace(WHOLE, differ=0.2), 0.15, 300)
    assert (worse.median <= 200, worse.failed) == (True, 1.0)
    rows = [line.split("|") for line in table(WHOLE, price_of_items(), 100)[2:]]
    costs = [float(row[5].replace(",", "")) for row in rows]
    assert [row[1].strip() for row in rows] == [
        "fixed",
        "cascade",
        "sequential",
        "both",
    ]
    assert costs == sorted(costs, reverse=True)
    assert costs[3] < costs[0] / 10


def rated_by_a_reader(record: Record, slice_: Slice) -> Record:
    """Return a record with a rating that is higher by three than that of the offline rater."""
    if record.rating is None:
        return record
    rating = min(10, record.rating + 3)
    passes = rating >= slice_.pass_bar
    return replace(record, rating=rating, outcome="passed" if passes else "failed")


@pytest.mark.slow
def test_paired_gates_of_each_bundled_slice_pass_a_model_that_did_not_change() -> None:
    """With odds of 0.90 or more if 20 % of items differ, by a good model's verdicts."""
    run, asked = operating.bundled(), set()
    for dataset in run.datasets:
        for language, slice_ in dataset.slices.items():
            paired = tuple(gate for gate in slice_.thresholds if gate.paired)
            if not paired:
                continue
            own = replace(
                dataset,
                slices={language: replace(slice_, thresholds=paired)},
                pooled=(),
                judge_unmeasured=True,
            )
            name = (dataset.name, language)
            records = [
                rated_by_a_reader(record, slice_)
                for record in run.records
                if (record.dataset, record.language) == name
            ]
            alone = operating.made_run((own,), tuple(records))
            odds = Simulation(alone.inputs, operating.FACTS, alone.baseline).odds(
                0.2, runs=400
            )
            assert odds.codes.get(0, 0.0) >= 0.9, slice_.name
            asked.add(slice_.name)
    assert (
        len(asked) == 21
    )  # five of simpleqa, its hard part and smoke each, two of boolq, four of eba
