"""Numbers as messages and reports show them: figures, intervals, and amounts of money.

Rounding must not mislead. So a small number keeps three digits that say something, one that
just misses a bar never reads like the bar, and a fraction of a cent is not shown as nothing.
"""

import math


def number(value: float | None, *, small: bool = True) -> str:
    """Return a figure to three decimals, or ``undefined`` (also for NaN and infinities).

    If ``small``, one below a hundredth has three significant digits.
    """
    if value is None or not math.isfinite(value):
        return "undefined"
    if not small or not 1e-9 < abs(value) < 0.01:
        rounded = round(value, 3) + 0.0  # turns a negative zero into zero
        return f"{rounded:.3f}"
    text = f"{value:.{_decimals(value)}f}".rstrip("0")
    _, _, decimals = text.partition(".")
    if len(decimals) <= 3:
        return f"{value:.3f}"
    return text


def figure(value: float, *bars: float | None) -> str:
    """Return a number to three decimals, without zeros at the end.

    Below 0.001 it has three significant digits. It gets more decimals as long as it reads like
    one of the ``bars`` that it does not equal: 0.8996 at a bar of 0.9 is not "0.9".
    """
    other_bars = [bar for bar in bars if bar is not None and abs(value - bar) > 1e-12]
    decimals = 3
    if 1e-9 < abs(value) < 0.001:
        decimals = _decimals(value)
    text = f"{value:.{decimals}f}"
    while float(text) in other_bars:
        decimals += 1
        text = f"{value:.{decimals}f}"
    if float(text) == 0:
        return "0"
    return text.rstrip("0").rstrip(".")


def _decimals(value: float) -> int:
    """Return how many decimals a number has that is shown to three significant digits."""
    return 2 - math.floor(math.log10(abs(value)))


def span_of(interval: tuple[float, float]) -> str:
    """Return an interval in words, for instance ``0.35 to 0.48``."""
    low, high = interval
    return f"{figure(low)} to {figure(high)}"


def part_of_cost(known: float) -> str:
    """Return what is known of a cost of which some price is missing."""
    if known > 0:
        return f"partly known: {money(known)}"
    return "unknown"


def money(amount: float) -> str:
    """Return an amount in USD: to the cent, or to two digits below ten cents."""
    if amount == 0 or amount >= 0.1:
        return f"${amount:,.2f}"
    if amount < 0.001:
        return f"${amount:.6f}"
    return f"${amount:.4f}"
