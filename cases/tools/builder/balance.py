"""The final choice: half yes and half no in every source, and its splits; all by seed."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from cases.tools.builder.items import Item
from cases.tools.builder.people import is_reviewed
from evaluators.core import NO, YES

Shares = Mapping[str, float]
Pair = tuple[Item, Item]


def frozen(
    items: Sequence[Item], sizes: Mapping[str, int], shares: Shares, seed: int
) -> list[Item]:
    """Return the items; those that are not chosen are dropped with the reason.

    From every source as many yes as no are taken, ``sizes`` items of it at most; reviewed ones
    first, otherwise by a hash of seed and id. Of two with one address the second is dropped.
    ``shares`` (1 together) names the splits: each is half yes and half no in every source.
    """
    single = _without_twins(items)
    chosen: dict[str, Item] = {}
    taken = dict.fromkeys(shares, 0)
    total = 0
    for group, members in sorted(_by_group(single).items()):
        pairs = _pairs(members, sizes[group] // 2, seed)
        total += len(pairs)
        for pair, split in zip(pairs, _splits(len(pairs), total, shares, taken), strict=True):
            chosen |= {item.id: replace(item, split=split) for item in pair}
    short = {group: _short(members) for group, members in _by_group(single).items()}
    return [chosen.get(item.id) or _left(item, short) for item in single]


def _by_group(items: Sequence[Item]) -> dict[str, list[Item]]:
    groups: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        if item.state == "kept":
            groups[item.origin.group].append(item)
    return groups


def _without_twins(items: Sequence[Item]) -> list[Item]:
    seen: set[str] = set()
    found = []
    for item in items:
        url = item.origin.url
        if url and url in seen:
            found.append(replace(item, state="dropped", reason="same_article", detail=url))
        else:
            found.append(item)
        seen.add(url)
    return found


def _pairs(members: Sequence[Item], most: int, seed: int) -> list[Pair]:
    order = sorted(members, key=lambda item: (not is_reviewed(item), _rank(seed, item.id)))
    yes = [item for item in order if item.answer == YES][:most]
    no = [item for item in order if item.answer == NO][:most]
    pairs = list(zip(yes, no, strict=False))
    return sorted(pairs, key=lambda pair: _rank(seed, pair[0].id))


def _splits(count: int, total: int, shares: Shares, taken: dict[str, int]) -> list[str]:
    """Return a split for each of ``count`` pairs and book it in ``taken``.

    Always to the split that is furthest behind its share of the pairs so far, so that rounding in
    one source is made good in the next, and no split is off by a whole pair in the end.
    """
    if not shares:
        return [""] * count
    found = []
    for number in range(total - count + 1, total + 1):
        name = max(shares, key=lambda one: (shares[one] * number - taken[one], shares[one]))
        taken[name] += 1
        found.append(name)
    return found


def _short(members: Sequence[Item]) -> str:
    """Return the answer that a source has fewer of, empty where it has as many of both."""
    yes = sum(item.answer == YES for item in members)
    no = len(members) - yes
    return "" if yes == no else NO if no < yes else YES


def _left(item: Item, short: Mapping[str, str]) -> Item:
    if item.state != "kept":
        return item
    fewer = short[item.origin.group]
    if fewer and item.answer != fewer:
        detail = f"not enough {fewer} in {item.origin.group}"
        return replace(item, state="dropped", reason="balance", detail=detail)
    return replace(item, state="dropped", reason="surplus", detail="more than wanted of its source")


def _rank(seed: int, id_: str) -> bytes:
    return sha256(f"freeze:{seed}:{id_}".encode()).digest()
