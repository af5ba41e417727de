"""Runs with a cascade, a panel, and a judge that is measured: over a loopback server."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.loopback import Answer, Handler, Loopback, Seen, loopback, plausible
from tests.support.projects import RUBRIC, Project, graded

YAML = graded(dict.fromkeys(("en", "bg"), "correct: {min: 0.1}"), "judge: unmeasured", judged=True)
LABELS = """
kind: judged
floor: {kappa: 0.6}
languages:
  en: {file: en.jsonl, rubric: plain.en.yaml}
  bg: {file: bg.jsonl, rubric: plain.bg.yaml}
"""
SURE, UNSURE = "Sofia", "The city at the foot of Vitosha"


@pytest.fixture
def capitals(project: Project) -> Project:
    """Return a project of four items in each of two languages, two of them easy to settle."""
    answers = [SURE, "I do not know", UNSURE, UNSURE]
    project.dataset("capital", {"en": answers, "bg": answers}, YAML)
    return with_rubrics(project, "capital")


def with_rubrics(project: Project, name: str) -> Project:
    for language in ("en", "bg"):
        project.write(f"qa/{name}/plain.{language}.yaml", RUBRIC.format(language))
    return project


def with_labels(project: Project, more: str = "", count: int = 4) -> Project:
    """Add labelled items, half of them CORRECT, as a dataset beside the others."""
    project.dataset("labels", {}, LABELS + more)
    for language in ("en", "bg"):
        rows = [label(language, number) for number in range(count)]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        project.write(f"qa/labels/{language}.jsonl", lines)
    return with_rubrics(project, "labels")


def label(language: str, number: int) -> dict[str, str]:
    grade = "INCORRECT" if number % 2 else "CORRECT"
    return {
        "id": f"l{number}",
        "question": f"In {language}, labelled question number {number}?",
        "answer": "Sofia",
        "predicted_answer": f"A long story number {number} whose truth is [[truth={grade}]]",
        "label": grade,
        "label_source": "constructed",
    }


def truthful(*, wrong_in: str = "", otherwise: str = "CORRECT") -> Handler:
    """Return a judge that grades as the item says, but for the labelled items of a language."""

    def rule(seen: Seen, name: str, schema: Mapping[str, Any]) -> object:
        if name != "grade":
            return "because"
        if wrong_in and f"In {wrong_in}." in seen.prompt:
            return otherwise
        return "INCORRECT" if "[[truth=INCORRECT]]" in seen.prompt else otherwise

    return plausible(rule)


def spec(server: Loopback, name: str = "j", provider: str = "openai") -> str:
    return f"{provider}:{name}@{server.url}/v1"


@pytest.mark.parametrize(("provider", "workers"), [("openai", "2"), ("anthropic", "0")])
def test_a_cascade_asks_only_what_rules_do_not_settle(
    capitals: Project, monkeypatch: pytest.MonkeyPatch, provider: str, workers: str
) -> None:
    """Half of the calls are saved; with every settled item audited none is, and nothing changes."""
    with loopback(handler=truthful()) as server:
        judge = ("--judge", f"lexical+{spec(server, provider=provider)}")
        monkeypatch.setattr("evaluators.judges.factory.AUDIT", 0.0)
        first = capitals.run_in_process("-n", workers, *judge, "qa")
        assert first.ret == 0
        assert server.count == 4
        grades = [record["grade"] for record in capitals.records()]
        assert capitals.report()["judging"]["audit"]["settled"] == 4
        assert "rules settled 4 of 8 verdicts (50%); none of them was audited" in capitals.notes()
        monkeypatch.setattr("evaluators.judges.factory.AUDIT", 1.0)
        again = capitals.run_in_process("-n", workers, *judge, "-v", "qa")
    assert again.ret == 0
    assert server.count == 4 + 4
    assert [record["grade"] for record in capitals.records()] == grades
    audit = capitals.report()["judging"]["audit"]
    assert (audit["disagreement"]["n"], audit["disagreement"]["value"]) == (4, 0.5)
    again.stdout.fnmatch_lines(["note: lexical+*rules settled 4 of 8*"])
    assert "of 4 audited the model differs on 2: 0.500 [0.150, 0.850]" in capitals.notes()
    votes = [record["votes"] for record in capitals.records() if record["grade"] == "NOT_ATTEMPTED"]
    assert [[vote["grade"] for vote in pair] for pair in votes] == [
        ["NOT_ATTEMPTED", "CORRECT"]
    ] * 2


def panel(seen: Seen) -> Answer:
    """Judges a and b differ on items 3 and 4; c sides with a."""
    unsure = UNSURE in seen.prompt
    grade = "INCORRECT" if unsure and seen.body["model"] == "b" else "CORRECT"
    return truthful(otherwise=grade)(seen)


def test_rules_without_the_labelled_items_decide_as_with_them(capitals: Project) -> None:
    """Below the floor of the labels beside the data they decide nothing, chosen or not."""
    with_labels(capitals)
    for chosen in ("qa", "qa/capital"):
        result = capitals.run_in_process(chosen)
        assert result.ret == 6
        assert "judge not trusted in en: kappa" in result.stdout.str()


def test_a_panel_that_ties_gives_no_grade(capitals: Project) -> None:
    """Two judges that differ: an ERROR that keeps both votes, an open gate, a note to review it."""
    with loopback(handler=panel) as server:
        judges = ("--judge", spec(server, "a"), "--judge", spec(server, "b"))
        result = capitals.run_in_process(*judges, "--languages", "en", "qa")
        assert server.count == 4 * 2
        tied = [record for record in capitals.records() if record["outcome"] == "error"]
        assert len(tied) == 2
        assert all(str(record["error"]).startswith("panel_tie: ") for record in tied)
        assert [vote["grade"] for vote in tied[0]["votes"]] == ["CORRECT", "INCORRECT"]
        assert result.ret == 0  # a bar of 0.1 is reached whatever the two are
        (agreement,) = capitals.report()["judging"]["panels"]
        assert agreement["undecided"] == 2
        assert agreement["split"] == ["capital-en-q3", "capital-en-q4"]
        assert "to be reviewed: capital-en-q3, capital-en-q4" in capitals.notes()
        settled = capitals.run_in_process(*judges, "--judge", spec(server, "c"), "qa")
    assert settled.ret == 0
    assert {record["outcome"] for record in capitals.records()} == {"passed"}


def test_repeats_show_whether_a_judge_agrees_with_itself(capitals: Project) -> None:
    """Each labelled answer is judged anew; how often two judgements agree is measured."""
    with_labels(capitals)
    grades = iter(["CORRECT", "INCORRECT"] * 100)

    def fickle(seen: Seen) -> Answer:
        return plausible(lambda asked, name, schema: next(grades) if name == "grade" else "x")(seen)

    with loopback(handler=fickle) as server:
        options = ("--judge", spec(server), "--repeats", "3", "--concurrency", "1")
        capitals.run_in_process(*options, "--languages", "en", "qa/labels")
        assert server.count == 4 * 3
    found = capitals.only("slices")["measures"]["self_agreement"]
    assert found["n"] == 4 * 3
    assert 0 < found["low"] < found["value"] < found["high"] < 1
