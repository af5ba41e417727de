"""Who reviews what: everyone's share, with an overlap that shows how far people agree."""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cases.tools.review.sheet import Sheet
from evaluators.core import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """How items are shared out. ``overlap`` is the share (0 to 1) that ``together`` people see.

    Every other item is seen by one. The same seed shares out the same items alike.
    """

    reviewers: tuple[str, ...]
    overlap: float = 0.2
    together: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        names = {name.casefold() for name in self.reviewers}
        if not names or len(names) < len(self.reviewers):
            msg = (
                f"reviewers: different names are needed, got {', '.join(self.reviewers) or 'none'}"
            )
            raise UsageError(msg)
        if not 0 <= self.overlap <= 1:
            msg = f"overlap: a share from 0 to 1 is needed, got {self.overlap:g}"
            raise UsageError(msg)
        if self.overlap and not 2 <= self.together <= len(self.reviewers):
            msg = (
                f"overlap: {self.together} of {len(self.reviewers)} reviewers cannot see an item "
                "together; name more reviewers, or no overlap"
            )
            raise UsageError(msg)


def draw(groups: Mapping[str, str], count: int, seed: int) -> frozenset[str]:
    """Return ``count`` items (all where there are fewer), from each group in proportion.

    ``groups`` maps items to their groups. What a proportion leaves over goes to the groups with
    the largest remainders.
    """
    members: dict[str, list[str]] = defaultdict(list)
    for item in sorted(groups, key=lambda item: _rank(seed, "draw", item)):
        members[groups[item]].append(item)
    count = min(count, len(groups))
    whole = {name: count * len(some) // len(groups) for name, some in members.items()}
    rest = sorted(members, key=lambda name: (-(count * len(members[name]) % len(groups)), name))
    for name in rest[: count - sum(whole.values())]:
        whole[name] += 1
    return frozenset(item for name, some in members.items() for item in some[: whole[name]])


def assign(groups: Mapping[str, str], duty: Duty) -> dict[str, tuple[str, ...]]:
    """Return each reviewer's items, in the order of ``groups``, which maps items to their groups.

    The overlap is drawn from each group in proportion. An item goes to those who have the fewest
    so far, so that no two reviewers differ by more than one item.
    """
    shared = draw(groups, round(duty.overlap * len(groups)), duty.seed)
    load = dict.fromkeys(duty.reviewers, 0)
    given: dict[str, set[str]] = {name: set() for name in duty.reviewers}
    for item in sorted(groups, key=lambda item: (groups[item], _rank(duty.seed, "assign", item))):
        by_load = sorted(load, key=lambda name: (load[name], _rank(duty.seed, item, name)))
        for name in by_load[: duty.together if item in shared else 1]:
            given[name].add(item)
            load[name] += 1
    return {name: tuple(item for item in groups if item in given[name]) for name in given}


def sheets_for(sheet: Sheet, assignment: Mapping[str, Sequence[str]]) -> tuple[Sheet, ...]:
    """Return one sheet a reviewer, made out to them; their files are numbered."""
    items = {item.id: item for item in sheet.items}
    return tuple(
        replace(
            sheet,
            name=f"{sheet.name}-{number}",
            reviewer=reviewer,
            items=tuple(items[id_] for id_ in ids),
        )
        for number, (reviewer, ids) in enumerate(assignment.items(), 1)
    )


def _rank(seed: int, *parts: str) -> bytes:
    return hashlib.sha256("\0".join((str(seed), *parts)).encode()).digest()
