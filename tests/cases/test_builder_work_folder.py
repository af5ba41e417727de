"""The work folder is read strictly, and so are recipes; the budget holds for all steps."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from cases.builder.recipe import load_recipe
from cases.builder.steps import ModelCalls, StepCalls
from cases.builder.work_folder import BuildError, WorkFolder, drop_failed, from_row, locked, to_row
from evaluators.core import Model, Reply, StoppedError, UsageError
from evaluators.models.spec import Prices, build
from reports.commands.build import read_options
from tests.support.building import make_item
from tests.support.loopback import loopback, plausible
from tests.support.scripted import ask_for
from tests.support.tables import tabled

BE = Path(__file__).parents[2] / "cases/builder/recipes/boolq.be.yaml"
ITEMS = [make_item(1), make_item(2, state="dropped", reason="length", batch=("a", "b"))]


def published(path: Path) -> WorkFolder:
    folder = WorkFolder(path)
    folder.publish("sample", ITEMS, {"seed": 1}, "")
    return folder


@pytest.mark.parametrize(
    "row", ["[]", "{", '{"id": "x"}', '{"id": "x", "origin": {}}', "state", '{"unknown": 1}']
)
def test_a_row_that_is_none_is_named(tmp_path: Path, row: str) -> None:
    """File and line are in the message."""
    if row == "state":
        row = json.dumps({**to_row(ITEMS[0]), "state": "odd"})
    (tmp_path / "check.jsonl").write_text(f"{{}}\n{json.dumps(to_row(ITEMS[0]))}\n{row}\n", "utf-8")
    with pytest.raises(UsageError, match=r"check\.jsonl:3: "):
        WorkFolder(tmp_path).read("check")


def test_ids_are_ascii_and_follow_the_article() -> None:
    """A file that was moved gives the same ids; another page gives another."""
    origin = ITEMS[0].origin
    moved = replace(origin, source="/elsewhere/news.jsonl")
    assert origin.item_id("be") == moved.item_id("be")
    assert origin.item_id("be").isascii()
    assert origin.item_id("be") != replace(origin, page="x").item_id("be")
    assert from_row(to_row(ITEMS[1])) == ITEMS[1]


@tabled("old", "new", "message")
def test_a_recipe_is_read_strictly(tmp_path: Path, old: str, new: str, message: str) -> None:
    """A mistake in a language's file is named with its key, before anything is done."""
    path = tmp_path / "boolq.be.yaml"
    text = BE.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    if not message:
        assert load_recipe(path).labels["YES"] == "Можа"
        return
    with pytest.raises(UsageError, match=message.replace("{", r"\{")):
        load_recipe(path)


def test_what_a_recipe_leaves_out_is_the_bundled_ones(tmp_path: Path) -> None:
    """A recipe of three lines has the prompts, versions and rules of its language.

    Without forms of questions it is refused: nothing could be told from an open question.
    """
    path = tmp_path / "mine.yaml"
    path.write_text("language: be\nquestion: {shortest: 15}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="give patterns of yes/no questions"):
        load_recipe(path)
    path.write_text("language: be\nbuild: {seed: 7, splits: {dev: 0.2, test: 0.8}}\n", "utf-8")
    mine, bundled = load_recipe(path), load_recipe(BE)
    assert (mine.build.seed, mine.build.splits) == (7, {"dev": 0.2, "test": 0.8})
    assert replace(mine, path=BE, build=bundled.build) == bundled


def test_the_budget_holds_for_all_steps_together(tmp_path: Path) -> None:
    """Money spent in one step is missing in the next."""
    said: list[str] = []

    async def one(model: Model, calls: StepCalls) -> Reply | Exception:
        (found,) = await calls.ask_all("one", [lambda ask: ask(model, ask_for(f"{len(said)}"))])
        await asyncio.sleep(0)
        return found

    with loopback(handler=plausible()) as server:
        made = build("openai", "x", f"{server.url}/v1", "openai:x")
        spec = replace(made, prices=Prices(input=0, output=1000), parameters={"max_tokens": 5})
        words = ["boolq", "--language", "be", "--ledger", str(tmp_path / "ledger")]
        options = read_options([*words, "--max-cost", "0.008"])
        calls = ModelCalls(options, [spec], said.append)
        assert isinstance(calls.run("first", spec, one), Reply)
        assert isinstance(calls.run("second", spec, one), StoppedError)
        assert server.count == 1
    assert any("1 requests sent for $0.0050" in line for line in said)


def test_a_folder_that_cannot_be_had(tmp_path: Path) -> None:
    """The message names the folder, whatever stands in its way; one command at a time has it."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(BuildError, match=r"file.*cannot be written"):
        WorkFolder(tmp_path / "file" / "work")
    with pytest.raises(BuildError, match="cannot be written"), locked(tmp_path / "file"):
        pass
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "lock").write_bytes(b"no database" * 200)
    with pytest.raises(BuildError, match="no lock"), locked(tmp_path / "work"):
        pass
    with locked(tmp_path):
        second = locked(tmp_path)
        with pytest.raises(BuildError, match="another command is at work there"):
            second.__enter__()
    with locked(tmp_path):
        pass


def test_a_fault_of_the_whole_command_leaves_nothing_out() -> None:
    """A wrong key, no budget, or not one call that worked: all of it waits for the next run."""
    late = make_item(1, state="pending", reason="timeout")
    keyless = make_item(2, state="pending", reason="auth")
    assert drop_failed([late]) == [late]
    dropped, kept, waiting = drop_failed([late, make_item(3), keyless])
    assert (dropped.state, dropped.reason) == ("dropped", "failed_timeout")
    assert kept.state == "kept"
    assert waiting == keyless
