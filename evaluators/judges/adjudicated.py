"""Verdicts by people: they replace the judge's verdict on the same answer."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from evaluators.core import Ask, CallError, Case, Judge, JudgeError, Model, Reply, Request, Verdict
from evaluators.judges.ensemble import vote_of
from evaluators.kinds import ItemView
from evaluators.text import digest

FILE = "adjudications.yaml"
UNFIT = "adjudication"


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjudication:
    """What a person decided about one answer to one item."""

    item: str
    """The item's name, for readers."""
    digest: str
    """Which answer is meant (``answer_digest``)."""
    label: str
    """A grade, a rating of 1 to 10 in digits, or YES, NO or UNANSWERED."""
    name: str
    reason: str = ""
    date: str = ""
    picked: str = ""
    """Why the pair was picked for an audit of two answers to the item."""
    probability: float = 0.0
    """With which probability it was picked; 0 outside an audit."""
    pair: str = ""
    """The two answers that were audited together."""
    about: tuple[str, ...] = ()
    """What was judged, in words, one line each; only for readers of the file."""

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
"""Verdicts by people, by the digest of the judged answer."""


def answer_digest(item: ItemView, answer: str) -> str:
    """Return the key of an answer to an item: 32 hexadecimal digits of a hash of both."""
    return digest([item.dataset, item.language, item.id, item.digest, answer])[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjudicatedJudge:
    """Gives a person's verdict on exactly this answer if there is one; else ``behind`` decides."""

    behind: Judge
    adjudications: Adjudications
    labels: Collection[str]
    """The verdicts that the item can have."""

    @property
    def spec(self) -> str:
        """The SPEC of the judge behind it."""
        return self.behind.spec

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return the person's verdict, without a call, or the judge's.

        The reason quotes a judge that needs no call, such as rules. Raises JudgeError for a
        person's verdict that the item cannot have.
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
        with suppress(CallError, JudgeError):
            own = vote_of(self.behind, await self.behind.judge(case, answer, _refuse)).label
            if own:
                return replace(verdict, reason=f"{found.reason_line}; {self.spec}: {own}")
        return verdict


async def _refuse(model: Model, request: Request) -> Reply:
    raise CallError("adjudicated", f"{model.spec}: a person decided; no call is made")
