"""Base URLs: one form for each, and refusal of those that are never called.

A base URL tells where a key is sent, so it is read strictly: plain http or https, http to
this machine alone, and no address that only a cloud machine's own services have. Two URLs of
one server have the same form after ``normalise_url``; ledger keys and keys by host rest on it.
"""

import re
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import SplitResult, urlsplit

from qagate.evaluators.core import UsageError
from qagate.evaluators.text import mask

DEFAULT_PORTS = {"http": 80, "https": 443}
METADATA_NAMES = frozenset({"metadata", "metadata.goog", "metadata.google.internal"})
METADATA_ADDRESSES = frozenset({"fd00:ec2::254", "100.100.100.200", "192.0.0.192"})
"""Where a cloud machine reads its own credentials. An answer of theirs would be a secret."""


def is_same_host(url: str, other: str) -> bool:
    """Return whether two normal base URLs share scheme, host and port."""
    return urlsplit(url)[:2] == urlsplit(other)[:2]


def is_loopback(url: str) -> bool:
    """Return whether a URL names this machine: 127.0.0.0/8, ::1 or localhost."""
    host = _host_of(urlsplit(url))
    if host == "localhost":
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def without_local_port(url: str) -> str:
    """Return a base URL of this machine without its port; any other as it is.

    A server of this machine may have another port each day, and is the same server.
    """
    parts = urlsplit(url)
    host = _host_of(parts)
    is_local = host in ("0.0.0.0", "::") or host.endswith(".localhost")
    if not (is_local or is_loopback(url)):
        return url
    if ":" in host:
        host = f"[{host}]"
    return parts._replace(netloc=host).geturl()


def with_one_loopback_name(url: str) -> str:
    """Return a normal base URL in which this machine, by whatever name, is ``localhost``."""
    if not is_loopback(url):
        return url
    parts = urlsplit(url)
    host = "localhost" if parts.port is None else f"localhost:{parts.port}"
    return parts._replace(netloc=host).geturl()


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
        port = parts.port
        _check_parts(url, parts)
    except ValueError as error:
        raise UsageError(f"base URL {mask(url)!r}: {error}") from None
    host = _host_of(parts)
    if ":" in host:
        host = f"[{host}]"
    if port is not None and port != DEFAULT_PORTS[parts.scheme]:
        host = f"{host}:{port}"
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}"


def _check_parts(url: str, parts: SplitResult) -> None:
    """Raise ValueError, with what to do, for a URL that is not called."""
    host = _host_of(parts)
    address = _address(host)
    if parts.scheme not in DEFAULT_PORTS:
        raise ValueError("write http:// or https:// in front")
    if "@" in parts.netloc:
        raise ValueError("no user or password here; keys come from the environment")
    if "?" in url or "#" in url:
        raise ValueError("no query (?) and no fragment (#) in a base URL")
    if not parts.hostname:
        raise ValueError("the host is missing")
    if host in METADATA_NAMES or str(address) in METADATA_ADDRESSES:
        raise ValueError("a cloud machine's metadata service is never called")
    if address is not None and address.is_link_local:
        raise ValueError(
            "link-local addresses (169.254.0.0/16, fe80::/10) are never called"
        )
    if parts.scheme == "http" and not is_loopback(url):
        raise ValueError(
            "http only to this machine (127.0.0.1, ::1, localhost); use https"
        )


def _host_of(parts: SplitResult) -> str:
    return (parts.hostname or "").rstrip(".")


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a host is written as; None for a name.

    127.1 and 2130706433 are ways to write an IPv4 address, which an operating system knows.
    """
    try:
        address = ip_address(host)
    except ValueError:
        try:
            return IPv4Address(socket.inet_aton(host))
        except OSError:
            return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
