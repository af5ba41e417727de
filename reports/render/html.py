"""``report.html``: one self-contained page that needs no network and runs only its own script.

The list of items is drawn by ``page.js`` from a JSON block, fifty rows at a time. A table library
was weighed against it: DataTables, as the one maintained package for Python carries it, adds
726,000 bytes to every report, reads search texts back through ``innerHTML``, and is a module that
no inline script can import under a policy without ``data:`` sources.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from evaluators.output import content_policy, plural
from evaluators.statistics.intervals import number
from reports.render import charts, views, words
from reports.render.page_items import DRAWN, block, inert, listed, mark, shower
from reports.render.page_sent import sent_block
from reports.run import clean
from reports.run.json_data import dump, ordered
from reports.run.report import Report
from reports.run.transcripts import Source

LONGEST = 4_000  # characters of one text on the page
_PAGE = 16_000_000  # characters that all answers together may take, so that the page opens
_PROMPT = 40_000  # characters of one prompt or reply
_SHOWN = 600  # characters of a text in a table above the list of items
_MOST = 100  # rows of a list above the list of items


def render(report: Report, transcripts: Source | None = None) -> str:
    """Return the page. Every value is escaped; hidden characters never reach it.

    ``transcripts`` has the prompts and replies, of which the page holds some.
    """
    script, style = _asset("page.js"), _asset("page.css")
    items = listed(report)
    longest = max(300, min(LONGEST, _PAGE // max(1, len(items))))
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            verdict=report.verdict,
            model=words.model(report),
            origin=words.origin(report.run),
            exit=views.exit_meaning(report.decision.code),
            policy=Markup(content_policy(script, style)),  # base64 and fixed words
            script=Markup(script),  # our own file, no data in it
            style=Markup(style),
            data=Markup(block(report, items, longest)),  # JSON without a markup character
            sent=Markup(inert(sent_block(words.urgent(report), transcripts, shower(_PROMPT)))),
            ungraded=words.ungraded(report),
            most=_MOST,
            listed=len(items),
            drawn=DRAWN,
            **views.sections(report),
        )
    )


def prepare() -> None:
    """Compile the page's templates, which takes longer than filling them."""
    environment = _environment()
    for name in environment.list_templates(extensions=["j2"]):
        environment.get_template(name)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("reports.render", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        # Stands between every value and the page; markup of the template itself passes.
        finalize=lambda value: (
            clean.visible(str(value))
            if isinstance(value, str) and not isinstance(value, Markup)
            else value
        ),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(_FILTERS)
    return environment


def _cut(text: str) -> Markup:
    return escape(clean.cut(clean.visible(text), _SHOWN))


def _answer(text: str | None) -> Markup:
    if text is None:
        return Markup("<span class='quiet'>none</span>")
    return _cut(text) if text.strip() else Markup("<span class='quiet'>(empty)</span>")


_FILTERS: Mapping[str, Callable[..., object]] = {
    "against": charts.against,
    "answer": _answer,
    "around": charts.around,
    "bar": words.bar,
    "bounds": words.bounds,
    "count": "{:,}".format,
    "cut": _cut,
    "date": views.date,
    "floor": words.floor,
    "grade": lambda one: mark(one.grade, one.rating),
    "growth": charts.growth,
    "histogram": charts.histogram,
    "interval": words.interval,
    "items": views.items_link,
    "json": lambda value: dump(ordered(value), indent=1),
    "link": lambda key: f"#item-{quote(clean.visible(key), safe='')}",
    "matrix": charts.matrix,
    "money": words.money,
    "number": number,
    "odds": words.odds,
    "others": views.others,
    "outlook": views.outlook,
    "p": words.p_value,
    "plural": plural,
    "run_name": words.run_name,
    "segments": charts.segments,
    "share": lambda part, whole: f" ({100 * part / whole:.0f} %)" if whole else "",
    "signed": words.signed,
    "states": charts.states,
    "words": lambda name: name.replace("_", " "),
    "x": lambda position: round(10 + 2 * position, 2),
}


def _asset(name: str) -> str:
    return files("reports.render").joinpath("page", name).read_text(encoding="utf-8")
