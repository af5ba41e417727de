"""From when on a judge's kept grades count.

A run that finds a judge to have changed makes all grades void that were kept before, or those
in one language and rubric. The ledger remembers that, so that no later run takes an old grade
for one of this judge, however little it asks of the judge itself.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from qagate.evaluators.kept_requests import judge_identity
from qagate.evaluators.ledger.reply_store import Ledger
from qagate.evaluators.text import digest

VOID = "void"
"""The kind of a document that says since when grades count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPart:
    """The grades of a judge, or those in one language and rubric."""

    judge: Mapping[str, object]
    """The identity of its model."""
    language: str = ""
    rubric: str = ""
    """Both are empty for all grades of the judge."""

    @property
    def key(self) -> str:
        """The key of its document."""
        return digest([dict(judge_identity(self.judge)), self.language, self.rubric])

    @property
    def whole(self) -> "JudgedPart":
        """All grades of the judge."""
        return JudgedPart(judge=self.judge)


def voided_since(ledger: Ledger, part: JudgedPart) -> float:
    """Return from when on grades count, in seconds since 1970; 0 for all that are kept.

    Raises LedgerError.
    """
    texts = ledger.documents(VOID, {part.key, part.whole.key})
    return max((float(json.loads(text)) for text in texts.values()), default=0.0)


async def void(ledger: Ledger, part: JudgedPart, since: float) -> None:
    """Let no grade count that was kept before ``since``. Raises LedgerError."""
    if since > voided_since(ledger, part):
        await ledger.keep(VOID, part.key, json.dumps(since))
