"""Prompts, rubrics, --items and --gates find their slices, or say why not."""

from pathlib import Path

import pytest

from cases.config import with_items
from cases.dataset import Sampling, Selection, Threshold
from cases.gates_file import load_gates, with_gates
from cases.plan import make_plan
from evaluators.core import UsageError
from tests.support.declaring import GRADED, PROMPT, RUBRIC, YES_NO, declared, gates, refusal
from tests.support.tables import tabled


def test_prompts_by_name_and_path(folder: Path, rubrics: Path) -> None:
    """A bare name or a path with {lang}, beside the file or among the bundled ones."""
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


def test_a_text_of_another_language_is_refused(folder: Path, rubrics: Path) -> None:
    """A prompt in a language that the slice does not name is a mistake, and so is a rubric.

    What a rubric says of its language counts, not its file's name.
    """
    (rubrics / "facts.en.yaml").write_text(RUBRIC.format("pl"), encoding="utf-8")
    assert "written for language 'pl'" in refusal(folder, GRADED + "rubric: facts\n", rubrics)
    (folder / "answer.en.yaml").write_text(PROMPT.format("bg"), encoding="utf-8")
    assert "written for language 'bg'" in refusal(folder, GRADED)
    own = "    rubric_language: bg\n"
    prompt = declared(folder, GRADED + own).slices["en"].prompt
    assert prompt is not None


def test_rubrics_by_name_and_path(folder: Path, rubrics: Path) -> None:
    """A bundled rubric by name, or the user's own template beside the file."""
    (folder / "own.en.txt").write_text("{question} {target} {predicted_answer}", encoding="utf-8")
    own = declared(folder, GRADED + "rubric: own.{lang}.txt\n", rubrics).slices["en"].rubric
    assert own is not None
    assert own.protocol == "letter"
    hungarian = GRADED.replace("en", "hu") + "rubric: facts\n"
    said = refusal(folder, hungarian, rubrics)
    assert "no rubric 'facts' in language 'hu' (there is bg, en); add facts.hu.yaml or set" in said
    english = declared(folder, hungarian + "rubric_language: en\n", rubrics).slices["hu"].rubric
    assert english is not None
    assert english.language == "en"
    assert "(rubrics: facts.bg, facts.en)" in refusal(folder, GRADED + "rubric: fact\n", rubrics)
    said = refusal(folder, GRADED + "rubric_language: English\n", rubrics)
    assert "key 'rubric_language': want a language code such as 'en', got 'English'" in said


def test_items_of_another_language_use_the_default(folder: Path, rubrics: Path) -> None:
    """A language that is not listed has the English rubric, no gates, and says so.

    A listed language keeps its gates and takes the file.
    """
    gated = declared(folder, GRADED + "    gates: {correct: {min: 0.3}}\n", rubrics)
    own = with_items(gated, "en", Path("mine.csv"), rubrics).slices["en"]
    assert (own.path, own.declared, len(own.thresholds)) == (Path("mine.csv"), True, 1)
    (folder / "answer.en.yaml").write_text(PROMPT.format("en"), encoding="utf-8")
    dataset = declared(folder, GRADED + "rubric: facts\n", rubrics)
    own = with_items(dataset, "cs", Path("cs.csv"), rubrics).slices["cs"]
    assert (own.path, own.thresholds, own.declared) == (Path("cs.csv"), (), False)
    assert own.rubric is not None
    assert own.prompt is not None
    assert (own.rubric.language, own.prompt.language) == ("en", "en")
    (folder / "answer.cs.yaml").write_text(PROMPT.format("cs"), encoding="utf-8")
    czech = with_items(dataset, "cs", Path("cs.csv"), rubrics).slices["cs"].prompt
    assert czech is not None
    assert czech.language == "cs"
    with pytest.raises(UsageError, match="--items: 'Czech' is not a language code"):
        with_items(dataset, "Czech", Path("cs.csv"), rubrics)


def test_default_is_declared_once(folder: Path, rubrics: Path) -> None:
    """``languages.default`` is no slice of its own, and what it says holds for other languages."""
    text = YES_NO.replace("}}", "}, default: {yes: Ano, no: Ne}}")
    dataset = declared(folder, text, rubrics)
    assert list(dataset.slices) == ["be"]
    assert with_items(dataset, "cs", Path("x"), rubrics).slices["cs"].yes == "Ano"
    bare = declared(folder, YES_NO, rubrics)
    with pytest.raises(UsageError, match="languages: default: key 'yes': missing"):
        with_items(bare, "cs", Path("x"), rubrics)


def test_a_gate_that_the_file_does_not_replace_stays(folder: Path, rubrics: Path) -> None:
    """A gate goes only for one of the same name and scope, or with ``replace: all``, then named."""
    text = GRADED + "    gates: {correct: {min: 0.3}}\ndrop: {max: 0.1, pool: languages}\n"
    dataset = declared(folder, text, rubrics)
    own = "facts: {en: {incorrect: {max: 0.4}}, sample: {limit: 9, seed: 2}}\n"
    path = gates(folder, own + "other: {en: {kappa: {min: 0.5}}}")
    read = load_gates(path)
    found = with_gates(dataset, read)
    stays, added = Threshold(measure="correct", min=0.3), Threshold(measure="incorrect", max=0.4)
    assert found.slices["en"].thresholds == (stays, added)
    assert (found.pooled, found.left_out) == (dataset.pooled, ())
    assert found.sampling == Sampling(limit=9, seed=2)
    assert read.datasets["other"].languages["en"] == (Threshold(measure="kappa", min=0.5),)
    gone = with_gates(dataset, load_gates(gates(folder, f"replace: all\n{own}")))
    assert (gone.slices["en"].thresholds, gone.pooled) == ((added,), ())
    assert gone.left_out == ("facts:en correct >= 0.3", "facts:* drop <= 0.1")
    unnamed = with_gates(dataset, load_gates(gates(folder, "replace: all\nother: {}")))
    assert unnamed.slices["en"].thresholds == ()


@tabled("before", "after", "laxer")
def test_a_gate_that_a_file_makes_laxer_is_named(
    folder: Path, before: str, after: str, laxer: bool
) -> None:
    """Anything that may pass where the data set's own gate does not; stricter gates are silent."""
    dataset = declared(folder, f"{GRADED}    gates: {{{before}}}\n")
    found = with_gates(dataset, load_gates(gates(folder, f"facts: {{en: {{{after}}}}}")))
    assert len(found.laxer) == laxer
    assert all(line.startswith("facts:en ") and " in place of " in line for line in found.laxer)


@tabled("settings", "row", "said")
def test_a_gate_that_no_answer_can_decide_is_refused_before_any_call(
    folder: Path, settings: str, row: str, said: str
) -> None:
    """A metric that these items can never have: in a slice, pooled, or from labels of one kind."""
    path = folder / "dataset.yaml"
    path.write_text(f"{settings}languages: {{en: {{file: en.csv}}}}\n", encoding="utf-8")
    (folder / "own.en.txt").write_text("{question} {target} {predicted_answer}", encoding="utf-8")
    head = ["question", "answer", "predicted_answer", "label"][: row.count(",") + 1]
    (folder / "en.csv").write_text(f"{','.join(head)}\n{row}\n", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        make_plan([path], Selection())
    assert said in str(caught.value)


def test_a_pooled_gate_that_a_file_makes_laxer_is_named(folder: Path) -> None:
    """Its scope is the data set; both gates stand in the line with what shows them."""
    dataset = declared(folder, f"{GRADED}drop: {{max: 0.05, fail: zero, pool: languages}}\n")
    laxer = "facts: {drop: {max: 0.2, evidence: estimate, pool: languages}}"
    found = with_gates(dataset, load_gates(gates(folder, laxer)))
    assert found.laxer == ("facts:* drop <= 0.2, estimate in place of drop <= 0.05, fail: zero",)


def test_a_gates_file_declares_pooled_gates(folder: Path, rubrics: Path) -> None:
    """Changes of any measure, over all languages, replace those of the same measure alone."""
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


def test_gates_of_all_languages_stand_once(folder: Path, rubrics: Path) -> None:
    """Under `gates:` or behind an anchor; a language's own replace those of one name."""
    more = "gates: {incorrect: {max: 0.5}, rise: {cost: {max: 20%}}}"
    own = "{file: en.jsonl, gates: &own {correct: {min: 0.3}, incorrect: {max: 0.4}}}"
    text = f"kind: graded\n{more}\nlanguages:\n  en: {own}\n"
    text += "  bg: {file: en.jsonl, gates: *own}\n  pl: {file: en.jsonl, gates: {<<: *own}}\n"
    text += "  hu: {file: en.jsonl}\n"
    slices = declared(folder, text, rubrics).slices
    bars = {name: {one.name: one.bar for one in made.thresholds} for name, made in slices.items()}
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
    assert all(by_name[name].of_usage for name in ("seconds_p95", "cost", "rise of cost"))
    assert not any(
        one.of_usage for one in declared(folder, GRADED, rubrics).slices["en"].thresholds
    )
