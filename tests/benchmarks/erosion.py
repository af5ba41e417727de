"""Ten releases that each lose a little: ``python -m tests.benchmarks.erosion``.

Every release is truly worse than the one before it by 0.02, over the same 1,000 items, of which a
tenth change from one release to the next: a right answer is lost with one probability, a wrong one
mended with another, each item on its own. Each release is held against the one before it, at a
margin of 0.05, and with an anchor against the first one as well. Printed is how often all of them
pass. The releases are drawn here; only the verdict on their counts is the product's.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from evaluators.output import say
from evaluators.statistics.paired import tango

SEED = 20261122
RELEASES = 10
START = 0.8
"""The share of items that the first baseline, the anchor, has right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erosion:
    """How often releases pass, as shares of the simulated histories.

    ``one`` is the share of single releases that pass beside the one before, ``moving`` that of
    histories in which all do, and ``anchored`` that in which all pass beside the anchor too.
    """

    one: float
    moving: float
    anchored: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is simulated: items, the true loss of each release, and the gate's margin."""

    n: int = 1000
    loss: float = 0.02
    margin: float = 0.05
    discordance: float = 0.1


def erode(setting: Setting, histories: int, seed: int = SEED) -> Erosion:
    """Return how often releases pass in so many histories, drawn with this seed."""
    random = np.random.default_rng(seed)
    anchor = random.random((histories, setting.n)) < START
    before, rate = anchor, START
    moving, anchored = [], []
    for _ in range(RELEASES):
        now = _next(before, rate, setting, random)
        moving.append(_passes(now, before, setting.margin))
        anchored.append(_passes(now, anchor, setting.margin))
        before, rate = now, rate - setting.loss
    beside = np.array(moving)
    return Erosion(
        one=float(beside.mean()),
        moving=float(beside.all(axis=0).mean()),
        anchored=float((beside & np.array(anchored)).all(axis=0).mean()),
    )


def _next(
    right: npt.NDArray[np.bool_], rate: float, setting: Setting, random: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Return the next release's answers, where this one has a share of ``rate`` right."""
    lost = (setting.discordance + setting.loss) / 2 / rate
    mended = (setting.discordance - setting.loss) / 2 / (1 - rate)
    return right ^ (random.random(right.shape) < np.where(right, lost, mended))


def _passes(
    now: npt.NDArray[np.bool_], before: npt.NDArray[np.bool_], margin: float
) -> npt.NDArray[np.bool_]:
    """Return in which histories a drop gate passes."""
    fixed, broke = (now & ~before).sum(axis=1), (before & ~now).sum(axis=1)
    counts = zip(fixed.tolist(), broke.tolist(), strict=True)
    return np.array([is_within(*pair, now.shape[1], margin) for pair in counts])


@cache
def is_within(fixed: int, broke: int, n: int, margin: float) -> bool:
    """Say whether a drop gate passes over independent pairs with these counts."""
    interval = tango(fixed, broke, n)
    return interval is not None and interval[0] > -margin


def main(arguments: Sequence[str]) -> int:
    """Print the shares; the first argument is the number of histories."""
    histories = int(arguments[0]) if arguments else 10_000
    setting = Setting()
    found = erode(setting, histories)
    say(
        sys.stdout,
        f"{histories:,} histories of {RELEASES} releases, seed {SEED}: {setting}",
        f"one release passes beside the one before it: {found.one:.3f}",
        f"all {RELEASES} pass beside the one before: {found.moving:.3f}",
        f"all {RELEASES} pass beside the anchor as well: {found.anchored:.4f}",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
