"""Reruns of failing tests, which pytest's plug-ins offer, are refused: a miss is a finding.

A call that fails is another matter: the engine tries it again by itself.
"""

import pytest

from evaluators.core import UsageError

# Option and its value's name, as pytest-rerunfailures, pytest-retry and flaky have them.
_RERUN_OPTIONS = (
    ("--reruns", "reruns"),
    ("--force-reruns", "force_reruns"),
    ("--retries", "retries"),
    ("--force-flaky", "force_flaky"),
)
_RERUN_SETTINGS = ("reruns", "retries")


def rerun_settings(config: pytest.Config) -> tuple[str, ...]:
    """Return what asks for failing tests to be run again, from wherever it was given."""
    options = [name for name, value in _RERUN_OPTIONS if config.getoption(value, None)]
    settings = [f"{name} (in the ini file)" for name in _RERUN_SETTINGS if _is_set(config, name)]
    return (*options, *settings)


def _is_set(config: pytest.Config, name: str) -> bool:
    try:
        value = config.getini(name)
    except ValueError:  # no plug-in knows it
        return False
    return str(value or "0").strip() not in ("", "0")


def refuse_reruns(config: pytest.Config) -> None:
    """Raise UsageError where failing items would be run again."""
    found = rerun_settings(config)
    if found:
        raise UsageError(
            f"{', '.join(found)}: a miss is a finding and is not run again until it passes; a call "
            "that fails is retried anyway. Leave it out (PYTEST_ADDOPTS too), or give --gates off"
        )
