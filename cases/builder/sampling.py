"""The first step: which articles and paragraphs are taken, by a hash of seed and article."""

import math
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from operator import itemgetter
from pathlib import Path

from cases.builder.article_sources import Source, read_articles
from cases.builder.build_step import ModelCalls, Step
from cases.builder.paragraphs import (
    bounded,
    comparable,
    known_language,
    language_fault,
    nearest,
    plain_paragraphs,
    wiki_paragraphs,
)
from cases.builder.recipe import Recipe
from cases.builder.work_folder import Article, Item, Say, Values
from evaluators.core import UsageError
from evaluators.reading import file_hash

COUNT, OVERSAMPLE, SEED = 500, 1.3, 1
SIMILAR = 80.0
"""From which percentage of common letters two paragraphs are held to be nearly the same."""
PAGES_PER_WANTED = 20
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
    """Chooses by seed, whatever the order of the articles; accepts by recipe."""

    recipe: Recipe
    seed: int

    def sample(self, groups: Sequence[Group]) -> list[Item]:
        """Return the items of all groups, kept and dropped, in an order that the seed gives.

        Of each group the articles with the lowest hash are taken that hold a fitting paragraph;
        those that were passed over on the way are dropped with a reason.
        """
        items: dict[str, Item] = {}
        texts: list[str] = []
        for group in groups:
            for item in self._sample_group(group, texts):
                items.setdefault(item.id, item)  # a file may hold an article twice
        return sorted(items.values(), key=lambda item: self._rank(item.id))

    def _sample_group(self, group: Group, texts: list[str]) -> list[Item]:
        """Return a group's items; the texts of those that are kept are added to ``texts``.

        Near-duplicates are found only afterwards, so that more are held than wanted. Where even
        that was too few, the source is read again for more: lower ranks are not changed by it.
        """
        most = group.wanted + math.ceil(group.wanted * 0.2) + 10
        while True:
            fitting, refused = self._lowest(group, most)
            seen = list(texts)
            selected: list[Item] = []
            last = None
            for rank, item in fitting:
                text = comparable(item.paragraph)
                twin = nearest(text, seen, SIMILAR)
                if twin is not None:
                    detail = f"nearly the same as: {seen[twin][:80]}"
                    selected.append(item.dropped("similar", detail))
                    continue
                seen.append(text)
                selected.append(item)
                if len(seen) - len(texts) == group.wanted:
                    last = rank
                    break
            if last is not None or len(fitting) < most:
                texts[:] = seen
                return selected + [item for rank, item in refused if last is None or rank <= last]
            most *= 4

    def _lowest(self, group: Group, most: int) -> tuple[list[Ranked], list[Ranked]]:
        """Return the ``most`` fitting articles of lowest rank, and those refused below the last."""
        fitting: list[Ranked] = []
        refused: list[Ranked] = []
        seen: set[str] = set()
        bound = 1 << 256  # the rank that a further article must be below
        for number, article in enumerate(group.articles()):
            if group.drawn and (len(fitting) == most or number >= PAGES_PER_WANTED * most):
                break
            rank = number if group.drawn else self._rank(article.origin.key)
            if rank >= bound:
                continue  # and is not even looked at
            item = self._item(article)
            if item.state == "dropped":
                refused.append((rank, item))
            elif item.id not in seen:
                seen.add(item.id)
                insort(fitting, (rank, item), key=itemgetter(0))
                del fitting[most:]
                bound = fitting[-1][0] if len(fitting) == most else bound
            if len(refused) > 4 * most + 1000:
                refused = [one for one in refused if one[0] < bound]
        below = [one for one in refused if one[0] < bound]
        return fitting, sorted(below, key=itemgetter(0))

    def _item(self, article: Article) -> Item:
        """Return an article's item: one of its fitting paragraphs by hash, or why there is none."""
        language, bounds = self.recipe.language, self.recipe.paragraph
        known, spelling = known_language(language), self.recipe.spelling
        name = article.origin.item_id(language)
        item = Item(id=name, language=language, paragraph="", origin=article.origin)
        text, is_wiki = article.text, article.markup == "wiki"
        found = wiki_paragraphs(text, bounds.media) if is_wiki else plain_paragraphs(text)
        cut = [*filter(None, (bounded(one, bounds) for one in found))]
        if not cut:
            return item.dropped("length", "no fitting paragraph")
        faults = {text: language_fault(text, known, spelling) for text in cut}
        fine = [text for text, fault in faults.items() if not fault]
        if fault := faults[cut[0]] if not fine else None:
            return item.dropped(*fault, paragraph=cut[0])
        return replace(item, paragraph=min(fine, key=self._rank))

    def _rank(self, text: str) -> int:
        hashed = sha256(f"{self.seed}\x1f{text}".encode("utf-8", "surrogatepass"))
        return int.from_bytes(hashed.digest())


def articles(source: Source, folder: Path, say: Say) -> Iterable[Article]:
    """Return a source's articles one by one; a wiki's pages are kept in ``folder`` as they come.

    Raises UsageError where the source is not what its name says.
    """
    if source.is_api:
        from cases.builder.wiki import draw_pages  # noqa: PLC0415  # httpx2 only for APIs

        return draw_pages(source, folder, say)
    return read_articles(source, say)


class SampleStep(Step):
    """Takes paragraphs from the sources."""

    name = "sample"
    help = "take paragraphs from dumps, wikis and files, by seed"

    def settle(self) -> Values:
        """Return sources, counts and seed, and the version of the recipe."""
        values = self.remembered(
            sources=None, counts={}, licences={}, oversample=OVERSAMPLE, seed=SEED
        )
        values = self.fixed({**values, "recipe": self.build.recipe.sample_version})
        self.need("sources", values, "say where texts come from: --source news=articles.jsonl")
        for option in ("counts", "licences"):
            for group in set(values[option]) - set(values["sources"]):
                name = option.removesuffix("s")
                raise UsageError(f"build: --{name} {group}=…: there is no --source {group}=…")
        if not self.build.folder.made("sample"):
            for group, sources in self._sources(values).items():
                for source in sources:
                    source.check()
                if len(sources) > 1 and any(source.is_api for source in sources):
                    raise UsageError(
                        f"--source {group}: a wiki's pages have no end; give it a group of its own"
                    )
        return values

    def work(self, _: Sequence[Item], __: ModelCalls) -> list[Item]:
        """Return the items of all groups."""
        values, build = self.values, self.build
        groups = [
            Group(
                name=name,
                wanted=math.ceil(values["counts"].get(name, COUNT) * values["oversample"]),
                articles=partial(self._articles, sources),
                drawn=sources[0].is_api,
            )
            for name, sources in self._sources(values).items()
        ]
        items = Sampler(recipe=build.recipe, seed=values["seed"]).sample(groups)
        for group in groups:
            found = sum(item.state == "kept" and item.origin.group == group.name for item in items)
            if found < group.wanted:
                build.say(f"sample: {group.name}: only {found} of {group.wanted} paragraphs found")
        return items

    def record(self) -> Values:
        """Return the options with the SHA-256 of each source that is a file."""
        places = [where for wheres in self.values["sources"].values() for where in wheres]
        paths = [Path(where) for where in places if "://" not in where]
        hashes = {f"{path}": file_hash(path) for path in paths if path.is_file()}
        return {**self.values, "files": hashes}

    def _sources(self, values: Values) -> dict[str, list[Source]]:
        contact, licences = self.build.options.contact, values["licences"]
        return {
            group: [
                Source(group=group, where=where, licence=licences.get(group, ""), contact=contact)
                for where in places
            ]
            for group, places in values["sources"].items()
        }

    def _articles(self, sources: Sequence[Source]) -> Iterator[Article]:
        for source in sources:
            yield from articles(source, self.build.folder.path, self.build.say)
