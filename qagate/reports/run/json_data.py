"""Strict JSON of our values, and a look into free-form data.

``dump`` writes strict JSON, the same text for the same data. ``inner`` and ``mappings`` look
into free-form data, such as a run's provenance, which a report folder may hold in any form.
Data are read as values of a type by ``qagate/evaluators/typed_data.py``.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from qagate.evaluators.output import visible
from qagate.evaluators.typed_data import plain


def dump(value: object, indent: int | None = None) -> str:
    """Return strict JSON: null for NaN and infinities; what is hidden as escapes that read back."""
    dumps = partial(json.dumps, ensure_ascii=False, default=plain, indent=indent)
    try:
        text = dumps(value, allow_nan=False)
    except ValueError:
        finite = json.loads(dumps(value), parse_constant=lambda _: None)
        text = dumps(finite)
    return visible(text)


def ordered(value: object) -> Any:
    """Return free-form data with its mappings by key: they may have been filled in any order."""
    return msgspec.to_builtins(
        value, enc_hook=plain, str_keys=True, order="deterministic"
    )


def inner(value: object, *names: str) -> Mapping[str, Any]:
    """Return the mapping under these names in free-form data; empty where none is."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def mappings(value: object) -> list[Mapping[str, Any]]:
    """Return the mappings in a list of free-form data; none where there is no list."""
    if not isinstance(value, (list, tuple)):
        return []
    return [part for part in value if isinstance(part, Mapping)]
