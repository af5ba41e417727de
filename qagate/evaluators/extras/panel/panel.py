"""A panel: several judges vote, and the verdict is one that no missing vote could change."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

from qagate.evaluators import core
from qagate.evaluators.extras.panel.votes import ask_all, vote_of

TIE = "panel_tie"
UNDECIDED = "panel_undecided"

LOWEST, HIGHEST = 1, 10
"""The ends of the scale, between which a missing rating may be anything."""


def majority(grades: Sequence[str], missing: int = 0) -> str | None:
    """Return the grade with most votes; None if tied, or if ``missing`` votes could overturn it."""
    counts = Counter(grades).most_common(2)
    if not counts:
        return None
    first_grade, first_votes = counts[0]
    second_votes = counts[1][1] if len(counts) > 1 else 0
    if first_votes > second_votes + missing:
        return first_grade
    return None


def middle(ratings: Sequence[int], missing: int = 0) -> int | None:
    """Return the (lower) median rating; None if ``missing`` further ratings could change it."""
    if not ratings:
        return None
    lowest = median_low([*ratings, *[LOWEST] * missing])
    highest = median_low([*ratings, *[HIGHEST] * missing])
    return lowest if lowest == highest else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelJudge:
    """Judges that vote: most votes for a grade, a tie is an error; or the median rating.

    A vote that cannot be got or read is an error if it could change the verdict. After Verga et al.
    2024, "Replacing Judges with Juries", arXiv 2404.18796.
    """

    judges: tuple[core.Judge, ...]
    """All of them grade, or all of them rate."""

    @property
    def spec(self) -> str:
        """The members' SPECs, one space between them."""
        return " ".join(judge.spec for judge in self.judges)

    @property
    def asks(self) -> tuple[core.Judge, ...]:
        """The members."""
        return self.judges

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        """Return the verdict of the votes, with the votes.

        Raises JudgeError, which carries the votes, for a tie or if a missing vote could decide;
        StoppedError if that vote is missing because the run makes no further calls.
        """
        results = await ask_all(self.judges, case, answer, ask)
        votes = tuple(map(vote_of, self.judges, results))
        missing = len([vote for vote in votes if vote.error])
        account = "; ".join(
            f"{vote.judge}: {vote.label or vote.error}" for vote in votes
        )
        rating = middle([vote.rating for vote in votes if vote.rating], missing)
        if rating:
            return core.Verdict(rating=rating, reason=account, votes=votes)
        grade = majority([vote.grade for vote in votes if vote.grade], missing)
        if grade:
            return core.Verdict(grade=grade, reason=account, votes=votes)
        for result in results:
            if isinstance(result, core.StoppedError):
                raise result
        if missing:
            message = f"{account}: what is missing could decide"
            raise core.JudgeError(message, kind=UNDECIDED, votes=votes)
        message = f"{account}: a tie; name an odd number of judges"
        raise core.JudgeError(message, kind=TIE, votes=votes)
