"""The plugin: what a user sees and gets from a run.

One finished run in each of three modes (plain, ``-n 0``, ``-n 2``) serves all claims about it.
"""

import json
import shutil
import xml.etree.ElementTree as ET
from collections import Counter
from typing import NamedTuple

import pytest

from tests.conftest import MODES, MODULE, Project, new_project
from tests.support.projects import RIGHT, WRONG
from tests.support.tables import kept

PROMPT = 'name: answer\nlanguage: en\nversion: "1"\nuser: "{question}"\n'
TWO_LANGUAGES: str = kept(__file__, "two_languages")


def capitals_in(project: Project) -> Project:
    """Write six English items and three Bulgarian ones."""
    english = [RIGHT, RIGHT, WRONG, "I don't know.", RIGHT, RIGHT]
    project.dataset("capital", {"en": english, "bg": [RIGHT, RIGHT, WRONG]}, TWO_LANGUAGES)
    return project


@pytest.fixture
def capitals(project: Project) -> Project:
    """Return a project with six English items and three Bulgarian ones."""
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
def finished(finished_runs: dict[str, Finished], request: pytest.FixtureRequest) -> Finished:
    """Return the finished run of one mode."""
    return finished_runs[request.param]


def test_every_item_is_a_case_with_one_end(finished: Finished) -> None:
    """Eleven items, eleven records, each in one state; the counts sum to the plan.

    A gate counts misses: no FAILED line, no block, and JUnit still has them as failed. An item
    that cannot be judged is pytest's ERROR.
    """
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
    assert (project.path / "items.xml").read_text(encoding="utf-8").count("<failure") == 3


@pytest.mark.parametrize("option", ["-rf", "--gates=off"])
def test_a_miss_is_five_readable_lines(capitals: Project, option: str) -> None:
    """Question, expected, answer, verdict and reason, where they are asked for; no traceback."""
    result = capitals.run_in_process(option, "qa")
    lines = "question: What is the capital of Bulgaria*|expected: Sofia|answer:   Plovdiv"
    result.stdout.fnmatch_lines([*lines.split("|"), "verdict:  INCORRECT", "reason:   *"])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*assert verdict*")


def test_all_report_files_are_written(finished: Finished) -> None:
    """The folder holds every file of the contract, and the slice's two-column file is right."""
    slices = {f"{name}-graded.csv" for name in ("capital-en", "capital-bg", "river-en")}
    whole = {"run.json", "records.jsonl", "results.csv", "report.html", "summary.md", "gates.xml"}
    assert {path.name for path in finished.project.out.iterdir()} == slices | whole
    graded = finished.project.text("capital-en-graded.csv").lstrip("\ufeff").splitlines()
    rows = ["Question number,Classification", "1,A", "2,A", "3,B", "4,C", "5,A", "6,A"]
    assert [line.replace('"', "") for line in graded] == rows
    gates = ET.parse(finished.project.out / "gates.xml").iter("testcase")
    assert len(list(gates)) == 3 + 1  # and what no gate counts


def test_junit_carries_each_item_once(finished: Finished) -> None:
    """pytest's own JUnit file has one ``qa`` property an item, JSON that can be read."""
    cases = list(ET.parse(finished.project.path / "items.xml").iter("testcase"))
    properties = [list(case.iter("property")) for case in cases]
    assert [len(one) for one in properties] == [1] * 11
    values = [json.loads(str(one[0].get("value"))) for one in properties]
    assert {value["key"] for value in values} == {
        f"{name}-q{number}"
        for name, count in (("capital-en", 6), ("capital-bg", 3), ("river-en", 2))
        for number in range(1, count + 1)
    }


def test_two_runs_differ_only_in_the_run_block(finished_runs: dict[str, Finished]) -> None:
    """However it is distributed, everything in run.json but its ``run`` block is the same."""
    reports = [run.project.report() for run in finished_runs.values()]
    for report in reports:
        del report["run"]
    assert len({json.dumps(report) for report in reports}) == 1


@pytest.mark.parametrize(
    ("words", "slices"),
    [
        ("--languages bg", {"capital:bg"}),  # and no empty test of the data set without it
        ("-m capital", {"capital:en", "capital:bg"}),
        ("-m en_and_capital", {"capital:en"}),
    ],
)
def test_whole_slices_can_be_chosen(capitals: Project, words: str, slices: set[str]) -> None:
    """Languages and marks choose whole slices, whose gates count."""
    capitals.dataset("river", {"en": [RIGHT]})
    result = capitals.run_in_process(*(one.replace("_", " ") for one in words.split()), "qa")
    assert result.ret == 0
    assert {f"{one['dataset']}:{one['language']}" for one in capitals.records()} == slices
    result.assert_outcomes(passed=len(capitals.records()) - capitals.outcomes()["failed"])


def test_limit_takes_the_same_fair_sample_in_every_process(capitals: Project) -> None:
    """--limit takes the same items in this process as in others; the parts decide nothing."""
    options = ("--limit", "2", "--seed", "7", "qa")
    assert capitals.run_in_process(*options).ret == 6
    here = capitals.records()
    assert Counter(str(record["language"]) for record in here) == {"en": 2, "bg": 2}
    shutil.rmtree(capitals.path / "reports")
    capitals.run_in_process("-n", "2", *options)
    assert [one["key"] for one in capitals.records()] == [one["key"] for one in here]


def test_ones_own_file_runs_alone(capitals: Project) -> None:
    """--items replaces a slice's file, and only that slice runs; a new language has no gates."""
    own = capitals.write("mine.csv", "Question,Answers,Predicted answers\nQ?,Praha,Praha\n")
    result = capitals.run_in_process(f"--items=capital:cs={own}", "qa")
    assert result.ret == 6
    (record,) = capitals.records()
    assert (record["language"], record["grade"]) == ("cs", "CORRECT")
    result.stdout.fnmatch_lines(["*no gate*"])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_listing_or_a_dry_run_asks_nobody(
    capitals: Project, workers: int, monkeypatch: pytest.MonkeyPatch
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
    """A file that came in the way meanwhile: a line that says what to do, and a code of its own.

    Not 1: no gate failed (R12, F15).
    """
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
    result.stdout.fnmatch_lines(["*no dataset.yaml under *qa; write one next to this module*"])
    result = capitals_in(project).run_in_process("qa")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*no dataset 'towns' among those found (capital)*"])


def test_a_split_is_asked_alone(capitals: Project) -> None:
    """--languages bg/test takes the file of that split; a split that nobody has is refused."""
    whole = (capitals.path / "qa" / "capital" / "bg.jsonl").read_text(encoding="utf-8")
    first = whole.splitlines()[0]
    capitals.write("qa/capital/bg.test.jsonl", f"{first}\n")
    capitals.run_in_process("--languages", "bg/test", "qa")
    assert [record["language"] for record in capitals.records()] == ["bg"]
    for wrong in ("bg/dev", "bg/../bg", "en/test"):
        line = capitals.refused("--languages", wrong, "qa")
        assert line.startswith(f"ERROR: --languages: no dataset has a split '{wrong}'")


def test_a_skipped_item_is_missing(capitals: Project) -> None:
    """A test that a person skips leaves its item ungraded, and the gate counts it both ways."""
    skipping = "import pytest\n\ndef pytest_runtest_setup(item):\n    if 'bg-q1]' in item.name:\n"
    capitals.write("qa/conftest.py", f"{skipping}        pytest.skip('not today')\n")
    result = capitals.run_in_process("--languages", "bg", "qa")
    assert capitals.outcomes() == {"missing": 1, "passed": 1, "failed": 1}
    assert result.ret == 6


def test_a_session_without_datasets_is_left_alone(project: Project) -> None:
    """Ordinary tests run as ever: no file, no line of ours; an option of ours is an error."""
    project.write("plain/test_x.py", "def test_x():\n    pass\n")
    result = project.run_in_process("plain")
    assert result.ret == 0
    assert "qa " not in result.stdout.str()
    assert not {path.name for path in project.path.iterdir()} & {".qa", "reports", ".deepeval"}
    line = project.refused("--limit", "3", "plain")
    assert line.startswith("ERROR: no dataset.yaml is in, under or next to")


LINES: str = kept(__file__, "lines")


def test_other_items_of_other_plugins_are_left_alone(project: Project) -> None:
    """Where no dataset is, items that are no functions run as if the plugin were not there."""
    project.write("conftest.py", LINES)
    project.write("other/some.lines", "")
    project.run_in_process("other").assert_outcomes(passed=1)


def test_a_leak_of_other_tests_is_still_seen(project: Project) -> None:
    """Where no dataset is, pytest's search for what was never closed finds as much as ever."""
    leak = "def test_leak():\n    opened = [open(__file__)]\n    opened.append(opened)\n"
    project.write("other/test_leak.py", leak)
    assert project.run("-W", "error", "other").ret == 1
