"""Runs that were promoted: kept by name under ``reports/baselines``.

A command or an option that wants an earlier run takes a path or such a name.
"""

from difflib import get_close_matches
from pathlib import Path

from qagate.evaluators.core import UsageError
from qagate.evaluators.text import shown

BASELINES = Path("reports", "baselines")
"""Where promoted runs lie, from the working folder: a folder each, to be committed."""


def find_run(given: str, here: Path = Path()) -> Path:
    """Return the run of a path or a promoted run's name; raises UsageError with names there are."""
    path = here / given
    is_plain_name = Path(given).name == given
    if path.exists() or not is_plain_name:
        return path
    promoted_run = here / BASELINES / given
    if (promoted_run / "run.json").is_file():
        return promoted_run
    names = [folder.name for folder in promoted(here)]
    hint = f"promoted: {', '.join(names) or 'none'}"
    similar = get_close_matches(given, names, n=1)
    if similar:
        hint = f"did you mean {similar[0]!r}?"
    raise UsageError(
        f"{given}: no such path, and no run was promoted under this name; {hint}"
    )


def promoted(here: Path) -> list[Path]:
    """Return the folders of the promoted runs, by name."""
    return sorted(path.parent for path in (here / BASELINES).glob("*/run.json"))


def check_name(name: str) -> str:
    """Return a name for a run to be promoted under; raises UsageError where it is no plain one."""
    letters_and_digits = name.replace("-", "").replace("_", "").replace(".", "")
    if not letters_and_digits.isalnum() or name[0] in ".-":
        raise UsageError(
            f"{shown(name)}: a name of letters, digits, '.', '_' and '-' is needed"
        )
    return name
