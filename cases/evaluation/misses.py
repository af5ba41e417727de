"""Where models go wrong: kinds of items, and the items that at least half of the models miss."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cases.evaluation.answers import Data, Entrant
from evaluators.core import Case

Facet = Callable[[Case], str]
"""Puts an item into one of a few classes."""

LENGTHS = (300, 600)
"""Ends of the classes of length, in characters of the passage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """An item with the models that missed it; those whose call failed are not counted."""

    case: Case
    missed: int
    models: int


def facets_of(type_of: Callable[[str], str]) -> dict[str, Facet]:
    """Return the classes to look at: source, length of the passage, and type of the question."""
    return {
        "source": lambda case: str(case.metadata.get("source") or "not stated"),
        "length": lambda case: _length(len(case.context)),
        "question_type": lambda case: type_of(case.question),
    }


def _length(count: int) -> str:
    low = 0
    for end in LENGTHS:
        if count <= end:
            return f"{low} to {end} characters"
        low = end + 1
    return f"{low} characters and more"


def values_of(data: Data, facet: Facet) -> Mapping[str, list[str]]:
    """Return the ids of the items in each class, classes by name."""
    found: dict[str, list[str]] = defaultdict(list)
    for id_, case in data.cases.items():
        found[facet(case)].append(id_)
    return dict(sorted(found.items()))


def misses(data: Data, models: Sequence[Entrant]) -> Iterator[Miss]:
    """Yield the items that at least half of the models miss, those that most miss first."""
    found = [_miss(case, models) for case in data.cases.values()]
    hard = [one for one in found if one.missed and 2 * one.missed >= one.models]
    yield from sorted(hard, key=lambda one: (-one.missed / one.models, one.case.row))


def _miss(case: Case, models: Sequence[Entrant]) -> Miss:
    given = [model.answers[case.id] for model in models]
    graded = [answer for answer in given if answer is not None]
    return Miss(
        case=case,
        missed=sum(answer != case.label for answer in graded),
        models=len(graded),
    )
