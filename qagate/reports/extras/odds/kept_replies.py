"""The kept replies that a run would use, as a rehearsal reads them: nothing is written."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from qagate.evaluators.core import Model
from qagate.evaluators.kept_requests import fresh_key
from qagate.evaluators.ledger import KeptReply, Ledger
from qagate.evaluators.ledger.beside import RowsBeside, load_beside
from qagate.evaluators.ledger.place import LedgerPlace
from qagate.evaluators.ledger.sqlite import exists
from qagate.evaluators.ledger.voids import JudgedPart, voided_since
from qagate.evaluators.negotiation import Negotiated
from qagate.evaluators.run_identity import RunIdentity
from qagate.evaluators.runtime.forecast import FindReply, KeptReplies
from qagate.evaluators.runtime.negotiations import read_negotiated

T = TypeVar("T")

Work = Callable[[KeptReplies], Coroutine[Any, Any, T]]

REPLIES_PER_QUERY = 1_000
"""How many replies one query takes from a ledger in a database."""


class KeptElsewhere:
    """A ledger and what lies beside it; either may be missing."""

    def __init__(
        self, place: LedgerPlace, beside: tuple[Path, ...], fresh: str
    ) -> None:
        self._place = place
        self._beside = load_beside(beside)
        self._fresh = fresh
        # No reply has this id: all of them come from other runs.
        self._run = RunIdentity(id="", started=time.time())

    def do(self, work: Work[T]) -> T:
        """Return the result of ``work``, which is given the kept replies."""
        if not exists(self._place):
            find = _finding_beside(self._beside)
            kept = KeptReplies(find=self._with_fresh_keys(find), run=self._run)
            return asyncio.run(work(kept))
        with Ledger(self._place, read_only=True, beside=self._beside) as ledger:
            if not ledger.store.near:
                return self._from_afar(ledger, work)
            return asyncio.run(work(self._kept(ledger, ledger.look_up)))

    def _kept(self, ledger: Ledger, find: FindReply) -> KeptReplies:
        since: dict[tuple[str, str, str], float] = {}
        negotiated: dict[str, Negotiated | None] = {}

        def negotiated_with(model: Model) -> Negotiated | None:
            if model.spec not in negotiated:
                negotiated[model.spec] = read_negotiated(ledger, model)
            return negotiated[model.spec]

        def counts_since(part: JudgedPart) -> float:
            place = (part.judge_key, part.language, part.rubric)
            if place not in since:
                since[place] = voided_since(ledger, part)
            return since[place]

        return KeptReplies(
            find=self._with_fresh_keys(find),
            run=self._run,
            counts_since=counts_since,
            negotiated=negotiated_with,
        )

    def _with_fresh_keys(self, find: FindReply) -> FindReply:
        return lambda key: find(fresh_key(key, self._fresh))

    def _from_afar(self, ledger: Ledger, work: Work[T]) -> T:
        """Return the result of ``work``, with many replies a query from a ledger far away.

        The work is done with the replies that are here, and notes those that it lacks. They
        are fetched, and it is done again, until no further one is found.
        """
        replies: dict[str, KeptReply] = {}
        lacking: list[str] = []

        def find(key: str) -> KeptReply | None:
            if key not in replies:
                lacking.append(key)
            return replies.get(key)

        kept = self._kept(ledger, find)
        while True:
            lacking.clear()
            result = asyncio.run(work(kept))
            count_before = len(replies)
            for start in range(0, len(lacking), REPLIES_PER_QUERY):
                keys = lacking[start : start + REPLIES_PER_QUERY]
                replies |= ledger.kept_replies(keys)
            if len(replies) == count_before:
                return result


def _finding_beside(beside: RowsBeside) -> FindReply:
    def find(key: str) -> KeptReply | None:
        row = beside.newest(key)
        reply = None if row is None else row.opened()
        if row is None or reply is None:
            return None
        return KeptReply(reply=reply, at=row.at, run=row.run)

    return find
