"""Items that hang together, samples that may decide, labels that tell only right from wrong."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from qagate.cases.config import DatasetGates, GatesFile
from qagate.cases.dataset import Sampling, Slice, SliceSample, Threshold, clusters_in
from qagate.evaluators.core import (
    CORRECT,
    INCORRECT,
    NOT_ATTEMPTED,
    YES,
    UsageError,
    Verdict,
    Vote,
)
from qagate.evaluators.kinds import JUDGED, NOT_CORRECT
from qagate.reports.compare.comparison import compare
from qagate.reports.compare.differences import differences
from qagate.reports.compare.shares import share_difference
from qagate.reports.compare.sides import PairedSlice, passes
from qagate.reports.compare.states import pair_records
from qagate.reports.compare.tables import share_change
from qagate.reports.extras.merge.recount import merged
from qagate.reports.gates.change import change_gates
from qagate.reports.judge.votes import panels
from qagate.reports.metrics.summary import extra_estimates, summarise
from qagate.reports.run.record import Record
from qagate.reports.run.report import Report
from qagate.reports.run.run_json import dump_datasets, load_datasets
from qagate.reports.verdict.rebuild import rebuilt, regated
from tests.benchmarks.clusters import PANELS, Panel, gate, panel_coverage
from tests.support.made_records import make_dataset, make_record, make_slice, numbered
from tests.support.made_runs import (
    answered,
    before,
    facts_dataset,
    graded_slice,
    run_of,
)
from tests.support.projects import Project, graded
from tests.support.samples import rendered
from tests.support.tables import tabled

LANGUAGES = ("en", "bg", "pl", "hu")
DROP = Threshold(measure="drop", max=0.1, evidence="confident", pool=True)
PASSAGE = hashlib.sha256(b"p").hexdigest()


def fact(number: int, language: str, *, right: bool, **fields: object) -> Record:
    return make_record(
        number, key=f"d-{language}-i{number}", language=language,
        grade=CORRECT if right else INCORRECT, outcome="passed" if right else "failed",
        **{"metadata": {"fact_id": f"F{number}"}, **fields},
    )  # fmt: skip


def side(
    slice_: Slice, lost: Sequence[int], items: int = 60, **fields: object
) -> PairedSlice:
    """Return a slice that was all right before and is wrong on the ``lost`` items now."""
    language = slice_.language
    old = [fact(n, language, right=True, **fields) for n in range(items)]
    new = [fact(n, language, right=n not in lost, **fields) for n in range(items)]
    return PairedSlice(slice_=slice_, pairing=pair_records(new, old))


def test_sixty_copies_of_a_question_are_one(project: Project) -> None:
    """Without ids: an interval over one question is wide, so that a confident bar stays open."""
    gates = {"en": "correct: {min: 0.9, evidence: confident}"}
    project.dataset("capital", {"en": ["Sofia"]}, graded(gates))
    row = {"question": "Which capital?", "answer": "Sofia", "predicted_answer": "Sofia"}
    other = {**row, "question": "which  capital?"}
    lines = (json.dumps(one) + "\n" for one in [row] * 30 + [other] * 30)
    project.write("qa/capital/en.jsonl", "".join(lines))
    assert project.run_in_process("qa").ret == 6
    low = project.only("gates")["estimate"]["low"]
    assert low < 0.3


@tabled("kind", "field", "fields", "cluster")
def test_item_cluster(
    kind: str, field: str, fields: dict[str, object], cluster: list[str]
) -> None:
    """The declared field; else the fact; else the passage or the question; else its own words."""
    found = make_slice(kind, cluster=field).cluster_of(
        make_record(1, label=YES, **fields)
    )
    assert found == tuple(PASSAGE if one == "PASSAGE" else one for one in cluster)


def test_three_facts_lost_in_four_languages_are_three_losses() -> None:
    """Twelve pairs of 240 would pass 0.1, three facts of sixty do not; so in a comparison."""
    slices = [make_slice(language=language) for language in LANGUAGES]
    sides = [side(one, lost=(3, 4, 5)) for one in slices]
    found = share_difference(sides)
    assert (found.n, found.fixed, found.broke) == (240, 0, 12)
    assert found.interval == pytest.approx((-0.137, 0.013), abs=0.004)
    assert (found.better, found.worse) == (0, 3)
    assert found.p_value == pytest.approx(0.25)
    (gate,) = change_gates(make_dataset(*slices, pooled=[DROP]), sides)
    assert gate.state == "INCONCLUSIVE"
    apart = share_difference([side(one, lost=(3, 4, 5), metadata={}) for one in slices])
    assert apart.interval == pytest.approx((-0.085, -0.029), abs=0.001)
    baseline = before(run_of([fact(0, "en", right=True)], make_dataset(*slices)))
    pooled = compare(sides, baseline).slices[-1]
    assert (pooled.difference.interval, pooled.odds.n) == (found.interval, 3)
    assert pooled.p_value == pytest.approx(0.25)


@pytest.mark.parametrize("seed", range(6))
def test_the_worst_case_of_linked_items_is_worse_than_any_other(seed: int) -> None:
    """However ungraded items of a few facts may have come out, the gate has looked at worse."""
    random = np.random.default_rng(seed)
    before = random.random((4, 25)) < 0.8
    now = np.where(random.random((4, 25)) < 0.05, ~before, before)
    open_ = set(map(int, random.choice(100, size=3, replace=False)))

    def gated(grades: Sequence[bool | None]) -> list[PairedSlice]:
        known = iter(grades)
        found = []
        for place, language in enumerate(LANGUAGES):
            old = [fact(n, language, right=bool(before[place, n])) for n in range(25)]
            new = [fact(n, language, right=bool(now[place, n])) for n in range(25)]
            for n in (n for n in range(25) if 25 * place + n in open_):
                grade = next(known)
                new[n] = fact(n, language, right=bool(grade))
                if grade is None:
                    new[n] = replace(new[n], grade=None, outcome="error")
            slice_ = make_slice(language=language)
            found.append(PairedSlice(slice_=slice_, pairing=pair_records(new, old)))
        return found

    lows = [
        case.change.low for case in share_change(gated([None] * 3), passes).cases[1:]
    ]
    for grades in product((False, True), repeat=3):
        low, _ = share_difference(gated(grades)).interval
        assert min(filter(None, lows)) <= low + 1e-9


def test_questions_on_one_passage_hang_together() -> None:
    """Ten passages of six questions each, right or wrong together: ten items' interval."""
    rows = [(number, number // 6) for number in range(60)]
    records = [
        make_record(
            number,
            context=f"Passage {passage}",
            label=YES,
            grade=YES if passage < 7 else "NO",
            outcome="passed" if passage < 7 else "failed",
            measures={"tone": float(passage < 7)},
        )
        for number, passage in rows
    ]
    alone = [replace(one, context=f"Passage {one.id}") for one in records]
    slice_ = make_slice("yes_no")
    for name in ("accuracy", "f1", "tone"):
        together = summarise(records, slice_).measures[name]
        apart = summarise(alone, slice_).measures[name]
        assert (together.value, together.n) == (apart.value, apart.n)
        assert width(together.interval) > 2 * width(apart.interval)
    tens = extra_estimates(records[::6], slice_)["tone"]
    assert extra_estimates(records, slice_)["tone"].interval == pytest.approx(
        tens.interval
    )
    linked = PairedSlice(slice_=slice_, pairing=pair_records(records, flipped(records)))
    single = PairedSlice(slice_=slice_, pairing=pair_records(alone, flipped(alone)))
    wide, narrow = (differences([one])["macro_f1"].interval for one in (linked, single))
    assert width(wide) > 2 * width(narrow)


def flipped(records: Sequence[Record]) -> list[Record]:
    return [replace(one, grade="NO", outcome="failed") for one in records[:6]] + list(
        records[6:]
    )


def width(interval: tuple[float, float] | None) -> float:
    assert interval
    return interval[1] - interval[0]


def test_repeats_of_a_panel_count_once() -> None:
    """Three repeats that come out alike teach nothing of how far judges agree."""
    votes = [("a", "a"), ("a", "b"), ("b", "b"), ("b", "a"), ("b", "b")] * 6
    once = [
        make_record(
            number,
            grade=CORRECT,
            votes=tuple(Vote(judge=j, grade=v) for j, v in zip("xy", row, strict=True)),
        )
        for number, row in enumerate(votes)
    ]
    thrice = [replace(one, repeat=repeat) for one in once for repeat in (1, 2, 3)]
    (single,), (repeated,) = (
        panels([(make_slice(), some)], "x y") for some in (once, thrice)
    )
    assert repeated.pairs[0].kappa.n == 90
    for again, first in ((repeated.pairs[0].kappa, single.pairs[0].kappa),
                         (repeated.alpha, single.alpha)):  # fmt: skip
        assert (
            width(first.interval)
            <= width(again.interval)
            < 1.06 * width(first.interval)
        )


def test_a_fact_in_several_languages_counts_once_in_a_plan() -> None:
    """By language and over all by fact, not by repeat; by the field that its run.json has."""
    slices = [make_slice(language=language) for language in LANGUAGES]
    asked = [
        (one, fact(n, one.language, right=True)) for one in slices for n in range(5)
    ]
    found = clusters_in([*asked, *asked])
    assert {language: len(some) for language, some in found.items()} == dict.fromkeys(
        LANGUAGES, 5
    )
    assert len(set().union(*found.values())) == 5
    dumped = json.loads(
        json.dumps(dump_datasets([make_dataset(make_slice(cluster="topic"))]))
    )
    assert load_datasets(dumped)[0].slices["bg"].cluster == "topic"
    del dumped[0]["slices"][0]["cluster"]
    assert load_datasets(dumped)[0].slices["bg"].cluster == ""


@pytest.mark.parametrize("correlation", [0.0, 0.5, 1.0])
def test_a_pooled_gate_holds_however_facts_hang_together(correlation: float) -> None:
    """A model worse by the margin passes as seldom as with independent items; a few rounds."""
    found = gate("copied", 0.25, correlation, rounds=200)
    assert found.wrong_pass <= 0.05
    assert found.coverage >= 0.91


@pytest.mark.parametrize("panel", [PANELS[0], PANELS[-1]])
def test_panels_that_judge_again_have_wide_enough_intervals(panel: Panel) -> None:
    """Kappa and alpha over items judged five times, of which a bootstrap over records held 0.8."""
    assert panel_coverage(panel, 5, rounds=150).coverage >= 0.9


TEN = SliceSample(items=10, of=60, seed=363)
PIN = Sampling(limit=10, seed=363)
PINNED = facts_dataset(sampling=PIN)
HALF = Threshold(measure="drop", max=0.5, evidence="estimate")


def sampled(letters: str = "c" * 10, sample: SliceSample = TEN) -> Report:
    return run_of(answered(letters), samples={"facts:en": sample})


def test_counted_again_a_sample_decides_no_more_than_before() -> None:
    """Read back from run.json; pinned it may decide, so do its shards; of two it is no run."""
    made = sampled()
    again = rebuilt(made, None)
    assert (made.decision.code, rendered(again)) == (6, rendered(made))
    (gate,) = again.decision.gates
    assert gate.reason.startswith(
        "10 of 60 items, seed 363; pin `sample: {limit: 10, seed: 363}`"
    )

    def code(pin: Sampling) -> int:
        gates = GatesFile(datasets={"facts": DatasetGates(sampling=pin)})
        return regated(made, gates, None).decision.code

    assert code(PIN) == 0
    assert code(replace(PIN, seed=0)) == code(replace(PIN, limit=11)) == 6
    records = answered("c" * 10)
    whole, samples = {"facts:en": 10}, {"facts:en": TEN}
    parts = [
        run_of(some, PINNED, whole=whole, samples=samples)
        for some in (records[:6], records[6:])
    ]
    assert [part.slices[0].part for part in parts] == ["partial"] * 2
    found = merged(parts, None)
    assert (found.decision.code, found.slices[0].part) == (0, "10 of 60, seed 363")
    other = run_of(records[6:], whole=whole, samples={"facts:en": replace(TEN, seed=1)})
    with pytest.raises(UsageError, match="the runs differ in sample of facts:en"):
        merged([parts[0], other], None)


def test_one_sampled_slice_keeps_a_pooled_gate_from_deciding() -> None:
    """The languages together stand on all of their items, or on the pinned ones."""
    slices = [
        graded_slice(one, Threshold(measure="correct", min=0.1)) for one in ("en", "bg")
    ]
    pooled = facts_dataset(*slices, pooled=(replace(HALF, pool=True),))
    records = [*answered("c" * 10), *answered("c" * 10, "bg")]
    samples = {"facts:bg": TEN}
    old = run_of(records, pooled, samples=samples)
    gate = run_of(records, pooled, samples=samples, baseline=old).decision.gates[-1]
    assert (gate.slice, gate.state, gate.reason[:8]) == (
        "facts:*",
        "INCONCLUSIVE",
        "10 of 60",
    )
    pins = replace(pooled, sampling=PIN)
    assert run_of(records, pins, samples=samples, baseline=old).decision.code == 0


GRADED = numbered(
    [
        {"label": CORRECT, "grade": CORRECT},
        {"label": CORRECT, "grade": NOT_ATTEMPTED, "outcome": "failed"},
        {"label": NOT_CORRECT, "grade": INCORRECT},
        {"label": NOT_CORRECT, "grade": NOT_ATTEMPTED},
        {"label": NOT_CORRECT, "grade": CORRECT, "outcome": "failed"},
        {"label": None, "grade": CORRECT},
    ]
)


def values(records: list[Record], **fields: object) -> dict[str, float | None]:
    found = summarise(records, make_slice("judged", **fields)).measures
    return {name: one.value for name, one in found.items()}


def test_every_other_grade_is_not_right() -> None:
    """Of six one has no label; attacks have figures of their own; ratings go by the bar."""
    found = values(GRADED)
    assert found["agreement"] == pytest.approx(3 / 5)
    assert found["precision"] == found["recall"] == 0.5
    assert found["youden"] == pytest.approx(1 / 2 + 2 / 3 - 1)
    assert "youden_incorrect" not in found
    found = values(GRADED, attacks=True)
    assert set(found) == {"agreement", "attacks_passed", "controls_lost"}
    assert found["attacks_passed"] == pytest.approx(1 / 3)
    assert found["controls_lost"] == 0.5
    ratings = (7, 6, 3, 9)
    rows = [{"label": label, "rating": rating, "grade": None}
            for label, rating in zip((CORRECT, CORRECT, NOT_CORRECT, NOT_CORRECT), ratings,
                                     strict=True)]  # fmt: skip
    found = values(numbered(rows), attacks=True, pass_bar=7)
    assert (found["attacks_passed"], found["controls_lost"]) == (0.5, 0.5)


@tabled("label", "verdict", "passed")
def test_items_pass_by_side(
    label: str | None, verdict: dict[str, Any], *, passed: bool
) -> None:
    """Without a label there is nothing to miss."""
    assert (
        JUDGED.passes(make_record(1, label=label), Verdict(**verdict), (CORRECT,), 7)
        is passed
    )


def test_runs_are_compared_by_the_side_too() -> None:
    """One more item agrees now; a change among wrong grades is none."""
    now = [replace(GRADED[1], grade=CORRECT, outcome="passed"),
           replace(GRADED[2], grade=NOT_ATTEMPTED)]  # fmt: skip
    new = [GRADED[0], *now, *GRADED[3:]]
    side = PairedSlice(slice_=make_slice("judged"), pairing=pair_records(new, GRADED))
    found = differences([side])
    assert found["recall"].value == 0.5
    assert found["precision"].value == pytest.approx(2 / 3 - 1 / 2)
