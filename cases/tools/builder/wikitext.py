"""MediaWiki's markup as plain paragraphs: what a reader sees as running text, and nothing else."""

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cases.tools.builder.prose import clean

if TYPE_CHECKING:
    from mwparserfromhell.wikicode import Wikicode

# Tags whose content is no prose of the article.
_TAGS = frozenset(
    {
        *("ref", "references", "gallery", "math", "chem", "table", "timeline", "score", "graph"),
        *("syntaxhighlight", "source", "code", "imagemap", "poem", "nowiki", "pre", "hiero"),
        *("templatestyles", "section", "mapframe", "noinclude", "includeonly"),
    }
)
# Lists, indents, headings, and what is left of tables and templates that are never closed.
_NO_PROSE = re.compile(r"\s*(?:[*#:;=|!{}]|----)")
_LINK = re.compile(r"\[\[|\]\]|\{\{|\}\}|</?[a-z]|__[^\W\d_]+__", re.IGNORECASE)


def paragraphs(text: str, media: tuple[str, ...]) -> Iterator[str]:
    """Yield the cleaned paragraphs of an article's markup.

    ``media`` are the prefixes, in small letters, of links that show something or sort the page.
    """
    import mwparserfromhell  # noqa: PLC0415  # only sampling needs it

    code = mwparserfromhell.parse(text)
    _prune(code, media)
    for block in re.split(r"\n\s*\n", str(code)):
        lines = [line for line in block.split("\n") if not _NO_PROSE.match(line)]
        plain = mwparserfromhell.parse("\n".join(lines)).strip_code()
        cleaned = clean(plain)
        # What the parser could not make sense of is not running text.
        if cleaned and not _LINK.search(cleaned):
            yield cleaned


def _prune(code: "Wikicode", media: tuple[str, ...]) -> None:
    """Take out templates, comments, headings, pictures and tags that hold no prose."""
    unwanted = [
        *code.filter_templates(),
        *code.filter_comments(),
        *code.filter_headings(),
        *code.filter_tags(matches=lambda tag: str(tag.tag).lower() in _TAGS),
        *code.filter_wikilinks(matches=lambda link: _shows(str(link.title), media)),
    ]
    for node in unwanted:
        with contextlib.suppress(ValueError):  # it went with what it stood in
            code.remove(node)


def _shows(title: str, media: tuple[str, ...]) -> bool:
    prefix, colon, _ = title.partition(":")
    return bool(colon) and prefix.strip().casefold() in media
