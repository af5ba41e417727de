"""``summary.md``: what a pull request needs to show, short enough for a comment.

``texts/summary.md.j2`` says what stands where: what decides first, all else folded.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import accumulate, chain, islice

from jinja2 import Template
from markupsafe import Markup

from qagate.evaluators.core import INCORRECT, NOT_ATTEMPTED, UNANSWERED
from qagate.evaluators.kinds import NOT_CORRECT
from qagate.evaluators.output import plural
from qagate.evaluators.statistics.intervals import number
from qagate.evaluators.statistics.metrics import YOUDEN
from qagate.reports.render import health, html, words, worst_first
from qagate.reports.render.difference_marks import Piece
from qagate.reports.render.first_screen import lost_row, spent_of
from qagate.reports.render.judge_words import judge_sentence
from qagate.reports.render.language_rows import language_rows
from qagate.reports.render.measure_words import percent, points
from qagate.reports.render.sentence import sentence_of
from qagate.reports.run import clean
from qagate.reports.run.evidence import Calibration, PanelAgreement
from qagate.reports.run.record import Record, by_slice, in_order
from qagate.reports.run.report import Report, SliceSummary

MAX_BYTES = 60_000  # GitHub cuts a comment at 65,536 characters
JUDGE_TITLE = "How the judge was measured"
MAX_ANSWER = 160
"""Characters of a part of an answer."""
_MAX_MISSES = 10
_MISSES_A_SLICE = 3
_EXAMPLES = 10
"""Disagreements shown, of all labelled slices together; the item list of the report has all."""
_PLAIN_LINK = re.compile(r"https?://[A-Za-z0-9][A-Za-z0-9.:-]*(?:/[A-Za-z0-9._~/-]*)?")
_END = "</details>"
_CUT = "\n*The rest is cut; the report files have it all.*\n"
_WRITTEN = re.compile(
    r"(`+)( ?)(.*?)\2\1(?!`)|\\([^\w\s]|_)|&lt;"
)  # by ``clean.span`` or ``prose``
_TRUST = {True: "reached", False: "missed", None: "not shown"}
_GRADED = {"agreement": "Agreement", "kappa": "Kappa", YOUDEN: "Youden's J",
           "precision": "Precision", "recall": "Recall"}  # fmt: skip
_RATED = {"agreement": "Agreement", "spearman": "Spearman's rho",
          "quadratic_kappa": "Weighted kappa", "mean_difference": "Mean difference",
          "pass_agreement": "Pass/fail agreement",
          "bias_by_length": "Points a doubling of length"}  # fmt: skip


def render(report: Report) -> str:
    """Return the summary, with foreign text as prose without markup or in code spans."""
    telling = worst_first.telling_slices(report)
    calibrations = report.judging.calibrations
    measured = [one for one in calibrations if one.source == "records"]
    page = str(
        report.run.get("link", "")
    )  # the CI run that keeps the report, where there is one
    text = template().render(
        report=report,
        words=words,
        health=health,
        number=number,
        judge_title=JUDGE_TITLE,
        gates=worst_first.gates(report),
        sentence=sentence_of(report),
        by_slice=partial(worst_first.by_slice, report),
        languages=language_rows(report),
        lost=[lost_row(lost) for lost in worst_first.five_lost(report)],
        judge=judge_sentence(report, telling),
        spent=spent_of(report),
        cards=list(_cards(calibrations)),
        measured=measured,
        examples=_examples(report, measured),
        misses=_misses(report),
        link=page if _PLAIN_LINK.fullmatch(page) else "",
    )
    return _bounded(re.sub("\n{3,}", "\n\n", text).strip() + "\n")


def judge_card(summary: str) -> str:
    """Return what a summary says of its judge as lines for a terminal, empty if nothing."""
    _, _, card = summary.partition(f"<summary>{JUDGE_TITLE}</summary>")
    return _WRITTEN.sub(
        lambda one: one[3] or one[4] or "<", card.partition(_END)[0].strip()
    )


@cache
def template() -> Template:
    """Return the summary's template, compiled once."""
    made = html.environment("texts", lambda text: Markup(clean.prose(text)), _FILTERS)
    return made.get_template("summary.md.j2")


def _fitting(text: str, room: int = 700) -> Markup:
    """Return the first lines that fit into so many characters, and how many do not."""
    every = text.strip().split("\n")
    kept = max(1, sum(end <= room for end in accumulate(map(len, every))))
    more = [f"- {len(every) - kept:,} more below"] if len(every) > kept else []
    return Markup("\n".join(every[:kept] + more))


def _headline(part: SliceSummary) -> str:
    return ", ".join(
        f"{name} {found.text()}"
        for name, found in (words.headline(part) | words.extras(part)).items()
    )


def _confusion(one: Calibration) -> str:
    cells: dict[str, list[str]] = defaultdict(list)
    for cell in one.confusion:
        cells[cell.label].append(f"{cell.count:,} {cell.grade}")
    return "; ".join(f"{label} got {', '.join(some)}" for label, some in cells.items())


def _agreement(people: PanelAgreement) -> str:
    kappas = ", ".join(
        f"{p.first} and {p.second} {p.kappa.text()}" for p in people.pairs
    )
    tied = f"; they tie on {plural(people.undecided, 'item')}, in no figure"
    return (
        f"{people.slice}, the people among themselves: alpha {people.alpha.text()}, "
        f"kappa of {kappas}{tied if people.undecided else ''}"
    )


def _bold(text: str) -> Markup:
    """Return a sentence of ours with its figures in bold, and all else as prose."""
    parts = text.split("**")
    for place in range(len(parts)):
        parts[place] = clean.prose(parts[place])
    return Markup("**".join(parts))


def _marked(pieces: Sequence[Piece]) -> Markup:
    """Return an answer as code, with what differs in bold."""
    shown = []
    for piece in pieces:
        text = clean.cut(piece.text, MAX_ANSWER)
        if piece.is_marked:
            shown.append(f"**{clean.prose(text.strip())}**")
        else:
            shown.append(clean.prose(text))
    return Markup("".join(shown))


def _percent(value: float | None) -> str:
    return "–" if value is None else percent(value, 1)


def _points(value: float | None) -> str:
    return "–" if value is None else points(value)


_FILTERS: html.Filters = {
    "agreement": _agreement,
    "bold": _bold,
    "marked": _marked,
    "percent": _percent,
    "points": _points,
    "code": lambda text, limit=clean.SPAN_LIMIT: Markup(clean.span(text or "", limit)),
    "confusion": _confusion,
    "fitting": _fitting,
    "grade": lambda one: words.mark(one, "no grade"),
    "headline": _headline,
    "symptom": health.TITLES.__getitem__,
    "prose": lambda text: Markup(clean.prose(text)),
}


def _cards(cards: Sequence[Calibration]) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Yield header and rows of the graded slices, then of the rated ones."""
    for names in (_GRADED, _RATED):
        head, rows = ["Labels", "Floor", *names.values()], []
        for one in (
            one for one in cards if (one.pass_bar is None) == (names is _GRADED)
        ):
            floor = ", ".join(
                f"{name} {words.floor(name, bar)}" for name, bar in one.floor.items()
            )
            reached = f"{_TRUST[one.trusted]}{' by a placeholder judge' if one.stand_in else ''}"
            lost = (
                f", {plural(one.ungraded, 'label')} without a verdict"
                if one.ungraded
                else ""
            )
            shown = [
                one.measures[name].text() if name in one.measures else "–"
                for name in names
            ]
            title = f"{one.dataset}:{one.language}, {one.labels}{lost}"
            rows.append([title, f"{floor}: {reached}" if floor else "none", *shown])
            if names is _GRADED:
                rows[-1].append(_finds_wrong_ones(one))
        yield [*head, *(["Finds the wrong ones"] if names is _GRADED else [])], rows


def _finds_wrong_ones(calibration: Calibration) -> str:
    """Return the share of labelled wrong answers that the judge does not let pass."""
    for share in calibration.kept:
        if share.of in (INCORRECT, NOT_CORRECT):
            return number(share.value)
    return "–"


def _examples(report: Report, measured: Sequence[Calibration]) -> Iterator[Record]:
    """Yield some labelled items on which the judge disagrees, as many of each slice."""
    for one in measured:
        missed = (record for record in report.records if record.outcome == "failed"
                  and (record.dataset, record.language) == (one.dataset, one.language))  # fmt: skip
        yield from islice(missed, -(-_EXAMPLES // len(measured)))


def _misses(report: Report) -> Iterator[Record]:
    """Yield wrong answers before missing ones and low ratings before high, a few of each slice."""
    failed = [
        record for record in in_order(report.records) if record.outcome == "failed"
    ]
    failed.sort(key=lambda r: (r.grade in (NOT_ATTEMPTED, UNANSWERED), r.rating or 0))
    taken = chain.from_iterable(
        some[:_MISSES_A_SLICE] for some in by_slice(failed).values()
    )
    return islice(taken, _MAX_MISSES)


def _bounded(text: str) -> str:
    """No code span or table row crosses a line end, so a cut between lines leaves none open."""
    raw = text.encode()
    if len(raw) <= MAX_BYTES:
        return text
    kept = raw[: MAX_BYTES - len(_CUT.encode()) - 2 * len(_END)].decode(
        "utf-8", "ignore"
    )
    whole = kept[: kept.rindex("\n") + 1]
    is_open = whole.count("<details>") > whole.count(_END)
    return whole + (f"\n{_END}\n" if is_open else "") + _CUT
