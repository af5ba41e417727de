"""What is said of a gate before the run: never more than so many items can tell."""

from dataclasses import replace

import pytest

from cases.dataset import Threshold
from evaluators.statistics.intervals import Estimate
from reports.gates.power import DISCORDANCES, expected_shares, power_lines, units_needed
from reports.judge.scale import JudgeScale
from tests.support.made_records import make_dataset, make_slice
from tests.support.made_runs import facts_dataset, graded_slice


def clusters(count: int, name: str = "fact_id") -> set[tuple[str, ...]]:
    """Return so many different clusters."""
    return {(name, str(number)) for number in range(count)}


def said(rule: Threshold, count: int, *, baseline: bool = True) -> str:
    """Return the sentence on one rule of a slice with so many items."""
    dataset, own = make_dataset(make_slice("graded", rule)), {"bg": clusters(count)}
    (line,) = power_lines(dataset, own, baseline=baseline, discordances=DISCORDANCES)
    return line


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (
            Threshold(measure="drop", max=0.05, evidence="confident"),
            "400 independent pairs exclude a drop of 0.046, 0.063 or 0.077 with a chance of 0.8 if "
            "10, 20 or 30 % of them differ",
        ),
        (
            Threshold(measure="rise", of="incorrect", max=0.05, evidence="confident"),
            "exclude a drop of 0.046, 0.063 or 0.077",
        ),
        (
            Threshold(measure="drop", of="f_score", max=0.05, evidence="confident"),
            "no forecast for this gate alone",
        ),
        (Threshold(measure="drop", max=0.1), "no forecast for this gate alone"),
        (
            Threshold(measure="drop", max=0.0, evidence="confident"),
            "no forecast for this gate alone",
        ),
    ],
)
def test_each_gate_has_its_sentence(rule: Threshold, text: str) -> None:
    """The smallest drop that so many pairs exclude for an unchanged model."""
    line = said(rule, 400)
    assert line.startswith(f"d:bg {rule.name} ")
    assert text in line


def test_a_margin_out_of_reach_is_named_before_anything_is_paid() -> None:
    """With too few pairs a drop gate can never pass; the number that it takes is said."""
    rule = Threshold(measure="drop", max=0.03, evidence="confident")
    assert "can never pass with 50 independent pairs; it takes 125" in said(rule, 50)
    assert "without --baseline it is not decided" in said(rule, 50, baseline=False)
    assert "can never pass" not in said(rule, 125)


def test_pooled_gates_count_all_languages() -> None:
    """A dataset's own drop looks at all its languages together; a fact in several counts once."""
    slices = [make_slice(language=language) for language in ("bg", "pl")]
    pooled = Threshold(measure="drop", max=0.04, evidence="confident", pool=True)
    dataset = make_dataset(*slices, pooled=[pooled])
    apart = {"bg": clusters(60, "bg"), "pl": clusters(60, "pl")}
    (line,) = power_lines(dataset, apart, baseline=True, discordances=DISCORDANCES)
    assert line.startswith("d:* drop <= 0.04: 120")
    assert "120 independent pairs exclude" in line
    linked = {"bg": clusters(60), "pl": clusters(60)}
    (line,) = power_lines(dataset, linked, baseline=True, discordances=DISCORDANCES)
    assert "can never pass with 60 independent pairs" in line


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
