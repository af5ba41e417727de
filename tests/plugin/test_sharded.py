"""Runs of a part, with ``--shard`` or ``--limit``: what decides, and how often items are asked."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from cases.dataset import Shards
from evaluators.core import UsageError
from reports.__main__ import main
from tests.support.fixtures import Captured
from tests.support.projects import BAR, RIGHT, WRONG, Project, graded
from tests.support.run_options import options_of
from tests.support.tables import kept

YAML = graded({"en": BAR, "bg": BAR})


@pytest.fixture
def prepared(project: Project) -> Project:
    english = [*["Sofia"] * 9, "Varna"]
    project.dataset("capital", {"en": english, "bg": ["Sofia", "Sofia", None]}, YAML)
    return project


def run_json(folder: Path) -> dict[str, Any]:
    """Return a report's run.json without what differs between two runs over the same replies."""
    found = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return {**found, "run": None}


def sharded(project: Project, of: int, *options: str) -> list[pytest.RunResult]:
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


def test_a_missing_shard_is_named(project: Project, capsys: Captured) -> None:
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


PINNED = "sample: {limit: 1, seed: 4}\n"
BARRED = graded({"en": "correct: {min: 0.8}"})
LUCKY = 8  # the item, of the twenty, that --limit 1 --seed 4 draws


def lucky(project: Project, pinned: str = "") -> Project:
    """Return a project where one answer of twenty is right: the one that seed 4 draws."""
    answers = [RIGHT if number == LUCKY else WRONG for number in range(1, 21)]
    project.dataset("capital", {"en": answers}, BARRED + pinned)
    return project


def assert_named(project: Project, result: pytest.RunResult, *, pinned: bool) -> None:
    """The terminal and every report name the sample, whether it decides or not."""
    words = "1 of 20, seed 4"
    result.stdout.fnmatch_lines([f"WARNING: only a sample was asked: capital:en {words}*"])
    for name in ("summary.md", "gates.xml", "report.html"):
        assert words in project.text(name), name
    sample = project.only("slices")["sample"]
    assert sample == {"items": 1, "of": 20, "seed": 4, "pinned": pinned}


def test_a_lucky_sample_does_not_turn_fail_into_pass(project: Project) -> None:
    """All items FAIL; the one item that happens to be right ends 6, and says how to pin it."""
    lucky(project)
    assert project.run_in_process("qa").ret == 1
    sampled = project.run_in_process("--limit", "1", "--seed", "4", "qa")
    assert sampled.ret == 6
    assert "correct (run all 20 items)" in sampled.outlines[-1]
    assert_named(project, sampled, pinned=False)
    gate = project.only("gates")
    assert (gate["estimate"]["value"], gate["state"]) == (1.0, "INCONCLUSIVE")
    assert gate["reason"] == (
        "1 of 20 items, seed 4; pin `sample: {limit: 1, seed: 4}` in the data set or gates file "
        "to let them decide, or run all"
    )


@pytest.mark.parametrize("place", ["the data set", "a gates file"])
def test_the_pinned_sample_decides(project: Project, place: str) -> None:
    """It alone: another seed or another limit ends 6, and without --limit all items decide."""
    lucky(project, PINNED if place == "the data set" else "")
    gates = project.write("pinned.yaml", f"capital: {{{PINNED.strip()}}}\n")
    given = () if place == "the data set" else (f"--gates={gates}",)
    for limit, seed, code in (("1", "4", 0), ("1", "5", 6), ("2", "4", 6)):
        done = project.run_in_process(*given, "--limit", limit, "--seed", seed, "qa")
        assert done.ret == code
        if code == 0:
            assert_named(project, done, pinned=True)
    assert project.run_in_process(*given, "qa").ret == 1
    assert project.only("slices")["sample"] is None


def test_a_sample_counts_items(project: Project) -> None:
    """However often each is asked; one that leaves nothing out is none, and the slice decides."""
    lucky(project)
    for limit in ("20", "500"):
        assert project.run_in_process("--limit", limit, "qa").ret == 1
        assert project.only("slices")["sample"] is None
    project.run_in_process("--limit", "2", "--seed", "4", "--repeats", "3", "qa")
    found = project.only("slices")
    assert (found["sample"]["items"], found["sample"]["of"], found["whole"]) == (2, 20, 6)


@pytest.mark.parametrize("workers", [0, 2])
def test_the_first_items_decide_nothing(project: Project, workers: int) -> None:
    """--limit first:N asks the first rows, with all their repeats; neither a pin nor luck helps."""
    pinned = BARRED + "sample: {limit: 2, seed: 0}\n"
    project.dataset("capital", {"en": [RIGHT, RIGHT, WRONG]}, pinned)
    result = project.run_with(workers, "--limit", "first:2", "--repeats", "2", "qa")
    assert result.ret == 6
    keys = ["capital-en-q1", "capital-en-q1~r2", "capital-en-q2", "capital-en-q2~r2"]
    assert [one["key"] for one in project.records()] == keys
    gate = project.only("gates")
    assert (gate["estimate"]["value"], gate["state"]) == (1.0, "INCONCLUSIVE")
    assert "only a part of the slice was run" in gate["reason"]


WAVERING: str = kept(__file__, "wavering")
MODEL = ("--model", "python:wavering:answer@1", "--concurrency", "1")


@pytest.fixture
def capitals(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project of two items: one always right, the other only at the first try."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    gated(project, 2, "pass@3: {min: 0.4}, pass^3: {min: 0.1, max: 0.9}")
    project.write("wavering.py", WAVERING)
    return project


def gated(project: Project, items: int, gates: str) -> None:
    project.dataset("capital", {"en": [None] * items}, graded({"en": gates}))


def test_repeats_are_measured_gated_and_read_again(capitals: Project) -> None:
    """Each item counts once, of all repeats or fewer; so as a baseline, and counted anew."""
    more = (
        "pass@3: {min: 0.4}, pass^3: {min: 0.1, max: 0.9}, pass^2: {min: 0.4}, pass@2: {min: 0.4}"
    )
    gated(capitals, 2, more)
    options = ("qa", *MODEL, "--repeats", "3")
    done = capitals.run_in_process(*options)
    assert done.ret == 0, done.stdout.str()
    found = capitals.only("slices")["measures"]
    assert found["correct"]["n"] == 6
    values = {"pass@3": 1.0, "pass^3": 0.5, "pass@2": (1 + 2 / 3) / 2, "pass^2": 0.5}
    assert {name: found[name]["value"] for name in values} == pytest.approx(values)
    assert found["pass^3"]["n"] == 2
    assert found["pass^3"]["low"] < 0.5 < found["pass^3"]["high"]
    assert set(capitals.gate_states().values()) == {"PASS"}
    assert "pass^3" in capitals.text("report.html")
    capitals.out.rename(capitals.path / "base")
    done = capitals.run_in_process(*options, "--baseline=base")
    assert set(capitals.gate_states().values()) == {"PASS"}, done.stdout.str()
    assert done.ret == 6  # no gate holds a change
    for name, code in (("pass^2", 1), ("pass^", 4)):
        capitals.write("gates.yaml", f"capital: {{en: {{{name}: {{min: 0.99}}}}}}\n")
        assert main(["gate", "reports/out", "--gates", "gates.yaml"]) == code


def test_more_tries_than_were_made_decide_nothing(capitals: Project) -> None:
    """The gate says how many repeats it needs; without any there is nothing to measure."""
    done = capitals.run_in_process("qa", *MODEL, "--repeats", "2")
    assert done.ret == 6
    assert set(capitals.gate_states().values()) == {"INCONCLUSIVE"}
    assert "pass^3 needs --repeats 3" in done.stdout.str()
    assert "pass^2" in capitals.only("slices")["measures"]
    gated(capitals, 2, "correct: {min: 0.1}")
    assert capitals.run_in_process("qa", *MODEL).ret == 0
    assert not [name for name in capitals.only("slices")["measures"] if name.startswith("pass")]


def test_ungraded_tries_count_both_ways(capitals: Project) -> None:
    """One right, one at first, one an ERROR in the end: pass^2 is from 1/3 to (1 + 1/3) / 3."""
    gated(capitals, 3, "pass^3: {min: 0.1}")
    capitals.run_in_process("qa", *MODEL, "--repeats", "3")
    for gate, state in kept(__file__, "ungraded_tries_count_both_ways"):
        capitals.write("gates.yaml", f"capital: {{en: {gate}}}\n")
        main(["gate", "reports/out", "--gates", "gates.yaml", "--to", "counted"])
        gates = json.loads((capitals.path / "counted/run.json").read_text())["gates"]
        states = {one["measure"]: one["state"] for one in gates}
        assert states[gate[1:].partition(":")[0]] == state, gate
