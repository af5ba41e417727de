"""Verdicts by people: only on what a sheet asked, by enough people, and said where they decide."""

import json
from pathlib import Path

import pytest

from qagate.cases.adjudication_files import save_adjudications
from qagate.command import main
from qagate.evaluators.adjudications import Adjudication
from qagate.evaluators.core import CORRECT, INCORRECT
from qagate.evaluators.kinds import kind_of
from qagate.reports.extras.sequential.human_review import Pick, issue_picks, pick
from qagate.reports.run.run_json import load_report
from tests.support.fixtures import Captured, Patch
from tests.support.made_records import make_record
from tests.support.made_runs import (
    answered,
    graded_slice,
    run_of,
    written,
)
from tests.support.projects import BAR, Project, graded
from tests.support.reviewing import IssuedRun, saved
from tests.support.tables import tabled


def ids(path: Path, sample: int = 99) -> list[str]:
    return [one.id for one in pick(load_report(path), sample)]


def reviewing(folder: Path, letters: str, sample: int) -> IssuedRun:
    run = written(run_of(answered(letters)), folder / "run")
    return IssuedRun(folder, run, "--sample", str(sample))


def test_no_sheet_no_verdict_is_taken(
    tmp_path: Path, capsys: Captured, monkeypatch: Patch
) -> None:
    """Neither a sheet that comes with the answers nor none at all will do: one line, exit 4."""
    monkeypatch.chdir(tmp_path)
    run = written(run_of(answered("cci")), tmp_path / "run")
    back = saved(tmp_path / "anna.json", "Anna", dict.fromkeys(ids(run), CORRECT))
    (tmp_path / "sheet.json").write_text(
        '{"sheets": ["x"], "items": {}}', encoding="utf-8"
    )
    words = ["review", "--accept", str(back), "--to", "adj.yaml"]
    assert main(words) == 4
    err = capsys.readouterr().err
    assert "reports/out/sheet.json: no sheet was issued there" in err
    assert err.count("\n") == 1
    (tmp_path / "sheet.json").write_text(
        '{"sheets": [1], "items": []}', encoding="utf-8"
    )
    assert main([*words, "--sheet", "sheet.json"]) == 4
    assert "not what `qagate review` writes" in capsys.readouterr().err


def test_items_that_nobody_was_shown_are_refused(
    tmp_path: Path, capsys: Captured
) -> None:
    """All of them are named, nothing is taken, no matter which sheet the file names."""
    made = reviewing(tmp_path, "cccii", 2)
    others = [one for one in ids(made.run) if one not in made.items]
    assert len(others) == 3
    capsys.readouterr()
    assert (
        made.accept(made.back("Anna", dict.fromkeys([*made.items, *others], CORRECT)))
        == 4
    )
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert all(one in err for one in others)
    assert not any(one in err for one in made.items)
    unissued = made.back("Anna", dict.fromkeys(made.items, CORRECT), "never-issued")
    assert made.accept(unissued, to=made.to) == 4
    assert "sheets that were not issued: 'never-issued'" in capsys.readouterr().err
    assert made.accept(made.back("Anna", dict.fromkeys(made.items, "10"))) == 4
    assert "'10' is no choice; there are CORRECT, INCORRECT" in capsys.readouterr().err
    assert not (tmp_path / "adjudications.yaml").exists()


def test_an_earlier_form_may_still_come_back(tmp_path: Path) -> None:
    """A new form in the same folder takes nothing back."""
    made = reviewing(tmp_path, "ccccc", 2)
    assert main(["review", str(made.run), "--sample", "2", "--seed", "7"]) == 0
    assert made.accept(made.back("Anna", dict.fromkeys(made.items, CORRECT))) == 0
    assert len(made.kept) == 2


def test_two_have_to_agree_that_a_miss_is_right(
    tmp_path: Path, capsys: Captured
) -> None:
    """One may say that the judge was too kind; a second is needed where it was too strict."""
    made = reviewing(tmp_path, "ci", 2)
    right, wrong = made.items
    anna = made.back("Anna", {right: INCORRECT, wrong: CORRECT})
    capsys.readouterr()
    assert made.accept(anna) == 6
    out = capsys.readouterr().out
    needed = "facts-en-i1: INCORRECT -> CORRECT (Anna): 2 reviewers must agree"
    assert f"waits for another reviewer: {needed}" in out
    assert "overrules the judge: facts-en-i0: CORRECT -> INCORRECT (Anna)" in out
    assert [one.item for one in made.kept] == ["facts-en-i0"]
    assert made.accept(anna, made.back("anna ", {wrong: CORRECT})) == 6, (
        "the same person"
    )
    jan = made.back("Jan", {wrong: CORRECT})
    capsys.readouterr()
    assert made.accept(anna, jan) == 0
    said = "overrules the judge: facts-en-i1: INCORRECT -> CORRECT (Anna, Jan)"
    assert said in capsys.readouterr().out
    assert len(made.kept) == 2


@pytest.mark.parametrize(("least", "taken"), [("1", 2), ("2", 0)])
def test_how_many_have_to_agree_can_be_said(
    tmp_path: Path, least: str, taken: int
) -> None:
    """--min-reviewers holds for every verdict, whichever way it goes."""
    made = reviewing(tmp_path, "ci", 2)
    right, wrong = made.items
    file = made.back("Anna", {right: INCORRECT, wrong: CORRECT})
    assert made.accept(file, more=("--min-reviewers", least)) == (0 if taken else 6)
    assert len(made.kept) == taken


@tabled("kind", "fields", "expected")
def test_what_would_let_a_miss_pass_is_known_of_every_kind(
    tmp_path: Path, kind: str, fields: dict[str, object], expected: list[str]
) -> None:
    """A grade, a rating from the pass bar on, the reading that the gold has."""
    part = graded_slice(kind=kind_of(kind), pass_bar=6, thresholds=())
    record = make_record(0, answer="x", outcome="failed", **fields)
    issue_picks(tmp_path, [Pick(record=record, part=part)])
    (item,) = json.loads((tmp_path / "sheet.json").read_text("utf-8"))["items"].values()
    assert (item["upgrades"], item["judged"]) == (expected, record.result)


def test_a_gate_that_people_alone_let_pass_is_named() -> None:
    """Counted without their verdicts it would not pass; one that stands without them is not."""
    people = answered("cccc", adjudicated_by="Anna")
    alone = run_of([*people, *answered("cccciiii")[4:]])
    assert alone.decision.code == 0
    assert (
        "WARNING: facts:en correct >= 0.5: passes only with 4 verdicts by people"
        in alone.notes
    )
    assert "passes only with 4 verdicts by people" in alone.decision.line
    sure = run_of([*people[:1], *answered("ccccccci")[1:]])
    assert sure.decision.code == 0
    assert not any("passes only with" in note for note in sure.notes)
    assert "passes only with" not in sure.decision.line


def test_a_session_says_where_people_decide(project: Project) -> None:
    """On the terminal, in the summary and on the page."""
    project.dataset("capital", {"en": ["Varna", "Varna", "Sofia"]}, graded({"en": BAR}))
    assert project.run_in_process("qa").ret == 1
    kept = {
        one.digest: Adjudication(
            item=one.id, digest=one.digest, label=CORRECT, name="A, B"
        )
        for one in pick(load_report(project.out), 99)
        if one.record.outcome == "failed"
    }
    save_adjudications(kept, project.path / "people.yaml")
    result = project.run_in_process("--adjudications", "people.yaml", "qa")
    assert result.ret == 0
    said = "WARNING: capital:en correct >= 0.5: passes only with 2 verdicts by people"
    for text in (
        result.stdout.str(),
        *map(project.text, ("summary.md", "report.html")),
    ):
        assert said in " ".join(text.replace("&gt;", ">").replace("\\", "").split())
