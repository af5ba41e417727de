"""Short forms for tests of statistics."""

import numpy as np


def array(*numbers: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array(numbers, dtype=np.float64)


def given_interval(interval: tuple[float, float] | None) -> tuple[float, float]:
    assert interval is not None
    return interval
