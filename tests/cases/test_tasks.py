"""Who answers and who judges each kind of slice, and what passes."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from qagate.cases.dataset import PlannedItem
from qagate.cases.earlier import EarlierAnswer, EarlierAnswers
from qagate.cases.tasks import PromptedAnswer, RecordedAnswer, asked_of, make_tasks
from qagate.evaluators.answers.reader import read_text
from qagate.evaluators.core import Case, Reply, UsageError, Verdict
from qagate.evaluators.extras.lexical.judge import LexicalJudge
from qagate.evaluators.extras.lexical.overlap import OverlapRater
from qagate.evaluators.extras.panel.cascade import CascadeJudge
from qagate.evaluators.extras.panel.panel import PanelJudge
from qagate.evaluators.judges.offline import YesNoJudge
from qagate.evaluators.judges.rubric_judge import RubricJudge
from qagate.evaluators.kinds import kind_of
from qagate.evaluators.models.versions import asked_spec
from qagate.evaluators.runtime.answer_ages import THIS_RUN, AnswerAge
from qagate.evaluators.runtime.task import ReadingTask
from tests.support.judging import judges
from tests.support.made_records import make_slice
from tests.support.scripted import PROMPT, Scripted, make_case, make_rubric
from tests.support.tables import tabled

SLICE = make_slice(prompt=PROMPT)
MODEL = Scripted(lambda request: Reply(text="x"))
LEXICAL = judges("lexical")
ASKING = judges(MODEL.spec, models=[MODEL])
BOTH = f"lexical+{MODEL.spec}"


def item(kind: str, **changes: object) -> PlannedItem:
    rates = kind == "rated" or str(changes.get("label")).isdigit()
    rubric = make_rubric("rate" if rates else "tool")
    slice_ = replace(SLICE, kind=kind_of(kind), rubric=rubric, yes="Да", no="Не")
    return PlannedItem(key="k", slice=slice_, case=make_case(**changes), repeat=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "label", "offline", "asked"),
    [
        ("graded", None, LexicalJudge, RubricJudge),
        ("rated", None, OverlapRater, RubricJudge),
        ("yes_no", "YES", YesNoJudge, YesNoJudge),
        ("judged", "CORRECT", LexicalJudge, RubricJudge),
        ("judged", "7", OverlapRater, RubricJudge),
    ],
)
def test_each_kind_has_its_judge(
    kind: str, label: str | None, offline: type, asked: type
) -> None:
    """Rules without a judge model, the rubric's protocol with one; yes/no is always a rule."""
    one = item(kind, label=label)
    assert isinstance(make_tasks([one], None, LEXICAL)["k"].judge, offline)
    assert isinstance(make_tasks([one], None, ASKING)["k"].judge, asked)


def test_rules_may_stand_before_a_model() -> None:
    """For grades only: a rating or yes/no needs none, and labelled answers measure the model."""
    cascade = judges(BOTH, models=[MODEL])
    (graded,) = make_tasks([item("graded")], None, cascade).values()
    assert isinstance(graded.judge, CascadeJudge)
    assert graded.judge.rules_settle
    assert graded.judge.spec == BOTH
    (judged,) = make_tasks([item("judged", label="CORRECT")], None, cascade).values()
    assert isinstance(judged.judge, CascadeJudge)
    assert not judged.judge.rules_settle
    assert judged.judge.spec == BOTH
    kinds: list[tuple[str, str | None, type]] = [
        ("rated", None, RubricJudge),
        ("judged", "7", RubricJudge),
        ("yes_no", "YES", YesNoJudge),
    ]
    for kind, label, judge in kinds:
        assert isinstance(
            make_tasks([item(kind, label=label)], None, cascade)["k"].judge, judge
        )


def test_a_panel_sits_in_each_kind() -> None:
    """Every member gives what the slice needs; yes/no needs none of them."""
    panel = judges(MODEL.spec, "lexical", models=[MODEL])
    members = {
        "graded": [RubricJudge, LexicalJudge],
        "rated": [RubricJudge, OverlapRater],
    }
    for kind, types in members.items():
        judge = make_tasks([item(kind)], None, panel)["k"].judge
        assert isinstance(judge, PanelJudge)
        assert [type(one) for one in judge.judges] == types
    assert isinstance(make_tasks([item("yes_no")], None, panel)["k"].judge, YesNoJudge)


def test_only_a_recorded_answer_is_judged_again() -> None:
    """``--repeats`` asks the model under test anew; of labelled items it asks the judge anew."""

    def repeats(kind: str, label: str | None) -> list[int]:
        items = [replace(item(kind, label=label), key=str(n), repeat=n) for n in (1, 2)]
        judges = [task.judge for task in make_tasks(items, None, ASKING).values()]
        return [one.repeat for one in judges if isinstance(one, RubricJudge)]

    assert repeats("judged", "CORRECT") == [1, 2]
    assert repeats("judged", "7") == [1, 2]
    assert repeats("graded", None) == [1, 1]


def test_a_recorded_answer_is_taken_as_it_is() -> None:
    """The model answers every kind but judged; an empty recorded answer is an answer."""
    assert isinstance(
        make_tasks([item("graded")], MODEL, LEXICAL)["k"].answerer, PromptedAnswer
    )
    judged = make_tasks([item("judged", label="CORRECT")], MODEL, LEXICAL)["k"]
    assert isinstance(judged.answerer, RecordedAnswer)
    one = item("graded", recorded="")
    task = make_tasks([one], None, LEXICAL)["k"]

    async def refuse(*_: object) -> Reply:
        raise AssertionError

    answer = asyncio.run(task.answerer.answer(one.case, 1, refuse))
    assert (answer.text, answer.state) == ("", "empty")


@tabled("kind", "label", "verdict", "passes")
def test_what_passes(
    kind: str, label: str | None, verdict: dict[str, Any], passes: bool
) -> None:
    """CORRECT; a rating at the bar; the right word; the given label."""
    one = item(kind, label=label)
    assert (
        make_tasks([one], None, LEXICAL)["k"].passes(one.case, Verdict(**verdict))
        is passes
    )


def test_what_a_choice_needs_is_asked_for() -> None:
    """A missing prompt or rubric is named before any call, also a rubric of grades for ratings; so
    is, once, a file without answers."""
    with pytest.raises(
        UsageError, match=r"no item has a recorded answer.*--model, or by PATH"
    ):
        make_tasks([item("graded", recorded=None)], None, LEXICAL)
    one = item("graded")
    with pytest.raises(
        UsageError, match=r"no answer prompt for 'bg'; add answer.bg.yaml"
    ):
        make_tasks(
            [replace(one, slice=replace(one.slice, prompt=None))], MODEL, LEXICAL
        )
    with pytest.raises(UsageError, match="d:bg: an LLM judge needs a rubric"):
        make_tasks([replace(one, slice=replace(one.slice, rubric=None))], None, ASKING)
    rated = replace(item("rated"), slice=replace(one.slice, kind=kind_of("rated")))
    with pytest.raises(
        UsageError, match=r"needs a rubric; name one .* that asks for ratings"
    ):
        make_tasks([rated], None, ASKING)


# Earlier answers


def then(
    case: Case, answer: str | None = "старо", golds_then: Case | None = None
) -> EarlierAnswers:
    """Return the baseline's answer to the item ``k``, read by this case."""
    answers = {"k": EarlierAnswer(reply=answer, case=case, then=golds_then)}
    return EarlierAnswers(role="baseline", model="openai:old", by_key=answers)


def readings_of(
    item: PlannedItem, *earlier: EarlierAnswers
) -> Mapping[str, ReadingTask]:
    return make_tasks([item], MODEL, ASKING, None, earlier)["k"].readings


def test_an_earlier_answer_is_read_by_the_judge_of_the_item() -> None:
    planned = item("graded")
    task = make_tasks([planned], MODEL, ASKING, None, [then(planned.case)])["k"]
    assert list(task.readings) == ["baseline"]
    reading = task.readings["baseline"]
    assert (reading.answer, reading.case) == (
        read_text("старо"),
        planned.case,
    )
    assert reading.judge is task.judge


def test_an_item_that_no_earlier_run_has_has_no_readings() -> None:
    other = replace(item("graded"), key="other")
    assert (
        make_tasks([other], MODEL, ASKING, None, [then(other.case)])["other"].readings
        == {}
    )


def test_where_golds_were_others_both_answers_are_read_by_those_too() -> None:
    planned = item("graded")
    widened = replace(planned.case, golds=("София", "Сердика"))
    readings = readings_of(planned, then(planned.case, golds_then=widened))
    assert list(readings) == ["baseline", "baseline:then", "baseline:now-then"]
    assert readings["baseline"].case == planned.case
    assert readings["baseline:then"].case == widened
    assert readings["baseline:now-then"].case == widened
    assert readings["baseline:now-then"].reads_new_answer


def test_where_words_were_others_both_answers_are_read_by_those_too() -> None:
    planned = item("yes_no", label="YES")
    slice_then = replace(planned.slice, yes="Вярно")
    earlier = replace(then(planned.case), slices_then={planned.slice.name: slice_then})
    readings = readings_of(planned, earlier)
    judges = {name: reading.judge for name, reading in readings.items()}
    assert judges == {
        "baseline": YesNoJudge(yes="Да", no="Не"),
        "baseline:then": YesNoJudge(yes="Вярно", no="Не"),
        "baseline:now-then": YesNoJudge(yes="Вярно", no="Не"),
    }


def test_an_answer_to_an_edited_question_is_read_by_that_question_alone() -> None:
    """No answer is held against the golds of another question."""
    planned = item("graded")
    as_it_was = replace(planned.case, question="Друго?", golds=("Варна",))
    readings = readings_of(planned, then(as_it_was))
    assert list(readings) == ["baseline"]
    assert readings["baseline"].case == as_it_was


def test_the_answers_of_each_earlier_run_are_read_under_its_own_name() -> None:
    planned = item("graded")
    anchor = replace(then(planned.case, "по-старо"), role="anchor")
    readings = readings_of(planned, then(planned.case), anchor)
    answers = {name: reading.answer for name, reading in readings.items()}
    assert answers == {
        "baseline": read_text("старо"),
        "anchor": read_text("по-старо"),
    }


# How old an answer may be


def age_of(planned: PlannedItem, *earlier: EarlierAnswers) -> AnswerAge:
    return make_tasks([planned], MODEL, ASKING, None, earlier)["k"].age


def test_kept_answers_of_a_model_may_be_three_days_old() -> None:
    assert age_of(item("graded")).seconds == 3 * 86_400


def test_a_data_set_may_say_how_old() -> None:
    planned = item("graded")
    slice_ = replace(planned.slice, max_age_seconds=3600.0)
    assert age_of(replace(planned, slice=slice_)).seconds == 3600


def test_of_the_baselines_model_this_runs_answers_alone_count() -> None:
    planned = item("graded")
    asked = asked_spec(MODEL.spec, MODEL.identity)
    assert age_of(planned, replace(then(planned.case), model=asked)) == THIS_RUN


def test_the_anchors_model_is_held_to_an_age_only() -> None:
    planned = item("graded")
    asked = asked_spec(MODEL.spec, MODEL.identity)
    anchor = replace(then(planned.case), model=asked, role="anchor")
    assert age_of(planned, anchor) != THIS_RUN


LEAGUE = "The treaty was signed by all members of the league in Paris"
TWO = "The treaty was signed by two members of the league in Rome"


@pytest.mark.parametrize(
    ("question", "options"),
    [
        (f"What is true of it\n\nА) {LEAGUE}\nБ) {TWO}", (LEAGUE, TWO)),
        (f"What is true of it? {LEAGUE}; {TWO}", (LEAGUE, TWO)),
        (f"What is true of it? A) {LEAGUE} B) {TWO}", ()),
        (f"What is true of it? (1) {LEAGUE} (2) {TWO}", ()),
        (f"What is true of it: {LEAGUE}; {TWO}", ()),
        (f"Is it true that {LEAGUE.lower()} or that {TWO.lower()}?", ()),
        (f"Вярно ли е, че {LEAGUE} или {TWO}?", ()),
    ],
)
@pytest.mark.parametrize("answer", [LEAGUE, f"A) {LEAGUE}", TWO])
def test_what_a_question_lets_choose_is_no_echo(
    question: str, options: tuple[str, ...], answer: str
) -> None:
    """Of however many words it is, right or wrong."""
    case = make_case(question=question, options=options)
    assert read_text(answer, asked=asked_of(PROMPT, case)).state == "answered"


def test_the_question_before_its_options_is_an_echo() -> None:
    question = "Which of these four sentences is true of the old treaty of Paris?"
    case = make_case(
        question=f"{question}\n\nА) {LEAGUE}\nБ) {TWO}", options=(LEAGUE, TWO)
    )
    assert read_text(question, asked=asked_of(PROMPT, case)).state == "echo"


def test_a_question_for_yes_or_no_may_open_with_or() -> None:
    """As it does in Polish; its words are an echo still."""
    question = "Czy traktat został podpisany przez wszystkich członków ligi w Paryżu?"
    case = make_case(question=question, language="pl")
    assert read_text(question, asked=asked_of(PROMPT, case)).state == "echo"
