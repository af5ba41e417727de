"""Models for the tests of the builder that play generator and validator, and calls to them."""

import asyncio
import bz2
import json
import random
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from xml.sax.saxutils import escape

import yaml

from qagate.cases.extras.builder.recipe import Recipe, find_recipe, load_recipe
from qagate.cases.extras.builder.steps import StepCalls
from qagate.cases.extras.builder.work_folder import DraftItem, Origin
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.runtime.caller import Caller, CallSettings, RetryPolicy
from tests.support.loopback import Answer, Handler, Seen, reply

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
        **{
            key: draw.choice(TEXTS["english"][key])
            for key in ("name", "person", "month")
        },
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
    first, link, rest = paragraph(number).split(" ", 2)
    markup: str = TEXTS["wikitext"]
    return markup.format(number=number, first=first, link=link, rest=rest)


def pages(count: int, start: int = 1) -> list[Page]:
    """Return articles, and with them what no article is: talk pages, redirects, stubs."""
    made = [
        Page(n, f"Мясцовасць {n}", wikitext(n)) for n in range(start, start + count)
    ]
    last = start + count
    return [
        *made,
        Page(last, "Размовы:Мясцовасць", wikitext(last), namespace=1),
        Page(
            last + 1,
            "Стары назоў",
            "#REDIRECT [[Мясцовасць 1]]",
            redirect="Мясцовасць 1",
        ),
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
    return f"{''.join(TEXTS['dump'])}{body}</mediawiki>"


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


T = TypeVar("T")
LINE = re.compile(r'^\{"number": \d+, .*\}$', re.MULTILINE)
WORD = re.compile(r"\b[^\W\d_]{4,}")
STARTS, ENGLISH_STARTS = TEXTS["starts"], TEXTS["english"]["starts"]


def texts_of(seen: Seen) -> list[dict[str, Any]]:
    return [json.loads(line) for line in LINE.findall(seen.prompt)]


def question(text: str) -> str:
    draw = random.Random(text)
    words = draw.sample(sorted(set(WORD.findall(text))), 8)
    one, two, three = " ".join(words[:3]), " ".join(words[3:6]), " ".join(words[6:8])
    starts = ENGLISH_STARTS if text.isascii() else STARTS
    return f"{draw.choice(starts).format(one=one, two=two, three=three)}?"


def entries(asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "number": one["number"],
            "question": question(one["text"]),
            "answer": one["answer"],
        }
        for one in asked
    ]


def listed(seen: Seen, items: list[dict[str, Any]]) -> Answer:
    if seen.tool:
        return reply(seen, arguments={"items": items})
    return reply(seen, text=json.dumps(items, ensure_ascii=False))


def confirmed(
    seen: Seen, grade: str = "CORRECT", reason: str = "Вынікае з тэксту."
) -> Answer:
    return reply(
        seen, text=json.dumps({"reason": reason, "grade": grade}, ensure_ascii=False)
    )


def models() -> Handler:
    """Return a handler that plays both models well, and knows nothing without a text."""
    answers: dict[str, str] = {}

    def handle(seen: Seen) -> Answer:
        if asked := texts_of(seen):
            said = entries(asked)
            answers.update((one["question"], one["answer"]) for one in said)
            return listed(seen, said)
        if "Невядома" in seen.prompt or "Unknown" in seen.prompt:
            return reply(
                seen, text="Невядома" if "Невядома" in seen.prompt else "Unknown"
            )
        if "Прапанаваны адказ" in seen.prompt or "roposed answer" in seen.prompt:
            return confirmed(seen)
        return reply(seen, text=next(a for q, a in answers.items() if q in seen.prompt))

    return handle


def rows(folder: Path, step: str) -> list[dict[str, Any]]:
    _, *lines = (folder / f"{step}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


QUICK = RetryPolicy(attempts=2, first=0.0, longest=0.0)


def with_calls(folder: Path, work: Callable[[StepCalls], Awaitable[T]]) -> T:
    """Return what some work with models makes; its calls go through a ledger in this folder."""

    async def run() -> T:
        with Ledger(folder / "calls.sqlite3") as ledger:
            settings = CallSettings(concurrency=4, retry=QUICK, random=lambda: 0.5)
            caller = Caller(ledger, settings, lambda *_: 0.0)
            caller.sender.begin()
            calls = StepCalls(caller=caller, say=lambda _: None)
            try:
                return await work(calls)
            finally:
                await ledger.flush()

    return asyncio.run(run())


def make_item(number: int, **changes: Any) -> DraftItem:
    origin = Origin(
        group="news", source="news.jsonl", page=f"{number}", title=f"Навіна {number}"
    )
    made = DraftItem(
        id=f"be-{number:04}", language="be", paragraph=paragraph(number), origin=origin
    )
    return replace(made, **changes)


def recipe(language: str = "be") -> Recipe:
    return load_recipe(find_recipe(language))


def hashed(text: str) -> int:
    return sha256(text.encode()).digest()[0]


def _text(said: list[dict[str, Any]]) -> str:
    return json.dumps(said, ensure_ascii=False)


OPEN = {"question": "Дзе гэта здарылася першы раз?"}
WAYS: tuple[Callable[[Seen, list[dict[str, Any]]], Answer], ...] = (
    lambda seen, said: reply(seen, text=_text(said)[: len(_text(said)) // 2]),
    lambda seen, said: listed(seen, said[:-1]),
    lambda seen, said: reply(
        seen, text=f"Вось мой спіс:\n```json\n{_text(said)}\n```\nГатова!"
    ),
    lambda seen, said: listed(seen, said[::-1]),
    lambda seen, said: listed(seen, [{**said[0], "answer": "Магчыма"}, *said[1:]]),
    lambda seen, said: listed(seen, [*said[:-1], {**said[-1], **OPEN}]),
    listed,
    listed,
)
"""Cut, miscounted, wordy, swapped, mislabelled, with an open question; twice well-formed."""


def unruly(seen: Seen) -> Answer:
    """Misbehave in every way there is, and always in the same way for the same request."""
    asked = texts_of(seen)
    if not asked:
        return doubtful(seen)
    if any(hashed(one["text"]) < 4 for one in asked):
        return reply(
            seen, text="Прабачце, не магу."
        )  # no matter what stands next to it
    return WAYS[hashed(seen.prompt) % len(WAYS)](seen, entries(asked))


def doubtful(seen: Seen) -> Answer:
    turn = hashed(seen.prompt.partition("[ПАЧАТАК")[2]) % 8
    if turn == 0:
        return confirmed(seen, "INCORRECT", "З тэксту гэта не вынікае.")
    return reply(seen, text="Хм.") if turn == 1 else confirmed(seen)
