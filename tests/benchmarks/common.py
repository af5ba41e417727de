"""What the simulations share: a seed, the type of their arrays, and how their lines are printed."""

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from qagate.evaluators.output import say

Array = npt.NDArray[np.float64]
ROOT = Path(__file__).parents[2]
SEED = 20261122


def show(lines: Callable[[int], Iterable[str]], rounds: int) -> None:
    """Print a benchmark's lines as they come."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument(
        "rounds", type=int, nargs="?", default=rounds, help=f"by default {rounds}"
    )
    for line in lines(parser.parse_args().rounds):
        say(sys.stdout, line)


def percent(*shares: float, places: int = 2) -> list[str]:
    return [f"{100 * share:.{places}f}" for share in shares]
