"""Which model is meant (a SPEC, or a name in models.yaml), base URLs, and which key goes where."""

import os
import re
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from io import StringIO
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from types import MappingProxyType
from urllib.parse import SplitResult, urlsplit

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
from qagate.evaluators.reading import read_text
from qagate.evaluators.text import PLACEHOLDER, Key, mask, one_line

PROVIDERS: Mapping[str, ProviderAdapter] = {
    "openai": openai.ADAPTER,
    "anthropic": anthropic.ADAPTER,
    "openai-responses": openai.RESPONSES_ADAPTER,
}
CALL_DEADLINE_S = 120.0
ITEM_DEADLINE_S = 900.0
MAX_NAME_LENGTH = 200
PORTS = {"http": 80, "https": 443}
METADATA_NAMES = frozenset({"metadata", "metadata.goog", "metadata.google.internal"})
METADATA_ADDRESSES = frozenset({"fd00:ec2::254", "100.100.100.200", "192.0.0.192"})


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
    def is_own_host(self) -> bool:
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
        """Return the parameters to send: the provider's defaults, then these, then our own."""
        usual = {} if self.function else self.adapter.defaults
        every = {**usual, **parameters, **self.parameters}
        every = {key: value for key, value in every.items() if key not in self.omit}
        if "max_tokens" in every:
            every[self.max_tokens_as] = every.pop("max_tokens")
        return every


def parse(text: str, catalogue: Mapping[str, Spec]) -> Spec:
    """Return what a SPEC or a name in the catalogue means. Raises UsageError with what is known."""
    provider, colon, rest = text.partition(":")
    known = catalogue.get(text) or catalogue.get(rest if provider == HTTP else "")
    if known or (provider == PYTHON and rest):
        return replace(known, text=text) if known else of_function(rest, text)
    if not colon or provider not in PROVIDERS:
        raise _unknown(text, provider if colon else text, catalogue)
    # Names may hold ``@``, ``/`` and ``:`` themselves: the last ``@http(s)://`` begins the URL.
    marks = list(re.finditer(r"@(?=https?://)", rest, re.IGNORECASE))
    if not marks and re.search(
        r"@(?:https?:|\[|localhost\b|[\w.-]+:\d)", rest, re.IGNORECASE
    ):
        raise UsageError(
            f"{_shown(rest)}: an address starts with http:// or https://; write NAME@http://HOST"
        )
    name, base_url = (
        (rest[: marks[-1].start()], rest[marks[-1].end() :]) if marks else (rest, None)
    )
    return build(provider, check_name(name, text), base_url, text)


def build(provider: str, name: str, base_url: str | None, text: str) -> Spec:
    """Return the Spec of a known provider's model; without a ``base_url``, at its own host."""
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
    """Return the model. Raises UsageError for one that can only answer items."""
    if spec.takes_case:
        raise UsageError(
            f"{spec.text}: it answers items, and cannot judge or write; name a model"
        )
    return spec


def of_function(name: str, text: str) -> Spec:
    """Return the Spec of MODULE:FUNCTION or MODULE:FUNCTION@VERSION, without loading it."""
    called, _, version = name.partition("@")
    target = FunctionTarget(name=called, version=version)
    return Spec(
        text=text, provider=PYTHON, name=called, version=version, function=target
    )


def check_name(name: str, where: str) -> str:
    """Return a model's name. Raises UsageError for one that no server could know."""
    wrong = ""
    if not re.fullmatch(r"\S+", name) or not name.isprintable() or "://" in name:
        wrong = f"{_shown(name)} is not a model's name; "
        wrong += "write openai:NAME or openai:NAME@https://HOST/v1"
    elif len(name) > MAX_NAME_LENGTH:
        wrong = f"the model's name is longer than {MAX_NAME_LENGTH} characters"
    if wrong:
        raise UsageError(f"{_shown(where)}: {wrong}")
    return name


def _unknown(text: str, head: str, catalogue: Mapping[str, Spec]) -> UsageError:
    services = [f"{HTTP}:{name}" for name, spec in catalogue.items() if spec.http]
    forms = ("openai:NAME@URL", f"{PYTHON}:MODULE:FUNCTION", f"{HTTP}:NAME")
    names = [
        *(f"{provider}:NAME" for provider in PROVIDERS),
        *forms,
        *sorted(catalogue),
    ]
    wanted = text if head == HTTP else head
    close = get_close_matches(wanted, [*PROVIDERS, PYTHON, *catalogue, *services], n=1)
    owner = next(
        (name for name, one in PROVIDERS.items() if text.startswith(one.families)), ""
    )
    _, colon, name = text.partition(":")
    hint = "."
    if text in PROVIDERS:
        hint = f": it needs a name, {text}:NAME."
    elif re.match(r"https?://|[\w.-]+:\d+(/|$)", text):
        url = text if "://" in text else f"http://{text}"
        hint = (
            f"; a URL needs the model's name in front: {_shown(f'openai:NAME@{url}')}."
        )
    elif owner or close:
        hint = f"; did you mean {_shown(f'{owner}:{text}' if owner else close[0])}?"
    elif colon and name:
        hint = f"; where its server speaks OpenAI's protocol, say {_shown(f'openai:{name}@URL')}."
    return UsageError(f"unknown model {_shown(text)}{hint} Known: {', '.join(names)}")


def _shown(text: str) -> str:
    return repr(one_line(mask(text), MAX_NAME_LENGTH))


def is_same_host(one: str, other: str) -> bool:
    """Return whether two normal base URLs share scheme, host and port."""
    return urlsplit(one)[:2] == urlsplit(other)[:2]


def is_loopback(url: str) -> bool:
    """Return whether a URL names this machine: 127.0.0.0/8, ::1 or localhost."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def normalise_url(url: str) -> str:
    """Return a base URL with lower-case scheme and host, without default port and end slash.

    Raises UsageError for all but plain http(s), http to another machine, and what is never called.
    """
    try:
        # ``urlsplit`` silently drops line breaks, so odd characters are refused first.
        if not re.fullmatch(r"[!-~]+", url) or "\\" in url:
            raise ValueError(
                "it holds spaces, control or non-ASCII characters, or a backslash"
            )
        parts = urlsplit(url)
        port, host = parts.port, (parts.hostname or "").rstrip(".")
        if problem := _problem(url, parts, host):
            raise ValueError(problem)
    except ValueError as error:
        raise UsageError(f"base URL {mask(url)!r}: {error}") from None
    shown = f"[{host}]" if ":" in host else host
    suffix = "" if port in (None, PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{shown}{suffix}{parts.path.rstrip('/')}"


def _problem(url: str, parts: SplitResult, host: str) -> str:
    address = _address(host)
    is_metadata = host in METADATA_NAMES or str(address) in METADATA_ADDRESSES
    problems = {
        "write http:// or https:// in front": parts.scheme not in PORTS,
        "no user or password here; keys come from the environment": "@" in parts.netloc,
        "no query (?) and no fragment (#) in a base URL": "?" in url or "#" in url,
        "the host is missing": not parts.hostname,
        "a cloud machine's metadata service is never called": is_metadata,
        "link-local addresses (169.254.0.0/16, fe80::/10) are never called": (
            address is not None and address.is_link_local
        ),
        "http only to this machine (127.0.0.1, ::1, localhost); use https": (
            parts.scheme == "http" and not is_loopback(url)
        ),
    }
    return next((what for what, is_so in problems.items() if is_so), "")


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a host is written as, also 127.1 and 2130706433; None for a name."""
    try:
        address = ip_address(host)
    except ValueError:
        with suppress(OSError):
            return IPv4Address(socket.inet_aton(host))
        return None
    return getattr(address, "ipv4_mapped", None) or address


KEY_ENV = (
    "the environment variable with the key of the server at URL; a provider's own variable is "
    "read for the provider's own host only"
)
MODELS_FILE = (
    "models in addition to evaluators/models.yaml, in the same form; its entries win"
)
ENV_FILE = Path(
    ".env"
)  # in the working folder: keys that the environment does not have
NONE: Mapping[str, str] = MappingProxyType({})
KEY_FORM = r"[!-~]+"
HEADER_FORM = r"[!-~]+(?: [!-~]+)*"  # a scheme such as Bearer may precede the key
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_key_names(texts: Sequence[str]) -> Mapping[str, str]:
    """Return the variables that ``--key-env URL=NAME`` names, by URL, or raise UsageError."""
    found = {}
    for text in texts:
        url, equals, name = text.rpartition("=")
        if not equals or not VARIABLE.fullmatch(name):
            raise UsageError(
                "--key-env: URL=NAME is needed, with the name of an environment variable that "
                f"holds the key; got {mask(url) or 'no URL'} and a name that is not shown"
            )
        found[normalise_url(url)] = name
    return found


def require_key(spec: Spec, names: Mapping[str, str] = NONE) -> Key:
    """Return a model's key from the environment or ``.env``; a placeholder for this machine.

    Of ``names``, by URL, the longest that the model's begins with wins over its own variable. A
    model with ``headers`` needs all their variables. Raises UsageError, without the value, for a
    key that is not named, not set, or that no header can carry. No traceback can show the value.
    """
    if spec.headers:
        values = (
            _checked(spec, name, HEADER_FORM).reveal() for name in spec.headers.values()
        )
        return Key("\n".join(values))
    if spec.http and not spec.api_key_env:
        return Key(PLACEHOLDER)
    above = [url for url in names if f"{spec.base_url}/".startswith(f"{url}/")]
    variable = names[max(above, key=len)] if above else spec.api_key_env
    if spec.is_loopback and not above and read_variable(variable).is_empty:
        return Key(PLACEHOLDER)
    if not variable:
        raise UsageError(
            f"{spec.text}: no key is named for {spec.base_url}, and {spec.adapter.api_key_env} "
            f"goes to {spec.adapter.base_url} only; name the variable that holds its key: "
            f"--key-env {spec.base_url}=NAME, or api_key_env in models.yaml"
        )
    return _checked(spec, variable)


def no_key_sent(spec: Spec, key: Key | None) -> str:
    """Return how to name the key of a server that got none; empty where it got one."""
    if key is None or key.reveal() != PLACEHOLDER:  # of a server of this machine
        return ""
    option = f"if it wants one: --key-env {spec.base_url}=NAME"
    advice = f"set {spec.api_key_env} if it wants one" if spec.api_key_env else option
    return f"no key was sent to {urlsplit(spec.base_url).netloc}; {advice}"


def _checked(spec: Spec, variable: str, form: str = KEY_FORM) -> Key:
    key = read_variable(variable)
    if key.is_empty:
        raise UsageError(
            f"{spec.text}: no API key; set the environment variable {variable}, or note it in .env"
        )
    if not re.fullmatch(form, key.reveal()):
        raise UsageError(
            f"{variable}: the key holds a space, a line break or a non-ASCII character; "
            "set it again (its value is not shown)"
        )
    return key


def read_variable(variable: str) -> Key:
    """Return what the environment, or else ``.env``, has under a name; else an empty key."""
    value = os.environ.get(variable)
    if value is None and variable and ENV_FILE.exists():
        from dotenv import dotenv_values  # noqa: PLC0415  # few have such a file

        value = dotenv_values(
            stream=StringIO(read_text(ENV_FILE)), interpolate=False
        ).get(variable)
    return Key((value or "").strip())
