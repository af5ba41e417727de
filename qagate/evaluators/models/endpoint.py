"""How requests reach one model's server: URL, headers, proxy and certificates.

A provider's SDK knows where requests go and which headers they carry. It is asked once
for each model, and the answer is an Endpoint; all calls then go through aiohttp. Building
and sending each request by the SDK would triple the work of a call.

Three rules hold here. A key goes to the host that it is for and never along a redirect;
what an SDK reads from the environment goes to its provider's own host alone; and no reply
may fill the memory.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from ssl import SSLContext
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
import msgspec
from multidict import CIMultiDict
from yarl import URL

from qagate.evaluators.core import FatalError
from qagate.evaluators.models import failures
from qagate.evaluators.models.adapter import refuse_body
from qagate.evaluators.models.spec import Spec
from qagate.evaluators.text import Key

CONNECT_SECONDS = 10.0
MAX_CONNECTIONS = 1024
"""Above any sensible ``--concurrency``: the engine limits the calls in flight."""
MAX_BODY_BYTES = 5 * 1024 * 1024
KEY_HEADERS = frozenset({"authorization", "x-api-key"})
SENT_ANYWHERE = KEY_HEADERS | {
    "accept",
    "anthropic-version",
    "content-type",
    "user-agent",
}
"""The headers of an SDK that servers other than its provider's own get too."""
encode_json = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where one model's requests go, with the headers and the key that its SDK sends."""

    session: aiohttp.ClientSession
    url: URL
    method: str
    """POST, or GET to send the content as the query."""
    proxy: URL | None = field(repr=False)
    headers: CIMultiDict[str] = field(repr=False)
    """Sent with each request. As headers of the session a proxy would see them outside TLS."""

    async def send(
        self, content: Mapping[str, object]
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request; return the status, headers and decoded body of the response.

        Raises TransientError for a body that is too large, and aiohttp's exceptions.
        """
        url = self.url
        data = None
        if self.method == "GET":
            query = {key: str(value) for key, value in content.items()}
            url = url.update_query(query)
        else:
            data = encode_json(content)
        exchange = self.session.request(
            self.method,
            url,
            headers=self.headers,
            data=data,
            proxy=self.proxy,
            allow_redirects=False,
        )
        body = bytearray()
        async with exchange as response:
            # aiohttp decompresses part by part, so no part can be a bomb.
            async for part in response.content.iter_any():
                body += part
                if len(body) > MAX_BODY_BYTES:
                    refuse_body(f"the reply is larger than {MAX_BODY_BYTES:,} bytes")
        return response.status, response.headers, bytes(body)


def open_endpoint(spec: Spec, key: Key) -> Endpoint:
    """Return the endpoint of a model, for the running event loop.

    Raises FatalError for a proxy or certificates that cannot be used.
    """
    address, sdk_headers = spec.adapter.address(key, spec.base_url)
    url = URL(address, encoded=True).update_query(spec.query)
    proxy = proxy_of(spec)
    headers = _headers(spec, key, sdk_headers)
    return Endpoint(
        session=_open_session(spec, url),
        url=url,
        method=spec.adapter.method,
        proxy=proxy,
        headers=headers,
    )


def _open_session(spec: Spec, url: URL) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(
        limit=MAX_CONNECTIONS,
        ssl=trusted_certificates() if url.scheme == "https" else True,
    )
    # The whole call has a deadline, so reads need no timer of their own.
    timeout = aiohttp.ClientTimeout(
        total=None, sock_connect=min(CONNECT_SECONDS, spec.deadline)
    )
    return aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), timeout=timeout
    )


def _headers(
    spec: Spec, key: Key, sdk_headers: Mapping[str, object]
) -> CIMultiDict[str]:
    """Return the headers that each request to a model carries.

    An SDK takes some from the environment (organisation, project, custom ones). They are for
    the provider's own host; any other server gets the few that it needs.
    """
    headers = CIMultiDict[str]()
    for name, value in sdk_headers.items():
        if not isinstance(value, str):
            continue  # an object of the SDK, for a header that it leaves out
        if spec.is_at_provider or name.casefold() in SENT_ANYWHERE:
            headers.add(name, value)
    if spec.headers:
        for name in KEY_HEADERS:
            headers.popall(name, None)
        headers.update(zip(spec.headers, key.reveals(), strict=True))
    return headers


def trusted_certificates() -> SSLContext:
    """Return the certificates to trust. Raises FatalError if they cannot be read."""
    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        message = (
            f"SSL_CERT_FILE or SSL_CERT_DIR: the certificates cannot be read: {error}"
        )
        raise FatalError(failures.ENVIRONMENT, message) from None


def proxy_of(spec: Spec) -> URL | None:
    """Return the environment's proxy for a model; None if its server is called directly.

    Raises FatalError for a proxy that is not an HTTP proxy.
    """
    scheme, host, *_ = urlsplit(spec.base_url)
    proxies = getproxies()
    address = proxies.get(scheme) or proxies.get("all")
    if not address or spec.is_loopback or proxy_bypass(host):
        return None
    if "://" not in address:
        address = f"http://{address}"
    with suppress(ValueError):
        proxy = URL(address)
        if proxy.scheme in ("http", "https") and proxy.host:
            return proxy
    message = (
        f"{scheme.upper()}_PROXY or ALL_PROXY is not an HTTP proxy's URL; "
        "write http://HOST:PORT"
    )
    raise FatalError(failures.ENVIRONMENT, message)
