"""``qagate ledger batches``: list the batches that providers work on, or cancel one."""

import argparse
import asyncio
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from evaluators.batches.waves import NOT_KNOWN, State, Wave, keep_wave, waves_in
from evaluators.core import CallError, FatalError, UsageError
from evaluators.ledger import Ledger
from evaluators.models import LazyModel
from evaluators.models.catalogue import load_catalogue
from evaluators.models.keys import read_key_names, require_key
from evaluators.models.spec import parse
from evaluators.output import aligned_table, plural, say
from evaluators.secrets import one_line

DONE, NOT_DONE = 0, 1
HEAD = ("batch", "model", "calls", "done", "failed", "sent", "state")
STATES: Mapping[State, str] = {
    "planned": "not sent: the next run with --batch goes on",
    "sending": "not known whether it was sent: the next run with --batch finds out",
    "sent": "with the provider",
    "read": "read",
    "given up": "given up",
}


def batches(options: argparse.Namespace) -> int:
    """Print the batches that the ledger remembers; with ``--cancel`` cancel one of them."""
    is_looking = options.cancel is None
    with Ledger(options.ledger, read_only=is_looking) as ledger:
        waves = waves_in(ledger)
        if is_looking:
            say(sys.stdout, *_lines([_as_read(ledger, one) for one in waves.values()]))
            return DONE
        wave = next((one for one in waves.values() if options.cancel in (one.named, one.id)), None)
        if wave is None or not wave.is_open:
            why = "known" if wave is None else f"open any more ({STATES[wave.state]})"
            raise UsageError(
                f"--cancel {options.cancel}: no such batch is {why}; `ledger batches` lists them"
            )
        spec = parse(wave.spec, load_catalogue(own=options.models))
        model = LazyModel(spec, require_key(spec, read_key_names(options.key_env)))
        known = [one.batch for one in waves.values() if one.batch]
        try:
            said = asyncio.run(_cancel(ledger, wave, model, known))
        except CallError as error:
            say(sys.stderr, f"not cancelled: {error}")
            return NOT_DONE
    say(sys.stdout, said)
    return DONE


def _lines(waves: Sequence[Wave]) -> Iterator[str]:
    rows = [
        (
            wave.named,
            one_line(wave.spec),
            f"{wave.calls:,}",
            "" if wave.is_open else f"{wave.done:,}",
            "" if wave.is_open else f"{wave.failed:,}",
            datetime.fromtimestamp(wave.at, UTC).strftime("%Y-%m-%d %H:%M"),
            STATES[wave.state],
        )
        for wave in sorted(waves, key=lambda one: one.at)
    ]
    if not rows:
        yield "no batches"
        return
    yield from aligned_table([HEAD, *rows])
    out = sum(wave.calls for wave in waves if wave.is_open)
    if out:
        yield f"{plural(out, 'call')} not back yet: run the same command again, with --batch"


def _as_read(ledger: Ledger, wave: Wave) -> Wave:
    """Return the wave, as read if the run that read it was killed before it noted that."""
    if not wave.is_open or any(ledger.get(key) is None for key in wave.keys):
        return wave
    return replace(wave, state="read", done=wave.calls)


async def _cancel(ledger: Ledger, wave: Wave, model: LazyModel, known: Iterable[str]) -> str:
    """Cancel a wave at its provider, and in the ledger if the provider does not have it."""
    api = model.batches()
    try:
        wave = await _found(wave, model, known)
        if wave.batch:
            await api.cancel(wave.batch)
            await keep_wave(ledger, replace(wave, state="sent"))
            done = "what is done by now is paid for, and read by the next run with --batch"
            return f"{wave.batch} is cancelled; {done}"
    except FatalError as error:
        if error.kind != NOT_KNOWN:
            raise
    finally:
        await model.close()
    await keep_wave(ledger, replace(wave, state="given up", keys=()))
    return f"{wave.named} is given up: the provider does not know it; its calls may be asked again"


async def _found(wave: Wave, model: LazyModel, known: Iterable[str]) -> Wave:
    """Return the wave with its batch's id, if the provider has it."""
    if wave.batch or wave.state == "planned":
        return wave
    ids = await model.batches().find(wave.id, wave.calls, wave.at)
    new = [one for one in ids if one not in {*known, *wave.others}]
    return replace(wave, batch=new[-1], was_found=True) if new else wave
