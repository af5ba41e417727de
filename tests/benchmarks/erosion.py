"""Ten releases that each lose a little: ``python -m tests.benchmarks.erosion``.

Every release is truly worse than the one before it by 0.02, over the same 1,000 items, of which a
tenth change from one release to the next: a right answer is lost with one probability, a wrong one
mended with another, each item on its own. Each release is held against the one before it, at a
margin of 0.05, and with an anchor against the first one as well. Printed is how often all of them
pass. The releases are drawn here; only the verdict on their counts is the product's.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from qagate.evaluators.statistics.paired import tango
from tests.benchmarks.common import SEED, show

Flags = npt.NDArray[np.bool_]
RELEASES = 10
START = 0.8
"""The share of items that the first baseline, the anchor, has right."""


class Erosion(NamedTuple):
    """The shares of single releases that pass compared with the one before, of histories in which
    all do, and of those in which all pass compared with the anchor too."""

    one: float
    moving: float
    anchored: float


class Setting(NamedTuple):
    """What is simulated: items, the true loss of each release, and the gate's margin."""

    n: int = 1000
    loss: float = 0.02
    margin: float = 0.05
    discordance: float = 0.1


def erode(setting: Setting, histories: int) -> Erosion:
    """Return how often releases pass in so many histories."""
    random = np.random.default_rng(SEED)
    anchor = random.random((histories, setting.n)) < START

    def passes(now: Flags, before: Flags) -> Flags:
        fixed, broke = (now & ~before).sum(axis=1), (before & ~now).sum(axis=1)
        pairs = zip(fixed.tolist(), broke.tolist(), strict=True)
        return np.array([is_within(*pair, setting.n, setting.margin) for pair in pairs])

    before, rate = anchor, START
    found = []
    for _ in range(RELEASES):
        lost = (setting.discordance + setting.loss) / 2 / rate
        mended = (setting.discordance - setting.loss) / 2 / (1 - rate)
        now = before ^ (random.random(before.shape) < np.where(before, lost, mended))
        found.append((passes(now, before), passes(now, anchor)))
        before, rate = now, rate - setting.loss
    moving, anchored = np.array(found).transpose(1, 0, 2)
    both = (moving & anchored).all(axis=0)
    return Erosion(
        float(moving.mean()), float(moving.all(axis=0).mean()), float(both.mean())
    )


@cache
def is_within(fixed: int, broke: int, n: int, margin: float) -> bool:
    """Say whether a drop gate passes over independent pairs with these counts."""
    interval = tango(fixed, broke, n)
    return interval is not None and interval[0] > -margin


def lines(histories: int) -> Iterator[str]:
    found = erode(Setting(), histories)
    yield f"{histories:,} histories of {RELEASES} releases, seed {SEED}: {Setting()}"
    yield f"one release passes against the one before it: {found.one:.3f}"
    yield f"all {RELEASES} pass against the one before: {found.moving:.3f}"
    yield f"all {RELEASES} pass against the anchor as well: {found.anchored:.4f}"


if __name__ == "__main__":
    show(lines, 10_000)
