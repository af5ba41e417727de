"""models.yaml: what an entry may hold, and where a wrong one is."""

from pathlib import Path

import pytest

from evaluators.core import UsageError
from evaluators.models.catalogue import load_catalogue
from evaluators.models.spec import PROVIDERS, Prices, parse

FULL = """
# a comment
mine:
  provider: openai
  model: org/name:tag
  base_url: http://127.0.0.1:8000/v1/
  api_key_env: MY_KEY
  parameters:
    temperature: 0
    top_p: 0.5
    seed: -1
    stop: [END, 007]
    reasoning_effort: low
    chat_template_kwargs: {enable_thinking: false, note: "No"}
  omit: [frequency_penalty]
  max_tokens_as: max_completion_tokens
  answers_as: ["*"]
  deadline: 2.5
  item_deadline: 60
  concurrency: 3
  rpm: 60
  tpm: 100000
  prices: {input: 0.15, output: 6e-1}
"""
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


WRONG_FILES = [
    ("- a", ":1: a mapping of keys"),
    ("mine: openai", ":1: key 'mine': a mapping is needed, not 'openai'"),
    ("openai:\n  provider: openai\n  model: m", ":1: key 'openai': a name is"),
    ("a+b:\n  provider: openai\n  model: m", ":1: key 'a+b': a name is"),
    ("mine:\n  model: m", ":2: mine: key 'provider': missing or empty"),
    ("mine:\n  provider: openai", ":2: mine: key 'model': missing or empty"),
    ("mine:\n  provider: mistral\n  model: m", ":2: mine: key 'provider': want one"),
    ("mine:\n  provider: openai\n  model: a b", ":3: mine: key 'model': 'mine': 'a b'"),
    (HEAD + "  parameters:\n    stream: true", ":5: mine: parameters: key 'stream': is written by"),
    (HEAD + "  parameters:\n    seed: null", ":5: mine: parameters: key 'seed': is empty"),
]
WRONG_LINES = [
    ("base_url: http://h.example/v1", "key 'base_url': base URL 'http"),
    ("base_url: ''", "key 'base_url': text is needed"),
    ("dedline: 3", "key 'dedline': not known; did you mean 'deadline'?"),
    ("zzz: 3", "key 'zzz': not known; known: provider,"),
    ("deadline: soon", "key 'deadline': a number from 0 to 86400"),
    ("deadline: 1e999", "key 'deadline': a number from 0 to 86400"),
    ("deadline: 0", "key 'deadline': more than 0 seconds"),
    ("deadline: [3]", "key 'deadline': a number from 0"),
    ("rpm: 0", "key 'rpm': a number from 1 is needed, not '0'"),
    ("concurrency: 1.5", "key 'concurrency': a whole number is needed"),
    ("omit: temperature", "key 'omit': a list is needed"),
    ("omit: [[a]]", "key 'omit': a list of names is needed; it holds"),
    ("prices: {input: 1}", "prices: key 'output': missing"),
    ("prices: {input: 1, output: -1}", "prices: key 'output': a number"),
    ("batch: {calls: 0}", "batch: key 'calls'"),
    ("batch: {megabytes: 0}", "batch: key 'megabytes'"),
    ("batch: {price: 1.5}", "batch: key 'price'"),
    ("batch: {size: 5}", "batch: key 'size'"),
    ("parameters: 3", "key 'parameters': a mapping is needed"),
    ("parameters: {seed: 1e999}", "parameters: key 'seed': a number that"),
]


@pytest.mark.parametrize(
    ("text", "problem"),
    [*WRONG_FILES, *((f"{HEAD}  {line}", f":4: mine: {said}") for line, said in WRONG_LINES)],
)
def test_a_wrong_entry_names_file_line_and_key(tmp_path: Path, text: str, problem: str) -> None:
    """Each error is one line: where it is, what was got, what is right."""
    with pytest.raises(UsageError) as caught:
        load_catalogue(entries(tmp_path, f"{text}\n"))
    assert f"models.yaml{problem}" in str(caught.value)
    assert "\n" not in str(caught.value)


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


@pytest.mark.parametrize(
    "lines",
    [
        "  api_key: hush-hush\n",
        "  API-KEY: hush-hush\n",
        "  token: hush-hush\n",
        "  headers: {Authorization: hush-hush}\n",
        "  parameters: {api_key: hush-hush}\n",
        "  parameters: {extra: {authorization: hush-hush}}\n",
        "  api_key_env: hush-hush\n",
        "  query: {api_key: hush-hush}\n",
        "  base_url: https://joe:hush-hush@h.example/v1\n",
        "  deadline: sk-hush-hush1234567\n",
    ],
)
def test_a_key_in_the_file_is_refused_and_not_shown(tmp_path: Path, lines: str) -> None:
    """Keys come from the environment; one that stands in the file is not repeated."""
    with pytest.raises(UsageError, match=r"models\.yaml:\d+: mine") as caught:
        load_catalogue(entries(tmp_path, HEAD + lines))
    assert "hush" not in str(caught.value)
