"""``report.html``: one self-contained page that needs no network and runs only its own script.

``page.js`` draws the items from a JSON block, fifty rows at a time. A table library was weighed:
DataTables adds 726,000 bytes, reads texts through ``innerHTML``, and needs ``data:`` sources.
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from jinja2 import (
    BaseLoader,
    ChoiceLoader,
    Environment,
    FileSystemLoader,
    PackageLoader,
    StrictUndefined,
)
from markupsafe import Markup, escape

from qagate.evaluators.output import content_policy, plural, visible
from qagate.reports.render import health, measure_words, views, words, worst_first
from qagate.reports.render.first_screen import first_screen
from qagate.reports.render.gate_families import gate_families
from qagate.reports.render.judge_rows import judge_rows
from qagate.reports.render.judge_words import judge_sentence
from qagate.reports.render.language_sections import language_sections
from qagate.reports.run import clean
from qagate.reports.run.evidence import Change
from qagate.reports.run.json_data import dump, ordered
from qagate.reports.run.record import Record, in_order
from qagate.reports.run.report import Report
from qagate.reports.run.sent_calls import calls_of, parts, title
from qagate.reports.run.transcripts import Source, keys_of

LONGEST = 4_000  # characters of one text on the page
_PAGE = (
    16_000_000  # characters that all answers together may take, so that the page opens
)
_PROMPT = 40_000  # characters of one prompt or reply
_SHOWN = 600  # characters of a text in a table above the list of items
_KEY = 24  # characters of an item's key as a link
_MOST = 100  # rows of a list above the list of items
Filters = Mapping[str, Callable[..., object]]


def render(report: Report, transcripts: Source | None = None) -> str:
    """Return the page, with all text escaped and no hidden character, and some ``transcripts``."""
    page = files("qagate.reports.render").joinpath("page")
    script, style = (
        page.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("js", "css")
    )
    items = listed(report)
    longest = max(300, min(LONGEST, _PAGE // max(1, len(items))))
    sent = sent_block(worst_first.items(report), transcripts, shower(_PROMPT))
    return _environment().get_template("report.html.j2").render(
        report=report,
        words=words,
        views=views,
        health=health,
        policy=Markup(content_policy(script, style)),  # base64 and fixed words
        script=Markup(script),  # our own file, no data in it
        style=Markup(style),
        data=Markup(block(report, items, longest)),  # JSON without a markup character
        sent=Markup(inert(sent)),
        most=_MOST,
        listed=len(items),
        drawn=DRAWN,
        screen=first_screen(report),
        families=gate_families(report),
        by_slice=partial(worst_first.by_slice, report),
        judge_rows=judge_rows(report),
        languages=language_sections(report),
        judge_words=judge_sentence(report, worst_first.telling_slices(report)),
        **views.sections(report),
    )  # fmt: skip


def prepare() -> None:
    """Compile the page's templates, which takes longer than filling them."""
    for name in _environment().list_templates(extensions=["j2"]):
        _environment().get_template(name)


@cache
def _environment() -> Environment:
    return environment("page", visible, PAGE_FILTERS)


def environment(
    folder: str,
    shown: Callable[[str], str],
    filters: Filters,
    room: Path | None = None,
) -> Environment:
    """Return what fills the templates of a folder; ``shown`` makes any text safe but our markup.

    A ``room`` is a folder with templates of its own, which may import these.
    """
    folders: list[BaseLoader] = [PackageLoader("qagate.reports.render", folder)]
    if room is not None:
        folders.append(FileSystemLoader(room))

    def safe(value: object) -> object:  # the template's own markup passes
        return (
            shown(value)
            if isinstance(value, str) and not isinstance(value, Markup)
            else value
        )

    made = Environment(
        loader=ChoiceLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=safe,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update({**_SHARED, **filters})
    return made


_SHARED: Filters = {
    "count": "{:,}".format,
    "plural": plural,
    "short": lambda path: PurePath(path.removesuffix("/run.json")).name or path,
}


def _bold(text: str) -> Markup:
    """Return a sentence of ours with its figures in bold."""
    parts = [escape(visible(part)) for part in text.split("**")]
    for place in range(1, len(parts), 2):
        parts[place] = Markup("<b>{}</b>").format(parts[place])
    return Markup("").join(parts)


def _percent(value: float | None) -> str:
    return "–" if value is None else measure_words.percent(value, 1)


def _points(value: float | None) -> str:
    return "–" if value is None else measure_words.points(value)


PAGE_FILTERS: Filters = {
    "bold": _bold,
    "capital": lambda text: text[:1].upper() + text[1:],
    "percent": _percent,
    "points": _points,
    "brief": lambda key: clean.cut(visible(key), _KEY),
    "cut": lambda text: clean.cut(visible(text or ""), _SHOWN),
    "grade": words.mark,
    "interval": partial(words.interval, shown=views.fixed),
    "json": lambda value: dump(ordered(value), indent=1),
    "link": lambda key: f"#item-{quote(visible(key), safe='')}",
    "number": views.fixed,
    "share": lambda part, whole: f" ({100 * part / whole:.0f} %)" if whole else "",
    "symptom": health.TITLES.__getitem__,
    "signed": partial(words.signed, shown=views.fixed),
    "words": lambda name: name.replace("_", " "),
    "x": lambda position: round(10 + 2 * position, 2),
}

_CODED = (
    *("dataset", "language", "outcome", "grade", "flip", "kind"),
    *("model", "judge", "label", "person"),
)
_PLAIN = ("key", "row", "repeat", "score", "calls", "tokens", "cost", "seconds")
_TEXTS = ("question", "context", "expected", "answer", "reason", "error")
_LISTS = ("votes", "measures", "metadata", "before")
COLUMNS = (*_CODED, *_PLAIN, *_TEXTS, *_LISTS)
_JSON = json.JSONEncoder(ensure_ascii=False, default=str)

Show = Callable[[str], str]

MAX_LISTED = 50_000  # items that a page can list, and still open and search quickly
DRAWN = 2_500  # of each kind, where there are more


def listed(report: Report) -> list[Record]:
    """Return the records that the page lists: all, or by a hash ``DRAWN`` of each kind."""
    if len(report.records) <= MAX_LISTED:
        return in_order(report.records)
    changes = report.comparison.changes if report.comparison else ()
    flips = {one.key for one in changes if one.flip in ("broke", "fixed")}
    kinds: dict[object, list[Record]] = defaultdict(list)
    # By a hash of the key, so that no other item moves one in or out.
    draw = {
        r.key: sha256(r.key.encode("utf-8", "surrogatepass")).digest()
        for r in report.records
    }
    for record in sorted(report.records, key=lambda record: draw[record.key]):
        kind = record.outcome == "failed" if record.is_graded else "ungraded"
        kinds["flipped" if record.key in flips else kind].append(record)
    return in_order(one for some in kinds.values() for one in some[:DRAWN])


def block(report: Report, records: Sequence[Record], limit: int) -> str:
    """Return these items as inert JSON, each text at most ``limit`` long; words are indexed.

    ``order`` has the places of the rows, worst first.
    """
    show, compared = shower(limit), report.comparison
    changes = {one.key: one for one in compared.changes} if compared else {}
    unchanged = "same" if compared else ""
    known: dict[str, dict[str, int]] = {name: {} for name in _CODED}
    rows = []
    for record in records:
        change = changes.get(record.key)
        coded = (
            *(record.dataset, record.language, record.outcome, words.mark(record)),
            change.flip if change else unchanged,
            *(record.error_kind, record.model, record.judge),
            *(record.label or "", record.adjudicated_by),
        )
        pairs = zip(known.values(), coded, strict=True)
        codes = [places.setdefault(value, len(places)) for places, value in pairs]
        rows.append([*codes, *_rest(record, change, show)])
    shown = {name: list(map(show, places)) for name, places in known.items()}
    place = {record.key: number for number, record in enumerate(records)}
    order = [
        place[record.key] for record in worst_first.items(report) if record.key in place
    ]
    data = {"columns": COLUMNS, "words": shown, "rows": rows, "order": order}
    return inert(data)


def inert(data: object) -> str:
    """Return data as JSON in which no character means anything to HTML."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return re.sub("[<>&]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _rest(record: Record, change: Change | None, show: Show) -> Iterable[object]:
    """Return the other columns; the last is what the baseline said where it said another thing."""
    before = None
    if change is not None and change.flip not in ("new", "changed"):
        told = (words.mark(change), change.reason)
        before = [change.answer and show(change.answer), *map(show, told)]
    score = record.rating if record.score is None else record.score
    known = sorted(record.metadata.items())
    return (
        *(
            show(record.key),
            record.row,
            record.repeat,
            _finite(score),
            len(record.calls),
        ),
        *(record.tokens, _finite(record.cost), round(record.seconds, 3)),
        *map(show, (record.question, record.context, record.expected)),
        *(
            record.answer and show(record.answer),
            show(record.reason),
            show(record.error),
        ),
        [
            [*map(show, (one.judge, one.label, one.reason or one.error))]
            for one in record.votes
        ],
        [[show(name), _finite(value)] for name, value in record.measures.items()],
        [
            [show(n), show(v if isinstance(v, str) else _JSON.encode(v))]
            for n, v in known
        ],
        before,
    )


def _finite(number: float | None) -> float | None:
    return number if number is None or math.isfinite(number) else None


def shower(limit: int) -> Show:
    """Return what makes a text harmless and cuts it; every text is read once, however often met."""

    @cache
    def show(text: str) -> str:
        left = f" […cut: {len(text):,} characters in all; the exact text is in records.jsonl]"
        return clean.cut(visible(text), limit, left)

    return show


_ITEMS = 300  # are looked at, those that matter most
_BUDGET = 2_000_000  # characters of the page that prompts and replies may take together


def sent_block(
    records: Sequence[Record], source: Source | None, show: Show
) -> dict[str, Any]:
    """Return what was sent for the first ``records``: ``texts``, ``calls``, ``items`` by key."""
    first = [record for record in records if record.calls][:_ITEMS]
    found = calls_of(source, keys_of(first)) if source else {}
    texts, calls = dict[str, int](), dict[str, int]()
    shown: list[tuple[str, list[tuple[str, int]]]] = []
    items: dict[str, list[int]] = {}
    room = _BUDGET
    for record in (one for one in first if not found.keys().isdisjoint(one.calls)):
        new = [key for key in record.calls if key in found and key not in calls]
        said = {
            key: [(name, show(text)) for name, text in parts(found[key])] for key in new
        }
        room -= sum(
            len(text) for one in said.values() for _, text in one if text not in texts
        )
        if room < 0:
            break
        for key, one in said.items():
            calls[key] = len(shown)
            numbered = [
                (name, texts.setdefault(text, len(texts))) for name, text in one
            ]
            shown.append((show(title(found[key])), numbered))
        items[show(record.key)] = [calls[key] for key in record.calls if key in calls]
    return {"texts": list(texts), "calls": shown, "items": items}
