"""Loading small files of the tests' own, and the refusals of bad ones."""

import json
from pathlib import Path

import pytest

from cases.dataset import Slice
from cases.loading import load_cases
from evaluators.core import Case, UsageError
from evaluators.kinds import kind_of


def made(path: Path, kind: str = "graded", yes: str = "", no: str = "") -> Slice:
    return Slice(dataset="d", language="en", kind=kind_of(kind), path=path, yes=yes, no=no)


def loaded(folder: Path, text: str, suffix: str = "csv", kind: str = "graded") -> list[Case]:
    path = folder / f"data.{suffix}"
    path.write_bytes(text.encode())
    return load_cases(made(path, kind))


def refusal(folder: Path, text: str, suffix: str = "csv", kind: str = "graded") -> str:
    with pytest.raises(UsageError) as caught:
        loaded(folder, text, suffix, kind)
    message = str(caught.value)
    assert f"data.{suffix}" in message
    assert "\n" not in message
    return message


def line(**values: object) -> str:
    return json.dumps({"question": "q?", "answer": "a", **values})
