"""How many verdicts of each kind a sheet is to collect, and which answer to show next.

A sheet of labels has goals for each slice: 30 answers that people call correct, 30 that they call
incorrect, and so on. Nobody knows beforehand what people will say of an answer. So a sheet has
spare answers, and shows one more as long as a goal is not reached. The spare one is taken from the
*stratum* in which people have found most of what is lacking. A stratum is what the judge said of
an answer, under a number that tells nobody what that was.

The page (``form.js``) and the terminal follow the same rule.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """How many answers of one class are to get a verdict of people."""

    name: str
    """The class: a verdict, or the ratings that belong to it, such as ``7-9``."""
    verdicts: tuple[str, ...]
    """The verdicts that count for it."""
    wanted: int
    have: int = 0
    """How many there were before this sheet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """How an answer came to be on a sheet of labels."""

    part: str
    """The slice whose goals it serves."""
    stratum: int
    """Answers of which the judge said the same have the same number."""
    is_spare: bool = False
    """Whether it is shown only while a goal is not reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalProgress:
    """How far the goals of a slice are reached."""

    done: int
    """Verdicts that count: of each class as many as are wanted, at most."""
    wanted: int
    lacking: Mapping[str, int]
    """How many are lacking, by the name of the goal; those that are reached are left out."""


def progress_of(goals: Sequence[Goal], verdicts: Iterable[str]) -> GoalProgress:
    """Return how far these verdicts, with those that there were before, reach the goals."""
    counts = Counter(verdicts)
    done = 0
    lacking = {}
    for goal in goals:
        count = goal.have + sum(counts[verdict] for verdict in goal.verdicts)
        done += min(count, goal.wanted)
        if count < goal.wanted:
            lacking[goal.name] = goal.wanted - count
    return GoalProgress(
        done=done,
        wanted=sum(goal.wanted for goal in goals),
        lacking=lacking,
    )


def best_stratum(
    goals: Sequence[Goal],
    labelled: Sequence[tuple[int, str]],
    strata: Sequence[int],
) -> int | None:
    """Return the stratum to take the next answer from; None where no goal is open.

    ``labelled`` has the stratum and the verdict of each answer with one, ``strata`` those that have
    spare answers left. Of the class that lacks most, it is the one with the largest share.
    """
    lacking = progress_of(goals, (verdict for _, verdict in labelled)).lacking
    if not lacking or not strata:
        return None
    name = max(lacking, key=lambda name: lacking[name])
    (goal,) = [goal for goal in goals if goal.name == name]

    def share_of_class(stratum: int) -> float:
        verdicts = [verdict for place, verdict in labelled if place == stratum]
        hits = [verdict for verdict in verdicts if verdict in goal.verdicts]
        return len(hits) / max(1, len(verdicts))

    return max(strata, key=share_of_class)
