"""What both providers share: the client of the running loop, the deadline, the errors."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from evaluators.core import CallError, FatalError, Reply, Request
from evaluators.models import body
from evaluators.models.failures import FailedError, of_error_body, of_exception, of_response
from evaluators.models.secrets import Key, one_line
from evaluators.models.spec import Spec
from evaluators.models.transport import Endpoint, Response

NO_KEY = "no_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAdapter:
    """How one provider is spoken to: open a line to it, write a request, read a reply's body."""

    open: Callable[[Spec, Key], Endpoint]
    write: Callable[[Spec, Request], Mapping[str, object]]
    read: Callable[[body.Object, Spec], Reply]


class ApiModel:
    """The calls to one model, by the way its provider is spoken to. It shows its key nowhere."""

    def __init__(self, spec: Spec, key: Key | None, dialect: ProviderAdapter) -> None:
        self._spec = spec
        self._key = key
        self._dialect = dialect
        # connections cannot be used from another loop than the one that opened them
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, Endpoint] = WeakKeyDictionary()

    async def complete(self, request: Request) -> Reply:
        """One attempt, without retries, ended by the Spec's deadline. Raises only CallErrors."""
        if self._key is None:
            variable = self._spec.api_key_env
            msg = f"{self._spec.text}: no API key; set the environment variable {variable}"
            raise FatalError(NO_KEY, msg)
        try:
            line = self._open_here(self._key)
            start = time.perf_counter()
            async with asyncio.timeout(self._spec.deadline):
                response = await line.post(self._dialect.write(self._spec, request))
            reply = self._read(response)
        except Exception as error:  # noqa: BLE001 - HTTP libraries raise more than they document
            problem = self._worded(error, self._key)
        else:
            return replace(reply, seconds=time.perf_counter() - start)
        # Raised out here so that no exception of HTTP, which holds the key's header, hangs on it.
        raise problem

    async def close(self) -> None:
        """Give the connections of the running loop back."""
        line = self._lines.pop(asyncio.get_running_loop(), None)
        if line is not None:
            await line.close()

    def _open_here(self, key: Key) -> Endpoint:
        """Return the running loop's line."""
        loop = asyncio.get_running_loop()
        line = self._lines.get(loop)
        if line is None:
            line = self._lines[loop] = self._dialect.open(self._spec, key)
        return line

    def _read(self, response: Response) -> Reply:
        """Read a response of status 2xx; every other one is a failure."""
        if not 200 <= response.status < 300:
            raise FailedError(of_response(response))
        content = body.parse(response.content)
        if content.get("error") or content.get("type") == "error":
            raise FailedError(of_error_body(content, response.headers))
        return self._dialect.read(content, self._spec)

    def _worded(self, error: Exception, key: Key) -> CallError:
        failure = of_exception(error)
        return failure.error(one_line(key.mask(f"{self._spec.text}: {failure.what}")))


def sendable(text: str) -> str:
    """Return the text with lone surrogates replaced: no HTTP body can hold them."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
