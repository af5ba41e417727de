"""Every row of the table of forms: a result as the tool writes it gets the right verdict."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.command import main
from qagate.reports.extras.decide.decisive import decisive_scores
from qagate.reports.extras.decide.foreign_run import Choice, ForeignRun
from qagate.reports.extras.decide.form_table import forms
from qagate.reports.extras.decide.imported_run import ImportedRun
from qagate.reports.extras.decide.reading import read_run
from qagate.reports.run.record import Record
from tests.extras.decide.written_results import NESTED_TABLE, WRITERS, Ending, written
from tests.support.fixtures import Captured

ITEMS = 120
RIGHT: tuple[Ending, ...] = ("right",)
WRONG: tuple[Ending, ...] = ("wrong",)
OLD: Sequence[Ending] = (*RIGHT * 96, *WRONG * 24)
"""80 % right."""
WORSE: Sequence[Ending] = (*WRONG * 30, *OLD[30:])
"""25 points less."""
BETTER: Sequence[Ending] = (*RIGHT * 110, *WRONG * 10)
BROKEN: Sequence[Ending] = ("right", "wrong", "judge broke", "call broke")


def exit_code(
    folder: Path, form: str, new: Sequence[Ending], old: Sequence[Ending]
) -> int:
    """Return how a decision over two results of this form ends."""
    new_path = written(form, folder / "new" / "result", new, "new")
    old_path = written(form, folder / "old" / "result", old, "old")
    to = folder / "out"
    return main(["decide", f"{new_path}", f"--baseline={old_path}", f"--to={to}"])


def records_of(run: ForeignRun) -> Sequence[Record]:
    tasks = decisive_scores([run], Choice())
    return ImportedRun(run=run, tasks=tasks, choice=Choice()).inputs(None).records


def test_every_form_of_the_table_is_tested_here() -> None:
    assert set(WRITERS) == {form.name for form in forms().values() if not form.instead}


@pytest.mark.parametrize("form", WRITERS)
def test_a_form_is_found_by_the_content_of_its_files(form: str, tmp_path: Path) -> None:
    path = written(form, tmp_path / "result", BROKEN, "new")
    assert read_run(path, "", Choice()).form == form


@pytest.mark.parametrize("form", WRITERS)
def test_what_has_no_grade_is_ungraded_in_every_form(form: str, tmp_path: Path) -> None:
    """Neither 0 nor right: a judge that broke, and a call that did, whatever stands beside."""
    run = read_run(written(form, tmp_path / "result", BROKEN, "new"), "", Choice())
    outcomes = [record.outcome for record in records_of(run)]
    assert outcomes == ["passed", "failed", "error", "error"]


@pytest.mark.parametrize("form", WRITERS)
def test_a_loss_fails_in_every_form(form: str, tmp_path: Path) -> None:
    assert exit_code(tmp_path, form, WORSE, OLD) == 1


@pytest.mark.slow
@pytest.mark.parametrize("form", WRITERS)
def test_a_gain_passes_in_every_form(form: str, tmp_path: Path) -> None:
    assert exit_code(tmp_path, form, BETTER, OLD) == 0


def breaking(endings: Sequence[Ending], broken: Sequence[int]) -> list[Ending]:
    """Return the endings with these items broken: every second one's judge, else its call."""
    result = list(endings)
    for place in broken:
        result[place] = "judge broke" if place % 2 else "call broke"
    return result


items = st.lists(st.integers(0, ITEMS - 1), max_size=60, unique=True)


@pytest.mark.slow
@pytest.mark.parametrize("form", WRITERS)
@settings(max_examples=6, deadline=None)
@given(broken_new=items, broken_old=items)
def test_no_failure_of_judges_or_calls_hides_a_loss(
    form: str,
    broken_new: list[int],
    broken_old: list[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A true loss of 25 points never ends in 0, on whichever side they fail."""
    folder = tmp_path_factory.mktemp("pair")
    new, old = breaking(WORSE, broken_new), breaking(OLD, broken_old)
    assert exit_code(folder, form, new, old) != 0


def test_an_unknown_tool_needs_no_reader(tmp_path: Path, capsys: Captured) -> None:
    """A list in an object, and a path to its scores."""
    new = NESTED_TABLE(tmp_path / "new", WORSE, "new")
    old = NESTED_TABLE(tmp_path / "old", OLD, "old")
    given = [f"{new}", f"--baseline={old}", f"--to={tmp_path / 'out'}"]
    assert main(["decide", *given]) == 4
    assert "say --column score=NAME, of id, evaluations" in capsys.readouterr().err
    assert main(["decide", *given, "--column=score=evaluations.right.value"]) == 1
