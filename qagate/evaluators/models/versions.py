"""Versions of a model, as far as names tell them.

A provider may answer under the very name that was asked for. Such an alias says nothing: the
weights behind it change while the name stays. A version is a name with a release behind it, such
as a date, or another name than was asked for.
"""

import re
from collections.abc import Mapping
from contextlib import suppress

from qagate.evaluators.core import UsageError
from qagate.evaluators.models.urls import normalise_url, with_one_loopback_name

_RELEASE = re.compile(r"[-@:](\d{4}-\d\d(-\d\d)?|\d\d-\d{4}|\d{3,8})")
"""What a provider puts behind a model's name: a date, or a number as in -002."""


def may_be_one_model(name: str, other: str) -> bool:
    """Return whether two names are the same but for a release behind one of them."""
    short, long = sorted((_bare_name(name), _bare_name(other)), key=len)
    if not short or not long.startswith(short):
        return False
    release = long[len(short) :]
    return not release or _RELEASE.fullmatch(release) is not None


def version_of(returned: str, asked: str) -> str:
    """Return the version that a reply names; empty if it names none.

    ``returned`` is the model's name in the reply, ``asked`` the one in the request.
    """
    is_dated = re.search(f"{_RELEASE.pattern}$", returned) is not None
    if returned == asked and not is_dated:
        return ""
    return returned


def _bare_name(name: str) -> str:
    """Return a model's name without a gateway's prefix and the words for "newest release"."""
    last_part = name.casefold().rstrip("/").rpartition("/")[2]
    return last_part.removesuffix(":latest").removesuffix("-latest")


def asked_spec(spec: str, identity: Mapping[str, object]) -> str:
    """Return the SPEC of the model that is asked, whatever a models file calls its entry.

    ``identity`` is what sets the model apart; two entries with other parameters are one model.
    """
    provider = identity.get("provider")
    name = identity.get("name")
    if not provider or not name:
        return spec
    base_url = identity.get("base_url")
    if not base_url:
        return f"{provider}:{name}"
    return f"{provider}:{name}@{base_url}"


def asked_name(spec: str, identity: Mapping[str, object]) -> str:
    """Return the name of a model in the requests; its SPEC where ``identity`` does not say it."""
    return str(identity.get("name", spec))


_SPEC = re.compile(r"(?P<provider>[^:]+):(?P<name>.+?)(@(?P<url>https?://.+))?")


def may_be_one_spec(spec: str, other: str) -> bool:
    """Return whether two SPECs may name one model: by one address, but for a release of the name.

    This machine has one address, whether a SPEC says ``localhost`` or ``127.0.0.1``.
    """
    if spec == other:
        return True
    endpoint, name = _parts_of(spec)
    other_endpoint, other_name = _parts_of(other)
    return endpoint == other_endpoint and may_be_one_model(name, other_name)


def _parts_of(spec: str) -> tuple[str, str]:
    """Return where a model is asked, and its name."""
    match = _SPEC.fullmatch(spec)
    if match is None:
        return "", spec
    url = match["url"]
    if url is None:
        return match["provider"], match["name"]
    with suppress(UsageError):
        url = with_one_loopback_name(normalise_url(url))
    return url, match["name"]
