"""Gates on what replies are: declined, cut, an echo and their like."""

from collections.abc import Sequence
from dataclasses import replace

from qagate.cases.dataset import Threshold
from qagate.reports.compare.sides import PairedSlice
from qagate.reports.compare.states import pair_records
from qagate.reports.gates.change import change_gates
from qagate.reports.metrics.gate import evaluate
from qagate.reports.run.record import Record
from qagate.reports.run.report import GateResult
from tests.support.made_records import (
    graded,
    inputs_of,
    make_dataset,
    make_record,
    make_slice,
)


def declining(count: int, of: int = 100) -> list[Record]:
    """Return records of which the first ``count`` replies decline."""
    records = graded(correct=of - count, not_attempted=count)
    declined = [
        make_record(
            number,
            outcome=record.outcome,
            grade=record.grade,
            answer_state="answered",
        )
        for number, record in enumerate(reversed(records))
    ]
    return [
        replace(record, answer_state="declined") if number < count else record
        for number, record in enumerate(declined)
    ]


def risen(old: Sequence[Record], new: Sequence[Record]) -> GateResult:
    rule = Threshold(
        measure="rise", of="declined", max=0.1, evidence="confident", fail="margin"
    )
    slice_ = make_slice("graded", rule)
    side = PairedSlice(slice_=slice_, pairing=pair_records(new, old))
    (result,) = change_gates(make_dataset(slice_), [side])
    return result


def barred(records: Sequence[Record], most: float) -> GateResult:
    rule = Threshold(measure="declined", max=most, evidence="estimate")
    return evaluate(rule, inputs_of(make_slice("graded", rule), records))


def test_an_upgrade_that_declines_more_fails() -> None:
    assert risen(declining(0), declining(30)).state == "FAIL"


def test_an_upgrade_that_declines_as_often_passes() -> None:
    assert risen(declining(3), declining(3)).state == "PASS"


def test_replies_that_never_came_count_at_their_worst() -> None:
    missing = {"outcome": "error", "answer": None, "answer_state": ""}
    new = [
        *declining(0)[:80],
        *[make_record(number, **missing) for number in range(80, 100)],
    ]
    assert risen(declining(0), new).state == "INCONCLUSIVE"


def test_a_bar_holds_the_share_of_replies_in_a_state() -> None:
    assert barred(declining(10), 0.2).state == "PASS"
    assert barred(declining(30), 0.2).state == "FAIL"


def test_a_bar_is_open_where_a_reply_never_came() -> None:
    lost = replace(declining(1, of=1)[0], outcome="error", answer_state="")
    assert barred([lost, *declining(0, of=9)[1:]], 0.2).state == "INCONCLUSIVE"


def test_a_decline_that_meets_its_gold_is_none() -> None:
    met = make_record(0, outcome="passed", answer_state="declined")
    assert met.is_in_state("declined") is False
    assert replace(met, outcome="failed").is_in_state("declined") is True
    assert replace(met, answer_state="").is_in_state("declined") is None
