"""Labelled rows for tests: a mark in each answer decides what the loopback's judge will say."""

import json
from collections.abc import Sequence
from pathlib import Path


def write(name: str, rows: Sequence[dict[str, object]]) -> str:
    Path(name).write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    return name


def graded(number: int, label: str, said: str, **more: object) -> dict[str, object]:
    """Return a row whose judge will give the grade ``said``."""
    return {
        "question": f"Question {number}?",
        "gold": "Sofia",
        "predicted": f"An answer, the {number}th. [[grade={said}]]",
        "label": label,
        **more,
    }


def spec(url: str, wire: str = "openai") -> str:
    return f"{wire}:judge@{url}/v1"


MIXED = [graded(n, "CORRECT", "CORRECT") for n in range(6)]
MIXED += [graded(n, "INCORRECT", "INCORRECT", language="bg") for n in range(6, 9)]
MIXED += [graded(9, "INCORRECT", "CORRECT", language="bg")]
