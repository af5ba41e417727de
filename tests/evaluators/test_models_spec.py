"""SPECs and base URLs: what they mean, and what is refused before any call."""

import string
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.core import UsageError
from evaluators.models.spec import Spec, is_loopback, normalise_url, parse
from tests.support.tables import tabled

CATALOGUE = {"house-judge": parse("openai:gpt-4o@http://127.0.0.1:8000/v1", {})}


@tabled("text", "provider", "name", "base_url")
def test_parts(text: str, provider: str, name: str, base_url: str) -> None:
    """A SPEC splits at its first colon and its last ``@http(s)://``."""
    spec = parse(text, {})
    assert (spec.text, spec.provider, spec.name, spec.base_url) == (text, provider, name, base_url)


def test_limits_are_those_of_the_entry_and_its_server() -> None:
    """Two models of one server share its name; the longest reply is what would be sent."""
    spec = replace(
        parse("anthropic:c@https://h.example:8443/v1", {}), rpm=60, max_tokens_as="max_output"
    )
    limits = spec.limits
    assert (limits.host, limits.rpm, limits.max_tokens) == ("h.example:8443", 60, 4096)
    assert (limits.deadline, limits.item_deadline) == (120, 900)
    assert parse("openai:m", {}).limits.max_tokens is None


@given(
    name=st.text(string.ascii_letters + string.digits + "/:@._-", min_size=1, max_size=50),
    port=st.integers(1, 65535),
)
def test_any_name_survives(name: str, port: int) -> None:
    """Whatever signs a name has, the URL after the last ``@http`` does not swallow it."""
    spec = parse(f"openai:{name}@http://127.0.0.1:{port}/v1", {})
    assert (spec.name, spec.base_url) == (name, normalise_url(f"http://127.0.0.1:{port}/v1"))


@given(st.text(max_size=60))
def test_parsing_ends_in_a_spec_or_a_usage_problem(text: str) -> None:
    """No text raises anything but a UsageError of one line."""
    try:
        parse(text, CATALOGUE)
    except UsageError as problem:
        assert "\n" not in str(problem)


def test_a_catalogue_name_is_a_model() -> None:
    """A name from the catalogue gives its entry, known by that name."""
    spec = parse("house-judge", CATALOGUE)
    assert (spec.text, spec.name, spec.api_key_env) == ("house-judge", "gpt-4o", "")


@tabled("text", "hint")
def test_unknown_specs_say_what_is_known(text: str, hint: str) -> None:
    """A wrong SPEC is a UsageError that shows the way out."""
    with pytest.raises(UsageError) as caught:
        parse(text, CATALOGUE)
    assert hint in str(caught.value)


@tabled("address", "problem")
def test_base_urls_that_are_never_called(address: str, problem: str) -> None:
    """Plain http elsewhere, metadata services and odd forms are refused, with the reason."""
    with pytest.raises(UsageError, match="base URL") as caught:
        normalise_url(address)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("scheme", "said"), [("https", "no user or password"), ("ftp", "not a model's name")]
)
def test_a_password_in_a_url_is_refused_and_not_shown(scheme: str, said: str) -> None:
    """No message repeats it, not even where the whole URL was taken for a name."""
    with pytest.raises(UsageError, match=said) as caught:
        parse(f"openai:m@{scheme}://joe:hunter2@h.example/v1", {})
    assert "hunter2" not in str(caught.value)


@tabled("address", "form")
def test_one_way_to_write_a_base_url(address: str, form: str) -> None:
    """The same server gives the same text, and so the same ledger keys."""
    assert normalise_url(address) == form
    assert normalise_url(form) == form


@tabled("address", "here")
def test_loopback(address: str, here: bool) -> None:
    """Only 127.0.0.0/8, ::1 and localhost are this machine."""
    assert is_loopback(address) is here


def test_identity_tells_models_apart_and_holds_no_key() -> None:
    """Provider, server, name, parameters and omissions make a model; limits and keys do not."""
    spec = Spec(
        text="t",
        provider="anthropic",
        name="claude-x",
        base_url="https://api.anthropic.com",
        api_key_env="SECRET_VARIABLE",
        parameters={"top_k": 5},
        omit=("temperature",),
    )
    assert spec.identity == {
        "provider": "anthropic",
        "base_url": "https://api.anthropic.com",
        "name": "claude-x",
        "parameters": {"max_tokens": 4096, "top_k": 5},
        "omit": ["temperature"],
        "max_tokens_as": "max_tokens",
    }


def test_parameters_an_entry_wins_omits_and_renames() -> None:
    """Ours win over the prompt's; omitted ones are gone; max_tokens gets the API's own name."""
    spec = Spec(
        text="t",
        provider="openai",
        name="m",
        base_url="https://api.openai.com/v1",
        api_key_env="K",
        parameters={"seed": 1},
        omit=("temperature",),
        max_tokens_as="max_completion_tokens",
    )
    merged = spec.merged({"seed": 2, "temperature": 0, "max_tokens": 100})
    assert merged == {"seed": 1, "max_completion_tokens": 100}
