"""The tables at the end of a run: whole, readable, and never wider than the terminal."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from cases.dataset import Shards, Threshold
from evaluators.statistics.intervals import Estimate
from reports.plugin.finish import slice_lines
from reports.render import console
from reports.render.next_step import next_step
from reports.run.report import WARNING, Decision, TrendPoint
from tests.support.samples import full, gate, part, record, report
from tests.support.tables import tabled


@pytest.mark.parametrize("columns", [60, 100, 160])
def test_no_line_is_wider_than_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reasons are wrapped; slices and gates are there, -v adds a line for each value."""
    monkeypatch.setenv("COLUMNS", str(columns))
    made = full()
    made = replace(made, notes=("word " * 100,))
    lines = [*slice_lines(made.slices, breakdowns=True), *console.gates(made)]
    assert columns - 10 <= max(map(len, console.notes(made))) <= columns
    assert max(map(len, lines)) <= max(columns, 100)
    text = "\n".join(lines)
    assert all(one.name in text for one in made.slices)
    made = full()
    short, long = slice_lines(made.slices), slice_lines(made.slices, breakdowns=True)
    added = [line for line in long if line not in short]
    assert added
    assert all(" = " in line and "(n=" in line for line in added)


def test_no_text_steers_the_terminal() -> None:
    """Control sequences stay text; long notes are indented, no hyphen breaks a line."""
    share = {"correct": Estimate(value=1.0, low=0.2, high=1.0, n=1)}
    made = part("graded", (record(1),), {"correct": 1.0})
    made = replace(made, breakdowns={"topic": {"\x1b[31mred\nPASS": share}})
    text = "\n".join(slice_lines((made,), breakdowns=True))
    assert "red" in text
    assert "\x1b" not in text
    assert not any(line.startswith("PASS") for line in text.splitlines())
    lines = list(console.notes(report(notes=("word " * 60 + "one-two " * 40,))))
    assert max(map(len, lines)) <= console.WIDTH
    assert len(lines) > 2
    assert all(line.startswith("    ") for line in lines[1:])
    assert "one-two".join([""] * 41) == "".join(lines).replace(" ", "").partition("word" * 60)[2]


def test_what_touches_the_verdict_comes_first_and_whole() -> None:
    """All of it; then three notes, first those that say what to do, prices among the last."""
    prices = ("cost partly known: $1.00: no price for m", "prices of today", "1 row set aside")
    todo = ("few items; add items", "no words of de; add a file: FILE")
    urgent = tuple(f"{WARNING}item {number} " + "is ungraded " * 20 for number in range(4))
    lines = list(console.brief(report(notes=(*prices, *todo, *urgent))))
    text = " ".join(line.strip() for line in lines)
    assert text.startswith(" ".join(one.strip() for one in urgent))
    assert lines[-4:] == [
        *(f"note: {one}" for one in (*todo, prices[0])),
        "and 2 more notes: in summary.md, on the page, or with -v",
    ]
    assert len(list(console.brief(report(notes=prices)))) == 3


def test_commands_in_a_gates_reason_name_the_report() -> None:
    """Where the folder is known; RUN stands for it elsewhere."""
    open_ = gate("INCONCLUSIVE", reason="to read: qagate review RUN --baseline=old")
    made = report(decision=Decision(gates=(open_,), code=6, line=""))
    for folder, said in ((Path("a/new"), "a/new"), (None, "RUN")):
        text = " ".join(" ".join(console.gates(made, folder)).split())
        assert f"qagate review {said} --baseline=old" in text


def test_an_estimate_is_shown_with_its_interval() -> None:
    """An undefined measure says so; a figure without an interval stands alone."""
    assert Estimate(value=0.5, low=0.4, high=0.6, n=9).text() == "0.500 [0.400, 0.600]"
    assert Estimate(value=0.02, low=0.0041, high=0.1, n=9).text() == "0.020 [0.004, 0.100]"
    assert Estimate(value=0.005, low=0.00412, high=0.02, n=9).text() == "0.005 [0.00412, 0.020]"
    assert Estimate(value=0.5, low=None, high=None, n=9).text() == "0.500"
    assert Estimate(value=None, low=None, high=None, n=0).text() == "undefined"


CODES = {"GATES FAIL": 1, "INTERRUPTED": 2, "NOTHING GRADED": 4, "GATES PASS": 0, "SHARD": 0}


@tabled("line", "given", "step")
def test_the_command_that_goes_on(
    line: str, given: Mapping[str, str], step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each end but PASS names a command with the paths of this run; a path here is a short one."""
    monkeypatch.chdir(tmp_path)
    changed = Threshold(measure="drop", max=0.05)
    made = gate(
        given.get("state", "INCONCLUSIVE"),  # type: ignore[arg-type]
        reason=given.get("reason", ""),
        remedy=given.get("remedy", ""),
        anchored="anchored" in given,
        threshold=changed if "change" in given else Threshold(measure="correct", min=0.5),
    )
    gates = (made,) if given else ()
    missed = (record(1, outcome="failed", grade="INCORRECT"),)
    own = report(
        missed,
        decision=Decision(gates=gates, code=CODES.get(line.partition(";")[0], 6), line=line),
        run={"command": given.get("command", "pytest -n 8 cases/")},
        baseline=str(tmp_path / "reports" / "baselines" / "v1"),
        anchor="/far/v0",
        slices=(part("graded", missed, {"correct": 0.61}, partial="partial" in given),),
        shards=Shards(of=3, held=(1,)) if "shards" in given else None,
        trend=(TrendPoint(name="v7", started="", model="", slices={}),) if "trend" in given else (),
    )
    wanted = [f"next: {step}".replace("OUT/..", "reports").replace("OUT", "reports/out")]
    assert next_step(own, tmp_path / "reports" / "out") == (wanted if step else [])
