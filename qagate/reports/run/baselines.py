"""Runs that were promoted: kept by name under ``reports/baselines``."""

from difflib import get_close_matches
from pathlib import Path

from qagate.evaluators.core import UsageError
from qagate.evaluators.text import shown

BASELINES = Path("reports", "baselines")
"""Where promoted runs lie, from the working folder: a folder each, to be committed."""


def find_run(given: str, here: Path = Path()) -> Path:
    """Return the run of a path or a promoted run's name; raises UsageError with names there are."""
    path, named = here / given, here / BASELINES / given
    if path.exists() or Path(given).name != given:
        return path
    if (named / "run.json").is_file():
        return named
    names = [one.name for one in promoted(here)]
    near = get_close_matches(given, names, n=1)
    hint = (
        f"did you mean {near[0]!r}?"
        if near
        else f"promoted: {', '.join(names) or 'none'}"
    )
    raise UsageError(
        f"{given}: no such path, and no run was promoted under this name; {hint}"
    )


def promoted(here: Path) -> list[Path]:
    """Return the folders of the promoted runs, by name."""
    return sorted(path.parent for path in (here / BASELINES).glob("*/run.json"))


def check_name(name: str) -> str:
    """Return a name for a run to be promoted under; raises UsageError where it is no plain one."""
    if (
        not name.replace("-", "").replace("_", "").replace(".", "").isalnum()
        or name[0] in ".-"
    ):
        raise UsageError(
            f"{shown(name)}: a name of letters, digits, '.', '_' and '-' is needed"
        )
    return name
