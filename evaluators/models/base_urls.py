"""Base URLs: their one form, those that are never called, and whose server one names."""

import re
import socket
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import SplitResult, urlsplit

from evaluators.core import UsageError
from evaluators.secrets import mask

PORTS = {"http": 80, "https": 443}
METADATA_NAMES = frozenset({"metadata", "metadata.goog", "metadata.google.internal"})
METADATA_ADDRESSES = frozenset({"fd00:ec2::254", "100.100.100.200", "192.0.0.192"})


def is_same_host(one: str, other: str) -> bool:
    """Return whether two base URLs in their normal form have scheme, host and port in common."""
    return urlsplit(one)[:2] == urlsplit(other)[:2]


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
