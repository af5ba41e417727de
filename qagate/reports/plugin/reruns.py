"""Other plugins that run failing tests again: a run with gates refuses them.

A miss is a finding. An item that is asked until it passes would turn into a PASS by chance.
"""

from contextlib import suppress

import pytest

from qagate.evaluators.core import UsageError

RERUN_OPTIONS = ("reruns", "force_reruns", "retries", "force_flaky")
"""Options of pytest-rerunfailures, pytest-retry and flaky."""
RERUN_SETTINGS = ("reruns", "retries")
"""Those of them that an ini file can set."""


def rerun_settings(config: pytest.Config) -> tuple[str, ...]:
    """Return the options and settings that ask plugins to run failing tests again."""
    settings = []
    for name in RERUN_OPTIONS:
        if config.getoption(name, None):
            settings.append("--" + name.replace("_", "-"))
    for name in RERUN_SETTINGS:
        with suppress(ValueError):  # no plugin has declared it
            value = str(config.getini(name) or "0").strip()
            if value not in ("", "0"):
                settings.append(f"{name} (in the ini file)")
    return tuple(settings)


def refuse_reruns(config: pytest.Config) -> None:
    """Raise UsageError if failing items would be run again."""
    settings = rerun_settings(config)
    if settings:
        raise UsageError(
            f"{', '.join(settings)}: a miss is a finding and is not run again until it passes; "
            "a call that fails is retried anyway. Leave it out (PYTEST_ADDOPTS too), "
            "or give --gates off"
        )
