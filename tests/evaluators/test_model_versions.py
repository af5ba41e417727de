"""What a model's name says of its version."""

import pytest

from qagate.evaluators.models.versions import version_of


@pytest.mark.parametrize("name", ["m-2026-01-31", "m-20260131", "m@20260131", "m-002"])
def test_a_name_with_a_release_is_a_version(name: str) -> None:
    """Also where it is the very name that was asked for."""
    assert version_of(name, name) == name


def test_another_name_than_was_asked_for_is_a_version() -> None:
    assert version_of("m-turbo", "m") == "m-turbo"


@pytest.mark.parametrize("name", ["m", "m-latest", "gpt-4", "llama-3-8b"])
def test_the_alias_that_was_asked_for_is_none(name: str) -> None:
    """The weights behind it may change while the name stays."""
    assert version_of(name, name) == ""


def test_a_reply_without_a_name_has_none() -> None:
    assert version_of("", "m") == ""
