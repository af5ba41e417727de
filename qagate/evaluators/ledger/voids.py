"""From when on a judge's kept grades count.

A run that finds a judge to have changed makes all grades void that were kept before, or those
in one language and rubric. The ledger remembers that, so that no later run takes an old grade
for one of this judge, however little it asks of the judge itself.

Each void is a document of its own and is never replaced, so ``ledger import`` loses none.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from qagate.evaluators.kept_requests import judge_identity
from qagate.evaluators.ledger.reply_store import Ledger
from qagate.evaluators.text import canonical, digest
from qagate.evaluators.typed_data import Timestamp

VOID = "void"
"""The kind of a document that says since when grades count."""

VoidForm = tuple[str, str, str, Timestamp]
"""What such a document holds: the judge's key, language, rubric, and since when."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPart:
    """The grades of a judge, or those in one language and rubric."""

    judge: Mapping[str, object]
    """The identity of its model."""
    language: str = ""
    rubric: str = ""
    """Both are empty for all grades of the judge."""

    @property
    def judge_key(self) -> str:
        """The hash of the judge's identity, in which a port of this machine does not count."""
        return digest(dict(judge_identity(self.judge)))


def voided_since(ledger: Ledger, part: JudgedPart) -> float:
    """Return from when on grades count, in seconds since 1970; 0 for all that are kept.

    Raises LedgerError.
    """
    latest = 0.0
    for document in ledger.documents_as(VOID, VoidForm).values():
        judge_key, language, rubric, since = document
        if judge_key != part.judge_key:
            continue
        if (language, rubric) in (("", ""), (part.language, part.rubric)):
            latest = max(latest, since)
    return latest


async def void(ledger: Ledger, part: JudgedPart, since: float) -> None:
    """Let no grade count that was kept before ``since``. Raises LedgerError."""
    text = canonical([part.judge_key, part.language, part.rubric, since])
    await ledger.keep(VOID, digest(text), text)
