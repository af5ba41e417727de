"""A key goes to the server that it was named for, and to no other."""

import os
import pickle
import re
import traceback
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.core import UsageError
from evaluators.models.spec import parse, read_key_names, require_key
from evaluators.secrets import PLACEHOLDER, Key, mask, one_line
from tests.support.tables import tabled

REMOTE = parse("openai:m", {})
LOCAL = parse("openai:m@http://127.0.0.1:1/v1", {})
THIRD = parse("openai:m@https://third.example/v1", {})


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key of the machine's own plays a part; OpenAI's is a known one."""
    monkeypatch.setenv("OPENAI_API_KEY", " sk-x1\n")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)


def test_the_key_comes_from_the_named_variable() -> None:
    """White space at its ends, as secret files leave it, is no part of a key."""
    assert require_key(REMOTE).reveal() == "sk-x1"


@pytest.mark.parametrize("value", [None, "", " \n"])
def test_a_missing_key_is_a_usage_problem(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    """The message names the variable to set; only a loopback server needs no key."""
    if value is None:
        monkeypatch.delenv("OPENAI_API_KEY")
    else:
        monkeypatch.setenv("OPENAI_API_KEY", value)
    with pytest.raises(UsageError, match="set the environment variable OPENAI_API_KEY"):
        require_key(REMOTE)
    assert require_key(LOCAL).reveal() == PLACEHOLDER


@pytest.fixture
def env_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of the ``.env`` that counts; nothing is there yet."""
    path = tmp_path / ".env"
    monkeypatch.setattr("evaluators.models.spec.ENV_FILE", path)
    return path


def test_a_key_may_be_noted_in_a_file(env_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read as it stands, never exported, and the environment wins, even when empty."""
    lines = "# keys\nexport ANTHROPIC_API_KEY='sk-$HOME-1'\nOPENAI_API_KEY=sk-noted # mine\nEMPTY\n"
    env_file.write_text(lines, encoding="utf-8")
    claude = parse("anthropic:c", {})
    before = dict(os.environ)
    assert require_key(claude).reveal() == "sk-$HOME-1"
    assert require_key(REMOTE).reveal() == "sk-x1"
    assert dict(os.environ) == before
    monkeypatch.setenv("ANTHROPIC_API_KEY", "")
    with pytest.raises(UsageError, match=r"ANTHROPIC_API_KEY, or note it in \.env"):
        require_key(claude)
    for spec, url in ((THIRD, "https://third.example/v1"), (LOCAL, LOCAL.base_url)):
        with pytest.raises(UsageError, match="set the environment variable EMPTY"):
            require_key(spec, {url: "EMPTY"})
    assert require_key(LOCAL).reveal() == PLACEHOLDER


def test_a_file_of_keys_that_cannot_be_read_is_said(
    env_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is named; nothing of it is shown."""
    monkeypatch.delenv("OPENAI_API_KEY")
    env_file.write_bytes(b"OPENAI_API_KEY=sk-\xff-hush\n")
    with pytest.raises(UsageError, match="env") as caught:
        require_key(REMOTE)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("value", ["hush hush", "hush\nhush", "hushй"])
def test_a_key_no_header_can_carry_is_refused_unseen(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """Such a key would appear in the HTTP library's own error; no frame holds it either."""
    monkeypatch.setenv("OPENAI_API_KEY", value)
    with pytest.raises(UsageError, match="OPENAI_API_KEY") as caught:
        require_key(REMOTE)
    told = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert "hush" not in str(caught.value) + repr(told.stack[-1].locals)


def test_a_providers_own_key_goes_to_its_own_host_only() -> None:
    """A loopback server gets the placeholder, another machine nothing until a key is named."""
    assert require_key(LOCAL).reveal() == PLACEHOLDER
    message = "no key is named for https://third.example/v1, and OPENAI_API_KEY goes to"
    with pytest.raises(UsageError, match=re.escape(message)):
        require_key(THIRD)
    assert require_key(parse("openai:m@https://api.openai.com/v1", {})).reveal() == "sk-x1"
    with pytest.raises(UsageError, match="no key is named"):  # another port is another server
        require_key(parse("openai:m@https://api.openai.com:8443/v1", {}))


@pytest.mark.parametrize(
    "given_for", ["https://third.example/v1", "https://THIRD.example", "https://third.example:443/"]
)
def test_a_key_named_for_a_server_is_sent_there(
    monkeypatch: pytest.MonkeyPatch, given_for: str
) -> None:
    """--key-env names it by the base URL or one above it, whatever its spelling."""
    monkeypatch.setenv("THIRD_KEY", "t-1")
    names = read_key_names([f"{given_for}=THIRD_KEY"])
    assert require_key(THIRD, names).reveal() == "t-1"
    with pytest.raises(UsageError, match="set the environment variable UNSET"):
        require_key(THIRD, read_key_names([f"{given_for}=UNSET"]))


def test_the_longest_named_address_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A path may have a key of its own; a host whose name only begins alike has none."""
    monkeypatch.setenv("A", "host")
    monkeypatch.setenv("B", "path")
    names = read_key_names(["https://third.example=A", "https://third.example/v1=B"])
    assert require_key(THIRD, names).reveal() == "path"
    with pytest.raises(UsageError, match="no key is named"):
        require_key(parse("openai:m@https://third.example.org/v1", {}), names)


@pytest.mark.parametrize(
    "text", ["NAME", "https://x.example", "https://x.example=sk-secret-1", "=A"]
)
def test_another_form_is_refused_and_no_key_shown(text: str) -> None:
    """Whoever writes the key itself after the equals sign does not see it again."""
    with pytest.raises(UsageError) as caught:
        read_key_names([text])
    assert "sk-secret-1" not in str(caught.value)


@given(st.text(max_size=40), st.text(max_size=20))
def test_any_text_is_read_or_refused(url: str, name: str) -> None:
    """Only UsageError leaves the reader."""
    try:
        names = read_key_names([f"{url}={name}"])
    except UsageError:
        return
    assert list(names.values()) == [name]


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
