"""Loading small files of the tests' own, and the refusals of bad ones."""

import json
from pathlib import Path

from cases.dataset import Slice
from cases.loading import load_cases
from evaluators.core import Case
from evaluators.kinds import kind_of


def made(path: Path, kind: str = "graded", yes: str = "", no: str = "") -> Slice:
    return Slice(dataset="d", language="en", kind=kind_of(kind), path=path, yes=yes, no=no)


def loaded(folder: Path, text: str, suffix: str = "csv", kind: str = "graded") -> list[Case]:
    path = folder / f"data.{suffix}"
    path.write_bytes(text.encode())
    return load_cases(made(path, kind))


def line(**values: object) -> str:
    return json.dumps({"question": "q?", "answer": "a", **values})
