"""Runs that were promoted: kept by name under ``reports/baselines``.

A command or an option that wants an earlier run takes a path or such a name.
"""

import json
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from qagate.evaluators.core import UsageError
from qagate.evaluators.output import write_whole
from qagate.evaluators.text import shown
from qagate.evaluators.typed_data import read_file

PROMOTED = "promoted.json"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """How a run was promoted; it lies beside the report as ``promoted.json``."""

    name: str
    anyway: str = ""
    """Why it may be a baseline although it did not pass; empty for one that passed."""


def write_promotion(folder: Path, promotion: Promotion) -> None:
    """Keep how a run was promoted. Raises OSError."""
    content = json.dumps(
        {"name": promotion.name, "anyway": promotion.anyway}, ensure_ascii=False
    )
    write_whole(folder / PROMOTED, [f"{content}\n".encode("utf-8", "replace")])


def read_promotion(folder: Path) -> Promotion | None:
    """Return how a run was promoted; None where it was not. Raises UsageError."""
    path = folder / PROMOTED
    if not path.is_file():
        return None
    promotion: Promotion = read_file(
        path, Promotion, "not as `qagate promote` wrote it; promote the run again"
    )
    return promotion


def check_name(name: str) -> str:
    """Return a name for a run to be promoted under; raises UsageError where it is no plain one."""
    letters_and_digits = name.replace("-", "").replace("_", "").replace(".", "")
    if not letters_and_digits.isalnum() or name[0] in ".-":
        raise UsageError(
            f"{shown(name)}: a name of letters, digits, '.', '_' and '-' is needed"
        )
    return name
