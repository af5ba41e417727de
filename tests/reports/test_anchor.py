"""Claims about the anchor: a fixed earlier run that paired gates must pass against as well."""

from dataclasses import replace
from pathlib import Path

import pytest

from cases.dataset import Threshold
from reports.__main__ import main
from reports.run.report import Report
from reports.verdict.recount import rebuilt
from tests.support.made_runs import answered, before, facts_dataset, graded_slice, run_of, written
from tests.support.samples import rendered

DROP = Threshold(measure="drop", max=0.05, evidence="estimate", fail="zero")
DROPS = facts_dataset(
    graded_slice("en", DROP), graded_slice("bg", DROP), pooled=(replace(DROP, pool=True),)
)
FIRST, SECOND, THIRD = ("c" * (200 - lost) + "i" * lost for lost in (0, 8, 16))


def run(letters: str) -> Report:
    """Return a run of 200 items in each of two languages."""
    return run_of([*answered(letters), *answered(letters, "bg")], DROPS)


def against(letters: str, baseline: Report | None, anchor: Report | None) -> Report:
    """Return such a run compared with a baseline, an anchor or both."""
    fixed = replace(before(anchor, "anchor"), role="anchor") if anchor else None
    return rebuilt(run(letters), before(baseline) if baseline else None, fixed)


def states(report: Report) -> list[tuple[str, str]]:
    """Return the name and the state of each gate."""
    return [(f"{gate.slice} {gate.name}", gate.state) for gate in report.decision.gates]


def test_an_erosion_that_each_release_passes_fails_against_the_anchor() -> None:
    """Two drops of 0.04 are within 0.05 each and beyond it together; both gates must pass."""
    assert against(SECOND, run(FIRST), None).decision.code == 0
    assert against(THIRD, run(SECOND), None).decision.code == 0
    made = against(THIRD, run(SECOND), run(FIRST))
    assert made.decision.code == 1
    scopes = ("facts:en", "facts:bg", "facts:*")
    ends = (("drop", "PASS"), ("drop (anchor)", "FAIL"))
    assert states(made) == [(f"{one} {name}", state) for name, state in ends for one in scopes]


def test_the_comparison_with_the_anchor_is_said_and_single_items_are_the_baselines() -> None:
    """A note and summary.md have its differences; flips are those to the baseline."""
    made = against(THIRD, run(SECOND), run(FIRST))
    assert made.comparison is not None
    assert made.since_anchor is not None
    assert [one.broke for one in made.comparison.slices] == [8, 8, 16]
    assert [one.broke for one in made.since_anchor.slices] == [16, 16, 32]
    assert sum(one.flip == "broke" for one in made.comparison.changes) == 16
    assert made.since_anchor.changes == ()
    (note,) = (note for note in made.notes if "anchor" in note)
    assert note.startswith("new - old since the anchor: facts:en -0.080 [")
    files = rendered(made)
    assert "<summary>Compared with the anchor (" in files["summary.md"]
    for name in ("summary.md", "gates.xml", "report.html", "run.json"):
        assert "drop (anchor)" in files[name] or '"anchored": true' in files[name], name


def test_an_anchor_alone_decides_the_paired_gates() -> None:
    """Without a baseline each is decided once, and no item is compared one by one."""
    made = against(THIRD, None, run(FIRST))
    assert [name for name, _ in states(made)] == [
        "facts:en drop (anchor)",
        "facts:bg drop (anchor)",
        "facts:* drop (anchor)",
    ]
    assert (made.decision.code, made.comparison, made.baseline) == (1, None, "")
    assert not any("no baseline" in note for note in made.notes)


def test_an_anchor_is_held_to_what_a_baseline_is_held_to() -> None:
    """Cut short, it decides nothing, and the reason names it."""
    broken = replace(run(FIRST), complete=False)
    gate = against(SECOND, run(FIRST), broken).decision.gates[-1]
    assert (gate.name, gate.state) == ("drop (anchor)", "INCONCLUSIVE")
    assert gate.reason == "the anchor was cut short; compare with a complete run"


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    """Return the report folders of three releases."""
    made = {"first": FIRST, "second": SECOND, "third": THIRD}
    return {name: written(run(letters), tmp_path / name) for name, letters in made.items()}


def test_recorded_runs_are_decided_again_against_an_anchor(
    folders: dict[str, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """gate, merge and compare take --anchor; later it is read from where the run has it."""
    third, second, first = (str(folders[name]) for name in ("third", "second", "first"))
    both = [f"--baseline={second}", f"--anchor={first}"]
    assert main(["gate", third, both[0]]) == 0
    to = str(tmp_path / "anchored")
    assert main(["gate", third, *both, f"--to={to}"]) == 1
    assert "drop (anchor)" in capsys.readouterr().out
    assert main(["gate", to]) == 1
    assert main(["merge", to, "--to", str(tmp_path / "merged")]) == 1
    assert main(["merge", third, both[1], "--to", str(tmp_path / "merged")]) == 1
    capsys.readouterr()
    assert main(["compare", second, third, both[1]]) == 0
    said = capsys.readouterr().out
    assert said.count("slice            ") == 2
    assert "anchor: openai:new" in said


def test_an_anchor_that_is_gone_is_an_error(
    folders: dict[str, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Without it a failed run would pass."""
    to = str(tmp_path / "anchored")
    main(["gate", str(folders["third"]), f"--anchor={folders['first']}", f"--to={to}"])
    folders["first"].rename(tmp_path / "elsewhere")
    capsys.readouterr()
    assert main(["gate", to]) == 4
    assert "or say where with --anchor=RUN" in capsys.readouterr().err
