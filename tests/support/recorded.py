"""Ledgers for tests: rows put in, files damaged."""

import asyncio
from collections.abc import Sequence

from qagate.evaluators.core import Reply
from qagate.evaluators.ledger import KeptReply, Ledger, PaidReply
from qagate.evaluators.ledger.place import LedgerPlace
from qagate.evaluators.runtime.caller import Caller, CallSettings, RetryPolicy
from qagate.evaluators.text import digest

SPEC = "openai:m"


def key_of(number: int) -> str:
    return digest(number)


def reply_of(number: int, size: int = 200) -> Reply:
    return Reply(
        text=f"{number} " * size, model="m-1", input_tokens=number, output_tokens=2
    )


def row_of(number: int, size: int = 200, spec: str = SPEC) -> PaidReply:
    return PaidReply(key=key_of(number), spec=spec, reply=reply_of(number, size))


def caller(ledger: Ledger, *, replay: bool = False) -> Caller:
    """Return what puts requests to models for one run; a failed call is not tried again."""
    settings = CallSettings(
        replay=replay, retry=RetryPolicy(attempts=1), random=lambda: 0.5
    )
    return Caller(ledger, settings, lambda spec, reply: 0.5)


def reply_in(kept: KeptReply | None) -> Reply | None:
    return None if kept is None else kept.reply


def is_imported(ledger: Ledger, number: int) -> bool:
    kept = ledger.look_up(key_of(number))
    return kept is not None and kept.is_imported


def put(ledger: Ledger, rows: Sequence[PaidReply]) -> None:
    async def all_at_once() -> None:
        await asyncio.gather(*(ledger.put(one) for one in rows))

    asyncio.run(all_at_once())


def fill(path: LedgerPlace, count: int, spec: str = SPEC, size: int = 200) -> None:
    with Ledger(path) as ledger:
        put(ledger, [row_of(number, size, spec) for number in range(count)])
