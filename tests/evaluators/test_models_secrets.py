"""Keys are never shown, and text is safe to show."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.secrets import PLACEHOLDER, Key, mask, one_line


def test_a_key_shows_stars() -> None:
    """No way of printing a Key gives its value."""
    key = Key("s3cret-value")
    assert {repr(key), str(key), f"{key}", "%s" % key, repr([key])[1:-1]} == {"***"}  # noqa: UP031
    assert key.reveal() == "s3cret-value"


def test_a_key_is_not_pickled() -> None:
    """A Key does not travel to another process."""
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(Key("s3cret-value"))


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abc123DEF456",
        "sk-ant-api03-xyz_987",
        "sk-ab12****wxyz",
        "hf_AbCdEf123456",
        "ghp_0123456789abcdef",
        "AIzaSyA1234567890abcdefghij",
        "AKIAIOSFODNN7EXAMPLE",
        "ASIAIOSFODNN7EXAMPLE",
        "ya29.a0AfH6SMBx-1234567890",
        "npm_abcdefghijklmnopqrstuvwxyz0123456789",
        "SG.abcdefghijklmnop-1.qrstuvwxyz0123456789",
        "hvs.CAESIJ0123456789abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0.abc-123",
        "Bearer 0123456789abcdef",
        "https://joe:pa55word@h.example",
    ],
)
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
