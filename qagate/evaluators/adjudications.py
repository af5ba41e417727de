"""People's verdicts on single answers, and the judge that puts them before its own.

A verdict is kept under a digest of the item and the answer (``answer_digest``). So it holds
in every later run in which a model gives exactly this answer, and for no other answer.
"""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from qagate.evaluators import core
from qagate.evaluators.text import digest

ADJUDICATIONS_FILE = "adjudications.yaml"
UNFIT = "adjudication"
"""The kind of error for a person's verdict that the item cannot have."""


def verdict_of(label: str) -> core.Verdict:
    """Return the verdict with this label: a rating if it is digits, else a grade."""
    if label.isdigit():
        return core.Verdict(rating=int(label))
    return core.Verdict(grade=label)


def answer_digest(item: core.ItemView, answer: str) -> str:
    """Return the key of an answer to an item: 32 hexadecimal digits of a hash of both."""
    return digest([item.dataset, item.language, item.id, item.digest, answer])[:32]


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
    """Who decided."""
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
    def verdict(self) -> core.Verdict:
        """The verdict; its reason is who decided, when and why, in one line."""
        who_and_when = ", ".join(filter(None, (self.name, self.date)))
        account = ": ".join(filter(None, (who_and_when, self.reason)))
        return replace(
            verdict_of(self.label),
            reason=f"adjudicated by {account}",
            adjudicated_by=self.name,
        )


Adjudications = Mapping[str, Adjudication]
"""Verdicts by people, by the digest of the judged answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjudicatedJudge:
    """Gives a person's verdict on exactly this answer if there is one, beside the judge's own.

    The judge behind it grades every answer. Where people looked at the answers of one run
    alone, two runs can still be compared by what the judge said of both.
    """

    behind: core.Judge
    adjudications: Adjudications
    labels: Collection[str]
    """The verdicts that the item can have."""

    @property
    def spec(self) -> str:
        """The SPEC of the judge behind it."""
        return self.behind.spec

    @property
    def asks(self) -> tuple[core.Judge, ...]:
        """The judge behind it."""
        return (self.behind,)

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        """Return the person's verdict with the judge's beside it, or the judge's alone.

        A person's verdict stands also where the judge gives none. Raises JudgeError for one
        that the item cannot have.
        """
        adjudication = self.adjudications.get(answer_digest(case, answer))
        if adjudication is None:
            return await self.behind.judge(case, answer, ask)
        if adjudication.label not in self.labels:
            raise core.JudgeError(
                f"{adjudication.name} gave {adjudication.label!r} where "
                f"{', '.join(sorted(self.labels))} fit; "
                f"correct the adjudication {adjudication.digest}",
                kind=UNFIT,
            )
        judged = core.Verdict()
        with suppress(core.CallError, core.JudgeError):
            judged = await self.behind.judge(case, answer, ask)
        return _beside(adjudication.verdict, judged, self.spec)


def _beside(by_person: core.Verdict, by_judge: core.Verdict, spec: str) -> core.Verdict:
    """Return a person's verdict that also says the judge's, which may be empty."""
    reason = by_person.reason
    if by_judge.label:
        reason = f"{reason}; {spec}: {by_judge.label}"
    return replace(
        by_person,
        reason=reason,
        judge_grade=by_judge.grade,
        judge_rating=by_judge.rating,
    )
