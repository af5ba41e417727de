"""What is said of a gate before the run: never more than so many items can tell."""

from dataclasses import replace
from pathlib import Path

import pytest

from cases.dataset import Dataset, Slice, Threshold
from evaluators.kinds import kind_of
from evaluators.statistics.estimate import Estimate
from evaluators.statistics.youden import ClassRate, Separation
from reports.gates.power import expected_shares, power_lines, units_needed
from reports.judge.judge_scale import JudgeScale
from reports.run.evidence import Calibration
from tests.support.made_runs import facts_dataset, graded_slice


def clusters(count: int, name: str = "fact_id") -> set[tuple[str, ...]]:
    """Return so many different clusters."""
    return {(name, str(number)) for number in range(count)}


def said(rule: Threshold, count: int, *, kind: str = "graded", baseline: bool = True) -> str:
    """Return the sentence on one rule of a slice with so many items."""
    one = Slice(
        dataset="d", language="bg", kind=kind_of(kind), path=Path("bg.csv"), thresholds=(rule,)
    )
    dataset = Dataset(name="d", folder=Path(), kind=kind_of(kind), slices={"bg": one})
    (line,) = power_lines(dataset, {"bg": clusters(count)}, baseline=baseline)
    return line


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (
            Threshold(measure="correct", min=0.5),
            "95 % interval ± 0.049 with 400 independent items; a value within",
        ),
        (
            Threshold(measure="incorrect", max=0.1, evidence="confident"),
            "only a value 0.03 or more",
        ),
        (Threshold(measure="f_score", min=0.5), "at best, as not every item counts in it"),
        (Threshold(measure="penalised", min=0.1), "no forecast for this measure"),
        (
            Threshold(measure="drop", max=0.05, evidence="confident"),
            "passes an unchanged model with 0.86, 0.60 or 0.45 if 10, 20 or 30 % of 400 "
            "independent pairs differ; 0.80 takes a margin of 0.046, 0.063 or 0.077",
        ),
        (
            Threshold(measure="rise", of="incorrect", max=0.05, evidence="confident"),
            "passes an unchanged model with 0.86, 0.60 or 0.45 if",
        ),
        (
            Threshold(measure="drop", of="f_score", max=0.05, evidence="confident"),
            "no forecast for this gate alone",
        ),
        (Threshold(measure="drop", max=0.1), "no forecast for this gate alone"),
        (
            Threshold(measure="drop", max=0.0, evidence="confident"),
            "no forecast for this margin",
        ),
    ],
)
def test_each_gate_has_its_sentence(rule: Threshold, text: str) -> None:
    """The half-width of the interval at the bar, or how often an unchanged model passes."""
    line = said(rule, 400)
    assert line.startswith(f"d:bg {rule.name} ")
    assert text in line


def test_a_margin_out_of_reach_is_named_before_anything_is_paid() -> None:
    """With too few pairs a drop gate can never pass; the number that it takes is said."""
    rule = Threshold(measure="drop", max=0.03, evidence="confident")
    assert "can never pass with 50 independent pairs; it takes 125" in said(rule, 50)
    assert "without --baseline it is not decided" in said(rule, 50, baseline=False)
    assert "can never pass" not in said(rule, 125)


def test_ratings_are_told_with_the_spread_assumed() -> None:
    """A mean has no variance of its own before the run: the one taken is named."""
    line = said(Threshold(measure="mean_rating", min=6.0), 100, kind="rated")
    assert "± 0.49 with 100 independent items" in line
    assert "standard deviation of 2.5" in line


def test_pooled_gates_count_all_languages() -> None:
    """A dataset's own drop looks at all its languages together; a fact in several counts once."""
    slices = {
        language: Slice(dataset="d", language=language, kind=kind_of("graded"), path=Path("x"))
        for language in ("bg", "pl")
    }
    pooled = (Threshold(measure="drop", max=0.04, evidence="confident", pool=True),)
    dataset = Dataset(name="d", folder=Path(), kind=kind_of("graded"), slices=slices, pooled=pooled)
    apart = {"bg": clusters(60, "bg"), "pl": clusters(60, "pl")}
    (line,) = power_lines(dataset, apart, baseline=True)
    assert line.startswith("d:* drop <= 0.04: passes")
    assert "of 120 independent pairs" in line
    linked = {"bg": clusters(60), "pl": clusters(60)}
    (line,) = power_lines(dataset, linked, baseline=True)
    assert "can never pass with 60 independent pairs" in line


def judged_in(language: str, low: float) -> Calibration:
    """Return a judge of d:bg or d:pl whose J has this lower end, from 100 labels."""
    rate = ClassRate(hits=45, trials=50, size=50.0)
    gain = Estimate(value=low + 0.1, low=low, high=low + 0.2, n=100)
    return Calibration(
        dataset="labels",
        language=language,
        measures={},
        graders=(f"d:{language}",),
        separations={"youden": Separation(youden=gain, rates=(rate, rate))},
    )


@pytest.mark.parametrize(
    ("low", "words"),
    [
        (0.8, "; with 0.79 once the judge's errors count (J at least 0.8 in the baseline)"),
        (0.1, "; never once the judge's errors count (J at least 0.1 in the baseline)"),
        (-0.1, "; never once the judge's errors count (J at least -0.1 in the baseline)"),
    ],
)
def test_what_a_judges_errors_cost_is_said(low: float, words: str) -> None:
    """The chance of a margin that shrank with J, where the baseline measured it."""
    rule = Threshold(measure="drop", max=0.05, evidence="confident")
    slice_ = Slice(
        dataset="d", language="bg", kind=kind_of("graded"), path=Path("x"), thresholds=(rule,)
    )
    pooled = (Threshold(measure="drop", max=0.05, evidence="confident", pool=True),)
    dataset = Dataset(
        name="d", folder=Path(), kind=kind_of("graded"), slices={"bg": slice_}, pooled=pooled
    )
    own, together = power_lines(
        dataset,
        {"bg": clusters(500)},
        baseline=True,
        discordances=(0.1,),
        calibrations=[judged_in("bg", low)],
    )
    assert own.endswith(words)
    assert together.endswith(words)
    assert "judge" not in said(rule, 500)


def test_the_share_asked_until_decided_is_that_of_the_slowest_gate() -> None:
    """A bar takes all; a wide margin little, more where the judge errs; a pooled gate both."""
    drop = Threshold(measure="drop", max=0.1, evidence="sequential", fail="margin")
    bar = Threshold(measure="correct", min=0.5, evidence="sequential")
    slices = [graded_slice("en", drop), graded_slice("bg", drop, bar)]
    own = {language: clusters(600, language) for language in ("en", "bg")}
    found = expected_shares(facts_dataset(*slices), own, baseline=True, discordance=0.1)
    assert found["facts:bg"] == 1.0
    assert 0.1 < found["facts:en"] < 0.4
    alone = expected_shares(facts_dataset(*slices), own, baseline=False, discordance=0.1)
    assert alone == {"facts:en": 0.0, "facts:bg": 1.0}
    narrow = replace(drop, max=0.05, pool=True)
    both = facts_dataset(*slices, pooled=(narrow,))
    pooled = expected_shares(both, own, baseline=True, discordance=0.1)
    assert pooled["facts:en"] > found["facts:en"]
    scale = JudgeScale(youden=Estimate(value=0.8, low=0.6, high=0.9, n=80), basis="")
    assert units_needed(drop, 600, 0.1, scale) > units_needed(drop, 600, 0.1)
