"""The head start of the engine: for whom it is made, what it loads, and that it never stays."""

import signal
from collections.abc import Callable
from functools import partial

import pytest

from evaluators.runtime.process import EngineProcess
from reports.plugin import head_start
from reports.plugin.options import read_options
from tests.conftest import Project
from tests.support.tables import tabled

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
