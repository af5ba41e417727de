"""Which run a process belongs to.

One run is one command with its shards, batches, attempts and repeats. Its id stands beside
each reply that it asked for, so that a later run can tell new replies from old ones.

A run has a name, made of what it asks. ``QA_RUN`` gives it another one, and a CI system adds
the number of its own run. Under the name the ledger keeps the last run that had it. A process
goes on with that run (``goes_on_with``), or else begins a new one. Shards that begin at the
same time do so as well: the first one that is kept is the run of all.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import uuid4

from qagate.evaluators.kept_requests import Document
from qagate.evaluators.ledger.reply_store import Ledger
from qagate.evaluators.run_identity import NO_RUN, RunIdentity
from qagate.evaluators.text import canonical, digest, flat
from qagate.evaluators.typed_data import Timestamp

RUN = "run"
"""The kind of a document that is the last run of a name, under the hash of that name."""

QA_RUN = "QA_RUN"
"""The variable that names a run of several processes."""

CI_RUN_VARIABLES = ("GITHUB_RUN_ID", "CI_PIPELINE_ID")
"""Variables in which CI systems say the number of a run; it stays for another attempt."""

LONGEST_RUN_SECONDS = 12 * 3600.0
"""A process that begins later than this begins a new run."""

DECIDED = frozenset({0, 1})
"""Exit codes with which a run is over; after any other the same command goes on with it."""

TRIES = 20
"""To note the end of a run while its other shards do so too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunName:
    """The name by which the processes of a run find each other."""

    key: str
    """Its hash."""
    is_given: bool
    """Whether the user or a CI system named it: then its end is not told by an exit code."""
    given: str = ""
    """A hash of the name that they gave alone, which all commands of one CI run share."""


@dataclass(frozen=True, slots=True, order=True)
class RunPart:
    """A shard of a run; a run without shards is the only part of itself."""

    number: int = 1
    of: int = 1


WHOLE = (RunPart(),)
"""The parts of a run without shards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProcess:
    """What a process knows of its run before it looks into the ledger."""

    name: RunName
    parts: tuple[RunPart, ...] = WHOLE
    """The shards that it asks."""
    compared_with: frozenset[str] = frozenset()
    """The ids of the runs whose answers it is compared with: it is none of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRun:
    """What a ledger knows of a run."""

    id: str
    started: Timestamp
    """In seconds since 1970."""
    ended: Timestamp | None = None
    """When the latest process ended that decided."""
    code: int | None = None
    """The exit code of that process."""
    decided: frozenset[RunPart] = frozenset()
    """The parts that ended in one of DECIDED."""

    @property
    def identity(self) -> RunIdentity:
        """What tells it from every other run."""
        return RunIdentity(id=self.id, started=self.started)


# Pure: what a run is called, and whether a process belongs to it.


def run_name(command: Sequence[str], environment: Mapping[str, str]) -> RunName:
    """Return the name of a run that asks what ``command`` says."""
    given = environment.get(QA_RUN, "")
    if given:
        key = digest([QA_RUN, given])
        return RunName(key=key, is_given=True, given=key)
    for variable in CI_RUN_VARIABLES:
        number = environment.get(variable, "")
        if number:
            return RunName(
                key=digest([variable, number, *command]),
                is_given=True,
                given=digest([variable, number]),
            )
    return RunName(key=digest(["", "", *command]), is_given=False)


def goes_on_with(
    last: KnownRun, process: RunProcess, now: float, *, has_open_batches: bool
) -> bool:
    """Return whether a process belongs to the last run of its name.

    Not if its answers are compared with those of that run: a model that was deployed since, under
    the same name and in the same CI run, has to be asked. Not if that run began too long ago,
    unless a provider still has calls of it. Nor if it is over: all of it, or a part of this
    process, which would then be done a second time.
    """
    if last.id in process.compared_with:
        return False
    if now - last.started > LONGEST_RUN_SECONDS and not has_open_batches:
        return False
    if process.name.is_given:
        return True
    return not (is_over(last) or last.decided.intersection(process.parts))


def is_over(run: KnownRun) -> bool:
    """Return whether all parts of a run, of whatever number, have decided."""
    by_number: dict[int, set[int]] = {}
    for part in run.decided:
        by_number.setdefault(part.of, set()).add(part.number)
    return any(len(numbers) == of for of, numbers in by_number.items())


def with_end(
    run: KnownRun, parts: Iterable[RunPart], now: float, code: int
) -> KnownRun:
    """Return a run of which a process with these parts has ended with this exit code."""
    if code not in DECIDED:
        return run
    return replace(run, ended=now, code=code, decided=run.decided.union(parts))


# In the ledger.


def last_run(ledger: Ledger, name: RunName) -> KnownRun | None:
    """Return the last run of a name, whenever it was."""
    known: KnownRun | None = ledger.documents_as(RUN, KnownRun, [name.key]).get(
        name.key
    )
    return known


def current_run(
    ledger: Ledger,
    process: RunProcess,
    now: float,
    open_batches: Collection[str] = (),
) -> RunIdentity:
    """Return the run that a process would go on with; NO_RUN if it would begin a new one.

    ``open_batches`` are the ids of the runs of which a provider still has calls.
    """
    last = last_run(ledger, process.name)
    if last is None:
        return NO_RUN
    has_open_batches = last.id in open_batches
    if goes_on_with(last, process, now, has_open_batches=has_open_batches):
        return last.identity
    return NO_RUN


def begin_run(
    ledger: Ledger,
    process: RunProcess,
    now: float,
    open_batches: Collection[str] = (),
) -> RunIdentity:
    """Return the run that a process belongs to, and keep it if it is a new one.

    Raises LedgerError.
    """
    key = process.name.key
    while True:
        before = ledger.documents(RUN, [key]).get(key)
        current = current_run(ledger, process, now, open_batches)
        if current != NO_RUN:
            return current
        new = KnownRun(id=_new_id(now), started=now)
        if ledger.swap(Document(RUN, key, _text(new)), before):
            return new.identity


def end_run(
    ledger: Ledger, process: RunProcess, run: RunIdentity, now: float, code: int
) -> None:
    """Note that a process of a run has ended; nothing if another run has the name by now.

    Raises LedgerError.
    """
    key = process.name.key
    for _ in range(TRIES):
        before = ledger.documents(RUN, [key]).get(key)
        last = last_run(ledger, process.name)
        if last is None or last.id != run.id:
            return
        ended = with_end(last, process.parts, now, code)
        if ended == last or ledger.swap(Document(RUN, key, _text(ended)), before):
            return


def _new_id(now: float) -> str:
    """Return an id that says when the run began, and that no other run has."""
    began = datetime.fromtimestamp(now, UTC)
    return f"{began:%Y%m%dT%H%M%SZ}-{uuid4().hex[:8]}"


def _text(run: KnownRun) -> str:
    return canonical(
        {
            "id": run.id,
            "started": run.started,
            "ended": run.ended,
            "code": run.code,
            "decided": [flat(part) for part in sorted(run.decided)],
        }
    )
