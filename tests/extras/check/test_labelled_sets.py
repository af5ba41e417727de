"""What `qagate check` says of labelled answers: counts, requirements, and what they cannot show."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from qagate.bundled import CASES
from qagate.cases.config import load_dataset
from qagate.cases.dataset import Slice
from qagate.cases.extras.check import labelled_sets
from qagate.cases.extras.check.checks import check_datasets, check_files
from qagate.cases.extras.check.item_checks import Finding
from qagate.cases.extras.check.labelled_sets import (
    CAVEATS,
    LabelledAnswers,
    Requirements,
    asking_datasets,
    breaches,
    lines_about,
    measures_judges,
)
from qagate.evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, Case, UsageError
from qagate.evaluators.kinds import JUDGED, NOT_CORRECT

BUNDLED = (
    CASES / "judges" / "dataset.yaml",
    CASES / "judges" / "judges_eba" / "dataset.yaml",
)
SLICE = Slice(
    dataset="labels",
    language="en",
    kind=JUDGED,
    path=Path("en.csv"),
    floor={"agreement": 0.9},
    floor_limit={"agreement": 0.85},
)
RATED = replace(SLICE, floor={"pass_agreement": 0.9}, floor_limit={}, pass_bar=7)


def labelled_answer(row: int, label: str, **changes: object) -> Case:
    """Return an answer to a question of its own, with a kind of error."""
    case = Case(
        id=f"q{row}",
        dataset="labels",
        language="en",
        row=row,
        question=f"Who was the {row}th?",
        golds=("Ann",),
        recorded=f"answer{row}",
        label=label,
        metadata={"error": "refusal"},
    )
    return replace(case, **changes)  # type: ignore[arg-type]


def answers(*labels: str, **changes: object) -> list[Case]:
    return [
        labelled_answer(row, label, **changes) for row, label in enumerate(labels, 1)
    ]


def labelled(
    cases: Sequence[Case], slice_: Slice = SLICE, **asked: list[str]
) -> LabelledAnswers:
    questions = {name: frozenset(texts) for name, texts in asked.items()}
    return LabelledAnswers(slice_=slice_, cases=tuple(cases), asked=questions)


def broken(required: Requirements, cases: Sequence[Case], **asked: list[str]) -> str:
    """Return the one message about what is required, empty where all is there."""
    found = breaches(labelled(cases, SLICE, **asked), required)
    return only_message(list(found), "error")


def caveat(name: str, cases: Sequence[Case], **asked: list[str]) -> str:
    return only_message(list(CAVEATS[name](labelled(cases, SLICE, **asked))), "warning")


def only_message(found: Sequence[Finding], severity: str) -> str:
    assert [finding.severity for finding in found] in ([], [severity])
    return "".join(finding.message for finding in found)


@pytest.mark.parametrize("path", BUNDLED, ids=["judges", "judges_eba"])
def test_the_bundled_labels_hold_what_they_require(path: Path) -> None:
    found = check_datasets([path]).findings
    assert [finding.line for finding in found] == []


def test_what_is_required_of_bundled_grades_is_what_a_measurement_needs() -> None:
    """The file cannot quietly ask for less: these numbers open a language to a good judge."""
    required = yaml.safe_load(BUNDLED[0].read_text(encoding="utf-8"))["check"][
        "requires"
    ]
    assert required == {
        "answers": 240,
        "questions": 185,
        "answers_per_question": 3,
        "labels": {CORRECT: 80, INCORRECT: 80, NOT_ATTEMPTED: 45},
        "no_more_than": {NOT_ATTEMPTED: INCORRECT},
        "errors_named": True,
        "answers_per_frame": 3,
        "not_asked_in": ["simpleqa", "simpleqa_hard", "smoke"],
    }


def test_what_is_required_of_bundled_ratings_is_what_a_measurement_needs() -> None:
    required = yaml.safe_load(BUNDLED[1].read_text(encoding="utf-8"))["check"][
        "requires"
    ]
    assert required == {
        "answers": 80,
        "questions": 55,
        "answers_per_question": 3,
        "near_bar": 35,
        "errors_named": True,
        "not_asked_in": ["eba"],
    }


def test_too_few_answers_are_an_error() -> None:
    required = Requirements(answers=3)
    assert broken(required, answers(CORRECT, CORRECT)) == (
        "2 answers, fewer than the 3 required; add 1"
    )
    assert not broken(required, answers(CORRECT, CORRECT, CORRECT))


def test_too_few_questions_are_an_error() -> None:
    """Two answers to one question stand on one."""
    required = Requirements(questions=2)
    on_one = answers(CORRECT, INCORRECT, question="Who?")
    assert "1 question, fewer than the 2 required" in broken(required, on_one)
    assert not broken(required, answers(CORRECT, INCORRECT))


def test_too_many_answers_to_a_question_are_an_error() -> None:
    required = Requirements(answers_per_question=2)
    crowded = answers(CORRECT, INCORRECT, INCORRECT, question="Who?")
    assert "3 answers to 'Who?', more than 2" in broken(required, crowded)
    assert not broken(required, crowded[:2])


def test_too_few_answers_of_a_label_are_an_error() -> None:
    required = Requirements(labels={CORRECT: 1, INCORRECT: 2})
    assert broken(required, answers(CORRECT, INCORRECT)) == (
        "1 INCORRECT, fewer than the 2 required; add 1"
    )
    assert not broken(required, answers(CORRECT, INCORRECT, INCORRECT))


def test_more_refusals_than_wrong_answers_are_an_error() -> None:
    required = Requirements(no_more_than={NOT_ATTEMPTED: INCORRECT})
    flattering = answers(INCORRECT, NOT_ATTEMPTED, NOT_ATTEMPTED)
    assert "2 NOT_ATTEMPTED, more than 1 INCORRECT" in broken(required, flattering)
    assert not broken(required, flattering[:2])


@pytest.mark.parametrize(
    ("ratings", "missing"),
    [
        (["5", "6", "7", "8"], ""),
        (["4", "6", "7", "8"], "1 rated 5 or 6"),
        (["5", "6", "7", "9"], "1 rated 7 or 8"),
    ],
)
def test_too_few_ratings_on_a_side_of_the_bar_are_an_error(
    ratings: list[str], missing: str
) -> None:
    """Within two points of the bar of 7; a 4 and a 9 are far from it."""
    found = list(breaches(labelled(answers(*ratings), RATED), Requirements(near_bar=2)))
    message = only_message(found, "error")
    assert message.startswith(missing)
    assert bool(message) is bool(missing)


def test_an_answer_without_its_kind_of_error_is_an_error() -> None:
    required = Requirements(errors_named=True)
    bare = labelled_answer(2, CORRECT, metadata={"error": " "})
    assert "'error' is empty" in broken(required, [*answers(CORRECT), bare])
    assert not broken(required, answers(CORRECT))


FORM = "the right name here is surely Ann"


def test_five_words_that_too_many_answers_share_are_an_error() -> None:
    required = Requirements(answers_per_frame=1)
    message = broken(required, answers(CORRECT, INCORRECT, recorded=FORM))
    assert message.startswith(
        "'the right name here is' stands in 2 answers (rows 1, 2)"
    )


def test_four_words_that_answers_share_are_no_frame() -> None:
    required = Requirements(answers_per_frame=1)
    assert not broken(required, answers(CORRECT, INCORRECT, recorded="I do not know"))


def test_the_words_of_the_question_are_no_frame() -> None:
    """An answer may repeat what it was asked."""
    required = Requirements(answers_per_frame=1)
    both = answers(CORRECT, INCORRECT, recorded=FORM, question=f"Is it so: {FORM}?")
    assert not broken(required, both)


def test_a_question_that_is_asked_elsewhere_is_an_error() -> None:
    required = Requirements(not_asked_in=("simpleqa",))
    cases = answers(CORRECT, INCORRECT)
    message = broken(required, cases, simpleqa=["who was the 2th?"])
    assert message.startswith("'Who was the 2th?' is asked in simpleqa too")
    assert not broken(required, cases, smoke=["who was the 2th?"])


def test_many_answers_to_few_questions_are_a_caveat() -> None:
    crowded = answers(*[CORRECT] * 4, question="Who?")
    message = caveat("crowded-question", crowded)
    assert message.startswith("1 question with more than 3 answers (4 on 'Who?')")
    assert not caveat("crowded-question", crowded[:3])


def test_a_class_of_fewer_than_thirty_is_a_caveat() -> None:
    many = [CORRECT] * 30 + [INCORRECT] * 30 + [NOT_ATTEMPTED] * 29
    message = caveat("small-class", answers(*many))
    assert message.startswith("29 NOT_ATTEMPTED: fewer than 30")
    assert not caveat("small-class", answers(*many, NOT_ATTEMPTED))


def test_labels_that_say_only_right_or_not_are_two_classes() -> None:
    """Nobody misses refusals among labels that do not tell them from wrong answers."""
    assert not caveat("small-class", answers(*[CORRECT] * 30, *[NOT_CORRECT] * 30))


def test_a_label_of_wrong_counts_among_labels_of_not_right() -> None:
    """They are one class where a run measures a judge by them, and 30 together."""
    mixed = [CORRECT] * 30 + [NOT_CORRECT] * 29 + [INCORRECT]
    assert not caveat("small-class", answers(*mixed))


def test_ratings_far_from_the_bar_leave_its_sides_small() -> None:
    ratings = labelled(answers(*["1"] * 40, *["10"] * 40), RATED)
    (finding,) = CAVEATS["small-class"](ratings)
    assert finding.message.startswith("0 rated 7 or 8, 0 rated 5 or 6: fewer than 30")


def test_questions_on_which_the_judge_decides_are_a_caveat() -> None:
    cases = answers(CORRECT, INCORRECT)
    message = caveat("asked-too", cases, own=["who was the 1th?"], other=["when?"])
    assert message.startswith("1 of 2 questions asked in own too (rows 1)")


def test_answers_without_kinds_of_error_are_a_caveat() -> None:
    assert "no column 'error'" in caveat("error-kinds", answers(CORRECT, metadata={}))
    assert not caveat("error-kinds", answers(CORRECT))


def test_counts_are_told_by_question_label_and_kind() -> None:
    cases = [
        *answers(CORRECT, INCORRECT, question="Who?"),
        labelled_answer(3, INCORRECT, metadata={"error": "off_by_one"}),
    ]
    assert lines_about(labelled(cases))[0] == (
        "en.csv: labels: 3 answers to 2 questions; 1 CORRECT, 2 INCORRECT, 0 NOT_ATTEMPTED; "
        "2 kinds of error: refusal 2, off_by_one 1"
    )


def test_ratings_are_counted_in_their_order() -> None:
    (counts, _) = lines_about(labelled(answers("10", "7", "7", "2"), RATED))
    assert "1 rated 2, 2 rated 7, 1 rated 10" in counts


OWN = """\
kind: judged
rubric: simpleqa
languages: {en: {file: en.csv, gates: {agreement: {min: 0.5}}}}
"""
ROWS = "question,answer,predicted_answer,label\nWho was it?,Ann,Ann,CORRECT\n"


def write_set(folder: Path, settings: str = "") -> Path:
    folder.mkdir()
    path = folder / "dataset.yaml"
    path.write_text(OWN + settings, encoding="utf-8")
    path.with_name("en.csv").write_text(ROWS, encoding="utf-8")
    return path


def test_a_set_of_ones_own_gets_warnings_and_no_errors(tmp_path: Path) -> None:
    result = check_datasets([write_set(tmp_path / "mine")])
    found = {(finding.check, finding.severity) for finding in result.findings}
    assert found == {("small-class", "warning"), ("error-kinds", "warning")}


def test_a_caveat_can_be_waived(tmp_path: Path) -> None:
    waive = "check: {waive: {error-kinds: people wrote no kinds}}\n"
    result = check_datasets([write_set(tmp_path / "mine", waive)])
    assert {finding.check for finding in result.findings} == {"small-class"}


def test_a_set_that_requires_something_is_held_to_that_alone(tmp_path: Path) -> None:
    path = write_set(tmp_path / "mine", "check: {requires: {answers: 2}}\n")
    (finding,) = check_datasets([path]).findings
    assert finding.line == (
        f"{path.with_name('en.csv')}: requires: error: "
        "1 answer, fewer than the 2 required; add 1"
    )


@pytest.mark.parametrize(
    ("requires", "message"),
    [
        ("{answer: 2}", "key 'answer': not known; did you mean 'answers'"),
        ("{not_asked_in: [simpelqa]}", "no data set 'simpelqa'"),
        ("{answers: many}", "a number from 0"),
    ],
)
def test_a_requirement_nobody_knows_is_refused(
    tmp_path: Path, requires: str, message: str
) -> None:
    path = write_set(tmp_path / "mine", f"check: {{requires: {requires}}}\n")
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        check_datasets([path])


def test_labels_are_compared_with_the_sets_that_are_checked_beside_them(
    tmp_path: Path,
) -> None:
    labels = write_set(tmp_path / "labels")
    (tmp_path / "asked").mkdir()
    questions = tmp_path / "asked" / "dataset.yaml"
    text = "kind: graded\nrubric: simpleqa\nlanguages: {en: {file: en.csv}}\n"
    questions.write_text(text, encoding="utf-8")
    rows = "question,answer\nWho  was it?,Ann\n"
    questions.with_name("en.csv").write_text(rows, encoding="utf-8")
    found = check_datasets([labels, questions]).findings
    assert "asked-too" in {finding.check for finding in found}


def test_a_file_of_labels_alone_gets_its_lines_and_warnings(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(ROWS, encoding="utf-8")
    result = check_files([path], "judges:en")
    assert result.labelled[0].startswith(f"{path}: labels: 1 answer to 1 question")
    assert "small-class" in {finding.check for finding in result.findings}


def test_attacks_are_no_labels() -> None:
    assert not measures_judges(load_dataset(CASES / "attacks" / "dataset.yaml"))


def test_sets_that_measure_judges_ask_nothing() -> None:
    names = {dataset.name for dataset in asking_datasets([])}
    assert names >= {"simpleqa", "simpleqa_hard", "smoke", "eba"}
    assert "judges" not in names


def test_every_requirement_has_a_rule() -> None:
    """A key that no rule reads would promise what nobody checks."""
    read = Path(labelled_sets.__file__).read_text(encoding="utf-8")
    for key in Requirements.__dataclass_fields__:
        assert f"required.{key}" in read, key
