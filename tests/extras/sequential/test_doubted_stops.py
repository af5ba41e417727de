"""A run stops early only on a verdict that its report gives too, whatever the judge's errors."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from qagate.cases.dataset import Dataset, Plan, PlannedItem, Threshold
from qagate.evaluators.core import CORRECT, INCORRECT, Case, Outcome, Verdict, Vote
from qagate.evaluators.runtime.engine import stopped_outcome
from qagate.reports.extras.sequential.early_stopping import EarlyStopping, in_sequence
from qagate.reports.judge.labels import LabelSet
from qagate.reports.plugin.calibrator import Calibrator
from qagate.reports.run.record import Record, make_record
from qagate.reports.run.report import Report
from tests.support.labelled_answers import label_dataset, label_set
from tests.support.made_runs import (
    answered,
    before,
    facts_dataset,
    graded_slice,
    run_of,
)

JUDGE = "openai:judge"
CASCADE = f"lexical+{JUDGE}"
COUNT = 240
BAR = Threshold(measure="correct", min=0.5, evidence="sequential")
DROP = Threshold(measure="drop", max=0.1, evidence="sequential", fail="margin")


def labels(caught: int) -> LabelSet:
    """Return labels of a judge that sees so many of 100 wrong answers."""
    counts = {
        (CORRECT, CORRECT): 400,
        (INCORRECT, INCORRECT): caught,
        (INCORRECT, CORRECT): 100 - caught,
    }
    return label_set(counts)


class Measured(Calibrator):
    """A calibrator that has measured the judge on these labels."""

    def __init__(self, labels: LabelSet) -> None:
        self._labels = labels

    def select(self, keys: object) -> tuple[str, ...]:
        return ()

    def is_complete(self, outcomes: object) -> bool:
        return True

    def records(self, outcomes: object) -> tuple[Record, ...]:
        return tuple(self._labels.records)

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        return (label_dataset(self._labels),)


class Stopped:
    """A run of ``letters`` that stops as soon as it may."""

    def __init__(
        self,
        threshold: Threshold,
        letters: str,
        labels: LabelSet,
        *,
        judge: str = JUDGE,
        said: Mapping[int, str] | None = None,
    ) -> None:
        self.dataset = facts_dataset(
            graded_slice("en", threshold), judge_unmeasured=False
        )
        self.labels = labels
        self.judge = judge
        self.old = [
            replace(record, digest=f"d{record.id}", metadata={})
            for record in answered("c" * COUNT)
        ]
        self.plan = self._plan()
        keys = list(self.plan.items)
        earlier = before(run_of(self.old, self.dataset))
        watch = EarlyStopping(self.plan, Measured(labels), judge, [earlier], 10**6)
        self.asked = len(keys)
        self.checks: dict[str, str] = {}
        self.outcomes = []
        for count, key in enumerate(keys, 1):
            outcome = self._outcome(key, letters[(count - 1) % len(letters)])
            self.outcomes.append(outcome)
            if said is not None and len(self.checks) < 60:
                self.checks[key] = said.get(count - 1, CORRECT)
                watch.note_rule_check(key, self.checks[key])
            if watch.note(outcome):
                self.asked = count
                break

    def _plan(self) -> Plan:
        items = {}
        slice_ = self.dataset.slices["en"]
        for record in self.old:
            case = Case(
                id=record.id,
                dataset=record.dataset,
                language=record.language,
                row=record.row,
                question=record.question,
                digest=record.digest,
                golds=("Sofia",),
            )
            items[record.key] = PlannedItem(
                key=record.key, slice=slice_, case=case, repeat=1
            )
        return in_sequence(Plan(datasets=(self.dataset,), items=items), paired=True)

    def _outcome(self, key: str, letter: str) -> Outcome:
        grade = {"c": CORRECT, "i": INCORRECT}[letter]
        votes: tuple[Vote, ...] = ()
        if self.judge == CASCADE:
            votes = (Vote(judge="lexical", grade=grade),)
        return Outcome(
            key=key,
            state="passed" if letter == "c" else "failed",
            answer="?",
            verdict=Verdict(grade=grade, votes=votes),
            judge="judge-2026",
        )

    @property
    def report(self) -> Report:
        keys = list(self.plan.items)
        outcomes = [*self.outcomes, *map(stopped_outcome, keys[self.asked :])]
        records = [make_record(self.plan.items[one.key], one) for one in outcomes]
        return run_of(
            records,
            self.dataset,
            baseline=run_of(self.old, self.dataset),
            judge=self.judge,
            labels=tuple(self.labels.records),
            label_datasets=(label_dataset(self.labels),),
            rule_checks=self.checks,
        )

    @property
    def state(self) -> str:
        return self.report.decision.gates[0].state


def test_a_bar_that_a_lenient_judge_lifts_is_not_stopped_on() -> None:
    """As judged it is cleared early; without the judge's errors it never is."""
    run = Stopped(BAR, "cci", labels(60))
    assert run.asked == COUNT
    assert run.state == "INCONCLUSIVE"


@pytest.mark.parametrize("caught", [65, 85])
@pytest.mark.parametrize("letters", ["ccci", "c"])
def test_whatever_it_stops_on_the_report_decides(caught: int, letters: str) -> None:
    run = Stopped(BAR, letters, labels(caught))
    assert (run.state == "PASS") is (run.asked < COUNT)


def test_a_good_judge_lets_it_stop() -> None:
    assert Stopped(BAR, "cccci", labels(97)).asked < COUNT / 2


@pytest.mark.slow
@pytest.mark.parametrize("threshold", [BAR, DROP])
def test_rules_have_to_be_checked_before_it_stops(threshold: Threshold) -> None:
    """Without a check nothing is known of what the rules hide."""
    never_checked = Stopped(threshold, "c", labels(97), judge=CASCADE)
    assert never_checked.asked == COUNT
    checked = Stopped(threshold, "c", labels(97), judge=CASCADE, said={})
    assert checked.asked < COUNT
    assert checked.state == "PASS"


def test_a_loss_that_rules_may_hide_is_not_stopped_on() -> None:
    """Of 60 answers that they settled the model grades 6 otherwise; the margin is 0.1."""
    said = dict.fromkeys(range(6), INCORRECT)
    run = Stopped(DROP, "c", labels(97), judge=CASCADE, said=said)
    assert run.asked == COUNT
    assert run.state == "INCONCLUSIVE"
