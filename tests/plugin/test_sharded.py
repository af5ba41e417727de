"""Runs with ``--shard``: parts by a hash of the item, which decide nothing until all are merged."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cases.dataset import Shards
from reports.__main__ import main
from tests.support.projects import BAR, Project, graded

YAML = graded({"en": BAR, "bg": BAR})
ANSWERS: Mapping[str, Sequence[str | None]] = {
    "en": ["Sofia"] * 9 + ["Varna"],
    "bg": ["Sofia", "Sofia", None],
}


def prepared(project: Project) -> Project:
    """Return a project with ten English items and three Bulgarian ones."""
    project.dataset("capital", ANSWERS, YAML)
    return project


def run_json(folder: Path) -> dict[str, Any]:
    """Return a report's run.json without what differs between two runs over the same replies."""
    found: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    del found["run"]
    return found


def sharded(project: Project, of: int, *options: str) -> list[pytest.RunResult]:
    """Run every shard, each with a report folder of its own."""
    names = [f"{number}/{of}" for number in range(1, of + 1)]
    return [
        project.run_in_process("qa", "--shard", one, f"--report-dir=out-{one[0]}", *options)
        for one in names
    ]


def test_all_shards_merged_are_the_run(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """A complete one ends 0; no item is in two; merged they give the same files and code."""
    whole = prepared(project).run_in_process("qa", "--repeats", "2", "--report-dir=whole")
    done = sharded(project, 3, "--repeats", "2")
    assert [one.ret for one in done] == [6, 0, 0]
    assert done[1].outlines[-1].startswith("SHARD 2 of 3: exit 0; ")
    assert "shard 2 of 3: --concurrency 5" in done[1].outlines
    to = project.path / "merged"
    assert main(["merge", str(project.path / "out-*"), "--to", str(to)]) == whole.ret == 0
    files = [project.path / f"out-{n}" / "records.jsonl" for n in (1, 2, 3)]
    lines = [file.read_text(encoding="utf-8").splitlines() for file in files]
    assert sum(map(len, lines)) == len(set().union(*lines)) == 26
    assert run_json(to) == run_json(project.path / "whole")
    for name in ("records.jsonl", "results.csv", "capital-en-graded.csv"):
        assert (to / name).read_bytes() == (project.path / "whole" / name).read_bytes()
    assert "SHARD" not in capsys.readouterr().out


@pytest.mark.parametrize("workers", [0, 2])
def test_the_hash_decides_whatever_else_is_asked(project: Project, workers: int) -> None:
    """The same items, with workers and without, of a language alone, of a selection."""
    prepared(project)
    held = Shards(of=2, held=(2,))
    project.run_with(workers, "qa", "--shard", "2/2", "-k", "en", "--languages", "en")
    found = {str(one["id"]) for one in project.records()}
    project.run_in_process("qa", "--report-dir=all", "--limit", "99")
    every = run_json(project.path / "all")["counts"]["plan"]
    project.run_in_process("qa", "--shard", "2/2")
    both = project.records()
    assert every == 13
    assert found == {str(one["id"]) for one in both if one["language"] == "en"}
    assert 0 < len(found) < 10
    assert held.missing == (1,)


def test_a_missing_shard_is_named_and_leaves_the_run_inconclusive(
    project: Project, capsys: pytest.CaptureFixture[str]
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


def test_only_shards_of_one_split_are_merged(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """Shards of another number, or a whole run among them, are refused; so is an empty pattern."""
    prepared(project)
    sharded(project, 2)
    project.run_in_process("qa", "--shard", "1/3", "--report-dir=third")
    project.run_in_process("qa", "--report-dir=whole")
    first, to = str(project.path / "out-1"), str(project.path / "merged")
    for other in ("third", "whole"):
        assert main(["merge", first, str(project.path / other), "--to", to]) == 4
        assert "the runs differ in number of shards: '2'" in capsys.readouterr().err
    assert main(["merge", str(project.path / "no*"), "--to", to]) == 4
    assert "no report folder matches" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["9/8", "0/8", "2", "2/8/1", "-1/8", "a/b", "1/1000000"])
def test_a_shard_that_cannot_be_is_refused(project: Project, text: str) -> None:
    """In one line, before anything is read."""
    assert "--shard: K/N is needed" in prepared(project).refused("qa", f"--shard={text}")


def test_no_shard_is_asked_until_decided(project: Project) -> None:
    """It decides nothing, so nothing could end it."""
    line = prepared(project).refused("qa", "--shard", "1/2", "--until-decided")
    assert "a shard decides nothing" in line
