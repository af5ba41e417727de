"""What a dry run foretells: the chances of each exit code, and what gates can show."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.cases.dataset import PlannedItem, Retired, Slice, Threshold
from qagate.evaluators.core import CORRECT, Case
from qagate.evaluators.statistics.paired import power
from qagate.reports.extras.odds import odds as chances
from qagate.reports.gates.decide import SessionFacts
from qagate.reports.judge.labels import Labels
from qagate.reports.judge.slice_judge import SliceJudge, errors_of
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.columns import DrawnRecords
from qagate.reports.run.record import Record
from qagate.reports.run.report import Decision, GateResult
from qagate.reports.verdict.assemble import (
    Facts,
    ReportInputs,
    account,
)
from tests.support.labelled_answers import C, N, W, label_set, right
from tests.support.made_records import make_dataset, make_record, make_slice
from tests.support.made_runs import (
    answered,
    before,
    facts_dataset,
    graded_slice,
    run_of,
    with_records,
)
from tests.support.tables import tabled

DROP = Threshold(measure="drop", max=0.1, evidence="confident")
CORRECT_BAR = Threshold(measure="correct", min=0.5)


def inputs_of(
    records: Sequence[Record], *rules: Threshold, pool: Threshold | None = None
) -> ReportInputs:
    names = dict.fromkeys(one.language for one in records)
    slices = [graded_slice(name, *rules) for name in names]
    dataset = facts_dataset(*slices, pooled=(pool,) if pool else ())
    whole = {
        f"facts:{name}": sum(one.language == name for one in records) for name in names
    }
    return ReportInputs(datasets=(dataset,), records=tuple(records), whole=whole)


FACTS = Facts(model="m", judge="lexical", session=SessionFacts(), provenance={}, run={})


def earlier(inputs: ReportInputs) -> Baseline:
    return before(run_of(inputs.records, *inputs.datasets, judge="lexical"))


def simulation(
    letters: str, *rules: Threshold, baseline: bool = True
) -> chances.Simulation:
    """Return the simulation of a run like this one, judged by rules."""
    inputs = inputs_of(answered(letters, judge="lexical"), *rules)
    return chances.Simulation(inputs, FACTS, earlier(inputs) if baseline else None)


def again(
    records: Sequence[Record],
    discordance: float,
    loss: float = 0.0,
    slice_: Slice | None = None,
) -> list[list[Record]]:
    """Return 400 runs more over these records."""
    random = np.random.default_rng(1)
    one = chances.SimulatedSlice(slice_ or graded_slice(), records)
    runs = []
    for _ in range(400):
        donors = one.draw(random, discordance, loss)
        runs.append(list(DrawnRecords(one.graded_records, donors, one.columns)))
    return runs


def test_an_unchanged_model_keeps_every_mean_and_changes_so_many_items() -> None:
    """20 % change sides and all shares stay, those of each gold label too; worse loses more."""
    records = answered("c" * 60 + "i" * 25 + "n" * 15)
    runs = again(records, 0.2)
    shares = Counter(one.grade for run in runs for one in run)
    found = [
        shares[grade] / 40_000 for grade in ("CORRECT", "INCORRECT", "NOT_ATTEMPTED")
    ]
    assert found == pytest.approx([0.6, 0.25, 0.15], abs=0.006)
    pairs = [pair for run in runs for pair in zip(run, records, strict=True)]
    flips = [(new.grade == CORRECT) != (old.grade == CORRECT) for new, old in pairs]
    assert np.mean(flips) == pytest.approx(0.2, abs=0.006)
    spread = np.std([sum(one.grade == CORRECT for one in run) for run in runs])
    assert spread == pytest.approx(np.sqrt(100 * 0.2), rel=0.1)
    worse = again(answered("c" * 60 + "i" * 40), 0.1, loss=0.2)
    right = [one.grade == CORRECT for run in worse for one in run]
    assert np.mean(right) == pytest.approx(0.4, abs=0.01)
    runs = again(answered("c" * 30 + "i" * 10 + "e" * 60), 0.0)
    assert all(one.is_graded and not one.error for run in runs for one in run)
    drawn = [one.grade == CORRECT for run in runs for one in run[40:]]
    assert np.mean(drawn) == pytest.approx(0.75, abs=0.02)
    rows = (
        [("YES", "YES")] * 40
        + [("YES", "NO")] * 10
        + [("NO", "NO")] * 15
        + [("NO", "YES")] * 35
    )
    records = [
        make_record(
            number,
            label=gold,
            grade=said,
            outcome="passed" if gold == said else "failed",
        )
        for number, (gold, said) in enumerate(rows)
    ]
    runs = again(records, 0.3, slice_=make_slice("yes_no"))
    for gold, rate in (("YES", 0.8), ("NO", 0.3)):
        of_gold = [new for run in runs for new in run if new.label == gold]
        assert np.mean([new.grade == gold for new in of_gold]) == pytest.approx(
            rate, abs=0.01
        )
        assert all((new.outcome == "passed") == (new.grade == gold) for new in of_gold)


@pytest.mark.untraced
def test_one_language_alone_is_worse_in_each_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A pooled margin with room for it passes, its own one does not; the line names the slice."""
    monkeypatch.setattr("qagate.reports.extras.odds.odds.MOST_RUNS", 40)
    letters = {"en": "c" * 180 + "i" * 120, "bg": "c" * 280 + "i" * 20}
    records = [one for name, text in letters.items() for one in answered(text, name)]

    def alone(run: chances.Simulation) -> list[str]:
        return [one for one in run.lines((0.1,), "") if "language alone" in one]

    def line(rule: Threshold) -> str:
        inputs = inputs_of(records, replace(CORRECT_BAR, min=0.1), rule)
        (found,) = alone(chances.Simulation(inputs, FACTS, earlier(inputs)))
        return found

    assert "exit 0 with 0.00" in line(DROP)
    said = line(replace(DROP, max=0.45))
    assert "exit 0 with 1.00" in said
    assert said.endswith("another in each run; most often passed: facts:en")
    assert not alone(simulation("c" * 50 + "i"))


def in_languages(letters: Mapping[str, str]) -> list[Record]:
    records = []
    for language, own in letters.items():
        records += answered(own, language, judge="lexical")
    return records


def in_clusters(records: Sequence[Record], column: str) -> list[Record]:
    """Return records of which two in a row, in any language, are about one fact."""
    return [
        replace(record, metadata={column: str(record.row // 2)}) for record in records
    ]


def unclustered(records: Sequence[Record], column: str) -> list[Record]:
    return list(records)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["c" * 30 + "i" * 20, "c" * 40 + "n" * 5 + "i" * 5]),
    st.sampled_from([unclustered, in_clusters]),
    st.sampled_from(["as now", "retired", "added", "edited", "absent"]),
    st.sampled_from([0.0, 0.1, 0.3]),
)
def test_the_gates_decide_as_those_of_a_report(
    seed: int,
    letters: str,
    linked: Callable[[Sequence[Record], str], list[Record]],
    change: str,
    loss: float,
) -> None:
    """The same gates, states, figures and exit code as in the report of the same records."""
    old = linked(in_languages({"en": letters, "bg": letters[::-1]}), "fact_id")
    rise = replace(DROP, measure="rise", of="incorrect")
    inputs = inputs_of(old, CORRECT_BAR, DROP, rise, pool=replace(DROP, pool=True))
    baseline = earlier(inputs)
    inputs = changed(inputs, change)
    run = chances.Simulation(inputs, FACTS, baseline)
    dataset = run.datasets["facts"]
    random = np.random.default_rng(seed)
    donors = {}
    drawn: list[Record] = []
    for slice_ in dataset.slices:
        donors[slice_.name] = slice_.draw(random, 0.3, loss)
        drawn += DrawnRecords(
            slice_.graded_records, donors[slice_.name], slice_.columns
        )
    decided = dataset.decision(donors)
    whole = account(replace(inputs, records=tuple(drawn)), FACTS, baseline).decision
    assert decided.code == whole.code
    assert without_words(decided) == without_words(whole)


def changed(inputs: ReportInputs, change: str) -> ReportInputs:
    """Return the inputs of a run whose items differ from those of the baseline."""
    first, *rest = inputs.records
    if change == "added":
        extra = replace(first, key="new", id="new", question="Is it new?", row=99)
        return replace(inputs, records=(*inputs.records, extra))
    if change == "edited":
        edited = replace(first, question="Is it another one?", digest="other")
        return replace(inputs, records=(edited, *rest))
    if change == "absent":
        return replace(inputs, records=tuple(rest))
    if change == "retired":
        (dataset,) = inputs.datasets
        retired = Retired(ids=(first.id,), reason="wrong gold")
        slices = {}
        for language, slice_ in dataset.slices.items():
            slices[language] = replace(slice_, retired=retired)
        return replace(inputs, datasets=(replace(dataset, slices=slices),))
    return inputs


def test_ungraded_items_are_drawn_as_those_that_have_a_grade() -> None:
    """A run foretold has no gate open for want of a grade."""
    run = simulation("c" * 60 + "i" * 20 + "e" * 20, CORRECT_BAR, baseline=False)
    assert run.odds(0.1, runs=20).codes[0] == 1.0


def test_a_model_asked_again_is_not_compared_with_itself() -> None:
    """The baseline's records stand for new answers, not for those that its own run asked."""
    old = [
        replace(record, asked_by="run-1")
        for record in answered("c" * 90 + "i" * 10, judge="lexical")
    ]
    inputs = inputs_of(old, CORRECT_BAR, DROP)
    baseline = earlier(inputs)
    slice_ = inputs.datasets[0].slices["en"]
    items = []
    for record in old:
        case = Case(
            id=record.id,
            dataset="facts",
            language="en",
            row=record.row,
            question=record.question,
            golds=record.golds,
            digest=record.digest,
        )
        items.append(PlannedItem(key=record.key, slice=slice_, case=case, repeat=1))
    records = chances.known_records(items, baseline, lambda keys: {}, "lexical")
    facts = replace(FACTS, model="openai:any")
    run = chances.Simulation(replace(inputs, records=records), facts, baseline)
    odds = run.odds(0.05, runs=20)
    assert odds.codes[0] > 0.8
    assert not odds.never_decided()


def test_data_sets_end_independently() -> None:
    """A run passes if all pass, and fails if any fails; the error is that of all."""
    tallies = {
        "a": chances.Tally(ended=Counter({0: 80, 6: 20})),
        "b": chances.Tally(ended=Counter({0: 50, 1: 50})),
        "c": chances.Tally(ended=Counter({0: 100})),
        "labels": chances.Tally(is_certain=True, ended=Counter({0: 1})),
    }
    odds = chances.Odds(tallies=tallies)
    assert odds.codes == pytest.approx({0: 0.4, 1: 0.5, 6: 0.1})
    assert 0.045 < odds.error < 0.06
    assert odds.least_known() == "b"


def test_runs_end_once_the_chances_are_known_well_enough() -> None:
    """A gate that always passes takes few runs; what is printed has its interval."""
    run = simulation("c" * 190 + "i" * 10, CORRECT_BAR, baseline=False)
    odds = run.odds(0.1, error=0.02)
    assert odds.tallies["facts"].runs < 80
    (line,) = (line for line in run.lines((0.1,), "known") if "unchanged" in line)
    assert "exit 0 with 1.00, 1 with 0.00, 6 with 0.00, ± 0.0" in line


def without_words(decision: Decision) -> list[GateResult]:
    """Return the gates without what a report says and draws of them."""
    gates = []
    for gate in decision.gates:
        bare = replace(gate, reason="", remedy="", needs="")
        gates.append(replace(bare, band=None, bands={}, old=None, new=None))
    return gates


@pytest.mark.untraced
def test_a_drop_gate_alone_ends_as_its_exact_power_says() -> None:
    """Exit 0 for an unchanged model, within three standard errors of the enumeration."""
    run = simulation("c" * 60 + "i" * 40, DROP, replace(CORRECT_BAR, min=0.0))
    odds = run.odds(0.2, runs=250)
    assert odds.codes[0] == pytest.approx(power(100, -0.1, 0.2), abs=0.09)
    assert odds.blame()[0][0] == "facts:en drop <= 0.1"
    assert 0 < odds.error < 0.032
    assert sum(odds.codes.values()) == pytest.approx(1)
    assert run.odds(0.2, worse=1.0, runs=250).codes[0] <= 0.05


def test_without_a_baseline_there_is_no_drop_gate() -> None:
    """A bar far off decides each time; usage has no forecast; the seed is fixed."""
    for rule in (DROP, Threshold(measure="seconds_p95", max=1.0)):
        odds = simulation("c" * 36 + "i" * 4, CORRECT_BAR, rule, baseline=False).odds(
            0.1, runs=20
        )
        tally = odds.tallies["facts"]
        assert tally.ended == {0: 20}
        assert tally.blame == {"facts:en correct >= 0.5": 0}
    found = [
        simulation("c" * 20 + "i" * 20, CORRECT_BAR).odds(0.1, runs=20)
        for _ in range(2)
    ]
    assert found[0] == found[1]


def test_the_margin_is_that_of_the_drop_gate() -> None:
    """The slice's own margin, else 0.1; pairs of repeats; labels do not depend on the model."""
    plain = graded_slice("en", Threshold(measure="drop", of="f_score", max=0.5))
    assert chances.margin_of(facts_dataset(plain), plain) == 0.1
    assert (
        chances.margin_of(
            facts_dataset(plain, pooled=(replace(DROP, max=0.03),)), plain
        )
        == 0.03
    )
    own = graded_slice("en", replace(DROP, max=0.05))
    assert (
        chances.margin_of(facts_dataset(own, pooled=(replace(DROP, max=0.03),)), own)
        == 0.05
    )
    rows = [("c", "c", "i")] * 15 + [("c", "c", "c")] * 15
    repeats = [
        replace(one, repeat=2) for one in answered("".join(row[1] for row in rows))
    ]
    third = [
        replace(one, repeat=3) for one in answered("".join(row[2] for row in rows))
    ]
    first = answered("".join(row[0] for row in rows))
    asked = before(run_of([*first, *repeats, *third]))
    assert chances.known_discordance(asked)[0] == pytest.approx((1 / 3,))
    assert (
        chances.known_discordance(with_records(asked, first))[0] == chances.DISCORDANCES
    )
    records = [make_record(n, label=CORRECT, grade=CORRECT) for n in range(20)]
    assert not chances.SimulatedSlice(make_slice("judged"), records).is_answered


def clusters(count: int, name: str = "fact_id") -> set[tuple[str, ...]]:
    return {(name, str(number)) for number in range(count)}


def said(rule: Threshold, count: int, *, baseline: bool = True) -> str:
    """Return the sentence on one rule of a slice with so many items."""
    dataset, own = make_dataset(make_slice("graded", rule)), {"bg": clusters(count)}
    (line,) = chances.power_lines(
        dataset, own, baseline=baseline, discordances=chances.DISCORDANCES
    )
    return line


@tabled("rule", "text")
def test_each_gate_has_its_sentence(rule: dict[str, Any], text: str) -> None:
    """The smallest drop that so many pairs exclude for an unchanged model."""
    gate = Threshold(**rule)
    line = said(gate, 400)
    assert line.startswith(f"d:bg {gate.name} ")
    assert text in line


def test_labels_widen_the_smallest_drop_by_what_they_leave_open() -> None:
    """Thirty labels of each class, all graded right: J is 1, and its lower end 0.84."""
    rule = Threshold(measure="drop", max=0.1, evidence="confident", fail="margin")
    dataset = facts_dataset(graded_slice("en", rule))
    labels = label_set(right(30, 30, 30))
    (line,) = chances.power_lines(
        dataset,
        {"en": clusters(400)},
        baseline=True,
        discordances=(0.1,),
        sets=[labels],
    )
    assert "400 independent pairs and 90 labels of your own exclude a drop of " in line
    drop = float(line.partition("drop of ")[2].split()[0])
    assert 0.046 < drop < 0.050


def test_a_margin_out_of_reach_is_named_before_anything_is_paid() -> None:
    """Too few pairs never pass, the number needed is said; a fact in several counts once."""
    rule = Threshold(measure="drop", max=0.03, evidence="confident")
    assert "can never pass with 50 independent pairs; it takes 125" in said(rule, 50)
    assert "without --baseline it is not decided" in said(rule, 50, baseline=False)
    assert "can never pass" not in said(rule, 125)
    slices = [make_slice(language=language) for language in ("bg", "pl")]
    pooled = Threshold(measure="drop", max=0.04, evidence="confident", pool=True)
    dataset = make_dataset(*slices, pooled=[pooled])
    apart = {"bg": clusters(60, "bg"), "pl": clusters(60, "pl")}
    (line,) = chances.power_lines(
        dataset, apart, baseline=True, discordances=chances.DISCORDANCES
    )
    assert line.startswith("d:* drop <= 0.04: 120")
    assert "120 independent pairs exclude" in line
    linked = {"bg": clusters(60), "pl": clusters(60)}
    (line,) = chances.power_lines(
        dataset, linked, baseline=True, discordances=chances.DISCORDANCES
    )
    assert "can never pass with 60 independent pairs" in line


def test_the_share_asked_until_decided_is_that_of_the_slowest_gate() -> None:
    """A bar takes all; a wide margin little, more where the judge errs; a pooled gate both."""
    drop = Threshold(measure="drop", max=0.1, evidence="sequential", fail="margin")
    bar = Threshold(measure="correct", min=0.5, evidence="sequential")
    slices = [graded_slice("en", drop), graded_slice("bg", drop, bar)]
    own = {language: clusters(600, language) for language in ("en", "bg")}
    found = chances.expected_shares(
        facts_dataset(*slices), own, baseline=True, discordance=0.1
    )
    assert found["facts:bg"] == 1.0
    assert 0.1 < found["facts:en"] < 0.4
    alone = chances.expected_shares(
        facts_dataset(*slices), own, baseline=False, discordance=0.1
    )
    assert alone == {"facts:en": 0.0, "facts:bg": 1.0}
    both = facts_dataset(*slices, pooled=(replace(drop, max=0.05, pool=True),))
    pooled = chances.expected_shares(both, own, baseline=True, discordance=0.1)
    assert pooled["facts:en"] > found["facts:en"]
    known = label_set({(C, C): 90, (C, W): 10, (W, W): 90, (W, C): 10, (N, N): 50})
    judge = SliceJudge(slice_=graded_slice(), labels=Labels.of(graded_slice(), [known]))
    errors = errors_of([(judge, 1.0)])
    assert chances.units_needed(drop, 600, 0.1, errors) > chances.units_needed(
        drop, 600, 0.1
    )
