"""Claims about the extra metrics of a slice: means, gates on them, and notes on what is missing."""

from dataclasses import replace

import pytest

from cases.dataset import PlannedItem, Threshold
from evaluators.core import Outcome
from evaluators.extra_metrics import MetricSpec
from reports.metrics.gate import slice_gates
from reports.metrics.summary import extra_estimates, extra_notes, missing_extras, summarise
from reports.run.provenance import OutcomeFacts
from reports.run.record import Record
from tests.support.made_records import make_record, make_slice
from tests.support.scripted import make_case

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


@pytest.mark.parametrize(
    ("rule", "values", "state"),
    [
        (Threshold(measure="bias", min=0.5), (0.5, 0.5), "PASS"),
        (Threshold(measure="bias", min=0.6), (0.5, 0.5), "FAIL"),
        (Threshold(measure="bias", max=0.4), (0.5, 0.5), "FAIL"),
        (Threshold(measure="bias", min=0.1), (1.0, None), "INCONCLUSIVE"),
        (Threshold(measure="bias", min=0.1), (None,), "INCONCLUSIVE"),
        (Threshold(measure="toxicity", min=0.1), (1.0,), "INCONCLUSIVE"),
        (Threshold(measure="bias", min=0.5, evidence="confident"), (1.0,) * 50, "PASS"),
        (Threshold(measure="bias", min=0.99, evidence="confident"), (1.0,) * 50, "INCONCLUSIVE"),
        (Threshold(measure="bias", min=0.5, evidence="confident"), (0.1,) * 50, "FAIL"),
    ],
)
def test_gates_on_measures(rule: Threshold, values: tuple[float | None, ...], state: str) -> None:
    """Decided on the mean, or its interval; any item without the measure leaves the gate open."""
    records = [replace(one, metadata={"topic": "Art"}) for one in with_measure(*values)]
    slice_ = make_slice("rated", rule, by=("topic", "unknown"))
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
