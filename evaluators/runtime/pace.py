"""Which rate a host bears, learnt from its refusals; free until the first one."""

from evaluators.runtime.bucket import Bucket

FIRST = 2.0  # requests a second: where the search starts when nothing has succeeded yet
LOWEST = 0.02
SEARCH = 1.0  # growth a second between the first refusal and the second
RETURN = 0.05  # growth a second after that, back to just below the rate last refused
GROWTH = 0.005  # growth a second from there on
NEAR = 0.85
FEW = 5.0  # requests a second below which growth slows down in proportion
HURRY = 30.0  # seconds without a refusal after which growth has doubled, and goes on rising
BACK = 0.9  # at most so much of a refused rate is tried again
BURST_SECONDS = 0.05


class RateEstimator:
    """Spreads the requests to one host evenly at a rate that each refusal corrects.

    The rate after a refusal is what was granted since the one before, the announced pause
    included: a token bucket's refill rate, or a fixed window's average. Where nothing was granted
    in between, the pause was too short: it is added to the stretch before, whose pace was tried.
    """

    def __init__(self) -> None:
        self._bucket: Bucket | None = None
        self._refusals = 0
        self._granted = 0
        self._since: float | None = None
        self._before = (0, 0.0)  # what was granted, and since when, at the last refusal
        self._refused_at = float("-inf")
        self._refused_rate = 0.0
        self._grown_at = 0.0
        self._held_back = False

    @property
    def rate(self) -> float | None:
        """Requests a second; None while nothing has been refused."""
        return self._bucket.rate if self._bucket else None

    def wait(self, now: float) -> float:
        """Return the seconds until the next request may go."""
        if self._bucket is None:
            return 0.0
        delay = self._bucket.wait(now)
        self._held_back = self._held_back or delay > 0
        return delay

    def take(self, now: float) -> None:
        """Count a request that goes now."""
        if self._since is None:
            self._since = now
        if self._bucket is None:
            return
        # A rate that holds nobody back has not been tried: only a felt one grows.
        if self._held_back and now > self._grown_at:
            self._bucket.rate *= 1 + self._growth(now) * min(1.0, now - self._grown_at)
        self._held_back = False
        self._grown_at = now
        self._bucket.take(now)

    def grant(self, started: float) -> None:
        """Count a request that was answered."""
        if started > self._refused_at:
            self._granted += 1
        else:
            granted, since = self._before
            self._before = granted + 1, since

    def refuse(self, started: float, now: float, resume: float) -> bool:
        """Slow down after a refusal; requests may go on at ``resume``.

        Returns False for a call that started before the last refusal: it brings no news.
        """
        if started <= self._refused_at:
            return False
        untried = self._bucket is not None and not self._granted
        stretch = self._granted, now if self._since is None else self._since
        granted, since = self._before if untried else stretch
        average = granted / max(resume - since, 1.0)
        if self._bucket is None:
            rate = max(average, FIRST)
        elif untried:
            rate = min(self._bucket.rate, max(average, LOWEST))
        else:
            self._refused_rate = self._bucket.rate
            rate = min(BACK * self._bucket.rate, max(average, self._bucket.rate / 2, LOWEST))
        self._bucket = Bucket(rate, max(1.0, rate * BURST_SECONDS), resume)
        self._refusals += not untried
        self._before = granted, since
        self._granted = 0
        self._since = self._grown_at = resume
        self._refused_at = now
        return True

    def _growth(self, now: float) -> float:
        if self._refusals == 1:
            return SEARCH
        # At a low rate a second holds few requests: then each of them counts, not each second.
        share = min(1.0, self._bucket.rate / FEW) if self._bucket else 1.0
        near = self._bucket is None or self._bucket.rate >= NEAR * self._refused_rate
        quiet = (now - (self._since or now)) / HURRY
        return min(SEARCH, (GROWTH if near else RETURN) * share * (1 + quiet * quiet))
