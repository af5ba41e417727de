"""Runs that ask models: over a loopback server, in all wire formats, with all that goes wrong."""

import re
from collections import Counter
from collections.abc import Iterator

import pytest

from qagate.evaluators.ledger.sqlite import SqliteStore
from tests.support import quirky
from tests.support.fixtures import Patch
from tests.support.loopback import Answer, Loopback, Seen, good, loopback, reply
from tests.support.projects import Project, specs, without_last_line
from tests.support.tables import kept, tabled

ITEMS = 12
BOTH = ("en", "bg")
SLOW = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback(handler=good) as running:
        yield running


@pytest.fixture
def capitals(project: Project) -> Project:
    """Return a project of twelve items in each of two languages, with prompts and rubrics."""
    return project.asked(ITEMS, languages=BOTH)


@pytest.mark.parametrize(
    ("provider", "workers"), [("openai", 2), ("anthropic", 0), ("openai-responses", 0)]
)
def test_two_calls_each(
    capitals: Project, server: Loopback, provider: str, workers: int
) -> None:
    """Answer and judgement are asked once; a second run sends nothing, and says so at the end."""
    reports = []
    for _ in range(2):
        done = capitals.run_with(workers, *specs(server.url, provider=provider), "qa")
        assert (done.ret, server.count) == (0, 4 * ITEMS)
        reports.append({**capitals.report(), "run": None})
    assert "asked by an earlier run" in reports[1]["decision"]["line"]
    assert without_last_line(reports[0]) == without_last_line(reports[1])


def test_a_replay_needs_neither_server_nor_key(
    capitals: Project, server: Loopback
) -> None:
    """--replay gives the same report from the ledger, and an ERROR for what is not in it."""
    for words in ((), ("--replay",)):
        capitals.run_in_process(*specs(server.url), "--languages", "en", *words, "qa")
        assert capitals.outcomes() == {"passed": ITEMS}
    result = capitals.run_in_process(*specs(server.url), "--replay", "qa")
    assert (result.ret, server.count) == (6, 2 * ITEMS)
    assert by_language(capitals) == {("en", "passed"): ITEMS, ("bg", "error"): ITEMS}


def by_language(project: Project) -> Counter[tuple[str, str]]:
    return Counter(
        (record["language"], record["outcome"]) for record in project.records()
    )


def test_a_provider_that_fails_in_one_language(capitals: Project) -> None:
    """Its items are ERROR, its gate INCONCLUSIVE; the other language is judged as usual (F2)."""

    def handle(seen: Seen) -> Answer:
        said = {"error": {"message": "not in this language"}}
        return Answer(status=400, body=said) if "in bg" in seen.prompt else good(seen)

    with loopback(handler=handle) as server:
        result = capitals.run_in_process(*specs(server.url), "qa")
    assert result.ret == 6
    assert "GATES INCONCLUSIVE (1 of 2)" in result.outlines[-1]
    assert by_language(capitals) == {("en", "passed"): ITEMS, ("bg", "error"): ITEMS}
    errors = {
        str(one["error"]) for one in capitals.records() if one["language"] == "bg"
    }
    assert all("not in this language" in error for error in errors)


def test_ones_own_template_in_a_rubrics_place(capitals: Project) -> None:
    """A text with the three places is a rubric of the letter protocol; its language must fit."""
    template = "Question: {question}\nGold: {target}\nPredicted: {predicted_answer}\nA, B or C?"
    capitals.write("qa/capital/mine.en.txt", template)
    yaml = capitals.path / "qa" / "capital" / "dataset.yaml"
    both = yaml.read_text(encoding="utf-8")
    english = both.replace("plain.en.yaml", "mine.en.txt").replace("  bg", "  #bg")
    yaml.write_text(english, encoding="utf-8")

    def letters(seen: Seen) -> Answer:
        return reply(seen, text="A" if "Predicted" in seen.prompt else "Sofia")

    with loopback(handler=letters) as server:
        assert capitals.run_in_process(*specs(server.url), "qa").ret == 0
        assert "tools" not in server.requests[-1].body
        yaml.write_text(both.replace("plain.bg.yaml", "mine.en.txt"), encoding="utf-8")
        refused = capitals.refused(*specs(server.url), "qa")
    assert re.search("written for language 'en'.*slice in 'bg'", refused)


def test_an_unreadable_judge_is_asked_twice(capitals: Project) -> None:
    """Two replies without a verdict are an ERROR, and stay so without another request (F1)."""

    def mumble(seen: Seen) -> Answer:
        return (
            good(seen)
            if seen.tool is None
            else reply(seen, arguments={"grade": "PERHAPS"})
        )

    with loopback(handler=mumble) as server:
        for _ in range(2):
            result = capitals.run_in_process(
                *specs(server.url), "--languages", "en", "qa"
            )
            assert server.count == ITEMS * (1 + 2)
    assert (result.ret, {*capitals.outcomes()}) == (6, {"error"})
    assert "10 verdicts in a row could not be read" in result.outlines[-1]


LM_STUDIO = quirky.judge(quirky.QUIRKS["lm_studio"])


def test_what_was_negotiated_is_said_in_a_note(capitals: Project) -> None:
    with loopback(handler=LM_STUDIO) as server:
        capitals.run_in_process(*specs(server.url), "--languages", "en", "qa")
        said = f"openai:j@{server.url}/v1: sent with JSON by a schema in place of a function"
    assert capitals.outcomes()["passed"] == ITEMS
    assert any(said in note for note in capitals.report()["notes"])


def test_a_judge_is_asked_in_the_form_of_its_baseline(capitals: Project) -> None:
    """Also on a ledger that knows nothing of it: no call is refused a second time."""
    words = ("--languages", "en", "--gates", "off", "qa")
    with loopback(handler=LM_STUDIO) as server:
        capitals.run_in_process(*specs(server.url), "--report-dir=old", *words)
        first = server.count
        capitals.run_in_process(
            *specs(server.url), "--ledger=new.sqlite3", "--baseline=old", *words
        )
        later = server.requests[first:]
    assert not any("tools" in seen.body for seen in later)


def one_model_behind_two_names(seen: Seen) -> Answer:
    answer = good(seen)
    body = answer.body
    assert isinstance(body, dict)
    return Answer(body={**body, "model": "gpt-4.1-2025-04-14"})


ALIASES = """
prod: {{provider: openai, model: prod, base_url: "{url}/v1", answers_as: ["*"]}}
strict: {{provider: openai, model: strict, base_url: "{url}/v1", answers_as: ["*"]}}
"""


def test_a_judge_that_turns_out_to_be_the_model_lets_nothing_pass(
    capitals: Project,
) -> None:
    """Unless the user allows it: behind a gateway two names led to one model."""
    with loopback(handler=one_model_behind_two_names) as server:
        capitals.write("models.yaml", ALIASES.format(url=server.url))
        words = ("--models=models.yaml", "--model=prod", "--judge=strict", "qa")
        done = capitals.run_in_process(*words)
        assert done.ret == 6
        assert "strict judged itself" in done.outlines[-2] + done.outlines[-1]
        allowed = capitals.run_in_process("--allow-self-judge", *words)
        assert allowed.ret == 0


@pytest.mark.parametrize("workers", [0, 2])
def test_stopping_at_the_first_miss_bounds_what_is_spent(
    project: Project, workers: int
) -> None:
    """Under -x no more is asked than the tests that ended and the look-ahead allow."""
    project.asked(160)
    with loopback() as server:
        project.run_with(workers, *specs(server.url), "--concurrency", "4", "-x", "qa")
    states = project.outcomes()
    assert sum(states.values()) == 160
    ended = states["failed"] + states["passed"]
    assert server.count <= 2 * (ended + 64 + 4)


DEADLY: str = kept(__file__, "deadly")


@pytest.mark.parametrize("workers", [0, 2])
def test_bad_module(
    capitals: Project, server: Loopback, workers: int, monkeypatch: Patch
) -> None:
    """Exit 1, and the ledger has what was asked; a page that takes nothing changes no code."""
    broken = capitals.write("qa/test_broken.py", "import nothing_of_that_name\n")
    assert capitals.run_with(workers, *specs(server.url), "qa").ret == 1
    broken.unlink()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "/nowhere/step.md")
    result = capitals.run_with(workers, *specs(server.url), "qa")
    assert (result.ret, server.count) == (0, 4 * ITEMS)
    result.stdout.fnmatch_lines(
        ["warning: /nowhere/step.md: the summary cannot be appended*"]
    )


FULL_DISK: str = kept(__file__, "full_disk")


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=SLOW)])
def test_a_full_disk(
    capitals: Project, server: Loopback, monkeypatch: Patch, workers: int
) -> None:
    """When the ledger cannot keep a reply nothing more is asked, and the report says why (F15)."""
    monkeypatch.setattr(
        SqliteStore, "change", SqliteStore.change
    )  # what is put back at the end
    capitals.write("qa/conftest.py", FULL_DISK.format(table="calls"))
    result = capitals.run_with(workers, *specs(server.url), "--concurrency", "2", "qa")
    assert server.count <= 4
    assert result.ret == 6
    assert capitals.outcomes() == {"missing": 2 * ITEMS}
    assert capitals.report()["complete"] is False
    assert "disk is full" in " ".join(result.stdout.str().split())


def test_a_disk_that_is_full_before_the_first_call(
    capitals: Project, server: Loopback, monkeypatch: Patch
) -> None:
    """Nothing is asked that could not be kept, and one line with exit 3 says so."""
    monkeypatch.setattr(
        SqliteStore, "change", SqliteStore.change
    )  # what is put back at the end
    capitals.write("qa/conftest.py", FULL_DISK.format(table="documents"))
    result = capitals.run_in_process(*specs(server.url), "qa")
    assert (result.ret, server.count) == (3, 0)
    (line,) = [line for line in result.errlines if line]
    assert "the disk is full" in line
    assert "nothing was asked" in line


@pytest.mark.parametrize(
    "dist",
    ["load", *(pytest.param(one, marks=SLOW) for one in ("loadfile", "worksteal"))],
)
def test_a_dead_workers_item_is_given_on(
    capitals: Project, server: Loopback, dist: str
) -> None:
    """One that dies once costs no item, request or exit code; twice, it is an ERROR (F8)."""
    twice = "    if 'bg-q5]' in request.node.name:\n        os._exit(1)\n"
    capitals.write("qa/conftest.py", DEADLY + twice)
    result = capitals.run_with(2, "--dist", dist, *specs(server.url), "qa")
    assert capitals.outcomes() == {"passed": 2 * ITEMS - 1, "error": 1}
    (dead,) = [record for record in capitals.records() if record["outcome"] == "error"]
    assert dead["key"] == "capital-bg-q5"
    assert str(dead["error"]).startswith("worker_died")
    assert server.count == 4 * ITEMS
    assert result.ret == 0


@pytest.mark.parametrize("who", ["m", "j"])
def test_two_versions_of_a_model_are_no_release(project: Project, who: str) -> None:
    """Answers or verdicts: both names, counts and the way out; a fresh run is one."""
    project.asked(ITEMS)
    version = "2026-01-01"

    def dated(seen: Seen) -> Answer:
        answer = good(seen)
        assert isinstance(answer.body, dict)
        if answer.body["model"] == who:
            answer.body["model"] = f"{who}-{version}"
        return answer

    with loopback(handler=dated) as server:
        run = (*specs(server.url), "qa")
        assert project.run_in_process("--limit=4", *run).ret == 6
        version = "2026-12-01"
        result = project.run_in_process(*run)
        assert result.ret == 6
        what, spec = (
            {"m": "answers", "j": "verdicts"}[who],
            f"openai:{who}@{server.url}/v1",
        )
        said = f"{what} of 2 versions of {spec}, as its provider names them: {who}-2026-01-01 (4), "
        said += f"{who}-2026-12-01 (8); --fresh NAME asks all anew"
        assert f"INCONCLUSIVE: exit 6; {said}; GATES PASS" in result.outlines[-1]
        assert said.partition(" of ")[0] in project.text("gates.xml")
        assert project.run_in_process("--fresh=again", *run).ret == 0


@pytest.mark.untraced
@tabled("then", "now", "code", "said")
def test_what_changed_is_named(
    project: Project, then: str, now: str, code: int, said: str
) -> None:
    """On the first screen; a judge asked in another way reads both runs, so nothing is said."""
    project.asked(40, "drop: {max: 0.3}")
    project.write("other.txt", "Say it: {question}")
    with loopback(handler=good) as server:

        def run(change: str, *words: str) -> pytest.RunResult:
            name, _, parameters = change.partition(": ")
            entry = f"provider: openai, base_url: '{server.url}/v1', model"
            lines = (
                f"{one}: {{{entry}: {one}x, parameters: {parameters if one == name else '{}'}}}\n"
                for one in "mj"
            )
            project.write("models.yaml", "".join(lines))
            fresh = f"--fresh=run{len(words)}"
            asked = ("--model=m", "--judge=j", "--models=models.yaml", fresh)
            return project.run_in_process(*asked, *words, "qa")

        run(then, *(["--prompt=capital:en=other.txt"] * (then == "prompt")))
        before = project.keep("before")
        if then == "none":
            file = before / "run.json"
            file.write_text(file.read_text().replace('"sent": {', '"other": {'))
        result = run(now, "--baseline=before", "-v")
    assert result.ret == code, result.stdout.str()
    shown = " ".join(line.strip() for line in result.outlines)
    assert said in shown
    assert ("WARNING" in shown) == bool(said)
