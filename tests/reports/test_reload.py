"""Claims about reading a whole report back: the same value, and the same bytes."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cases.dataset import Slice, Threshold
from evaluators.core import UsageError, Vote
from evaluators.statistics.intervals import Estimate
from reports.run.evidence import Comparison, Judging, LanguageGap
from reports.run.json_data import decode
from reports.run.report import Report, SessionStatus
from reports.run.run_json import load_report
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of, written
from tests.support.samples import full, rendered

DROP = Threshold(measure="drop", max=0.1, evidence="confident")
POOLED = replace(DROP, pool=True)


def rich() -> Report:
    """Return a run of two languages beside a baseline, with every kind of outcome."""
    english = graded_slice("en", Threshold(measure="correct", min=0.5), DROP, by=("topic",))
    dataset = facts_dataset(english, graded_slice("bg", declared=False), pooled=(POOLED,))
    votes = (Vote(judge="a", grade="CORRECT"), Vote(judge="b", grade="INCORRECT", error="x"))
    old = run_of([*answered("cinc" * 5), *answered("cc", "bg")], dataset)
    new = [*answered("ccie" * 5, votes=votes), *answered("im", "bg", answer="\ud83d \u202e")]
    return run_of(
        new, dataset, baseline=old, notes=("a damaged row",), whole={"facts:en": 99, "facts:bg": 2}
    )


@pytest.mark.parametrize("make", [rich, full, lambda: run_of(answered("c"))])
def test_a_report_comes_back_as_it_was(make: Callable[[], Report], tmp_path: Path) -> None:
    """Every file rendered again from run.json and records.jsonl has the same bytes."""
    made = make()
    again = load_report(written(made, tmp_path))
    assert rendered(again) == rendered(made)
    assert (again.decision, again.slices, again.comparison, again.parity, again.judging) == (
        *(made.decision, made.slices, made.comparison, made.parity, made.judging),
    )


Change = Callable[[dict[str, object]], object]


@pytest.mark.parametrize(
    "change",
    [
        lambda run: run.pop("slices"),
        lambda run: run.update(gates=5),
        lambda run: run.update(counts=[]),
        lambda run: run.update(counts={"plan": "many"}),
        lambda run: run.update(session={"pytest_code": True}),
        lambda run: run.update(parity=[{"dataset": "d"}]),
        lambda run: run.update(comparison={"model": "m", "judge": "j", "more": 1}),
        lambda run: run.update(datasets=[{"name": "d", "kind": "odd", "slices": []}]),
        lambda run: run.update(judging={"by_judge": ["a"]}),
    ],
)
def test_an_altered_run_is_a_usage_problem(change: Change, tmp_path: Path) -> None:
    """The checksum is that of the records; run.json itself may be edited, and is then refused."""
    path = written(rich(), tmp_path) / "run.json"
    run = json.loads(path.read_text(encoding="utf-8"))
    change(run)
    path.write_text(json.dumps(run), encoding="utf-8")
    with pytest.raises(UsageError, match=r"run\.json is not as it was written") as caught:
        load_report(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (Estimate, {"value": None, "low": 0, "high": 0.5, "n": 0.5}, r"Expected `int`.*\$\.n"),
        (Estimate, {"value": None, "low": "0", "high": 0.5, "n": 3}, r"Expected `float .*\$\.low"),
        (Estimate, {"value": None, "low": True, "high": 0.5, "n": 3}, r"got `bool`.*\$\.low"),
        (Estimate, {"value": 1}, "missing required field `low`"),
        (LanguageGap, [], "Expected `object`, got `array`"),
        (Comparison, {"model": "m", "judge": "j", "changes": 5}, r"\$\.changes"),
        (
            Comparison,
            {"model": "", "judge": "", "changes": [{"key": "k", "flip": "odd"}]},
            r"Invalid enum value 'odd' - at `\$\.changes\[0\]\.flip`",
        ),
        (SessionStatus, {"odd": 1}, r"unknown field 'odd' - at `\$`"),
        (Slice, {"dataset": "d", "language": "en", "kind": "odd", "path": ""}, "'odd' is no Kind"),
    ],
)
def test_decoding_checks_every_field(kind: type, value: object, message: str) -> None:
    """The error names the field; what is not known is refused, too."""
    with pytest.raises(ValueError, match=message):
        decode(kind, value)


def test_decoding_makes_dataclasses() -> None:
    """Tuples, mappings and what may be None; absent fields default."""
    assert decode(Estimate, {"value": None, "low": 0, "high": 0.5, "n": 3}) == Estimate(
        value=None, low=0, high=0.5, n=3
    )
    assert decode(SessionStatus, {"notes": ["a"]}).notes == ("a",)
    assert decode(Judging, {"by_judge": {"j": 2}}).by_judge == {"j": 2}
