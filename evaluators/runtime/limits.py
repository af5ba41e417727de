"""The terms on which one model may be asked."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How a model may be asked. None means no limit of its own.

    ``host`` names its server: models with the same host share its pauses. ``deadline`` is the
    longest that one call takes and ``item_deadline`` what one item may take from its first call
    on, both in seconds. ``rpm`` and ``tpm`` are requests and tokens a minute; ``max_tokens`` is the
    longest reply where a request does not say so itself.
    """

    host: str = ""
    deadline: float = 120.0
    item_deadline: float = 900.0
    concurrency: int | None = None
    rpm: int | None = None
    tpm: int | None = None
    max_tokens: int | None = None
