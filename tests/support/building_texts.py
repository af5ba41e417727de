"""Articles and dumps for the tests of the builder: hundreds of texts, none of them real.

Each article is made of sentences that say checkable things of an invented place; the numbers and
names in it are drawn by its number, so that hardly two are nearly the same.
"""

import bz2
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

import yaml

TEXTS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
CHOICES = ("name", "river", "woman", "man", "craft", "tree", "month", "feast", "days")
# From 5 to 19, and in whole tens, every noun stands in the same form.
FEW = ("far", "count", "years", "deep", "minutes")
TENS = ("people", "guests", "coins", "seats")
YEARS = {"old": 1700, "new": 1900, "fire": 1890, "ferry": 1900}


def paragraph(number: int) -> str:
    draw = random.Random(number)
    words = {**TEXTS, "feast": TEXTS["month"]}
    values: dict[str, object] = {key: draw.choice(words[key]) for key in CHOICES}
    values |= {key: draw.randint(5, 19) for key in FEW}
    values |= {key: draw.randrange(210, 990, 10) for key in TENS}
    values |= {key: first + draw.randint(0, 99) for key, first in YEARS.items()}
    middles = draw.sample(words["middles"], 3)
    told = [draw.choice(words["openings"]), *middles, draw.choice(words["endings"])]
    return " ".join(told).format(**values)


def english_paragraph(number: int) -> str:
    draw = random.Random(number)
    values = {
        **{key: draw.choice(TEXTS["english"][key]) for key in ("name", "person", "month")},
        **{key: draw.randint(5, 99) for key in FEW},
        **{key: draw.randrange(210, 990, 10) for key in TENS},
        **{key: first + draw.randint(0, 99) for key, first in YEARS.items()},
    }
    first, *others = TEXTS["english"]["sentences"]
    return " ".join([first, *draw.sample(others, 5)]).format(**values)


class Page(NamedTuple):
    number: int
    title: str
    text: str
    namespace: int = 0
    redirect: str = ""


def wikitext(number: int) -> str:
    """Return an article's markup: template, picture, bold name, links, notes, a list, a table."""
    first, _, rest = paragraph(number).partition(" ")
    return (
        "{{Картка|назва = Мясцовасць\n|насельніцтва = 5}}\n"
        f"[[Файл:Від {number}.jpg|thumb|Від з моста]]\n"
        f"'''{first}''' [[рака|{rest.split(' ')[0]}]] {rest.partition(' ')[2]}"
        f"<ref name=a>{{{{кніга|загаловак=Даведнік}}}} старонка {number}</ref>\n\n"
        "== Спасылкі ==\n* [http://example.org адна]\n* другая\n\n"
        "{| class=wikitable\n| 1 || 2\n|}\n\n[[Катэгорыя:Мясцовасці]]\n"
    )


def pages(count: int, start: int = 1) -> list[Page]:
    """Return articles, and beside them what no article is: talk pages, redirects, stubs."""
    made = [Page(n, f"Мясцовасць {n}", wikitext(n)) for n in range(start, start + count)]
    last = start + count
    return [
        *made,
        Page(last, "Размовы:Мясцовасць", wikitext(last), namespace=1),
        Page(last + 1, "Стары назоў", "#REDIRECT [[Мясцовасць 1]]", redirect="Мясцовасць 1"),
        Page(last + 2, "Накід", "Толькі адзін кароткі сказ."),
    ]


def dump_xml(pages: list[Page]) -> str:
    body = "".join(
        f"<page><title>{escape(page.title)}</title><ns>{page.namespace}</ns><id>{page.number}</id>"
        + (f'<redirect title="{escape(page.redirect)}" />' if page.redirect else "")
        + f"<revision><id>{page.number * 10}</id><timestamp>2026-01-01T00:00:00Z</timestamp>"
        f'<text xml:space="preserve">{escape(page.text)}</text></revision></page>'
        for page in pages
    )
    return (
        '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="be">'
        "<siteinfo><sitename>Вікі</sitename><dbname>bewiki</dbname>"
        "<base>https://be.example.org/wiki/Main</base><generator>MediaWiki 1.45</generator>"
        '<case>first-letter</case><namespaces><namespace key="0" case="first-letter" />'
        '<namespace key="1" case="first-letter">Размовы</namespace></namespaces></siteinfo>'
        f"{body}</mediawiki>"
    )


def write_dump(path: Path, pages: list[Page]) -> Path:
    content = dump_xml(pages).encode()
    path.write_bytes(bz2.compress(content) if path.suffix == ".bz2" else content)
    return path


def write_news(
    path: Path, count: int, start: int = 10_001, text: Callable[[int], str] = paragraph
) -> Path:
    rows = [
        {
            "id": f"n{number}",
            "title": f"Навіна {number}",
            "url": f"https://news.example.org/{number}",
            "licence": "CC BY 4.0",
            "text": f"Кароткі падзагаловак\n\n{text(number)}",
        }
        for number in range(start, start + count)
    ]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(lines, encoding="utf-8")
    return path
