"""Answers that are cut, echoed or declined: counted by slice, explained, and never a PASS."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.cases.dataset import Dataset, Slice, Threshold
from qagate.evaluators.core import AnswerState
from qagate.evaluators.kinds import CHECKED
from qagate.reports.gates.gone import gone_gates
from qagate.reports.metrics.health import SYMPTOMS, health_of, level_of, symptoms_of
from qagate.reports.render import console, html, markdown
from qagate.reports.render.writer import write
from qagate.reports.run.evidence import Symptom, SymptomCount
from qagate.reports.run.record import Record
from qagate.reports.run.report import Report
from qagate.reports.run.run_json import load_report
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of

ENGLISH = "It is the town that stands on the river, and not the other one."
POLISH = "To jest miasto, które stoi nad rzeką, a nie to drugie, jak się mówi."


def ill(
    count: int,
    of: int = 50,
    state: AnswerState = "cut",
    language: str = "en",
    **changes: object,
) -> list[Record]:
    """Return so many right answers, of which the first ``count`` are ill."""
    records = answered("c" * of, language)
    for place in range(count):
        made = replace(records[place], answer_state=state)
        records[place] = replace(made, **changes)  # type: ignore[arg-type]
    return records


def counted(records: list[Record], symptom: Symptom) -> SymptomCount | None:
    """Return what is counted of a symptom in an English slice."""
    health = health_of(graded_slice(), records, None)
    return {count.symptom: count for count in health.symptoms}.get(symptom)


def cause_of(records: list[Record], symptom: Symptom) -> str:
    count = counted(records, symptom)
    assert count is not None
    return count.cause


# Shares


@pytest.mark.parametrize(
    ("count", "answers", "level"),
    [
        (0, 0, "few"),
        (0, 50, "few"),
        (2, 50, "few"),
        (5, 100, "warning"),
        (1, 20, "warning"),
        (4, 4, "warning"),
        (19, 100, "warning"),
        (5, 25, "severe"),
        (7, 35, "severe"),
        (20, 100, "severe"),
    ],
)
def test_a_share_is_a_warning_from_5_and_severe_from_20_per_cent(
    count: int, answers: int, level: str
) -> None:
    """And only from five answers on, as fewer may be chance."""
    assert level_of(count, answers) == level


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 300))
def test_more_ill_answers_are_never_less_severe(
    first: int, second: int, healthy: int
) -> None:
    levels = ["few", "warning", "severe"]
    few, many = sorted((first, second))
    answers = many + healthy
    level_of_few = levels.index(level_of(few, answers))
    assert level_of_few <= levels.index(level_of(many, answers))


@pytest.mark.parametrize(
    "symptom", [name for name in SYMPTOMS if name != "other_language"]
)
def test_what_the_reader_says_of_a_reply_is_counted(symptom: AnswerState) -> None:
    count = counted(ill(3, state=symptom), symptom)  # type: ignore[arg-type]
    assert count is not None
    assert (count.count, count.level) == (3, "warning")
    assert count.examples == ("facts-en-i0", "facts-en-i1", "facts-en-i2")


def test_an_echo_that_is_cut_counts_as_both() -> None:
    """Each share is one of its own."""
    [record] = ill(1, of=1, state="echo", finish="length")
    assert [*symptoms_of(graded_slice(), record)] == ["cut", "echo"]


def test_a_thought_that_is_cut_is_a_thought_alone() -> None:
    """Its cause says that it was cut."""
    [record] = ill(1, of=1, state="thought_only", finish="length")
    assert [*symptoms_of(graded_slice(), record)] == ["thought_only"]


def test_a_share_is_one_of_the_answers_that_came() -> None:
    """Items to which no answer came are ungraded, which the gates count."""
    records = [*ill(1, of=10), *answered("e" * 90)]
    health = health_of(graded_slice(), records, None)
    assert health.answers == 10


def test_a_decline_that_meets_its_gold_is_none() -> None:
    records = ill(5, state="declined", expected="UNANSWERABLE: nobody knows")
    assert counted(records, "declined") is None


def test_the_baselines_answers_stand_beside_todays() -> None:
    health = health_of(graded_slice(), ill(4), ill(1, of=20))
    [count] = health.symptoms
    assert (health.answers, health.old_answers) == (50, 20)
    assert (count.count, count.old_count) == (4, 1)


def test_what_only_the_baseline_had_is_counted_too() -> None:
    [count] = health_of(graded_slice(), ill(0), ill(20)).symptoms
    assert (count.count, count.old_count, count.level, count.cause) == (
        0,
        20,
        "few",
        "",
    )


# Language


@pytest.mark.parametrize(
    ("slice_", "answer", "is_other"),
    [
        (graded_slice(), POLISH, True),
        (graded_slice(), ENGLISH, False),
        (graded_slice("pl"), ENGLISH, True),
        (graded_slice("pl"), "Kraków", False),
        (graded_slice("pl"), f'{{"answer": "{ENGLISH}"}}', False),
        (graded_slice("pl"), f"```\n{ENGLISH}\n```", False),
        (graded_slice("xx"), ENGLISH, False),
        (graded_slice("pl", kind=CHECKED), ENGLISH, False),
        (graded_slice("pl"), "", False),
    ],
    ids=[
        *("pl", "en", "en-for-pl", "a-name", "json", "code", "unknown", "checked"),
        "nothing",
    ],
)
def test_an_answer_in_prose_may_be_in_another_language(
    slice_: Slice, answer: str, is_other: bool
) -> None:
    """Data and code are in none, and what code checks may be of any form."""
    [record] = ill(1, of=1, state="answered", answer=answer)
    assert ("other_language" in symptoms_of(slice_, record)) is is_other


def test_the_language_of_the_answers_is_named() -> None:
    cause = cause_of(ill(10, state="answered", answer=POLISH), "other_language")
    assert cause == "are in another language (pl): name the language in the prompt"


# Causes


@pytest.mark.parametrize(
    ("tokens", "where"),
    [
        ([80, 80, 80], "at 80 tokens"),
        ([80, 80, 75], "at 80 tokens"),
        ([1200, 900, 80], "after 80 to 1,200 tokens"),
        ([None, None, None], "at the token limit"),
    ],
)
def test_a_cut_says_after_how_many_tokens(tokens: list[int | None], where: str) -> None:
    records = ill(3)
    for place, number in enumerate(tokens):
        records[place] = replace(records[place], answer_tokens_out=number)
    cause = cause_of(records, "cut")
    assert cause == f"were cut {where}: raise max_tokens in the models file"


def test_thoughts_that_were_cut_want_more_tokens() -> None:
    cut: dict[str, Any] = {"finish": "length", "answer_tokens_out": 80}
    cause = cause_of(ill(5, state="thought_only", **cut), "thought_only")
    assert cause.startswith("end within their thoughts, at 80 tokens: raise max_tokens")


def test_thoughts_that_ended_want_another_parser() -> None:
    cause = cause_of(ill(5, state="thought_only", finish="stop"), "thought_only")
    assert cause.startswith("hold thoughts and no answer: look at how the server parts")


def test_a_translation_is_in_the_language_that_is_expected() -> None:
    """Its gold is in another language than the slice as well."""
    records = ill(10, state="answered", answer=POLISH, expected=POLISH)
    assert counted(records, "other_language") is None


def test_other_language_without_a_known_one_names_none() -> None:
    """Greek letters are no English; whether the text is Greek nobody here knows."""
    answer = "είναι η πόλη που βρίσκεται στον ποταμό"
    cause = cause_of(ill(5, state="answered", answer=answer), "other_language")
    assert cause == "are in another language: name the language in the prompt"


# Verdict


def checked_dataset(**fields: object) -> Dataset:
    """Return one slice with a bar and a paired gate that 50 right answers pass."""
    gates = (
        Threshold(measure="correct", min=0.5),
        Threshold(measure="drop", max=0.2, evidence="confident", fail="margin"),
    )
    return facts_dataset(graded_slice("en", *gates), **fields)


def judged_run(records: list[Record], *datasets: Dataset) -> Report:
    baseline = run_of(answered("c" * 50), checked_dataset())
    return run_of(records, *(datasets or (checked_dataset(),)), baseline=baseline)


def test_a_healthy_run_passes() -> None:
    assert judged_run(ill(0)).decision.code == 0


def test_a_warning_changes_no_verdict() -> None:
    assert judged_run(ill(9)).decision.code == 0


@pytest.mark.parametrize("state", ["cut", "echo", "repetition", "empty"])
def test_a_severe_share_makes_a_pass_inconclusive(state: AnswerState) -> None:
    decision = judged_run(ill(10, state=state)).decision
    assert decision.code == 6
    assert decision.line.startswith("UNHEALTHY ANSWERS: exit 6; GATES PASS (2 of 2)")
    assert "10 of 50 answers of facts:en (0 of 50 before)" in decision.line


def test_a_model_that_says_what_it_does_not_know_passes() -> None:
    """That is honest, and has a metric of its own; it is a warning at most."""
    records = ill(25, state="declined")
    assert judged_run(records).decision.code == 0
    count = counted(records, "declined")
    assert count is not None and count.level == "warning"


def test_answers_that_a_filter_keeps_back_pass_nothing() -> None:
    """The wiring may be wrong, whatever the model would have said."""
    decision = judged_run(ill(10, state="declined", finish="content_filter")).decision
    assert decision.code == 6
    assert "10 of 50 answers of facts:en (0 of 50 before) decline" in decision.line


def test_a_fail_stays_a_fail_and_says_what_is_ill() -> None:
    """Whoever reads a FAIL of a model that is wired wrongly has to know it."""
    records = [replace(record, answer_state="echo") for record in answered("i" * 50)]
    decision = judged_run(records).decision
    assert decision.code == 1
    assert "the chat template is missing, or this is a base model" in decision.line


def test_an_unchanged_model_with_the_fault_of_its_baseline_does_not_pass() -> None:
    """Nobody knows what it would answer if it were wired rightly."""
    records = ill(10)
    baseline = run_of(records, checked_dataset())
    again = run_of(records, checked_dataset(), baseline=baseline)
    assert again.decision.code == 6
    assert "(10 of 50 before)" in again.decision.line


def test_health_off_waives_it_and_stands_in_the_last_line() -> None:
    decision = judged_run(ill(10), checked_dataset(health_off=True)).decision
    assert "health: off in facts" in decision.line
    assert "UNHEALTHY" not in decision.line
    assert all(gate.state == "PASS" for gate in decision.gates)


def test_health_off_since_the_baseline_is_a_gate_that_is_gone() -> None:
    """Else a waiver put in after the INCONCLUSIVE would make it a PASS."""
    report = judged_run(ill(10), checked_dataset(health_off=True))
    assert report.decision.code == 6
    assert (
        "the health of its answers counts no more (health: off)" in report.decision.line
    )


def test_health_off_in_both_runs_is_no_change() -> None:
    dataset = checked_dataset(health_off=True)
    assert not gone_gates([dataset], [dataset])


# Texts


@pytest.fixture
def unhealthy() -> Report:
    """Return a run in two languages: cut in both, and some declined."""
    dataset = facts_dataset(graded_slice(), graded_slice("bg"), graded_slice("pl"))
    cut: dict[str, Any] = {"finish": "length", "answer_tokens_out": 80}
    new = [
        *ill(40, **cut),
        *ill(30, language="bg", **cut),
        *ill(4, language="pl", state="declined"),
    ]
    old = [*ill(0), *ill(1, language="bg"), *ill(0, language="pl")]
    return run_of(new, dataset, baseline=run_of(old, dataset))


def test_one_sentence_names_all_slices_with_one_cause(unhealthy: Report) -> None:
    """Five lines that differ in the language alone would hide it."""
    text = " ".join("\n".join(console.health_lines(unhealthy)).split())
    assert text == (
        "SEVERE 40 of 50 answers of facts:en (0 of 50 before), "
        "30 of 50 answers of facts:bg (1 of 50 before) were cut at 80 tokens: "
        "raise max_tokens in the models file "
        "WARNING 4 of 50 answers of facts:pl (0 of 50 before) decline to answer: "
        "a content filter or the system prompt may refuse, or the model says what it does not "
        "know"
    )


def test_a_terminal_shows_what_is_waived(unhealthy: Report) -> None:
    parts = tuple(replace(part, is_waived=True) for part in unhealthy.health)
    lines = [*console.health_lines(replace(unhealthy, health=parts))]
    assert lines[0].startswith("WAIVED")
    assert "health: off, so these shares decide nothing" in " ".join(
        " ".join(lines).split()
    )


def test_a_healthy_run_says_nothing_of_health() -> None:
    report = judged_run(ill(0))
    assert not [*console.health_lines(report)]
    assert "Health of the answers" not in markdown.render(report)
    assert "Health of the answers" not in html.render(report)


def test_the_summary_has_causes_and_a_table(unhealthy: Report) -> None:
    text = markdown.render(unhealthy)
    assert "### Health of the answers" in text
    assert "- **SEVERE** 40 of 50 answers of facts:en" in text
    assert "| facts:bg | 50 | 1 → 30 | 0 → 0 |" in text


def test_the_page_has_a_section_with_links_to_answers(unhealthy: Report) -> None:
    page = html.render(unhealthy)
    assert '<a href="#health">Health</a>' in page
    assert '<h2 id="health">Health of the answers</h2>' in page
    assert '<b class="severe">1 → 30</b> <span class="quiet">60%</span>' in page
    assert 'href="#item-facts-bg-i0"' in page


def test_without_a_baseline_a_table_has_todays_numbers_alone() -> None:
    text = markdown.render(run_of(ill(10), checked_dataset()))
    assert "| facts:en | 50 | 10 |" in text


def test_a_report_is_read_back_with_its_health(
    unhealthy: Report, tmp_path: Path
) -> None:
    write(unhealthy, tmp_path)
    assert load_report(tmp_path).health == unhealthy.health
