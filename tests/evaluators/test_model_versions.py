"""What a model's name says of its version."""

from dataclasses import replace

import pytest

from qagate.evaluators.judges.factory import is_same_model
from qagate.evaluators.models.spec import build
from qagate.evaluators.models.versions import may_be_one_spec, version_of


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


@pytest.mark.parametrize(
    ("spec", "other"),
    [
        ("openai:m", "openai:m"),
        ("openai:m", "openai:m-2026-01-31"),
        ("openai:m@http://localhost:8000/v1", "openai:m@http://127.0.0.1:8000/v1"),
        ("openai:m@http://[::1]:8000/v1/", "anthropic:m@http://localhost:8000/v1"),
        ("recorded", "recorded"),
    ],
)
def test_two_specs_of_one_model(spec: str, other: str) -> None:
    """By one address, over any API; a name without a date may be any dated one."""
    assert may_be_one_spec(spec, other)


@pytest.mark.parametrize(
    ("spec", "other"),
    [
        ("openai:m", "openai:n"),
        ("openai:m", "anthropic:m"),
        ("openai:m-2026-01-31", "openai:m-2026-02-28"),
        ("openai:m@http://localhost:8000/v1", "openai:m@http://localhost:8001/v1"),
        ("openai:m@https://user:x@/", "openai:m@http://localhost:8001/v1"),
        ("recorded", "openai:recorded"),
        ("", "openai:m"),
    ],
)
def test_two_specs_of_two_models(spec: str, other: str) -> None:
    assert not may_be_one_spec(spec, other)


@pytest.mark.parametrize(
    ("answers_as", "other_answers_as", "same"),
    [
        ((), (), False),
        (("gpt-4.1",), (), False),
        (("gpt-4.1",), ("gpt-4.1-2025-04-14",), True),
        ((), ("prod",), True),
        (("*",), ("*",), False),
    ],
)
def test_a_model_has_the_names_that_its_replies_may_have(
    *, answers_as: tuple[str, ...], other_answers_as: tuple[str, ...], same: bool
) -> None:
    """Names of a models file's ``answers_as``; that any name is allowed says nothing."""
    url = "https://gateway.example/v1"
    model = replace(build("openai", "prod", url, "openai:prod"), answers_as=answers_as)
    judge = replace(
        build("openai", "strict", url, "openai:strict"), answers_as=other_answers_as
    )
    assert is_same_model(model, judge) == same
