"""Whether a judge is still the one that gave the kept grades, and which of these count.

A kept grade saves a call, but the model behind a name may have changed since. So a run asks some
of them anew before it uses any: canaries. ``draw`` picks them and ``judged_by`` says what their
new grades mean. Both are pure; ``runtime/canaries.py`` asks.

The grades that do not pass are asked most. A judge that grows lenient shows there, and there it
would let a worse model through. Of 45 such grades in each of five languages a drift of 5 % turns
eleven, and chance alone hardly six. Where grades fall otherwise by chance, kept grades are
asked anew for nothing, which costs calls and no verdict. ``tests/benchmarks/canaries.py``
simulates how often either happens.
"""

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeVar

from qagate.evaluators.typed_data import Count

WRONG_CANARIES = 45
"""Of a language and rubric: grades that do not pass, but for those that say NOT_ATTEMPTED."""
SILENT_CANARIES = 15
"""Of a language and rubric: grades that say NOT_ATTEMPTED."""
RIGHT_CANARIES = 30
"""Of a judge, in all languages and rubrics together: grades that pass."""

MANY_DIFFER = 6
"""So many other grades of a judge make all of its kept grades void."""
RIGHT_DIFFER = 3
"""So many of those that pass do too."""
GROUP_DIFFER = 3
"""So many of a language and rubric make the kept grades there void."""

GradeSide = Literal["right", "wrong", "silent"]
"""Whether a grade passes, does not, or says that the answer attempts nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePlace:
    """A judge, or what it does in one language by one rubric."""

    judge: str
    """The SPEC of the judge's model, of each member of a panel."""
    language: str = ""
    """Empty for all languages and rubrics."""
    rubric: str = ""
    """The rubric's version; empty as ``language``."""

    @property
    def everywhere(self) -> "JudgePlace":
        """The same judge in all languages and rubrics."""
        return JudgePlace(judge=self.judge)


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryResult:
    """Kept grades of one judge in one language and rubric, asked anew to see whether it changed."""

    judge: str
    """The SPEC of the judge, or of the member of a panel."""
    language: str
    """Empty for the answers that pass, which are drawn over all languages."""
    rubric: str
    """The rubric's version; empty as ``language``."""
    asked: Count
    """Grades that were asked anew."""
    differ: Count
    """Those that came out otherwise; ratings on the other side of the bar."""
    lacking: Count = 0
    """Canaries that could not be asked."""
    void: str = ""
    """Why the kept grades count no more; empty where they stand."""
    version: str = ""
    """What the provider called the judge then and now, where these differ."""

    @property
    def place(self) -> JudgePlace:
        """Which judge it is about, and where."""
        return JudgePlace(judge=self.judge, language=self.language, rubric=self.rubric)


class DrawnGrade(Protocol):
    """A kept grade that may be asked anew."""

    @property
    def place(self) -> JudgePlace:
        """Who gave it, in which language and by which rubric."""

    @property
    def side(self) -> GradeSide:
        """What it says."""

    @property
    def rank(self) -> int:
        """How early it is drawn: 0 for answers of the baseline, then others."""

    @property
    def key(self) -> str:
        """The ledger key of the request that brought it."""


G = TypeVar("G", bound=DrawnGrade)


def draw(grades: Iterable[G], run: str) -> list[G]:
    """Return the kept grades that this run asks anew, by a hash of its id.

    Of each judge, language and rubric those that do not pass, and of each judge some that do.
    """
    pools: dict[Hashable, list[G]] = defaultdict(list)
    for grade in grades:
        place = grade.place.everywhere if grade.side == "right" else grade.place
        pools[place, grade.side].append(grade)
    counts: dict[GradeSide, int] = {
        "wrong": WRONG_CANARIES,
        "silent": SILENT_CANARIES,
        "right": RIGHT_CANARIES,
    }

    def order(grade: G) -> tuple[int, str]:
        drawn_by = hashlib.sha256(f"{run}:{grade.key}".encode()).hexdigest()
        return grade.rank, drawn_by

    drawn: list[G] = []
    for pool in pools.values():
        drawn += sorted(pool, key=order)[: counts[pool[0].side]]
    return drawn


def judged_by(results: Sequence[CanaryResult]) -> tuple[CanaryResult, ...]:
    """Return the results of all canaries with what they mean: which kept grades are void.

    Another version of a judge, or grades that differ all over, make all of its kept grades
    void; grades that differ in one language and rubric those of that place. Where they are
    void, no canary is lacking: there is nothing left to find out.
    """
    by_judge: dict[str, list[CanaryResult]] = defaultdict(list)
    for result in results:
        by_judge[result.judge].append(result)
    judged = []
    for result in results:
        void = _change_everywhere(by_judge[result.judge]) or _change_here(result)
        lacking = 0 if void else result.lacking
        judged.append(replace(result, void=void, lacking=lacking))
    return tuple(judged)


def voids_of(results: Iterable[CanaryResult]) -> dict[JudgePlace, str]:
    """Return where kept grades are void, with the reason; a judge that changed all over once."""
    voids: dict[JudgePlace, str] = {}
    by_judge: dict[str, list[CanaryResult]] = defaultdict(list)
    for result in results:
        by_judge[result.judge].append(result)
    for judge, of_judge in by_judge.items():
        change = _change_everywhere(of_judge)
        if change:
            voids[JudgePlace(judge=judge)] = change
            continue
        for result in of_judge:
            change = _change_here(result)
            if change:
                voids[result.place] = change
    return voids


def _change_everywhere(results: Sequence[CanaryResult]) -> str:
    """Return why all kept grades of a judge are void; empty if they are not."""
    for result in results:
        if result.version:
            return f"the provider names another version: {result.version}"
    differ = sum(result.differ for result in results)
    asked = sum(result.asked for result in results)
    if differ >= MANY_DIFFER:
        return f"{differ} of {asked} kept grades came out otherwise"
    for result in results:
        if not result.language and result.differ >= RIGHT_DIFFER:
            return (
                f"{result.differ} of {result.asked} kept grades that pass "
                "came out otherwise"
            )
    return ""


def _change_here(result: CanaryResult) -> str:
    """Return why the kept grades of one language and rubric are void; empty if they are not."""
    if not result.language or result.differ < GROUP_DIFFER:
        return ""
    return f"{result.differ} of {result.asked} kept grades came out otherwise"
