"""Prompts and replies on ``report.html``: those of the items that matter, as far as room allows.

The page is one file that has to open on a phone: all else stands in the transcripts beside it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from reports.render.call_text import parts, title
from reports.run.record import Record
from reports.run.transcripts import Source, calls_of, keys_of

_ITEMS = 300  # are looked at, those that matter most
_BUDGET = 2_000_000  # characters of the page that prompts and replies may take together


def sent_block(
    records: Sequence[Record], source: Source | None, show: Callable[[str], str]
) -> dict[str, Any]:
    """Return ``texts``, ``calls`` made of them by number, and ``items``: numbers of calls by key.

    ``records`` are in the order in which they matter. An item is there with all its calls or not
    at all. ``show`` makes a text harmless.
    """
    first = [record for record in records if record.calls][:_ITEMS]
    found = calls_of(source, keys_of(first)) if source else {}
    first = [record for record in first if not found.keys().isdisjoint(record.calls)]
    texts: dict[str, int] = {}
    calls: dict[str, int] = {}
    shown: list[tuple[str, list[tuple[str, int]]]] = []
    items: dict[str, list[int]] = {}
    room = _BUDGET
    for record in first:
        new = [key for key in record.calls if key in found and key not in calls]
        said = {key: [(name, show(text)) for name, text in parts(found[key])] for key in new}
        room -= sum(len(text) for one in said.values() for _, text in one if text not in texts)
        if room < 0:
            break
        for key, one in said.items():
            calls[key] = len(shown)
            numbered = [(name, texts.setdefault(text, len(texts))) for name, text in one]
            shown.append((show(title(found[key])), numbered))
        items[show(record.key)] = [calls[key] for key in record.calls if key in calls]
    return {"texts": list(texts), "calls": shown, "items": items}
