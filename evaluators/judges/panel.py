"""Several judges, one verdict: the most votes, or the middle rating."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evaluators.core import Ask, Case, Judge, JudgeError, StoppedError, Verdict, Vote
from evaluators.judges.hearing import JudgeResult, ask_all, vote_of
from evaluators.judges.naming import joined
from evaluators.judges.voting import majority, middle

TIE = "panel_tie"
UNDECIDED = "panel_undecided"

Spared = Callable[[Case, str], Verdict | None]
"""The verdict on an answer about which no judge need be asked, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelJudge:
    """Judges that vote on every answer.

    Grades: the one with the most votes (Verga et al. 2024, "Replacing Judges with Juries", arXiv
    2404.18796); a tie is an error unless there is a ``tie_breaker``, whose vote is then counted
    once more. Ratings: the median; with an even number of votes the lower of the two in the
    middle, or, where these differ and there is a ``tie_breaker``, the median with its vote added.
    A judge that cannot be reached or read has no vote: the verdict stands only where that vote
    could not have changed it.
    """

    judges: tuple[Judge, ...]
    tie_breaker: Judge | None = None
    rating: bool = False
    spared: Spared

    @property
    def spec(self) -> str:
        """The members' SPECs, one space between them."""
        return joined(tuple(judge.spec for judge in self.judges))

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return what the votes come to, with the votes.

        Raises JudgeError, which carries the votes, for a tie or where a vote is missing that could
        decide; StoppedError where it is missing because the run asks nothing more.
        """
        spared = self.spared(case, answer)
        if spared:
            return spared
        heard = await ask_all(self.judges, case, answer, ask)
        votes = tuple(map(vote_of, self.judges, heard))
        missing = sum(bool(vote.error) for vote in votes)
        verdict = self._verdict(votes, missing, open_to_tie_breaker=True)
        if verdict:
            return verdict
        _stop_if_stopped(heard)
        if missing:
            msg = f"{told(votes)}: what is missing could decide"
            raise JudgeError(msg, kind=UNDECIDED, votes=votes)
        return await self._break_tie(votes, case, answer, ask)

    async def _break_tie(
        self, votes: tuple[Vote, ...], case: Case, answer: str, ask: Ask
    ) -> Verdict:
        if self.tie_breaker is None:
            msg = f"{told(votes)}: a tie; name a --tie-breaker"
            raise JudgeError(msg, kind=TIE, votes=votes)
        heard = await ask_all([self.tie_breaker], case, answer, ask)
        _stop_if_stopped(heard)
        every = (*votes, vote_of(self.tie_breaker, heard[0]))
        verdict = self._verdict(every, 0) if not every[-1].error else None
        if verdict is None:
            msg = f"{told(every)}: a tie that the tie-breaker, named last, does not break"
            raise JudgeError(msg, kind=UNDECIDED if every[-1].error else TIE, votes=every)
        return verdict

    def _verdict(
        self, votes: tuple[Vote, ...], missing: int, *, open_to_tie_breaker: bool = False
    ) -> Verdict | None:
        if self.rating:
            alone = open_to_tie_breaker and self.tie_breaker is not None
            rating = middle([vote.rating for vote in votes if vote.rating], missing, alone=alone)
            return Verdict(rating=rating, reason=told(votes), votes=votes) if rating else None
        grade = majority([vote.grade for vote in votes if vote.grade], missing)
        return Verdict(grade=grade, reason=told(votes), votes=votes) if grade else None


def told(votes: Sequence[Vote]) -> str:
    """Return who voted what, in one line."""
    return "; ".join(f"{vote.judge}: {vote.label or vote.error}" for vote in votes)


def _stop_if_stopped(heard: Sequence[JudgeResult]) -> None:
    """Leave to a later run what this one may not ask any more."""
    for one in heard:
        if isinstance(one, StoppedError):
            raise one
