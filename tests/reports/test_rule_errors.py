"""Rules before a model are held to what the model says of answers that they settled."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.cases.dataset import Threshold
from qagate.evaluators.core import CORRECT, INCORRECT, Vote
from qagate.evaluators.statistics.intervals import UNDEFINED, Estimate, wilson
from qagate.evaluators.statistics.metrics import DROP
from qagate.reports.judge.errors import JudgeErrors
from qagate.reports.judge.rule_errors import (
    NO_RULES,
    RuleErrors,
    rule_errors,
    rules_check,
)
from qagate.reports.run.record import Record
from qagate.reports.run.report import Report
from qagate.reports.verdict.rebuild import rebuilt
from tests.support.figures import some
from tests.support.labelled_answers import label_dataset, label_set, right
from tests.support.made_records import make_record, make_slice
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of

CASCADE = "lexical+openai:j"
BG = make_slice()
BY_RULES = (Vote(judge="lexical", grade=CORRECT),)
BY_MODEL = (Vote(judge="openai:j", grade=CORRECT),)


def settled(count: int, *, left: int = 0) -> list[Record]:
    """Return answers that the rules called CORRECT, and those that they left to the model."""
    votes = [BY_RULES] * count + [BY_MODEL] * left
    return [
        make_record(number, grade=CORRECT, votes=row)
        for number, row in enumerate(votes)
    ]


def checks(records: Sequence[Record], said: str) -> dict[str, str]:
    """Return what the model says of the first answers: C, I, or - for no grade."""
    grades = {"C": CORRECT, "I": INCORRECT, "-": ""}
    return {
        record.key: grades[letter]
        for record, letter in zip(records, said, strict=False)
    }


def errors(said: str, count: int, *, left: int = 0) -> RuleErrors:
    records = settled(count, left=left)
    return rule_errors(BG, records, CASCADE, checks(records, said))


def test_the_share_on_which_both_differ_has_wilsons_interval() -> None:
    found = errors("I" * 3 + "C" * 57, 100_000)
    low, high = some(wilson(3, 60))
    assert found.difference.value == 0.05
    assert found.difference.low == pytest.approx(low, abs=1e-4)
    assert found.difference.high == pytest.approx(high, abs=1e-4)


def test_repeats_of_an_item_are_one_cluster() -> None:
    said = "I" * 4 + "C" * 12
    alone = errors(said, 16_000)
    repeats = [
        make_record(n // 4, key=f"k{n}", repeat=n % 4, grade=CORRECT, votes=BY_RULES)
        for n in range(16)
    ]
    more = [replace(record, key=f"more{record.key}") for record in settled(16_000)]
    together = rule_errors(BG, [*repeats, *more], CASCADE, checks(repeats, said))
    widths = []
    for found in (alone, together):
        interval = some(replace_missing(found).difference.interval)
        widths.append(interval[1] - interval[0])
    assert widths[1] > widths[0]


def replace_missing(found: RuleErrors) -> RuleErrors:
    """Return the same checks as if no more had been needed."""
    return replace(found, differs=(*found.differs, *[[False]] * found.missing))


def test_nothing_is_left_to_chance_where_all_were_checked() -> None:
    found = errors("I" + "C" * 19, 20, left=80)
    assert found.difference == Estimate.of(0.05, (0.05, 0.05), 20)
    assert found.misread.interval == pytest.approx((0.01, 0.01))


@pytest.mark.parametrize("missing", ["-" * 40, ""])
def test_a_check_without_a_grade_counts_as_a_difference(missing: str) -> None:
    """As what is left out counts at its worst: checks that are dropped help nobody."""
    found = errors("C" * 20 + missing, 1_000)
    assert found.difference.value == pytest.approx(40 / 60)
    assert "both differ" in found.obstacle("bg")
    assert "(40 have no grade of the model, and count so)" in found.obstacle("bg")


@pytest.mark.parametrize(
    ("said", "is_believed"),
    [("C" * 60, True), ("I" * 8 + "C" * 52, True), ("I" * 20 + "C" * 40, False)],
)
def test_rules_that_are_shown_to_differ_are_not_believed(
    said: str, *, is_believed: bool
) -> None:
    """A10: they settle all answers of the run, and none of the labels."""
    why = errors(said, 300).obstacle("bg")
    assert (why == "") is is_believed
    if not is_believed:
        assert why.startswith(
            "judge not trusted in bg: of 60 answers that rules settled"
        )


@pytest.mark.parametrize("judge", ["lexical", "openai:j", "openai:a openai:b"])
def test_any_other_judge_has_no_rules_before_it(judge: str) -> None:
    records = settled(20)
    assert rule_errors(BG, records, judge, {}) == NO_RULES
    assert rules_check([(BG, records)], judge, {}) is None
    assert NO_RULES.difference == UNDEFINED
    assert NO_RULES.misread.high == 0.0


@given(st.text("CI", max_size=60), st.integers(0, 60), st.integers(0, 500), st.data())
def test_a_check_that_is_lost_never_helps_the_rules(
    said: str, more: int, left: int, data: st.DataObject
) -> None:
    count = len(said) + more
    records = settled(count, left=left)
    known = checks(records, said)
    fewer = dict(known)
    for key in data.draw(st.sets(st.sampled_from(sorted(known)))) if known else ():
        fewer[key] = ""
    whole = rule_errors(BG, records, CASCADE, known).misread
    part = rule_errors(BG, records, CASCADE, fewer).misread
    assert (part.value or 0.0) >= (whole.value or 0.0) - 1e-12
    assert (part.high or 0.0) >= (whole.high or 0.0) - 1e-12


def test_what_rules_may_have_misread_is_taken_from_a_margin() -> None:
    """A loss may hide there: the rest of the margin has to hold what is seen."""
    sure = JudgeErrors(readers={}, weights={})
    rules = replace(sure, misread=Estimate.of(0.01, (0.0, 0.04), 100))
    assert sure.shrunk(0.1) == 0.1
    assert rules.shrunk(0.1) == pytest.approx(0.06)


# In a whole run


LABELS = label_set(right(100, 100, 100))
BAR = Threshold(measure="correct", min=0.97)


def report_of(said: str, *, margin: float | None = None) -> Report:
    """Return a run whose rules call 300 answers CORRECT; of the first the model says so much."""
    rule = BAR
    if margin is not None:
        rule = Threshold(measure=DROP, max=margin, evidence="confident")
    dataset = facts_dataset(graded_slice("en", rule), judge_unmeasured=False)
    records = [replace(record, votes=BY_RULES) for record in answered("c" * 300)]
    return run_of(
        records,
        dataset,
        judge=CASCADE,
        baseline=None if margin is None else run_of(answered("c" * 300), dataset),
        labels=LABELS.records,
        label_datasets=(label_dataset(LABELS),),
        rule_checks=checks(records, said),
    )


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("C" * 60, "PASS"),
        ("C" * 57 + "III", "INCONCLUSIVE"),
        ("", "INCONCLUSIVE"),
    ],
)
def test_a_loss_that_rules_may_hide_passes_no_paired_gate(
    said: str, state: str
) -> None:
    """A10: rules that call all answers right show no loss at all."""
    (gate,) = report_of(said, margin=0.12).decision.gates
    assert gate.state == state


def test_a_margin_that_rules_alone_may_use_up_is_not_shown() -> None:
    """Of 60 checks without a difference the upper end is 0.06."""
    (gate,) = report_of("C" * 60, margin=0.05).decision.gates
    assert gate.state == "INCONCLUSIVE"
    assert "rules before the model may have misread 0.054 of all answers" in gate.reason


def test_a_bar_has_to_be_cleared_without_what_rules_misread() -> None:
    (gate,) = report_of("C" * 60).decision.gates
    assert gate.state == "PASS"
    (gate,) = report_of("C" * 57 + "III").decision.gates
    assert gate.state == "INCONCLUSIVE"


def test_the_report_says_what_was_checked_and_keeps_it() -> None:
    report = report_of("C" * 30 + "I" + "-")
    note = (
        "lexical+openai:j: rules settled 300 of 300 verdicts (100%); the model checked 31 of them "
        "and differs on 1: "
    )
    assert any(line.startswith(note) for line in report.notes)
    assert any(line.endswith("it gave no grade on 1") for line in report.notes)
    assert len(report.judging.rule_checks) == 32
    again = rebuilt(report, None)
    assert again.decision == report.decision
    assert again.judging == report.judging


def test_a_run_without_any_check_says_so() -> None:
    assert any("the model checked none of them" in line for line in report_of("").notes)
