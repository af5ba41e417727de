"""How often a call that failed is tried again, and how long is waited in between.

A pause that a server announced is kept to by all calls (server_state); this is what a call does of
its own accord.
"""

from collections import Counter
from dataclasses import dataclass

from evaluators.core import TransientError
from evaluators.runtime.server_state import LONGEST_WAIT, RATE_LIMIT

ATTEMPTS = {"bad_body": 3, "error_body": 3, RATE_LIMIT: 20}
"""How often a request is sent that fails in these ways; others have the RetryPolicy's number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a transient failure is tried again, and how long is waited in between.

    ``attempts`` counts the first one; waits grow from ``first`` to ``longest`` seconds, with
    jitter. An unreadable body has at most 3 attempts. A rate limit has 20: the server's pause, and
    not the call, decides when. What a server does to all calls uses up none.
    """

    attempts: int = 5
    first: float = 0.5
    longest: float = 20.0

    def pause(self, tried: int, failure: TransientError, share: float) -> float:
        """Return the seconds to wait after so many attempts; ``share`` (0 to 1) spreads them."""
        longest = min(self.longest, self.first * 2.0 ** min(tried - 1, 60))
        return max(longest * share, failure.retry_after or 0.0)

    def is_last(self, failure: TransientError, failures: Counter[str]) -> bool:
        """Whether a call is given up, given its latest failure and how many there were by kind."""
        if (failure.retry_after or 0.0) > LONGEST_WAIT:
            return True
        if failure.kind in ATTEMPTS:
            return failures[failure.kind] >= ATTEMPTS[failure.kind]
        return failures.total() >= self.attempts
