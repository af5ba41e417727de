"""Whether tests are known before they are collected: only where nothing can drop one."""

import json
import signal
from collections.abc import Callable
from functools import partial

import pytest

from evaluators.runtime.process import EngineProcess
from reports.plugin import head_start
from reports.plugin.head_start import takes_everything
from reports.plugin.options import read_options
from tests.support.projects import BAR, Project, graded
from tests.support.tables import tabled

DROPPING = """
def pytest_collection_modifyitems(items):
    del items[0]
"""


@pytest.fixture
def capital(project: Project) -> Project:
    """Return a project with one dataset of two items."""
    project.dataset("capital", {"bg": ["Sofia", "Paris"]})
    return project


def known(project: Project, *arguments: str) -> bool:
    """Return what is said of a run with these arguments in a project."""
    config = project.parse_config(*arguments)
    return takes_everything(config, sorted(project.path.glob("qa/*/dataset.yaml")))


@pytest.mark.parametrize("arguments", [("qa",), ("qa/capital",), ("qa", "-x"), ("-v", "qa")])
def test_whole_folders_are_run_as_they_are(capital: Project, arguments: tuple[str, ...]) -> None:
    """Folders without a filter hold just what is planned; how a run ends makes no difference."""
    assert known(capital, *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ("qa", "-k", "bg"),
        ("qa", "-m", "capital"),
        ("qa/capital/test_capital.py",),
        ("qa/capital/test_capital.py::test_capital",),
        ("qa", "--deselect", "qa/capital"),
        ("qa", "--ignore", "qa/capital"),
        ("qa", "--ignore-glob", "*capital*"),
        ("qa", "--collect-only"),
        ("qa", "--setup-plan"),
        ("qa", "--fixtures"),
    ],
    ids=" ".join,
)
def test_whatever_narrows_a_run_is_waited_for(capital: Project, arguments: tuple[str, ...]) -> None:
    """A filter, a single module, or a run without tests: what is selected must be seen first."""
    assert not known(capital, *arguments)


def test_failed_first_may_drop_tests(capital: Project) -> None:
    """``--lf`` and ``--sw`` decide by an earlier run."""
    ini = (capital.path / "pytest.ini").read_text().replace("-p no:cacheprovider", "")
    capital.write("pytest.ini", ini)
    assert known(capital, "qa")
    assert not known(capital, "qa", "--lf")
    assert not known(capital, "qa", "--sw")


@pytest.mark.parametrize(
    ("path", "text", "is_known"),
    [
        ("conftest.py", DROPPING, False),
        ("conftest.py", "collect_ignore_glob = ['*capital*']\n", False),
        ("qa/capital/conftest.py", DROPPING, False),
        ("qa/conftest.py", "def pytest_report_header():\n    return 'ours'\n", True),
    ],
    ids=["drops", "ignores", "not loaded yet", "harmless"],
)
def test_a_conftest_that_may_drop_tests_is_waited_for(
    capital: Project, path: str, text: str, is_known: bool
) -> None:
    """One that drops tests, or is not loaded yet; a harmless one that is loaded changes nothing."""
    capital.write(path, text)
    assert known(capital, "qa") == is_known


LABELS = (
    "kind: judged\nlanguages: {en: {file: en.jsonl, rubric: simpleqa, floor: {agreement: 0.8}}}\n"
)
NONE = "no test with @pytest.mark.qa("


def labelled(project: Project) -> Project:
    """Return a project with a data set, and labelled answers for its judge without a test."""
    gates = "{correct: {min: 0.5}}"
    project.dataset(
        "facts",
        {"en": ["Sofia"] * 20},
        f"kind: graded\nlanguages: {{en: {{file: en.jsonl, rubric: simpleqa, gates: {gates}}}}}\n",
    )
    rows = [
        {"question": f"Asked {n}?", "gold": "Sofia", "predicted": said, "label": label}
        for n in range(12)
        for said, label in (("Sofia", "CORRECT"), ("Plovdiv", "INCORRECT"))
    ]
    project.write("qa/labels/dataset.yaml", LABELS)
    project.write("qa/labels/en.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return project


@pytest.mark.untraced
@pytest.mark.parametrize("workers", [0, 2])
def test_a_data_set_whose_tests_are_not_collected_is_missed_by_name(
    project: Project, workers: int
) -> None:
    """Whatever the reason; not where an option, a node id or another folder left it out."""
    for name in ("one", "two"):
        project.dataset(name, {"en": ["Sofia"] * 4}, graded({"en": BAR}))
    assert project.run_with(workers, "qa").ret == 0
    module = project.path / "qa/two/test_two.py"
    text = module.read_text()
    for change in (
        "",
        text.replace("@pytest.mark.qa", "# "),
        "import pytest\npytest.skip('', allow_module_level=True)\n",
    ):
        module.write_text(change)
        result = project.run_with(workers, "qa")
        assert result.ret == 4
        assert f'qa/two/dataset.yaml: {NONE}"two") was collected' in result.stderr.str()
    module.rename(module.with_name("two_cases.py"))
    module.with_name("two_cases.py").write_text(text)
    for words in (["qa"], ["qa/two"], ["qa/one", "qa/two"], ["qa", "--dry-run"]):
        assert f'{NONE}"two")' in project.run_with(workers, *words).stderr.str()
    chosen = (["qa/one"], ["qa", "-k", "one"], ["qa", "-m", "one"], ["qa", "--ignore=qa/two"])
    assert [project.run_with(workers, *words).ret for words in chosen] == [0] * 4
    node = "qa/one/test_one.py::test_one[one-en-q1]"
    assert project.run_with(workers, node).ret == 6


@pytest.mark.untraced
@pytest.mark.parametrize("workers", [0, 2])
def test_labels_without_a_test_measure_the_judge_also_when_named(
    project: Project, workers: int
) -> None:
    """Their folder among the paths is no worse than out of them; alone it is missed."""
    labelled(project)
    found = []
    for words in (["qa/facts"], ["qa/facts", "qa/labels"], ["qa"]):
        assert project.run_with(workers, *words).ret == 0
        found.append([one["items"] for one in project.report()["judging"]["calibrations"]])
    assert found == [[24]] * 3
    assert f'{NONE}"labels")' in project.run_with(workers, "qa/labels").stderr.str()


MODEL, OTHER = "openai:m@http://127.0.0.1:9/v1", "anthropic:a@http://127.0.0.1:9"


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Return, for each head start, the names of the models it is for; none is really made."""
    made: list[tuple[str, ...]] = []

    def note(load: Callable[[], None]) -> EngineProcess | None:
        assert isinstance(load, partial)
        made.append(tuple(spec.text for spec in load.args[0]))
        return None

    monkeypatch.setattr(head_start, "fork_early", note)
    return made


def start(project: Project, *words: str) -> pytest.Config:
    """Read a command line as a run does, and begin."""
    config = project.parse_config(*words)
    head_start.start_early(config, read_options(config, project.path))
    return config


@tabled("words", "specs")
def test_every_model_that_may_be_asked_is_loaded(
    words: list[str], specs: list[str] | None, loads: list[tuple[str, ...]], project: Project
) -> None:
    """Under test, judging, behind rules, of a panel, named in models.yaml; rules load no SDK."""
    start(project, *words)
    assert [[*one] for one in loads] == ([specs] if specs else [])


def test_a_head_start_without_a_job_ends_with_the_session(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where something turns out to be wrong later the process does not stay."""
    monkeypatch.setattr("evaluators.runtime.process.can_fork", lambda: True)
    config = start(project, "--model", MODEL)
    process = config.stash[head_start.EARLY]._process
    assert process.is_alive()
    config._ensure_unconfigure()
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("option", "starts"),
    [("--replay", False), ("--dry-run", False), ("--collect-only", False), ("--seed=1", True)],
)
def test_who_sends_nothing_starts_nothing_early(
    option: str, starts: bool, project: Project, loads: list[tuple[str, ...]]
) -> None:
    """Replays, dry runs and listings have no use for an SDK."""
    project.dataset("capital", {"en": ["Sofia"]})
    project.run_in_process("qa", f"--model={MODEL}", option)
    assert bool(loads) == starts
