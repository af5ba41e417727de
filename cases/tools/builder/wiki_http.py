"""Asking a MediaWiki API over HTTP: identified, patient, and never led to another host."""

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Self

import httpx2

from cases.tools.builder.items import BuildError
from evaluators import strict_json
from evaluators.models.secrets import mask, one_line
from evaluators.models.url import is_loopback

ATTEMPTS = 6
FIRST_WAIT, LONGEST_WAIT = 1.0, 120.0  # seconds
MAXLAG = "5"  # seconds of replication lag at which a wiki asks to be left alone
MAX_REDIRECTS = 3
MAX_BYTES = 64 * 1024 * 1024
SECONDS = 30.0
BUSY = frozenset({"maxlag", "ratelimited", "readonly"})
Sleep = Callable[[float], None]


class WikiError(BuildError):
    """A wiki's API could not be asked, or did not answer as one."""


class _BusyError(Exception):
    """The wiki asks to come back later; ``wait`` is in seconds, where it says so."""

    def __init__(self, what: str, wait: float | None) -> None:
        super().__init__(what)
        self.wait = wait


class Wiki:
    """One wiki's API. Requests go one after the other."""

    def __init__(self, address: str, contact: str, sleep: Sleep = time.sleep) -> None:
        self._address = address
        self._sleep = sleep
        self._client = httpx2.Client(
            timeout=httpx2.Timeout(SECONDS, connect=10.0),
            headers={"user-agent": user_agent(contact)},
            trust_env=not is_loopback(address),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def ask(self, query: Mapping[str, str]) -> Mapping[str, object]:
        """Return the JSON object of an answer.

        Waits where the wiki is busy, as long as it asks for. Raises WikiError when it stays so,
        answers an error, sends no JSON, or redirects to another host.
        """
        wait = FIRST_WAIT
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._once({**query, "maxlag": MAXLAG})
            except (_BusyError, httpx2.TransportError) as error:
                asked = getattr(error, "wait", None)
                if attempt == ATTEMPTS or (asked or 0) > LONGEST_WAIT:
                    msg = f"{self._address}: {_worded(error)}; what has come is kept: try later"
                    raise WikiError(msg) from None
                self._sleep(wait if asked is None else asked)
                wait *= 2
        raise AssertionError  # pragma: no cover - the last attempt returns or raises

    def _once(self, query: Mapping[str, str]) -> Mapping[str, object]:
        request = self._client.build_request("GET", self._address, params=query)
        response, body = self._answered(request)
        if response.status_code == httpx2.codes.TOO_MANY_REQUESTS or response.status_code >= 500:
            what = f"status {response.status_code}"
            raise _BusyError(what, _seconds(response))
        if response.status_code != httpx2.codes.OK:
            raise self._wrong(what=f"status {response.status_code}")
        try:
            answer = strict_json.loads(body.decode("utf-8"))
        except ValueError as error:
            raise self._wrong(what=f"{error}") from None
        if not isinstance(answer, dict):
            raise self._wrong(what="no JSON object")
        refused = answer.get("error")
        if isinstance(refused, dict):
            what = f"{refused.get('code')}: {refused.get('info')}"
            if refused.get("code") in BUSY:
                raise _BusyError(what, _seconds(response))
            raise self._wrong(what)
        return answer

    def _answered(self, request: httpx2.Request) -> tuple[httpx2.Response, bytes]:
        for _ in range(MAX_REDIRECTS + 1):
            with closing(self._client.send(request, stream=True)) as response:
                if not response.has_redirect_location:
                    return response, self._body(response)
                request = self._redirected(request, response)
        raise self._wrong(what=f"more than {MAX_REDIRECTS} redirects")

    def _body(self, response: httpx2.Response) -> bytes:
        body = bytearray()
        for part in response.iter_bytes():
            body += part
            if len(body) > MAX_BYTES:
                raise self._wrong(what=f"an answer of more than {MAX_BYTES:,} bytes")
        return bytes(body)

    def _redirected(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Request:
        following = response.next_request
        here = (request.url.host, request.url.port)
        if following is None or (following.url.host, following.url.port) != here:
            raise self._wrong(what="redirects to another host; give the address of the API itself")
        return following

    def _wrong(self, what: str) -> WikiError:
        return WikiError(f"{self._address}: {one_line(mask(what))}; is it the address of api.php?")


def user_agent(contact: str) -> str:
    """Return how requests name this program and whom to write to."""
    try:
        number = version("qagate")
    except PackageNotFoundError:
        number = "0"
    who = f" ({one_line(contact)})" if contact.strip() else ""
    return f"qagate/{number}{who} httpx2/{httpx2.__version__}"


def _seconds(response: httpx2.Response) -> float | None:
    said = response.headers.get("retry-after", "")
    return float(said) if said.isascii() and said.isdigit() else None


def _worded(error: Exception) -> str:
    return one_line(mask(f"{error}")) or type(error).__name__
