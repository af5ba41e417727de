"""What a user sees and gets from a run, and every row of the exit-code table.

One finished run in each of three modes (plain, ``-n 0``, ``-n 2``) serves all claims about it.
"""

import json
import shutil
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from qagate.command import main
from tests.support.fixtures import Patch
from tests.support.projects import (
    BAR,
    MODES,
    MODULE,
    RIGHT,
    WRONG,
    Project,
    graded,
    new_project,
)
from tests.support.tables import kept

pytestmark = pytest.mark.untraced
PROMPT = 'name: answer\nlanguage: en\nversion: "1"\nuser: "{question}"\n'
TWO_LANGUAGES: str = kept(__file__, "two_languages")


def capitals_in(project: Project) -> Project:
    english = [RIGHT, RIGHT, WRONG, "I don't know.", RIGHT, RIGHT]
    project.dataset(
        "capital", {"en": english, "bg": [RIGHT, RIGHT, WRONG]}, TWO_LANGUAGES
    )
    return project


@pytest.fixture
def capitals(project: Project) -> Project:
    return capitals_in(project)


class Finished(NamedTuple):
    """A run that has ended, and the project in which it left its files."""

    result: pytest.RunResult
    project: Project


@pytest.fixture(scope="module")
def finished_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Finished]:
    """Return a run of eleven items, one of which cannot be judged, in each mode; read only."""
    found = {}
    for name, options in MODES.items():
        project = capitals_in(new_project(tmp_path_factory.mktemp(name)))
        project.dataset("river", {"en": [RIGHT, None]})
        result = project.run_in_process(*options, "--junitxml=items.xml", "qa")
        found[name] = Finished(result, project)
    return found


@pytest.fixture(params=list(MODES))
def finished(
    finished_runs: dict[str, Finished], request: pytest.FixtureRequest
) -> Finished:
    return finished_runs[request.param]


def test_every_item_is_a_case_with_one_end(finished: Finished) -> None:
    """One state each, misses are no FAILED line but JUnit's, what no judge can is an ERROR."""
    result, project = finished
    assert result.ret == 6  # the item that was not judged is counted by no gate
    result.assert_outcomes(passed=7, errors=1)
    result.stdout.fnmatch_lines(["ERROR:*no_recorded_answer*", "*3 missed*"])
    assert project.outcomes() == {"passed": 7, "failed": 3, "error": 1}
    grades = Counter(one["grade"] for one in project.records() if one["grade"])
    assert grades == {"CORRECT": 7, "INCORRECT": 2, "NOT_ATTEMPTED": 1}
    (silent,) = (one for one in project.records() if one["key"] == "river-en-q2")
    assert silent["outcome"] == "error"
    result.stdout.no_fnmatch_line("FAILED*")
    result.stdout.no_fnmatch_line("verdict:  INCORRECT")
    assert (project.path / "items.xml").read_text(encoding="utf-8").count(
        "<failure"
    ) == 3


@pytest.mark.parametrize("option", ["-rf", "--gates=off"])
def test_a_miss_is_five_readable_lines(capitals: Project, option: str) -> None:
    """Question, expected, answer, verdict and reason, where they are asked for; no traceback."""
    result = capitals.run_in_process(option, "qa")
    lines = (
        "question: What is the capital of Bulgaria*|expected: Sofia|answer:   Plovdiv"
    )
    result.stdout.fnmatch_lines(
        [*lines.split("|"), "verdict:  INCORRECT", "reason:   *"]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*assert verdict*")


def test_all_report_files_are_written(finished: Finished) -> None:
    """Every file of the contract, the two-column one right; one ``qa`` property an item."""
    slices = {f"{name}-graded.csv" for name in ("capital-en", "capital-bg", "river-en")}
    whole = {
        "run.json",
        "records.jsonl",
        "labels.jsonl",
        "readings.jsonl",
        "results.csv",
        "report.html",
        "summary.md",
        "gates.xml",
    }
    assert {path.name for path in finished.project.out.iterdir()} == slices | whole
    graded = (
        finished.project.text("capital-en-graded.csv").lstrip("\ufeff").splitlines()
    )
    rows = ["Question number,Classification", "1,A", "2,A", "3,B", "4,C", "5,A", "6,A"]
    assert [line.replace('"', "") for line in graded] == rows
    gates = ET.parse(finished.project.out / "gates.xml").iter("testcase")
    assert len(list(gates)) == 3 + 1  # and what no gate counts
    cases = list(ET.parse(finished.project.path / "items.xml").iter("testcase"))
    properties = [list(case.iter("property")) for case in cases]
    assert [len(one) for one in properties] == [1] * 11
    values = [json.loads(str(one[0].get("value"))) for one in properties]
    assert {value["key"] for value in values} == {
        f"{name}-q{number}"
        for name, count in (("capital-en", 6), ("capital-bg", 3), ("river-en", 2))
        for number in range(1, count + 1)
    }


def test_two_runs_differ_only_in_the_run_block(
    finished_runs: dict[str, Finished],
) -> None:
    """However it is distributed, everything in run.json but its ``run`` block is the same."""
    reports = [run.project.report() for run in finished_runs.values()]
    for report in reports:
        del report["run"]
    assert len({json.dumps(report) for report in reports}) == 1


@pytest.mark.parametrize(
    ("words", "slices"),
    [
        (
            "--languages bg",
            {"capital:bg"},
        ),  # and no empty test of the data set without it
        ("-m capital", {"capital:en", "capital:bg"}),
        ("-m en_and_capital", {"capital:en"}),
    ],
)
def test_whole_slices_can_be_chosen(
    capitals: Project, words: str, slices: set[str]
) -> None:
    """Languages and marks choose whole slices, whose gates count."""
    capitals.dataset("river", {"en": [RIGHT]})
    result = capitals.run_in_process(
        *(one.replace("_", " ") for one in words.split()), "qa"
    )
    assert result.ret == 0
    assert {
        f"{one['dataset']}:{one['language']}" for one in capitals.records()
    } == slices
    result.assert_outcomes(
        passed=len(capitals.records()) - capitals.outcomes()["failed"]
    )


def test_limit_takes_the_same_fair_sample_in_every_process(capitals: Project) -> None:
    """In any process, the parts decide nothing; a skip leaves its item ungraded."""
    options = ("--limit", "2", "--seed", "7", "qa")
    assert capitals.run_in_process(*options).ret == 6
    here = capitals.records()
    assert Counter(str(record["language"]) for record in here) == {"en": 2, "bg": 2}
    shutil.rmtree(capitals.path / "reports")
    capitals.run_in_process("-n", "2", *options)
    assert [one["key"] for one in capitals.records()] == [one["key"] for one in here]
    skipping = "import pytest\n\ndef pytest_runtest_setup(item):\n    if 'bg-q1]' in item.name:\n"
    capitals.write("qa/conftest.py", f"{skipping}        pytest.skip('not today')\n")
    result = capitals.run_in_process("--languages", "bg", "qa")
    assert capitals.outcomes() == {"missing": 1, "passed": 1, "failed": 1}
    assert result.ret == 6


def test_ones_own_file_runs_alone(capitals: Project) -> None:
    """--items replaces a slice's file, /test takes a split's; only that runs, without gates."""
    own = capitals.write(
        "mine.csv", "Question,Answers,Predicted answers\nQ?,Praha,Praha\n"
    )
    result = capitals.run_in_process(f"--items=capital:cs={own}", "qa")
    assert result.ret == 6
    (record,) = capitals.records()
    assert (record["language"], record["grade"]) == ("cs", "CORRECT")
    result.stdout.fnmatch_lines(["*no gate*"])
    whole = (capitals.path / "qa" / "capital" / "bg.jsonl").read_text(encoding="utf-8")
    first = whole.splitlines()[0]
    capitals.write("qa/capital/bg.test.jsonl", f"{first}\n")
    capitals.run_in_process("--languages", "bg/test", "qa")
    assert [record["language"] for record in capitals.records()] == ["bg"]
    for wrong in ("bg/dev", "bg/../bg", "en/test"):
        line = capitals.refused("--languages", wrong, "qa")
        assert line.startswith(f"ERROR: --languages: no dataset has a split '{wrong}'")


@pytest.mark.parametrize("workers", [0, 2])
def test_a_plan_asks_nobody(
    capitals: Project, workers: int, monkeypatch: Patch
) -> None:
    """--collect-only has the cases, the plan items and calls; no key, ledger, report or worker."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    listed = capitals.run_with(workers, "--collect-only", "-q", "qa")
    listed.stdout.fnmatch_lines(["*test_capital[[]capital-en-q1[]]"])
    capitals.write("qa/capital/answer.en.yaml", PROMPT)
    options = ("--model", "openai:gpt-4o", "--languages", "en", "--dry-run")
    planned = capitals.run_with(workers, *options, "qa")
    planned.stdout.fnmatch_lines(["capital:en * 6 items * 6 calls"])
    assert (listed.ret, planned.ret) == (0, 0)
    assert not {path.name for path in capitals.path.iterdir()} & {".qa", "reports"}


def test_a_report_that_cannot_be_written_is_said(capitals: Project) -> None:
    """A file in the way: a line that says what to do, and no code of a gate (R12, F15)."""
    early = (
        "import shutil\n\n\ndef pytest_runtest_setup():\n"
        "    shutil.rmtree('blocked', ignore_errors=True)\n    open('blocked', 'w').close()\n"
    )
    capitals.write("qa/conftest.py", early)
    result = capitals.run_in_process("--report-dir=blocked/out", "qa")
    assert result.ret == 3
    assert "REPORT NOT WRITTEN" in result.outlines[-1]
    assert "--report-dir" in result.outlines[-1]
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


def test_a_marker_that_names_no_dataset(project: Project) -> None:
    """An error that says what to write where none is, and lists the known ones elsewhere."""
    project.write("qa/test_towns.py", MODULE.format(name="towns"))
    result = project.run_in_process("qa")
    assert result.ret == 2
    result.stdout.fnmatch_lines(
        ["*no dataset.yaml under *qa; write one next to this module*"]
    )
    result = capitals_in(project).run_in_process("qa")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*no dataset 'towns' among those found (capital)*"])


def test_a_session_without_datasets_is_left_alone(project: Project) -> None:
    """Ordinary tests and items run as ever, no file of ours; an option of ours is an error."""
    project.write("plain/test_x.py", "def test_x():\n    pass\n")
    result = project.run_in_process("plain")
    assert result.ret == 0
    assert "qa " not in result.stdout.str()
    assert not {path.name for path in project.path.iterdir()} & {
        ".qa",
        "reports",
        ".deepeval",
    }
    line = project.refused("--limit", "3", "plain")
    assert line.startswith("ERROR: no dataset.yaml is in, under or next to")
    project.write("conftest.py", LINES)
    project.write("other/some.lines", "")
    project.run_in_process("other").assert_outcomes(passed=1)


LINES: str = kept(__file__, "lines")


def test_a_leak_of_other_tests_is_still_seen(project: Project) -> None:
    """Where no dataset is, pytest's search for what was never closed finds as much as ever."""
    leak = (
        "def test_leak():\n    opened = [open(__file__)]\n    opened.append(opened)\n"
    )
    project.write("other/test_leak.py", leak)
    assert project.run("-W", "error", "other").ret == 1


YAML, BAR_09 = (graded({"en": f"correct: {{min: {bar}}}"}) for bar in (0.5, 0.9))
UNGATED = "kind: graded\nlanguages:\n  en: {file: en.jsonl}\n"
HALF_GATED = f"{YAML}  bg: {{file: en.jsonl}}\n"
FAILING_TEST = "def test_other():\n    assert 1 == 2\n"
BROKEN_MODULE = "import nothing_of_that_name\n"
BAD_TEARDOWN: str = kept(__file__, "bad_teardown")
BAD_BODY: str = kept(__file__, "bad_body")
INTERNAL = "def pytest_sessionstart():\n    raise RuntimeError('inside')\n"


@dataclass(frozen=True)
class Row:
    """One row of the table: a project, a command line, and what must come of it."""

    name: str
    code: int
    last: str
    answers: tuple[str | None, ...] = (RIGHT, RIGHT, WRONG, RIGHT)
    yaml: str = YAML
    options: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    workers: str = ""
    """With how many it is run as well."""


TIPPING = (RIGHT, RIGHT, None, None, WRONG)
NARROW = graded({"en": "correct: {min: 0.992}"})
NOTHING = ("-k", "nothing_of_that_name")
LATE = (WRONG, *[RIGHT] * 249)
"""Undecided until all but one are graded, however late -x is heard."""
TABLE = [
    Row("every gate passes", 0, "GATES PASS (1 of 1): exit 0", answers=(RIGHT, RIGHT)),
    Row("misses that the gates count", 0, "GATES PASS (1 of 1): exit 0"),
    Row("a gate fails", 1, "GATES FAIL", yaml=BAR_09, workers="0"),
    Row(
        "an ordinary failing test",
        1,
        "exit 1",
        files={"qa/capital/test_x.py": FAILING_TEST},
    ),
    Row(
        "a module with an error",
        1,
        "",
        files={"qa/test_x.py": BROKEN_MODULE},
        workers="2",
    ),
    Row(
        "a teardown error",
        1,
        "exit 1",
        files={"qa/conftest.py": BAD_TEARDOWN},
        workers="2",
    ),
    Row(
        "an exception in a test body",
        1,
        "",
        files={"qa/capital/test_capital.py": BAD_BODY},
    ),
    Row(
        "an internal error is pytest's own",
        3,
        "",
        files={"conftest.py": INTERNAL},
        workers="2",
    ),
    Row("a wrong option", 4, "", options=("--limit", "many")),
    Row(
        "nothing selected",
        5,
        "exit 5; all items by name: pytest ",
        options=NOTHING,
        workers="2",
    ),
    Row(
        "ungraded items that could tip the gate",
        6,
        "GATES INCONCLUSIVE",
        TIPPING,
        workers="2",
    ),
    Row(
        "ungraded items that cannot",
        0,
        "GATES PASS",
        answers=(RIGHT, RIGHT, RIGHT, None),
    ),
    Row("no gate declared", 6, "exit 6", yaml=UNGATED),
    Row(
        "no gate for one slice",
        6,
        "NO GATE for capital:bg: exit 6",
        (RIGHT,),
        yaml=HALF_GATED,
    ),
    Row("a hand-picked part", 6, "GATES INCONCLUSIVE", options=("-k", "q1")),
    Row("gates off: pytest's own, red", 1, "exit 1", options=("--gates", "off")),
    Row(
        "gates off: pytest's own, green",
        0,
        "exit 0",
        (RIGHT,),
        options=("--gates", "off"),
    ),
    Row("a dry run", 0, "", options=("--dry-run",), yaml=BAR_09),
    Row(
        "stopped early, undecided",
        6,
        "exit 6",
        LATE,
        NARROW,
        options=("-x",),
        workers="2",
    ),
    Row(
        "stopped early, beyond help",
        1,
        "GATES FAIL",
        (WRONG,) * 4,
        BAR_09,
        options=("-x",),
    ),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_exit_code(project: Project, row: Row) -> None:
    """The code is what gates and outcomes come to, the last line says it, with workers too (F3)."""
    project.dataset("capital", {"en": row.answers}, row.yaml)
    for name, text in row.files.items():
        project.write(name, text)
    for words in ((), ("-n", row.workers))[: 1 + bool(row.workers)]:
        result = project.run_in_process(*words, *row.options, "qa")
        assert result.ret == row.code, result.stdout.str() + result.stderr.str()
        assert row.last in result.outlines[-1] if row.last else True


HIDING = "def pytest_collection_modifyitems(items):\n    items[:] = items[-4:]\n"


@pytest.mark.parametrize("words", [("-k", "capital-bg"), ("--deselect", "*"), ()])
def test_a_slice_left_out_by_hand_lets_nothing_pass(
    project: Project, words: Sequence[str]
) -> None:
    """By an option or by code, in the run and decided again; ``-m`` may choose a slice."""
    data = {"en": [WRONG] * 4, "bg": [RIGHT] * 4}
    project.dataset("capital", data, graded(dict.fromkeys(data, BAR)))
    assert project.run_in_process("-m", "bg", "qa").ret == 0
    names = [
        f"qa/capital/test_capital.py::test_capital[capital-en-q{n}]"
        for n in range(1, 5)
    ]
    words = [f"--deselect={name}" for name in names] if "*" in words else words
    if not words:
        project.write("qa/conftest.py", HIDING)
    result = project.run_in_process(*words, "qa")
    assert "INCONCLUSIVE: exit 6; no item of capital:en was run" in result.outlines[-1]
    assert (result.ret, main(["gate", str(project.out)])) == (6, 6)


def test_a_slice_without_a_gate_is_named_in_every_report(project: Project) -> None:
    """The terminal, the summary, the page, what CI publishes, and run.json."""
    project.dataset("capital", {"en": [RIGHT]}, HALF_GATED)
    result = project.run_in_process("qa")
    said = "WARNING: capital:bg: no gate of its own; a run passes only over*"
    result.stdout.fnmatch_lines([said])
    for name in ("summary.md", "report.html", "gates.xml", "run.json"):
        assert "NO GATE for capital:bg" in project.text(name), name
