"""``qagate ledger batches``: list the batches that a ledger remembers; cancel one of them."""

import argparse
import asyncio
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from qagate.evaluators.core import CallError, FatalError, RefusedError, UsageError
from qagate.evaluators.extras.batches.waves import (
    NOT_KNOWN,
    State,
    Wave,
    keep_wave,
    waves_in,
)
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.ledger.kept import Kept
from qagate.evaluators.models import LazyModel
from qagate.evaluators.models.batched import BatchedModel
from qagate.evaluators.models.catalogue import load_catalogue
from qagate.evaluators.models.keys import read_key_names, require_key
from qagate.evaluators.models.spec import parse
from qagate.evaluators.output import aligned_table, plural, say
from qagate.evaluators.text import one_line

DONE, NOT_CANCELLED = 0, 1
"""Exit codes."""

HEAD = ("batch", "model", "calls", "done", "failed", "sent", "state")
STATES: Mapping[State, str] = {
    "planned": "not sent: the next run with --batch goes on",
    "sending": "not known whether it was sent: the next run with --batch finds out",
    "sent": "with the provider",
    "read": "read",
    "given up": "given up",
}
CANCELLED = "cancelled: the next run with --batch reads what is done"


def run(options: argparse.Namespace) -> int:
    """List the batches; with ``--cancel`` cancel one of them. Raises UsageError."""
    if options.cancel is None:
        with Ledger(options.ledger, read_only=True) as ledger:
            say(sys.stdout, *_lines(_waves_as_read(ledger)))
        return DONE
    with Ledger(options.ledger) as ledger:
        waves = waves_in(ledger)
        wave = _open_wave(waves.values(), options.cancel)
        spec = parse(wave.spec, load_catalogue(own=options.models))
        model = LazyModel(spec, require_key(spec, read_key_names(options.key_env)))
        known_batches = [other.batch for other in waves.values() if other.batch]
        try:
            message = asyncio.run(_cancel(ledger, wave, model, known_batches))
        except CallError as error:
            say(sys.stderr, f"not cancelled: {error}")
            return NOT_CANCELLED
    say(sys.stdout, message)
    return DONE


def _waves_as_read(ledger: Ledger) -> list[Wave]:
    """Return all waves; one whose replies are all kept is read.

    A run may have been killed before it noted that.
    """
    waves = []
    for wave in waves_in(ledger).values():
        its_own = Kept(run=wave.run, since=wave.at)
        replies = ledger.replies(wave.keys, its_own)
        is_read = wave.is_open and len(replies) == len(wave.keys)
        if is_read:
            waves.append(replace(wave, state="read", done=wave.calls))
        else:
            waves.append(wave)
    return waves


def _open_wave(waves: Iterable[Wave], name: str) -> Wave:
    """Return the wave with a name. Raises UsageError if there is none that is open."""
    problem = "no such batch is known"
    for wave in waves:
        if name in (wave.named, wave.id):
            if wave.is_open:
                return wave
            problem = f"no such batch is open any more ({STATES[wave.state]})"
            break
    raise UsageError(f"--cancel {name}: {problem}; `ledger batches` lists them")


def _lines(waves: Sequence[Wave]) -> Iterator[str]:
    rows = [_row(wave) for wave in sorted(waves, key=lambda wave: wave.at)]
    if rows:
        yield from aligned_table([HEAD, *rows])
    else:
        yield "no batches"
    calls_out = sum(wave.calls for wave in waves if wave.is_open)
    if calls_out:
        count = plural(calls_out, "call")
        yield f"{count} not back yet: run the same command again, with --batch"


def _row(wave: Wave) -> tuple[str, ...]:
    done = failed = ""
    if not wave.is_open:
        done, failed = f"{wave.done:,}", f"{wave.failed:,}"
    return (
        wave.named,
        one_line(wave.spec),
        f"{wave.calls:,}",
        done,
        failed,
        datetime.fromtimestamp(wave.at, UTC).strftime("%Y-%m-%d %H:%M"),
        CANCELLED if wave.is_open and wave.cancelled else STATES[wave.state],
    )


async def _cancel(
    ledger: Ledger, wave: Wave, model: LazyModel, known_batches: Iterable[str]
) -> str:
    """Cancel a wave at its provider; return what became of it. Raises CallError.

    It is given up in the ledger if the provider does not have it, or if it was cancelled
    before: then the next run asks for all its calls again.
    """
    batches = model.batches()
    try:
        if not wave.cancelled:
            wave = await _looked_up(wave, batches, known_batches)
        if wave.cancelled or not wave.batch:
            return await _give_up(ledger, wave)
        if not await _cancel_at_provider(wave.batch, batches):
            return await _give_up(ledger, wave)
    finally:
        await model.close()
    await keep_wave(ledger, replace(wave, state="sent", cancelled=True))
    return (
        f"{wave.batch} is cancelled; what is done by now is paid for, and read by the next "
        "run with --batch; the rest is asked again"
    )


async def _looked_up(
    wave: Wave, batches: BatchedModel, known_batches: Iterable[str]
) -> Wave:
    """Return the wave with its batch's id, if it was sent and the id never came."""
    if wave.batch or wave.state == "planned":
        return wave
    try:
        candidates = await batches.call_api(
            lambda api: api.find(wave.id, wave.calls, wave.after)
        )
    except (FatalError, RefusedError) as error:
        if isinstance(error, FatalError) and error.kind != NOT_KNOWN:
            raise
        return wave  # the server lists no batches
    other_batches = {*known_batches, *wave.others}
    new = [batch for batch in candidates if batch not in other_batches]
    if not new:
        return wave
    return replace(wave, batch=new[-1], was_found=True)


async def _cancel_at_provider(batch: str, batches: BatchedModel) -> bool:
    """Cancel a batch that may be over already; return whether the provider knows it."""
    try:
        await batches.call_api(lambda api: api.cancel(batch))
    except CallError as error:
        if error.kind == NOT_KNOWN:
            return False
        # Providers refuse to cancel what is over.
        status = await batches.call_api(lambda api: api.status(batch))
        if not status.is_over:
            raise
    return True


async def _give_up(ledger: Ledger, wave: Wave) -> str:
    """Note that nothing will come of a wave; return why."""
    why = "the provider does not know it"
    if wave.cancelled:
        why = "it was cancelled before"
    await keep_wave(ledger, replace(wave, state="given up", keys=()))
    return f"{wave.named} is given up: {why}; its calls may be asked again"
