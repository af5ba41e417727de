"""The build command: steps, settings that stay what they were, and one line for each mistake."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cases.__main__ import main
from reports.commands.build import read_options
from tests.support.building import (
    english_paragraph,
    hashed,
    models,
    question,
    rows,
    texts_of,
    unruly,
    write_news,
)
from tests.support.building_site import ALL_STEPS, STEPS, Site, funnel_adds_up, site
from tests.support.fixtures import Captured
from tests.support.loopback import Answer, Seen, reply
from tests.support.tables import tabled


@pytest.fixture
def good(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path, models(), count=6) as made:
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
    for step, words in (("generate", good.writer), ("check", ()), ("validate", good.checker)):
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


def test_other_settings_for_a_step_that_is_done_are_refused(good: Site, capsys: Captured) -> None:
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
    for text in (path.read_text(encoding="utf-8").replace("а", "о"), "{"):
        path.write_text(text, encoding="utf-8")
        assert "changed since it was made" in refused(good, capsys, "sample")
    path.unlink()
    good.recipe(6, build="seed: 9")
    assert good.build("sample") == 0


def test_what_was_cut_short_is_done_again_from_the_ledger(good: Site, capsys: Captured) -> None:
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


def test_what_fails_on_every_run_can_be_left_out(tmp_path: Path, capsys: Captured) -> None:
    """An item blocks the way until --leave-out-failed; then it is counted with its reason."""
    good, bad = models(), ["nothing yet"]

    def failing(seen: Seen) -> Answer:
        is_bad = not texts_of(seen) and bad[0] in seen.prompt
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
    report = funnel_adds_up(tmp_path / "work")
    assert report["final"]["dropped at validate: failed_bad_body"] == 1


def test_what_both_models_know_is_dropped(tmp_path: Path, capsys: Captured) -> None:
    """The generator says yes to all, the validator knows half: only what both know goes."""
    good = models()
    asked: list[str] = []

    def knowing(seen: Seen) -> Answer:
        if "Невядома" not in seen.prompt:
            return good(seen)
        asked.append(seen.prompt)
        if seen.body["model"] == "writer":
            return reply(seen, text="Так")
        return reply(seen, text="Так." if hashed(seen.prompt) % 2 else "Невядома")

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
    assert all(row["detail"].endswith("by openai:writer, openai:checker") for row in dropped)
    yes = [row for row in items if row["answer"] == "YES"]
    assert before == len(items) + len(yes), "the second is asked what the first knew"
    assert "closed_book" in capsys.readouterr().err


def test_unruly_models_lose_nothing_that_can_be_had(tmp_path: Path, capsys: Captured) -> None:
    """Counts add up from sampled to validated, and a second run asks nothing."""
    with site(tmp_path, unruly, articles=200, count=36, build="blind: false") as made:
        made.provider = "anthropic"
        assert made.all() == 0
        report = funnel_adds_up(tmp_path / "work")
        assert max(made.asked.values()) <= 3, "an unreadable verdict is asked for three times"
        before, files = sum(made.asked.values()), made.files("work")
        assert made.all() == 0
        assert (sum(made.asked.values()), made.files("work")) == (before, files)
    final = report["final"]
    assert {"dropped at generate: unreadable", "dropped at check: open"} <= set(final)
    assert {"dropped at validate: not_confirmed", "dropped at validate: unreadable"} <= set(final)
    checked = [row for row in rows(tmp_path / "work", "validate") if row["state"] == "kept"]
    assert len(checked) > 36
    for row in checked:
        assert row["question"] == question(row["paragraph"]), "matched to its own text"
        assert row["validator"]["explanation"] == "Вынікае з тэксту."
        assert all(row["origin"][key] for key in ("source", "title", "url", "licence", "page"))
    said = capsys.readouterr()
    assert "(done before)" in said.err
    assert "the question alone gives" in said.out
    assert re.search(r"generate: \d+ requests sent; all replies", said.err)


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("idle"), models(), articles=5) as made:
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
    said = capsys.readouterr().out
    assert len(set(re.findall(r"^  (--[a-z-]+)", said, re.MULTILINE))) <= 20
    good.recipe(4, more="labels: {yes: Oui, no: Non}\nuser: '{count} {texts}'\nsystem: x\n")
    path = good.path / "mine.yaml"
    text = path.read_text(encoding="utf-8").replace("language: be", "language: fr")
    path.write_text(text + "question: {forms: '^est'}\n", encoding="utf-8")
    words = [*good.writer, *good.checker]
    assert "validate.fr.yaml" in refused(good, capsys, *words)
    assert good.generator.count == 0


def test_english_is_another_file_and_no_other_code(tmp_path: Path) -> None:
    """The whole way in a second language, without reviewers if that is said."""
    with site(tmp_path, models(), articles=5) as made:
        write_news(tmp_path / "en.jsonl", 60, text=english_paragraph)
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
    found = [json.loads(line) for line in (to / "en.jsonl").read_text("utf-8").splitlines()]
    assert [row["answer"] for row in found].count("Yes") == len(found) / 2 == 10
    assert main(["check", str(to)]) == 0
    sheet = (to / "README.md").read_text("utf-8")
    assert "No person has looked at these items" in sheet
    assert "20 of 20 items were seen by no person" in sheet
