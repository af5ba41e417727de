"""Questions with options: how files write options and keys, and how they are shown."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.cases.loading import load_cases
from qagate.evaluators.core import Case, UsageError
from qagate.evaluators.judges.offline import choice_of
from tests.support.declaring import declared, loaded, made, refusal

CITIES = ["Plovdiv", "Sofia", "Varna", "Ruse"]
CHOICE = "kind: choice\nlanguages: {en: {file: a.csv}}\n"


def case_of(folder: Path, index_from: int | None = None, **row: object) -> Case:
    """Return the case of a row whose options are CITIES unless it says otherwise."""
    row = {"question": "Which is the capital?", "options": CITIES, **row}
    path = folder / "data.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")
    slice_ = replace(made(path, "choice"), index_from=index_from)
    [case] = load_cases(slice_)
    return case


def refused(folder: Path, **row: object) -> str:
    with pytest.raises(UsageError) as caught:
        case_of(folder, **row)  # type: ignore[arg-type]
    return str(caught.value)


def test_the_question_is_shown_with_its_options(tmp_path: Path) -> None:
    case = case_of(tmp_path, answer="Sofia")
    shown = [
        f"{letter}) {text}" for letter, text in zip("ABCD", case.options, strict=True)
    ]
    assert case.question.split("\n") == ["Which is the capital?", "", *shown]
    assert sorted(case.options) == sorted(CITIES)


@pytest.mark.parametrize(
    "answer", ["Sofia", "sofia.", "B", "b", "(B)", "B.", "Б", ["B"]]
)
def test_a_key_is_a_letter_or_a_text(tmp_path: Path, answer: object) -> None:
    case = case_of(tmp_path, answer=answer)
    assert case.golds == ("Sofia",)
    assert case.label is not None
    assert case.options["ABCD".index(case.label)] == "Sofia"


@pytest.mark.parametrize(
    ("name", "number", "index_from"),
    [
        ("answer", 1, 0),
        ("answer", "2", 1),
        ("correct_answer_num", "2", None),
        ("answer_index", 1, None),
    ],
)
def test_a_number_counts_from_where_the_set_says(
    tmp_path: Path, name: str, number: object, index_from: int | None
) -> None:
    assert case_of(tmp_path, index_from, **{name: number}).golds == ("Sofia",)


def test_a_number_that_may_count_from_0_or_1_is_refused(tmp_path: Path) -> None:
    assert "say 'index_from: 0' or 'index_from: 1'" in refused(tmp_path, answer=1)


def test_a_number_that_is_an_options_text_is_that_option(tmp_path: Path) -> None:
    assert case_of(tmp_path, options=["3", "1", "7"], answer="7").golds == ("7",)


@pytest.mark.parametrize(
    "row",
    [
        {
            "option_a": "Plovdiv",
            "option_b": "Sofia",
            "option_c": "Varna",
            "option_d": "",
        },
        {"mc_answer1": "Plovdiv", "mc_answer2": "Sofia", "mc_answer3": "Varna"},
        {"A": "Plovdiv", "B": "Sofia", "C": "Varna"},
        {"options": '["Plovdiv", "Sofia", "Varna"]'},
        {"options": "Plovdiv | Sofia | Varna"},
        {"options": {"text": ["Plovdiv", "Sofia", "Varna"], "label": ["A", "B", "C"]}},
        {
            "options": [
                {"text": text, "label": "ABC"[at]} for at, text in enumerate(CITIES[:3])
            ]
        },
    ],
)
def test_options_stand_in_a_list_or_in_columns(
    tmp_path: Path, row: dict[str, object]
) -> None:
    case = case_of(tmp_path, **{"options": None, **row}, answer="B")  # type: ignore[arg-type]
    assert sorted(case.options) == ["Plovdiv", "Sofia", "Varna"]
    assert case.golds == ("Sofia",)
    assert case.metadata == {}


def test_labels_of_the_file_name_its_options(tmp_path: Path) -> None:
    options = [{"text": "no", "label": "1"}, {"text": "yes", "label": "2"}]
    assert case_of(tmp_path, options=options, answer="2").golds == ("yes",)


def test_a_csv_file_has_options_in_columns(tmp_path: Path) -> None:
    text = "Question,Option A,Option B,Answer,topic\nq?,yes,no,B,law\n"
    [case] = loaded(tmp_path, text, kind="choice")
    assert (case.golds, case.metadata) == (("no",), {"topic": "law"})


@pytest.mark.parametrize(
    "answer", ["CADB", "C, A, D, B", "3142", "3 > 1 > 4 > 2", [*"CADB"]]
)
def test_a_key_may_be_an_order(tmp_path: Path, answer: object) -> None:
    case = case_of(tmp_path, answer=answer)
    assert case.golds == ("Varna, Plovdiv, Ruse, Sofia",)
    assert choice_of(case, "Varna, Plovdiv, Ruse, Sofia") == case.label
    assert choice_of(case, "Varna, Ruse, Plovdiv, Sofia") != case.label


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"answer": "E"}, "'E' is no letter, text or number of its 4 options"),
        ({"answer": "Burgas"}, "'Burgas' is no letter"),
        ({"answer": ["A", "B"]}, "an order names every option once"),
        ({"answer": ["A", "Burgas"]}, "'Burgas' is no letter"),
        ({"answer": True}, "the letter, text or number of an option is needed"),
        ({"answer": "A", "answer_key": "B"}, "names another option than 'answer'"),
        (
            {"options": ["one"], "answer": "A"},
            "1 different options; give 2 to 10 of them",
        ),
        ({"options": ["So", "„So“."], "answer": "A"}, "1 different options"),
        (
            {"options": ["So", "So", "Va"], "answer": "CAB"},
            "an order names every option",
        ),
        (
            {"options": ["B", "A"], "answer": "B"},
            "the text of one option, and the letter",
        ),
        ({"options": [True, "x"], "answer": "A"}, "an option must be text"),
        ({"options": "{1: 2}", "answer": "A"}, "a list of options is needed"),
        ({"options": "Sofia", "answer": "A"}, "no list of options"),
        ({"options": "x" * 200_001, "answer": "A"}, "characters; shorten it"),
        ({"options": ["a", ""], "answer": "A"}, "empty; fill it in"),
        ({"options": None, "answer": "A"}, "missing; give a list in 'options'"),
        ({}, "missing (or"),
    ],
)
def test_a_row_without_one_right_option_is_refused(
    tmp_path: Path, row: dict[str, object], said: str
) -> None:
    message = refused(tmp_path, **row)
    assert said in message
    assert "data.jsonl:1" in message


@pytest.mark.parametrize("answer", ["A", "C", "2 R", ["C"]])
def test_equal_options_are_shown_once(tmp_path: Path, answer: object) -> None:
    """Either key means the same text."""
    case = case_of(tmp_path, options=["2 R", "3 R", "2 R"], answer=answer)
    assert sorted(case.options) == ["2 R", "3 R"]
    assert case.golds == ("2 R",)


def test_options_that_differ_in_case_alone_are_told_apart(tmp_path: Path) -> None:
    case = case_of(tmp_path, options=["AABb", "AaBb"], answer="AaBb")
    assert choice_of(case, "AaBb") == case.label
    assert choice_of(case, "AABb") != case.label


@given(st.permutations(CITIES), st.sampled_from(CITIES))
def test_the_order_in_the_file_changes_no_case_and_no_grade(
    tmp_path_factory: pytest.TempPathFactory, order: list[str], answer: str
) -> None:
    folder = tmp_path_factory.mktemp("orders")
    usual = case_of(folder, answer="Sofia")
    case = case_of(folder, options=order, answer="Sofia")
    assert replace(case, digest="") == replace(usual, digest="")
    assert case.digest == usual.digest
    assert choice_of(case, answer) == choice_of(usual, answer)


@given(st.integers(0, 40))
def test_the_seed_moves_options_and_changes_no_grade(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    path = tmp_path_factory.mktemp("seeds") / "data.jsonl"
    row = {"question": "q?", "options": CITIES, "answer": "Sofia"}
    path.write_text(json.dumps(row), encoding="utf-8")
    [case] = load_cases(replace(made(path, "choice"), shuffle=seed))
    for city in CITIES:
        assert (choice_of(case, city) == case.label) == (city == "Sofia")


def test_places_of_right_options_are_about_even(tmp_path: Path) -> None:
    lines = []
    for number in range(400):
        row = {"question": f"{number}?", "options": CITIES, "answer": "A"}
        lines.append(json.dumps(row))
    cases = loaded(tmp_path, "\n".join(lines), "jsonl", "choice")
    for letter in "ABCD":
        assert 70 < sum(case.label == letter for case in cases) < 130


def test_seed_0_keeps_the_order_of_the_file(tmp_path: Path) -> None:
    dataset = declared(tmp_path, f"{CHOICE}shuffle: 0\nindex_from: 1\n")
    (tmp_path / "a.csv").write_text("question,choices,answer\nq?,z | y | x,1\n")
    [case] = load_cases(dataset.slices["en"])
    assert (case.options, case.label) == (("z", "y", "x"), "A")


def test_only_choices_are_shuffled(tmp_path: Path) -> None:
    graded = "kind: graded\nshuffle: 1\nlanguages: {en: {file: a.csv}}\n"
    assert "only for kind choice" in refusal(tmp_path, graded)


def test_questions_on_one_passage_form_a_cluster(tmp_path: Path) -> None:
    kind = made(tmp_path, "choice").kind
    with_passage = case_of(tmp_path, answer="A", passage="A text.")
    assert kind.cluster_of(with_passage) == kind.cluster_of(
        case_of(tmp_path, answer="B", passage="A text.", question="Another?")
    )
    assert kind.shared(case_of(tmp_path, answer="A")) == ()


@pytest.mark.parametrize("gold", ["1", "B", "Б"])
def test_a_gold_that_names_an_option_which_is_not_shown_is_refused(
    tmp_path: Path, gold: str
) -> None:
    """The form of INCLUDE and Global-MMLU; as graded answers it would be wrong throughout."""
    row = {"question": "q?", "choices": ["Plovdiv", "Sofia"], "answer": gold}
    with pytest.raises(UsageError, match="options are shown only by 'kind: choice'"):
        loaded(tmp_path, json.dumps(row), "jsonl")


def test_a_gold_text_beside_options_is_graded(tmp_path: Path) -> None:
    row = {"question": "q?", "choices": ["Plovdiv", "Sofia"], "answer": "Sofia"}
    [case] = loaded(tmp_path, json.dumps(row), "jsonl")
    assert case.golds == ("Sofia",)


def test_a_letter_alone_is_a_gold_where_there_are_no_options(tmp_path: Path) -> None:
    [case] = loaded(tmp_path, "question,answer,a,b\nWhich vitamin?,C,1,2\n")
    assert case.golds == ("C",)
