"""What another repository brings: rubrics, rules, checks, and models by a function or a service."""

import json
import sys
from pathlib import Path

import pytest

from qagate.command import main
from tests.support.fixtures import Patch
from tests.support.loopback import Answer, Seen, loopback, reply
from tests.support.projects import BAR, MODES, MODULE, Project, graded
from tests.support.tables import kept, tabled

REGISTER: str = kept(__file__, "register")
YAML: str = kept(__file__, "yaml")
ANSWERS = {
    "Dear Sir": "formal", "Hello, yours": "mixed", "Hiya mate": "informal", "Madam": "formal",
}  # fmt: skip
RULES: str = kept(__file__, "rules")


def register(project: Project) -> None:
    """Write a data set whose rubric stands next to it and has three labels of its own."""
    project.dataset("letters", {}, YAML)
    project.write("qa/letters/register.en.yaml", REGISTER)
    rows = [
        {"id": f"q{number}", "question": "Write a letter.", "answer": "A letter.",
         "predicted_answer": text, "topic": "work" if number else "home", "labels": "formal"}
        for number, text in enumerate(ANSWERS)
    ]  # fmt: skip
    project.write(
        "qa/letters/en.jsonl", "".join(json.dumps(row) + "\n" for row in rows)
    )


def by_register(seen: Seen) -> Answer:
    """Grade by the text that the judge is shown, through the forced call."""
    prompt = json.dumps(seen.body["messages"])
    label = next(label for text, label in ANSWERS.items() if text in prompt)
    assert seen.body["tools"][0]["function"]["parameters"]["properties"]["grade"]["enum"] == [
        "formal", "mixed", "informal",
    ]  # fmt: skip
    return reply(seen, arguments={"reason": "its words", "grade": label})


def test_a_rubric_with_labels_of_its_own(project: Project, monkeypatch: Patch) -> None:
    """Fifteen lines of YAML make a judge: its labels pass, score, gate and are reported."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    register(project)
    with loopback(handler=by_register) as server:
        done = project.run_in_process("qa", "--judge", f"openai:j@{server.url}/v1")
    assert done.ret == 0, done.stdout.str()
    records = project.records()
    assert [record["grade"] for record in records] == list(ANSWERS.values())
    assert [record["outcome"] for record in records] == [
        "passed",
        "passed",
        "failed",
        "passed",
    ]
    part = project.only("slices")
    values = {name: found["value"] for name, found in part["measures"].items()}
    shares = {"share_formal": 0.5, "share_mixed": 0.25, "share_informal": 0.25}
    assert values == {"correct": 0.75, "mean_score": 0.625, **shares}
    assert part["labels"] == {"formal": 2, "mixed": 1, "informal": 1}
    assert set(part["breakdowns"]["topic"]["work"]) == set(values)
    assert "informal" in project.text("report.html")
    assert "informal" in project.text("letters-en-graded.csv")
    assert "letters:en" in project.text("summary.md")


@tabled("change", "message")
def test_wrong_labels_are_refused(
    project: Project, change: tuple[str, str], message: str
) -> None:
    """File, line and key, before any call."""
    register(project)
    project.write("qa/letters/register.en.yaml", REGISTER.replace(*change))
    assert message in project.refused("qa")


def test_grades_of_other_rubrics_are_refused(project: Project) -> None:
    """Rules say CORRECT, which is none of its labels; a gate names what there is."""
    register(project)
    assert "letters:en: --judge lexical gives CORRECT, INCORRECT" in project.refused(
        "qa"
    )
    project.write(
        "qa/letters/dataset.yaml", YAML.replace("share_informal", "incorrect")
    )
    assert "incorrect" in project.refused("qa")


PLAIN = "{question} {target} {predicted_answer}"
RATED: str = kept(__file__, "rated")
LETTERS: str = kept(__file__, "by_letter")


@pytest.mark.parametrize(("provider", "path"), [("openai", "/v1"), ("anthropic", "")])
def test_plain_text_rubrics(
    project: Project, monkeypatch: Patch, provider: str, path: str
) -> None:
    """A judge is sent the description as it stands; letters and grades name what counts half."""
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", "none")
    for name, yaml, how in (
        ("expert", RATED, "rate-bare"),
        ("quiz", LETTERS, "letter"),
    ):
        project.dataset(name, {"en": ["[[answer=A]]", "[[answer=C]]"]}, yaml)
        project.write(f"qa/{name}/mine.en.{how}.txt", PLAIN)
    with loopback() as server:
        done = project.run_in_process(
            "qa", "--judge", f"{provider}:j@{server.url}{path}"
        )
    assert done.ret == 0, done.stdout.str()
    called = [seen.body["tools"][0] for seen in server.requests if seen.tool]
    said = [tool.get("function", tool)["description"] for tool in called]
    assert said == ["Rate the submission on a scale of 1 to 10."] * 2
    slices = {one["dataset"]: one["measures"] for one in project.report()["slices"]}
    assert slices["quiz"]["mean_score"]["value"] == 0.75
    assert slices["expert"]["mean_rating"]["value"] == 10


@tabled("yaml", "line", "message")
def test_what_rubrics_lack_is_refused(
    project: Project, yaml: str, line: str, message: str
) -> None:
    """A function that is not called, a score of no grade: file, line and key, before any call."""
    key = line.partition(":")[0]
    kept = [old for old in yaml.splitlines() if not old.startswith(key)]
    project.dataset("quiz", {"en": ["A"]}, "\n".join([*kept, line, ""]))
    for how in ("letter", "rate-bare"):
        project.write(f"qa/quiz/mine.en.{how}.txt", PLAIN)
    assert message in project.refused("qa", "--judge", "openai:j@http://127.0.0.1:9/v1")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["plain", "n2"])
def test_rules_in_one_file_judge(
    project: Project, mode: str, monkeypatch: Patch
) -> None:
    """Another repository's class judges grades, own labels and a failure, with workers too."""
    register(project)
    project.dataset("capital", {"en": ["Sofia", "Varna", "broken"]})
    project.write("my_rules.py", RULES)
    spec = "python:my_rules:Politeness"
    monkeypatch.setattr(
        sys, "path", list(sys.path)
    )  # no other test's folder stays in it
    done = project.run_in_process(*MODES[mode], "qa", "--judge", spec, "--gates=off")
    assert done.ret == 1, done.stdout.str()
    found = {
        (r["dataset"], r["id"]): (r["grade"], r["judge"]) for r in project.records()
    }
    assert found["capital", "q1"] == ("CORRECT", spec)
    assert found["capital", "q2"] == ("INCORRECT", spec)
    assert found["letters", "q0"] == ("formal", spec)
    assert found["letters", "q2"] == ("informal", spec)
    failed = next(
        r for r in project.records() if r["dataset"] == "capital" and r["id"] == "q3"
    )
    assert failed["outcome"] == "error"
    assert "judge_failed" in json.dumps(failed)


@tabled("spec", "message")
def test_rules_that_cannot_be_loaded(project: Project, spec: str, message: str) -> None:
    """One line says which module and class, before anything is asked."""
    project.dataset("capital", {"en": ["Sofia"]})
    project.write("my_rules.py", RULES)
    assert message in project.refused("qa", "--judge", spec)


WORDS = '[tool.qagate]\nwords = "words"\n'
DONT_KNOW = "Das weiß ich leider nicht."


@pytest.mark.slow
def test_words_of_ones_own_language(project: Project) -> None:
    """A file of refusals in one's own repository is enough; other words read anew."""
    yaml = graded({"de": "correct: {min: 0.1}, drop: {max: 0.9}"})
    project.dataset("capital", {"de": [DONT_KNOW, "Sofia", "Ka Ahnung"]}, yaml)
    done = project.run_in_process("qa")
    assert [one["grade"] for one in project.records()] == [
        "INCORRECT",
        "CORRECT",
        "INCORRECT",
    ]
    assert "write `refusals: [...]` into words/de.yaml" in " ".join(
        done.stdout.str().split()
    )
    project.keep("before")
    project.write("pyproject.toml", WORDS)
    project.write("words/de.yaml", "refusals: [weiß ich leider nicht, ka ahnung]\n")
    done = project.run(
        "-n", "2", "qa", "--baseline=before"
    )  # a process reads them once
    found = [one["grade"] for one in project.records()]
    assert found == ["NOT_ATTEMPTED", "CORRECT", "NOT_ATTEMPTED"]
    assert "has no words of" not in done.stdout.str()


@tabled("text", "message")
def test_words_that_cannot_be_used(
    project: Project, text: str | None, message: str
) -> None:
    """One line with file, line and key, before anything is asked."""
    project.dataset("capital", {"de": [DONT_KNOW]})
    project.write("pyproject.toml", WORDS)
    if text is not None:
        project.write("words/de.yaml", text)
    assert message in project.refused("qa")


CHECKS: str = kept(__file__, "checks")
FORMED: str = kept(__file__, "formed")
ALONE: str = kept(__file__, "alone")
SCHEMA = {"type": "object", "required": ["city"]}


@pytest.fixture
def formed(project: Project) -> Project:
    """Return a project whose graded items have two checks in addition to the judge."""
    project.write("checks_for_all.py", CHECKS)
    project.dataset("capital", {"en": ["Sofia", "Sofia it is", "varna"]}, FORMED)
    return project


def alone(project: Project, answers: list[str]) -> None:
    """Write a data set of questions without golds that a schema alone checks."""
    project.write("qa/forms/dataset.yaml", ALONE)
    project.write("qa/forms/answer.schema.json", json.dumps(SCHEMA))
    project.write("qa/forms/test_forms.py", MODULE.format(name="forms"))
    rows = [
        {
            "question": f"Name a city, as JSON, number {number}.",
            "predicted_answer": answer,
        }
        for number, answer in enumerate(answers)
    ]
    project.write("qa/forms/en.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def test_checks_stand_next_to_the_judge(formed: Project) -> None:
    """Shares with intervals, which gates name; one that raises is no grade and no score of 0."""
    done = formed.run_in_process("qa")
    assert done.ret == 0, done.stdout.str()
    records = formed.records()
    assert [record["grade"] for record in records] == [
        "CORRECT",
        "CORRECT",
        "INCORRECT",
    ]
    assert [record["measures"]["check_form"] for record in records] == [1.0, 1.0, 0.0]
    found = formed.only("slices")["measures"]["check_form"]
    assert found["value"] == pytest.approx(2 / 3)
    assert found["low"] < found["value"] < found["high"]
    short, form = formed.report()["provenance"]["slices"]["capital:en"]["checks"]
    assert (short["version"][:7], form["text"]) == ("sha256:", "^[A-Z]")
    assert set(formed.gate_states().values()) == {"PASS"}
    assert "check_form" in formed.text("report.html")
    for name, code in (("check_form", 1), ("check_from", 4)):
        formed.write("gates.yaml", f"capital: {{en: {{{name}: {{min: 0.9}}}}}}\n")
        assert main(["gate", str(formed.out), "--gates=gates.yaml"]) == code
    formed.dataset("capital", {"en": ["Sofia", "Sofia", "crash"]}, FORMED)
    done = formed.run_in_process("qa")
    assert done.ret == 6, done.stdout.str()
    (record,) = [one for one in formed.records() if one["outcome"] == "error"]
    assert "check_failed: check_short: ValueError: no such thing" in str(
        record["error"]
    )
    assert formed.gate_states()["check_short"] == "INCONCLUSIVE"


def test_checks_alone_decide(project: Project) -> None:
    """Without judge and golds an item passes where every check does; one is needed."""
    alone(project, ['{"city": "Sofia"}', '{"city": 1}', "Sofia"])
    done = project.run_in_process("qa")
    assert done.ret == 0, done.stdout.str()
    assert [record["grade"] for record in project.records()] == ["PASS", "PASS", "FAIL"]
    assert "the answer is not JSON" in str(project.records()[2]["reason"])
    assert project.gate_states() == {"pass_rate": "PASS", "check_schema": "PASS"}
    alone(project, ["Sofia", "Varna", "Plovdiv"])
    assert project.run_in_process("qa").ret == 1
    alone(project, ["x"])
    text = ALONE.replace(
        "  - {name: schema, check: json_schema, schema: answer.schema.json}\n", ""
    )
    project.write("qa/forms/dataset.yaml", text.replace("checks:\n", ""))
    assert "key 'checks': missing; list one" in project.refused("qa")


def test_a_rated_item_without_expected_answer_has_no_wording(
    project: Project, monkeypatch: Patch
) -> None:
    """Its rating stands; the check is counted apart, and its gate does not pass without it."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    project.write("my_rules.py", RULES)
    project.dataset("law", {}, kept(__file__, "worded"))
    project.write(
        "qa/law/nine.en.rate-bare.txt", "{question} {target} {predicted_answer}"
    )
    rows = [
        {"question": "Capital?", "expected": "Sofia", "predicted_answer": "Sofia"},
        {"question": "And of Italy?", "predicted_answer": "Sofia"},
    ]
    project.write("qa/law/en.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    done = project.run_in_process("qa", "--judge", "python:my_rules:Politeness")
    assert done.ret == 6, done.stdout.str()
    assert {record["outcome"] for record in project.records()} == {"passed"}
    assert project.gate_states() == {
        "mean_rating": "PASS",
        "check_wording": "INCONCLUSIVE",
    }
    why = "check_wording: 1 item not measured: no score for rouge_l: no expected answer"
    assert why in project.notes()


@tabled("old", "new", "said")
def test_what_is_wrong_is_said_in_one_line(
    formed: Project, old: str, new: str, said: str
) -> None:
    """File, line and key, before anything is asked."""
    assert old in FORMED
    formed.write("qa/capital/dataset.yaml", FORMED.replace(old, new, 1))
    assert said in formed.refused("qa")


FUNCTION: str = kept(__file__, "function")
SERVICE: str = kept(__file__, "service")
CAPITALS = graded({"en": BAR})
RULES_JUDGE = ("--judge", "lexical")


@pytest.fixture
def capitals(project: Project, monkeypatch: Patch) -> Project:
    """Return a project of three items without a prompt, and an application next to it."""
    monkeypatch.setattr(
        sys, "path", list(sys.path)
    )  # no other test's folder stays in it
    project.dataset("capital", {"en": [None] * 3}, CAPITALS)
    project.write("app_under_test.py", FUNCTION)
    return project


def calls(project: Project) -> int:
    path = project.path / "calls.txt"
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_a_function_is_asked_once_an_item(capitals: Project, workers: int) -> None:
    """A dry run makes no call, a second run none; other code or another version all anew."""
    model = (*RULES_JUDGE, "--model", "python:app_under_test:answer")
    planned = capitals.run_in_process("qa", *model, "--dry-run")
    assert (planned.ret, calls(capitals)) == (0, 0)
    assert "price unknown: python:app_under_test:answer" in planned.stdout.str()
    first = capitals.run_with(workers, "qa", *model)
    assert first.ret == 0, first.stdout.str()
    assert calls(capitals) == 3
    records = capitals.records()
    assert [record["answer"] for record in records] == ["Sofia"] * 3
    assert [(record["tokens"], record["cost"]) for record in records] == [(7, 0.01)] * 3
    assert capitals.run_in_process("qa", *model, "--replay").ret == 0
    assert calls(capitals) == 3
    assert "no version is declared" in capitals.text("summary.md")
    another = (*RULES_JUDGE, "--model", "python:app_under_test:answer@2")
    capitals.run_in_process("qa", *another)
    assert calls(capitals) == 6
    capitals.write("app_under_test.py", FUNCTION + "\n# mended\n")
    capitals.run_in_process("qa", *model)
    assert calls(capitals) == 9


def test_an_exception_is_an_error_of_its_item(capitals: Project) -> None:
    """Never a grade; where three calls fail alike nothing can be: exit 4 with the cause."""
    picky = ("qa", *RULES_JUDGE, "--model", "python:app_under_test:picky")
    done = capitals.run_in_process(*picky)
    assert [record["outcome"] for record in capitals.records()] == [
        "passed",
        "error",
        "passed",
    ]
    (error,) = [record for record in capitals.records() if record["outcome"] == "error"]
    assert "target_failed" in json.dumps(error)
    assert done.ret == 0, done.stdout.str()
    capitals.write("qa/capital/dataset.yaml", CAPITALS.replace("0.5", "0.9"))
    assert capitals.run_in_process(*picky).ret == 6
    broken = ("qa", *RULES_JUDGE, "--model", "python:app_under_test:broken")
    done = capitals.run_in_process(*broken)
    assert done.ret == 4
    assert "LookupError: no index for en (app_under_test.py:" in done.outlines[-1]
    assert "check the function (app_under_test:broken)" in done.outlines[-1]


def test_a_service_by_its_entry(capitals: Project) -> None:
    """One request an item, with the question in its template; a wrong path ends the run."""

    def handle(seen: Seen) -> Answer:
        return Answer(
            body={"answer": "Sofia" if "Bulgaria" in seen.body["question"] else "?"}
        )

    with loopback(handler=handle) as server:
        capitals.write("models.yaml", SERVICE.format(url=server.url))
        models = ("--models", "models.yaml", "--model", "http:house")
        options = ("qa", *RULES_JUDGE, *models)
        done = capitals.run_in_process(*options)
        assert done.ret == 0, done.stdout.str()
        assert server.count == 3
        assert capitals.run_in_process(*options, "--replay").ret == 0
        assert server.count == 3
        wrong = SERVICE.replace("$.answer", "$.anser")
        capitals.write("models.yaml", wrong.format(url=server.url))
        done = capitals.run_in_process(*options)
        assert done.ret == 4
        assert (
            "$.anser leads to nothing in the reply, which has answer"
            in done.stdout.str()
        )
        assert "none succeeded: check the service (" in done.outlines[-1]
        assert server.count == 6


@tabled("options", "said")
def test_what_is_wrong_is_said(
    capitals: Project, options: tuple[str, ...], said: str
) -> None:
    """Exit 4 before any call, with what is likely to be meant."""
    capitals.write("models.yaml", SERVICE.format(url="http://127.0.0.1:1"))
    assert said in capitals.refused("qa", *options)
    assert not Path("calls.txt").exists()
