"""Rates: token buckets for limits the user sets, and the pace that a server turns out to allow."""

BURST_S = 0.05  # of a requests limit; so many seconds' worth may go at once
TOKEN_BURST_S = 2.0  # the same for a tokens limit

FIRST_RATE = 2.0  # requests a second, at least, after the first refusal
SEARCH_GROWTH = 1.0  # of the rate a second, between the first refusal and the second
RECOVERY_GROWTH = 0.05  # after that, back to just below the rate last refused
OUTAGE_GROWTH = 0.25  # the same after an outage, for which the rate was not to blame
PROBING_GROWTH = 0.005  # from just below the refused rate on
NEAR_REFUSED = 0.85  # of the refused rate, where probing begins
SLOW_RATE = 5.0  # requests a second below which growth slows down in proportion
CALM_S = 30.0  # without a refusal, after which growth has doubled; it goes on rising
WINDOW_BURST = 3  # requests at once after a pause that used up a server's own window
DECREASE_FACTOR = 0.8  # of a refused rate is tried again, at most
EASINGS = 4  # single refusals at ever lower rates, after which the rate is not to blame
EASED_LOWER = 0.93  # of the rate last refused; a refusal below it was at a lower rate
SINGLE_GRANTS = 5  # grants between two refusals from which on these are single ones
SINGLE_SHARE = 0.22  # of the latest calls refused, up to which refusals are single ones
ANNOUNCED_SHARE = 0.05  # the same while there is no rate and refusals announce a pause
SHARE_AT_FIRST = 0.1  # what this share is taken to be before the first call
LATEST_CALLS = 32  # of which the share is taken, or as many as are in flight
FASTEST_RATE = 1000.0  # a higher rate limits nothing


class TokenBucket:
    """Holds at most ``burst`` and gains ``rate`` a second. It may go into debt.

    aiolimiter's bucket starts with a whole period's allowance and cannot be corrected afterwards.
    """

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self.rate = rate
        self._burst = burst
        self._level = burst
        self._at = now

    @classmethod
    def per_minute(cls, count: float, seconds: float, now: float) -> "TokenBucket":
        """Return a bucket for ``count`` a minute that lets ``seconds`` worth go at once."""
        rate = count / 60
        return cls(rate, max(1.0, rate * seconds), now)

    def wait(self, now: float, amount: float = 1.0) -> float:
        """Return the seconds until this amount may be taken; 0 if it may be taken now.

        An amount larger than the bucket may be taken when the bucket is full.
        """
        self._fill(now)
        lacking = min(amount, self._burst) - self._level
        # A full bucket may lack the last bit of a float: no timer could ever end that wait.
        return lacking / self.rate + max(0.0, self._at - now) if lacking > 1e-6 else 0.0

    def take(self, now: float, amount: float = 1.0) -> None:
        """Take an amount, even if it is not there."""
        self._fill(now)
        self._level -= amount

    def give_back(self, amount: float) -> None:
        """Correct an earlier ``take``; a negative amount takes more."""
        self._level = min(self._burst, self._level + amount)

    def _fill(self, now: float) -> None:
        if now > self._at:
            self._level = min(self._burst, self._level + (now - self._at) * self.rate)
            self._at = now


class Pace:
    """Spreads the requests to one server evenly, at a rate that each refusal (HTTP 429) corrects.

    There is no rate until more than a few calls are refused. Then the rate is what was granted
    since the refusal before, with the announced pause: the refill rate of a token bucket, or the
    average of a fixed window. Where nothing was granted in between, the pause was too short and
    counts as part of the stretch before.

    Single refusals among many grants cause no pause. Each lowers the rate a little, to find out
    whether the rate is to blame. If ever lower rates are refused as well, it is not, and a higher
    rate is tried.
    """

    def __init__(self) -> None:
        self._bucket: TokenBucket | None = None
        self._refusals = 0
        self._share = SHARE_AT_FIRST  # of the latest calls, how many were refused
        self._weight = 1 / LATEST_CALLS  # of one call in it
        self._alone = 0  # calls granted since the last refusal of any kind
        self._easings = 0
        self._eased_at = float("-inf")
        self._eased_from = 0.0  # the rate before the first of the easings
        self._calm_since = 0.0
        self._granted = 0
        self._since: float | None = None
        self._before = (0, 0.0)  # calls granted, and since when, at the last refusal
        self._refused_at = float("-inf")
        self._refused_rate = float("inf")  # none is known
        self._grown_at = 0.0
        self._held_back = False
        self._was_down = False
        self._has_granted = False

    @property
    def rate(self) -> float | None:
        """Requests a second; None while nothing limits them."""
        return self._bucket.rate if self._bucket else None

    def wait(self, now: float) -> float:
        """Return the seconds until the next request may go."""
        if self._bucket is None:
            return 0.0
        delay = self._bucket.wait(now)
        self._held_back = self._held_back or delay > 0
        return delay

    def take(self, now: float, in_flight: int = 1) -> None:
        """Count a request that goes now, as one of ``in_flight``."""
        self._weight = 1 / max(LATEST_CALLS, in_flight)
        self._share *= 1 - self._weight
        if self._since is None:
            self._since = now
        if self._bucket is None:
            return
        # A rate that holds nobody back was not tried: it does not grow.
        if self._held_back and now > self._grown_at:
            growth = self._growth(self._bucket.rate, now)
            self._bucket.rate *= 1 + growth * min(1.0, now - self._grown_at)
        self._held_back = False
        self._grown_at = now
        self._bucket.take(now)

    def grant(self, started: float) -> None:
        """Count a request that was answered."""
        if started > self._refused_at:
            self._granted += 1
            self._alone += 1
            if not self._has_granted:  # the server was down until now and has shown no rate
                self._bucket, self._refusals = None, 0
        else:
            granted, since = self._before
            self._before = granted + 1, since
        self._has_granted = True

    def is_single(self, started: float, now: float, *, announced: bool) -> bool:
        """Count a refusal; return whether it is a single one, which calls for no pause of ours.

        ``announced`` says whether the server named a pause.
        """
        if started <= self._refused_at:
            return False
        self._share += self._weight
        alone, self._alone = self._alone, 0
        if self._bucket is None:
            return self._share <= (ANNOUNCED_SHARE if announced else SINGLE_SHARE)
        if started <= self._eased_at:
            return True
        if alone >= SINGLE_GRANTS and self._share <= SINGLE_SHARE:
            self._ease(self._bucket, now)
            return True
        if self._eased_at > self._refused_at and self._refused_rate < float("inf"):
            self._bucket.rate = max(self._bucket.rate, self._refused_rate)  # it was no single one
        return False

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
            rate = max(average, FIRST_RATE)
        elif untried:
            # A server that has granted nothing at all is down: it has not shown any rate.
            lowest = average if granted else self._bucket.rate
            rate = min(self._bucket.rate, lowest)
        else:
            self._refused_rate = self._bucket.rate
            least = max(average, self._bucket.rate / 2)
            rate = min(DECREASE_FACTOR * self._bucket.rate, least)
        # Where no pause has helped, the server may count by windows: a new one begins with these.
        at_once = min(WINDOW_BURST, granted) if untried and rate < 1 else 0
        self._bucket = TokenBucket(rate, max(1.0, rate * BURST_S, at_once), resume)
        self._refusals += not untried
        self._was_down = untried
        self._share = SHARE_AT_FIRST
        self._before = granted, since
        self._granted = 0
        self._since = self._grown_at = self._calm_since = resume
        self._refused_at = now
        return True

    def _ease(self, bucket: TokenBucket, now: float) -> None:
        """Lower the rate a little, or raise it where that has not helped several times."""
        is_lower = bucket.rate <= EASED_LOWER * self._refused_rate < float("inf")
        if not (self._easings and is_lower):
            self._easings, self._eased_from = 0, bucket.rate
        if self._easings < EASINGS:
            self._easings += 1
            self._refused_rate = bucket.rate
            bucket.rate *= DECREASE_FACTOR
            self._calm_since = self._eased_at = now
            return
        self._easings, self._refused_rate = 0, float("inf")
        bucket.rate = 2 * self._eased_from
        if bucket.rate > FASTEST_RATE:
            self._bucket, self._share = None, 0.0

    def _growth(self, rate: float, now: float) -> float:
        """Return the growth of a rate, as a share of it in a second."""
        if self._refusals == 1:
            return SEARCH_GROWTH
        # At a low rate a second holds few requests: then each of them counts, not each second.
        share = min(1.0, rate / SLOW_RATE)
        is_near = rate >= NEAR_REFUSED * self._refused_rate
        calm = (now - self._calm_since) / CALM_S
        back = OUTAGE_GROWTH if self._was_down else RECOVERY_GROWTH
        return min(SEARCH_GROWTH, (PROBING_GROWTH if is_near else back) * share * (1 + calm**2))
