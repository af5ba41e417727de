"""Gates on what answers take, and on extra metrics: means with their intervals over items."""

import json
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.dataset import PlannedItem, Threshold
from evaluators.core import Outcome
from evaluators.extra_metrics import MetricSpec
from reports.compare.pairs import PairedSlice, pair_records
from reports.gates.change import change_gates
from reports.metrics.gate import slice_gates
from reports.metrics.summary import extra_estimates, extra_notes, missing_extras, summarise
from reports.run.provenance import OutcomeFacts
from reports.run.record import Record
from reports.run.report import GateResult
from tests.support.made_records import make_dataset, make_record, make_slice
from tests.support.made_runs import answered, run_of
from tests.support.samples import rendered
from tests.support.scripted import make_case
from tests.support.tables import tabled

SLOWEST = Threshold(measure="seconds_p95", max=8.0)

DEAREST = Threshold(measure="cost", max=0.01)


def timed(seconds: Sequence[float | None], **fields: object) -> list[Record]:
    """Return a graded record of each time, None where it is unknown."""
    return [
        make_record(n, grade="CORRECT", answer_seconds=one, **fields)
        for n, one in enumerate(seconds)
    ]


def priced(costs: Sequence[float | None]) -> list[Record]:
    return [make_record(n, grade="CORRECT", answer_cost=one) for n, one in enumerate(costs)]


def gate(rule: Threshold, records: Sequence[Record], **fields: object) -> GateResult:
    slice_ = make_slice("graded", rule, **fields)
    (found,) = slice_gates(slice_, records, summarise(records, slice_), "the judge is not trusted")
    return found


@pytest.mark.parametrize(
    ("quick", "slow", "unknown", "state", "said"),
    [
        (95, 5, 0, "PASS", "seconds_p95 1 keeps to <= 8 (n=100)"),
        (94, 6, 0, "FAIL", "seconds_p95 9 does not keep to <= 8 (n=100)"),
        (94, 4, 2, "INCONCLUSIVE", "not known of 2 items, 1 to 9 with these at either extreme"),
        (96, 0, 4, "PASS", "not known of 4 items"),
        (0, 90, 10, "FAIL", "9 or any more with these at either extreme"),
        (0, 0, 100, "INCONCLUSIVE", "seconds_p95 is not known of any of 100 items: recorded"),
    ],
)
def test_seconds(quick: int, slow: int, unknown: int, state: str, said: str) -> None:
    """The 95th of a hundred against its bar, unknown times at their worst and their best.

    No judge has a part in it: one that is not trusted, or failed, keeps nothing from deciding.
    """
    seconds = [1.0] * quick + [9.0] * slow + [None] * unknown
    found = gate(SLOWEST, timed(seconds))
    assert found.state == state
    assert said in found.reason
    failed = [replace(one, outcome="error", grade=None) for one in timed(seconds)]
    assert gate(SLOWEST, failed).state == state


def test_a_mean_has_no_upper_bound_over_what_is_not_known() -> None:
    """One unknown price of a hundred is enough for no PASS, and not enough for a FAIL to go."""
    assert gate(DEAREST, priced([0.001] * 100)).state == "PASS"
    assert gate(DEAREST, priced([0.001] * 99 + [None])).state == "INCONCLUSIVE"
    assert gate(DEAREST, priced([0.1] * 99 + [None])).state == "FAIL"
    assert gate(DEAREST, priced([None] * 100)).state == "INCONCLUSIVE"


def test_evidence_confident_asks_for_the_whole_interval() -> None:
    """7 s a 95th is below 8, but 30 items cannot show it of all."""
    random = np.random.default_rng(1)
    rule = replace(SLOWEST, evidence="confident")
    assert gate(rule, timed([1.0] * 30)).state == "INCONCLUSIVE"
    assert gate(rule, timed(random.uniform(0, 7.4, 400).tolist())).state == "PASS"
    assert gate(rule, timed(random.uniform(0, 8.3, 400).tolist())).state == "INCONCLUSIVE"
    assert gate(rule, timed(random.uniform(0, 9.5, 400).tolist())).state == "FAIL"


@given(
    st.lists(st.floats(0, 20), min_size=1, max_size=60),
    st.sets(st.integers(0, 59)),
    st.sampled_from(["seconds_p50", "seconds_p95"]),
    st.sampled_from(["estimate", "confident"]),
)
def test_what_is_not_known_never_makes_a_pass(
    seconds: list[float], lost: set[int], name: str, evidence: str
) -> None:
    """Whichever figures are lost: a gate that passes without them passes with all of them."""
    rule = Threshold(measure=name, max=8.0, evidence=evidence)  # type: ignore[arg-type]
    whole = timed(seconds)
    part = timed([None if n in lost else one for n, one in enumerate(seconds)])
    if gate(rule, part).state == "PASS":
        assert gate(rule, whole).state == "PASS"


def risen(
    old: Sequence[float | None], new: Sequence[float | None], rule: Threshold, **fields: object
) -> GateResult:
    side = PairedSlice(
        slice_=make_slice("graded", rule),
        pairing=pair_records(timed(new), timed(old)),
        blocked="another judge",
        changed="another judge",
        **fields,  # type: ignore[arg-type]
    )
    (found,) = change_gates(make_dataset(side.slice_), [side])
    return found


def rise(share: float, *, relative: bool = True, of: str = "seconds_p50") -> Threshold:
    return Threshold(
        measure="rise", of=of, max=share, relative=relative, evidence="confident", fail="margin"
    )


TIMES = np.random.default_rng(5).lognormal(size=300).tolist()


@pytest.mark.parametrize(("factor", "state"), [(1.0, "PASS"), (1.02, "PASS"), (1.5, "FAIL")])
def test_a_rise_is_a_share_of_the_old_value(factor: float, state: str) -> None:
    """Paired item by item, so that a rise of 2 % is told from 20 % although items differ widely.

    Another judge than the baseline's has no part in it.
    """
    found = risen(TIMES, [factor * one for one in TIMES], rise(0.2))
    assert found.state == state
    assert "new / old - 1 is" in found.reason
    assert "the margin of 20%" in found.reason
    assert found.estimate.value == pytest.approx(factor - 1)


def test_a_rise_in_its_own_unit() -> None:
    """Without a percent sign the margin is in seconds; 40 pairs say nothing of their 95th."""
    found = risen(TIMES, [one + 0.5 for one in TIMES], rise(0.4, relative=False))
    assert found.state == "FAIL"
    assert found.estimate.value == pytest.approx(0.5)
    assert "new - old is 0.5, 95 % interval" in found.reason
    found = risen(TIMES[:40], TIMES[:40], rise(0.2, of="seconds_p95"))
    assert found.state == "INCONCLUSIVE"
    assert "no 95 % interval" in found.reason


def test_a_rise_with_what_is_not_known() -> None:
    """Where one run does not know a few items a median still decides, a mean never passes."""
    few: list[float | None] = [*TIMES[:-3], None, None, None]
    assert risen(TIMES, few, rise(0.2)).state == "PASS"
    assert risen(few, TIMES, rise(0.2)).state == "PASS"
    assert risen(TIMES, [2 * one if one else one for one in few], rise(0.2)).state == "FAIL"
    half: list[float | None] = [*TIMES[:150], *[None] * 150]
    for old, new in ((TIMES, half), (half, TIMES), (TIMES, [None] * 300), ([None] * 300, TIMES)):
        found = risen(old, new, rise(0.2))
        assert found.state == "INCONCLUSIVE"
        assert "is not known of" in found.reason
    assert risen(TIMES, TIMES, rise(0.2, of="cost")).state == "INCONCLUSIVE"


def test_a_slower_and_dearer_model_shows_without_any_gate() -> None:
    """Then, now and the factor stand in the summary, and before the gates on the page.

    Where nothing is known nothing is said; tokens of a cache are counted apart.
    """
    old = answered("c" * 90, answer_seconds=0.8, answer_cost=0.0004, answer_tokens_in=100)
    new = answered("c" * 90, answer_seconds=8.0, answer_cost=0.002, answer_tokens_in=100)
    files = rendered(run_of(new, baseline=run_of(old)))
    summary, page = files["summary.md"], files["report.html"]
    for text in (summary, page):
        assert not [said for said in ("0.8 → 8", "×10", "0.0004 → 0.002", "×5") if said not in text]
    assert page.index("0.8 → 8") < page.index('id="gates"')
    shift = json.loads(files["run.json"])["comparison"]["slices"][0]["usage"]["seconds_p95"]
    assert (shift["before"]["value"], shift["now"]["value"]) == (0.8, 8.0)
    files = rendered(run_of(answered("ccc", tokens=1000, cached_tokens=800)))
    for name in ("summary.md", "report.html"):
        assert "3,000, of them 2,400 read from a provider's cache" in unescape(files[name])
    recorded = rendered(run_of(answered("cic")))["summary.md"]
    assert "cache" not in recorded
    assert "Seconds, tokens" not in recorded


RATED = make_slice("rated")


def with_measure(*values: float | None, **fields: object) -> list[Record]:
    rows = enumerate(values)
    return [make_record(n, rating=7, measures={"bias": value}, **fields) for n, value in rows]


def test_means_have_intervals_over_items() -> None:
    """Repeats of an item count as one; where all agree, unseen items leave room."""
    found = extra_estimates(with_measure(0.0, 0.5, 1.0, None), RATED)["bias"]
    assert (found.value, found.n) == (0.5, 3)
    assert (found.low, found.high) == (0.0, 1.0)
    again = with_measure(0.0, 1.0)
    doubled = extra_estimates([*again, *again], RATED)["bias"]
    once = extra_estimates(again, RATED)["bias"]
    assert (doubled.low, doubled.high, doubled.n) == (once.low, once.high, 4)
    alike = extra_estimates(with_measure(*[1.0] * 20), RATED)["bias"]
    assert (alike.value, alike.high) == (1.0, 1.0)
    assert alike.low is not None
    assert 0.8 < alike.low < 0.9
    nothing = extra_estimates(with_measure(None), RATED)["bias"]
    assert (nothing.value, nothing.low, nothing.n) == (None, None, 0)
    some = [*with_measure(0.5, None), make_record(3, outcome="error"), make_record(4)]
    assert missing_extras(some) == {"bias": 2}  # the last one has nothing to measure


@tabled("rule", "values", "state")
def test_gates_on_measures(rule: dict[str, Any], values: list[float | None], state: str) -> None:
    """Decided on the mean, or its interval; any item without the measure leaves the gate open."""
    values = values * 50 if "evidence" in rule else values
    records = [replace(one, metadata={"topic": "Art"}) for one in with_measure(*values)]
    slice_ = make_slice("rated", Threshold(**{"measure": "bias", **rule}), by=("topic", "unknown"))
    summary = summarise(records, slice_)
    assert "bias" in summary.breakdowns["topic"]["Art"]
    assert "unknown" not in summary.breakdowns
    (gate,) = slice_gates(slice_, records, summary)
    assert gate.state == state, gate.reason


def test_notes_tell_what_was_not_measured() -> None:
    """Once for each metric, with the first reason; a judge of rules is named."""
    slice_ = make_slice(metrics=(MetricSpec(name="bias"), MetricSpec(name="toxicity")))
    item = PlannedItem(key="k", slice=slice_, case=make_case(1), repeat=1)
    lacking = [Outcome(key="k", state="passed", unmeasured={"bias": f"no {n}"}) for n in range(3)]
    reasons = OutcomeFacts.of((item, one) for one in lacking).unmeasured
    assert extra_notes([slice_], reasons, "") == ["bias: 3 items not measured: no 0"]
    other = make_slice(dataset="e")
    assert extra_notes([slice_, other], reasons, "lexical") == [
        "d:bg: bias, toxicity not measured: --judge lexical asks no model"
    ]
