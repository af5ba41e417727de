"""Short forms for tests of statistics, and of what may be None."""

from typing import TypeVar

import numpy as np

T = TypeVar("T")


def array(*numbers: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array(numbers, dtype=np.float64)


def some(value: T | None) -> T:
    """Return what must be there."""
    assert value is not None
    return value
