"""The eight questions that every tool is given, and what the two models answer.

OLD is right on six of eight. NEW has lost two of these six. On one item the scorer
fails in OLD, on another the model fails in NEW: so each recording shows how its tool
writes a failure of either kind.
"""

import json
from pathlib import Path

ITEMS = (
    # id, language, question, expected, OLD's answer, NEW's answer
    ("q1", "en", "What is the capital of France?", "Paris", "Paris", "Paris"),
    ("q2", "en", "What is the capital of Italy?", "Rome", "Rome", "Rome"),
    ("q3", "en", "What is the capital of Japan?", "Tokyo", "Tokyo", "Tokyo"),
    ("q4", "en", "What is the capital of Spain?", "Madrid", "Madrid", "Madrid"),
    ("q5", "pl", "Co jest stolicą Polski?", "Warszawa", "Warszawa", "Kraków"),
    ("q6", "pl", "Co jest stolicą Węgier?", "Budapeszt", "Budapeszt", "Debreczyn"),
    ("q7", "pl", "Co jest stolicą Austrii?", "Wiedeń", "Wiedeń", "Graz"),
    ("q8", "pl", "Co jest stolicą Czech?", "Praga", "Brno", "Praga"),
)
MODEL_FAILS = {("new", "q8")}
SCORER_FAILS = {("old", "q7")}


def write_items(path: Path, side: str) -> None:
    """Write the items of a side as JSON, for scripts that run where qagate is not installed.

    An ``answer`` of null stands for a model that fails.
    """
    rows = []
    for identifier, language, question, expected, old, new in ITEMS:
        answer = old if side == "old" else new
        row = {
            "id": identifier,
            "language": language,
            "question": question,
            "expected": expected,
            "answer": None if (side, identifier) in MODEL_FAILS else answer,
            "scorer_fails": (side, identifier) in SCORER_FAILS,
        }
        rows.append(row)
    text = json.dumps(rows, ensure_ascii=False, indent=1)
    path.write_text(text, encoding="utf-8")
