"""A token bucket: so much a second, a little at once.

aiolimiter's bucket starts with a whole period's allowance and never learns that a call took more
or less than was thought; here both matter.
"""


class Bucket:
    """Holds at most ``burst`` and gains ``rate`` a second. It may go into debt."""

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self.rate = rate
        self._burst = burst
        self._level = burst
        self._at = now

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


def per_minute(count: float, seconds: float, now: float) -> Bucket:
    """Return a bucket of ``count`` a minute that lets ``seconds`` worth of it go at once."""
    rate = count / 60
    return Bucket(rate, max(1.0, rate * seconds), now)
