"""The bundled items: their fields, kinds, labels by the rubric, and the balance of whole files."""

import csv
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from datetime import date
from itertools import product
from pathlib import Path
from typing import cast

import pytest

from qagate.cases.config import load_dataset
from qagate.cases.extras.builder.recipe import Recipe, find_recipe, load_recipe
from qagate.cases.extras.builder.rules import check_questions, question_only
from qagate.cases.extras.builder.work_folder import DraftItem, Origin, from_row
from qagate.cases.extras.check.checks import check_datasets
from qagate.cases.loading import load_cases
from qagate.evaluators.core import GRADES, NO, YES, Case
from qagate.evaluators.kinds import FALSE_PREMISE, UNANSWERABLE
from qagate.evaluators.rubric import Rubric, combined
from qagate.reports.metrics.gate import floor_gates, gate_inputs
from qagate.reports.metrics.summary import summarise
from tests.support.made_records import numbered

EBA = Path(__file__).parents[2] / "cases" / "eba" / "dataset.yaml"
ACT = re.compile(r"3\d{4}[RL]\d{4}|EBA/GL/\d{4}/\d{2}")
"""A CELEX number of a regulation or directive, or the number of a guideline of the EBA."""
SPOKEN = {
    "en": ("Yes", "No", r".*\bnot settle\b.*\bmissing\b", "Article|paragraph|section"),
    "bg": ("Да", "Не", r".*\bне решават\b.*\bлипсват?\b", "член|раздел|точка"),
    "pl": ("Tak", "Nie", r".*\bnie rozstrzygają\b.*\bbrakuje\b", r"rt\.|kt\b|sekcj"),
    "hu": ("Igen", "Nem", r".*\bnem dönthető el: hiányzik\b", "cikk|pont|szakasz"),
}
"""By language yes, no, what an unsettled answer says of what is missing, and words of citation."""
HINT = re.compile(
    r"cannot say|nobody|not known|is not in our file|missing|have not yet"
)
"""How a question gives away that a fact is lacking."""

IN_LANGUAGES = {
    name: load_cases(slice_) for name, slice_ in load_dataset(EBA).slices.items()
}
ITEMS = IN_LANGUAGES["en"]
LONG = [case for case in ITEMS if len(case.context.split()) >= 400]


def opens_as(kind: str, language: str) -> re.Pattern[str]:
    """Return how an expert's answer of this type begins."""
    yes, no, unsettled, _ = SPOKEN[language]
    openings = {
        "yes": rf"{yes}\b",
        "no": rf"{no}\b",
        "value": rf"(?!(?:{yes}|{no})\b)",
        "unsettled": unsettled,
    }
    return re.compile(openings[kind])


@pytest.mark.parametrize("language", SPOKEN)
def test_every_regulatory_item_is_whole(language: str) -> None:
    """Act, provision, source and date; the conclusion first; 10 to 14 topics."""
    items = IN_LANGUAGES[language]
    for case in items:
        fields = case.metadata
        assert ACT.fullmatch(str(fields["celex"])), case.id
        assert date(2024, 1, 1) <= date.fromisoformat(str(fields["as_of"])), case.id
        assert all(
            str(fields[name]).strip() for name in ("topic", "provision", "source")
        ), case.id
        assert re.fullmatch(r"(\d{4}_\d{4,5})?", str(fields["qa_id"])), case.id
        kind = str(case.metadata["answer_type"])
        assert opens_as(kind, language).match(case.expected), case.id
        assert re.search(SPOKEN[language][-1], case.expected), case.id
    topics = Counter(str(case.metadata["topic"]) for case in items)
    assert 10 <= len(topics) <= 14
    assert min(topics.values()) >= (5 if language == "en" else 1)


@pytest.mark.parametrize("language", ["bg", "pl", "hu"])
def test_regulatory_items_pair_with_the_english_ones(language: str) -> None:
    """Forty of them ask an English question, by the same law and with the same kind of answer."""
    english = {case.metadata.get("fact_id"): case for case in ITEMS}
    items = IN_LANGUAGES[language]
    assert len({case.metadata["fact_id"] for case in items}) == len(items) >= 40
    for case in items:
        there = english[case.metadata["fact_id"]].metadata
        same = ("topic", "legal_act", "answer_type", "celex", "as_of")
        assert [case.metadata[name] for name in same] == [there[name] for name in same]


def test_no_conclusion_pays_without_reading() -> None:
    """As many yes as no, a sixth open, and in 30 long contexts the deciding sentence apart."""
    for some in (*IN_LANGUAGES.values(), LONG):
        types = Counter(str(case.metadata["answer_type"]) for case in some)
        assert abs(types["yes"] - types["no"]) <= 2
        assert 0.12 <= types["unsettled"] / len(some) <= 0.25
    open_ = [case for case in ITEMS if case.metadata["answer_type"] == "unsettled"]
    assert sum(bool(HINT.search(case.question)) for case in open_) <= len(open_) / 4
    assert len(LONG) >= 30
    assert all(len(case.context.split()) <= 900 for case in ITEMS)
    assert all(case.context.count("\n") >= 6 for case in LONG)
    assert len({case.metadata["topic"] for case in LONG}) >= 10


@pytest.mark.parametrize(
    ("law", "least"),
    [
        (r"2024/3117|2024/2956", 10),
        (r"DORA|2024/1772|2025/301|2024/2956", 8),
        (r"PSD2|2018/389", 8),
    ],
    ids=["supervisory reporting", "DORA", "PSD2"],
)
def test_what_banks_ask_most_is_asked(law: str, least: int) -> None:
    """Templates and dates of reporting, digital resilience and payments, by the act named."""
    assert (
        sum(bool(re.search(law, str(case.metadata["source"]))) for case in ITEMS)
        >= least
    )


BOOLQ = Path(__file__).parents[2] / "cases" / "boolq" / "dataset.yaml"
INVENTED = {"be": "Прыдуманая навіна. ", "en": "Invented news item: "}
"""How news begins in each language: nobody takes it for a report of something that happened."""
TYPES = {"negation", "comparison", "time", "count", "condition", "other"}
GENRES = {"encyclopaedia", "everyday", "news"}


@pytest.fixture(scope="module", params=INVENTED)
def cases(request: pytest.FixtureRequest) -> list[Case]:
    return load_cases(load_dataset(BOOLQ).slices[request.param])


@pytest.fixture(scope="module")
def recipe(cases: list[Case]) -> Recipe:
    return load_recipe(find_recipe(cases[0].language))


def built(case: Case) -> DraftItem:
    origin = Origin(
        group=str(case.metadata["genre"]), source="", page=case.id, title=""
    )
    return DraftItem(
        id=case.id,
        language=case.language,
        paragraph=case.context,
        origin=origin,
        question=case.question,
        answer=str(case.label),
    )


def test_the_builder_would_keep_every_question(
    cases: list[Case], recipe: Recipe
) -> None:
    """Form, no denial at its head, no copy of its passage; a twin's question is asked twice."""
    asked = {case.question: built(case) for case in cases}
    checked = check_questions(list(asked.values()), recipe)
    assert [
        (item.id, item.reason, item.detail) for item in checked if item.reason
    ] == []
    longest = {"": 900, "built": 1200}
    assert all(
        200 <= len(case.context) <= longest[str(case.metadata.get("part", ""))]
        for case in cases
    )


def test_a_passage_is_needed(cases: list[Case], recipe: Recipe) -> None:
    """No rule on the question, nor a passage's length, answers; news is said to be invented."""
    found = question_only([built(case) for case in cases], recipe.question.negations)
    assert found["shares"]["majority"] == 0.5
    assert max(found["shares"].values()) <= 0.58
    alone = [case for case in cases if not case.metadata["twin"]]
    lengths = {
        word: [len(c.context) for c in alone if c.label == word] for word in (YES, NO)
    }
    pairs = list(product(lengths[YES], lengths[NO]))
    area = sum((yes > no) + (yes == no) / 2 for yes, no in pairs) / len(pairs)
    said = f"{cases[0].language}: AUC of length {area:.2f} in {len(alone)} rows without a twin"
    assert 0.42 <= area <= 0.58, said
    news = [case for case in cases if case.metadata["genre"] == "news"]
    assert all(case.context.startswith(INVENTED[case.language]) for case in news)


def test_built_items_are_those_that_the_builder_froze() -> None:
    """Passage, question and answer are as its last step left them, confirmed and reviewed."""
    cases = load_cases(load_dataset(BOOLQ).slices["be"])
    built = {case.id: case for case in cases if case.metadata.get("part") == "built"}
    folder = BOOLQ.parent / "built"
    lines = [
        line
        for path in folder.glob("*.jsonl")
        for line in path.read_text("utf-8").splitlines()[1:]
    ]
    frozen = [
        item
        for item in (from_row(json.loads(line)) for line in lines)
        if not item.reason
    ]
    assert len(built) == len(frozen) >= 50
    for item in frozen:
        case = built[item.id]
        assert (case.context, case.question, case.label) == (
            *(item.paragraph, item.question, item.answer),
        )
        assert (
            item.validator["blind"] == item.review["said"][0]["verdict"] == item.answer
        )


def test_most_items_are_twins(cases: list[Case]) -> None:
    """The linter finds nothing: two of each, with opposite answers, one fact apart."""
    names = Counter(str(case.metadata["twin"]) for case in cases)
    assert len(cases) >= 204
    assert len(names.keys() - {""}) >= 64
    found = check_datasets([BOOLQ]).findings
    assert [one.line for one in found if one.file.stem == cases[0].language] == []


@pytest.mark.parametrize(("field", "values"), [("type", TYPES), ("genre", GENRES)])
def test_types_and_genres_are_in_balance(
    cases: list[Case], field: str, values: set[str]
) -> None:
    """None is rare, and each has about as many of either answer."""
    counts = Counter(str(case.metadata[field]) for case in cases)
    yes = Counter(str(case.metadata[field]) for case in cases if case.label == YES)
    assert counts.keys() == values
    for name, count in counts.items():
        assert count >= 0.7 * len(cases) / len(values)
        assert 0.42 <= yes[name] / count <= 0.58, name


CASES = Path(__file__).parents[2] / "cases"
JUDGES = CASES / "judges"
RATED = load_dataset(JUDGES / "judges_eba" / "dataset.yaml").slices
JUDGED = RATED["en"]
ANSWERS_IN = {name: load_cases(slice_) for name, slice_ in RATED.items()}
ANSWERS = ANSWERS_IN["en"]
RUBRIC = cast("Rubric", JUDGED.rubric)
LANGUAGES = ["en", "bg", "pl", "hu", "be"]


def rows(language: str) -> list[dict[str, str]]:
    with (JUDGES / f"{language}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("language", LANGUAGES)
def test_kinds_of_judged_questions_stand_on_questions_of_their_own(
    language: str,
) -> None:
    questions = defaultdict(set)
    for row in rows(language):
        questions[row["kind"]].add(row["question"])
    kinds = ("number", "date", "several", "list", "false_premise", "unanswerable")
    for kind in kinds:
        assert len(questions[kind]) >= 12, kind


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_false_premise_is_labelled_in_all_three_ways(language: str) -> None:
    for mark, kind in (
        (FALSE_PREMISE, "false_premise"),
        (UNANSWERABLE, "unanswerable"),
    ):
        of_kind = [row for row in rows(language) if row["kind"] == kind]
        assert {row["label"] for row in of_kind} == set(GRADES)
        assert all(row["answer"].startswith(mark) for row in of_kind)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_judged_row_is_whole(language: str) -> None:
    """The label is the writer's; a second reader's is the same, or not yet given."""
    found = rows(language)
    assert len({row["id"] for row in found}) == len(found)
    pairs = {(row["question"], row["predicted_answer"]) for row in found}
    assert len(pairs) == len(found)
    for row in found:
        assert row["label_source"] == "constructed"
        assert row["label"] == row["label_1"]
        assert row["label_2"] in ("", row["label"])


@pytest.mark.parametrize(
    ("language", "least"), [("en", 110), ("bg", 58), ("pl", 60), ("hu", 61)]
)
def test_rated_answers_are_to_questions_of_their_own(language: str, least: int) -> None:
    """No question is asked elsewhere; most have one answer, none more than three."""
    asked = {case.question for case in IN_LANGUAGES[language]}
    answers = defaultdict(list)
    for answer in ANSWERS_IN[language]:
        assert answer.id.rpartition("-")[2].isdigit()
        answers[answer.question].append(answer)
    assert len(answers) >= least
    assert not answers.keys() & asked
    for given in answers.values():
        assert len(given) <= 3
        assert len({(one.golds, one.context) for one in given}) == 1, given[0].id
        assert len({one.recorded for one in given}) == len(given)


@pytest.mark.parametrize(
    ("language", "count", "unread_most", "near"),
    [("en", 160, 1, 60), ("bg", 93, 13, 35), ("pl", 80, 0, 35), ("hu", 94, 14, 35)],
)
def test_labels_are_made_of_scores(
    language: str, count: int, unread_most: int, near: int
) -> None:
    """Labels are readers' sums by the rubric's table, most of them about the bar."""
    answers = ANSWERS_IN[language]
    caps = RUBRIC.parts
    unread = 0
    for answer in answers:
        made = []
        for reader in (1, 2):
            given = str(answer.metadata.get(f"parts_{reader}") or "")
            if reader == 2 and not given:
                unread += 1
                assert not answer.metadata.get("label_2"), answer.id
                continue
            assert re.fullmatch(r"[0-3](?: [0-3]){3}", given), answer.id
            made.append(
                combined(caps, dict(zip(caps, map(int, given.split()), strict=True)))
            )
            assert made[-1] == int(str(answer.metadata[f"label_{reader}"])), answer.id
        assert int(answer.label or "") == made[0], answer.id
        assert abs(made[0] - made[-1]) <= 1, answer.id
    labels = [int(answer.label or "") for answer in answers]
    bar = RUBRIC.pass_bar
    assert len(answers) == count
    assert unread <= unread_most
    assert sum(bar - 2 <= label < bar for label in labels) >= near
    assert sum(bar <= label <= bar + 1 for label in labels) >= near
    assert 0.35 <= sum(label >= bar for label in labels) / len(labels) <= 0.65
    assert set(labels) == set(range(1, 11))


def floors(ratings: Mapping[str, int], language: str = "en") -> set[str]:
    """Return which of the floors a rater with these ratings, by the answers' ids, reaches."""
    rows = [
        {"label": answer.label, "rating": ratings[answer.id]}
        for answer in ANSWERS_IN[language]
        if answer.id in ratings
    ]
    records = numbered(rows)
    gates = floor_gates(
        JUDGED.floor, gate_inputs(JUDGED, records, summarise(records, JUDGED))
    )
    return {gate.threshold.measure for gate in gates if gate.state == "PASS"}


@pytest.mark.parametrize(
    "distort",
    [
        lambda label, _: max(1, label - 2),
        lambda label, _: min(10, label + 1),
        lambda label, _: {True: 5, False: 1 + (label > 2)}[label > 3],
        lambda _, answer: 5,
        lambda _, answer: min(10, 1 + len(answer) // 60),
        lambda _, answer: min(10, 1 + sum(map(str.isdigit, answer)) // 3),
    ],
    ids=[
        "two too strict",
        "one too kind",
        "only 1, 2 and 5",
        "always 5",
        "length",
        "digits",
    ],
)
@pytest.mark.parametrize("language", RATED)
def test_a_distorted_rater_misses_the_floor(
    distort: Callable[[int, str], int], language: str
) -> None:
    """Rank correlation alone would trust some of these: 0.98 for one that is two too strict."""
    said = {
        one.id: distort(int(one.label or ""), one.recorded or "")
        for one in ANSWERS_IN[language]
    }
    assert floors(said, language) < set(JUDGED.floor)


def test_the_second_reader_reaches_the_floor() -> None:
    """The floor can be reached: a reader who scored by the rubric alone does."""
    second = {
        one.id: int(str(one.metadata["label_2"]))
        for one in ANSWERS
        if one.metadata.get("label_2")
    }
    assert floors(second) == set(JUDGED.floor)
