"""Let whole runs meet what ends or hinders them: kills, storms, disks, limits, users, clocks.

Run as ``python -m tests.benchmarks.soak --full``; ``--part 0.1`` makes a tenth of the seeds and
kills, ``--only WORD`` the trials with this word in their names. A trial is a project of items
with a server and a ledger of its own. Its runs meet one hardship, then the same command is run
until it ends by itself. Each trial is a line: ``wrong`` grades, ``lost`` items (without the grade
that the server gave), calls made twice (``late``: of these, those whose reply had left the server
a quarter of a second or more before the kill), and the ``recovery``, from the end of the hardship
to the next reply. What must not be is named at the end of the line; exit code 1 where any is.

What this machine cannot do is skipped with the reason: disks and other users need root.
"""

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from qagate.evaluators.output import say
from tests.benchmarks.soak import SHARES, Soak, jumping_clock
from tests.support import postgres
from tests.support.killing import Chain, Trace, alive, grade, strike
from tests.support.loopback import Answer, Loopback, Seen
from tests.support.places import NOBODY
from tests.support.projects import new_project

ITEMS = 200
SEEDS = 40
KILLS = 60
CONCURRENCY = 16
REPLY_SECONDS = 0.1
SETTLED_SECONDS = 0.25
"""A reply that left the server so long before a kill must not be asked for again."""
RECOVERY_SECONDS = 30.0
"""At most, from the end of a hardship to the next reply; a run that starts anew needs its start
as well."""
STORM_SECONDS = 12.0
STORM_CONCURRENCY = 64
MOST_WASTED = 200
"""Calls in a storm of 12 s that a run may spend on finding out whether it is over."""
RUN_SECONDS = 600.0
"""At most, for one run."""
SLOW_DISK_SECONDS = 0.3
SMALL_DISK = "3m"
OTHER_USER = NOBODY - 1
FEW_FILES = 64
USAGE = 4
UNWRITTEN = 3
"""Exit codes of a run that may not begin, and of one that cannot write what it has."""
LITTLE_MEMORY_BYTES = 250_000 * 1024
SLOW_DISK_SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
static void wait_for_disk(void) {{ usleep({microseconds}); }}
int fsync(int file) {{
  wait_for_disk();
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}}
int fdatasync(int file) {{
  wait_for_disk();
  return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file);
}}
"""


class Skipped(Exception):  # no error: this machine lacks something
    """A trial that cannot be made here; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What came of one trial."""

    name: str
    calls: int = 0
    """Replies that left the server whole."""
    wrong: int = 0
    lost: int = 0
    twice: int = 0
    late: int = 0
    recovery: float | None = None
    start: float = 0.0
    """Seconds from the start of the first run to its first reply: the next one needs them too."""
    struck: bool = True
    """Whether the hardship met anything: a victim may have ended before its kill."""
    note: str = ""
    problems: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [
            f"{self.name}: {self.calls} calls, wrong {self.wrong}, lost {self.lost}, "
            f"twice {self.twice}, late {self.late}"
        ]
        if self.recovery is not None:
            parts.append(f"recovery {self.recovery:.1f} s")
        if not self.struck:
            parts.append("met nothing")
        if self.note:
            parts.append(self.note)
        parts.append("; ".join(self.problems) or "good")
        return ", ".join(parts)


@dataclass(slots=True, kw_only=True)
class Provider:
    """A model's server: it answers well, but for the time of a storm."""

    storm: Callable[[float], Answer] | None = None
    """What it says in a storm, given the seconds that are left of it."""
    storm_after: int = 0
    """It begins after so many requests."""
    storm_ends: float | None = None
    """In monotonic seconds; None until it begins."""
    wasted: int = 0
    """Requests in the storm."""
    _good: Trace = field(default_factory=lambda: Trace(delay=REPLY_SECONDS))

    def answer(self, seen: Seen) -> Answer:
        """Return a good answer, or what the storm says."""
        now = time.monotonic()
        if self.storm is not None and len(self._good.sent) >= self.storm_after:
            if self.storm_ends is None:
                self.storm_ends = now + STORM_SECONDS
            if now < self.storm_ends:
                self.wasted += 1
                return self.storm(self.storm_ends - now)
        return self._good.answer(seen)


@dataclass(slots=True, kw_only=True)
class Site:
    """A project with its server and its ledger, and the runs that are made there."""

    folder: Path
    items: int
    provider: Provider
    server: Loopback
    ledger: str = "ledger.sqlite3"
    earlier_replies: list[tuple[Seen, float]] = field(default_factory=list)
    earlier_requests: list[Seen] = field(default_factory=list)
    """What servers saw that were killed since."""

    def start(
        self,
        *options: str,
        prefix: tuple[str, ...] = (),
        user: int | None = None,
        prepare: Callable[[], object] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> "subprocess.Popen[str]":
        """Start a run in a process group of its own.

        ``prefix`` stands before its command; ``prepare`` is called in its process.
        """
        url = f"{self.server.url}/v1"
        models = ("--model", f"openai:m@{url}", "--judge", f"openai:j@{url}")
        words = ("-q", "--tb=no", "-p", "no:cacheprovider", *models)
        own_options = ("--ledger", self.ledger, *options, "qa")
        with (self.folder / "log").open("w", encoding="utf-8") as log:
            return subprocess.Popen(
                [*prefix, sys.executable, "-m", "pytest", *words, *own_options],
                cwd=self.folder,
                env={**os.environ, **(variables or {})},
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
                user=user,
                preexec_fn=prepare,  # noqa: PLW1509  # it sets a limit, and takes no lock
            )

    def run(self, *options: str) -> int:
        """Return the exit code of a run that ends by itself."""
        return self.start(*options).wait(RUN_SECONDS)

    @property
    def last_line(self) -> str:
        """What the last run said at its end."""
        lines = (self.folder / "log").read_text("utf-8", "replace").splitlines()
        return lines[-1][:160] if lines else ""

    @property
    def replies(self) -> list[tuple[Seen, float]]:
        """The requests that had a whole reply, and when it had left."""
        return [*self.earlier_replies, *self.server.delivered]

    @property
    def requests(self) -> list[Seen]:
        """All requests."""
        return [*self.earlier_requests, *self.server.requests]

    def kill_server(self, seconds: float) -> None:
        """Let the server be away so long; it comes back at the same address."""
        self.earlier_replies = self.replies
        self.earlier_requests = self.requests
        port = self.server.port
        self.server.stop()
        time.sleep(seconds)
        self.server = Loopback((), self.provider.answer, port)
        self.server.start()

    def wait_for_replies(self, count: int, process: "subprocess.Popen[str]") -> None:
        """Wait until so many replies have left, or the run has ended."""
        ends = time.monotonic() + RUN_SECONDS
        while len(self.replies) < count and process.poll() is None:
            if time.monotonic() > ends:
                process.kill()
                return
            time.sleep(0.02)

    def recovery(self, since: float) -> float | None:
        """Return the seconds from a moment to the next reply to a request; None without one.

        Replies that were under way do not count.
        """
        later = [left_at for seen, left_at in self.replies if seen.at > since]
        return min(later) - since if later else None

    def figures(
        self,
        name: str,
        *,
        killed_at: float | None = None,
        free_from: float | None = None,
        start: float = 0.0,
        struck: bool = True,
        note: str = "",
        problems: Sequence[str] = (),
    ) -> Figures:
        """Return what came of a trial, after its last run.

        ``killed_at`` is when something was killed, and ``free_from`` when the hardship was
        over, in monotonic seconds. ``problems`` are those that the trial itself has seen.
        """
        try:
            outcomes = self._chain().outcomes()
        except FileNotFoundError:
            no_report = f"no report: {self.last_line}"
            return Figures(
                name=name, lost=self.items, note=note, problems=(*problems, no_report)
            )
        wrong = 0
        graded = 0
        for key, (outcome, given, _) in outcomes.items():
            if outcome not in ("passed", "failed"):
                continue
            graded += 1
            number = key.rpartition("q")[2]
            wrong += given != grade(f"time number {number}?")
        prompts = Counter(seen.prompt for seen, _ in self.replies)
        figures = Figures(
            name=name,
            calls=len(self.replies),
            wrong=wrong,
            lost=self.items - graded,
            twice=sum(count - 1 for count in prompts.values()),
            late=self._late(killed_at),
            recovery=None if free_from is None else self.recovery(free_from),
            start=start,
            struck=struck,
            note=note,
        )
        return replace(figures, problems=(*problems, *_problems(figures)))

    def _late(self, killed_at: float | None) -> int:
        """Return how many replies that had left well before a kill were asked for again."""
        if killed_at is None:
            return 0
        settled = set()
        for seen, left_at in self.replies:
            if left_at < killed_at - SETTLED_SECONDS:
                settled.add(seen.prompt)
        again = {seen.prompt for seen in self.requests if seen.at > killed_at}
        return len(settled & again)

    def _chain(self) -> Chain:
        trace = Trace(delay=0.0)
        return Chain(folder=self.folder, server=self.server, trace=trace, options=())


def _problems(figures: Figures) -> Iterator[str]:
    """Yield what must not be after any hardship."""
    if figures.wrong:
        yield "a wrong grade"
    if figures.lost:
        yield "a lost item"
    if figures.late:
        yield "a kept reply asked for again"
    allowed = RECOVERY_SECONDS + figures.start
    if figures.recovery is not None and figures.recovery > allowed:
        yield f"no reply for {allowed:.0f} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """Where trials are made, and how large they are."""

    folder: Path
    items: int = ITEMS
    part: float = 1.0
    """Of the seeds and kills."""

    @contextmanager
    def site(self, name: str, provider: Provider | None = None) -> Iterator[Site]:
        """Make a project with its server for a block."""
        folder = self.folder / name.replace(" ", "-")
        new_project(folder).asked(self.items)
        provider = provider or Provider()
        server = Loopback((), provider.answer)
        server.start()
        site = Site(folder=folder, items=self.items, provider=provider, server=server)
        try:
            yield site
        finally:
            site.server.stop()

    def share_of(self, count: int) -> int:
        """Return how many of so many trials are made, at least 1."""
        return max(1, round(count * self.part))


# Random faults


def random_faults(grounds: Grounds) -> Iterator[Figures]:
    """Yield the seeds of the soak: a tenth of all calls fails, in many ways."""
    soak = Soak(grounds.folder, grounds.items, workers=2)
    for seed in range(1, grounds.share_of(SEEDS) + 1):
        ended = soak.run(seed)
        lost = ended.resumed.outcomes != ended.calm.outcomes
        yield Figures(
            name=f"seed {seed}",
            calls=ended.requests,
            wrong=ended.faulty.wrong(ended.calm) + ended.resumed.wrong(ended.calm),
            lost=int(lost),
            twice=ended.repeated,
            note=f"{ended.injected.total()} faults, {SHARES[seed % len(SHARES)]} % right",
            problems=tuple(ended.problems),
        )


# Kills

VICTIMS = ("engine", "worker", "controller", "server", "group")
ENDS_A_RUN = frozenset({"engine", "controller", "group"})
"""Victims without which a run cannot go on."""


def kills(grounds: Grounds) -> Iterator[Figures]:
    """Yield kills by SIGKILL at random moments, one victim after the other."""
    for number in range(grounds.share_of(KILLS)):
        victim = VICTIMS[number % len(VICTIMS)]
        yield _kill(
            grounds, f"kill {number + 1} {victim}", victim, random.Random(number)
        )


def _kill(
    grounds: Grounds,
    name: str,
    victim: str,
    chance: random.Random,
    variables: Mapping[str, str] | None = None,
) -> Figures:
    options = ("-n", "2", "--concurrency", str(CONCURRENCY))
    with grounds.site(name) as site:
        began = time.monotonic()
        process = site.start(*options, variables=variables)
        site.wait_for_replies(chance.randrange(5, site.items), process)
        start = site.recovery(began) or 0.0
        killed_at = time.monotonic()
        struck = process.poll() is None
        if struck and victim == "server":
            site.kill_server(chance.uniform(0.5, 3.0))
        elif struck:
            struck = strike(process.pid, victim, chance)  # type: ignore[arg-type]
        free_from = time.monotonic()
        process.wait(RUN_SECONDS)
        left = _wait_for_group(process.pid)
        if victim in ENDS_A_RUN:
            free_from = time.monotonic()  # the next run is what recovers
        replied = len(site.replies)
        code = site.run(*options)
        kept = site.items * 2 - (len(site.replies) - replied)
        return site.figures(
            name,
            killed_at=killed_at,
            free_from=free_from if struck else None,
            start=start if victim in ENDS_A_RUN else 0.0,
            struck=struck,
            note=f"{kept} replies kept, then exit {code}",
            problems=("a process was left",) if left else (),
        )


def _wait_for_group(group: int) -> bool:
    """Return whether a process of a group is left after half a minute."""
    ends = time.monotonic() + RECOVERY_SECONDS
    while alive(group):
        if time.monotonic() > ends:
            os.killpg(group, signal.SIGKILL)
            return True
        time.sleep(0.1)
    return False


POOLER_KILLS = 6
POOLER_SECONDS_AWAY = 1.0


def pooler_kills(grounds: Grounds) -> Iterator[Figures]:
    """Yield a run on PostgreSQL whose pooler is killed again and again: it goes on."""
    try:
        with postgres.running() as cluster, postgres.pooled_by(cluster) as pooler:
            direct = cluster.new_database()
            pooled = direct.replace(f":{cluster.port}/", f":{pooler.port}/")
            yield _pooler_kills(grounds, pooler, pooled)
    except pytest.skip.Exception as reason:
        raise Skipped(str(reason)) from None


def _pooler_kills(grounds: Grounds, pooler: postgres.Pooler, ledger: str) -> Figures:
    kills_made = grounds.share_of(POOLER_KILLS)
    with grounds.site("pooler") as site:
        site.ledger = ledger
        process = site.start("-n", "2", "--concurrency", str(CONCURRENCY))
        free_from = time.monotonic()
        for number in range(1, kills_made + 1):
            site.wait_for_replies(number * site.items // (kills_made + 1), process)
            pooler.kill()
            time.sleep(POOLER_SECONDS_AWAY)
            pooler.start()
            free_from = time.monotonic()
        code = process.wait(RUN_SECONDS)
        line = site.last_line
        then = site.run("-n", "2", "--concurrency", str(CONCURRENCY))
        return site.figures(
            "pooler",
            free_from=free_from,
            note=f"{kills_made} kills, exit {code}, then {then}",
            problems=() if code == 0 else (f"the run ended: {line}",),
        )


# Storms


def _refusal(status: int, header: str = "") -> Callable[[float], Answer]:
    """Return what a storm says: a status, and ``retry-after`` in one of its forms."""
    body = {"error": {"message": "later", "type": "overloaded"}}

    def answer(left: float) -> Answer:
        values = {
            "": "",
            "0": "0",
            "1": "1",
            "left": f"{left:.0f}",
            "date": _http_date(left),
        }
        value = values[header]
        headers = {"retry-after": value} if value else {}
        return Answer(status=status, body=body, headers=headers)

    return answer


def _http_date(seconds: float) -> str:
    at = datetime.fromtimestamp(time.time() + seconds, UTC)
    return at.strftime("%a, %d %b %Y %H:%M:%S GMT")


STORMS: Mapping[str, Callable[[float], Answer]] = {
    "429": _refusal(429),
    "429 after 0": _refusal(429, "0"),
    "429 after 1": _refusal(429, "1"),
    "429 after what is left": _refusal(429, "left"),
    "429 until a date": _refusal(429, "date"),
    "529": _refusal(529),
    "503": _refusal(503),
    "500": _refusal(500),
}


def storms(grounds: Grounds) -> Iterator[Figures]:
    """Yield eight storms of 12 s, in which the server refuses every call."""
    for name, storm in STORMS.items():
        provider = Provider(storm=storm, storm_after=grounds.items // 2)
        with grounds.site(f"storm {name}", provider) as site:
            code = site.run("-n", "2", "--concurrency", str(STORM_CONCURRENCY))
            wasted = provider.wasted
            too_many = (f"more than {MOST_WASTED} calls in the storm",)
            figures = site.figures(
                f"storm {name}",
                free_from=provider.storm_ends,
                note=f"{wasted} calls in the storm, exit {code}",
                problems=too_many if wasted > MOST_WASTED else (),
            )
            # Refusals were delivered as well: what is left over are good replies.
            good_replies = figures.calls - wasted
            twice = max(0, good_replies - 2 * site.items)
            yield replace(figures, calls=good_replies, twice=twice)


# Disks


def slow_disk(grounds: Grounds) -> Iterator[Figures]:
    """Yield a kill of the engine where each write takes a third of a second to reach the disk."""
    library = _slow_disk_library(grounds.folder)
    figures = _kill(
        grounds, "slow disk", "engine", random.Random(1), {"LD_PRELOAD": str(library)}
    )
    # Replies that wait for their commit are lost by a kill; docs/scale.md says how many.
    problems = tuple(
        problem for problem in figures.problems if not problem.startswith("a kept")
    )
    if figures.twice > 2 * CONCURRENCY:
        problems = (*problems, f"more than {2 * CONCURRENCY} calls made twice")
    yield replace(figures, problems=problems)


def _slow_disk_library(folder: Path) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        raise Skipped("no C compiler")
    source = folder / "slow_disk.c"
    source.write_text(
        SLOW_DISK_SOURCE.format(microseconds=int(SLOW_DISK_SECONDS * 1e6))
    )
    library = folder / "slow_disk.so"
    command = [compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return library


def full_disk(grounds: Grounds) -> Iterator[Figures]:
    """Yield a ledger on a disk that becomes full, and has room again for the next run."""
    with grounds.site("full disk") as site, _small_disk(site.folder / "disk") as disk:
        site.ledger = "disk/ledger.sqlite3"
        filler = disk / "filler"
        process = site.start("-n", "2", "--concurrency", str(CONCURRENCY))
        site.wait_for_replies(site.items // 2, process)
        with suppress(OSError), filler.open("wb") as file:
            while True:
                file.write(bytes(4096))
                file.flush()
        code = process.wait(RUN_SECONDS)
        before = len(site.replies)
        still_full = site.run("-n", "2", "--concurrency", str(CONCURRENCY))
        asked_while_full = len(site.replies) - before
        problems = []
        if asked_while_full:
            problems.append(f"{asked_while_full} calls while the disk was still full")
        filler.unlink()
        free_from = time.monotonic()
        then = site.run("-n", "2", "--concurrency", str(CONCURRENCY))
        yield site.figures(
            "full disk",
            free_from=free_from,
            note=f"exit {code}, still full {still_full}, then {then}",
            problems=problems,
        )


@contextmanager
def _small_disk(folder: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        raise Skipped("only root may mount a small disk")
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        raise Skipped("no disk can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


# Users and rights


def read_only(grounds: Grounds) -> Iterator[Figures]:
    """Yield a ledger's file, and then its folder, that may only be read: nothing is asked."""
    bound = _bound_by_rights()
    for name, path, mode in (
        ("read-only file", "shared/ledger.sqlite3", 0o400),
        ("read-only folder", "shared", 0o500),
    ):
        with grounds.site(name) as site:
            _share_ledger(site)
            site.run()
            before = len(site.replies)
            kept = site.folder / path
            usual_mode = kept.stat().st_mode
            kept.chmod(mode)
            code = site.start("--fresh", "again", prefix=bound).wait(RUN_SECONDS)
            asked = len(site.replies) - before
            line = site.last_line
            kept.chmod(usual_mode)
            site.run()
            problems = []
            if code != USAGE:
                problems.append(f"exit {code} in place of {USAGE}: {line}")
            if asked:
                problems.append(f"{asked} calls for a ledger that cannot be written")
            yield site.figures(name, note=f"exit {code}", problems=problems)


def _bound_by_rights() -> tuple[str, ...]:
    """Return the words before a command that may write only what its user may write."""
    if os.geteuid() != 0:
        return ()
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise Skipped("root may write everything, and there is no setpriv")
    return (setpriv, "--bounding-set=-dac_override,-dac_read_search")


def two_users(grounds: Grounds) -> Iterator[Figures]:
    """Yield a ledger that two users share: what one has paid for the other does not ask."""
    _check_other_users()
    key = {"QA_LEDGER_KEY": "0123456789abcdef" * 4}
    open_to_all = partial(os.umask, 0)
    with grounds.site("two users") as site:
        shared = _share_ledger(site)
        for path in (site.folder, *site.folder.rglob("*")):
            os.chown(path, NOBODY, -1)
        site.folder.chmod(0o777)
        shared.chmod(0o777)
        first = site.start(user=NOBODY, prepare=open_to_all, variables=key)
        site.wait_for_replies(site.items // 2, first)
        os.killpg(first.pid, signal.SIGKILL)
        killed_at = time.monotonic()
        first.wait(RUN_SECONDS)
        (shared / "ledger.sqlite3-shm").unlink(missing_ok=True)
        for path in shared.iterdir():
            path.chmod(0o666)  # as users do who share a ledger
        second = site.start(
            "--report-dir=other", user=OTHER_USER, prepare=open_to_all, variables=key
        )
        second_code = second.wait(RUN_SECONDS)
        line = site.last_line
        replied = len(site.replies)
        last = site.start(user=NOBODY, prepare=open_to_all, variables=key)
        last_code = last.wait(RUN_SECONDS)
        asked_again = len(site.replies) - replied
        problems = []
        if second_code != 0:
            problems.append(f"exit {second_code} of the second user: {line}")
        if asked_again:
            problems.append(f"the first user asked {asked_again} calls again")
        yield site.figures(
            "two users",
            killed_at=killed_at,
            note=f"exit {second_code}, then {last_code}",
            problems=problems,
        )


def _check_other_users() -> None:
    """Raise Skipped where no other user can run this Python."""
    if os.geteuid() != 0:
        raise Skipped("only root may run as two users")
    try:
        subprocess.run([sys.executable, "-c", ""], user=NOBODY, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise Skipped("this Python lies where other users cannot read") from None


def _share_ledger(site: Site) -> Path:
    """Give the ledger a folder of its own, and return it."""
    shared = site.folder / "shared"
    shared.mkdir()
    site.ledger = "shared/ledger.sqlite3"
    return shared


# Limits


def few_files(grounds: Grounds) -> Iterator[Figures]:
    """Yield a limit of open files below the calls in flight: it is said before the first call."""
    limit = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (FEW_FILES, FEW_FILES))
    options = ("--concurrency", str(2 * FEW_FILES))
    yield from _refused(grounds, "few files", options, limit, USAGE)


def little_memory(grounds: Grounds) -> Iterator[Figures]:
    """Yield a limit of memory below what a report takes: it is said before the first call."""
    size = LITTLE_MEMORY_BYTES
    limit = partial(resource.setrlimit, resource.RLIMIT_AS, (size, size))
    yield from _refused(grounds, "little memory", (), limit, UNWRITTEN)


def _refused(
    grounds: Grounds,
    name: str,
    options: tuple[str, ...],
    limit: Callable[[], object],
    wanted_code: int,
) -> Iterator[Figures]:
    """Yield a trial whose first run may ask nothing, and whose second has no limit."""
    with grounds.site(name) as site:
        code = site.start(*options, prepare=limit).wait(RUN_SECONDS)
        asked = len(site.requests)
        line = site.last_line
        site.run(*options)
        problems = []
        if code != wanted_code:
            problems.append(f"exit {code} in place of {wanted_code}: {line}")
        if asked:
            problems.append(f"{asked} calls before it was said")
        yield site.figures(name, note=f"exit {code}", problems=problems)


# Clocks


def jumping_clocks(grounds: Grounds) -> Iterator[Figures]:
    """Yield a run whose wall clock jumps by an hour, back and forth, and one after it."""
    with grounds.site("jumping clock") as site:
        with jumping_clock(grounds.folder / "clock", jumps=True):
            code = site.run("-n", "2")
        then = site.run("-n", "2")
        figures = site.figures("jumping clock", note=f"exit {code}, then {then}")
        again = ("a call made twice",) if figures.twice else ()
        yield replace(figures, problems=(*figures.problems, *again))


TRIALS: Mapping[str, Callable[[Grounds], Iterator[Figures]]] = {
    "seeds": random_faults,
    "kills": kills,
    "pooler": pooler_kills,
    "storms": storms,
    "slow disk": slow_disk,
    "full disk": full_disk,
    "read-only": read_only,
    "two users": two_users,
    "few files": few_files,
    "little memory": little_memory,
    "clocks": jumping_clocks,
}


def run_all(part: float, items: int, only: str) -> int:
    """Make the trials with this word in their names, say their figures; return the exit code."""
    figures: list[Figures] = []
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # other users run there too
        grounds = Grounds(folder=folder, items=items, part=part)
        for trial, make in TRIALS.items():
            if only not in trial:
                continue
            try:
                for trial_figures in make(grounds):
                    figures.append(trial_figures)
                    say(sys.stdout, str(trial_figures))
            except Skipped as reason:
                say(sys.stdout, f"{trial}: skipped, {reason}")
            except subprocess.TimeoutExpired:
                figures.append(
                    Figures(
                        name=trial, problems=(f"a run of more than {RUN_SECONDS:g} s",)
                    )
                )
                say(sys.stdout, str(figures[-1]))
    for line in _sums(figures):
        say(sys.stdout, line)
    return 1 if any(trial.problems for trial in figures) else 0


def _sums(figures: list[Figures]) -> Iterator[str]:
    killed = [trial for trial in figures if trial.name.startswith("kill")]
    struck = [trial for trial in killed if trial.struck]
    if killed:
        yield f"kills: {len(struck)} of {len(killed)} struck"
    recoveries = [trial.recovery for trial in figures if trial.recovery is not None]
    longest = f", longest recovery {max(recoveries):.1f} s" if recoveries else ""
    yield (
        f"in all: {len(figures)} trials, {sum(trial.calls for trial in figures):,} calls, "
        f"wrong {sum(trial.wrong for trial in figures)}, "
        f"lost {sum(trial.lost for trial in figures)}, "
        f"twice {sum(trial.twice for trial in figures)}, "
        f"late {sum(trial.late for trial in figures)}{longest}"
    )
    bad = [trial.name for trial in figures if trial.problems]
    yield f"trials with a problem: {len(bad)} of {len(figures)}"
