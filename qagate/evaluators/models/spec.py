"""Which model is meant: a SPEC on the command line, or a name in models.yaml, as a Spec.

A SPEC is ``openai:NAME``, ``openai:NAME@URL`` for a server that speaks the provider's protocol,
``http:NAME`` for a service in a models file, or ``python:MODULE:FUNCTION``. All of them become
one kind of object. A Spec says how its model is reached and asked, and what tells it from every
other model; it never holds a key.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from urllib.parse import urlsplit

from qagate.evaluators import doors
from qagate.evaluators.core import Limits, UsageError
from qagate.evaluators.models import anthropic, openai
from qagate.evaluators.models.adapter import Batching, ProviderAdapter
from qagate.evaluators.models.targets import (
    HTTP,
    PYTHON,
    FunctionTarget,
    HttpTarget,
)
from qagate.evaluators.models.urls import is_loopback, is_same_host, normalise_url
from qagate.evaluators.text import mask, one_line

PROVIDERS: Mapping[str, ProviderAdapter] = {
    "openai": openai.ADAPTER,
    "anthropic": anthropic.ADAPTER,
    "openai-responses": openai.RESPONSES_ADAPTER,
}
CALL_DEADLINE_S = 120.0
ITEM_DEADLINE_S = 900.0
MAX_NAME_LENGTH = 200
MODELS_FILE = (
    "models in addition to evaluators/models.yaml, in the same form; its entries win"
)
"""The help of ``--models``."""
_URL_MARK = re.compile(r"@(?=https?://)", re.IGNORECASE)
_ADDRESS_MARK = re.compile(r"@(?:https?:|\[|localhost\b|[\w.-]+:\d)", re.IGNORECASE)
"""Begins what looks like an address, although it has no ``http://``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """USD per million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    """Input read from the provider's prompt cache; None if it costs what other input does."""
    cache_write: float | None = None
    """Input written to that cache; None as above."""

    @property
    def inputs(self) -> list[float]:
        """The prices of plain input, of input read from a cache, and of input written to it."""
        prices = (self.input, self.cache_read, self.cache_write)
        return [self.input if price is None else price for price in prices]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """What a models file says about batches; None where it leaves that to the provider."""

    calls: int | None = None
    """The most calls in one batch."""
    size: int | None = None
    """The most bytes in one batch."""
    price: float | None = None
    """A call's price as a share of its price outside a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One model, without its key."""

    text: str
    """What the user wrote."""
    provider: str
    name: str
    base_url: str = ""
    """Empty for a function."""
    api_key_env: str = ""
    """The variable that holds its key; empty if none is named."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    """Go into every request and win over a prompt's."""
    omit: tuple[str, ...] = ()
    """Parameters that are never sent."""
    max_tokens_as: str = "max_tokens"
    """The API's own name for ``max_tokens``."""
    answers_as: tuple[str, ...] = ()
    """Further model names that its replies may carry; ``*`` allows any."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers that hold keys in place of the provider's own, with the variables they come from."""
    query: Mapping[str, str] = field(default_factory=dict)
    """The query of its URL."""
    version: str = ""
    """What the user calls this version of a service or function."""
    http: HttpTarget | None = None
    """How to ask a service that is no known provider."""
    function: FunctionTarget | None = None
    """What to call if there is no server."""
    deadline: float = CALL_DEADLINE_S
    """Seconds for one call."""
    item_deadline: float = ITEM_DEADLINE_S
    """Seconds for all calls of one item."""
    concurrency: int | None = None
    """Calls in flight; None, here and below, means no limit of its own."""
    rpm: int | None = None
    """Requests a minute."""
    tpm: int | None = None
    """Tokens a minute."""
    prices: Prices | None = None
    file: str = field(default="", compare=False)
    """The models file that holds it; empty without one."""
    batch: BatchLimits = BatchLimits()
    """Overrides the provider's batch limits."""

    @property
    def batching(self) -> Batching | None:
        """How its calls go in batches; None if its API has none or it has an address of its own."""
        if self.function or self.headers or self.query:
            return None
        batching = self.adapter.batching
        if batching is None:
            return None
        if self.batch.calls is not None:
            batching = replace(batching, calls=self.batch.calls)
        if self.batch.size is not None:
            batching = replace(batching, size=self.batch.size)
        if self.batch.price is not None:
            batching = replace(batching, price=self.batch.price)
        return batching

    @property
    def is_loopback(self) -> bool:
        """Whether the server, or the function, runs on this machine."""
        return self.function is not None or is_loopback(self.base_url)

    @property
    def is_at_provider(self) -> bool:
        """Whether the server is the provider's own."""
        return is_same_host(self.base_url, self.adapter.base_url)

    @property
    def adapter(self) -> ProviderAdapter:
        """How its provider's API is called."""
        if self.http:
            make_adapter = doors.load_service_adapter()
            return make_adapter(self.http, f"{self.name}@{self.version}")
        return PROVIDERS[self.provider]

    @property
    def takes_case(self) -> bool:
        """Whether it answers cases instead of prompts, so that it cannot judge."""
        return self.function is not None or (
            self.http is not None and self.http.takes_case
        )

    @property
    def identity(self) -> Mapping[str, object]:
        """What tells this model from every other one; part of the ledger's keys."""
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
            **({"http": asdict(self.http)} if self.http else {}),
        }

    @property
    def limits(self) -> Limits:
        """How the model may be asked."""
        max_tokens = self.merged({}).get(self.max_tokens_as)
        return Limits(
            host=urlsplit(self.base_url).netloc or self.name,
            deadline=self.deadline,
            item_deadline=self.item_deadline,
            concurrency=self.concurrency,
            rpm=self.rpm,
            tpm=self.tpm,
            max_tokens=max_tokens if isinstance(max_tokens, int) else None,
            is_random=self.merged({"temperature": 0}).get("temperature") != 0,
            takes_case=self.takes_case,
        )

    def merged(self, parameters: Mapping[str, object]) -> dict[str, object]:
        """Return the parameters to send: the provider's defaults, then these, then our own."""
        defaults = {} if self.function else self.adapter.defaults
        merged = {**defaults, **parameters, **self.parameters}
        for name in self.omit:
            merged.pop(name, None)
        if "max_tokens" in merged:
            merged[self.max_tokens_as] = merged.pop("max_tokens")
        return merged


def parse(text: str, catalogue: Mapping[str, Spec]) -> Spec:
    """Return what a SPEC or a name in the catalogue means. Raises UsageError with what is known."""
    provider, colon, rest = text.partition(":")
    entry = catalogue.get(text)
    if entry is None and provider == HTTP:
        entry = catalogue.get(rest)
    if entry is not None:
        return replace(entry, text=text)
    if provider == PYTHON and rest:
        return of_function(rest, text)
    if not colon or provider not in PROVIDERS:
        raise _unknown(text, catalogue)
    name, base_url = _name_and_url(rest)
    return build(provider, check_name(name, text), base_url, text)


def _name_and_url(text: str) -> tuple[str, str | None]:
    """Return the parts of NAME@URL; None where there is no URL.

    Names may hold ``@``, ``/`` and ``:`` themselves: the last ``@http(s)://`` begins the URL.
    """
    marks = list(_URL_MARK.finditer(text))
    if marks:
        last_mark = marks[-1]
        return text[: last_mark.start()], text[last_mark.end() :]
    if _ADDRESS_MARK.search(text):
        raise UsageError(
            f"{_shown(text)}: an address starts with http:// or https://; write NAME@http://HOST"
        )
    return text, None


def build(provider: str, name: str, base_url: str | None, text: str) -> Spec:
    """Return the Spec of a known provider's model; without a ``base_url``, at its own host."""
    adapter = PROVIDERS[provider]
    address = adapter.base_url if base_url is None else normalise_url(base_url)
    if adapter.adds_v1:
        address = address.removesuffix("/v1")
    is_at_provider = is_same_host(address, adapter.base_url)
    return Spec(
        text=text,
        provider=provider,
        name=name,
        base_url=address,
        api_key_env=adapter.api_key_env if is_at_provider else "",
        max_tokens_as=adapter.max_tokens_as,
    )


def check_judge(spec: Spec) -> Spec:
    """Return the model. Raises UsageError for one that can only answer items."""
    if spec.takes_case:
        raise UsageError(
            f"{spec.text}: it answers items, and cannot judge or write; name a model"
        )
    return spec


def of_function(name: str, text: str) -> Spec:
    """Return the Spec of MODULE:FUNCTION or MODULE:FUNCTION@VERSION, without loading it."""
    function, _, version = name.partition("@")
    return Spec(
        text=text,
        provider=PYTHON,
        name=function,
        version=version,
        function=FunctionTarget(name=function, version=version),
    )


def check_name(name: str, where: str) -> str:
    """Return a model's name. Raises UsageError for one that no server could know."""
    if not re.fullmatch(r"\S+", name) or not name.isprintable() or "://" in name:
        raise UsageError(
            f"{_shown(where)}: {_shown(name)} is not a model's name; "
            "write openai:NAME or openai:NAME@https://HOST/v1"
        )
    if len(name) > MAX_NAME_LENGTH:
        raise UsageError(
            f"{_shown(where)}: the model's name is longer than {MAX_NAME_LENGTH} characters"
        )
    return name


def _unknown(text: str, catalogue: Mapping[str, Spec]) -> UsageError:
    """Return the error for a text that means no model."""
    known = [
        *[f"{provider}:NAME" for provider in PROVIDERS],
        "openai:NAME@URL",
        f"{PYTHON}:MODULE:FUNCTION",
        f"{HTTP}:NAME",
        *sorted(catalogue),
    ]
    hint = _hint(text, catalogue)
    return UsageError(f"unknown model {_shown(text)}{hint} Known: {', '.join(known)}")


def _hint(text: str, catalogue: Mapping[str, Spec]) -> str:
    """Return what was probably meant, as the end of a sentence."""
    if text in PROVIDERS:
        return f": it needs a name, {text}:NAME."
    if re.match(r"https?://|[\w.-]+:\d+(/|$)", text):
        url = text if "://" in text else f"http://{text}"
        example = _shown(f"openai:NAME@{url}")
        return f"; a URL needs the model's name in front: {example}."
    provider, slash, name = text.partition("/")
    if slash and name and provider in PROVIDERS:  # as LiteLLM and inspect write it
        return f"; did you mean {_shown(f'{provider}:{name}')}?"
    for provider, adapter in PROVIDERS.items():
        if text.startswith(adapter.families):
            return f"; did you mean {_shown(f'{provider}:{text}')}?"
    head, _, name = text.partition(":")
    similar = get_close_matches(
        text if head == HTTP else head,
        [*PROVIDERS, PYTHON, *catalogue, *_services(catalogue)],
        n=1,
    )
    if similar:
        return f"; did you mean {_shown(similar[0])}?"
    if name:
        example = _shown(f"openai:{name}@URL")
        return f"; where its server speaks OpenAI's protocol, say {example}."
    return "."


def _services(catalogue: Mapping[str, Spec]) -> list[str]:
    return [f"{HTTP}:{name}" for name, spec in catalogue.items() if spec.http]


def _shown(text: str) -> str:
    return repr(one_line(mask(text), MAX_NAME_LENGTH))
