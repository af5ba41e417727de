"""One figure with its 95 % interval, and how reports write numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaluators.statistics.intervals import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure with its 95 % interval.

    ``value`` is None where the figure is undefined: never 0, never NaN. ``low`` and ``high`` are
    None where no interval can be given. ``n`` counts the items behind the figure.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int

    @classmethod
    def of(cls, value: float | None, interval: Interval | None, n: int) -> Estimate:
        """Return the estimate with this interval, or with none."""
        low, high = interval or (None, None)
        return cls(value=value, low=low, high=high, n=n)

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval, None where there is none."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    def text(
        self,
        full: str = "{value} [{low}, {high}]",
        bare: str = "{value}",
        undefined: str = "undefined",
    ) -> str:
        """Return the estimate to three decimals, for instance ``0.412 [0.350, 0.480]``.

        The templates may use ``value``, ``low``, ``high`` and ``n``: ``full`` where there is an
        interval, ``bare`` where there is none, ``undefined`` where there is no value either.
        """
        form = undefined if self.value is None else full if self.interval else bare
        numbers = {name: number(getattr(self, name)) for name in ("value", "low", "high")}
        return form.format(**numbers, n=self.n)


UNDEFINED = Estimate(value=None, low=None, high=None, n=0)


def number(value: float | None) -> str:
    """Return a figure to three decimals, or ``undefined`` (also for NaN and infinities).

    Below a hundredth, where that would say little of a price, it has three digits that count.
    """
    if value is None or not math.isfinite(value):
        return "undefined"
    if 1e-9 < abs(value) < 0.01:
        text = f"{value:.{2 - math.floor(math.log10(abs(value)))}f}".rstrip("0")
        return text if len(text.partition(".")[2]) > 3 else f"{value:.3f}"
    return f"{round(value, 3) + 0.0:.3f}"  # adding 0.0 turns a negative zero into zero


def figure(value: float, *bars: float | None) -> str:
    """Return a number to three decimals; to more where it is smaller, or would look like a bar."""
    missed = [bar for bar in bars if bar is not None and abs(value - bar) > 1e-12]
    least = 3 if not 1e-9 < abs(value) < 0.001 else 2 - math.floor(math.log10(abs(value)))
    texts = (f"{value:.{digits}f}" for digits in range(least, 16))
    text = next(text for text in texts if float(text) not in missed)
    return "0" if float(text) == 0 else text.rstrip("0").rstrip(".")


def span_of(interval: Interval) -> str:
    """Return an interval in words, for instance ``0.35 to 0.48``."""
    return f"{figure(interval[0])} to {figure(interval[1])}"
