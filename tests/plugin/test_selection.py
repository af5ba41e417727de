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


@pytest.mark.parametrize(
    ("words", "is_known"),
    [
        *((words, True) for words in ("qa", "qa/capital", "qa -x", "-v qa")),
        *((f"qa {words}", False) for words in ("-k bg", "-m capital", "--deselect qa/capital")),
        *((f"qa --ignore{words}", False) for words in (" qa/capital", "-glob *capital*")),
        *((f"qa --{words}", False) for words in ("collect-only", "setup-plan", "fixtures")),
        ("qa/capital/test_capital.py", False),
        ("qa/capital/test_capital.py::test_capital", False),
    ],
)
def test_only_whole_folders_are_known(capital: Project, words: str, is_known: bool) -> None:
    """Folders without a filter hold just what is planned; how a run ends makes no difference.

    What a filter, a single module, or a run without tests selects must be seen first.
    """
    assert known(capital, *words.split()) is is_known


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


@pytest.mark.untraced
@pytest.mark.parametrize("workers", [0, 2])
def test_a_data_set_whose_tests_are_not_collected_is_missed_by_name(
    project: Project, workers: int
) -> None:
    """Whatever the reason; not where an option, a node id or another folder left it out."""
    for name in ("one", "two"):
        project.dataset(name, {"en": ["Sofia"] * 4}, graded({"en": BAR}))
    module = project.path / "qa/two/test_two.py"
    text = module.read_text()
    skipped = "import pytest\npytest.skip('', allow_module_level=True)\n"
    changes = ("", text.replace("@pytest.mark.qa", "# "), skipped)
    for change in changes[: 1 if workers else 3]:
        module.write_text(change)
        result = project.run_with(workers, "qa")
        assert result.ret == 4
        assert f'qa/two/dataset.yaml: {NONE}"two") was collected' in result.stderr.str()
    module.rename(module.with_name("two_cases.py"))
    if not workers:
        for words in (["qa/two"], ["qa/one", "qa/two"], ["qa", "--dry-run"]):
            assert f'{NONE}"two")' in project.run_in_process(*words).stderr.str()
        chosen = (["qa/one"], ["qa", "-m", "one"], ["qa", "--ignore=qa/two"])
        assert [project.run_in_process(*words).ret for words in chosen] == [0] * 3
    assert project.run_with(workers, "qa", "-k", "one").ret == 0
    assert project.run_with(workers, "qa/one/test_one.py::test_one[one-en-q1]").ret == 6


@pytest.mark.untraced
@pytest.mark.parametrize("workers", [0, 2])
def test_labels_without_a_test_measure_the_judge_also_when_named(
    project: Project, workers: int
) -> None:
    """Their folder among the paths is no worse than out of them; alone it is missed."""
    yaml = graded({"en": BAR}, "rubric: simpleqa")
    project.dataset("facts", {"en": ["Sofia"] * 20}, yaml)
    rows = [
        {"question": f"Asked {n}?", "gold": "Sofia", "predicted": said, "label": label}
        for n in range(12)
        for said, label in (("Sofia", "CORRECT"), ("Plovdiv", "INCORRECT"))
    ]
    project.write("qa/labels/dataset.yaml", LABELS)
    project.write("qa/labels/en.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    for words in (["qa/facts", "qa/labels"], *([] if workers else [["qa/facts"], ["qa"]])):
        assert project.run_with(workers, *words).ret == 0
        found = [one["items"] for one in project.report()["judging"]["calibrations"]]
        assert found == [24]
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
