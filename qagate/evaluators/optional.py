"""Packages that only some data sets or commands need: the extras of ``pyproject.toml``.

Each is asked for where it is declared, before any call is paid, so that a missing one is a line
that says what to install.
"""

from collections.abc import Mapping
from importlib.util import find_spec

from qagate.evaluators.core import UsageError

REQUIREMENTS: Mapping[str, str] = {
    "backports.zstd": "backports.zstd>=1.1",
    "deepeval": "deepeval>=4.3",
    "jsonschema": "jsonschema>=4.20",
    "mwparserfromhell": "mwparserfromhell>=0.7",
    "pandas": "pandas>=2.2",
    "psycopg": "psycopg[binary]>=3.3",
    "ray": "ray>=2.55",
    "pyarrow": "pyarrow>=21",
    "regex": "regex>=2024.4.16",
    "sacrebleu": "sacrebleu>=2.4",
}
"""What to install, by the name of a module; the same as in ``pyproject.toml``."""


def require(module: str, purpose: str) -> None:
    """Raise UsageError with the line that installs a module, if it is not installed."""
    if find_spec(module) is None:
        raise UsageError(not_installed(module, purpose))


def not_installed(module: str, purpose: str) -> str:
    """Return the line that says what to install for a purpose."""
    return f"{purpose}: {module} is not installed; pip install '{REQUIREMENTS[module]}'"
