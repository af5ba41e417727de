"""Labels by single keys: the words of the page, kept at once, taken back with b."""

import io
import json
import os
import pty
from collections.abc import Iterator
from pathlib import Path

import pytest

from qagate.command import main
from qagate.evaluators.core import CORRECT, INCORRECT
from qagate.reports.extras.label.terminal import TerminalLabels, read_key
from tests.support.fixtures import Captured, Patch
from tests.support.labelling import LabelProject, by_its_letter
from tests.support.made_runs import answered

KEYS = {CORRECT: "c", INCORRECT: "i", "NOT_ATTEMPTED": "n"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: Patch) -> LabelProject:
    monkeypatch.chdir(tmp_path)
    return LabelProject(tmp_path)


def typed(monkeypatch: Patch, keys: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(keys))


def right_keys(project: LabelProject, letters: str) -> str:
    """Return the keys that label the answers of a run as they are, in the order shown."""
    labelling = project.labelling(answered(letters))
    return "".join(
        KEYS[by_its_letter(labelling.by_id[item.id].record)]
        for item in labelling.sheet().items
    )


def test_keys_label_and_the_labelled_set_is_written(
    project: LabelProject, monkeypatch: Patch, capsys: Captured
) -> None:
    run = project.graded("ci")
    typed(monkeypatch, right_keys(project, "ci"))
    assert main(["label", str(run), "--terminal", "--name", "Anna"]) == 0
    out = capsys.readouterr().out
    assert "0 of 2 labels; still needed: 1 × Correct, 1 × Incorrect" in out
    assert "[c] Correct  [i] Incorrect  [n] Not attempted  [u] Unclear" in out
    assert "There is nothing more to label here." in out
    assert "labels by Anna 2" in out
    assert project.labels.is_file()


def test_what_was_labelled_is_kept_and_the_command_goes_on(
    project: LabelProject, monkeypatch: Patch, capsys: Captured
) -> None:
    run = project.graded("cicici")
    keys = right_keys(project, "cicici")
    words = ["label", str(run), "--terminal", "--name", "Anna", "--to", "mine"]
    typed(monkeypatch, f"{keys[:2]}q")
    assert main(words) == 6
    kept = json.loads((run / "label.Anna.json").read_text("utf-8"))
    assert len(kept["rows"]) == 2
    assert "2 of 6 labels" in capsys.readouterr().out


def test_a_file_of_the_terminal_resumes(
    project: LabelProject, monkeypatch: Patch, capsys: Captured
) -> None:
    """What was kept before the labels were taken in counts as said."""
    run = project.graded("cici")
    sheet = project.labelling(answered("cici")).sheet()
    row = {"item": sheet.items[0].id, "verdict": CORRECT, "edited": "", "comment": ""}
    saved = {"sheet": sheet.digest, "reviewer": "Anna", "rows": [row]}
    (run / "label.Anna.json").write_text(json.dumps(saved), encoding="utf-8")
    typed(monkeypatch, "q")
    main(["label", str(run), "--terminal", "--name", "Anna"])
    assert "1 of 4 labels" in capsys.readouterr().out


def test_no_label_writes_nothing(
    project: LabelProject, monkeypatch: Patch, capsys: Captured
) -> None:
    typed(monkeypatch, "")
    run = project.graded("ci")
    assert main(["label", str(run), "--terminal", "--name", "Anna"]) == 6
    assert "no label was given" in capsys.readouterr().out
    assert not project.labels.exists()


def test_a_name_that_looks_like_another_is_refused(
    project: LabelProject, capsys: Captured
) -> None:
    run = project.graded("ci")
    assert main(["label", str(run), "--terminal", "--name", "An\u200bna"]) == 4
    assert "hidden or odd characters" in capsys.readouterr().err


def labels_by(project: LabelProject, letters: str, keys: str) -> dict[str, str]:
    verdicts: dict[str, str] = {}
    typing: Iterator[str] = iter(keys)
    terminal = TerminalLabels(project.sheet(answered(letters)), verdicts)
    terminal.run(lambda: next(typing, ""), io.StringIO(), lambda: None)
    return verdicts


def test_a_key_takes_the_last_label_back(project: LabelProject) -> None:
    assert list(labels_by(project, "ci", "cbii").values()) == [INCORRECT, INCORRECT]


def test_other_keys_do_nothing(project: LabelProject) -> None:
    """There is nothing to take back at first, and x is no label."""
    assert list(labels_by(project, "ci", "bx?Cq").values()) == [CORRECT]


def test_spare_answers_are_asked_until_each_class_has_enough(
    project: LabelProject,
) -> None:
    """All of the first thirty are called incorrect: one correct one is found among the spare."""
    letters = "c" * 40 + "i"
    verdicts = labels_by(project, letters, "i" * 31 + "c" * 30)
    assert len(verdicts) == 41


def test_rules_are_shown_on_request(project: LabelProject) -> None:
    out = io.StringIO()
    keys = iter("?")
    terminal = TerminalLabels(project.sheet(answered("c")), {})
    terminal.run(lambda: next(keys, ""), out, lambda: None)
    assert '"Correct": it gives all that the question asks for' in out.getvalue()


def test_a_terminal_gives_a_key_without_enter() -> None:
    person, program = pty.openpty()
    with os.fdopen(program, "r", encoding="utf-8") as stream:
        os.write(person, b"c")
        assert read_key(stream) == "c"
    os.close(person)
