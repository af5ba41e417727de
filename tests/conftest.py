"""Fixtures that all tests have: an empty project, and nothing of the machine's own settings."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.projects import INI, MODES, MODULE, ROOT, Project, item, new_project

__all__ = ["INI", "MODES", "MODULE", "ROOT", "Project", "item", "new_project"]

pytest_plugins = (
    "pytester",
    "tests.support.folders",
    "tests.support.places",
    "tests.support.postgres",
)

with suppress(
    ImportError
):  # for a mistyped path pytest loads this file in a user's environment
    from hypothesis import settings

    # A busy machine is no reason to fail, and a commit that passed passes again. New examples
    # are drawn where HYPOTHESIS_RANDOM is set.
    settings.register_profile(
        "qagate",
        deadline=None,
        max_examples=50,
        derandomize="HYPOTHESIS_RANDOM" not in os.environ,
    )
    settings.load_profile("qagate")

# A shell lets what it starts in the background ignore Ctrl-C, and so would the tests' processes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Reports differ where CI reads them; tests that mean this set it.
os.environ.pop("CI", None)

# Without byte code every process that a test starts would compile the whole product.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_make_parametrize_id(
    config: pytest.Config, val: object, argname: str
) -> str | None:
    """Name bytes by their argument: what is packed holds the time, and each worker packs anew."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(scope="session", autouse=True)
def _no_keys_of_the_house() -> Iterator[None]:
    """Read no ``.env`` that happens to lie in the folder where the tests were started."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "qagate.evaluators.models.keys.ENV_FILE", Path(os.devnull) / ".env"
        )
        yield


@pytest.fixture(autouse=True)
def _signals_as_before() -> Iterator[None]:
    """Give back the signals that a run in this process took: ignored ones stay so in children."""
    handlers = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        handlers[number] = signal.getsignal(number)
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """Return an empty project in the working folder, with the plugin switched on."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    made = new_project(tmp_path)
    yield made
    for config in made.configs:
        config._ensure_unconfigure()
    made.forget()
