"""The bundled answers that measure judges and raters: their kinds, and labels by the rubric."""

import csv
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import pytest

from cases.config import load_dataset
from cases.loading import load_cases
from evaluators.kinds import FALSE_PREMISE
from evaluators.rubric import Rubric, combined
from reports.metrics.gate import floor_gates, gate_inputs
from reports.metrics.summary import summarise
from tests.support.made_records import numbered

CASES = Path(__file__).parents[2] / "cases"
JUDGES = CASES / "judges"
JUDGED = load_dataset(JUDGES / "judges_eba" / "dataset.yaml").slices["en"]
ANSWERS = load_cases(JUDGED)
GATED = load_dataset(CASES / "eba/dataset.yaml").slices["en"]
RUBRIC = cast("Rubric", JUDGED.rubric)
LANGUAGES = ["en", "bg", "pl", "hu", "be"]


def rows(language: str) -> list[dict[str, str]]:
    with (JUDGES / f"{language}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_items_of_every_kind(language: str) -> None:
    """Eighty items or more; ranges, false premises and coarse answers are graded each way."""
    found = rows(language)
    graded = defaultdict(set)
    for row in found:
        graded[row["kind"]].add(row["label"])
    assert len(found) >= 80
    for kind in ("range", "false_premise"):
        assert {"CORRECT", "INCORRECT"} <= graded[kind]
    assert "NOT_ATTEMPTED" in graded["scope"]
    assert {"partial", "rounding", "injection", "hedged_wrong", "typo"} <= set(graded)


@pytest.mark.parametrize("language", LANGUAGES)
def test_labels_follow_the_rules_that_have_no_exception(language: str) -> None:
    """Candidates left open are never NOT_ATTEMPTED, coarse answers never INCORRECT.

    Ids and pairs of question and answer differ, and no label claims to come from people.
    """
    found = rows(language)
    assert len({row["id"] for row in found}) == len(found)
    assert len({(row["question"], row["predicted_answer"]) for row in found}) == len(found)
    assert {row["label_source"] for row in found} == {"constructed"}
    for row in found:
        if row["kind"] == "candidates":
            assert row["label"] != "NOT_ATTEMPTED", row["id"]
        if row["kind"] in ("scope", "extra_falsehood"):
            assert row["label"] != "INCORRECT", row["id"]
        assert (row["kind"] == "false_premise") <= row["answer"].startswith(FALSE_PREMISE)


def test_answers_fit_their_items() -> None:
    """Question and expert answer are the item's own; so is the context, unless it is left out.

    Answers to an item that the data set has replaced agree with each other.
    """
    items = {case.id: case for case in load_cases(GATED)}
    first = {answer.id.rpartition("-")[0]: answer for answer in reversed(ANSWERS)}
    for answer in ANSWERS:
        name, _, number = answer.id.rpartition("-")
        item = items.get(name, first[name])
        assert number.isdigit()
        assert (answer.question, answer.golds) == (item.question, item.golds), answer.id
        assert answer.context in (item.context, ""), answer.id
    assert len(first.keys() - items.keys()) <= 1
    assert any(not answer.context for answer in ANSWERS)


def test_labels_are_made_of_scores_by_the_rubrics_table() -> None:
    """Each reader scored the four parts; the label is one reader's, and they are close."""
    caps = RUBRIC.parts
    for answer in ANSWERS:
        made = []
        for reader in (1, 2):
            given = str(answer.metadata[f"parts_{reader}"])
            assert re.fullmatch(r"[0-3](?: [0-3]){3}", given), answer.id
            scores = dict(zip(caps, map(int, given.split()), strict=True))
            made.append(combined(caps, scores))
            assert made[-1] == int(str(answer.metadata[f"label_{reader}"])), answer.id
        assert int(answer.label or "") in made, answer.id
        assert abs(made[0] - made[1]) <= 3, answer.id


def test_most_labels_lie_about_the_bar() -> None:
    """A rater is told from another by answers that nearly pass, or just do."""
    labels = [int(answer.label or "") for answer in ANSWERS]
    bar = RUBRIC.pass_bar
    assert len(ANSWERS) >= 107
    assert sum(bar - 2 <= label <= bar for label in labels) >= 50
    assert 0.35 <= sum(label >= bar for label in labels) / len(labels) <= 0.65
    assert set(labels) == set(range(1, 11))


def floors(ratings: Mapping[str, int]) -> set[str]:
    """Return which of the floors a rater with these ratings, by the answers' ids, reaches."""
    rows = [{"label": answer.label, "rating": ratings[answer.id]} for answer in ANSWERS]
    records = numbered(rows)
    inputs = gate_inputs(JUDGED, records, summarise(records, JUDGED))
    gates = floor_gates(JUDGED.floor, inputs)
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
    ids=["two too strict", "one too kind", "only 1, 2 and 5", "always 5", "length", "digits"],
)
def test_a_distorted_rater_misses_the_floor(
    distort: Callable[[int, str], int],
) -> None:
    """Rank correlation alone would trust some of these: 0.98 for one that is two too strict."""
    said = {one.id: distort(int(one.label or ""), one.recorded or "") for one in ANSWERS}
    assert floors(said) < set(JUDGED.floor)


def test_the_second_reader_reaches_the_floor() -> None:
    """The floor can be reached: a reader who scored by the rubric alone does."""
    second = {one.id: int(str(one.metadata["label_2"])) for one in ANSWERS}
    assert floors(second) == set(JUDGED.floor)
