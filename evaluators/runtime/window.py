"""How many calls a host bears at once: additive increase, multiplicative decrease."""

SMALLEST_START = 8
START_SHARE = 4
OVERLOAD_CUT = 0.5
RATE_CUT = 0.7  # CUBIC's (RFC 9438): a refused rate says little about calls at the same time


class Window:
    """The calls in flight to one host, and how many there may be: never above ``maximum``.

    As TCP does it (RFC 5681): doubled each round trip until the first congestion, then a step a
    round trip; cut once for each congestion, however many calls report it.
    """

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.in_flight = 0
        self._size = float(min(maximum, max(SMALLEST_START, maximum // START_SHARE)))
        self._step = max(1.0, maximum / 16)
        self._doubling = True
        self._cut_at = float("-inf")

    @property
    def size(self) -> int:
        """How many calls may be in flight now."""
        return int(self._size)

    @property
    def is_full(self) -> bool:
        """Whether a further call has to wait for one to end."""
        return self.in_flight >= int(self._size)

    def widen(self) -> None:
        """Count a success; call while the successful call is still in flight."""
        # A window that is not used up has not been shown to be too small.
        if self._size < self.maximum and self.in_flight >= int(self._size) - 1:
            step = 1.0 if self._doubling else self._step / self._size
            self._size = min(float(self.maximum), self._size + step)

    def cut(self, factor: float, started: float, now: float) -> None:
        """Make room after a refusal, unless the refused call started before the last cut."""
        if started > self._cut_at:
            self._size = max(1.0, self._size * factor)
            self._doubling = False
            self._cut_at = now
