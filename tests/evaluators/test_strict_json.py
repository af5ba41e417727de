"""Strict JSON: what the standard says, and nothing that Python adds."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators import strict_json

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.text()
    | st.floats(-1e300, 1e300),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_valid_json_is_read_as_the_standard_library_reads_it(value: object) -> None:
    """Being strict changes no value."""
    assert strict_json.loads(json.dumps(value)) == value


@given(st.text(alphabet='{}[]":,\\ntrueNaI0123456789.eE- ', max_size=60))
def test_any_text_is_read_or_refused_with_one_line(text: str) -> None:
    """No text raises anything but ValueError with a message of one line."""
    try:
        value = strict_json.loads(text)
    except ValueError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert not isinstance(value, float) or math.isfinite(value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1, "a": 2}', "'a' stands twice"),
        ('{"x": {"a": 1, "a": 1}}', "'a' stands twice"),
        ("NaN", "NaN is not a JSON number"),
        ("[-Infinity]", "-Infinity is not a JSON number"),
        ("1e999", "beyond the range"),
        ("-1e999", "beyond the range"),
        ("9" * 5000, "5000 digits"),
        ("", "line 1, column 1"),
        ('{"a": 1', "line 1, column 8"),
        ('{\n"a" 1}', "line 2, column 5"),
        ("[" * 5000, "deeper than 100 levels at character 101"),
        ('{"a":' * 5000, "deeper than 100 levels"),
        ("\ufeff1", "BOM"),
    ],
)
def test_what_is_not_strict_json_is_refused(text: str, words: str) -> None:
    """Each refusal says what is wrong, and where if that is known."""
    with pytest.raises(ValueError, match=words):
        strict_json.loads(text)


def test_a_hundred_levels_are_read_and_brackets_in_strings_do_not_count() -> None:
    """The limit is on nesting, not on characters."""
    assert strict_json.loads("[" * 100 + "]" * 100)
    assert strict_json.loads(json.dumps("[" * 200)) == "[" * 200
    assert strict_json.loads(r'"\"[[["') == '"[[['


@pytest.mark.parametrize("text", ['"' + '\\"' * 50_000, '"abc\\', '"' * 50_001])
def test_an_open_string_is_refused(text: str) -> None:
    """Strings that never end are an error of syntax."""
    with pytest.raises(ValueError, match="not JSON"):
        strict_json.loads(text)
