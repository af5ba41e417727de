"""Which model is meant: SPEC on the command line, or a name from models.yaml; and base URLs."""

import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import SplitResult, urlsplit

from evaluators.core import Limits, UsageError
from evaluators.models import anthropic, openai, openai_responses
from evaluators.models.adapter import ProviderAdapter
from evaluators.models.secrets import mask, one_line

PROVIDERS: Mapping[str, ProviderAdapter] = {
    "openai": openai.ADAPTER,
    "anthropic": anthropic.ADAPTER,
    "openai-responses": openai_responses.ADAPTER,
}

DEADLINE = 120.0
ITEM_DEADLINE = 900.0
MAX_NAME = 200

PORTS = {"http": 80, "https": 443}
METADATA_NAMES = frozenset({"metadata", "metadata.goog", "metadata.google.internal"})
METADATA_ADDRESSES = frozenset({"fd00:ec2::254", "100.100.100.200", "192.0.0.192"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """USD per million tokens."""

    input: float
    output: float


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
    ``deadline`` is in seconds and holds for one whole call, ``item_deadline`` for one whole item.
    ``rpm`` and ``tpm`` are requests and tokens a minute; None means no limit of its own.
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
    deadline: float = DEADLINE
    item_deadline: float = ITEM_DEADLINE
    concurrency: int | None = None
    rpm: int | None = None
    tpm: int | None = None
    prices: Prices | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether the server runs on this machine."""
        return is_loopback(self.base_url)

    @property
    def is_own_host(self) -> bool:
        """Whether the server is the provider's own."""
        return is_same_host(self.base_url, self.adapter.base_url)

    @property
    def adapter(self) -> ProviderAdapter:
        """How its provider's API is called."""
        return PROVIDERS[self.provider]

    @property
    def identity(self) -> Mapping[str, object]:
        """What tells this model from every other one, as the ledger's keys hold it."""
        return {
            "provider": self.provider,
            "base_url": self.base_url,
            "name": self.name,
            "parameters": {**self.adapter.defaults, **self.parameters},
            "omit": sorted(self.omit),
            "max_tokens_as": self.max_tokens_as,
            **({"query": self.query} if self.query else {}),
            **({"version": self.version} if self.version else {}),
        }

    @property
    def limits(self) -> Limits:
        """How the model may be asked."""
        longest = self.merged({}).get(self.max_tokens_as)
        return Limits(
            host=urlsplit(self.base_url).netloc,
            deadline=self.deadline,
            item_deadline=self.item_deadline,
            concurrency=self.concurrency,
            rpm=self.rpm,
            tpm=self.tpm,
            max_tokens=longest if isinstance(longest, int) else None,
        )

    def merged(self, parameters: Mapping[str, object]) -> dict[str, object]:
        """Return the parameters to send: provider's defaults, then the prompt's, then our own."""
        every = {**self.adapter.defaults, **parameters, **self.parameters}
        every = {key: value for key, value in every.items() if key not in self.omit}
        if "max_tokens" in every:
            every[self.max_tokens_as] = every.pop("max_tokens")
        return every


def parse(text: str, catalogue: Mapping[str, Spec]) -> Spec:
    """Return what a SPEC names: ``provider:name``, ``provider:name@URL`` or a catalogue entry.

    Raises UsageError that lists what is known, with a close match if there is one.
    """
    if text in catalogue:
        return replace(catalogue[text], text=text)
    provider, colon, rest = text.partition(":")
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


def check_name(name: str, where: str) -> str:
    """Return a model's name; raises UsageError where no server could know it."""
    if re.fullmatch(r"\S+", name) and name.isprintable() and "://" not in name:
        if len(name) <= MAX_NAME:
            return name
        msg = f"{_shown(where)}: the model's name is longer than {MAX_NAME} characters"
        raise UsageError(msg)
    msg = (
        f"{_shown(where)}: {_shown(name)} is not a model's name; "
        "write openai:NAME or openai:NAME@https://HOST/v1"
    )
    raise UsageError(msg)


def _name_and_url(rest: str) -> tuple[str, str | None]:
    """Split at the last ``@http(s)://``: names may hold ``@``, ``/`` and ``:`` themselves."""
    marks = list(re.finditer(r"@(?=https?://)", rest, re.IGNORECASE))
    if not marks and re.search(r"@(?:https?:|\[|localhost\b|[\w.-]+:\d)", rest, re.IGNORECASE):
        msg = f"{_shown(rest)}: an address starts with http:// or https://; write NAME@http://HOST"
        raise UsageError(msg)
    if not marks:
        return rest, None
    return rest[: marks[-1].start()], rest[marks[-1].end() :]


def _unknown(text: str, head: str, catalogue: Mapping[str, Spec]) -> UsageError:
    names = [*(f"{provider}:NAME" for provider in PROVIDERS), "openai:NAME@URL", *sorted(catalogue)]
    close = get_close_matches(head, [*PROVIDERS, *catalogue], n=1)
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


def is_same_host(one: str, other: str) -> bool:
    """Return whether two base URLs in their normal form have scheme, host and port in common."""
    return urlsplit(one)[:2] == urlsplit(other)[:2]


def _shown(text: str) -> str:
    return repr(one_line(mask(text), MAX_NAME))


def normalise_url(url: str) -> str:
    """Return a base URL in lower-case scheme and host, without default port and end slash.

    Raises UsageError for anything but http(s), for http to another machine, credentials, a query
    or fragment, and the link-local and metadata addresses of cloud machines.
    """
    # ``urlsplit`` drops line breaks without a word, so odd characters are refused first.
    if not re.fullmatch(r"[!-~]+", url) or "\\" in url:
        raise _refused(url, "it holds spaces, control or non-ASCII characters, or a backslash")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _refused(url, str(error)) from None
    host = (parts.hostname or "").rstrip(".")
    problem = _form_problem(url, parts) or _host_problem(parts.scheme, host)
    if problem:
        raise _refused(url, problem)
    shown = f"[{host}]" if ":" in host else host
    suffix = "" if port in (None, PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{shown}{suffix}{parts.path.rstrip('/')}"


def is_loopback(url: str) -> bool:
    """Return whether a URL names this machine: 127.0.0.0/8, ::1 or localhost."""
    return _loopback_host((urlsplit(url).hostname or "").rstrip("."))


def _refused(url: str, problem: str) -> UsageError:
    return UsageError(f"base URL {mask(url)!r}: {problem}")


def _form_problem(url: str, parts: SplitResult) -> str:
    if parts.scheme not in PORTS:
        return "write http:// or https:// in front"
    if "@" in parts.netloc:
        return "no user or password here; keys come from the environment"
    if "?" in url or "#" in url:
        return "no query (?) and no fragment (#) in a base URL"
    return "" if parts.hostname else "the host is missing"


def _host_problem(scheme: str, host: str) -> str:
    address = _address(host)
    if host in METADATA_NAMES or str(address) in METADATA_ADDRESSES:
        return "a cloud machine's metadata service is never called"
    if address is not None and address.is_link_local:
        return "link-local addresses (169.254.0.0/16, fe80::/10) are never called"
    if scheme == "http" and not _loopback_host(host):
        return "http only to this machine (127.0.0.1, ::1, localhost); use https"
    return ""


def _loopback_host(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a host is written as, if it is one.

    ``inet_aton`` is what resolvers use: it also reads 127.1, 0x7f000001 and 2130706433.
    """
    try:
        address = ip_address(host)
    except ValueError:
        with suppress(OSError):
            return IPv4Address(socket.inet_aton(host))
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
