"""What a dry run says of all gates together: from the baseline's records, or from what is known."""

import re
from dataclasses import replace

import pytest

from reports.gates.power import DISCORDANCES
from reports.verdict import odds
from reports.verdict.odds import known_discordance
from tests.conftest import Project
from tests.support.made_runs import answered, before, run_of

YAML = """
kind: graded
languages:
  en: {{file: en.jsonl, gates: {{correct: {{min: {bar}}}, drop: {{max: 0.15}}}}}}
"""
PROMPT = 'name: answer\nlanguage: en\nversion: "1"\nuser: "{question}"\n'
ROW = re.compile(r"exit 0 with (\d.\d\d), 1 with (\d.\d\d), 6 with (\d.\d\d): (.*?), (\d+) % of")


@pytest.fixture(autouse=True)
def few_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a fifth of the runs: what is shown of them is what is tested here."""
    monkeypatch.setattr(odds, "RUNS", 40)


def shown(project: Project, *arguments: str) -> str:
    """Return what a dry run prints, its wrapped lines joined."""
    result = project.run_in_process("--dry-run", *arguments, "qa")
    assert result.ret == 0
    return re.sub(r"\s*\n\s+", " ", "\n".join(result.outlines))


@pytest.mark.untraced
@pytest.mark.parametrize(("bar", "blamed"), [(0.1, "drop <= 0.15"), (0.58, "correct >= 0.58")])
def test_the_chances_are_those_of_the_baseline_asked_again(
    project: Project, bar: float, blamed: str
) -> None:
    """Six models, shares that sum to one, the worse the rarer exit 0; who is to blame."""
    project.dataset("capital", {"en": ["Sofia"] * 24 + ["Plovdiv"] * 16}, YAML.format(bar=bar))
    project.run_in_process("qa", "--report-dir", "old")
    text = shown(project, "--baseline=old")
    rows = ROW.findall(text)
    assert [(model, share) for *_, model, share in rows] == [
        *(("unchanged", share) for share in ("10", "20", "30")),
        ("worse by half the margin", "10"),
        ("worse by the margin", "10"),
        ("worse by two margins", "10"),
    ]
    assert all(sum(map(float, row[:3])) == pytest.approx(1, abs=0.011) for row in rows)
    passes = [float(row[0]) for row in rows]
    assert passes[0] > passes[3] > passes[4] >= passes[5]
    assert passes[0] > passes[2]
    assert f"not PASS in the first line: capital:en {blamed}" in text
    calls, usd, chances = text[text.index("calls: ") :].splitlines()[:3]
    assert (calls, usd) == ("calls: 0 to make, 0 recorded", "USD: about $0.00, at most $0.00")
    unchanged = ", ".join(
        f"{code} with {share}" for code, share in zip("016", rows[0], strict=False)
    )
    assert chances.startswith(f"odds: exit {unchanged} (unchanged, 10 % of items differ)")


@pytest.mark.untraced
def test_why_no_answer_could_decide_a_gate_is_said(project: Project) -> None:
    """Beside a baseline with another judge the drop gate stays open; the other one does not."""
    text = f"{YAML.format(bar=0.1)}rubric: simpleqa\n"
    project.dataset("capital", {"en": ["Sofia"] * 24 + ["Plovdiv"] * 16}, text)
    project.run_in_process("qa", "--report-dir", "old")
    text = shown(project, "--baseline=old", "--judge", "openai:g@http://127.0.0.1:9/v1")
    assert (
        "INCONCLUSIVE for all answers: capital:en drop <= 0.15; the judge changed from "
        "lexical to openai:g@http://127.0.0.1:9/v1" in text
    )
    assert "for all answers" not in shown(project, "--baseline=old").partition("odds")[2]


def test_without_a_baseline_what_is_recorded_tells(project: Project) -> None:
    """Recorded answers need no call; a model never asked has no figure, but a way to get one."""
    project.dataset("capital", {"en": ["Sofia"] * 30 + ["Plovdiv"] * 10}, YAML.format(bar=0.1))
    text = shown(project)
    assert "exit 0 with 1.00, 1 with 0.00, 6 with 0.00: unchanged, 10 % of items differ" in text
    assert "not PASS in the first line: no gate" in text
    project.dataset("capital", {"en": ["Sofia"] * 2}, YAML.format(bar=0.1))
    project.write("qa/capital/answer.en.yaml", PROMPT)
    text = shown(project, "--model", "openai:m@http://127.0.0.1:9/v1")
    assert "not known, as only 0 of 2 items have a verdict; give --baseline=RUN" in text
    assert "exit 0 with" not in text


def test_the_share_that_differs_is_looked_up() -> None:
    """In the baseline's repeats, else it is not known."""
    once = before(run_of(answered("c" * 40)))
    assert known_discordance(once).shares == known_discordance(None).shares == DISCORDANCES
    again = [replace(one, repeat=2, key=f"{one.key}~r2") for one in answered("i" * 4 + "c" * 36)]
    assert known_discordance(before(run_of([*answered("c" * 40), *again]))).shares == (0.1,)
