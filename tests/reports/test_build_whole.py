"""From sampled to frozen and evaluated, with models that misbehave and reviewers who differ."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cases.__main__ import main
from tests.conftest import INI
from tests.support.building import models, question, rows, unruly
from tests.support.building_people import (
    Fill,
    Row,
    agreeing,
    answers_of,
    back_from_both,
    every_third_wrong,
    other,
    reviewed_site,
    sent_back,
)
from tests.support.building_site import ALL_STEPS, Site, funnel_adds_up, site
from tests.support.building_texts import english_paragraph, write_news
from tests.support.loopback import loopback

ENTAILMENT = Path(__file__).parents[3] / "shared/data/belarusian_entailment/bertewd.json"
WORDS = {"YES": "Так", "NO": "Не"}


@pytest.fixture
def reviewed(tmp_path: Path) -> Iterator[Site]:
    with reviewed_site(tmp_path) as made:
        yield made


def test_unruly_models_lose_nothing_that_can_be_had(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counts add up from sampled to validated, and a second run asks nothing."""
    with site(tmp_path, unruly, articles=200) as made:
        made.provider = "anthropic"
        assert made.all("--no-blind", count=36) == 0
        report = funnel_adds_up(tmp_path / "work")
        assert max(made.asked.values()) <= 3, "an unreadable verdict is asked for three times"
        before = sum(made.asked.values())
        files = made.files("work")
        assert made.all(count=36) == 0
        assert sum(made.asked.values()) == before
        assert made.files("work") == files
    final = report["final"]
    assert {"dropped at generate: unreadable", "dropped at check: open"} <= set(final)
    assert {"dropped at validate: not_confirmed", "dropped at validate: unreadable"} <= set(final)
    checked = [row for row in rows(tmp_path / "work", "validate") if row["state"] == "kept"]
    assert len(checked) > 36
    for row in checked:
        assert row["question"] == question(row["paragraph"]), "matched to its own text"
        assert row["validator"]["explanation"] == "Вынікае з тэксту."
        origin = row["origin"]
        assert all(origin[key] for key in ("source", "title", "url", "licence", "page"))
    said = capsys.readouterr()
    assert "(done before)" in said.err
    assert "the question alone gives" in said.out
    assert re.search(r"generate: \d+ requests sent; all replies", said.err)


def shared_items(made: Site) -> list[str]:
    """Return the items that both reviewers see."""
    return [
        row["id"]
        for row in rows(made.path / "work", "review")
        if len(row["review"].get("asked", [])) == 2
    ]


def at_odds(answers: Mapping[str, str], items: Sequence[str]) -> Fill:
    """Return two people who give each of these items a fate of its own, and agree to the rest."""
    disputed, turned, edited, unclear, bad, *_ = items

    def fill(_: int, row: Row) -> Row:
        item, said = row["item"], answers[row["item"]]
        if item == disputed and row["reviewer"] != "Ганна":
            return {"verdict": other(said), "comment": "хм"}
        if item == edited:
            return {"verdict": said, "edited": "Ці праўда, што ўсё гэта адбылося менавіта тут?"}
        verdicts = {turned: other(said), unclear: "UNCLEAR", bad: "BAD_LANGUAGE"}
        return {"verdict": verdicts.get(item, said)}

    return fill


def test_from_sampled_to_evaluated(reviewed: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """Two reviewers, a third for their dispute, a frozen set that pytest runs, and one table."""
    work, answers = reviewed.path / "work", answers_of(reviewed.path / "work")
    shared = shared_items(reviewed)
    files = back_from_both(reviewed, at_odds(answers, shared))
    assert reviewed.build("accept", files[0]) == 1, "the other half is not back"
    assert reviewed.build("accept", files[1]) == 1, "one item is in dispute"
    said = capsys.readouterr().err
    assert "agreement, all: 10 items seen by several, equal verdicts 0.900" in said
    assert re.search("1 items are in dispute(?s:.*)run accept with that person's file", said)
    assert reviewed.build("freeze", "--to", str(reviewed.path / "mine")) == 1, "not before"
    third = sent_back(
        work / "review" / "be-disputes.csv",
        reviewed.path / "third.csv",
        lambda _, row: {"verdict": answers[row["item"]], "reviewer": "Алесь"},
    )
    assert reviewed.build("accept", str(third)) == 0
    to = reviewed.path / "mine"
    assert reviewed.build("freeze", "--to", str(to), "--splits", "train=0.5,test=0.5") == 0

    final = funnel_adds_up(work, ALL_STEPS)["final"]
    assert final["dropped at accept: unclear"] == final["dropped at accept: bad_language"] == 1
    kept = {row["id"]: row for row in rows(work, "accept")}
    disputed, turned, edited = (kept[item] for item in shared[:3])
    assert disputed["state"] == "kept"
    assert turned["answer"] == other(answers[turned["id"]])
    assert turned["review"]["answer_before"] == answers[turned["id"]]
    assert edited["question"].startswith("Ці праўда, што ўсё")
    assert main(["check", "--strict", str(to)]) == 0
    runs_and_compares(reviewed, to, capsys)


def run_pytest(folder: Path, *words: str) -> int:
    """Run pytest in a process of its own, where nothing but the plugin is set up."""
    (folder / "pytest.ini").write_text(INI, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "--gates", "off", *words]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True).returncode


def runs_and_compares(made: Site, to: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Run pytest on the frozen set and hold the builder's table against the run's own figures."""
    with loopback(handler=every_third_wrong(WORDS)) as server:
        spec = f"openai:tested@{server.url}/v1"
        assert run_pytest(made.path, "--model", spec, "mine") == 1, "some answers are wrong"
    folder = made.path / "reports" / "out"
    ids = [row["id"] for row in frozen_rows(to / "be.jsonl")]
    predictions = made.path / "encoder.csv"
    predictions.write_text("id,answer\n" + "".join(f"{one},Так\n" for one in ids), "utf-8")
    words = ["--run", f"tested={folder}", "--predictions", f"encoder={predictions}"]
    capsys.readouterr()
    assert made.build("evaluate", *words) == 0
    assert "| tested | " in capsys.readouterr().out
    table = json.loads((made.path / "work/evaluation/models.json").read_text("utf-8"))
    tested, encoder = table["models"]
    (own,) = json.loads((folder / "run.json").read_text("utf-8"))["slices"]
    for name, figure in tested["measures"].items():
        told = own["measures"][name]
        assert {key: told[key] for key in ("value", "low", "high", "n")} == figure, name
    assert encoder["measures"]["recall"]["value"] == 1
    assert encoder["measures"]["accuracy"]["value"] == 0.5, "half of the answers are yes"
    errors = (made.path / "work/evaluation/errors.csv").read_text("utf-8-sig")
    assert errors.startswith("id,missed_by,of_models,source,length,question_type,question,passage")


def frozen_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_frozen_set_is_balanced_split_and_the_same_again(reviewed: Site) -> None:
    """Half yes and half no in every source and split, no article twice; the same bytes again."""
    work, answers = reviewed.path / "work", answers_of(reviewed.path / "work")
    files = back_from_both(reviewed, agreeing(answers))
    assert reviewed.build("accept", *files) == 0
    to = reviewed.path / "mine"
    words = ["freeze", "--to", str(to), "--splits", "train=0.5,test=0.5"]
    assert reviewed.build(*words) == 0
    made = {path.name: path.read_bytes() for path in to.iterdir()}
    (work / "freeze.jsonl").unlink()
    (to / "README.md").unlink()
    assert reviewed.build(*words) == 0
    assert {path.name: path.read_bytes() for path in to.iterdir()} == made
    found = frozen_rows(to / "be.jsonl")
    for source in ("encyclopaedia", "news"):
        for split in ("train", "test"):
            said = [r["answer"] for r in found if (r["source"], r["split"]) == (source, split)]
            assert said.count("Так") == said.count("Не") > 0
    assert len({row["url"] for row in found}) == len(found)
    parts = [*frozen_rows(to / "be.train.jsonl"), *frozen_rows(to / "be.test.jsonl")]
    assert sorted(row["id"] for row in parts) == [row["id"] for row in found]
    sheet = (to / "README.md").read_text("utf-8")
    assert "CC BY-SA 4.0" in sheet
    assert "127.0.0.1" not in sheet + (to / "be.jsonl").read_text("utf-8"), "no server's address"
    assert "Ганна" not in sheet + (to / "be.jsonl").read_text("utf-8"), "no person's name"


@pytest.mark.skipif(not ENTAILMENT.is_file(), reason="the shared data is not here")
def test_models_are_compared_on_real_sentences(tmp_path: Path) -> None:
    """A file of human-written pairs is evaluated as it stands; always yes finds every yes."""
    data = json.loads(ENTAILMENT.read_text("utf-8"))
    always = tmp_path / "always.jsonl"
    lines = (json.dumps({"id": row["id"], "answer": "Так"}) for row in data)
    always.write_text("\n".join(lines), encoding="utf-8")
    words = ["--data", str(ENTAILMENT), "--predictions", f"always={always}"]
    out = ["--out", str(tmp_path / "out")]
    folder = ["--folder", str(tmp_path / "work")]
    assert main(["build", "boolq", "evaluate", "--language", "be", *words, *out, *folder]) == 0
    (always_yes,) = json.loads((tmp_path / "out" / "models.json").read_text("utf-8"))["models"]
    measures = always_yes["measures"]
    yes = sum(row["answer"] == "Так" for row in data)
    assert measures["recall"]["value"] == 1
    assert measures["precision"]["value"] == measures["accuracy"]["value"] == yes / len(data)
    assert not (tmp_path / "work").exists()


def test_english_goes_the_same_way(tmp_path: Path) -> None:
    """Without reviewers, when that is said, the second language is frozen and checked too."""
    with site(tmp_path, models(), articles=5) as made:
        source = write_news(tmp_path / "en.jsonl", 60, text=english_paragraph)
        words = ["--source", f"news={source}", "--count", "news=20", *made.writer, *made.checker]
        assert made.build(*words, "--language", "en") == 0
        assert made.build("review", "--share", "0", "--language", "en") == 0
        assert made.build("accept", "--language", "en") == 0
        to = tmp_path / "english"
        assert made.build("freeze", "--to", str(to), "--language", "en") == 0
    funnel_adds_up(tmp_path / "work", ALL_STEPS)
    found = frozen_rows(to / "en.jsonl")
    assert [row["answer"] for row in found].count("Yes") == len(found) / 2 == 10
    assert main(["check", str(to)]) == 0
    sheet = (to / "README.md").read_text("utf-8")
    assert "No person has looked at these items" in sheet
    assert "shown to people" not in sheet
    assert "20 of 20 items were seen by no person" in sheet
