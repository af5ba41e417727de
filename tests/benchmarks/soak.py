"""Let runs meet random faults and look for a wrong verdict, a wrong grade or a lost item.

Run as ``python -m tests.benchmarks.soak [--seeds 20] [--items 1000] [-n 8] [--first 1]``.
Each seed is one run of pytest against a server that fails about one call in ten, in the ways of
``tests/support/soaking.py``, then a second run on the same ledger against the server when it is
well. Seeds alternate the wire formats, and models that fail the gate clearly or narrowly, pass it
narrowly or clearly. Before the first run of a seed comes, in turn, a run that is ended by SIGTERM
or Ctrl-C at a random moment, or cannot write its report; in every fourth seed the clock jumps back.
Prints a line for each seed and the sums; exit code 1 where an item was lost, a grade wrong, a
verdict neither that without faults nor INCONCLUSIVE, a kept reply asked again, the second run other
than one without faults, or a process 50 MB larger than without faults.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.killing import Chain, until
from tests.support.soaking import WIRES, Ended, Failing, ended, soaked

SHARES = (40, 49, 50, 60)  # percent of right answers; the gate wants 50
CONCURRENCY = 32
GROWTH_MB = 50.0
CLOCK = """
import time

_true, _since = time.time, time.monotonic
time.time = lambda: _true() - 3600.0 * (int(_since() / 2) % 2)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """What came of one seed: the run with faults, the one after it, and the one without any."""

    seed: int
    requests: int
    injected: Counter[str]
    faulty: Ended
    resumed: Ended
    calm: Ended
    repeated: int

    @property
    def growth(self) -> float:
        """By how many MB a process was larger than without faults; the largest difference."""
        return max(peak - self.calm.peaks.get(k, peak) for k, peak in self.faulty.peaks.items())

    @property
    def problems(self) -> list[str]:
        """What must not be, in words; empty where all is well."""
        fit = (self.calm.verdict, "INCONCLUSIVE")
        found = {
            "an item in no state or in two": not (self.faulty.is_whole and self.resumed.is_whole),
            "a wrong verdict": self.faulty.verdict not in fit,
            "a wrong grade": bool(self.faulty.wrong(self.calm)),
            "a kept reply asked again": self.repeated > 0,
            "another verdict after the second run": self.resumed.verdict != self.calm.verdict,
            "another outcome after the second run": self.resumed.outcomes != self.calm.outcomes,
            "memory": self.growth > GROWTH_MB,
        }
        return [name for name, is_so in found.items() if is_so]

    def __str__(self) -> str:
        errors = sum(self.faulty.counts[name] for name in ("error", "missing", "stopped"))
        peaks = " ".join(f"{role} {peak:.0f}" for role, peak in self.faulty.peaks.items())
        return (
            f"seed {self.seed}: {self.requests} requests, {self.injected.total()} faults, "
            f"{errors} without a grade, {self.faulty.verdict} (without faults "
            f"{self.calm.verdict}), then {self.resumed.verdict}; repeated {self.repeated}, "
            f"{self.faulty.seconds:.0f} s, MB: {peaks}, {self.growth:+.0f}; "
            f"{'; '.join(self.problems) or 'good'}"
        )


@dataclass
class Soak:
    """Runs in one folder; those without faults are made once for each share of right answers."""

    folder: Path
    items: int
    workers: int
    calm: dict[int, Ended] = field(default_factory=dict)

    def run(self, seed: int) -> Seed:
        """Return what came of a seed."""
        share = SHARES[seed % len(SHARES)]
        if share not in self.calm:
            with soaked(self.folder / f"calm-{share}", self.items, *self._how(seed, share)) as one:
                self.calm[share] = ended(one)
        trace, wires, *options = self._how(seed, share)
        trace.seed = seed
        with soaked(self.folder / str(seed), self.items, trace, wires, *options) as one:
            self._disturb(one, seed)
            with jumping_clock(self.folder / "clock", seed % 4 == 0):
                faulty = ended(one)
            requests, trace.seed = one.server.count, None
            resumed = ended(one)
        return Seed(
            seed=seed,
            requests=requests,
            injected=trace.injected,
            faulty=faulty,
            resumed=resumed,
            calm=self.calm[share],
            repeated=trace.repeated,
        )

    def _disturb(self, one: Chain, seed: int) -> None:
        """Let a run end early, by a signal at a random moment or at a folder that is read-only."""
        if seed % 4 == 3:
            process = replace(one, options=(*one.options, "--report-dir", "/proc/report")).start()
            assert process.wait(600) in (3, 4)
        elif seed % 4:
            process = one.start()
            until(lambda: one.server.count > 0 or process.poll() is not None)
            time.sleep(random.Random(seed).uniform(0.0, 3.0))
            with suppress(ProcessLookupError):
                if seed % 4 == 1:
                    os.kill(process.pid, signal.SIGTERM)
                else:
                    os.killpg(process.pid, signal.SIGINT)
            process.wait(60)

    def _how(self, seed: int, share: int) -> tuple[Failing, tuple[str, str], *tuple[str, ...]]:
        trace = Failing(delay=0.01, share=share)
        words = ("-n", str(self.workers), "--concurrency", str(CONCURRENCY))
        return trace, (WIRES[seed % 2], WIRES[seed // 2 % 2]), *words


@contextmanager
def jumping_clock(folder: Path, jumps: bool) -> Iterator[None]:
    """Let the wall clock of every process that starts in a block jump back by an hour at times."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(CLOCK, encoding="utf-8")
    former = os.environ.get("PYTHONPATH")
    if jumps:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder), former)))
    try:
        yield
    finally:
        os.environ.pop("PYTHONPATH", None)
        if former is not None:
            os.environ["PYTHONPATH"] = former


def main() -> int:
    """Run the seeds and return the exit code."""
    parser = argparse.ArgumentParser(description="Let runs meet random faults.")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("-n", "--workers", type=int, default=8)
    parser.add_argument("--first", type=int, default=1)
    options = parser.parse_args()
    seeds = []
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        soak = Soak(Path(folder), options.items, options.workers)
        for seed in range(options.first, options.first + options.seeds):
            seeds.append(soak.run(seed))
            _say(str(seeds[-1]))
    injected = sum((one.injected for one in seeds), Counter[str]())
    verdicts = Counter(f"{one.calm.verdict}->{one.faulty.verdict}" for one in seeds)
    _say(f"in all: {sum(one.requests for one in seeds)} requests, faults {dict(injected)}")
    _say(f"verdicts without -> with faults: {dict(verdicts)}")
    bad = [one for one in seeds if one.problems]
    wrong = sum(one.faulty.wrong(one.calm) + one.resumed.wrong(one.calm) for one in seeds)
    turned = sum("a wrong verdict" in one.problems for one in seeds)
    lost = sum(
        not one.faulty.is_whole or one.resumed.outcomes != one.calm.outcomes for one in seeds
    )
    again = sum(one.repeated for one in seeds)
    _say(f"wrong grades {wrong}, opposite verdicts {turned}, lost {lost}, repeated calls {again}")
    _say(f"seeds with a problem: {len(bad)} of {len(seeds)}")
    return 1 if bad else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
