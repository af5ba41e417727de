"""Which model is meant: SPEC on the command line, or a name from models.yaml."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

from evaluators.core import Limits, UsageError
from evaluators.models import (
    anthropic,
    http_target,
    openai,
    openai_responses,
    python_function,
)
from evaluators.models.adapter import Batching, ProviderAdapter
from evaluators.models.base_urls import is_loopback, is_same_host, normalise_url
from evaluators.models.http_target import HttpTarget
from evaluators.models.python_function import FunctionTarget
from evaluators.secrets import mask, one_line

PROVIDERS: Mapping[str, ProviderAdapter] = {
    "openai": openai.ADAPTER,
    "anthropic": anthropic.ADAPTER,
    "openai-responses": openai_responses.ADAPTER,
}

PYTHON, HTTP = python_function.PROVIDER, http_target.PROVIDER

DEADLINE = 120.0
ITEM_DEADLINE = 900.0
MAX_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """USD per million tokens.

    ``cache_read`` and ``cache_write`` are those of input that a provider reads from its cache of
    prompts or writes to it; None where they cost what other input does.
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None

    @property
    def inputs(self) -> tuple[float, float, float]:
        """The prices of input: that no cache has to do with, that one gives, that one takes."""
        of_cache = (self.cache_read, self.cache_write)
        read, write = (self.input if one is None else one for one in of_cache)
        return self.input, read, write


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One model behind an API, without its key.

    ``text`` is what the user wrote. ``api_key_env`` names the variable that holds its key; empty
    where none is named, as a provider's own key is for the provider's own host only.
    ``parameters`` go into every request and win over those of a prompt; those in ``omit`` are never
    sent. ``max_tokens_as`` is the API's own name for ``max_tokens``. ``answers_as`` are further
    model names that its replies may carry (``*``: any). ``headers`` are headers that hold
    keys in place of the provider's own way, by the variables that they are in; ``query`` is what
    stands behind the URL. ``version`` is what the user calls this release of what stands there.
    ``http`` is how a service that is no known provider is asked, ``function`` what is called where
    there is no server at all.
    ``deadline`` is in seconds and holds for one whole call, ``item_deadline`` for one whole item.
    ``rpm`` and ``tpm`` are requests and tokens a minute; None means no limit of its own. ``batch``
    holds what is other in its batches than with the provider, by the names of Batching's fields.
    """

    text: str
    provider: str
    name: str
    base_url: str
    api_key_env: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    omit: tuple[str, ...] = ()
    max_tokens_as: str = "max_tokens"
    answers_as: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    version: str = ""
    http: HttpTarget | None = None
    function: FunctionTarget | None = None
    deadline: float = DEADLINE
    item_deadline: float = ITEM_DEADLINE
    concurrency: int | None = None
    rpm: int | None = None
    tpm: int | None = None
    prices: Prices | None = None
    batch: Mapping[str, Any] = field(default_factory=dict)

    @property
    def batching(self) -> Batching | None:
        """How its calls go in batches, None where its API has none, or an address of its own."""
        if self.function or self.headers or self.query:
            return None
        known = self.adapter.batching
        return known and replace(known, **self.batch)

    @property
    def is_loopback(self) -> bool:
        """Whether the server, or the function, runs on this machine."""
        return self.function is not None or is_loopback(self.base_url)

    @property
    def is_own_host(self) -> bool:
        """Whether the server is the provider's own."""
        return is_same_host(self.base_url, self.adapter.base_url)

    @property
    def adapter(self) -> ProviderAdapter:
        """How its provider's API is called."""
        if self.http:
            return self.http.adapter(f"{self.name}@{self.version}")
        return PROVIDERS[self.provider]

    @property
    def takes_case(self) -> bool:
        """Whether it answers cases themselves, so that it can be no judge."""
        return self.function is not None or (self.http is not None and self.http.takes_case)

    @property
    def identity(self) -> Mapping[str, object]:
        """What tells this model from every other one, as the ledger's keys hold it."""
        if self.function:
            version = self.version or self.function.release
            return {"provider": self.provider, "name": self.name, "version": version}
        return {
            "provider": self.provider,
            "base_url": self.base_url,
            "name": self.name,
            "parameters": {**self.adapter.defaults, **self.parameters},
            "omit": sorted(self.omit),
            "max_tokens_as": self.max_tokens_as,
            **({"query": self.query} if self.query else {}),
            **({"version": self.version} if self.version else {}),
            **({"http": self.http.identity} if self.http else {}),
        }

    @property
    def limits(self) -> Limits:
        """How the model may be asked."""
        longest = self.merged({}).get(self.max_tokens_as)
        return Limits(
            host=urlsplit(self.base_url).netloc or self.name,
            deadline=self.deadline,
            item_deadline=self.item_deadline,
            concurrency=self.concurrency,
            rpm=self.rpm,
            tpm=self.tpm,
            max_tokens=longest if isinstance(longest, int) else None,
            takes_case=self.takes_case,
        )

    def merged(self, parameters: Mapping[str, object]) -> dict[str, object]:
        """Return the parameters to send: provider's defaults, then the prompt's, then our own."""
        usual = {} if self.function else self.adapter.defaults
        every = {**usual, **parameters, **self.parameters}
        every = {key: value for key, value in every.items() if key not in self.omit}
        if "max_tokens" in every:
            every[self.max_tokens_as] = every.pop("max_tokens")
        return every


def parse(text: str, catalogue: Mapping[str, Spec]) -> Spec:
    """Return what a SPEC names: ``provider:name``, ``provider:name@URL`` or a catalogue entry.

    Raises UsageError that lists what is known, with a close match if there is one.
    """
    provider, colon, rest = text.partition(":")
    known = catalogue.get(text) or catalogue.get(rest if provider == HTTP else "")
    if known or (provider == PYTHON and rest):
        return replace(known, text=text) if known else of_function(rest, text)
    if not colon or provider not in PROVIDERS:
        raise _unknown(text, provider if colon else text, catalogue)
    name, base_url = _name_and_url(rest)
    return build(provider, check_name(name, text), base_url, text)


def build(provider: str, name: str, base_url: str | None, text: str) -> Spec:
    """Return the Spec of a known provider; ``base_url`` None means the provider's own."""
    known = PROVIDERS[provider]
    address = known.base_url if base_url is None else normalise_url(base_url)
    if known.adds_v1:
        address = address.removesuffix("/v1")
    is_own = is_same_host(address, known.base_url)
    return Spec(
        text=text,
        provider=provider,
        name=name,
        base_url=address,
        api_key_env=known.api_key_env if is_own else "",
        max_tokens_as=known.max_tokens_as,
    )


def check_judge(spec: Spec) -> Spec:
    """Return the model. Raises UsageError for one that can only answer items, not be asked."""
    if spec.takes_case:
        raise UsageError(f"{spec.text}: it answers items, and cannot judge or write; name a model")
    return spec


def of_function(name: str, text: str) -> Spec:
    """Return the Spec of MODULE:FUNCTION or MODULE:FUNCTION@VERSION, which is not loaded yet."""
    target = FunctionTarget.parse(name)
    return Spec(
        text=text,
        provider=PYTHON,
        name=target.name,
        base_url="",
        api_key_env="",
        version=target.version,
        function=target,
    )


def check_name(name: str, where: str) -> str:
    """Return a model's name; raises UsageError where no server could know it."""
    if re.fullmatch(r"\S+", name) and name.isprintable() and "://" not in name:
        if len(name) <= MAX_NAME:
            return name
        raise UsageError(f"{_shown(where)}: the model's name is longer than {MAX_NAME} characters")
    raise UsageError(
        f"{_shown(where)}: {_shown(name)} is not a model's name; "
        "write openai:NAME or openai:NAME@https://HOST/v1"
    )


def _name_and_url(rest: str) -> tuple[str, str | None]:
    """Split at the last ``@http(s)://``: names may hold ``@``, ``/`` and ``:`` themselves."""
    marks = list(re.finditer(r"@(?=https?://)", rest, re.IGNORECASE))
    if not marks and re.search(r"@(?:https?:|\[|localhost\b|[\w.-]+:\d)", rest, re.IGNORECASE):
        raise UsageError(
            f"{_shown(rest)}: an address starts with http:// or https://; write NAME@http://HOST"
        )
    if not marks:
        return rest, None
    return rest[: marks[-1].start()], rest[marks[-1].end() :]


def _unknown(text: str, head: str, catalogue: Mapping[str, Spec]) -> UsageError:
    services = [f"{HTTP}:{name}" for name, spec in catalogue.items() if spec.http]
    forms = ("openai:NAME@URL", f"{PYTHON}:MODULE:FUNCTION", f"{HTTP}:NAME")
    names = [*(f"{provider}:NAME" for provider in PROVIDERS), *forms, *sorted(catalogue)]
    wanted = text if head == HTTP else head
    close = get_close_matches(wanted, [*PROVIDERS, PYTHON, *catalogue, *services], n=1)
    owner = next((name for name, one in PROVIDERS.items() if text.startswith(one.families)), "")
    _, colon, name = text.partition(":")
    hint = "."
    if text in PROVIDERS:
        hint = f": it needs a name, {text}:NAME."
    elif owner or close:
        hint = f"; did you mean {_shown(f'{owner}:{text}' if owner else close[0])}?"
    elif colon and name:
        hint = f"; where its server speaks OpenAI's protocol, say {_shown(f'openai:{name}@URL')}."
    return UsageError(f"unknown model {_shown(text)}{hint} Known: {', '.join(names)}")


def _shown(text: str) -> str:
    return repr(one_line(mask(text), MAX_NAME))
