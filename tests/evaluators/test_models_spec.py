"""SPECs, base URLs, entries of models.yaml, and which key goes to which server."""

import os
import pickle
import re
import string
import traceback
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.evaluators.core import UsageError
from qagate.evaluators.models import keys, urls
from qagate.evaluators.models import spec as specs
from qagate.evaluators.models.catalogue import load_catalogue
from qagate.evaluators.text import PLACEHOLDER, Key, mask, one_line
from tests.support.fixtures import Patch
from tests.support.tables import kept, tabled

CATALOGUE = {"house-judge": specs.parse("openai:gpt-4o@http://127.0.0.1:8000/v1", {})}


@tabled("text", "provider", "name", "base_url")
def test_parts(text: str, provider: str, name: str, base_url: str) -> None:
    """A SPEC splits at its first colon and its last ``@http(s)://``."""
    spec = specs.parse(text, {})
    assert (spec.text, spec.provider, spec.name, spec.base_url) == (
        text,
        provider,
        name,
        base_url,
    )


def test_limits_are_those_of_the_entry_and_its_server() -> None:
    """Two models of one server share its name; the longest reply is what would be sent."""
    spec = replace(
        specs.parse("anthropic:c@https://h.example:8443/v1", {}),
        rpm=60,
        max_tokens_as="max_output",
    )
    limits = spec.limits
    assert (limits.host, limits.rpm, limits.max_tokens) == ("h.example:8443", 60, 4096)
    assert (limits.deadline, limits.item_deadline) == (120, 900)
    assert specs.parse("openai:m", {}).limits.max_tokens is None


@given(
    name=st.text(
        string.ascii_letters + string.digits + "/:@._-", min_size=1, max_size=50
    ),
    port=st.integers(1, 65535),
)
def test_any_name_survives(name: str, port: int) -> None:
    """With any signs in the name, the URL after the last ``@http`` does not swallow it."""
    spec = specs.parse(f"openai:{name}@http://127.0.0.1:{port}/v1", {})
    assert (spec.name, spec.base_url) == (
        name,
        urls.normalise_url(f"http://127.0.0.1:{port}/v1"),
    )


@given(st.text(max_size=60))
def test_parsing_ends_in_a_spec_or_a_usage_problem(text: str) -> None:
    """No text raises anything but a UsageError of one line."""
    try:
        specs.parse(text, CATALOGUE)
    except UsageError as problem:
        assert "\n" not in str(problem)


@tabled("text", "hint")
def test_unknown_specs_say_what_is_known(text: str, hint: str) -> None:
    """A wrong SPEC is a UsageError that shows the way out."""
    with pytest.raises(UsageError) as caught:
        specs.parse(text, CATALOGUE)
    assert hint in str(caught.value)


@tabled("address", "problem")
def test_base_urls_that_are_never_called(address: str, problem: str) -> None:
    """Plain http elsewhere, metadata services and odd forms are refused, with the reason."""
    with pytest.raises(UsageError, match="base URL") as caught:
        urls.normalise_url(address)
    assert problem in str(caught.value)


def test_a_password_in_a_url_is_refused_and_not_shown() -> None:
    """No message repeats it, not even where the whole URL was taken for a name."""
    for scheme, said in (
        ("https", "no user or password"),
        ("ftp", "not a model's name"),
    ):
        with pytest.raises(UsageError, match=said) as caught:
            specs.parse(f"openai:m@{scheme}://joe:hunter2@h.example/v1", {})
        assert "hunter2" not in str(caught.value)


@tabled("address", "form")
def test_one_way_to_write_a_base_url(address: str, form: str) -> None:
    """The same server gives the same text, and so the same ledger keys."""
    assert urls.normalise_url(address) == form
    assert urls.normalise_url(form) == form


@tabled("address", "here")
def test_loopback(address: str, here: bool) -> None:
    """Only 127.0.0.0/8, ::1 and localhost are this machine."""
    assert urls.is_loopback(address) is here


def test_identity_tells_models_apart_and_holds_no_key() -> None:
    """Provider, server, name, parameters and omissions make a model; limits and keys do not. Its
    parameters win over the prompt's; omitted ones are gone; max_tokens gets the API's name."""
    spec = specs.Spec(
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
    spec = replace(spec, provider="openai", max_tokens_as="max_completion_tokens")
    merged = spec.merged({"top_k": 2, "temperature": 0, "max_tokens": 100})
    assert merged == {"top_k": 5, "max_completion_tokens": 100}


FULL = kept(__file__, "full")
HEAD = "mine:\n  provider: openai\n  model: m\n"


def entries(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "models.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_field_is_read(tmp_path: Path) -> None:
    """Each key of an entry arrives in the Spec, with its type."""
    spec = load_catalogue(entries(tmp_path, FULL))["mine"]
    assert spec.text == "mine"
    assert (spec.name, spec.base_url) == ("org/name:tag", "http://127.0.0.1:8000/v1")
    assert spec.api_key_env == "MY_KEY"
    assert spec.parameters == {
        "temperature": 0,
        "top_p": 0.5,
        "seed": -1,
        "stop": ["END", "007"],
        "reasoning_effort": "low",
        "chat_template_kwargs": {"enable_thinking": False, "note": "No"},
    }
    assert spec.omit == ("frequency_penalty",)
    assert (spec.max_tokens_as, spec.answers_as) == ("max_completion_tokens", ("*",))
    assert (spec.deadline, spec.item_deadline) == (2.5, 60)
    assert (spec.concurrency, spec.rpm, spec.tpm) == (3, 60, 100_000)
    assert spec.prices == specs.Prices(input=0.15, output=0.6)


def test_the_size_and_price_of_a_batch_are_read(tmp_path: Path) -> None:
    """What an entry says of batches wins over the provider's terms; the rest stays the latter's."""
    path = entries(tmp_path, f"{HEAD}  batch: {{calls: 5, megabytes: 1.5}}\n")
    terms, own = (
        load_catalogue(path)["mine"].batching,
        specs.PROVIDERS["openai"].batching,
    )
    assert terms is not None
    assert own is not None
    assert (terms.calls, terms.size, terms.price) == (5, 1_500_000, own.price)


def test_the_shipped_file_is_sound(tmp_path: Path) -> None:
    """Every shipped entry can be named on the command line; a file of comments has none."""
    shipped = load_catalogue()
    assert len(shipped) >= 4
    assert {specs.parse(name, shipped).provider for name in shipped} == set(
        specs.PROVIDERS
    )
    assert {specs.parse(name, shipped).text for name in shipped} == set(shipped)
    assert load_catalogue(entries(tmp_path, "# nothing yet\n")) == {}


@tabled("text", "problem")
def test_a_wrong_file_names_file_line_and_key(
    tmp_path: Path, text: str, problem: str
) -> None:
    """Each error is one line: where it is, what was got, what is right."""
    with pytest.raises(UsageError) as caught:
        load_catalogue(entries(tmp_path, f"{text}\n"))
    assert f"models.yaml{problem}" in str(caught.value)
    assert "\n" not in str(caught.value)


@tabled("line", "problem")
def test_a_wrong_line_names_file_line_and_key(
    tmp_path: Path, line: str, problem: str
) -> None:
    """So is that of a line in an entry which is right but for it."""
    with pytest.raises(UsageError) as caught:
        load_catalogue(entries(tmp_path, f"{HEAD}  {line}\n"))
    assert f"models.yaml:4: mine: {problem}" in str(caught.value)


KEYS = "  base_url: {url}\n  api_key_env: {variable}\n"


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"])
def test_a_providers_own_key_is_for_no_other_host(
    tmp_path: Path, variable: str
) -> None:
    """Whoever writes a models file in a pull request cannot send the key to a host of theirs."""
    text = HEAD + KEYS.format(url="https://h.example/v1", variable=variable)
    with pytest.raises(
        UsageError, match=f":5: mine: key 'api_key_env': {variable} goes to"
    ):
        load_catalogue(entries(tmp_path, text))
    for url in ("http://127.0.0.1:1/v1", "https://api.openai.com/v1"):
        text = HEAD + KEYS.format(url=url, variable="OPENAI_API_KEY")
        assert (
            load_catalogue(entries(tmp_path, text))["mine"].api_key_env
            == "OPENAI_API_KEY"
        )


@tabled("line")
def test_a_key_in_the_file_is_refused_and_not_shown(tmp_path: Path, line: str) -> None:
    """Keys come from the environment; one that stands in the file is not repeated."""
    with pytest.raises(UsageError, match=r"models\.yaml:\d+: mine") as caught:
        load_catalogue(entries(tmp_path, f"{HEAD}  {line}\n"))
    assert "hush" not in str(caught.value)


REMOTE = specs.parse("openai:m", {})
LOCAL = specs.parse("openai:m@http://127.0.0.1:1/v1", {})
THIRD = specs.parse("openai:m@https://third.example/v1", {})


@pytest.fixture(autouse=True)
def environment(monkeypatch: Patch) -> None:
    """No key of the machine's own plays a part; OpenAI's is a known one."""
    monkeypatch.setenv("OPENAI_API_KEY", " sk-x1\n")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)


@pytest.mark.parametrize("value", [None, "", " \n"])
def test_a_missing_key_is_a_usage_problem(
    monkeypatch: Patch, value: str | None
) -> None:
    """The message names the variable to set; only a loopback server needs no key."""
    if value is None:
        monkeypatch.delenv("OPENAI_API_KEY")
    else:
        monkeypatch.setenv("OPENAI_API_KEY", value)
    with pytest.raises(UsageError, match="set the environment variable OPENAI_API_KEY"):
        keys.require_key(REMOTE)
    assert keys.require_key(LOCAL).reveal() == PLACEHOLDER


@pytest.fixture
def env_file(tmp_path: Path, monkeypatch: Patch) -> Path:
    """Return the path of the ``.env`` that counts; nothing is there yet."""
    path = tmp_path / ".env"
    monkeypatch.setattr("qagate.evaluators.models.keys.ENV_FILE", path)
    return path


def test_a_key_may_be_noted_in_a_file(env_file: Path, monkeypatch: Patch) -> None:
    """It is read as it stands, never exported, and the environment wins, even when empty."""
    lines = "# keys\nexport ANTHROPIC_API_KEY='sk-$HOME-1'\nOPENAI_API_KEY=sk-noted # mine\nEMPTY\n"
    env_file.write_text(lines, encoding="utf-8")
    claude = specs.parse("anthropic:c", {})
    before = dict(os.environ)
    assert keys.require_key(claude).reveal() == "sk-$HOME-1"
    assert keys.require_key(REMOTE).reveal() == "sk-x1"
    assert dict(os.environ) == before
    monkeypatch.setenv("ANTHROPIC_API_KEY", "")
    with pytest.raises(UsageError, match=r"ANTHROPIC_API_KEY, or note it in \.env"):
        keys.require_key(claude)
    for spec, url in ((THIRD, "https://third.example/v1"), (LOCAL, LOCAL.base_url)):
        with pytest.raises(UsageError, match="set the environment variable EMPTY"):
            keys.require_key(spec, {url: "EMPTY"})
    assert keys.require_key(LOCAL).reveal() == PLACEHOLDER


def test_a_file_of_keys_that_cannot_be_read_is_said(
    env_file: Path, monkeypatch: Patch
) -> None:
    """The file is named; nothing of it is shown."""
    monkeypatch.delenv("OPENAI_API_KEY")
    env_file.write_bytes(b"OPENAI_API_KEY=sk-\xff-hush\n")
    with pytest.raises(UsageError, match="env") as caught:
        keys.require_key(REMOTE)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("value", ["hush hush", "hush\nhush", "hushй"])
def test_a_key_no_header_can_carry_is_refused_unseen(
    monkeypatch: Patch, value: str
) -> None:
    """Such a key would appear in the HTTP library's own error; no frame holds it either."""
    monkeypatch.setenv("OPENAI_API_KEY", value)
    with pytest.raises(UsageError, match="OPENAI_API_KEY") as caught:
        keys.require_key(REMOTE)
    told = traceback.TracebackException.from_exception(
        caught.value, capture_locals=True
    )
    assert "hush" not in str(caught.value) + repr(told.stack[-1].locals)


def test_a_providers_own_key_goes_to_its_own_host_only() -> None:
    """A loopback server gets the placeholder, another machine nothing until a key is named."""
    assert keys.require_key(REMOTE).reveal() == "sk-x1"
    assert keys.require_key(LOCAL).reveal() == PLACEHOLDER
    message = "no key is named for https://third.example/v1, and OPENAI_API_KEY goes to"
    with pytest.raises(UsageError, match=re.escape(message)):
        keys.require_key(THIRD)
    assert (
        keys.require_key(specs.parse("openai:m@https://api.openai.com/v1", {})).reveal()
        == "sk-x1"
    )
    with pytest.raises(
        UsageError, match="no key is named"
    ):  # another port is another server
        keys.require_key(specs.parse("openai:m@https://api.openai.com:8443/v1", {}))


@pytest.mark.parametrize(
    "given_for",
    ["https://third.example/v1", "https://THIRD.example", "https://third.example:443/"],
)
def test_a_key_named_for_a_server_is_sent_there(
    monkeypatch: Patch, given_for: str
) -> None:
    """--key-env names it by the base URL or one above it, in any spelling."""
    monkeypatch.setenv("THIRD_KEY", "t-1")
    names = keys.read_key_names([f"{given_for}=THIRD_KEY"])
    assert keys.require_key(THIRD, names).reveal() == "t-1"
    with pytest.raises(UsageError, match="set the environment variable UNSET"):
        keys.require_key(THIRD, keys.read_key_names([f"{given_for}=UNSET"]))


def test_the_longest_named_address_counts(monkeypatch: Patch) -> None:
    """A path may have a key of its own; a host whose name only begins alike has none."""
    monkeypatch.setenv("A", "host")
    monkeypatch.setenv("B", "path")
    names = keys.read_key_names(
        ["https://third.example=A", "https://third.example/v1=B"]
    )
    assert keys.require_key(THIRD, names).reveal() == "path"
    with pytest.raises(UsageError, match="no key is named"):
        keys.require_key(
            specs.parse("openai:m@https://third.example.org/v1", {}), names
        )


def test_another_form_is_refused_and_no_key_shown() -> None:
    """Whoever writes the key itself after the equals sign does not see it again."""
    for text in ("NAME", "https://x.example", "https://x.example=sk-secret-1", "=A"):
        with pytest.raises(UsageError) as caught:
            keys.read_key_names([text])
        assert "sk-secret-1" not in str(caught.value)


@given(st.text(max_size=40), st.text(max_size=20))
def test_any_text_is_read_or_refused(url: str, name: str) -> None:
    """Only UsageError leaves the reader."""
    try:
        names = keys.read_key_names([f"{url}={name}"])
    except UsageError:
        return
    assert list(names.values()) == [name]


def test_a_key_shows_stars() -> None:
    """It is not pickled, and masked in texts of any shape unless it is too short."""
    key = Key("s3cret-value")
    assert {repr(key), str(key), f"{key}", "%s" % key, repr([key])[1:-1]} == {"***"}  # noqa: UP031
    assert key.reveal() == "s3cret-value"
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(key)
    assert Key("plainword").mask("bad key plainword!") == "bad key ***!"
    assert Key("bad").mask("bad key") == "bad key"
    assert Key(PLACEHOLDER).mask("no-key was sent") == "no-key was sent"


@tabled("secret")
def test_key_shapes_are_masked(secret: str) -> None:
    """Every common shape is masked, in a sentence too; masking eats no ordinary words."""
    shown = mask(f"Incorrect key: {secret}, sorry.")
    assert "***" in shown
    assert (
        secret.removeprefix("Bearer ").removeprefix("https://").split("@")[0]
        not in shown
    )
    plain = (
        "sk-learning is fun, Bearer certificates, https://h.example/a@b, the risk-based"
    )
    assert mask(plain) == plain


@settings(max_examples=40)
@given(st.text(), st.integers(1, 400))
def test_one_line_is_one_printable_line(text: str, limit: int) -> None:
    """For any text, the line has no control or surrogate characters and keeps its limit."""
    line = one_line(text, limit)
    assert len(line) <= limit
    assert len(line.splitlines()) <= 1
    line.encode("utf-8")
