"""The ``qa`` property of an item in pytest's own JUnit file."""

import json
from dataclasses import asdict

from cases.plan import Item
from evaluators.core import Outcome
from reports.record import make_record
from reports.render.clean import mask

LONGEST = 4000  # characters of each text; the exact text is in records.jsonl


def qa_property(item: Item, outcome: Outcome) -> str:
    """Return the item's record as ASCII JSON, long texts cut with a mark."""
    values = asdict(make_record(item, outcome))
    return json.dumps({name: _short(value) for name, value in values.items()})


def _short(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = mask(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} [... {len(text)} characters]"
