"""Verdicts by people: where one is kept for an answer, no judge is asked."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from evaluators.core import (
    Ask,
    CallError,
    Case,
    Judge,
    JudgeError,
    Model,
    Reply,
    Request,
    Verdict,
)
from evaluators.judges.ensemble import vote_of
from evaluators.text import digest

FILE = "adjudications.yaml"
UNFIT = "adjudication"


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjudication:
    """What a person decided about one answer to one item.

    ``item`` names the item for readers; ``digest`` (``answer_digest``) says which answer is meant.
    ``label`` is a grade, a rating of 1 to 10 in digits, or YES, NO or UNANSWERED. Where two answers
    to the item were audited together, ``pair`` names these two, ``picked`` says why they were
    picked, and ``probability`` is that of it (0 elsewhere). ``about`` says in words what was
    judged, a line each, for whoever reads the file: nothing depends on it.
    """

    item: str
    digest: str
    label: str
    name: str
    reason: str = ""
    date: str = ""
    picked: str = ""
    probability: float = 0.0
    pair: str = ""
    about: tuple[str, ...] = ()

    @property
    def rating(self) -> int | None:
        """The rating, None where the label is a word."""
        return int(self.label) if self.label.isdigit() else None

    @property
    def reason_line(self) -> str:
        """Who decided, when and why, in one line."""
        when = f", {self.date}" if self.date else ""
        why = f": {self.reason}" if self.reason else ""
        return f"adjudicated by {self.name}{when}{why}"


Adjudications = Mapping[str, Adjudication]
"""Verdicts by people, by the digest of the answer that they judge."""


class ItemIdentity(Protocol):
    """What identifies an item: its place, and the hash of its data."""

    @property
    def dataset(self) -> str:
        """The dataset's name."""
        ...

    @property
    def language(self) -> str:
        """The item's language."""
        ...

    @property
    def id(self) -> str:
        """Its id, unique in dataset and language."""
        ...

    @property
    def digest(self) -> str:
        """The hash of everything in it that may change its result."""
        ...


def answer_digest(item: ItemIdentity, answer: str) -> str:
    """Return the key of this answer to this item: 32 digits of a hash of both."""
    return digest([item.dataset, item.language, item.id, item.digest, answer])[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjudicatedJudge:
    """Gives a person's verdict where there is one for this very answer; else ``behind`` decides.

    ``labels`` are the verdicts that fit here.
    """

    behind: Judge
    adjudications: Adjudications
    labels: Collection[str]

    @property
    def spec(self) -> str:
        """That of the judge behind it."""
        return self.behind.spec

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return the person's verdict, without a call, or the judge's.

        What the judge says without a call, as rules do, stands in the reason. Raises JudgeError
        where the person's verdict is of a kind that the item cannot have.
        """
        found = self.adjudications.get(answer_digest(case, answer))
        if found is None:
            return await self.behind.judge(case, answer, ask)
        if found.label not in self.labels:
            msg = (
                f"{found.name} gave {found.label!r} where {', '.join(sorted(self.labels))} fit; "
                f"correct the adjudication {found.digest}"
            )
            raise JudgeError(msg, kind=UNFIT)
        verdict = Verdict(
            grade=found.label if found.rating is None else None,
            rating=found.rating,
            reason=found.reason_line,
            adjudicated_by=found.name,
        )
        own = await self._unasked(case, answer)
        return (
            replace(verdict, reason=f"{found.reason_line}; {self.spec}: {own}") if own else verdict
        )

    async def _unasked(self, case: Case, answer: str) -> str:
        try:
            verdict = await self.behind.judge(case, answer, _refuse)
        except (CallError, JudgeError):
            return ""
        return vote_of(self.behind, verdict).label


async def _refuse(model: Model, request: Request) -> Reply:
    kind = "adjudicated"
    raise CallError(kind, f"{model.spec}: a person decided; no call is made")
