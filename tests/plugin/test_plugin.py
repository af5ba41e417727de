"""The plugin: what a user sees and gets from a run, plain, with ``-n 0`` and with ``-n 2``."""

import json
import xml.etree.ElementTree as ET
from collections import Counter

import pytest

from tests.conftest import MODULE, Project

RIGHT, WRONG, SILENT = "Sofia", "Plovdiv", None
PROMPT = 'name: answer\nlanguage: en\nversion: "1"\nuser: "{question}"\n'
TWO_LANGUAGES = """
kind: graded
by: [topic]
languages:
  en: {file: en.jsonl, gates: {correct: {min: 0.5}, incorrect: {max: 0.5}}}
  bg: {file: bg.jsonl, gates: {correct: {min: 0.5}}}
  default: {rubric_language: en}
"""


@pytest.fixture
def capitals(project: Project) -> Project:
    """Return a project with six English items and three Bulgarian ones."""
    answers = {
        "en": [RIGHT, RIGHT, WRONG, "I don't know.", RIGHT, RIGHT],
        "bg": [RIGHT, RIGHT, WRONG],
    }
    project.dataset("capital", answers, TWO_LANGUAGES)
    return project


def test_every_item_is_a_case_with_one_end(capitals: Project, mode: tuple[str, ...]) -> None:
    """Nine items, nine records, each in one state; the counts sum to the plan."""
    result = capitals.run(*mode, "qa")
    assert result.ret == 0
    result.assert_outcomes(passed=6, failed=3)
    states = Counter(str(record["outcome"]) for record in capitals.records())
    assert states == {"passed": 6, "failed": 3}
    grades = Counter(record["grade"] for record in capitals.records())
    assert grades == {"CORRECT": 6, "INCORRECT": 2, "NOT_ATTEMPTED": 1}


def test_a_miss_is_five_readable_lines(capitals: Project, mode: tuple[str, ...]) -> None:
    """Question, expected, answer, verdict and reason; no traceback of ours."""
    result = capitals.run(*mode, "qa", "--languages", "bg")
    result.stdout.fnmatch_lines(
        [
            "question: What is the capital of Bulgaria*",
            "expected: Sofia",
            "answer:   Plovdiv",
            "verdict:  INCORRECT",
            "reason:   *",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*assert verdict*")


def test_an_item_that_cannot_be_judged_is_an_error(project: Project, mode: tuple[str, ...]) -> None:
    """A missing recorded answer is pytest's ERROR, counted apart from right and wrong."""
    project.dataset("capital", {"en": [RIGHT, SILENT]})
    result = project.run(*mode, "qa")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["ERROR:*no_recorded_answer*"])
    states = Counter(str(record["outcome"]) for record in project.records())
    assert states == {"passed": 1, "error": 1}


def test_all_report_files_are_written(capitals: Project, mode: tuple[str, ...]) -> None:
    """The folder holds every file of the contract, and the slice's two-column file is right."""
    capitals.run(*mode, "qa")
    folder = capitals.path / "reports" / "out"
    assert {path.name for path in folder.iterdir()} == {
        "run.json",
        "records.jsonl",
        "results.csv",
        "capital-en-graded.csv",
        "capital-bg-graded.csv",
        "report.html",
        "summary.md",
        "gates.xml",
    }
    graded = (folder / "capital-en-graded.csv").read_text(encoding="utf-8").split()
    assert graded == ["Question", "number,Classification", "1,A", "2,A", "3,B", "4,C", "5,A", "6,A"]
    assert len(list(ET.parse(folder / "gates.xml").iter("testcase"))) == 3


def test_two_runs_differ_only_in_the_run_block(capitals: Project) -> None:
    """However it is distributed, everything in run.json but its ``run`` block is the same."""
    reports = []
    for options in ((), ("-n", "2"), ("-n", "0", "-p", "no:randomly")):
        capitals.run(*options, "qa")
        report = capitals.report()
        del report["run"]
        reports.append(json.dumps(report))
    assert len(set(reports)) == 1


def test_junit_carries_each_item_once(capitals: Project, mode: tuple[str, ...]) -> None:
    """pytest's own JUnit file has one ``qa`` property an item, JSON that can be read."""
    capitals.run(*mode, "--junitxml=items.xml", "qa")
    cases = list(ET.parse(capitals.path / "items.xml").iter("testcase"))
    properties = [list(case.iter("property")) for case in cases]
    assert [len(one) for one in properties] == [1] * 9
    values = [json.loads(str(one[0].get("value"))) for one in properties]
    assert {value["key"] for value in values} == {
        f"capital-{language}-q{number}"
        for language, count in (("en", 6), ("bg", 3))
        for number in range(1, count + 1)
    }


@pytest.mark.parametrize(
    ("options", "slices"),
    [
        (("--languages", "bg"), {"capital:bg"}),
        (("-m", "bg"), {"capital:bg"}),
        (("-m", "capital"), {"capital:en", "capital:bg"}),
        (("-m", "en and capital"), {"capital:en"}),
    ],
)
def test_whole_slices_can_be_chosen(
    capitals: Project, mode: tuple[str, ...], options: tuple[str, ...], slices: set[str]
) -> None:
    """Languages and marks choose whole slices, whose gates count."""
    result = capitals.run(*mode, *options, "qa")
    assert result.ret == 0
    assert {f"{one['dataset']}:{one['language']}" for one in capitals.records()} == slices


def test_limit_is_a_fair_sample_and_no_part(capitals: Project, mode: tuple[str, ...]) -> None:
    """--limit takes the same items in every process, and the slice still counts as a whole."""
    result = capitals.run(*mode, "--limit", "2", "--seed", "7", "qa")
    assert result.ret in (0, 1)
    ids = Counter(str(record["language"]) for record in capitals.records())
    assert ids == {"en": 2, "bg": 2}


def test_repeats_are_cases_of_their_own(capitals: Project, mode: tuple[str, ...]) -> None:
    """Each repeat has its record; ids carry ``~r2``."""
    capitals.run(*mode, "--repeats", "2", "--languages", "bg", "qa")
    keys = sorted(str(record["key"]) for record in capitals.records())
    assert keys == [f"capital-bg-q{n}{r}" for n in (1, 2, 3) for r in ("", "~r2")]


def test_ones_own_file_runs_alone(capitals: Project, mode: tuple[str, ...]) -> None:
    """--items replaces a slice's file, and only that slice runs; a new language has no gates."""
    own = capitals.write("mine.csv", "Question,Answers,Predicted answers\nQ?,Praha,Praha\n")
    result = capitals.run(*mode, f"--items=capital:cs={own}", "qa")
    assert result.ret == 6
    assert [(record["language"], record["grade"]) for record in capitals.records()] == [
        ("cs", "CORRECT")
    ]
    result.stdout.fnmatch_lines(["*no gate*"])


def test_a_dataset_without_the_language_stays_silent(
    capitals: Project, mode: tuple[str, ...]
) -> None:
    """Narrowing to a language leaves no empty test behind in a dataset that does not have it."""
    capitals.dataset("river", {"en": [RIGHT]})
    result = capitals.run(*mode, "--languages", "bg", "qa")
    result.assert_outcomes(passed=2, failed=1)


def test_other_gates_replace_the_datasets_own(capitals: Project, mode: tuple[str, ...]) -> None:
    """--gates FILE sets other thresholds for the run."""
    gates = capitals.write("strict.yaml", "capital: {en: {correct: {min: 0.99}}}\n")
    result = capitals.run(*mode, f"--gates={gates}", "qa")
    assert result.ret == 1
    assert "GATES FAIL" in result.outlines[-1]


def test_a_dry_run_calls_nothing_and_needs_no_key(capitals: Project, mode: tuple[str, ...]) -> None:
    """The plan says items and calls for each slice; no key, no ledger, no report."""
    capitals.write("qa/capital/answer.en.yaml", PROMPT)
    options = ("--model", "openai:gpt-4o", "--languages", "en", "--dry-run")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OPENAI_API_KEY", raising=False)
        result = capitals.run(*mode, *options, "qa")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["capital:en * 6 items * 6 calls"])
    assert not (capitals.path / ".qa").exists()
    assert not (capitals.path / "reports").exists()


def test_a_baseline_is_compared_item_by_item(capitals: Project, mode: tuple[str, ...]) -> None:
    """A drop gate appears with --baseline, and says how much the same items changed."""
    capitals.run("qa")
    before = capitals.path / "reports" / "out"
    before.rename(capitals.path / "before")
    gates = capitals.write("drop.yaml", "capital: {en: {drop: {max: 0.1, evidence: estimate}}}\n")
    result = capitals.run(*mode, "--baseline=before", f"--gates={gates}", "qa")
    assert "drop" in result.stdout.str()
    assert result.ret == 6  # the misses in bg are counted by no gate
    assert '"state": "PASS"' in json.dumps(capitals.report()["gates"])


def test_a_report_that_cannot_be_written_is_said(capitals: Project, mode: tuple[str, ...]) -> None:
    """A file that came in the way meanwhile: a line that says what to do, and not exit 0."""
    capitals.write(
        "qa/conftest.py",
        """
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def in_the_way():
    Path("blocked").touch()
""",
    )
    result = capitals.run(*mode, "--report-dir=blocked/out", "qa")
    assert result.ret == 1
    assert "REPORT NOT WRITTEN" in result.outlines[-1]
    assert "--report-dir" in result.outlines[-1]
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


def test_a_marker_that_names_no_dataset(capitals: Project, mode: tuple[str, ...]) -> None:
    """A test module that asks for an unknown dataset is an error that lists the known ones."""
    capitals.write("qa/test_wrong.py", MODULE.format(name="towns"))
    result = capitals.run(*mode, "qa")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*no dataset 'towns' among those found (capital)*"])


@pytest.mark.parametrize(
    ("options", "message"),
    [(("-m", "nope"), "nope"), (("-m", "bg and"), "bg and"), (("-k", "two words"), "two words")],
)
def test_a_wrong_expression_is_a_usage_error(
    capitals: Project, mode: tuple[str, ...], options: tuple[str, ...], message: str
) -> None:
    """pytest's own line and exit 4, with workers too."""
    result = capitals.run(*mode, *options, "qa")
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"ERROR: *{message}*"])
    assert "Traceback" not in result.stderr.str()


def test_a_skipped_item_is_missing(capitals: Project, mode: tuple[str, ...]) -> None:
    """A test that a person skips leaves its item ungraded, and the gate counts it both ways."""
    capitals.write(
        "qa/conftest.py",
        """
import pytest


@pytest.fixture(autouse=True)
def skipping(request):
    if request.node.name.endswith("bg-q1]"):
        pytest.skip("not today")
""",
    )
    result = capitals.run(*mode, "--languages", "bg", "qa")
    states = Counter(str(record["outcome"]) for record in capitals.records())
    assert states == {"missing": 1, "passed": 1, "failed": 1}
    assert result.ret == 6


def test_collecting_only_runs_nothing(capitals: Project, mode: tuple[str, ...]) -> None:
    """--collect-only lists the cases, asks nobody and writes no report."""
    result = capitals.run(*mode, "--collect-only", "-q", "qa")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*test_capital[[]capital-en-q1[]]"])
    assert not (capitals.path / "reports").exists()
    assert not (capitals.path / ".qa").exists()


def test_a_session_without_datasets_is_left_alone(project: Project, mode: tuple[str, ...]) -> None:
    """Ordinary tests run as ever: no file, no line of ours; an option of ours is an error."""
    project.write("plain/test_x.py", "def test_x():\n    pass\n")
    result = project.run(*mode, "plain")
    assert result.ret == 0
    assert "qa " not in result.stdout.str()
    assert not {path.name for path in project.path.iterdir()} & {".qa", "reports", ".deepeval"}
    refused = project.run(*mode, "--limit", "3", "plain")
    assert refused.ret == 4
    refused.stderr.fnmatch_lines(["ERROR: no dataset.yaml is in, under or beside*"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--limit", "0"), "--limit: a whole number of at least 1 is needed, got '0'"),
        (("--repeats", "x"), "--repeats: a whole number of at least 1 is needed, got 'x'"),
        (("--languages", "xx"), "--languages: no dataset has 'xx'"),
        (("--items", "capital-en"), "--items: DATASET:LANG=FILE is needed"),
        (("--items", "towns:en=a.csv"), "dataset 'towns' is not among those found (capital)"),
        (("--items", "capital:en=absent.csv"), "absent.csv"),
        (("--items", "capital:en=a.csv", "--items", "capital:en=b.csv"), "is given twice"),
        (("--prompt", "capital:en=absent.yaml"), "absent.yaml"),
        (("--gates", "absent.yaml"), "absent.yaml"),
        (("--gates", "other.yaml"), "no gate for any dataset of this run (capital)"),
        (("--model", "nobody:x"), "unknown model 'nobody:x'"),
        (("--judge", "nobody"), "unknown model 'nobody'"),
        (("--model", "openai:m@http://127.0.0.1:9/v1"), "no answer prompt"),
        (("--judge", "openai:j@http://127.0.0.1:9/v1"), "needs a rubric"),
        (("--replay", "--ledger", "absent"), "no ledger to replay from"),
        (("--baseline=absent",), "absent"),
        (("--model=",), "--model: empty; give a value or leave the option out"),
        (("--baseline=",), "--baseline: empty"),
        (("--items", ""), "--items: empty"),
        (("--concurrency", "9" * 5000), "--concurrency: a whole number"),
        (("--report-dir=pytest.ini",), "--report-dir: "),
        (("--prompt", "capital:ru=own.yaml"), "--prompt: capital:ru is not asked in this run"),
        (("--prompt", "capital:en=own.yaml"), "--prompt: the recorded answers need no prompt"),
        (("--judge", "lexicl"), "--judge: unknown model 'lexicl'"),
        (("--model", "openai:m@localhost:8000"), "an address starts with http://"),
        (("absent/path",), "file or directory not found: absent/path"),
        (("second",), "two datasets are named 'capital'"),
    ],
)
def test_the_users_mistakes_are_one_line(
    capitals: Project, mode: tuple[str, ...], options: tuple[str, ...], message: str
) -> None:
    """A wrong option ends the run with exit 4 and one line, before anything is run or written."""
    capitals.write("other.yaml", "river: {en: {correct: {min: 0.5}}}\n")
    capitals.write("own.yaml", PROMPT)
    capitals.write("second/capital/dataset.yaml", TWO_LANGUAGES)
    result = capitals.run(*mode, *options, "qa")
    assert result.ret == 4
    errors = [line for line in result.errlines if line.startswith("ERROR")]
    assert len(errors) == 1
    assert message in errors[0]
    assert "Traceback" not in result.stderr.str()
    assert not (capitals.path / "reports").exists()


def test_other_items_of_other_plugins_are_left_alone(
    project: Project, mode: tuple[str, ...]
) -> None:
    """Where no dataset is, items that are no functions run as if the plugin were not there."""
    project.write(
        "conftest.py",
        """
import pytest


class Line(pytest.Item):
    def runtest(self):
        pass


class Lines(pytest.File):
    def collect(self):
        yield Line.from_parent(self, name="line")


def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".lines":
        return Lines.from_parent(parent, path=file_path)
""",
    )
    project.write("other/some.lines", "")
    project.run(*mode, "other").assert_outcomes(passed=1)


def test_a_leak_of_other_tests_is_still_seen(project: Project) -> None:
    """Where no dataset is, pytest's search for what was never closed finds as much as ever."""
    project.write(
        "other/test_leak.py",
        """
def test_leak():
    opened = [open(__file__)]
    opened.append(opened)
""",
    )
    assert project.run("-W", "error", "other").ret == 1
