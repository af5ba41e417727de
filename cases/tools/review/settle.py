"""From what several people said to one outcome an item: agreed, in conflict, or not reviewed."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from cases.tools.review.reading import Review

State = Literal["agreed", "conflict", "unreviewed"]
AGREED: State = "agreed"
CONFLICT: State = "conflict"
UNREVIEWED: State = "unreviewed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The outcome of one item.

    ``verdict`` is empty unless agreed. ``edited`` is the text that takes the place of the old one,
    empty where nobody changed it. ``reviews`` are those that gave a verdict, by reviewer.
    """

    item: str
    state: State
    verdict: str = ""
    edited: str = ""
    reviews: tuple[Review, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Who gave the verdict that stands."""
        return tuple(one.reviewer for one in self.reviews if one.verdict == self.verdict)

    def text(self, original: str) -> str:
        """Return the item's text as it is now: the edit that stands, otherwise the original."""
        return self.edited or original

    @property
    def comments(self) -> tuple[str, ...]:
        """What those who gave the verdict that stands wrote beside it."""
        said = (one.comment for one in self.reviews if one.verdict == self.verdict)
        return tuple(dict.fromkeys(filter(None, said)))


def settle(items: Iterable[str], reviews: Iterable[Review]) -> dict[str, Settled]:
    """Return the outcome of each item, in the order of ``items``.

    A verdict stands when more than half of those who gave one gave it: two who differ are a
    conflict, which a third decides by agreeing with one of them. Edits are settled in the same way
    among those who gave that verdict and changed the text; edits that differ without a majority
    are a conflict too.
    """
    given: dict[str, list[Review]] = defaultdict(list)
    for review in reviews:
        if review.verdict:
            given[review.item].append(review)
    return {item: _settled(item, given[item]) for item in items}


def _settled(item: str, reviews: Sequence[Review]) -> Settled:
    ordered = tuple(sorted(reviews, key=lambda one: one.reviewer.casefold()))
    if not ordered:
        return Settled(item=item, state=UNREVIEWED)
    verdict = _majority([one.verdict for one in ordered])
    edits = [one.edited for one in ordered if one.verdict == verdict and one.edited]
    edited = _majority(edits)
    if not verdict or (edits and not edited):
        return Settled(item=item, state=CONFLICT, reviews=ordered)
    return Settled(item=item, state=AGREED, verdict=verdict, edited=edited, reviews=ordered)


def _majority(values: Sequence[str]) -> str:
    """Return the value that more than half of them are, empty where there is none."""
    first = Counter(values).most_common(1)
    return first[0][0] if first and 2 * first[0][1] > len(values) else ""
