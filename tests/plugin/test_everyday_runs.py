"""Everyday runs beside a baseline: what each asks, counted at the server, and how it ends.

``n`` items are asked and ``L`` labelled answers measure the judge. ``C`` kept grades are asked
anew, to see whether the judge is still the same: 45 that say INCORRECT, 15 that say NOT_ATTEMPTED
and 30 that pass, as far as there are so many.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from qagate.command import main
from tests.support.fixtures import Patch
from tests.support.loopback import Answer, Loopback, Seen, loopback, plausible, reply
from tests.support.projects import Project, specs

ITEMS = 40
LABELS = {"CORRECT": 40, "INCORRECT": 40, "NOT_ATTEMPTED": 20}
ALL_LABELS = sum(LABELS.values())
CANARIES = 45 + 15 + 30
REFUSAL = "I do not know what the town at that place was called back then"
TEXTS = {"CORRECT": "Sofia", "INCORRECT": "Varna", "NOT_ATTEMPTED": REFUSAL}
GATES = "correct: {min: 0.5}, drop: {max: 0.4}"


@dataclass
class Provider:
    """Models that answer one in five wrong, and a judge; a test may change the judge's mind."""

    wording: str = "It is"
    """Begins every answer, so that another release says the same in other words."""
    is_lenient: bool = False
    """Whether the judge has drifted: it lets wrong answers pass."""
    lost: frozenset[int] = frozenset()
    """The numbers of further items that it answers wrong."""
    seen: list[Seen] = field(default_factory=list)

    def handle(self, seen: Seen) -> Answer:
        """Answer a question, or grade an answer."""
        self.seen.append(seen)
        if seen.tool is not None:
            made = {"grade": self._grade(seen.prompt), "reason": "as the gold says"}
            return plausible(lambda asked, name, schema: made[name])(seen)
        number = int(seen.prompt.split("number ")[1].split("?")[0])
        is_wrong = number % 5 == 0 or number in self.lost
        city = "Varna" if is_wrong else "Sofia"
        return reply(seen, text=f"{self.wording} {city}, {number}.")

    def _grade(self, prompt: str) -> str:
        _, _, submission = prompt.partition("Submission: ")
        if "do not know" in submission:
            return "NOT_ATTEMPTED"
        is_right = "Sofia" in submission or self.is_lenient
        return "CORRECT" if is_right else "INCORRECT"

    def calls(self) -> tuple[int, int]:
        """Return how many answers and how many grades were asked since the last look."""
        grades = sum(seen.tool is not None for seen in self.seen)
        answers = len(self.seen) - grades
        self.seen.clear()
        return answers, grades


@dataclass
class Shop:
    """A project with a baseline of its own data, its labels, and the provider."""

    project: Project
    server: Loopback
    provider: Provider

    def run(self, model: str, *words: str) -> tuple[int, tuple[int, int]]:
        """Return the exit code of a run, and how many answers and grades it asked."""
        self.provider.calls()
        given = [*specs(self.server.url, model), *words, "qa/capital"]
        result = self.project.run_in_process(*given)
        self.line = (result.outlines or result.errlines)[-1]
        return int(result.ret), self.provider.calls()


def write_labels(project: Project, rubric: str = "1") -> None:
    """Write answers with labels, each to a question of its own, for the rubric ``plain``."""
    head = "kind: judged\nfloor: {agreement: 0.9}\nlanguages:\n"
    yaml = f"{head}  en: {{file: en.jsonl, rubric: plain.en.yaml}}\n"
    project.write("qa/labels/dataset.yaml", yaml)
    rows = []
    for label, count in LABELS.items():
        for number in range(count):
            rows.append(
                {
                    "id": f"{label}-{number}",
                    "question": f"Which city is meant, labelled {label} {number}?",
                    "answer": "Sofia",
                    "predicted_answer": f"{TEXTS[label]}, {number}",
                    "label": label,
                }
            )
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    project.write("qa/labels/en.jsonl", lines)
    text = (project.path / "qa/capital/plain.en.yaml").read_text("utf-8")
    text = text.replace('version: "1"', f'version: "{rubric}"')
    project.write("qa/labels/plain.en.yaml", text)
    project.write("qa/capital/plain.en.yaml", text)


@pytest.fixture
def shop(project: Project) -> Iterator[Shop]:
    """Return a project whose first run, of the model ``old``, is the baseline ``v1``."""
    project.asked(ITEMS, GATES, head="")
    write_labels(project)
    provider = Provider()
    with loopback(handler=provider.handle) as server:
        shop = Shop(project, server, provider)
        shop.run("old")
        project.keep("v1")
        provider.wording = "The city is"
        yield shop


def test_the_first_run_asks_items_and_labels(project: Project) -> None:
    """n answers, n grades, L."""
    project.asked(ITEMS, GATES, head="")
    write_labels(project)
    provider = Provider()
    with loopback(handler=provider.handle) as server:
        shop = Shop(project, server, provider)
        code, calls = shop.run("old")
    assert calls == (ITEMS, ITEMS + ALL_LABELS)
    assert code == 0, shop.line


def test_a_plain_upgrade_asks_canaries_in_place_of_the_rest(shop: Shop) -> None:
    """n answers, n grades, C: old grades and labels are kept."""
    code, calls = shop.run("new", "--baseline=v1")
    assert calls == (ITEMS, ITEMS + CANARIES)
    assert code == 0, shop.line


@pytest.mark.slow
def test_an_upgrade_without_a_ledger_asks_the_same(shop: Shop) -> None:
    """The baseline's folder brings its grades and its labels'."""
    code, calls = shop.run("new", "--baseline=v1", "--ledger=other.sqlite3")
    assert calls == (ITEMS, ITEMS + CANARIES)
    assert code == 0, shop.line


def test_a_drifted_judge_reads_everything_anew(shop: Shop) -> None:
    """n answers and n grades, old answers and labels: the canaries are among these."""
    shop.provider.is_lenient = True
    code, calls = shop.run("new", "--baseline=v1")
    assert calls == (ITEMS, ITEMS + ITEMS + ALL_LABELS)
    assert code == 6, shop.line


def test_another_rubric_reads_everything_anew(shop: Shop) -> None:
    """No grade by the older rubric stands; nothing has to be accepted."""
    write_labels(shop.project, rubric="2")
    code, calls = shop.run("new", "--baseline=v1")
    assert calls == (ITEMS, ITEMS + ITEMS + ALL_LABELS)
    assert code == 0, shop.line


def test_the_same_model_each_night_is_asked_anew(shop: Shop) -> None:
    """n answers, n grades, C: kept answers of its own name are no new ones."""
    code, calls = shop.run("old", "--baseline=v1", "--monitor")
    assert calls == (ITEMS, ITEMS + CANARIES)
    assert code == 0, shop.line


@pytest.mark.slow
def test_one_run_name_asks_the_new_release_too(shop: Shop, monkeypatch: Patch) -> None:
    """In one CI run a model is asked, deployed anew under its own name, and asked again."""
    monkeypatch.setenv("QA_RUN", "release")
    shop.run("old", "--baseline=v1")
    shop.project.keep("v2")
    _, (answers, _) = shop.run("old", "--baseline=v2")
    assert answers == ITEMS


@pytest.mark.slow
def test_a_replay_asks_nothing_and_ends_in_the_same(shop: Shop) -> None:
    """Also of a run that drift made void grades in."""
    shop.provider.is_lenient = True
    code, _ = shop.run("new", "--baseline=v1")
    again, calls = shop.run("new", "--baseline=v1", "--replay")
    assert calls == (0, 0)
    assert again == code


@pytest.mark.slow
def test_shards_on_one_ledger_ask_labels_and_canaries_once(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """n answers, n grades, C in all; ``merge`` asks nothing and decides."""
    monkeypatch.setenv("QA_RUN", "upgrade")
    answers = grades = 0
    for number in (1, 2):
        words = (f"--shard={number}/2", f"--report-dir=shards/{number}")
        _, calls = shop.run("new", "--baseline=v1", *words)
        answers += calls[0]
        grades += calls[1]
    assert (answers, grades) == (ITEMS, ITEMS + CANARIES)
    monkeypatch.chdir(shop.project.path)
    assert main(["merge", "shards/1", "shards/2", "--to", "whole"]) == 0
    assert shop.provider.calls() == (0, 0)


@pytest.mark.slow
def test_recorded_answers_ask_the_judge_alone(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """n grades and C; both sides are files."""
    rows = [
        {
            "id": f"q{number}",
            "question": f"What is the capital of Bulgaria, asked for the time number {number}?",
            "answer": "Sofia",
            "predicted_answer": f"Sofia, says file {{}}, {number}",
        }
        for number in range(1, ITEMS + 1)
    ]
    path = shop.project.path / "qa/capital/en.jsonl"
    for name in ("first", "second"):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        path.write_text(text.replace("{}", name), encoding="utf-8")
        words = ["--judge", specs(shop.server.url)[3], "qa/capital"]
        if name == "second":
            words.append("--baseline=file")
        shop.provider.calls()
        result = shop.project.run_in_process(*words)
        if name == "first":
            shop.project.keep("file", anyway=True)
    answers, grades = shop.provider.calls()
    assert answers == 0
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    assert ITEMS < grades <= ITEMS + CANARIES


@pytest.mark.slow
def test_what_a_model_failed_cannot_be_retired_by_a_run_of_the_old_one(
    shop: Shop,
) -> None:
    """Beside the baseline that has the items retired they still count for it."""
    numbers = [number for number in range(1, ITEMS + 1) if number % 5]
    lost = numbers[:20]
    shop.provider.lost = frozenset(lost)
    code, _ = shop.run("new", "--baseline=v1")
    assert code == 1, shop.line

    file = shop.project.path / "qa/capital/dataset.yaml"
    ids = ", ".join(f"q{number}" for number in lost)
    retired = f"retired: {{ids: [{ids}], reason: said to be wrong}}"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("{file:", f"{{{retired}, file:"), encoding="utf-8")
    shop.provider.lost = frozenset()
    code, _ = shop.run("old", "--baseline=v1")
    assert code == 0, shop.line
    assert "20 of 40 items retired, 20 since v1" in shop.line
    shop.project.keep("v2")

    shop.provider.lost = frozenset(lost)
    code, _ = shop.run("new", "--baseline=v2")
    assert code == 1, shop.line
    code, _ = shop.run("new", "--baseline=v2", "--fresh=again")
    assert code == 1, shop.line
    assert "2nd set of answers of this model to these items: FAIL" in shop.line


@pytest.mark.slow
def test_a_baseline_that_is_not_read_decides_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``gate`` with another baseline than the run's names the command that reads it."""
    shop.run("new", "--baseline=v1")
    other = Path(shop.project.path, "v2")
    shop.project.keep("run")
    shop.provider.wording = "One says"
    shop.run("third", "--baseline=v1")
    shop.project.keep(other.name)
    monkeypatch.chdir(shop.project.path)
    assert main(["gate", "run", "--baseline=v2", "--to", "again"]) == 6
    assert "--baseline=v2" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--ledger=other.sqlite3",)], ids=["", "ci"])
def test_a_dry_run_foretells_the_calls(shop: Shop, words: tuple[str, ...]) -> None:
    """Canaries and old answers stand apart, and all are in the total."""
    given = [*specs(shop.server.url, "new"), "--baseline=v1", *words, "qa/capital"]
    lines = shop.project.run_in_process(*given, "--dry-run").outlines
    _, (answers, grades) = shop.run("new", "--baseline=v1", *words)
    assert any(line.startswith("canaries") and "90 calls" in line for line in lines)
    (total,) = (line for line in lines if line.startswith("calls: "))
    assert total.startswith(f"calls: {answers + grades:,} to make")


@pytest.mark.slow
def test_a_dry_run_says_why_old_answers_are_judged_anew(shop: Shop) -> None:
    write_labels(shop.project, rubric="2")
    given = [*specs(shop.server.url, "new"), "--baseline=v1", "qa/capital"]
    result = shop.project.run_in_process(*given, "--dry-run")
    result.stdout.fnmatch_lines(
        [f"*{ITEMS} answers of v1 are judged anew: the rubric changed*"]
    )


RULES = """\
from qagate.evaluators.core import Verdict


class ByCity:
    async def judge(self, case, answer, ask):
        grade = "CORRECT" if "Sofia" in answer else "INCORRECT"
        if "do not know" in answer:
            grade = "NOT_ATTEMPTED"
        return Verdict(grade=grade)
"""


@pytest.mark.slow
def test_rules_that_were_made_lenient_since_the_baseline_pass_nothing(
    project: Project,
) -> None:
    """They read both runs and the labels anew, and the labels show that they see no loss."""
    project.asked(ITEMS, GATES, head="")
    write_labels(project)
    project.write("city_rules.py", RULES)
    provider = Provider()
    with loopback(handler=provider.handle) as server:
        rules = ("--judge", "python:city_rules:ByCity", "qa/capital")
        first = project.run(*specs(server.url, "old", ()), *rules)
        assert first.ret == 0, first.stdout.str()
        project.keep("v1")
        provider.wording = "The city is"
        provider.lost = frozenset(range(1, ITEMS, 2))
        project.write("city_rules.py", RULES.replace("INCORRECT", "CORRECT"))
        second = project.run(*specs(server.url, "new", ()), *rules, "--baseline=v1")
    assert second.ret == 6, second.stdout.str()
    assert "not trusted in en" in second.stdout.str()
