"""Which labelled items measure a judge, and what their verdicts say of it."""

from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.cases.dataset import Dataset, Plan, PlannedItem, Slice, Threshold
from qagate.cases.plan import Labelled, labelled_for
from qagate.evaluators.core import CORRECT, INCORRECT, Outcome, State, Usage, Verdict
from qagate.evaluators.kinds import kind_of
from qagate.evaluators.rubric import Protocol, Rubric
from qagate.evaluators.statistics.intervals import UNDEFINED, Estimate
from qagate.reports.judge.measured import (
    calibrate,
    calibration_notes,
    calibration_of,
    distrust,
    measured_among,
)
from qagate.reports.metrics.summary import summarise
from qagate.reports.run.evidence import Calibration, ConfusionCell
from qagate.reports.run.record import Record
from tests.support.made_records import graded, make_slice, numbered
from tests.support.made_runs import facts_dataset
from tests.support.scripted import make_case
from tests.support.tables import tabled

BAR = Threshold(measure="correct", min=0.5)
TURNS = (CORRECT, INCORRECT)
LABELS = "id,question,answer,predicted_answer,label,label_source\n" + "".join(
    f"l{number},Question {number}?,a,a,{TURNS[number % 2]},constructed\n"
    for number in range(20)
)


def rubric(version: str = "v1", protocol: Protocol = "tool") -> Rubric:
    return Rubric(
        name="r", language="bg", protocol=protocol, system="", user="", version=version
    )


def dataset(*slices: Slice, **changes: object) -> Dataset:
    first = slices[0]
    made = facts_dataset(
        *slices, name=first.dataset, kind=first.kind, judge_unmeasured=False
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def asked(**changes: object) -> Slice:
    """Return a graded slice with a gate."""
    return replace(make_slice("graded", BAR, rubric=rubric()), **changes)  # type: ignore[arg-type]


def plan(*datasets: Dataset) -> Plan:
    items = [
        PlannedItem(
            key=f"{one.dataset}-{one.language}-q1",
            slice=one,
            case=make_case(),
            repeat=1,
        )
        for some in datasets
        for one in some.slices.values()
    ]
    return Plan(datasets=datasets, items={item.key: item for item in items})


@pytest.fixture
def labels(tmp_path: Path) -> Slice:
    """Return a labelled slice of twenty items in Bulgarian, half of them CORRECT."""
    path = tmp_path / "bg.csv"
    path.write_text(LABELS, encoding="utf-8")
    floor = {"agreement": 0.8}
    return make_slice(
        "judged", dataset="labels", path=path, rubric=rubric(), floor=floor
    )


def test_labels_measure_every_slice_of_their_language_and_rubric(labels: Slice) -> None:
    """Under keys of their own, by kind, for slices with a gate, of its own or pooled."""
    one, two = asked(dataset="one"), asked(dataset="two")
    (found,) = labelled_for(plan(dataset(one), dataset(two)), [dataset(labels)])
    assert found.graders == ("one:bg", "two:bg")
    keys = [f"labels-bg-l{number}" for number in range(20)]
    assert [item.key for item in found.items] == [f"calibration:{key}" for key in keys]
    assert found.of({"two:bg", "x:bg"}).graders == ("two:bg",)
    assert found.planned_in({*keys, "other"})
    assert not found.planned_in({*keys[1:]})
    ratings = replace(labels, dataset="ratings", rubric=rubric("r1", "rate"))
    judged = [dataset(ratings), dataset(labels)]
    (found,) = labelled_for(plan(dataset(asked())), judged)
    assert found.dataset.name == "labels"
    rated = replace(asked(kind=kind_of("rated")), rubric=rubric("r1", "rate"))
    (found,) = labelled_for(plan(dataset(rated)), judged)
    assert found.dataset.name == "ratings"
    assert labelled_for(plan(dataset(rated)), [dataset(labels)]) == ()
    for some in (asked(thresholds=()), make_slice("yes_no", BAR), labels):
        assert labelled_for(plan(dataset(some)), [dataset(labels)]) == ()
    assert (
        labelled_for(Plan(datasets=(dataset(asked()),), items={}), [dataset(labels)])
        == ()
    )
    pooled = dataset(
        asked(thresholds=()), pooled=(Threshold(measure="drop", max=0.1, pool=True),)
    )
    assert len(labelled_for(plan(pooled), [dataset(labels)])) == 1


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"rubric": rubric("v2")}, "labels has no labelled items for v2"),
        ({"language": "be"}, "labels has no labelled items there"),
    ],
)
def test_other_rubrics_measure_nothing(
    labels: Slice, changes: dict[str, object], why: str
) -> None:
    """The judge with this rubric in this language is not measured; that is said, with the cause."""
    (found,) = labelled_for(plan(dataset(asked(**changes))), [dataset(labels)])
    assert (found.items, found.why_not) == ((), why)
    judged = dataset(labels, require_calibration=True)
    (required,) = labelled_for(plan(dataset(asked(**changes))), [judged])
    assert (calibrate(found, {}).reason, calibrate(found, {}).blocks) == (why, "")
    assert "calibration is required" in calibrate(required, {}).blocks


def outcomes(found: Labelled, *grades: str) -> dict[str, Outcome]:
    """Return the verdicts on labelled items: these grades in turn; an empty one is an ERROR."""
    ends = {}
    for item, grade in zip(found.items, cycle(grades), strict=False):
        ended: State = (
            ("passed" if grade == item.case.label else "failed") if grade else "error"
        )
        verdict, usage = (
            Verdict(grade=grade) if grade else None,
            Usage(input_tokens=7, cost=0.25),
        )
        kind = "" if grade else "timeout"
        ends[item.key] = Outcome(
            key=item.key, state=ended, verdict=verdict, kind=kind, usage=usage
        )
    return ends


def labelled(labels: Slice) -> Labelled:
    (found,) = labelled_for(plan(dataset(asked())), [dataset(labels)])
    return found


def test_a_judge_at_its_floor_is_trusted(labels: Slice) -> None:
    """Its measures, confusion, tokens; below the floor it says what was measured and asked."""
    found = labelled(labels)
    one = calibrate(found, outcomes(found, CORRECT, INCORRECT))
    assert (one.trusted, one.blocks, one.items) == (True, "", 20)
    assert (one.measures["agreement"].value, one.tokens, one.cost) == (1.0, 140, 5.0)
    assert one.confusion == (
        ConfusionCell(label=CORRECT, grade=CORRECT, count=10),
        ConfusionCell(label=INCORRECT, grade=INCORRECT, count=10),
    )
    (note,) = calibration_notes([one])
    assert note.startswith(
        "judge in bg (for d:bg): agreement 1.000 [0.839, 1.000], youden 1"
    )
    assert note.endswith("over 20 unit tests of the judge (labels)")
    people = replace(one, constructed=1)
    assert calibration_notes([people])[0].endswith("over 20 labelled items (labels)")
    earlier = replace(one, source="ledger")  # as runs before this version have it
    assert "(for d:bg), measured earlier: agreement" in calibration_notes([earlier])[0]
    (unknown,) = calibration_notes(
        [replace(one, measures=dict.fromkeys(one.measures, UNDEFINED))]
    )
    assert unknown.startswith("judge in bg (for d:bg): no figure over 20")
    found = labelled(labels)
    one = calibrate(found, outcomes(found, CORRECT, CORRECT))
    assert one.trusted is False
    assert (
        one.blocks
        == one.reason
        == "judge not trusted in bg: agreement 0.5 is below 0.8 (n=20)"
    )
    assert calibration_notes([one])[0].endswith(f"; {one.reason}")
    found = labelled(replace(labels, floor={}))
    one = calibrate(found, outcomes(found, CORRECT, CORRECT))
    assert (one.trusted, one.blocks) == (None, "")


def test_an_offline_judge_may_stand_in_for_one_that_reaches_the_floor(
    labels: Slice,
) -> None:
    """It decides where it reaches its own floor, and its figures are held against the other."""
    found = labelled(replace(labels, offline_floor={"agreement": 0.4}))
    ends = outcomes(found, CORRECT, CORRECT)
    model, rules = calibrate(found, ends), calibrate(found, ends, placeholder=True)
    assert (model.trusted, model.floor, model.stand_in) == (
        False,
        {"agreement": 0.8},
        "",
    )
    assert (rules.trusted, rules.blocks, rules.floor) == (True, "", {"agreement": 0.4})
    said = "the lower floor of a placeholder judge; misses a model's: agreement 0.5 is below 0.8"
    assert said in rules.stand_in
    assert said in calibration_notes([replace(rules, source="records")])[0]
    good = calibrate(found, outcomes(found, CORRECT, INCORRECT), placeholder=True)
    assert good.stand_in.endswith("reaches a model's")
    low = calibrate(found, outcomes(found, INCORRECT, CORRECT), placeholder=True)
    assert (low.trusted, low.blocks != "") == (False, True)


@tabled("limit", "trusted", "blocks")
def test_lower_limits_count(
    labels: Slice, limit: float, trusted: bool | None, blocks: str
) -> None:
    """20 of 20 are 0.839 at the lower end; a floor and its limit missed are one sentence."""
    found = labelled(replace(labels, floor_limit={"agreement": limit}))
    one = calibrate(found, outcomes(found, CORRECT, INCORRECT))
    assert (one.trusted, one.floor_limit) == (trusted, {"agreement": limit})
    assert one.blocks.startswith(blocks)
    assert bool(one.blocks) is bool(blocks)
    slice_ = replace(
        labels, floor_limit={"agreement": 0.7}, offline_floor={"agreement": 0.4}
    )
    one = calibrate(
        labelled(slice_), outcomes(found, CORRECT, CORRECT), placeholder=True
    )
    assert (one.stand_in.count("agreement"), one.floor_limit) == (1, {})


@tabled("floor", "trusted", "blocks")
def test_ungraded_may_count(
    labels: Slice, floor: float, trusted: bool | None, blocks: str
) -> None:
    """Refused or never judged: the floor has to hold at worst, and is missed only at best."""
    found = labelled(replace(labels, floor={"agreement": floor}))
    ends = outcomes(found, *TURNS * 9, CORRECT, "")
    part = {key: end for key, end in ends.items() if end.verdict}
    for known in (ends, part):
        one = calibrate(found, known)
        assert (one.trusted, one.items, one.measures["agreement"].n) == (
            trusted,
            20,
            19,
        )
        assert one.blocks.startswith(blocks)
        assert bool(one.blocks) is bool(blocks)
        said = "20 unit tests of the judge (labels), 1 without a grade"
        assert said in calibration_notes([one])[0]


@pytest.mark.parametrize(("right", "trusted"), [(40, True), (37, None), (35, False)])
def test_a_sample_needs_its_whole_interval(
    labels: Slice, right: int, trusted: bool | None
) -> None:
    """Of 40 of 400 labels 0.925 may be luck; all of them, or a bar of its own, are decided."""
    slice_ = replace(labels, floor={"agreement": 0.9}, floor_limit={})
    whole = labelled(slice_)
    items = tuple(
        replace(whole.items[0], key=f"k{n}", case=make_case(n, label=TURNS[n % 2]))
        for n in range(40)
    )
    drawn = replace(whole, items=items, whole=400)
    verdicts = (Verdict(grade=TURNS[(n + (n >= right)) % 2]) for n in range(40))
    ends = {
        one.key: Outcome(key=one.key, state="passed", verdict=said)
        for one, said in zip(items, verdicts, strict=True)
    }
    found = calibrate(drawn, ends)
    assert (found.trusted, bool(found.blocks)) == (trusted, not trusted)
    assert found.labels == "40 of 400 labelled items"
    assert calibrate(replace(drawn, whole=40), ends).trusted is (right >= 36)
    limited = replace(slice_, floor_limit={"agreement": 0.8})
    own = tuple(replace(one, slice=limited) for one in items)
    assert bool(calibrate(replace(drawn, items=own), ends).trusted) is (right >= 37)


def test_a_judge_that_no_label_could_measure_blocks_its_gates(labels: Slice) -> None:
    """A floor was asked for, and nothing is known. Where a reply has no price the sum has none."""
    found = labelled(labels)
    for ends in ({}, outcomes(found, "", "")):
        one = calibrate(found, ends)
        assert (one.trusted, one.measures["agreement"].value) == (None, None)
        assert one.blocks.startswith(
            "judge measured too little in bg: agreement is undefined"
        )
    ends = outcomes(found, CORRECT, INCORRECT)
    key, end = next(iter(ends.items()))
    assert (
        calibrate(found, {**ends, key: replace(end, usage=Usage(cost=None))}).cost
        is None
    )


@pytest.mark.parametrize(
    "floor", [{"agreement": 0.6}, {"agreement": 0.9}, {"precision": 0.5}, {"recall": 1}]
)
@pytest.mark.parametrize("right", [1, 5, 9, 190, 191, 195, 200])
def test_who_says_correct_to_all_is_not_trusted(
    right: int, floor: dict[str, float]
) -> None:
    """With ten of each class it cannot tell right from wrong; with fewer too little is known."""
    slice_ = make_slice("judged", language="bg", floor=floor)
    rows = [
        {"label": TURNS[number >= right], "grade": CORRECT} for number in range(200)
    ]
    records = numbered(rows)
    one = calibration_of(slice_, records, summarise(records, slice_), ())
    assert not one.trusted
    few = (
        "of right answers and"
        if min(right, 200 - right) < 10
        else "cannot tell right from wrong"
    )
    assert few in one.blocks or "is below" in one.blocks


def test_a_rater_that_gives_all_the_same_is_trusted_by_no_floor() -> None:
    """Ratings that pass all alike are no use; a placeholder needs labels of both classes."""
    slice_ = make_slice(
        "judged", floor={"mean_difference": 2}, rubric=rubric("r1", "rate")
    )

    def trusted(*ratings: int) -> bool | None:
        rows = [{"label": str(5 + n % 4), "rating": ratings[n % 4]} for n in range(80)]
        records = [replace(one, grade=None) for one in numbered(rows)]
        return calibration_of(slice_, records, summarise(records, slice_), ()).trusted

    assert trusted(5, 6, 7, 8)
    assert not trusted(7, 7, 7, 7)
    slice_ = make_slice(
        "judged", offline_floor={"agreement": 0.5}, floor={"agreement": 0.9}
    )

    def measured(*labels: str) -> Calibration:
        records = numbered([{"label": label, "grade": CORRECT} for label in labels])
        return calibration_of(
            slice_, records, summarise(records, slice_), (), placeholder=True
        )

    assert measured(*TURNS).trusted
    alone = measured(CORRECT, CORRECT)
    assert alone.trusted is None
    assert "2 labels of right answers and 0 of wrong ones; add some" in alone.blocks


PAIRS = st.tuples(*[st.sampled_from([CORRECT, INCORRECT])] * 2)


@settings(max_examples=60)
@given(
    pairs=st.lists(PAIRS, min_size=1, max_size=40),
    lost=st.integers(0, 39),
    name=st.sampled_from(["agreement", "kappa", "youden"]),
    lowest=st.floats(-1, 1),
)
def test_a_label_less(
    pairs: list[tuple[str, str]], lost: int, name: str, lowest: float
) -> None:
    """For any verdicts and floor: what is not graded can take trust away, never give it."""
    slice_ = make_slice("judged", floor={name: lowest})
    records = numbered([{"label": label, "grade": grade} for label, grade in pairs])
    fewer = [
        replace(one, grade=None, outcome="error") if place == lost else one
        for place, one in enumerate(records)
    ]

    def blocks(some: list[Record]) -> str:
        return calibration_of(slice_, some, summarise(some, slice_), ()).blocks

    assert not blocks(records) or blocks(fewer)


MODEL = "openai:judge"


def known(**changes: object) -> Calibration:
    made = Calibration(
        dataset="labels", language="bg",
        measures={"agreement": Estimate(value=0.9, low=0.8, high=0.95, n=50)}, graders=("d:bg",),
        source="session", trusted=True,
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


@tabled("found", "judge", "waived", "words")
def test_who_decides(
    found: list[dict[str, Any]], judge: str, *, waived: bool, words: str
) -> None:
    """A model measured and not below its floor, or waived; rules unless labels speak against."""
    for one in found:
        one |= {"graders": tuple(one.get("graders", ["d:bg"]))}
        if "measures" in one:
            one["measures"] = dict.fromkeys(one["measures"], UNDEFINED)
    slice_ = asked()
    datasets = [dataset(slice_, judge_unmeasured=waived)]
    said = distrust(datasets, slice_, [known(**one) for one in found], judge)
    assert said.startswith(words)
    assert bool(said) is bool(words)


def test_labels_of_the_run_measure_what_they_are_labels_of(labels: Slice) -> None:
    """The same language and kind; for a model the same rubric, and nothing measured elsewhere."""
    one, other = asked(dataset="one"), asked(dataset="other", rubric=rubric("v2"))
    rated = make_slice("rated", dataset="rated", rubric=rubric("r1", "rate"))
    slices = (one, other, rated, asked(dataset="far", language="en"), labels)
    records = {slice_.name: graded(1) for slice_ in slices}
    records[rated.name] = [replace(graded(1)[0], grade=None, rating=7)]
    records[labels.name] = numbered(
        [{"label": grade, "grade": grade} for grade in TURNS * 10]
    )
    summaries = {
        slice_.name: summarise(records[slice_.name], slice_) for slice_ in slices
    }

    def graders(judge: str, *outside: Calibration) -> tuple[str, ...]:
        datasets = [dataset(slice_) for slice_ in slices]
        (found,) = measured_among(datasets, records, summaries, judge, outside)
        assert (found.source, found.trusted) == ("records", True)
        return found.graders

    assert graders("lexical") == ("one:bg", "other:bg")
    assert graders(MODEL) == ("one:bg",)
    assert graders("lexical", known(graders=("one:bg",))) == ("other:bg",)


@pytest.mark.parametrize(("model", "trusted"), [("recorded", True), ("gpt", False)])
def test_offline_judges_take_recorded_answers(
    labels: Slice, model: str, trusted: bool
) -> None:
    """Where a model answers, the judge is held to the floor of a model."""
    slices = (asked(), replace(labels, offline_floor={"agreement": 0.4}))
    answers = [replace(one, model=model) for one in graded(2)]
    wrong = numbered(
        [{"label": grade, "grade": CORRECT} for grade in (CORRECT, INCORRECT)]
    )
    records = {slices[0].name: answers, slices[1].name: wrong}
    summaries = {one.name: summarise(records[one.name], one) for one in slices}
    (found,) = measured_among(
        [dataset(one) for one in slices], records, summaries, "lexical", ()
    )
    assert (found.trusted, found.stand_in != "") == (trusted, trusted)
