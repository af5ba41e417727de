"""Kill runs at random moments and count what is lost.

Run as ``python -m tests.benchmarks.kills [--kills 200] [--workers 8] [--seed 1]``. Kills the
controller, the engine, one worker or the whole group in turn; each chain of kills on one ledger
ends with a run that is left alone. Prints a line for each chain and the sums; exit code 1 where a
reply that had been delivered 250 ms before a kill was asked again, where progress went back, or
where a verdict differs from those of a run without kills. An engine that waited for a processor for
100 of those 250 ms may not have read the reply: such a kill proves nothing and is counted as
starved; more than one in four, and the whole of it proves nothing: exit code 1 too.
"""

import argparse
import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.support.killing import VICTIMS, Chain, chain

ITEMS, DELAY, CONCURRENCY = 300, 0.2, 16
LONGEST = 12
STARVED_SECONDS = 0.1


@dataclass
class Sums:
    """What was counted over all chains."""

    kills: dict[str, int]
    lost: int = 0
    starved: int = 0
    repeats: int = 0
    unkept: int = 0
    falls: int = 0
    different: int = 0

    @property
    def total(self) -> int:
        return sum(self.kills.values())

    @property
    def is_good(self) -> bool:
        """Whether nothing was lost, as far as enough kills can tell."""
        bad = self.lost or self.falls or self.different or self.repeats > self.unkept
        return not bad and self.starved <= self.total / 4

    def add(self, one: Chain, *, same: bool) -> None:
        """Count one chain."""
        for kill in one.kills:
            self.kills[kill.victim] += 1
        starved = [kill for kill in one.fatal if kill.starved >= STARVED_SECONDS]
        self.starved += len(starved)
        self.lost += sum(len(one.trace.lost(kill)) for kill in one.fatal if kill not in starved)
        self.repeats += one.trace.repeats
        self.unkept += sum(one.trace.asked(kill.over) - kill.kept for kill in one.fatal)
        self.falls += sum(b < a for a, b in zip(one.kept, one.kept[1:], strict=False))
        self.different += not same


def main() -> int:
    """Run the chains and return the exit code."""
    parser = argparse.ArgumentParser(description="Kill runs at random moments.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    words = ("-n", str(options.workers), "--concurrency", str(CONCURRENCY))
    sums = Sums(kills=dict.fromkeys(VICTIMS, 0))
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        with chain(Path(folder) / "quiet", ITEMS, 0.0, *words) as quiet:
            expected = quiet.finish()
        number = 0
        while sums.total < options.kills:
            number += 1
            with chain(Path(folder) / str(number), ITEMS, DELAY, *words) as one:
                # Until everything is in the ledger there is something to kill.
                while one.count() < 2 * ITEMS and len(one.kills) < LONGEST:
                    victim = VICTIMS[(sums.total + len(one.kills)) % len(VICTIMS)]
                    one.run_killed(victim, chance.uniform(0, 2.0), chance)
                sums.add(one, same=one.finish() == expected)
            _say(f"chain {number}: kills {len(one.kills)}, kept {one.kept}, {sums}")
    return 0 if sums.is_good else 1


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
