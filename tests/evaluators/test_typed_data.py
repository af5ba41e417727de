"""Data of others: either they fit the type that is wanted, or one line says where they do not."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.evaluators.core import UsageError
from qagate.evaluators.kept_requests import Document
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.ledger.place import LedgerPlace
from qagate.evaluators.typed_data import (
    Count,
    Share,
    Timestamp,
    decode,
    decode_text,
    decode_whole,
    encode,
    read_file,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    name: str
    share: Share = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    at: Timestamp
    count: Count = 0
    parts: tuple[Part, ...] = ()
    free: dict[str, Any] = field(default_factory=dict)


SOUND = Whole(at=5.0, count=2, parts=(Part(name="a", share=0.5),), free={"x": [1]})
WRONG: list[tuple[str, object]] = [
    ("at", "5"),
    ("at", -1.0),
    ("at", 1e12),
    ("at", float("nan")),
    ("at", None),
    ("count", 0.5),
    ("count", -1),
    ("count", 10**400),
    ("count", True),
    ("parts", "a"),
    ("parts", ["a"]),
    ("parts", [{"name": 1}]),
    ("parts", [{"name": "a", "share": 1.5}]),
    ("parts", [{"name": "a", "colour": "red"}]),
    ("free", [1]),
    ("free", {"x": 10**400}),
    ("free", {"x": [float("inf")]}),
    ("free", {"x": float("nan")}),
]
"""Fields with values that do not fit them."""

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda values: (
        st.lists(values, max_size=3)
        | st.dictionaries(
            st.sampled_from(["at", "count", "parts", "name", "share"]), values
        )
    ),
    max_leaves=8,
)


def test_what_was_encoded_is_read_back() -> None:
    text = json.dumps(encode(SOUND))
    assert decode_whole(Whole, json.loads(text)) == SOUND


@pytest.mark.parametrize(("name", "value"), WRONG, ids=lambda value: str(value)[:24])
def test_a_field_that_does_not_fit_is_named(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        decode(Whole, {"at": 5.0, name: value})


def test_a_field_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown field 'more'"):
        decode(Whole, {"at": 5.0, "more": 1})


def test_a_field_with_a_default_may_be_absent() -> None:
    assert decode(Whole, {"at": 5.0}) == Whole(at=5.0)


def test_what_we_wrote_lacks_no_field() -> None:
    with pytest.raises(ValueError, match="no field 'count'"):
        decode_whole(Whole, {"at": 5.0})


def test_values_nested_too_deeply_are_refused() -> None:
    value: list[Any] = []
    for _ in range(5_000):
        value = [value]
    with pytest.raises(ValueError, match=r"nested too deeply|recursion"):
        decode(Whole, {"at": 5.0, "free": {"x": value}})


def test_a_text_nested_too_deeply_is_refused() -> None:
    with pytest.raises(ValueError, match="nested deeper than 100"):
        decode_text(Whole, '{"at": 5, "free": {"x": ' + "[" * 200 + "]" * 200 + "}}")


@given(value=json_values)
def test_data_fit_or_are_refused_in_one_line(value: object) -> None:
    try:
        decode(Whole, value)
    except ValueError as error:
        assert len(str(error).splitlines()) == 1


@pytest.mark.parametrize("text", ["", "{", "[]", '{"at": "x"}', '{"at": 1, "at": 2}'])
def test_a_file_that_does_not_fit_is_one_line_with_its_path(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_file(path, Whole, "write it again")
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert message.endswith("; write it again")
    assert len(message.splitlines()) == 1


def test_a_document_that_no_run_writes_is_set_aside_and_named(
    place: LedgerPlace,
) -> None:
    """Its seal is right: without a secret anybody can make one."""
    with Ledger(place) as ledger:
        ledger.swap(Document("whole", "sound", '{"at": 5}'), None)
        ledger.swap(Document("whole", "odd", '{"at": "soon"}'), None)
        assert ledger.documents_as("whole", Whole) == {"sound": Whole(at=5.0)}
        (note,) = ledger.notes
    assert "1 document of the ledger not used" in note
    assert "whole odd" in note
