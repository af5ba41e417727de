"""The nouns of a dataset in the making: an article, an item, and how far the item has come."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Literal, cast, get_args

from evaluators.core import QAError

State = Literal["kept", "dropped", "pending"]
Markup = Literal["plain", "wiki"]

FAILURES = frozenset(
    {
        *("timeout", "connection", "unreachable", "bad_body", "error_body"),
        *("server", "overloaded", "rate_limit", "conflict"),
    }
)
"""Kinds of failure that may be one call's own; a wrong key or an empty budget is not."""


class BuildError(QAError):
    """A step cannot be done, though the command was right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a text came from. ``group`` is the kind of source, such as ``news``.

    ``source`` is the file or address as the user gave it; ``page`` is the source's own id.
    """

    group: str
    source: str
    page: str
    title: str
    url: str = ""
    licence: str = ""
    revision: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """One article of a source as it was found."""

    origin: Origin
    text: str
    markup: Markup = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One paragraph on its way to a question.

    ``state`` is how it left the step whose file it stands in: ``dropped`` with a ``reason`` that is
    counted and a ``detail`` that explains, ``pending`` where a call failed that a re-run repeats.
    ``wanted`` and ``answer`` are YES or NO. ``batch`` holds the ids that were asked for together.
    ``generator`` and ``validator`` say who was asked, by which prompt, and what came of it;
    ``review`` which people were asked, and what they said. ``split`` is its part of the frozen set.
    """

    id: str
    language: str
    paragraph: str
    origin: Origin
    state: State = "kept"
    reason: str = ""
    detail: str = ""
    wanted: str = ""
    question: str = ""
    answer: str = ""
    batch: tuple[str, ...] = ()
    generator: Mapping[str, object] = field(default_factory=dict)
    validator: Mapping[str, object] = field(default_factory=dict)
    review: Mapping[str, object] = field(default_factory=dict)
    split: str = ""


def left_out(items: Sequence[Item]) -> list[Item]:
    """Return the items with those dropped whose call failed by itself, the failure as reason.

    Where nothing at all came through the fault is not theirs, and they stay pending; so do those
    that were not asked because the budget, the time or the user ended the work.
    """
    some = any(item.state != "pending" for item in items)
    return [
        replace(item, state="dropped", reason=f"failed_{item.reason}")
        if some and item.state == "pending" and item.reason in FAILURES
        else item
        for item in items
    ]


def article_key(origin: Origin) -> str:
    """Return what tells an article from every other; a file may have been moved in between."""
    is_address = "://" in origin.source
    source = origin.source if is_address else origin.source.rstrip("/").rpartition("/")[2]
    return "\x1f".join((origin.group, source, origin.page))


def item_id(language: str, origin: Origin) -> str:
    """Return the id of an article's item: ASCII, and the same in every run."""
    key = article_key(origin).encode("utf-8", "surrogatepass")
    return f"{language}-{sha256(key).hexdigest()[:12]}"


def to_row(item: Item) -> dict[str, object]:
    """Return an item as the JSON object of a step's file; what is empty is left out."""
    return {key: value for key, value in asdict(item).items() if value or key == "paragraph"}


def from_row(row: object) -> Item:
    """Return the item that ``to_row`` wrote. Raises ValueError saying what is wrong."""
    if not isinstance(row, dict):
        msg = "a JSON object is needed"
        raise ValueError(msg)
    values = dict(row)
    try:
        origin = Origin(**values.pop("origin"))
        item = Item(**values, origin=origin)
    except (TypeError, KeyError) as error:
        msg = f"not an item of this step ({error})"
        raise ValueError(msg) from None
    if item.state not in get_args(State):
        msg = f"state {item.state!r} is none of {', '.join(get_args(State))}"
        raise ValueError(msg)
    return replace(item, batch=tuple(cast("list[str]", item.batch)))
