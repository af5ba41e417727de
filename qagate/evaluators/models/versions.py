"""Versions of a model, as far as names tell them.

A provider may answer under the very name that was asked for. Such an alias says nothing: the
weights behind it change while the name stays. A version is a name with a release behind it, such
as a date, or another name than was asked for.
"""

import re

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
