"""A reply from elsewhere: each field is what it must be, or the reply is refused at once."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.evaluators.core import Reply, ToolCall
from qagate.evaluators.ledger.rows import LATEST, PaidReply, StoredRow, checksum, seal
from qagate.evaluators.reply_fields import checked_reply, read_reply
from qagate.evaluators.text import canonical

REPLY = Reply(
    text="Paris",
    calls=(ToolCall(name="lookup", arguments='{"q": "x"}'),),
    model="m-1",
    input_tokens=12,
    output_tokens=3,
    seconds=0.25,
    cost=0.001,
    cache_read_tokens=4,
)
ROW = seal(PaidReply(key="k", spec="openai:m", reply=REPLY, run="r", at=1.0), 1.0)
FIELDS: dict[str, Any] = json.loads(ROW.reply)
TEXTS = ("text", "finish", "model")
COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
NO_TEXTS: tuple[object, ...] = (None, 1, True, ["x"], {})
NO_COUNTS: tuple[object, ...] = (None, -1, 0.5, True, "1", 10**9 + 1, 10**400, [])
NO_SECONDS: tuple[object, ...] = (None, -1.0, "1", 1e999, float("nan"), 10**400)
NO_COSTS: tuple[object, ...] = (-0.01, "1", True, 1e999, float("nan"), [])
WRONG: list[tuple[str, object]] = [
    *((name, value) for name in TEXTS for value in NO_TEXTS),
    *((name, value) for name in COUNTS for value in NO_COUNTS),
    *(("seconds", value) for value in NO_SECONDS),
    *(("cost", value) for value in NO_COSTS),
    ("batch", None),
    ("batch", 0),
    ("calls", None),
    ("calls", {}),
    ("calls", ["lookup"]),
    ("calls", [{"name": "lookup"}]),
    ("calls", [{"name": "lookup", "arguments": {"q": "x"}}]),
    ("calls", [{"name": None, "arguments": "{}"}]),
    ("calls", [{"name": "a", "arguments": "{}", "id": "1"}]),
    ("calls", [{"name": "a", "arguments": "{}"}] * 10_001),
]
"""Fields with values that no reply has."""


def forged(fields: object) -> StoredRow:
    """Return a row with this content and a checksum that is right."""
    text = canonical(fields)
    return ROW._replace(reply=text, checksum=checksum(ROW.key, ROW.run, ROW.at, text))


def named(value: object) -> str:
    return str(value)[:24]


def test_a_sound_row_gives_the_reply_that_was_kept() -> None:
    assert ROW.opened() == REPLY


@pytest.mark.parametrize(("name", "value"), WRONG, ids=named)
def test_a_row_whose_field_does_not_fit_is_refused(name: str, value: object) -> None:
    """Its checksum is right, as anybody can make one without a secret."""
    row = forged({**FIELDS, name: value})
    assert row.opened() is None
    assert row.text() is None


@pytest.mark.parametrize("name", FIELDS)
def test_a_row_without_a_field_is_refused(name: str) -> None:
    fields = {key: value for key, value in FIELDS.items() if key != name}
    assert forged(fields).opened() is None


@pytest.mark.parametrize("at", [float("nan"), float("inf"), -1.0, 2 * LATEST])
def test_a_row_of_a_time_that_no_calendar_has_is_refused(at: float) -> None:
    row = ROW._replace(at=at, checksum=checksum(ROW.key, ROW.run, at, ROW.reply))
    assert row.opened() is None


def test_a_row_nested_too_deeply_is_refused() -> None:
    text = "[" * 100_000
    row = ROW._replace(reply=text, checksum=checksum(ROW.key, ROW.run, ROW.at, text))
    assert row.opened() is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(
    name=st.sampled_from(sorted(FIELDS)),
    value=JSON,
    more=st.dictionaries(st.text(), JSON),
)
def test_a_row_is_a_reply_or_refused(
    name: str, value: object, more: dict[str, object]
) -> None:
    """Whatever it holds, nothing else is raised."""
    row = forged({**more, **FIELDS, name: value})
    reply = row.opened()
    if reply is not None:
        assert read_reply(row.reply) == reply


class Loud(str):
    def __str__(self) -> str:
        return "other"


def test_a_reply_of_others_code_holds_plain_texts() -> None:
    """An object of a class of theirs could not travel to another process."""
    reply = checked_reply(replace(REPLY, text=Loud("Paris")))
    assert type(reply.text) is str
    assert reply.text == "Paris"


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (
            {"calls": (ToolCall(name="a", arguments={"q": 1}),)},  # type: ignore[arg-type]
            r"calls\[0\]\.arguments does not fit: Expected `str`",
        ),
        ({"calls": None}, "calls does not fit"),
        ({"calls": ({"name": "a", "arguments": {}},)}, r"calls\[0\]\.arguments"),
        ({"seconds": "1"}, "seconds does not fit"),
        ({"cost": float("nan")}, "cost does not fit"),
        ({"input_tokens": -1}, "input_tokens does not fit"),
        ({"batch": 1}, "batch does not fit"),
    ],
)
def test_a_reply_of_others_code_that_does_not_fit_names_its_field(
    field: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        checked_reply(replace(REPLY, **field))
