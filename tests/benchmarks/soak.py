"""Let runs meet random faults and look for a wrong verdict, a wrong grade or a lost item.

Run as ``python -m tests.benchmarks.soak [--seeds 20] [--items 1000] [-n 8] [--first 1]``, or
with ``--full`` for all that ``full_soak.py`` does.
Each seed is one run of pytest against a server that fails about one call in ten, in the ways of
``FAULTS``, then a second run on the same ledger against the server when it is
well. Seeds alternate the wire formats, and models that fail the gate clearly or narrowly, pass it
narrowly or clearly. Before the first run of a seed comes, in turn, a run that is ended by SIGTERM
or Ctrl-C at a random moment, or cannot write its report; in every fourth seed the clock jumps back.
Prints a line for each seed and the sums; exit code 1 where an item was lost, a grade wrong, a
verdict neither that without faults nor INCONCLUSIVE, a kept reply asked again, the second run other
than one without faults, or a process 50 MB larger than without faults.
"""

import argparse
import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from qagate.evaluators.output import say
from tests.support.killing import Chain, Trace, members, until
from tests.support.loopback import Answer, Seen, loopback, marked, plausible
from tests.support.projects import new_project
from tests.support.tables import kept

SHARES = (40, 49, 50, 60)  # percent of right answers; the gate wants 50
CONCURRENCY = 32
GROWTH_MB = 50.0
CLOCK: str = kept(__file__, "clock")


WIRES = ("openai", "anthropic")
STUBBORN = 0.004  # of the prompts: they fail each time, and end as ERROR
Fault = Callable[[Seen, Answer, random.Random], Answer]


def _status(status: int, message: str = "injected", **headers: str) -> Fault:
    body = {"error": {"message": message, "type": "injected"}}
    return lambda seen, good, chance: Answer(status=status, body=body, headers=headers)


def _changed(**parts: object) -> Fault:
    """Return the fault of a good body in which some of the parts it has say something else."""

    def fault(seen: Seen, good: Answer, chance: random.Random) -> Answer:
        body: Any = good.body
        return replace(
            good, body=body | {key: parts[key] for key in parts if key in body}
        )

    return fault


def _cut(seen: Seen, good: Answer, chance: random.Random) -> Answer:
    length = len(good.content)
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    return Answer(
        action="raw", body=head.encode() + good.content[: chance.randrange(length)]
    )


def _unreadable(seen: Seen, good: Answer, chance: random.Random) -> Answer:
    """Let a judge give a grade that there is not; a model that answers is cut off instead."""
    if seen.tool is None:
        return _cut(seen, good, chance)
    return plausible(lambda asked, name, schema: "MAYBE" if name == "grade" else "so")(
        seen
    )


def _raw(change: Callable[[bytes], bytes], head: str = "", **headers: str) -> Fault:
    """Return the fault of a good body of which the bytes are changed, or the head."""

    def fault(seen: Seen, good: Answer, chance: random.Random) -> Answer:
        body = change(good.content)
        named = {
            "content-type": "application/json",
            "content-length": len(body),
            **headers,
        }
        lines = "".join(
            f"{name.replace('_', '-')}: {value}\r\n" for name, value in named.items()
        )
        return Answer(
            action="raw", body=f"{head}HTTP/1.1 200 OK\r\n{lines}\r\n".encode() + body
        )

    return fault


BOMB = cache(lambda: gzip.compress(bytes(60_000_000), 9))


HTML = {"content-type": "text/html"}
OPPOSITE = {"CORRECT": "INCORRECT", "INCORRECT": "CORRECT"}


def _another_tool(seen: Seen, good: Answer, chance: random.Random) -> Answer:
    """Let a judge call another function, with the opposite grade; cut off a model's answer."""
    if seen.tool is None:
        return _cut(seen, good, chance)
    text = good.content.decode().replace(seen.tool[0], "another_tool")
    found = next(grade for grade in ("INCORRECT", "CORRECT") if grade in text)
    return Answer(body=text.replace(found, OPPOSITE[found]))


OTHERS: Mapping[str, Fault] = {
    **{f"{status}": _status(status) for status in (408, 409, 425, 502, 504, 529)},
    **{f"{status}": _status(status) for status in (307, 401, 402, 403, 404, 413)},
    "302": _status(302, location="http://127.0.0.1:9/v1"),
    "429 bare": _status(429),
    "filtered": _status(400, "blocked by the content management policy"),
    "too long": _status(400, "prompt is too long: 9 tokens > 8"),
    "drip": lambda seen, good, chance: replace(good, action="drip", delay=0.0005),
    "another tool": _another_tool,
    "bad json": _raw(lambda body: body.replace(b'"', b"'", 9)),
    "nan": _raw(lambda body: body[:-1] + b', "x": NaN}'),
    "6 MB": _raw(lambda body: body[:-1] + b" " * 6_000_000 + b"}"),
    "bomb": _raw(lambda body: BOMB(), content_encoding="gzip"),
    "false gzip": _raw(lambda body: body, content_encoding="gzip"),
    "bytes": _raw(lambda body: body.replace(b"{", b"{\xe9", 1)),
    "bom": _raw(lambda body: b"\xef\xbb\xbf" + body),
    "twice": _raw(lambda body: body[:-1] + b', "choices": [], "content": []}'),
    "null": _raw(lambda body: b"null"),
    "array": _raw(lambda body: b"[" + body + b"]"),
    "nothing": _raw(lambda body: b""),
    "continue": _raw(lambda body: body, head="HTTP/1.1 100 Continue\r\n\r\n"),
    "long head": _raw(lambda body: body, x_long="x" * 180_000),
    "too short": _raw(lambda body: body, content_length="20"),
    "chunks": _raw(lambda body: b"40\r\n" + body[:30], transfer_encoding="chunked"),
    "events": _raw(
        lambda body: b"data: " + body + b"\n\n", content_type="text/event-stream"
    ),
    "error in 200": _raw(lambda body: b'{"error": {"message": "overloaded"}}'),
    "surrogate": _raw(lambda body: body.replace(b'"', b'"\\ud800', 1)),
}
FAULTS: Mapping[str, tuple[float, Fault]] = {
    **{name: (0.0012, fault) for name, fault in OTHERS.items()},
    "500": (0.008, _status(500)),
    "503": (0.002, _status(503)),
    "429": (0.0005, _status(429, **{"retry-after": "1"})),
    "reset": (0.008, lambda seen, good, chance: Answer(action="reset")),
    "hang": (
        0.004,
        lambda _, __, chance: Answer(action="reset", delay=chance.uniform(0.1, 1)),
    ),
    "cut": (0.007, _cut),
    "html": (
        0.007,
        lambda *_: Answer(headers=HTML, body="<html>Sign in, please</html>"),
    ),
    "empty": (0.007, _changed(choices=[], content=None)),
    "model": (0.007, _changed(model="quite-another")),
    "unreadable": (0.006, _unreadable),
}
"""What share of all requests fails how. A 429 or 503 tells a run to slow down: many at random would
only make it long."""


@dataclass
class Failing(Trace):
    """A server's mind: it grades ``share`` percent of all items CORRECT, and fails by ``seed``.

    What happens to a request follows from the seed, its text and how often it was sent; so it is
    the same in any order of requests. A seed of None fails never.
    """

    share: int = 50
    seed: int | None = None
    asked_times: Counter[str] = field(default_factory=Counter)
    injected: Counter[str] = field(default_factory=Counter)
    good: set[str] = field(default_factory=set)
    repeated: int = 0

    def answer(self, seen: Seen) -> Answer:
        """Answer a request well or badly; count it where it had a good reply before."""
        prompt = seen.prompt
        self.repeated += prompt in self.good
        self.asked_times[prompt] += 1
        good = plausible(self._value)(seen)
        name = self._fault(prompt)
        if name is None:
            self.good.add(prompt)
            return replace(good, delay=self.delay)
        self.injected[name] += 1
        chance = random.Random(f"{self.seed} {prompt} {self.asked_times[prompt]} how")
        return FAULTS[name][1](seen, good, chance)

    def _value(self, seen: Seen, name: str, schema: Mapping[str, Any]) -> object:
        if name != "grade":
            return marked(seen, name, schema)
        number = int(seen.prompt.partition("time number ")[2].partition("?")[0])
        return "CORRECT" if number * 37 % 100 < self.share else "INCORRECT"

    def _fault(self, prompt: str) -> str | None:
        """Return the name of the fault that this sending of a prompt meets."""
        if self.seed is None:
            return None
        names = [*FAULTS]
        weights = [FAULTS[name][0] for name in names]
        always = random.Random(f"{self.seed} {prompt}")
        if always.random() < STUBBORN:
            return always.choice(
                [name for name in names if name not in ("429", "503", "hang")]
            )
        chance = random.Random(f"{self.seed} {prompt} {self.asked_times[prompt]}")
        well = 1 - sum(weights)
        return chance.choices([*names, None], [*weights, well])[0]


class Ended(NamedTuple):
    """How a run ended: verdict, counts by state, each item's outcome, seconds, peak MB by role."""

    verdict: str
    counts: Mapping[str, int]
    outcomes: Mapping[str, Any]
    seconds: float
    peaks: Mapping[str, float]

    @property
    def is_whole(self) -> bool:
        """Whether each planned item is in one state, and the counts say which."""
        states = Counter(outcome for outcome, _, _ in self.outcomes.values())
        plan = self.counts["plan"]
        counted = {name: n for name, n in self.counts.items() if n and name != "plan"}
        return counted == dict(states) and states.total() == plan == len(self.outcomes)

    def wrong(self, expected: "Ended") -> int:
        """Return how many items have another grade than without faults."""
        graded = {
            k: one for k, one in self.outcomes.items() if one[0] in ("passed", "failed")
        }
        return sum(one != expected.outcomes[key] for key, one in graded.items())


@contextmanager
def soaked(
    folder: Path, items: int, trace: Failing, wires: tuple[str, str], *options: str
) -> Iterator[Chain]:
    """Serve a project of so many items for a block, in these wire formats."""
    new_project(folder).asked(items)
    with loopback(handler=trace.answer) as server:
        yield Chain(
            folder=folder, server=server, trace=trace, options=options, wires=wires
        )


def ended(one: Chain) -> Ended:
    """Let a run end; raises RuntimeError after ten minutes."""
    begun = time.monotonic()
    peaks = _peaks(one.start())
    path = one.folder / "reports" / "out" / "run.json"
    report = json.loads(path.read_text(encoding="utf-8"))
    return Ended(
        verdict=report["verdict"],
        counts=report["counts"],
        outcomes=one.outcomes(),
        seconds=time.monotonic() - begun,
        peaks=peaks,
    )


def _peaks(
    process: "subprocess.Popen[str]", longest: float = 600.0
) -> Mapping[str, float]:
    """Wait for a run's end; return the most memory that a process of each role had, in MB."""
    peaks: dict[str, float] = {}
    end = time.monotonic() + longest
    while process.poll() is None:
        if time.monotonic() > end:
            process.kill()
            raise RuntimeError(f"the run did not end within {longest:g} s")
        for role, pid in (
            (role, pid) for role, pids in members(process.pid).items() for pid in pids
        ):
            with suppress(OSError):  # it may just have ended
                status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
                found = re.search(r"VmHWM:\s+(\d+)", status)
                peaks[role] = max(
                    peaks.get(role, 0.0), int(found[1]) / 1024 if found else 0.0
                )
        time.sleep(0.1)
    return peaks


class Seed(NamedTuple):
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
        return max(
            peak - self.calm.peaks.get(k, peak) for k, peak in self.faulty.peaks.items()
        )

    @property
    def problems(self) -> list[str]:
        """What must not be, in words; empty where all is well."""
        fit = (self.calm.verdict, "INCONCLUSIVE")
        found = {
            "an item in no state or in two": not (
                self.faulty.is_whole and self.resumed.is_whole
            ),
            "a wrong verdict": self.faulty.verdict not in fit,
            "a wrong grade": bool(self.faulty.wrong(self.calm)),
            "a kept reply asked again": self.repeated > 0,
            "another verdict after the second run": self.resumed.verdict
            != self.calm.verdict,
            "another outcome after the second run": self.resumed.outcomes
            != self.calm.outcomes,
            "memory": self.growth > GROWTH_MB,
        }
        return [name for name, is_so in found.items() if is_so]

    def __str__(self) -> str:
        errors = sum(
            self.faulty.counts[name] for name in ("error", "missing", "stopped")
        )
        peaks = " ".join(
            f"{role} {peak:.0f}" for role, peak in self.faulty.peaks.items()
        )
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
            with soaked(
                self.folder / f"calm-{share}", self.items, *self._how(seed, share)
            ) as one:
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
            process = replace(
                one, options=(*one.options, "--report-dir", "/proc/report")
            ).start()
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

    def _how(
        self, seed: int, share: int
    ) -> tuple[Failing, tuple[str, str], *tuple[str, ...]]:
        trace = Failing(delay=0.01, share=share)
        words = ("-n", str(self.workers), "--concurrency", str(CONCURRENCY))
        return trace, (WIRES[seed % 2], WIRES[seed // 2 % 2]), *words


@contextmanager
def jumping_clock(folder: Path, jumps: bool) -> Iterator[None]:
    """Let the wall clock of every process that starts in a block jump back by an hour at times."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(CLOCK, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        if jumps:
            patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        yield


def main() -> int:
    """Run the seeds and return the exit code."""
    parser = argparse.ArgumentParser(description="Let runs meet random faults.")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("-n", "--workers", type=int, default=8)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--part", type=float, default=1.0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if options.full:
        from tests.benchmarks.full_soak import ITEMS, run_all  # noqa: PLC0415  # it needs this module

        return run_all(options.part, min(options.items, ITEMS), options.only)
    seeds = []
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        soak = Soak(Path(folder), options.items, options.workers)
        for seed in range(options.first, options.first + options.seeds):
            seeds.append(soak.run(seed))
            say(sys.stdout, str(seeds[-1]))
    injected = sum((one.injected for one in seeds), Counter[str]())
    verdicts = Counter(f"{one.calm.verdict}->{one.faulty.verdict}" for one in seeds)
    say(
        sys.stdout,
        f"in all: {sum(one.requests for one in seeds)} requests, faults {dict(injected)}",
    )
    say(sys.stdout, f"verdicts without -> with faults: {dict(verdicts)}")
    bad = [one for one in seeds if one.problems]
    wrong = sum(
        one.faulty.wrong(one.calm) + one.resumed.wrong(one.calm) for one in seeds
    )
    turned = sum("a wrong verdict" in one.problems for one in seeds)
    lost = sum(
        not one.faulty.is_whole or one.resumed.outcomes != one.calm.outcomes
        for one in seeds
    )
    again = sum(one.repeated for one in seeds)
    say(
        sys.stdout,
        f"wrong grades {wrong}, opposite verdicts {turned}, lost {lost}, repeated calls {again}",
    )
    say(sys.stdout, f"seeds with a problem: {len(bad)} of {len(seeds)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
