"""Which model is meant: SPEC on the command line, or a name from models.yaml."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from urllib.parse import urlsplit

from evaluators.core import UsageError
from evaluators.models import url
from evaluators.models.secrets import mask, one_line
from evaluators.runtime.limits import Limits

DEADLINE = 120.0
ITEM_DEADLINE = 900.0
MAX_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """An API: where it stands, where its key is, and what every request to it must hold.

    ``adds_v1`` says that its client writes ``/v1`` itself, so that a URL must not end in it.
    """

    base_url: str
    api_key_env: str
    defaults: Mapping[str, object] = field(default_factory=dict)
    adds_v1: bool = False


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(base_url="https://api.openai.com/v1", api_key_env="OPENAI_API_KEY"),
    "anthropic": Provider(
        base_url="https://api.anthropic.com",
        api_key_env="ANTHROPIC_API_KEY",
        defaults={"max_tokens": 4096},
        adds_v1=True,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """USD per million tokens."""

    input: float
    output: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One model behind an API, without its key.

    ``text`` is what the user wrote. ``parameters`` go into every request and win over those of a
    prompt; those in ``omit`` are never sent. ``max_tokens_as`` is the API's own name for
    ``max_tokens``. ``answers_as`` are further model names that its replies may carry (``*``: any).
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
    deadline: float = DEADLINE
    item_deadline: float = ITEM_DEADLINE
    concurrency: int | None = None
    rpm: int | None = None
    tpm: int | None = None
    prices: Prices | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether the server runs on this machine."""
        return url.is_loopback(self.base_url)

    @property
    def identity(self) -> Mapping[str, object]:
        """What tells this model from every other one, as the ledger's keys hold it."""
        return {
            "provider": self.provider,
            "base_url": self.base_url,
            "name": self.name,
            "parameters": {**PROVIDERS[self.provider].defaults, **self.parameters},
            "omit": sorted(self.omit),
            "max_tokens_as": self.max_tokens_as,
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
        every = {**PROVIDERS[self.provider].defaults, **parameters, **self.parameters}
        every = {key: value for key, value in every.items() if key not in self.omit}
        if "max_tokens" in every:
            every[self.max_tokens_as] = every.pop("max_tokens")
        return every


def parse(text: str, catalogue: Mapping[str, Spec]) -> Spec:
    """Return what a SPEC names: ``provider:name``, ``provider:name@URL`` or a catalogue entry.

    Raises UsageError that lists what is known, with a close match where there is one.
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
    address = known.base_url if base_url is None else url.normalised(base_url)
    if known.adds_v1:
        address = address.removesuffix("/v1")
    return Spec(
        text=text,
        provider=provider,
        name=name,
        base_url=address,
        api_key_env=known.api_key_env,
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
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return UsageError(f"unknown model {_shown(text)}{hint} Known: {', '.join(names)}")


def _shown(text: str) -> str:
    return repr(one_line(mask(text), MAX_NAME))
