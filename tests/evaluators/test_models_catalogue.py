"""models.yaml: what an entry may hold, and where a wrong one is."""

from pathlib import Path

import pytest

from evaluators.core import UsageError
from evaluators.models.catalogue import load_catalogue
from evaluators.models.spec import PROVIDERS, Prices, parse
from tests.support.tables import kept, tabled

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
    assert spec.prices == Prices(input=0.15, output=0.6)


def test_the_size_and_price_of_a_batch_are_read(tmp_path: Path) -> None:
    """What an entry says of batches wins over the provider's terms; the rest stays the latter's."""
    spec = load_catalogue(entries(tmp_path, f"{HEAD}  batch: {{calls: 5, megabytes: 1.5}}\n"))[
        "mine"
    ]
    terms, own = spec.batching, PROVIDERS["openai"].batching
    assert terms is not None
    assert own is not None
    assert (terms.calls, terms.size, terms.price) == (5, 1_500_000, own.price)


def test_an_empty_file_has_no_models(tmp_path: Path) -> None:
    """A file of comments is a catalogue of nothing."""
    assert load_catalogue(entries(tmp_path, "# nothing yet\n")) == {}


def test_the_shipped_file_is_sound() -> None:
    """Every shipped entry can be read and named on the command line."""
    shipped = load_catalogue()
    assert len(shipped) >= 4
    assert {parse(name, shipped).provider for name in shipped} == set(PROVIDERS)


@tabled("text", "problem")
def test_a_wrong_file_names_file_line_and_key(tmp_path: Path, text: str, problem: str) -> None:
    """Each error is one line: where it is, what was got, what is right."""
    with pytest.raises(UsageError) as caught:
        load_catalogue(entries(tmp_path, f"{text}\n"))
    assert f"models.yaml{problem}" in str(caught.value)
    assert "\n" not in str(caught.value)


@tabled("line", "problem")
def test_a_wrong_line_names_file_line_and_key(tmp_path: Path, line: str, problem: str) -> None:
    """So is that of a line in an entry which is right but for it."""
    with pytest.raises(UsageError) as caught:
        load_catalogue(entries(tmp_path, f"{HEAD}  {line}\n"))
    assert f"models.yaml:4: mine: {problem}" in str(caught.value)


KEYS = "  base_url: {url}\n  api_key_env: {variable}\n"


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"])
def test_a_providers_own_key_is_for_no_other_host(tmp_path: Path, variable: str) -> None:
    """Whoever writes a models file in a pull request cannot send the key to a host of theirs."""
    text = HEAD + KEYS.format(url="https://h.example/v1", variable=variable)
    with pytest.raises(UsageError, match=f":5: mine: key 'api_key_env': {variable} goes to"):
        load_catalogue(entries(tmp_path, text))
    for url in ("http://127.0.0.1:1/v1", "https://api.openai.com/v1"):
        text = HEAD + KEYS.format(url=url, variable="OPENAI_API_KEY")
        assert load_catalogue(entries(tmp_path, text))["mine"].api_key_env == "OPENAI_API_KEY"


@tabled("line")
def test_a_key_in_the_file_is_refused_and_not_shown(tmp_path: Path, line: str) -> None:
    """Keys come from the environment; one that stands in the file is not repeated."""
    with pytest.raises(UsageError, match=r"models\.yaml:\d+: mine") as caught:
        load_catalogue(entries(tmp_path, f"{HEAD}  {line}\n"))
    assert "hush" not in str(caught.value)
