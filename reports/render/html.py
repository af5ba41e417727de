"""``report.html``: one self-contained page that needs no network and runs only its own script."""

import base64
import hashlib
from collections import Counter
from collections.abc import Mapping
from importlib.resources import files

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from reports.record import Record, in_order
from reports.render import clean, words
from reports.render.plot import plot
from reports.render.run_json import dump, ordered
from reports.report import Report, SliceSummary

LONGEST = 4_000  # characters of one text on the page
_PAGE = 16_000_000  # characters that all answers together may take, so that the page opens
_KINDS = {"graded": "Graded", "rated": "Rated", "yes_no": "Yes/no", "judged": "Judges"}
_STATES = ("passed", "failed", "error", "missing")


def render(report: Report) -> str:
    """Return the page. Every value is escaped; hidden characters and keys never reach it."""
    script, style = _asset("report.js"), _asset("report.css")
    return (
        _environment(_limit(report))
        .get_template("page")
        .render(
            report=report,
            verdict=words.verdict(report),
            policy=_policy(script, style),
            script=Markup(script),  # our own file, no data in it
            style=Markup(style),
            gates=[(gate, plot(gate)) for gate in words.by_urgency(report.decision.gates)],
            kinds=_by_kind(report),
            items=in_order(report.records),
            filters=_filters(report),
            ungraded=words.ungraded(report),
            states=_STATES,
        )
    )


def grade(record: Record) -> str:
    """Return what the page shows and filters by: a grade, a rating, or ``not graded``."""
    if record.rating is not None:
        return f"rating {record.rating}"
    return record.grade or "not graded"


def shares(counts: Mapping[str, int]) -> list[tuple[str, int, float, float]]:
    """Return (name, count, start, width) of the parts of a bar 100 wide."""
    total = sum(counts.values()) or 1
    parts, start = [], 0
    for name, count in counts.items():
        parts.append((name, count, round(100 * start / total, 2), round(100 * count / total, 2)))
        start += count
    return parts


def _environment(limit: int) -> Environment:
    environment = Environment(
        loader=DictLoader({"page": _asset("report.html.j2")}),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=words.number,
        interval=words.interval,
        money=words.money,
        bar=words.bar,
        bounds=words.bounds,
        grade=grade,
        shares=shares,
        states=lambda counts: {state: getattr(counts, state) for state in _STATES},
        count="{:,}".format,
        cut=lambda text: _cut(text, limit),
        json=lambda value: dump(ordered(value), indent=1),
        matrix=_matrix,
    )
    return environment


def _shown(value: object) -> object:
    """Stand between every value and the page; markup of the template itself passes."""
    plain_text = isinstance(value, str) and not isinstance(value, Markup)
    return clean.visible(str(value)) if plain_text else value


def _cut(text: str, limit: int) -> str:
    shown = clean.visible(text)
    mark = f" […cut: {len(text):,} characters in all; the exact text is in records.jsonl]"
    return clean.cut(shown, limit, mark)


def _limit(report: Report) -> int:
    return max(300, min(LONGEST, _PAGE // max(1, len(report.records))))


def _policy(script: str, style: str) -> Markup:
    """Return a policy that lets in these two texts, by hash, and nothing else from anywhere."""
    return Markup(  # base64 and fixed words
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _asset(name: str) -> str:
    return files("reports.render").joinpath(name).read_text(encoding="utf-8")


def _by_kind(report: Report) -> list[tuple[str, list[str], list[SliceSummary]]]:
    """One table a kind: slices of a kind share their measures, so they share columns."""
    tables = []
    for kind in dict.fromkeys(part.kind for part in report.slices):
        parts = [part for part in report.slices if part.kind == kind]
        measures = list(dict.fromkeys(name for part in parts for name in part.measures))
        tables.append((_KINDS.get(kind, kind), measures, parts))
    return tables


def _matrix(
    confusion: Mapping[tuple[str, str], int],
) -> tuple[list[str], dict[str, list[tuple[str, int]]]]:
    """Return the columns (grades) and, for each label, its counts with their columns."""
    columns = sorted({grade for _, grade in confusion})
    labels = sorted({label for label, _ in confusion})
    return columns, {
        label: [(column, confusion.get((label, column), 0)) for column in columns]
        for label in labels
    }


def _filters(report: Report) -> dict[str, list[tuple[str, int]]]:
    """Return for each filter its values with their number of items, in alphabetical order."""
    counters: dict[str, Counter[str]] = {
        "dataset": Counter(record.dataset for record in report.records),
        "language": Counter(record.language for record in report.records),
        "outcome": Counter(record.outcome for record in report.records),
        "grade": Counter(map(grade, report.records)),
    }
    return {name: sorted(counter.items()) for name, counter in counters.items()}
