"""The one text of a value, its digest, and the ledger key of a request."""

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from evaluators.core import Request

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def canonical(value: object) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, ASCII."""
    return _CANONICAL.encode(value)


def digest(value: object) -> str:
    """Return the SHA-256 of a value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


def flat(value: "DataclassInstance") -> dict[str, object]:
    """Return the fields of a dataclass's instance by name, as they are.

    ``dataclasses.asdict`` copies everything in them as well: ten times the work.
    """
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def request_key(identity: Mapping[str, object], request: Request) -> str:
    """Return the ledger key of a request to the model with this identity."""
    tool = request.tool
    asked = {
        **flat(request),
        "messages": [flat(message) for message in request.messages],
        "tool": None if tool is None else flat(tool),
    }
    return digest({"model": dict(identity), "request": asked})
