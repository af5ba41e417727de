"""Keys are never shown, and text is safe to show."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.secrets import PLACEHOLDER, Key, mask, one_line
from tests.support.tables import tabled


def test_a_key_shows_stars() -> None:
    """No way of printing a Key gives its value."""
    key = Key("s3cret-value")
    assert {repr(key), str(key), f"{key}", "%s" % key, repr([key])[1:-1]} == {"***"}  # noqa: UP031
    assert key.reveal() == "s3cret-value"


def test_a_key_is_not_pickled() -> None:
    """A Key does not travel to another process."""
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(Key("s3cret-value"))


@tabled("secret")
def test_key_shapes_are_masked(secret: str) -> None:
    """Every common shape is masked, in a sentence too."""
    shown = mask(f"Incorrect key: {secret}, sorry.")
    assert "***" in shown
    assert secret.removeprefix("Bearer ").removeprefix("https://").split("@")[0] not in shown


@pytest.mark.parametrize(
    "text", ["sk-learning is fun", "Bearer certificates", "https://h.example/a@b", "the risk-based"]
)
def test_words_are_left_alone(text: str) -> None:
    """Masking eats no ordinary words."""
    assert mask(text) == text


def test_its_own_key_is_masked_whatever_its_shape() -> None:
    """A key of no known shape is masked where it is known; too short a one is not looked for."""
    assert Key("plainword").mask("bad key plainword!") == "bad key ***!"
    assert Key("bad").mask("bad key") == "bad key"
    assert Key(PLACEHOLDER).mask("no-key was sent") == "no-key was sent"


@settings(max_examples=40)
@given(st.text(), st.integers(1, 400))
def test_one_line_is_one_printable_line(text: str, limit: int) -> None:
    """Whatever comes in, the line has no control or surrogate characters and keeps its limit."""
    line = one_line(text, limit)
    assert len(line) <= limit
    assert len(line.splitlines()) <= 1
    line.encode("utf-8")
