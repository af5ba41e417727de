"""The build command: steps, settings, mistakes, and the whole way to a frozen set."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qagate.cases.extras.builder import command as build_command
from qagate.cases.extras.builder.command import read_options
from qagate.cases.extras.builder.recipe import SourceGroup, find_recipe, load_recipe
from qagate.command import main
from qagate.evaluators.kinds import kind_of
from qagate.reports.run.report import Report
from qagate.reports.run.run_json import load_report
from tests.support import building
from tests.support.building import rows
from tests.support.building_site import (
    ALL_STEPS,
    STEPS,
    TWO,
    Site,
    agreeing,
    answers_of,
    back_from_both,
    every_third_wrong,
    funnel_adds_up,
    other,
    reviewed_site,
    sent_back,
    site,
)
from tests.support.fixtures import Captured, Patch
from tests.support.loopback import Answer, Handler, Seen, loopback, reply
from tests.support.made_records import make_record
from tests.support.made_runs import facts_dataset, graded_slice, run_of, written
from tests.support.projects import INI
from tests.support.reviewing import Fill, Row, sheet_rows
from tests.support.tables import tabled


@pytest.fixture
def good(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path, building.models(), count=6) as made:
        yield made


def refused(made: Site, capsys: Captured, *words: str) -> str:
    capsys.readouterr()
    assert made.build(*words) == 4
    said = capsys.readouterr().err.strip().splitlines()
    assert "Traceback" not in "".join(said)
    return said[-1]


def test_one_step_at_a_time(good: Site, capsys: Captured) -> None:
    """Each takes up where the one before ended; a deleted file's followers are made again."""
    assert good.build("sample") == 0
    assert good.generator.count == 0
    assert "check comes after generate" in refused(good, capsys, "check")
    for step, words in (
        ("generate", good.writer),
        ("check", ()),
        ("validate", good.checker),
    ):
        assert good.build(step, *words) == 0
    assert good.build("probe") == 0
    report = funnel_adds_up(good.path / "work")
    assert report["steps"]["generate"]["in"] == 12
    assert report["sources"] == {"encyclopaedia": 8, "news": 4}
    asked = good.generator.count + good.validator.count
    assert good.build() == 0
    assert good.generator.count + good.validator.count == asked
    (good.path / "work" / "sample.jsonl").unlink()
    good.recipe(9)
    assert good.all() == 0
    assert good.generator.count + good.validator.count > asked
    assert funnel_adds_up(good.path / "work")["steps"]["sample"]["kept"] == 12 + 6
    assert max(good.asked.values()) == 1


def test_other_settings_for_a_step_that_is_done_are_refused(
    good: Site, capsys: Captured
) -> None:
    """Nothing is overwritten that was made with something else, nor what was edited by hand."""
    assert good.build("sample") == 0
    for recipe, said in (
        ({"build": "seed: 4"}, "made with another seed (1, now 4)"),
        ({"sources": "  news: {from: news.jsonl}\n"}, "another sources"),
    ):
        good.recipe(6, **recipe)
        assert said in refused(good, capsys, "sample")
    good.recipe(6)
    assert good.build("sample") == 0
    path = good.path / "work" / "sample.jsonl"
    whole = path.read_text(encoding="utf-8")
    odd_options = whole.replace('"options": {', '"options": 5, "more": {', 1)
    for text in (whole.replace("а", "о"), odd_options, "{"):
        path.write_text(text, encoding="utf-8")
        assert "changed since it was made" in refused(good, capsys, "sample")
    path.unlink()
    good.recipe(6, build="seed: 9")
    assert good.build("sample") == 0


def test_what_was_cut_short_is_done_again_from_the_ledger(
    good: Site, capsys: Captured
) -> None:
    """Without time left the step says so; the next run finishes it, and --replay repeats it."""
    assert good.all("--deadline", "0") == 1
    said = capsys.readouterr().err
    assert "items are not done" in said
    assert "--deadline" in said
    assert {row["state"] for row in rows(good.path / "work", "generate")} == {"pending"}
    assert good.build("check") == 1, "not before generate is done"
    assert good.all() == 0
    made, asked = good.files("work"), sum(good.asked.values())
    for step in STEPS[1:]:
        (good.path / "work" / f"{step}.jsonl").unlink()
    assert good.all("--replay") == 0
    assert (good.files("work"), sum(good.asked.values())) == (made, asked)


def test_what_fails_on_every_run_can_be_left_out(
    tmp_path: Path, capsys: Captured
) -> None:
    """An item blocks the way until --leave-out-failed; then it is counted with its reason."""
    good, bad = building.models(), ["nothing yet"]

    def failing(seen: Seen) -> Answer:
        is_bad = not building.texts_of(seen) and bad[0] in seen.prompt
        return Answer(body="upstream says no") if is_bad else good(seen)

    with site(tmp_path, failing, count=4) as made:
        assert made.all() == 0
        for step in ("validate", "probe"):
            (tmp_path / "work" / f"{step}.jsonl").unlink()
        bad[0] = rows(tmp_path / "work", "check")[0]["question"]
        (tmp_path / "work.sqlite3").unlink()
        assert made.build("validate", *made.checker) == 1
        told = capsys.readouterr().err
        assert "1 items are not done" in told
        assert "--leave-out-failed drops what fails every time" in told
        assert made.build("validate", *made.checker, "--leave-out-failed") == 0
        assert made.build("probe", *made.writer) == 0
        assert made.build("review", "--unreviewed") == 0
    assert (
        funnel_adds_up(tmp_path / "work")["final"][
            "dropped at validate: failed_bad_body"
        ]
        == 1
    )


def test_what_both_models_know_is_dropped(tmp_path: Path, capsys: Captured) -> None:
    """The generator says yes to all, the validator knows half: only what both know goes."""
    good = building.models()
    asked: list[str] = []

    def knowing(seen: Seen) -> Answer:
        if "Невядома" not in seen.prompt:
            return good(seen)
        asked.append(seen.prompt)
        if seen.body["model"] == "writer":
            return reply(seen, text="Так")
        return reply(
            seen, text="Так." if building.hashed(seen.prompt) % 2 else "Невядома"
        )

    with site(tmp_path, knowing, count=6) as made:
        assert made.all() == 0
        report = funnel_adds_up(tmp_path / "work")
        items = rows(tmp_path / "work", "probe")
        before = len(asked)
        made.recipe(6, build="probe: false")
        assert made.all(folder="other") == 0
        assert len(asked) == before, "switched off, it asks nothing"
    dropped = [row for row in items if row["state"] == "dropped"]
    assert all(row["answer"] == "YES" for row in dropped)
    assert len(dropped) == report["final"]["dropped at probe: closed_book"] > 1
    assert all(
        row["detail"].endswith("by openai:writer, openai:checker") for row in dropped
    )
    yes = [row for row in items if row["answer"] == "YES"]
    assert before == len(items) + len(yes), "the second is asked what the first knew"
    assert "closed_book" in capsys.readouterr().err


def test_unruly_models_lose_nothing_that_can_be_had(
    tmp_path: Path, capsys: Captured
) -> None:
    """Counts add up from sampled to validated, and a second run asks nothing."""
    with site(
        tmp_path, building.unruly, articles=200, count=36, build="blind: false"
    ) as made:
        made.provider = "anthropic"
        assert made.all() == 0
        report = funnel_adds_up(tmp_path / "work")
        assert max(made.asked.values()) <= 2, "an unreadable verdict is asked for twice"
        before, files = sum(made.asked.values()), made.files("work")
        assert made.all() == 0
        assert (sum(made.asked.values()), made.files("work")) == (before, files)
    final = report["final"]
    assert {"dropped at generate: unreadable", "dropped at check: open"} <= set(final)
    assert {
        "dropped at validate: not_confirmed",
        "dropped at validate: unreadable",
    } <= set(final)
    checked = [
        row for row in rows(tmp_path / "work", "validate") if row["state"] == "kept"
    ]
    assert len(checked) > 36
    for row in checked:
        assert row["question"] == building.question(row["paragraph"]), (
            "matched to its own text"
        )
        assert row["validator"]["explanation"] == "Вынікае з тэксту."
        assert all(
            row["origin"][key] for key in ("source", "title", "url", "licence", "page")
        )
    said = capsys.readouterr()
    assert "(done before)" in said.err
    assert "the question alone gives" in said.out
    assert re.search(r"generate: \d+ requests sent; all replies", said.err)


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("idle"), building.models(), articles=5) as made:
        yield made


@pytest.fixture
def keyless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)


@pytest.mark.usefixtures("keyless")
@tabled("recipe", "words", "message")
def test_mistakes_are_refused_before_anything_is_done(
    idle: Site, capsys: Captured, recipe: dict[str, Any], words: list[str], message: str
) -> None:
    """One line says what is wrong; no step is begun."""
    idle.recipe(**recipe)
    urls = {"one": f"{idle.generator.url}/v1", "two": f"{idle.validator.url}/v1"}
    filled = [word.format(news=idle.path / "news.jsonl", **urls) for word in words]
    assert message in refused(idle, capsys, *filled)
    assert not (idle.path / "work" / "sample.jsonl").exists()


def test_there_are_at_most_twenty_options(capsys: Captured, good: Site) -> None:
    """What a recipe can say needs no option; without a bundled recipe all keys are needed."""
    with pytest.raises(SystemExit):
        read_options(["--help"])
    assert (
        len(set(re.findall(r"^  (--[a-z-]+)", capsys.readouterr().out, re.MULTILINE)))
        <= 20
    )
    good.recipe(
        4, more="labels: {yes: Oui, no: Non}\nuser: '{count} {texts}'\nsystem: x\n"
    )
    path = good.path / "mine.yaml"
    text = path.read_text(encoding="utf-8").replace("language: be", "language: fr")
    path.write_text(text, encoding="utf-8")
    assert "has no bundled recipe; give question too" in refused(good, capsys)
    path.write_text(text + "question: {forms: '^est'}\n", encoding="utf-8")
    assert "validate.fr.yaml" in refused(good, capsys, *good.writer, *good.checker)
    assert good.generator.count == 0


def test_english_is_another_file_and_no_other_code(tmp_path: Path) -> None:
    """The whole way in a second language, without reviewers if that is said."""
    with site(tmp_path, building.models(), articles=5) as made:
        building.write_news(tmp_path / "en.jsonl", 60, text=building.english_paragraph)
        made.recipe(sources="  news: {from: en.jsonl, count: 20}\n")
        assert made.all() == 0
        prompt = made.generator.requests[0].prompt
        assert made.build("review", "--unreviewed") == 0
        assert made.build("accept") == 0
        to = tmp_path / "english"
        assert made.build("freeze", "--to", str(to)) == 0
    funnel_adds_up(tmp_path / "work", ALL_STEPS)
    assert '"answer": "Yes"' in prompt
    assert '"answer": "No"' in prompt
    found = [
        json.loads(line) for line in (to / "en.jsonl").read_text("utf-8").splitlines()
    ]
    assert [row["answer"] for row in found].count("Yes") == len(found) / 2 == 10
    assert main(["check", str(to)]) == 0
    sheet = (to / "README.md").read_text("utf-8")
    assert "No person has looked at these items" in sheet
    assert "20 of 20 items were seen by no person" in sheet


WORDS = {"YES": "Так", "NO": "Не"}


@pytest.fixture
def reviewed(tmp_path: Path) -> Iterator[Site]:
    with reviewed_site(tmp_path) as made:
        yield made


def at_odds(answers: Mapping[str, str], items: Sequence[str]) -> Fill:
    """Return two people who give each of these items a fate of its own, and agree to the rest."""
    disputed, turned, edited, unclear, bad, *_ = items

    def fill(_: int, row: Row) -> Row:
        item, said = row["item"], answers[row["item"]]
        if item == disputed and row["reviewer"] != "Ганна":
            return {"verdict": other(said), "comment": "хм"}
        if item == edited:
            return {
                "verdict": said,
                "edited": "Ці праўда, што ўсё гэта адбылося менавіта тут?",
            }
        verdicts = {turned: other(said), unclear: "UNCLEAR", bad: "BAD_LANGUAGE"}
        return {"verdict": verdicts.get(item, said)}

    return fill


@pytest.mark.slow
def test_from_sampled_to_evaluated(reviewed: Site, capsys: Captured) -> None:
    """Two reviewers, a third for their dispute, a frozen set that pytest runs, and one table."""
    work, answers = reviewed.path / "work", answers_of(reviewed.path / "work")
    shared = [
        row["id"]
        for row in rows(work, "review")
        if len(row["review"].get("asked", [])) == 2
    ]
    files = back_from_both(reviewed, at_odds(answers, shared))
    assert reviewed.build("accept", files[0]) == 1, "the other half is not back"
    assert reviewed.build("accept", files[1]) == 1, "one item is in dispute"
    said = capsys.readouterr().err
    assert "all: 10 items seen by more than one: agreement 0.900" in said
    assert re.search(
        "1 items are in dispute(?s:.*)run accept with that person's file", said
    )
    assert reviewed.build("freeze", "--to", str(reviewed.path / "mine")) == 1, (
        "not before"
    )
    third = sent_back(
        work / "review" / "be-disputes.csv",
        reviewed.path / "third.csv",
        lambda _, row: {"verdict": answers[row["item"]], "reviewer": "Алесь"},
    )
    assert reviewed.build("accept", str(third)) == 0
    to = reviewed.path / "mine"
    assert reviewed.build("freeze", "--to", str(to)) == 0

    final = funnel_adds_up(work, ALL_STEPS)["final"]
    assert (
        final["dropped at accept: unclear"]
        == final["dropped at accept: bad_language"]
        == 1
    )
    kept = {row["id"]: row for row in rows(work, "accept")}
    disputed, turned, edited = (kept[item] for item in shared[:3])
    assert disputed["state"] == "kept"
    assert turned["answer"] == other(answers[turned["id"]])
    assert turned["review"]["answer_before"] == answers[turned["id"]]
    assert edited["question"].startswith("Ці праўда, што ўсё")
    assert main(["check", "--strict", str(to)]) == 0
    runs_and_compares(reviewed, to, capsys)


def runs_and_compares(made: Site, to: Path, capsys: Captured) -> None:
    """Run a model over the frozen set: the table has the run's own figures and breakdowns."""
    (made.path / "pytest.ini").write_text(INI, encoding="utf-8")
    with loopback(handler=every_third_wrong(WORDS)) as server:
        words = ("--gates=off", f"--model=openai:tested@{server.url}/v1", "mine")
        command = [sys.executable, "-m", "pytest", "-q", *words]
        done = subprocess.run(command, cwd=made.path, check=False, capture_output=True)
        assert done.returncode == 1, "some answers are wrong"
    capsys.readouterr()
    assert made.build("evaluate", f"--run=tested={made.path / 'reports/out'}") == 0
    (own,) = load_report(made.path / "reports/out").slices
    told = own.measures["accuracy"].text("{value} ({low} to {high})")
    assert f"| tested | {told} |" in capsys.readouterr().out
    table = (made.path / "work/evaluation/models.md").read_text("utf-8")
    assert "## Accuracy by question type" in table
    assert "## Accuracy by source" in table


LETTERS = {"y": "YES", "n": "NO", "u": "UNANSWERED"}


def answered(said: str, gold: str = "ynyn", digest: str = "") -> Report:
    """Return a run with these answers to items with this gold; ``e`` is a failed call."""
    rows = []
    for number, (letter, label) in enumerate(zip(said, gold, strict=True)):
        lost = {"answer": None, "outcome": "error", "error": "timeout: late"}
        found = {"answer": letter, "outcome": "passed" if letter == label else "failed"}
        one = make_record(
            number, dataset="mine", language="be", key=f"mine-be-i{number}",
            question=f"=Ці {number}?", label=LETTERS[label], grade=LETTERS.get(letter),
            digest=digest or f"d{number}", **(lost if letter == "e" else found),
        )  # fmt: skip
        rows.append(one)
    yes_no = kind_of("yes_no")
    part = graded_slice(
        "be", kind=yes_no, yes="Так", no="Не", dataset="mine", thresholds=()
    )
    return run_of(rows, facts_dataset(part, kind=yes_no, name="mine"))


def test_models_are_compared_by_their_runs(tmp_path: Path, capsys: Captured) -> None:
    """One row a model; what at least half miss is listed, worst first, and no cell a formula."""
    words = [
        "build",
        "boolq",
        "--language",
        "be",
        "--folder",
        str(tmp_path / "work"),
        "evaluate",
    ]
    runs = {
        "so|so": answered("ynne"),
        "bad": answered("yyyu"),
        "other": answered("ynyn", digest="x"),
    }
    given = {
        name: f"--run={name}={written(run, tmp_path / str(number))}"
        for number, (name, run) in enumerate(runs.items())
    }
    assert main([*words, given["so|so"], given["bad"]]) == 0
    said = capsys.readouterr().out
    assert "| so\\|so | 0.667 (" in said
    assert re.search(r"\| so\\\|so .* \| 3 \| 1 \|", said), (
        "a failed call is in no figure"
    )
    rows = sheet_rows(tmp_path / "work/evaluation/errors.csv")
    found = [(row["id"], row["missed_by"], row["of_models"]) for row in rows]
    assert found == [("i3", "1", "1"), ("i1", "1", "2"), ("i2", "1", "2")]
    assert rows[0]["question"] == "'=Ці 3?"
    assert (rows[0]["answer: so|so"], rows[0]["answer: bad"]) == ("", "UNANSWERED")
    for name, message in (
        ("other", "not the same items"),
        ("bad", "two models have one name"),
    ):
        assert main([*words, given["bad"], given[name]]) == 4
        assert message in capsys.readouterr().err
    assert main(["build", "boolq", "--language", "en", "evaluate", given["bad"]]) == 4
    assert "0 yes/no slices in 'en'" in capsys.readouterr().err


def slowly(handler: Handler, seconds: float) -> Handler:
    return lambda seen: replace(handler(seen), delay=seconds)


@pytest.mark.slow
def test_a_kill_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    """Killed again and again, the command ends with the files of an undisturbed run."""

    draw = random.Random(8)
    with site(
        tmp_path, slowly(building.unruly, 0.01), articles=70, build="blind: false"
    ) as made:
        assert made.all(folder="calm") == 0
        calm = sum(made.asked.values())
        kills = 0
        while kills < 4:
            before = made.generator.count + made.validator.count
            child = made.start("stormy")
            more, end = draw.randint(0, 25), time.monotonic() + 30
            while made.generator.count + made.validator.count < before + more:
                if child.poll() is not None or time.monotonic() > end:
                    break
                time.sleep(0.005)
            child.kill()
            child.communicate()
            kills += 1
        assert made.all(folder="stormy") == 0
        total = sum(made.asked.values())
    assert made.files("stormy") == made.files("calm")
    funnel_adds_up(tmp_path / "stormy")
    # What a kill meets in flight, or not yet on the disk, is asked once more; nothing else is.
    assert total - 2 * calm <= kills * 12
    assert not list((tmp_path / "stormy").glob(".*.part"))


@pytest.mark.slow
def test_an_interruption_keeps_what_is_in_flight(tmp_path: Path) -> None:
    """Ctrl-C waits for the calls under way, and the next run asks only for the rest."""

    with site(tmp_path, slowly(building.models(), 0.05), articles=70) as made:
        child = made.start("work")
        while made.generator.count < 4 and child.poll() is None:
            time.sleep(0.01)
        os.kill(child.pid, signal.SIGINT)
        _, said = child.communicate(timeout=30)
        assert (child.returncode, said.split(b"\n")[-2]) == (130, b"interrupted")
        assert made.all() == 0
        assert max(made.asked.values()) == 1
    funnel_adds_up(tmp_path / "work")


class _KilledError(BaseException):
    """Stands for a kill: nothing catches it."""


def dying(at: int) -> Callable[[Path, Path], Path]:
    """Return a ``Path.replace`` that works so many times, and then is where the kill comes."""
    left, replace = iter(range(at)), Path.replace

    def instead(self: Path, target: Path) -> Path:
        if next(left, None) is None:
            raise _KilledError
        return replace(self, target)

    return instead


def all_files(*folders: Path) -> dict[str, bytes]:
    places = [path for folder in folders for path in folder.rglob("*")]
    return {
        f"{one}": one.read_bytes()
        for one in places
        if one.is_file() and one.name != "lock"
    }


@pytest.mark.slow
@pytest.mark.parametrize("step", ["review", "accept", "freeze"])
def test_a_kill_loses_nothing(
    reviewed: Site, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Killed before any of its renames, a step ends after a re-run with the files of a calm run."""
    work, to = reviewed.path / "work", reviewed.path / "mine"
    files = back_from_both(reviewed, agreeing(answers_of(work)))
    words = {"freeze": ["--to", str(to)], "accept": files}
    for one in ("review", "accept", "freeze"):
        assert reviewed.build(one, *words.get(one, TWO)) == 0
    calm = all_files(work, to)
    for at in range({"review": 6, "accept": 3, "freeze": 9}[step]):
        (work / f"{step}.jsonl").unlink()
        shutil.rmtree(to)
        with monkeypatch.context() as patched:
            patched.setattr(Path, "replace", dying(at))
            with pytest.raises(_KilledError):
                reviewed.build(step, *words.get(step, TWO))
        assert reviewed.build(step, *words.get(step, TWO)) == 0
        # Counts of later steps are told again when these are asked for.
        assert reviewed.build("freeze") == 0
    assert all_files(work, to) == calm


@pytest.mark.parametrize("source", ["pages.xml.bz2", "pages.jsonl"])
def test_needs_a_parser(
    source: str, tmp_path: Path, monkeypatch: Patch, capsys: Captured
) -> None:
    """With any other sources in the recipe; the message names the file and what to install."""
    recipe = tmp_path / "recipe.yaml"
    bundled = load_recipe(find_recipe("be"))
    group = SourceGroup(name="news", files=(tmp_path / source,), licence="CC0")
    monkeypatch.setattr(
        build_command, "load_recipe", lambda _: replace(bundled, sources=(group,))
    )
    monkeypatch.setattr("qagate.evaluators.optional.find_spec", lambda _: None)
    words = [
        "build",
        "boolq",
        "sample",
        "--recipe",
        str(recipe),
        "--folder",
        str(tmp_path / "to"),
    ]
    assert main(words) != 0
    said = "mwparserfromhell is not installed; pip install 'mwparserfromhell>=0.7'"
    assert (said in capsys.readouterr().err) is (source != "pages.jsonl")
