"""Whether a slice has enough items of each class."""

from collections import Counter
from collections.abc import Iterator

from cases.tools.check.findings import Note, Subject, warning
from evaluators.core import GRADES, NO, YES

FEWEST = 10
"""Below so many items a share says nothing."""
YES_SHARE = (0.4, 0.6)
LEAST_GRADE = 0.1


def balance(subject: Subject) -> Iterator[Note]:
    """Yield how a slice's classes are out of balance: yes and no, or the labels of judged items."""
    counts = Counter(case.label or "" for case in subject.cases)
    if len(subject.cases) < FEWEST:
        return
    if subject.slice_.kind.words:
        yield from _yes_no(counts)
    elif not subject.slice_.kind.answered and counts.keys() <= set(GRADES):
        yield from _grades(counts)


def _yes_no(counts: Counter[str]) -> Iterator[Note]:
    share = counts[YES] / counts.total()
    if not YES_SHARE[0] <= share <= YES_SHARE[1]:
        yield warning(
            0,
            f"{share:.0%} of the answers are yes ({counts[YES]} yes, {counts[NO]} no); "
            f"add items until it is {YES_SHARE[0]:.0%} to {YES_SHARE[1]:.0%}",
        )


def _grades(counts: Counter[str]) -> Iterator[Note]:
    for grade in GRADES:
        share = counts[grade] / counts.total()
        if share < LEAST_GRADE:
            what = f"{counts[grade]} of {counts.total()} labels are {grade}"
            yield warning(0, f"{what}; add items until it is {LEAST_GRADE:.0%}")
