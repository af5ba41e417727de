"""Rate limits: a token bucket, a limit in tokens a minute, and a rate learnt from refusals.

aiolimiter's bucket starts with a whole period's allowance and never learns that a call took more
or less than was thought; here both matter.
"""

from evaluators.core import Reply, Request

BURST_SECONDS = 0.05  # of requests; so much of a minute's may go at once
TOKEN_BURST_SECONDS = 2.0

TOKENS_PER_CHARACTER = 0.25  # until replies teach better
USUAL_REPLY = 1024.0
LATEST_WEIGHT = 0.1  # of the latest reply in what is learnt

FIRST_RATE = 2.0  # requests a second: where the search starts when nothing has succeeded yet
LOWEST_RATE = 0.02
SEARCH = 1.0  # growth a second between the first refusal and the second
RETURN = 0.05  # growth a second after that, back to just below the rate last refused
FAST_RETURN = 0.25  # the same after refusals of all calls: not the rate was to blame
GROWTH = 0.005  # growth a second from there on
NEAR = 0.85
SLOW = 5.0  # requests a second below which growth slows down in proportion
HURRY = 30.0  # seconds without a refusal after which growth has doubled, and goes on rising
AFTER_WINDOW = 3  # requests that go at once after a window without any, if few are allowed
BACK = 0.9  # at most so much of a refused rate is tried again
FELT = 0.001  # seconds of delay from which on a rate holds calls back
FEWEST = 32  # latest calls of which a share is refused, or as many as are in flight
AT_FIRST = 0.1  # what that share is taken to be before the first call
FEW = 0.22  # share refused up to which single refusals are no reason to pause
FEW_ANNOUNCED = 0.05  # the same while there is no rate, where a refusal announces a pause
ALONE = 5  # calls granted between two refusals from which on these are single ones
EASED = 0.8  # of the rate is left after a single refusal
AGAIN = 0.93  # of the rate last refused, from which on it may be to blame again
EASINGS = 4  # single refusals at ever lower rates, after which no rate is to blame


class TokenBucket:
    """Holds at most ``burst`` and gains ``rate`` a second. It may go into debt."""

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self.rate = rate
        self._burst = burst
        self._level = burst
        self._at = now

    @classmethod
    def per_minute(cls, count: float, seconds: float, now: float) -> "TokenBucket":
        """Return a bucket of ``count`` a minute that lets ``seconds`` worth of it go at once."""
        rate = count / 60
        return cls(rate, max(1.0, rate * seconds), now)

    def wait(self, now: float, amount: float = 1.0) -> float:
        """Return the seconds until this amount may be taken; 0 when it may be now.

        What is more than the bucket can hold may be taken when it is full.
        """
        self._fill(now)
        lacking = min(amount, self._burst) - self._level
        # A full bucket may lack the last bit of a float: no timer could ever end that wait.
        return lacking / self.rate + max(0.0, self._at - now) if lacking > 1e-6 else 0.0

    def take(self, now: float, amount: float = 1.0) -> None:
        """Take an amount, whether it is there or not."""
        self._fill(now)
        self._level -= amount

    def give_back(self, amount: float) -> None:
        """Correct what was taken: too much, or (negative) too little."""
        self._level = min(self._burst, self._level + amount)

    def _fill(self, now: float) -> None:
        if now > self._at:
            self._level = min(self._burst, self._level + (now - self._at) * self.rate)
            self._at = now


class TokenLimit:
    """A limit in tokens a minute; a call is counted by an estimate and corrected by its reply.

    ``longest`` is the longest reply in tokens if a request does not say so itself.
    """

    def __init__(self, bucket: TokenBucket, longest: int | None) -> None:
        self._bucket = bucket
        self._per_character = TOKENS_PER_CHARACTER
        self._reply: float = longest or USUAL_REPLY
        self._has_learnt = False

    def wait(self, now: float, estimate: float) -> float:
        """Return the seconds until a call of this size may go."""
        return self._bucket.wait(now, estimate)

    def take(self, now: float, estimate: float) -> None:
        """Count a call that goes now."""
        self._bucket.take(now, estimate)

    def estimate(self, request: Request) -> float:
        """Return how many tokens a request and its reply will probably take."""
        longest = request.parameters.get("max_tokens")
        reply = self._reply
        if isinstance(longest, int):
            reply = min(reply, longest) if self._has_learnt else longest
        return _characters(request) * self._per_character + reply

    def correct(self, estimate: float, request: Request, reply: Reply) -> None:
        """Put right what was taken for a call, and learn for the next ones."""
        if not reply.input_tokens:  # the server does not count: the estimate stays
            return
        self._bucket.give_back(estimate - reply.input_tokens - reply.output_tokens)
        weight = LATEST_WEIGHT if self._has_learnt else 1.0
        ratio = reply.input_tokens / max(1, _characters(request))
        self._per_character += weight * (ratio - self._per_character)
        self._reply += weight * (reply.output_tokens - self._reply)
        self._has_learnt = True


def _characters(request: Request) -> int:
    return sum(len(message.content) for message in request.messages)


class RateEstimator:
    """Spreads the requests to one host evenly at a rate that each refusal corrects.

    The rate after a refusal is what was granted since the one before, the announced pause
    included: a token bucket's refill rate, or a fixed window's average. Where nothing was granted
    in between, the pause was too short: it is added to the stretch before, whose pace was tried.
    Few refusals beside many grants call for no pause. Each lowers a rate a little, to see whether
    it is to blame: where ever lower ones are refused as well it is not, and a higher one is tried.
    """

    def __init__(self) -> None:
        self._bucket: TokenBucket | None = None
        self._refusals = 0
        self._share = AT_FIRST  # of the latest calls, how many were refused
        self._weight = 1 / FEWEST  # of one call in it
        self._alone = 0  # calls granted since the last refusal
        self._easings = 0
        self._eased_at = float("-inf")
        self._eased_from = 0.0  # the rate before the first of the easings
        self._calm_since = 0.0
        self._granted = 0
        self._since: float | None = None
        self._before = (0, 0.0)  # what was granted, and since when, at the last refusal
        self._refused_at = float("-inf")
        self._refused_rate = float("inf")  # none, as far as is known
        self._grown_at = 0.0
        self._held_back = False
        self._was_down = False
        self._has_granted = False

    @property
    def rate(self) -> float | None:
        """Requests a second; None while nothing has been refused."""
        return self._bucket.rate if self._bucket else None

    def wait(self, now: float) -> float:
        """Return the seconds until the next request may go."""
        if self._bucket is None:
            return 0.0
        delay = self._bucket.wait(now)
        self._held_back = self._held_back or delay > FELT
        return delay

    def take(self, now: float, in_flight: int = 1) -> None:
        """Count a request that goes now and is one of so many ``in_flight``."""
        self._weight = 1 / max(FEWEST, in_flight)
        self._share *= 1 - self._weight
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
            self._alone += 1
            if not self._has_granted:  # it was down until now: there is no rate to keep to yet
                self._bucket, self._refusals = None, 0
        else:
            granted, since = self._before
            self._before = granted + 1, since
        self._has_granted = True

    def is_stray(self, started: float, now: float, *, announced: bool) -> bool:
        """Count a refusal; return whether it is one of few, that call for no pause of ours.

        ``announced`` says whether the server named a pause.
        """
        if started <= self._refused_at:
            return False
        self._share += self._weight
        alone, self._alone = self._alone, 0
        if self._bucket is None:
            return self._share <= (FEW_ANNOUNCED if announced else FEW)
        if started <= self._eased_at:
            return True
        if alone >= ALONE and self._share <= FEW:
            self._ease(self._bucket, now)
            return True
        if self._eased_at > self._refused_at and self._refused_rate < float("inf"):
            self._bucket.rate = max(self._bucket.rate, self._refused_rate)  # it was no single one
        return False

    def _ease(self, bucket: TokenBucket, now: float) -> None:
        """Lower the rate a little; raise it instead where that has not helped several times."""
        is_lower = bucket.rate <= AGAIN * self._refused_rate < float("inf")
        if not (self._easings and is_lower):
            self._easings, self._eased_from = 0, bucket.rate
        if self._easings < EASINGS:
            self._easings += 1
            self._refused_rate = bucket.rate
            bucket.rate *= EASED
            self._calm_since = self._eased_at = now
            return
        self._easings, self._refused_rate = 0, float("inf")
        bucket.rate = 2 * self._eased_from
        if bucket.rate > 1 / FELT:
            self._bucket, self._share = None, 0.0

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
            lowest = max(average, LOWEST_RATE) if granted else self._bucket.rate
            rate = min(self._bucket.rate, lowest)
        else:
            self._refused_rate = self._bucket.rate
            rate = min(BACK * self._bucket.rate, max(average, self._bucket.rate / 2, LOWEST_RATE))
        # Where no pause has helped, the server may count by windows: a new one begins with these.
        at_once = min(AFTER_WINDOW, granted) if untried and rate < 1 else 0
        self._bucket = TokenBucket(rate, max(1.0, rate * BURST_SECONDS, at_once), resume)
        self._refusals += not untried
        self._was_down = untried
        self._share = AT_FIRST
        self._before = granted, since
        self._granted = 0
        self._since = self._grown_at = self._calm_since = resume
        self._refused_at = now
        return True

    def _growth(self, now: float) -> float:
        if self._refusals == 1:
            return SEARCH
        # At a low rate a second holds few requests: then each of them counts, not each second.
        share = min(1.0, self._bucket.rate / SLOW) if self._bucket else 1.0
        near = self._bucket is None or self._bucket.rate >= NEAR * self._refused_rate
        quiet = (now - self._calm_since) / HURRY
        back = FAST_RETURN if self._was_down else RETURN
        return min(SEARCH, (GROWTH if near else back) * share * (1 + quiet * quiet))
