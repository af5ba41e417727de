"""The calls to one model: its own limits, its server, and who waits to be let in."""

import asyncio
import re
from collections import deque
from dataclasses import dataclass, field

from evaluators.core import CallError, FatalError, Limits, RefusedError, Request
from evaluators.runtime.rate_limits import TokenBucket, TokenLimit
from evaluators.runtime.server_state import ServerState

BAD_REQUEST = frozenset({"bad_request", "target_failed"})
REFUSED_ALIKE = 3  # first calls that a gateway refuses in the same words: none would succeed
_OWN_WORDS = re.compile(r"\S*\d\S*")  # of one refusal alone: its id, its time


@dataclass(slots=True, kw_only=True)
class WaitingCall:
    """A call that is not let in yet; ``size`` is its estimate in tokens."""

    future: asyncio.Future[float]
    size: float


@dataclass(slots=True, kw_only=True, eq=False)
class ModelQueue:
    """The calls to one model: its own limits, its server, and who waits.

    Until its first call has ended the model is not ``proven`` and one call at a time goes; up to
    three if they are refused. ``refusals`` holds the words of those before it ``answered``. Calls
    that go on with an item (``urgent``) come before those that begin one (``waiting``), so that a
    run which is cut short has judged what it asked.
    """

    spec: str
    server: ServerState
    limits: Limits
    room: int
    rpm: TokenBucket | None
    tpm: TokenLimit | None
    in_flight: int = 0
    proven: bool = False
    answered: bool = False
    refusals: list[str] = field(default_factory=list)
    urgent: deque[WaitingCall] = field(default_factory=deque)
    waiting: deque[WaitingCall] = field(default_factory=deque)

    def size(self, request: Request) -> float:
        """Return the estimate of a call in tokens; 0 if nothing limits them."""
        return self.tpm.estimate(request) if self.tpm else 0.0

    def refused(self, error: RefusedError) -> CallError:
        """Return the error; a FatalError if the model's first calls were all refused alike.

        Gateways answer a wrong key or an unknown model so.
        """
        if self.answered or error.kind not in BAD_REQUEST:
            return error
        self.refusals.append(_OWN_WORDS.sub("", str(error)))
        if len(self.refusals) < REFUSED_ALIKE or len(set(self.refusals)) > 1:
            return error
        return FatalError(
            error.kind,
            f"{error}; the first {REFUSED_ALIKE} calls were all refused so, and none succeeded: "
            f"check the API key, the model's name and the URL ({self.server.name})",
        )

    def learn(self, error: BaseException | None) -> None:
        """Take note of how a call ended: whether others may go beside the next one."""
        self.answered = self.answered or error is None
        doubtful = isinstance(error, RefusedError) and 0 < len(self.refusals) < REFUSED_ALIKE
        self.proven = self.proven or not doubtful
