"""``qagate``: every command by one name, and pytest with our plugin.

A wheel also holds this file as the module ``qagate``, which no package of the user's can hide, so
it can say which one hides ours. It is imported before pytest could: PYTEST_DONT_REWRITE.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

PACKAGES = ("cases", "evaluators", "reports")
HOME = next(
    folder
    for folder in (
        *Path(__file__).resolve().parents,
        *map(Path, sys.path),
    )  # a checkout's install
    if all((folder / name / "__init__.py").is_file() for name in PACKAGES)
)
NOTE = """\
exit codes: 0 done, or every gate passed; 1 a gate failed; 4 wrong arguments; 6 INCONCLUSIVE; the
README has them all"""


def come_first() -> None:
    """Import our packages before others of their names; raises pytest.UsageError if too late."""
    for name in PACKAGES:
        before = sys.modules.get(name)
        where = list(getattr(before, "__path__", ())) or [
            getattr(before, "__file__", None)
        ]
        if before is not None and Path(str(where[0])).resolve() != HOME / name:
            raise pytest.UsageError(
                f"another package named {name!r} is in the way of qagate's own: {where[0]}; rename "
                "it, or run `qagate run` instead of pytest"
            )
    sys.path.insert(0, str(HOME))
    try:
        for name in PACKAGES:
            import_module(name)
    finally:
        sys.path.remove(str(HOME))


come_first()  # pytest imports this module for `-p qagate`, here and in every worker of xdist

pytest_plugins = ("reports.plugin",)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Name this command in pytest's help and errors."""
    if parser.prog == "pytest.main()":
        parser.prog = "qagate run"


def pytest_report_header() -> list[str]:
    """Name packages of the user's that ours hide in this run."""
    found = [PathFinder.find_spec(name) for name in PACKAGES]
    hidden = [Path(spec.origin).parent for spec in found if spec and spec.origin]
    return [
        f"qagate: {folder} cannot be imported in this run: a package of qagate's has its name"
        for folder in hidden
        if folder.resolve().parent != HOME
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code; every error is one line on stderr."""
    from evaluators.command_line import PROGRAMS, Command, Program  # noqa: PLC0415  # ours by now

    commands: dict[str, Command] = {}
    for name in reversed(PACKAGES):
        commands |= PROGRAMS[name].commands
    what = "May this language-model upgrade ship?"
    return Program(what=what, commands=commands, note=NOTE).run(argv)


if __name__ == "__main__":
    sys.exit(main())
