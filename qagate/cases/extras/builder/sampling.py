"""Articles from dumps, tables and text files; clean paragraphs of them; the first step, by seed."""

import bz2
import contextlib
import gzip
import heapq
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, iterparse

from qagate.cases.extras.builder.recipe import ParagraphRules, Recipe, SourceGroup
from qagate.cases.extras.builder.rules import (
    comparable,
    known_language,
    language_fault,
    nearest,
    sentences,
)
from qagate.cases.extras.builder.steps import BuildStep, ModelCalls
from qagate.cases.extras.builder.work_folder import (
    DraftItem,
    Items,
    Origin,
    Say,
    Values,
    sha256,
)
from qagate.cases.tables import read_table
from qagate.evaluators.core import UsageError
from qagate.evaluators.reading import file_hash, read_text
from qagate.evaluators.text import hint, sendable, without_invisible

SIMILAR = 80.0  # percentage from which two paragraphs count as nearly the same
DUMPS = (".xml", ".xml.bz2", ".xml.gz")
TABLES = (".jsonl", ".csv", ".json")
OPENERS: Mapping[str, Callable[..., Any]] = {".bz2": bz2.open, ".gz": gzip.open}
PAGES_A_LINE = 20_000  # pages of a dump between two lines of progress
COLUMNS = {
    "text": ("text", "paragraph", "passage", "content", "body", "article"),
    "title": ("title", "headline", "name"),
    "url": ("url", "link"),
    "licence": ("licence", "license"),
    "revision": ("revision", "revid", "date", "published"),
    "page": ("id", "page", "pageid"),
}
"""The names of each column of a table of articles; the first that the file has counts."""
_BREAK = re.compile(r"\n[^\S\n]*\n")
_SPACE = re.compile(r"\s+")
_NOTE = re.compile(r"\[(?:\d{1,3}|[a-zа-я]|[^\W\d_]{1,12}\.? ?\d{1,3})\]")
_HOLLOW = re.compile(
    r" ?\([ ,;:.–—-]*\)"
)  # only after _SPACE: long runs of spaces are slow
_BEFORE_MARK = re.compile(r" ([,.;:!?…])")
_STRESS = re.compile("[\u0300\u0301]")
# Tags whose content is no prose of the article.
_TAGS = (
    *(
        "ref",
        "references",
        "gallery",
        "math",
        "chem",
        "table",
        "timeline",
        "score",
        "graph",
    ),
    *(
        "syntaxhighlight",
        "source",
        "code",
        "imagemap",
        "poem",
        "nowiki",
        "pre",
        "hiero",
    ),
    *("templatestyles", "section", "mapframe", "noinclude", "includeonly"),
)
# Lists, indents, headings, and what is left of tables and templates that are never closed.
_NO_PROSE = re.compile(r"\s*(?:[*#:;=|!{}]|----)")
_LINK = re.compile(r"\[\[|\]\]|\{\{|\}\}|</?[a-z]|__[^\W\d_]+__", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """One article of a source as it was found."""

    origin: Origin
    text: str
    is_wiki: bool = False
    """Whether the text is MediaWiki markup."""


@dataclass(frozen=True, slots=True)
class TextSource:
    """One file or folder of a source group."""

    group: SourceGroup
    path: Path

    def check(self) -> None:
        """Raise UsageError for a file or folder that cannot hold articles."""
        where = f"sources: {self.group.name}: {self.path}"
        if not self.path.exists():
            raise UsageError(f"{where}: no such file; give a file or folder")
        if not self.path.is_dir() and not self.path.name.endswith((*DUMPS, *TABLES)):
            known = ", ".join((*DUMPS, *TABLES))
            raise UsageError(f"{where}: want a folder of .txt or a file in {known}")

    def articles(self, say: Say) -> Iterator[Article]:
        """Return the articles one by one. Raises UsageError if the source is not what it seems."""
        if self.path.name.endswith(DUMPS):
            return self._dump(say)
        return self._folder() if self.path.is_dir() else self._table()

    def _origin(
        self,
        *,
        page: str,
        title: str,
        url: str = "",
        licence: str = "",
        revision: str = "",
    ) -> Origin:
        """Return where an article came from. Raises UsageError if nothing names a licence."""
        licence = licence or self.group.licence
        if not licence:
            raise UsageError(
                f"{self.path}: names no licence; "
                f"say `licence` under the recipe's key 'sources: {self.group.name}'"
            )
        return Origin(
            group=self.group.name,
            source=f"{self.path}",
            page=page,
            title=title,
            url=url,
            licence=licence,
            revision=revision,
        )

    def _table(self) -> Iterator[Article]:
        table = read_table(self.path)
        columns = {
            name: next((column for column in spellings if column in table.names), "")
            for name, spellings in COLUMNS.items()
        }
        text_column = columns.pop("text")
        if not text_column:
            wanted = ", ".join(COLUMNS["text"])
            near = hint("text", table.names.values())
            raise UsageError(
                f"{self.path}: no column of text; name it one of {wanted} ({near})"
            )
        for record in table.records:
            text = record.values.get(text_column)
            if not isinstance(text, str):
                raise table.problem(record, text_column, "text is needed")
            texts = {
                name: str(record.values.get(column) or "")
                for name, column in columns.items()
            }
            page = texts["page"]
            if not page:  # an article without an id is identified by its content
                page = sha256("\x1f".join((texts["title"], text)))[:16]
            origin = self._origin(
                page=page,
                title=texts["title"],
                url=texts["url"],
                licence=texts["licence"],
                revision=texts["revision"],
            )
            yield Article(origin=origin, text=text)

    def _folder(self) -> Iterator[Article]:
        files = sorted(self.path.rglob("*.txt"))
        if not files:
            raise UsageError(f"{self.path}: no .txt file in this folder")
        for path in files:
            page = path.relative_to(self.path).as_posix()
            yield Article(
                origin=self._origin(page=page, title=path.stem), text=read_text(path)
            )

    def _dump(self, say: Say) -> Iterator[Article]:
        """Stream the articles of a dump: namespace 0, no redirects, the last revision."""
        self._origin(
            page="", title=""
        )  # the licence is missing before the dump is read
        try:
            with OPENERS.get(self.path.suffix, Path.open)(self.path, "rb") as file:
                for count, (base, page, last) in enumerate(_pages(file), 1):
                    if count % PAGES_A_LINE == 0:
                        say(f"sample: {self.path.name}: {count:,} pages read")
                    text = last.findtext("{*}text")
                    if (
                        page.findtext("{*}ns") != "0"
                        or page.find("{*}redirect") is not None
                    ):
                        continue
                    title, revision = (
                        page.findtext("{*}title", ""),
                        last.findtext("{*}id", ""),
                    )
                    number, slash = page.findtext("{*}id", ""), base.rfind("/")
                    url = (
                        f"{base[:slash]}/{quote(title.replace(' ', '_'))}"
                        if slash >= 0
                        else ""
                    )
                    where = self._origin(
                        page=number, title=title, url=url, revision=revision
                    )
                    if text:
                        yield Article(origin=where, text=text, is_wiki=True)
        except (SyntaxError, OSError, EOFError, ValueError) as error:
            what = (
                f"{error}".splitlines()[0][:120] if f"{error}" else type(error).__name__
            )
            what = f"{self.path}: not a whole MediaWiki dump ({what}); fetch it again"
            raise UsageError(what) from None


def _pages(file: IO[bytes]) -> Iterator[tuple[str, Element, Element]]:
    """Yield the wiki's base, and each page with its last revision. Raises ValueError or so."""
    events = iterparse(file, events=("start", "end"))
    _, top = next(events)
    base, last = None, Element("revision")
    for event, element in events:
        name = element.tag.rpartition("}")[2]
        if event == "start":
            continue
        if name == "siteinfo":  # whose base is the address of the main page
            base = element.findtext("{*}base", "")
        elif name == "revision":
            last.clear()  # of a page's whole history one revision at a time is kept
            last = element
        elif name == "page":
            if base is None:
                raise ValueError("no <siteinfo> before its pages")
            yield base, element, last
            top.clear()
            last = Element("revision")
    if base is None:
        raise ValueError("no <siteinfo>")


def plain_paragraphs(text: str) -> Iterator[str]:
    """Yield the cleaned paragraphs of a plain text: between empty lines, or else its lines."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    parts = _BREAK.split(lines) if _BREAK.search(lines.strip()) else lines.split("\n")
    yield from filter(None, map(clean, parts))


def wiki_paragraphs(text: str, media: tuple[str, ...]) -> Iterator[str]:
    """Yield the running text of an article's markup; ``media`` are prefixes of links to files."""
    import mwparserfromhell  # noqa: PLC0415  # of the extra `builder`

    prefixes = {word.casefold() for word in media}

    def is_media(title: str) -> bool:
        prefix, colon, _ = title.partition(":")
        return bool(colon) and prefix.strip().casefold() in prefixes

    code = mwparserfromhell.parse(text)
    unwanted = [
        *code.filter_templates(),
        *code.filter_comments(),
        *code.filter_headings(),
        *code.filter_tags(matches=lambda tag: str(tag.tag).lower() in _TAGS),
        *code.filter_wikilinks(matches=lambda link: is_media(str(link.title))),
    ]
    for node in unwanted:
        with contextlib.suppress(ValueError):  # removed with the node around it
            code.remove(node)
    for block in re.split(r"\n\s*\n", str(code)):
        lines = [line for line in block.split("\n") if not _NO_PROSE.match(line)]
        cleaned = clean(mwparserfromhell.parse("\n".join(lines)).strip_code())
        # Markup that the parser left is not running text.
        if cleaned and not _LINK.search(cleaned):
            yield cleaned


def clean(text: str) -> str:
    """Return a text on one line, without invisible and stress marks, notes and empty brackets."""
    composed = _STRESS.sub(
        "", unicodedata.normalize("NFC", without_invisible(sendable(text)))
    )
    bare = _HOLLOW.sub("", _SPACE.sub(" ", _NOTE.sub("", composed)))
    return _BEFORE_MARK.sub(r"\1", _SPACE.sub(" ", bare)).strip()


def bounded(paragraph: str, rules: ParagraphRules) -> str | None:
    """Return a paragraph cut after a sentence to fit, None if too short or not a sentence."""
    kept, count = "", 0
    for sentence in sentences(paragraph):
        longer = f"{kept} {sentence}".lstrip()
        if len(longer) > rules.longest:
            break
        kept, count = longer, count + 1
    ended = re.search(r"[.!?…][»”\")]?\Z", kept)
    if len(kept) < rules.shortest or count < rules.sentences or not ended:
        return None
    return kept


Sources = Mapping[str, tuple[int, Callable[[], Iterable[Article]]]]
"""By name of a group: how many paragraphs are wanted, and what reads its articles."""


def sample(sources: Sources, recipe: Recipe) -> list[DraftItem]:
    """Return the items of all groups, kept and dropped, in an order that the seed gives.

    Articles are taken in the order of a hash, not that of the files; those without a new, fitting
    paragraph are dropped.
    """
    items: dict[str, DraftItem] = {}
    texts: list[str] = []
    for wanted, articles in sources.values():
        examined = 4 * wanted + 100
        while True:
            order = ((_rank(recipe, one.origin.key), one) for one in articles())
            lowest = heapq.nsmallest(examined, order, key=itemgetter(0))
            seen = list(texts)
            found = _chosen((_item(one, recipe) for _, one in lowest), wanted, seen)
            if len(seen) - len(texts) == wanted or len(lowest) < examined:
                break
            examined *= 4  # and read the sources again
        texts = seen
        items |= {id_: item for id_, item in found.items() if id_ not in items}
    return sorted(items.values(), key=lambda item: _rank(recipe, item.id))


def _rank(recipe: Recipe, text: str) -> str:
    return sha256(f"{recipe.build.seed}\x1f{text}")


def _chosen(
    items: Iterable[DraftItem], wanted: int, texts: list[str]
) -> dict[str, DraftItem]:
    """Return items until enough are kept, whose texts are added; those like one are dropped."""
    found: dict[str, DraftItem] = {}
    for item in items:
        if item.id in found:
            continue  # a file may hold an article twice
        found[item.id] = item
        if item.state == "kept":
            text = comparable(item.paragraph)
            twin = nearest(text, texts, SIMILAR)
            if twin is None:
                texts.append(text)
                wanted -= 1
            else:
                found[item.id] = item.dropped(
                    "similar", f"nearly the same as: {texts[twin][:80]}"
                )
        if not wanted:
            break
    return found


def _item(article: Article, recipe: Recipe) -> DraftItem:
    """Return an article's item: one of its fitting paragraphs by hash, or why none fits."""
    language, bounds = recipe.language, recipe.paragraph
    name, text = article.origin.item_id(language), article.text
    item = DraftItem(id=name, language=language, paragraph="", origin=article.origin)
    found = (
        wiki_paragraphs(text, bounds.media)
        if article.is_wiki
        else plain_paragraphs(text)
    )
    cut = filter(None, (bounded(one, bounds) for one in found))
    known = known_language(language)
    faults = {text: language_fault(text, known, recipe.spelling) for text in cut}
    if fine := [text for text, fault in faults.items() if not fault]:
        return replace(item, paragraph=min(fine, key=partial(_rank, recipe)))
    if not faults:
        return item.dropped("length", "no fitting paragraph")
    first, fault = next(iter(faults.items()))
    reason, detail = fault or ("length", "no fitting paragraph")
    return replace(item, paragraph=first).dropped(reason, detail)


class SampleStep(BuildStep):
    """Takes paragraphs from the sources."""

    name = "sample"
    help = "take paragraphs from dumps and files, by seed"

    def settings(self) -> Values:
        """Return sources, counts and seed, and the version of the recipe."""
        recipe = self.build.recipe
        if not recipe.sources:
            example = (
                "sources: {news: {from: articles.jsonl, licence: CC0, count: 500}}"
            )
            raise UsageError(
                f"build: {recipe.path}: say where texts come from: {example}"
            )
        if not self.build.folder.record(self.name):
            for group in recipe.sources:
                for path in group.files:
                    TextSource(group, path).check()
        return {
            "sources": {
                group.name: [f"{path}" for path in group.files]
                for group in recipe.sources
            },
            "counts": {group.name: group.count for group in recipe.sources},
            "licences": {group.name: group.licence for group in recipe.sources},
            "oversample": recipe.build.oversample,
            "seed": recipe.build.seed,
            "recipe": recipe.sample_version,
        }

    def work(self, _: Items, __: ModelCalls) -> list[DraftItem]:
        """Return the items of all groups."""
        build, groups = self.build, self.build.recipe.sources

        def read(group: SourceGroup) -> Iterable[Article]:
            sources = (TextSource(group, path) for path in group.files)
            return chain.from_iterable(one.articles(build.say) for one in sources)

        more = self.values["oversample"]
        wanted = {
            one.name: (math.ceil(one.count * more), partial(read, one))
            for one in groups
        }
        items = sample(wanted, build.recipe)
        for name, (number, _reader) in wanted.items():
            found = sum(
                item.state == "kept" and item.origin.group == name for item in items
            )
            if found < number:
                build.say(f"sample: {name}: only {found} of {number} paragraphs found")
        paths = [path for group in groups for path in group.files]
        self.values["files"] = {
            f"{path}": file_hash(path) for path in paths if path.is_file()
        }
        return items
