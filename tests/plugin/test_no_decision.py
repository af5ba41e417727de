"""No decision, no zero: whatever leaves a slice out, the session does not end in 0."""

import pytest

from tests.support.projects import BAR, INI, MODULE, Project, graded

RIGHT = "Sofia"


@pytest.fixture
def two(project: Project) -> Project:
    """Return two data sets that pass, one of them in two languages."""
    gates = {"en": BAR, "bg": BAR}
    project.dataset("one", {"en": [RIGHT] * 4, "bg": [RIGHT] * 4}, graded(gates))
    project.dataset("two", {"en": [RIGHT] * 4}, graded({"en": BAR}))
    project.write("pytest.ini", f"{INI}\nmarkers = slow: takes long\n")
    return project


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["qa", "-k", "one-en"],
        ["qa", "--deselect", "qa/two/test_two.py"],
        ["qa", "-p", "dropper"],
    ],
    ids=["keyword", "deselect", "plug-in"],
)
def test_a_filter_that_leaves_a_slice_out_is_no_pass(
    two: Project, words: list[str]
) -> None:
    """The line names a slice that was to decide."""
    two.write(
        "dropper.py",
        "def pytest_collection_modifyitems(items):\n"
        "    items[:] = [item for item in items if 'one-bg' not in item.name]\n",
    )
    result = two.run(*words)
    assert result.ret == 6
    assert "was run" in result.outlines[-1]


@pytest.mark.parametrize(
    "words",
    [
        ["qa/one"],
        ["qa", "--languages", "en"],
        ["qa", "-m", "one"],
        ["qa", "-m", "en and not slow"],
        ["qa", "--ignore=qa/two"],
        ["qa/two/test_two.py"],
    ],
)
def test_what_the_user_names_may_be_left_out(two: Project, words: list[str]) -> None:
    """Paths, languages and marks of ours say what the verdict is about."""
    assert two.run_in_process(*words).ret == 0


@pytest.mark.parametrize("mark", ["slow", "not one and slow"])
def test_a_mark_of_others_leaves_nothing_out_quietly(two: Project, mark: str) -> None:
    """No item has it, so no item is run; an option of ours asks for a verdict."""
    result = two.run_in_process("qa", "-m", mark, "--report-dir", "reports/out")
    assert result.ret == 6
    assert "NO ITEM SELECTED" in result.outlines[-1]


def test_without_an_option_of_ours_it_is_pytests_own_code(two: Project) -> None:
    """A suite may select other tests; one line says that nothing was decided."""
    result = two.run_in_process("qa", "-k", "nothing")
    assert result.ret == 5
    assert result.outlines[-1].startswith("no item selected: exit 5")


def test_other_tests_do_not_make_a_lost_selection_pass(two: Project) -> None:
    """Options of ours in ``addopts`` ask for a verdict in every session."""
    two.write(
        "pytest.ini", INI.replace("addopts =", "addopts = --report-dir=reports/out")
    )
    two.write("qa/test_plain.py", "def test_plain():\n    assert True\n")
    assert two.run("qa", "-k", "plain").ret == 6


@pytest.mark.slow
def test_no_hook_changes_the_code(two: Project) -> None:
    """Ours is set last."""
    wrong = ["Varna"] * 4
    two.dataset("two", {"en": wrong}, graded({"en": BAR}))
    two.write("qa/two/test_two.py", MODULE.format(name="two"))
    two.write(
        "conftest.py",
        "import pytest\n\n"
        "@pytest.hookimpl(trylast=True)\n"
        "def pytest_sessionfinish(session, exitstatus):\n"
        "    session.exitstatus = 0\n",
    )
    assert two.run("qa").ret == 1


def test_gates_off_with_nothing_graded_is_no_zero(project: Project) -> None:
    """There is nothing to look at."""
    project.dataset("one", {"en": [None] * 4 + [RIGHT]}, graded({"en": BAR}))
    result = project.run_in_process("qa", "--gates=off", "-k", "q1 or q2")
    assert result.ret == 6
    assert "NOTHING GRADED" in result.outlines[-1]


@pytest.mark.slow
@pytest.mark.parametrize("place", ["PYTEST_ADDOPTS", "ini"])
def test_what_is_accepted_counts_on_the_command_line_alone(
    two: Project, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """In a file or a variable nobody would have seen what it accepts."""
    if place == "ini":
        accepted = "addopts = --accept-changed slices=one:be"
        two.write("pytest.ini", INI.replace("addopts =", accepted))
    else:
        monkeypatch.setenv(place, "--accept-changed slices=one:be")
    result = two.run("qa")
    assert result.ret == 4
    assert "command line alone" in result.stderr.str()


@pytest.mark.slow
@pytest.mark.parametrize("value", ["slices=", "gate=1", "gates=", "all"])
def test_accepting_something_else_is_refused(two: Project, value: str) -> None:
    """It says what can be accepted."""
    result = two.run("qa", f"--accept-changed={value}")
    assert result.ret == 4
    assert "slices=NAMES or gates=HASH" in result.stderr.str()


def test_to_monitor_takes_a_baseline(two: Project) -> None:
    """It looks at the baseline's own model."""
    result = two.run("qa", "--monitor")
    assert result.ret == 4
    assert "give --baseline=PATH" in result.stderr.str()
