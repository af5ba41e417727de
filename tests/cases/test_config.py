"""dataset.yaml and gates files become slices with rubrics, prompts and gates, or say why not."""

import re
from collections import Counter
from pathlib import Path

import pytest

from qagate.bundled import CASES
from qagate.cases.config import load_dataset, load_gates, with_gates, with_items
from qagate.cases.dataset import Sampling, Selection, Slice, Threshold
from qagate.cases.loading import load_cases
from qagate.cases.plan import make_plan
from qagate.evaluators.core import UsageError
from qagate.evaluators.kinds import MARKS
from tests.support.declaring import (
    GRADED,
    JUDGED,
    PROMPT,
    RATED,
    RUBRIC,
    YES_NO,
    declared,
    gates,
    refusal,
)
from tests.support.figures import some
from tests.support.tables import kept, tabled


def test_a_dataset_with_everything(folder: Path, rubrics: Path) -> None:
    """Every key arrives where it belongs; a language's own value goes before the dataset's."""
    (folder / "answer.bg.yaml").write_text(PROMPT.format("bg"), encoding="utf-8")
    dataset = declared(folder, kept(__file__, "everything"), rubrics)
    assert (dataset.name, dataset.folder, dataset.kind) == ("facts", folder, "graded")
    assert dataset.holm
    assert dataset.pooled == (
        Threshold(measure="drop", max=0.03, pool=True, fail="margin"),
    )
    bg, en = dataset.slices["bg"], dataset.slices["en"]
    assert bg.path == folder / "data" / "bg.csv"
    assert bg.thresholds == (
        Threshold(measure="correct", min=0.35, max=0.9),
        Threshold(measure="incorrect", max=0.5, evidence="confident"),
        Threshold(measure="drop", max=0.1, evidence="confident", fail="margin"),
    )
    assert (bg.penalty, bg.by, bg.declared) == (9, ("topic", "answer_type"), True)
    assert (bg.cluster, en.cluster) == ("story_id", "story_id")
    assert (some(bg.prompt).language, some(bg.rubric).language) == ("bg", "bg")
    assert (en.prompt, en.thresholds, en.pass_bar) == (None, (), 6)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", 3 * 86_400), ("max_age: 12h\n", 12 * 3_600), ("max_age: 0\n", 0)],
)
def test_how_old_kept_answers_may_be(folder: Path, text: str, seconds: float) -> None:
    """Three days, unless the data set says otherwise; 0 lets none count."""
    assert declared(folder, GRADED + text).slices["en"].max_age_seconds == seconds


def test_gates_for_every_language(folder: Path) -> None:
    """What the data set says once holds in each language; a language's own gate replaces its like.
    Metrics with bars of their own join them. A language that is not listed still has no gate."""
    text = kept(__file__, "every_language")
    dataset = declared(folder, text)
    assert dataset.baseline_required
    bars = {
        name: [one.text for one in part.thresholds]
        for name, part in dataset.slices.items()
    }
    assert bars["en"] == ["correct >= 0.4", "drop <= 0.1"]
    assert bars["bg"] == ["drop <= 0.1", "correct >= 0.3", "incorrect <= 0.5"]
    assert with_items(dataset, "pl", Path("pl.csv")).slices["pl"].thresholds == ()
    twice = "kind: graded\ngates: {bias: {min: 0.5}}\nlanguages: {en: {file: a.csv, metrics: "
    said = refusal(folder, twice + "{bias: {min: 0.7}}}}\n")
    assert "key 'bias': has a bar here and under gates; keep one" in said


def test_every_bundled_language_has_a_margin_of_its_own() -> None:
    """A loss in one language cannot hide among the others; the margin of each can be shown."""
    margins = {
        "simpleqa": 0.12,
        "simpleqa/simpleqa_hard": 0.12,
        "boolq": 0.15,
        "eba": 0.15,
    }
    few = {"eba:bg", "eba:pl", "eba:hu"}  # 40 items
    for name, margin in {**margins, "smoke": 0.2}.items():
        slices = load_dataset(Path(f"cases/{name}/dataset.yaml")).slices
        assert slices
        for one in slices.values():
            drops = [gate.max for gate in one.thresholds if gate.name == "drop"]
            assert drops == [0.25 if one.name in few else margin]


def bundled(name: str, language: str) -> Slice:
    return load_dataset(Path(f"cases/{name}/dataset.yaml")).slices[language]


@pytest.mark.parametrize(
    "folder",
    [path.parent for path in sorted(CASES.glob("*/dataset.yaml"))],
    ids=lambda path: path.name,
)
@pytest.mark.parametrize("told", ["closed book", "cannot show", "readers", "2026"])
def test_each_bundled_set_has_a_datasheet(folder: Path, told: str) -> None:
    """It says what a model reaches closed book, who read the items, what they cannot show."""
    sheet = (folder / "datasheet.md").read_text(encoding="utf-8")
    assert told in " ".join(sheet.casefold().split())


@pytest.mark.parametrize("language", ["en", "bg", "pl", "hu", "be"])
def test_bundled_questions_are_what_their_datasheet_says(language: str) -> None:
    """Two kinds of hard ones and more; premises, most with a wrong detail, some that nobody knows.
    Round numbers are ranges, English asks directly, and Belarusian answers in Russian are gated."""
    own = bundled("simpleqa", language)
    hard, cases = (
        load_cases(bundled("simpleqa/simpleqa_hard", language)),
        load_cases(own),
    )
    kinds = Counter(case.metadata["kind"] for case in hard)
    assert len(hard) >= 300
    assert len(kinds) >= 2
    assert min(kinds.values()) >= 75
    premises = [case for case in cases if case.golds[0].startswith(MARKS)]
    details = [case for case in premises if case.id.startswith("premise-")]
    assert len(premises) >= 30
    assert len(details) >= len(premises) / 2
    assert any(case.golds[0].startswith(MARKS[1]) for case in premises)
    numbers = [case.golds for case in cases if case.metadata["answer_type"] == "Number"]
    rounded = re.compile(r"\W*\d+(?:[ ,]\d{3})*(?<=\d0)\b(?![.,]\d)")
    assert not [
        some for some in numbers if rounded.match(some[0]) and ".." not in f"{some}"
    ]
    asked = re.compile(r"(\w+\W+){0,3}(who|what|which|when|where|how)", re.IGNORECASE)
    every = [*cases, *hard, *load_cases(bundled("smoke", language))]
    assert not [
        one.id
        for one in every
        if one.language == "en" and not asked.match(one.question)
    ]
    bars = {bar.text for bar in own.thresholds}
    assert "premise_accepted <= 0.75" in bars
    assert ("check_language >= 0.9" in bars) == (language == "be")


def test_other_kinds(folder: Path) -> None:
    """A pass bar, the words for yes and no, and a judge's floor."""
    rated = declared(
        folder, "kind: rated\npass_bar: 7\nlanguages: {en: {file: a.yaml}}\n"
    )
    assert rated.slices["en"].pass_bar == 7
    be = declared(folder, YES_NO).slices["be"]
    assert (be.yes, be.no) == ("Так", "Не")
    text = JUDGED.replace("}}", "}, bg: {file: b, floor: {kappa: -.1}}}")
    judged = declared(folder, text + "floor: {agreement: 0.8}\n")
    assert judged.slices["en"].floor == {"agreement": 0.8}
    assert judged.slices["bg"].floor == {"kappa": -0.1}
    assert not judged.slices["en"].floor_limit
    limit = declared(
        folder, JUDGED + "floor: {agreement: 0.9}\nfloor_limit: {agreement: 0.85}\n"
    )
    assert limit.slices["en"].floor_limit == {"agreement": 0.85}
    both = declared(
        folder, JUDGED + "floor: {mean_difference: 9}\noffline_floor: {kappa: 0.1}\n"
    )
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
    judged = declared(
        folder, "kind: judged\nrubric: own\nlanguages: {en: {file: a.csv}}\n"
    )
    assert judged.slices["en"].pass_bar == 8


def test_ranges_follow_the_measure(folder: Path) -> None:
    """Ratings go from 1 to 10, a drop is a share of the items, a penalised score may be below 0."""
    gates = "mean_rating: {min: 5.5}, drop: {max: 0.2}"
    rated = declared(
        folder, f"kind: rated\nlanguages: {{en: {{file: a, gates: {{{gates}}}}}}}\n"
    )
    assert [rule.measure for rule in rated.slices["en"].thresholds] == [
        "mean_rating",
        "drop",
    ]
    graded = declared(folder, GRADED + "    gates: {penalised: {min: -2}}\n")
    assert graded.slices["en"].thresholds[0].min == -2
    assert "0.5" in refusal(
        folder, RATED.replace("a.yaml", "a, gates: {mean_rating: {min: 0.5}}")
    )


@tabled("kind", "protocol", "fits")
def test_a_rubric_fits_the_kind(
    folder: Path, kind: str, protocol: str, fits: bool
) -> None:
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


def test_prompts_by_name_and_path(folder: Path, rubrics: Path) -> None:
    """A bare name or a path with {lang}, next to the file or among the bundled ones."""
    (folder / "my").mkdir()
    (folder / "my" / "en.yaml").write_text(PROMPT.format("en"), encoding="utf-8")
    (rubrics / "short.en.yaml").write_text(PROMPT.format("en"), encoding="utf-8")
    (rubrics / "answer.en.yaml").write_text(PROMPT.format("en"), encoding="utf-8")
    for prompt in ("my/{lang}.yaml", "short", "short.en.yaml"):
        dataset = declared(folder, GRADED + f"prompt: '{prompt}'\n", rubrics)
        assert dataset.slices["en"].prompt is not None
    assert declared(folder, GRADED, rubrics).slices["en"].prompt is None
    said = refusal(folder, GRADED + "prompt: long\n", rubrics)
    assert ":5: key 'prompt': no prompt 'long' in language 'en'" in said


def test_a_prompt_may_be_the_plain_text_of_the_message(folder: Path) -> None:
    """It names no language, so it has that of each slice."""
    (folder / "ask.txt").write_text(
        "Answer in one word: {question}\n", encoding="utf-8"
    )
    text = f"{GRADED}  bg: {{file: en.csv}}\nprompt: ask.txt\n"
    dataset = declared(folder, text)
    prompts = {language: slice_.prompt for language, slice_ in dataset.slices.items()}
    assert [*prompts] == ["en", "bg"]
    for language, prompt in prompts.items():
        assert prompt is not None
        assert prompt.user == "Answer in one word: {question}\n"
        assert prompt.language == language


def test_a_plain_prompt_without_a_question_is_refused(folder: Path) -> None:
    (folder / "ask.txt").write_text("Answer in one word.", encoding="utf-8")
    message = refusal(folder, f"{GRADED}prompt: ask.txt\n")
    assert "ask.txt:1: key 'user': has no place {question}; put it where" in message


def test_a_text_of_another_language_is_refused(folder: Path, rubrics: Path) -> None:
    """A prompt or rubric in a language that the slice does not name is a mistake."""
    (rubrics / "facts.en.yaml").write_text(RUBRIC.format("pl"), encoding="utf-8")
    assert "written for language 'pl'" in refusal(
        folder, GRADED + "rubric: facts\n", rubrics
    )
    (folder / "answer.en.yaml").write_text(PROMPT.format("bg"), encoding="utf-8")
    assert "written for language 'bg'" in refusal(folder, GRADED)
    assert declared(folder, GRADED + "    rubric_language: bg\n").slices["en"].prompt


def test_rubrics_by_name_and_path(folder: Path, rubrics: Path) -> None:
    """A bundled rubric by name, or the user's own template next to the file."""
    (folder / "own.en.txt").write_text(
        "{question} {target} {predicted_answer}", encoding="utf-8"
    )
    own = some(
        declared(folder, GRADED + "rubric: own.{lang}.txt\n", rubrics)
        .slices["en"]
        .rubric
    )
    assert own.protocol == "letter"
    hungarian = GRADED.replace("en", "hu") + "rubric: facts\n"
    said = refusal(folder, hungarian, rubrics)
    assert (
        "no rubric 'facts' in language 'hu' (there is bg, en); add facts.hu.yaml or set"
        in said
    )
    english = declared(folder, hungarian + "rubric_language: en\n", rubrics).slices[
        "hu"
    ]
    assert some(english.rubric).language == "en"
    assert "(rubrics: facts.bg, facts.en)" in refusal(
        folder, GRADED + "rubric: other\n", rubrics
    )
    said = refusal(folder, GRADED + "rubric_language: English\n", rubrics)
    assert (
        "key 'rubric_language': want a language code such as 'en', got 'English'"
        in said
    )


def test_items_of_another_language_use_the_default(folder: Path, rubrics: Path) -> None:
    """A listed language takes the file and keeps its gates; another has English and none."""
    gated = declared(folder, GRADED + "    gates: {correct: {min: 0.3}}\n", rubrics)
    own = with_items(gated, "en", Path("mine.csv"), rubrics).slices["en"]
    assert (own.path, own.declared, len(own.thresholds)) == (Path("mine.csv"), True, 1)
    (folder / "answer.en.yaml").write_text(PROMPT.format("en"), encoding="utf-8")
    dataset = declared(folder, GRADED + "rubric: facts\n", rubrics)
    own = with_items(dataset, "cs", Path("cs.csv"), rubrics).slices["cs"]
    assert (own.path, own.thresholds, own.declared) == (Path("cs.csv"), (), False)
    assert (some(own.rubric).language, some(own.prompt).language) == ("en", "en")
    (folder / "answer.cs.yaml").write_text(PROMPT.format("cs"), encoding="utf-8")
    czech = some(with_items(dataset, "cs", Path("cs.csv"), rubrics).slices["cs"].prompt)
    assert czech.language == "cs"
    with pytest.raises(UsageError, match="--items: 'Czech' is not a language code"):
        with_items(dataset, "Czech", Path("cs.csv"), rubrics)


def test_default_is_declared_once(folder: Path, rubrics: Path) -> None:
    """``languages.default`` is no slice of its own, and what it says holds for other languages."""
    dataset = declared(
        folder, YES_NO.replace("}}", "}, default: {yes: Ano, no: Ne}}"), rubrics
    )
    assert list(dataset.slices) == ["be"]
    assert with_items(dataset, "cs", Path("x"), rubrics).slices["cs"].yes == "Ano"
    bare = declared(folder, YES_NO, rubrics)
    with pytest.raises(UsageError, match="languages: default: key 'yes': missing"):
        with_items(bare, "cs", Path("x"), rubrics)


def test_a_gate_that_the_file_does_not_replace_stays(
    folder: Path, rubrics: Path
) -> None:
    """A gate goes only for one of the same name and scope, or with ``replace: all``, then named."""
    text = (
        GRADED + "    gates: {correct: {min: 0.3}}\ndrop: {max: 0.1, pool: languages}\n"
    )
    dataset = declared(folder, text, rubrics)
    own = "facts: {en: {incorrect: {max: 0.4}}, sample: {limit: 9, seed: 2}}\n"
    read = load_gates(gates(folder, own + "other: {en: {kappa: {min: 0.5}}}"))
    found = with_gates(dataset, read)
    stays, added = (
        Threshold(measure="correct", min=0.3),
        Threshold(measure="incorrect", max=0.4),
    )
    assert found.slices["en"].thresholds == (stays, added)
    assert (found.pooled, found.left_out) == (dataset.pooled, ())
    assert found.sampling == Sampling(limit=9, seed=2)
    assert read.datasets["other"].languages["en"] == (
        Threshold(measure="kappa", min=0.5),
    )
    gone = with_gates(dataset, load_gates(gates(folder, f"replace: all\n{own}")))
    assert (gone.slices["en"].thresholds, gone.pooled) == ((added,), ())
    assert gone.left_out == ("facts:en correct >= 0.3", "facts:* drop <= 0.1")
    unnamed = with_gates(dataset, load_gates(gates(folder, "replace: all\nother: {}")))
    assert unnamed.slices["en"].thresholds == ()
    (near,) = load_gates(gates(folder, f"{own}FACT: {{}}\nother: {{}}")).put_into(
        [dataset], ""
    )
    assert near.left_out == (
        "those of FACT, which is not in this run (did you mean facts?)",
    )


@tabled("before", "after", "laxer")
def test_a_gate_made_laxer_is_named(
    folder: Path, before: str, after: str, laxer: bool
) -> None:
    """Anything that may pass where the data set's own gate does not; stricter gates are silent."""
    dataset = declared(folder, f"{GRADED}    gates: {{{before}}}\n")
    found = with_gates(
        dataset, load_gates(gates(folder, f"facts: {{en: {{{after}}}}}"))
    )
    assert len(found.laxer) == laxer
    assert all(
        line.startswith("facts:en ") and " in place of " in line for line in found.laxer
    )


@tabled("settings", "row", "said")
def test_a_gate_nothing_can_decide(
    folder: Path, settings: str, row: str, said: str
) -> None:
    """A metric that these items can never have: in a slice, pooled, or from labels of one kind."""
    path = folder / "dataset.yaml"
    path.write_text(
        f"{settings}languages: {{en: {{file: en.csv}}}}\n", encoding="utf-8"
    )
    (folder / "own.en.txt").write_text(
        "{question} {target} {predicted_answer}", encoding="utf-8"
    )
    head = ["question", "answer", "predicted_answer", "label"][: row.count(",") + 1]
    (folder / "en.csv").write_text(f"{','.join(head)}\n{row}\n", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        make_plan([path], Selection())
    assert said in str(caught.value)


def test_a_gates_file_declares_pooled_gates(folder: Path, rubrics: Path) -> None:
    """Changes replace those of the same measure alone; a gate made laxer is named."""
    text = GRADED + "drop: {max: 0.1, pool: languages}\n"
    pooled = "drop: {max: 0.05, f_score: {max: 0.2, fail: zero}, pool: languages}"
    rise = "rise: {incorrect: {max: 0.05}, pool: languages}"
    read = load_gates(gates(folder, f"facts: {{{pooled}, {rise}}}"))
    found = with_gates(declared(folder, text, rubrics), read).pooled
    assert [(one.name, one.max, one.fail) for one in found] == [
        ("drop", 0.05, "margin"),
        ("drop of f_score", 0.2, "zero"),
        ("rise of incorrect", 0.05, "margin"),
    ]
    assert all(one.pool and one.paired and one.evidence == "confident" for one in found)
    dataset = declared(
        folder, f"{GRADED}drop: {{max: 0.05, fail: zero, pool: languages}}\n"
    )
    laxer = "facts: {drop: {max: 0.2, evidence: estimate, pool: languages}}"
    lines = with_gates(dataset, load_gates(gates(folder, laxer))).laxer
    assert lines == (
        "facts:* drop <= 0.2, estimate in place of drop <= 0.05, fail: zero",
    )


def test_gates_of_all_languages_stand_once(folder: Path, rubrics: Path) -> None:
    """Under `gates:` or behind an anchor; a language's own replace those of one name."""
    more = "gates: {incorrect: {max: 0.5}, rise: {cost: {max: 20%}}}"
    own = "{file: en.jsonl, gates: &own {correct: {min: 0.3}, incorrect: {max: 0.4}}}"
    text = f"kind: graded\n{more}\nlanguages:\n  en: {own}\n"
    text += "  bg: {file: en.jsonl, gates: *own}\n  pl: {file: en.jsonl, gates: {<<: *own}}\n"
    text += "  hu: {file: en.jsonl}\n"
    slices = declared(folder, text, rubrics).slices
    bars = {
        name: {one.name: one.bar for one in made.thresholds}
        for name, made in slices.items()
    }
    assert bars["hu"] == {"incorrect": "<= 0.5", "rise of cost": "<= 20%"}
    assert bars["en"] == {**bars["hu"], "correct": ">= 0.3", "incorrect": "<= 0.4"}
    assert bars["bg"] == bars["pl"] == bars["en"]


def test_gates_on_what_answers_take(folder: Path, rubrics: Path) -> None:
    """A bar has no upper limit; a rise may be a share of the old value, or stand in its unit."""
    bars = "seconds_p95: {max: 8}, cost: {max: 0.002}"
    rises = "rise: {cost: {max: 20%}, tokens_in: {max: 500}}"
    read = load_gates(gates(folder, f"facts: {{en: {{{bars}, {rises}}}}}"))
    found = with_gates(declared(folder, GRADED, rubrics), read).slices["en"].thresholds
    by_name = {one.name: one for one in found}
    changes = by_name["rise of cost"], by_name["rise of tokens_in"]
    assert [(one.max, one.relative, one.bar) for one in changes] == [
        (0.2, True, "<= 20%"),
        (500, False, "<= 500"),
    ]
    assert by_name["seconds_p95"].bar == "<= 8"
    assert all(
        by_name[name].of_usage for name in ("seconds_p95", "cost", "rise of cost")
    )
    assert not any(
        one.of_usage for one in declared(folder, GRADED).slices["en"].thresholds
    )
