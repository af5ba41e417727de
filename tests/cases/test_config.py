"""dataset.yaml becomes a dataset, and a wrong key is told with file, line and key."""

import re
from collections import Counter
from pathlib import Path

import pytest

from cases.config import load_dataset, with_items
from cases.dataset import Slice, Threshold
from cases.loading import load_cases
from evaluators.kinds import MARKS
from tests.support.declaring import (
    GRADED,
    JUDGED,
    PROMPT,
    RATED,
    YES_NO,
    declared,
    refusal,
)
from tests.support.tables import tabled


def test_a_dataset_with_everything(folder: Path, rubrics: Path) -> None:
    """Every key arrives where it belongs; a language's own value goes before the dataset's."""
    (folder / "answer.bg.yaml").write_text(PROMPT.format("bg"), encoding="utf-8")
    text = """
kind: graded
rubric: facts
by: [topic, Answer type]
cluster: Story id
penalty: 9
holm: true
require_calibration: True
languages:
  bg:
    file: data/bg.csv
    gates:
      correct: {min: 0.35, max: .9}
      incorrect: {max: 5e-1, evidence: confident}
      drop: {max: 0.10}
  en: {file: en.csv}
drop: {max: 0.03, pool: languages, evidence: estimate}
"""
    dataset = declared(folder, text, rubrics)
    assert (dataset.name, dataset.folder, dataset.kind) == ("facts", folder, "graded")
    assert (dataset.holm, dataset.require_calibration) == (True, True)
    assert dataset.pooled == (Threshold(measure="drop", max=0.03, pool=True, fail="margin"),)
    bg, en = dataset.slices["bg"], dataset.slices["en"]
    assert bg.path == folder / "data" / "bg.csv"
    assert bg.thresholds == (
        Threshold(measure="correct", min=0.35, max=0.9),
        Threshold(measure="incorrect", max=0.5, evidence="confident"),
        Threshold(measure="drop", max=0.1, evidence="confident", fail="margin"),
    )
    assert (bg.penalty, bg.by, bg.declared) == (9, ("topic", "answer_type"), True)
    assert (bg.cluster, en.cluster) == ("story_id", "story_id")
    assert bg.prompt is not None
    assert bg.rubric is not None
    assert (bg.prompt.language, bg.rubric.language) == ("bg", "bg")
    assert (en.prompt, en.thresholds, en.pass_bar) == (None, (), 6)


def test_gates_for_every_language(folder: Path) -> None:
    """What the data set says once holds in each language; a language's own gate replaces its like.

    Metrics with bars of their own join them. A language that is not listed still has no gate.
    """
    text = """
kind: graded
gates: {correct: {min: 0.4}, drop: {max: 0.1}}
baseline: required
languages:
  bg: {file: bg.csv, gates: {correct: {min: 0.3}, incorrect: {max: 0.5}}}
  en: {file: en.csv}
  default: {rubric_language: en}
"""
    dataset = declared(folder, text)
    assert dataset.baseline_required
    bars = {name: [one.text for one in part.thresholds] for name, part in dataset.slices.items()}
    assert bars["en"] == ["correct >= 0.4", "drop <= 0.1"]
    assert bars["bg"] == ["drop <= 0.1", "correct >= 0.3", "incorrect <= 0.5"]
    assert with_items(dataset, "pl", Path("pl.csv")).slices["pl"].thresholds == ()
    twice = "kind: graded\ngates: {bias: {min: 0.5}}\nlanguages: {en: {file: a.csv, metrics: "
    said = refusal(folder, twice + "{bias: {min: 0.7}}}}\n")
    assert "key 'bias': has a bar here and under gates; keep one" in said


def test_every_bundled_language_has_a_margin_of_its_own() -> None:
    """A loss in one language cannot hide among the others; the margin of each can be shown."""
    margins = {"simpleqa": 0.1, "simpleqa/simpleqa_hard": 0.15, "boolq": 0.15, "eba": 0.15}
    for name, margin in {**margins, "smoke": 0.2}.items():
        slices = load_dataset(Path(f"cases/{name}/dataset.yaml")).slices
        assert slices
        for one in slices.values():
            few = one.name == "simpleqa_hard:be"  # 42 items, where others have 120
            wanted = [0.25 if few else margin]
            assert [gate.max for gate in one.thresholds if gate.name == "drop"] == wanted


def bundled(name: str, language: str) -> Slice:
    return load_dataset(Path(f"cases/{name}/dataset.yaml")).slices[language]


@pytest.mark.parametrize("language", ["en", "bg", "pl", "hu", "be"])
def test_bundled_questions_are_what_their_datasheet_says(language: str) -> None:
    """Two kinds of hard ones; premises, most with one wrong detail, and some that nobody knows.

    Round numbers are ranges, English asks directly, and Belarusian answers in Russian are gated.
    """
    own = bundled("simpleqa", language)
    hard, cases = load_cases(bundled("simpleqa/simpleqa_hard", language)), load_cases(own)
    kinds = Counter(case.metadata["kind"] for case in hard)
    assert sorted(kinds.values()) == ([16, 26] if language == "be" else [60, 60])
    premises = [case for case in cases if case.golds[0].startswith(MARKS)]
    details = [case for case in premises if case.id.startswith("premise-")]
    assert len(premises) >= 30
    assert len(details) >= len(premises) / 2
    assert any(case.golds[0].startswith(MARKS[1]) for case in premises)
    numbers = [case.golds for case in cases if case.metadata["answer_type"] == "Number"]
    rounded = re.compile(r"\W*\d+(?:[ ,]\d{3})*(?<=\d0)\b(?![.,]\d)")
    assert not [some for some in numbers if rounded.match(some[0]) and ".." not in f"{some}"]
    asked = re.compile(r"(\w+\W+){0,3}(who|what|which|when|where|how)", re.IGNORECASE)
    every = [*cases, *hard, *load_cases(bundled("smoke", language))]
    assert not [one.id for one in every if one.language == "en" and not asked.match(one.question)]
    bars = {bar.text for bar in own.thresholds}
    assert "premise_accepted <= 0.75" in bars
    assert ("check_language >= 0.9" in bars) == (language == "be")


def test_other_kinds(folder: Path) -> None:
    """A pass bar, the words for yes and no, and a judge's floor."""
    rated = declared(folder, "kind: rated\npass_bar: 7\nlanguages: {en: {file: a.yaml}}\n")
    assert rated.slices["en"].pass_bar == 7
    be = declared(folder, YES_NO).slices["be"]
    assert (be.yes, be.no) == ("Так", "Не")
    text = JUDGED.replace("}}", "}, bg: {file: b, floor: {kappa: -.1}}}")
    judged = declared(folder, text + "floor: {agreement: 0.8}\n")
    assert judged.slices["en"].floor == {"agreement": 0.8}
    assert judged.slices["bg"].floor == {"kappa": -0.1}
    assert not judged.slices["en"].floor_limit
    limit = declared(folder, JUDGED + "floor: {agreement: 0.9}\nfloor_limit: {agreement: 0.85}\n")
    assert limit.slices["en"].floor_limit == {"agreement": 0.85}
    both = declared(folder, JUDGED + "floor: {mean_difference: 9}\noffline_floor: {kappa: 0.1}\n")
    assert both.slices["en"].floor == {"mean_difference": 9.0}
    assert both.slices["en"].offline_floor == {"kappa": 0.1}


def test_a_rubric_may_say_which_rating_passes(folder: Path) -> None:
    """Where neither the data set nor the language does."""
    rubric = "name: own\nlanguage: en\nversion: '1'\nprotocol: rate\npass_bar: 8\n"
    user = "user: '{question} {target} {predicted_answer}'\n"
    (folder / "own.en.yaml").write_text(rubric + user, encoding="utf-8")
    rated = "kind: rated\nrubric: own\nlanguages: {en: {file: a.yaml"
    assert declared(folder, rated + "}}\n").slices["en"].pass_bar == 8
    assert declared(folder, rated + ", pass_bar: 9}}\n").slices["en"].pass_bar == 9
    judged = declared(folder, "kind: judged\nrubric: own\nlanguages: {en: {file: a.csv}}\n")
    assert judged.slices["en"].pass_bar == 8


def test_ranges_follow_the_measure(folder: Path) -> None:
    """Ratings go from 1 to 10, a drop is a share of the items, a penalised score may be below 0."""
    gates = "mean_rating: {min: 5.5}, drop: {max: 0.2}"
    rated = declared(folder, f"kind: rated\nlanguages: {{en: {{file: a, gates: {{{gates}}}}}}}\n")
    assert [rule.measure for rule in rated.slices["en"].thresholds] == ["mean_rating", "drop"]
    graded = declared(folder, GRADED + "    gates: {penalised: {min: -2}}\n")
    assert graded.slices["en"].thresholds[0].min == -2
    assert "0.5" in refusal(folder, RATED.replace("a.yaml", "a, gates: {mean_rating: {min: 0.5}}"))


@tabled("kind", "protocol", "fits")
def test_a_rubric_fits_the_kind(folder: Path, kind: str, protocol: str, fits: bool) -> None:
    """A grader cannot rate and a rater cannot grade; labelled items may be either."""
    user = "{question} {target} {predicted_answer}"
    head = f'name: own\nlanguage: en\nversion: "1"\nprotocol: {protocol}\n'
    (folder / "own.en.yaml").write_text(f'{head}user: "{user}"\n', encoding="utf-8")
    text = f"kind: {kind}\nrubric: own.en.yaml\nlanguages: {{en: {{file: a.csv}}}}\n"
    if fits:
        assert declared(folder, text).slices["en"].rubric is not None
    else:
        assert f"protocol '{protocol}', which a {kind} dataset" in refusal(folder, text)


def test_folder_names_the_dataset(tmp_path: Path) -> None:
    """A folder whose name could not be a pytest mark is refused."""
    folder = tmp_path / "my facts"
    folder.mkdir()
    assert "folder 'my facts' names the dataset" in refusal(folder, GRADED)
