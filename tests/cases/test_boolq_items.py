"""The bundled yes/no items: the builder's own rules, twins, and the balance of the whole file."""

import json
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from cases.builder.recipe import Recipe, find_recipe, load_recipe
from cases.builder.rules import check_questions, question_only
from cases.builder.work_folder import DraftItem, Origin, from_row
from cases.check.checks import check_datasets
from cases.config import load_dataset
from cases.loading import load_cases
from evaluators.core import NO, YES, Case

PATH = Path(__file__).parents[2] / "cases" / "boolq" / "dataset.yaml"
INVENTED = {"be": "Прыдуманая навіна. ", "en": "Invented news item: "}
"""How news begins in each language: nobody takes it for a report of something that happened."""
TYPES = {"negation", "comparison", "time", "count", "condition", "other"}
GENRES = {"encyclopaedia", "everyday", "news"}


@pytest.fixture(scope="module", params=INVENTED)
def cases(request: pytest.FixtureRequest) -> list[Case]:
    """Return the items of one language."""
    return load_cases(load_dataset(PATH).slices[request.param])


@pytest.fixture(scope="module")
def recipe(cases: list[Case]) -> Recipe:
    """Return how the builder makes such items in their language."""
    return load_recipe(find_recipe(cases[0].language))


def built(case: Case) -> DraftItem:
    """Return a case as the builder would hold it."""
    origin = Origin(group=str(case.metadata["genre"]), source="", page=case.id, title="")
    return DraftItem(
        id=case.id,
        language=case.language,
        paragraph=case.context,
        origin=origin,
        question=case.question,
        answer=str(case.label),
    )


def test_the_builder_would_keep_every_question(cases: list[Case], recipe: Recipe) -> None:
    """Form, no denial at its head, no copy of its passage; a twin's question is asked twice."""
    asked = {case.question: built(case) for case in cases}
    checked = check_questions(list(asked.values()), recipe)
    assert [(item.id, item.reason, item.detail) for item in checked if item.reason] == []
    longest = {"": 900, "built": 1200}
    assert all(
        200 <= len(case.context) <= longest[str(case.metadata.get("part", ""))] for case in cases
    )


def test_a_question_alone_says_nothing(cases: list[Case], recipe: Recipe) -> None:
    """No simple rule without the passage is right more often than chance allows."""
    found = question_only([built(case) for case in cases], recipe.question.negations)
    assert found["shares"]["majority"] == 0.5
    assert max(found["shares"].values()) <= 0.58


def test_the_length_of_a_passage_says_nothing(cases: list[Case]) -> None:
    """Without a twin to balance it, a longer passage is neither yes nor no more often."""
    alone = [case for case in cases if not case.metadata["twin"]]
    lengths = {word: [len(c.context) for c in alone if c.label == word] for word in (YES, NO)}
    pairs = list(product(lengths[YES], lengths[NO]))
    area = sum((yes > no) + (yes == no) / 2 for yes, no in pairs) / len(pairs)
    said = f"{cases[0].language}: AUC of length {area:.2f} in {len(alone)} rows without a twin"
    assert 0.42 <= area <= 0.58, said


def test_built_items_are_those_that_the_builder_froze() -> None:
    """Passage, question and answer are as its last step left them, confirmed and reviewed."""
    cases = load_cases(load_dataset(PATH).slices["be"])
    built = {case.id: case for case in cases if case.metadata.get("part") == "built"}
    folder = PATH.parent / "built"
    lines = [
        line for path in folder.glob("*.jsonl") for line in path.read_text("utf-8").splitlines()[1:]
    ]
    frozen = [item for item in (from_row(json.loads(line)) for line in lines) if not item.reason]
    assert len(built) == len(frozen) >= 50
    for item in frozen:
        case = built[item.id]
        assert (case.context, case.question, case.label) == (
            *(item.paragraph, item.question, item.answer),
        )
        assert item.validator["blind"] == item.review["said"][0]["verdict"] == item.answer


def test_most_items_are_twins(cases: list[Case]) -> None:
    """The linter finds nothing: two of each, with opposite answers, one fact apart."""
    names = Counter(str(case.metadata["twin"]) for case in cases)
    assert len(cases) >= 204
    assert len(names.keys() - {""}) >= 64
    found = check_datasets([PATH]).findings
    assert [one.line for one in found if one.file.stem == cases[0].language] == []


@pytest.mark.parametrize(("field", "values"), [("type", TYPES), ("genre", GENRES)])
def test_types_and_genres_are_in_balance(cases: list[Case], field: str, values: set[str]) -> None:
    """None is rare, and each has about as many of either answer."""
    counts = Counter(str(case.metadata[field]) for case in cases)
    yes = Counter(str(case.metadata[field]) for case in cases if case.label == YES)
    assert counts.keys() == values
    for name, count in counts.items():
        assert count >= 0.7 * len(cases) / len(values)
        assert 0.42 <= yes[name] / count <= 0.58, name


def test_news_is_said_to_be_invented(cases: list[Case]) -> None:
    """Its first words say so."""
    news = [case for case in cases if case.metadata["genre"] == "news"]
    assert all(case.context.startswith(INVENTED[case.language]) for case in news)
