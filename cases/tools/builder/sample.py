"""Which articles and paragraphs are taken: by a hash of seed and article, whatever their order."""

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from cases.tools.builder import prose, wikitext
from cases.tools.builder.items import Article, Item, article_key, item_id
from cases.tools.builder.recipe import Recipe
from cases.tools.builder.similar import nearest, plain
from cases.tools.builder.spelling import fault
from cases.tools.check.languages import Language

SIMILAR = 80.0
"""From which percentage of common letters two paragraphs are held to be nearly the same."""
PATIENCE = 20
"""How many pages a wiki may draw for each that is wanted."""

Ranked = tuple[int, Item]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One kind of source: how many paragraphs are wanted, and the articles to take them from.

    ``articles`` reads them from the start. ``drawn`` says that they come in random order already,
    and may never end.
    """

    name: str
    wanted: int
    articles: Callable[[], Iterable[Article]]
    drawn: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    """Chooses by seed; judges by recipe."""

    recipe: Recipe
    language: Language
    seed: int

    def sample(self, groups: Sequence[Group]) -> list[Item]:
        """Return the items of all groups, kept and dropped, in an order that the seed gives.

        Of each group the articles with the lowest hash are taken that hold a fitting paragraph;
        those that were passed over on the way are dropped with a reason.
        """
        items: dict[str, Item] = {}
        texts: list[str] = []
        for group in groups:
            for item in self._group(group, texts):
                items.setdefault(item.id, item)  # a file may hold an article twice
        return sorted(items.values(), key=lambda item: self._rank(item.id))

    def _group(self, group: Group, texts: list[str]) -> list[Item]:
        """Return a group's items; the texts of those that are kept are added to ``texts``.

        Near-duplicates are found only afterwards, so that more are held than wanted. Where even
        that was too few, the source is read again for more: lower ranks are not changed by it.
        """
        most = group.wanted + math.ceil(group.wanted * 0.2) + 10
        while True:
            kept, dropped = self._lowest(group, most)
            around = list(texts)
            chosen, last = _chosen(kept, group.wanted, around)
            if last is not None or len(kept) < most:
                texts[:] = around
                below = [item for rank, item in dropped if last is None or rank <= last]
                return chosen + below
            most *= 4

    def _lowest(self, group: Group, most: int) -> tuple[list[Ranked], list[Ranked]]:
        """Return the ``most`` fitting articles of lowest rank, and those refused below the last."""
        fitting = _Lowest(most)
        refused: list[Ranked] = []
        for number, article in enumerate(group.articles()):
            rank = number if group.drawn else self._rank(article_key(article.origin))
            if group.drawn and (fitting.full or number >= PATIENCE * most):
                break
            if rank >= fitting.bound:
                continue  # and is not even looked at
            item = self._look(article)
            if item.state == "kept":
                fitting.add((rank, item))
            else:
                refused.append((rank, item))
            if len(refused) > 4 * most + 1000:
                refused = [one for one in refused if one[0] < fitting.bound]
        below = [one for one in refused if one[0] < fitting.bound]
        return fitting.sorted(), sorted(below, key=lambda one: one[0])

    def _look(self, article: Article) -> Item:
        """Return an article's item: one of its fitting paragraphs by hash, or why there is none."""
        made = self._item(article)
        bounds = self.recipe.paragraph
        if article.markup == "wiki":
            found = wikitext.paragraphs(article.text, bounds.media)
        else:
            found = prose.paragraphs(article.text)
        cut = [text for text in (prose.bounded(one, bounds) for one in found) if text]
        if not cut:
            return replace(made, state="dropped", reason="length", detail="no fitting paragraph")
        faults = {text: fault(text, self.language, self.recipe.spelling) for text in cut}
        fine = [text for text in cut if not faults[text][0]]
        if not fine:
            reason, detail = faults[cut[0]]
            return replace(made, paragraph=cut[0], state="dropped", reason=reason, detail=detail)
        return replace(made, paragraph=min(fine, key=self._rank))

    def _item(self, article: Article) -> Item:
        language = self.recipe.language
        name = item_id(language, article.origin)
        return Item(id=name, language=language, paragraph="", origin=article.origin)

    def _rank(self, text: str) -> int:
        hashed = sha256(f"{self.seed}\x1f{text}".encode("utf-8", "surrogatepass"))
        return int.from_bytes(hashed.digest())


class _Lowest:
    """Keeps the items of lowest rank, so many at most."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._heap: list[tuple[int, str, Item]] = []
        self._ids: set[str] = set()

    @property
    def full(self) -> bool:
        """Whether another item would push one out."""
        return len(self._heap) >= self._most

    @property
    def bound(self) -> int:
        """The rank that an item must be below to be taken."""
        return -self._heap[0][0] if self.full else 1 << 256

    def add(self, ranked: Ranked) -> None:
        """Take an item in; the one of highest rank goes out where there are too many."""
        rank, item = ranked
        if item.id in self._ids:
            return
        self._ids.add(item.id)
        push: Callable[..., object] = heapq.heappushpop if self.full else heapq.heappush
        push(self._heap, (-rank, item.id, item))

    def sorted(self) -> list[Ranked]:
        """Return what is kept, the lowest rank first."""
        return sorted(((-rank, item) for rank, _, item in self._heap), key=lambda one: one[0])


def _chosen(kept: Sequence[Ranked], wanted: int, texts: list[str]) -> tuple[list[Item], int | None]:
    """Return the items up to the last one wanted, and its rank; None where there are too few."""
    chosen: list[Item] = []
    for rank, item in kept:
        chosen.append(_unless_similar(item, texts))
        wanted -= chosen[-1].state == "kept"
        if wanted == 0:
            return chosen, rank
    return chosen, None


def _unless_similar(item: Item, texts: list[str]) -> Item:
    """Return the item, dropped where a text before says nearly the same; its text is added."""
    text = plain(item.paragraph)
    found = nearest(text, texts, SIMILAR)
    if found is not None:
        detail = f"nearly the same as: {texts[found][:80]}"
        return replace(item, state="dropped", reason="similar", detail=detail)
    texts.append(text)
    return item
