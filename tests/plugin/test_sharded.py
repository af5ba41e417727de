"""Runs with ``--shard``: parts by a hash of the item, which decide nothing until all are merged."""

import json
from pathlib import Path
from typing import Any

import pytest

from cases.dataset import Shards
from evaluators.core import UsageError
from reports.__main__ import main
from tests.support.captured import Captured
from tests.support.projects import BAR, Project, graded
from tests.support.run_options import options_of

YAML = graded({"en": BAR, "bg": BAR})


@pytest.fixture
def prepared(project: Project) -> Project:
    """Return a project with ten English items and three Bulgarian ones."""
    english = [*["Sofia"] * 9, "Varna"]
    project.dataset("capital", {"en": english, "bg": ["Sofia", "Sofia", None]}, YAML)
    return project


def run_json(folder: Path) -> dict[str, Any]:
    """Return a report's run.json without what differs between two runs over the same replies."""
    found = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return {**found, "run": None}


def sharded(project: Project, of: int, *options: str) -> list[pytest.RunResult]:
    """Run every shard, each with a report folder of its own."""
    names = [f"{number}/{of}" for number in range(1, of + 1)]
    return [
        project.run_in_process("qa", "--shard", one, f"--report-dir=out-{one[0]}", *options)
        for one in names
    ]


def test_all_shards_merged_are_the_run(prepared: Project, capsys: Captured) -> None:
    """A complete one ends 0; no item is in two; merged they give the same files and code."""
    path = prepared.path
    whole = prepared.run_in_process("qa", "--repeats", "2", "--report-dir=whole")
    done = sharded(prepared, 3, "--repeats", "2")
    assert [one.ret for one in done] == [6, 0, 0]
    assert done[1].outlines[-1].startswith("SHARD 2 of 3: exit 0; ")
    assert "shard 2 of 3: --concurrency 5" in done[1].outlines
    assert main(["merge", str(path / "out-*"), "--to", str(path / "merged")]) == whole.ret == 0
    files = [path / f"out-{n}" / "records.jsonl" for n in (1, 2, 3)]
    lines = [file.read_text(encoding="utf-8").splitlines() for file in files]
    assert sum(map(len, lines)) == len(set().union(*lines)) == 26
    assert run_json(path / "merged") == run_json(path / "whole")
    for name in ("records.jsonl", "results.csv", "capital-en-graded.csv"):
        assert (path / "merged" / name).read_bytes() == (path / "whole" / name).read_bytes()
    assert "SHARD" not in capsys.readouterr().out


@pytest.mark.parametrize("workers", [0, 2])
def test_the_hash_decides_whatever_else_is_asked(prepared: Project, workers: int) -> None:
    """The same items, with workers and without, of a language alone, of a selection."""
    prepared.run_with(workers, "qa", "--shard", "2/2", "-k", "en", "--languages", "en")
    found = {str(one["id"]) for one in prepared.records()}
    prepared.run_in_process("qa", "--shard", "2/2")
    english = {str(one["id"]) for one in prepared.records() if one["language"] == "en"}
    assert found == english
    assert 0 < len(found) < 10
    assert Shards(of=2, held=(2,)).missing == (1,)


def test_a_missing_shard_is_named_and_leaves_the_run_inconclusive(
    project: Project, capsys: Captured
) -> None:
    """Also where it alone held a slice, and where it held no item at all."""
    project.dataset("capital", {"en": ["Sofia"] * 3, "bg": ["Sofia"]}, YAML)
    done = sharded(project, 5)
    assert any("0 of 0 items" in one.outlines[-1] for one in done)
    assert {one.ret for one in done} == {0}
    folders = [str(project.path / f"out-{number}") for number in range(1, 6)]
    to = str(project.path / "merged")
    assert main(["merge", *folders, "--to", to]) == 0
    for number, folder in enumerate(folders, start=1):
        left = [one for one in folders if one != folder]
        capsys.readouterr()
        assert main(["merge", *left, "--to", to]) == 6
        said = capsys.readouterr().out.splitlines()[-1]
        assert said.startswith(f"SHARD {number} of 5 MISSING: exit 6; ")
    assert main(["gate", folders[0]]) == 6


def test_only_shards_of_one_split_are_merged(prepared: Project, capsys: Captured) -> None:
    """Shards of another number, or a whole run among them, are refused; so is an empty pattern."""
    for words in (["--shard=1/2"], ["--shard=1/3"], []):
        prepared.run_in_process("qa", *words, f"--report-dir={''.join(words)[-1:] or 'whole'}")
    first, to = str(prepared.path / "2"), str(prepared.path / "merged")
    for other in ("3", "whole"):
        assert main(["merge", first, str(prepared.path / other), "--to", to]) == 4
        assert "the runs differ in number of shards: '2'" in capsys.readouterr().err
    assert main(["merge", str(prepared.path / "no*"), "--to", to]) == 4
    assert "no report folder matches" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["9/8", "0/8", "2", "2/8/1", "-1/8", "a/b", "1/1000000"])
def test_a_shard_that_cannot_be_is_refused(text: str) -> None:
    """In one line, before anything is read; nor can one that decides nothing be decided."""
    with pytest.raises(UsageError, match="--shard: K/N is needed"):
        options_of(f"--shard={text}")
    with pytest.raises(UsageError, match="a shard decides nothing"):
        options_of("--shard=1/2", "--until-decided")
