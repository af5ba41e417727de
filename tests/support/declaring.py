"""Small dataset.yaml, gates and data files of the tests' own, loaded, and refusals of bad ones."""

import json
from pathlib import Path

import pytest

from qagate.cases.config import load_dataset
from qagate.cases.dataset import Dataset, Slice
from qagate.cases.loading import load_cases
from qagate.evaluators.core import Case, UsageError
from qagate.evaluators.kinds import kind_of
from qagate.evaluators.rubric import RUBRICS


def made(path: Path, kind: str = "graded", yes: str = "", no: str = "") -> Slice:
    return Slice(
        dataset="d", language="en", kind=kind_of(kind), path=path, yes=yes, no=no
    )


def loaded(
    folder: Path, text: str, suffix: str = "csv", kind: str = "graded"
) -> list[Case]:
    path = folder / f"data.{suffix}"
    path.write_bytes(text.encode())
    return load_cases(made(path, kind))


def line(**values: object) -> str:
    return json.dumps({"question": "q?", "answer": "a", **values})


PROMPT = "name: answer\nlanguage: {}\nversion: '1'\nuser: '{{question}}?'\n"
RUBRIC = """name: facts
language: {}
version: '1'
protocol: letter
user: '{{question}} {{target}} {{predicted_answer}}'
"""
GRADED = "kind: graded\nlanguages:\n  en:\n    file: en.csv\n"
RATED = "kind: rated\nlanguages: {en: {file: a.yaml}}\n"
YES_NO = "kind: yes_no\nlanguages: {be: {file: a.json, yes: Так, no: Не}}\n"
JUDGED = "kind: judged\nlanguages: {en: {file: a.csv}}\n"


def declared(folder: Path, text: str, rubrics: Path = RUBRICS) -> Dataset:
    path = folder / "dataset.yaml"
    path.write_text(text, encoding="utf-8")
    return load_dataset(path, rubrics)


def refusal(folder: Path, text: str, rubrics: Path = RUBRICS) -> str:
    with pytest.raises(UsageError) as caught:
        declared(folder, text, rubrics)
    message = str(caught.value)
    assert "\n" not in message
    return message


def gates(folder: Path, text: str) -> Path:
    path = folder / "gates.yaml"
    path.write_text(text, encoding="utf-8")
    return path
