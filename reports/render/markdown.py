"""``summary.md``: what a pull request needs to show, short enough for a comment."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice
from pathlib import PurePath

from evaluators.core import NOT_ATTEMPTED, UNANSWERED
from evaluators.output import markdown_table, plural
from evaluators.statistics.intervals import number
from evaluators.statistics.metrics import YOUDEN
from reports.render import words
from reports.run import clean
from reports.run.evidence import Calibration, Change, SliceComparison
from reports.run.record import Record, by_slice, in_order
from reports.run.report import GateResult, Report, SliceSummary

MAX_BYTES = 60_000  # GitHub cuts a comment at 65,536 characters
_MAX_ROWS = 60
_MAX_MISSES = 10
_MAX_REGRESSIONS = 5
_MISSES_A_SLICE = 3
_PLAIN_LINK = re.compile(r"https?://[A-Za-z0-9][A-Za-z0-9.:-]*(?:/[A-Za-z0-9._~/-]*)?")
_GATES = ("Gate", "Verdict", "Value", "95 % interval", "Bar", "Worst to best", "Why")
_PAIRS = ("Slice", "Pairs", "Fixed", "Broke", "New - old", "McNemar p", "Odds fixed : broke")
_SLICES = ("Slice", "Plan", "Right", "Missed", "Error", "Missing", "Stopped", "Metrics")
_MOST_OF_A_REASON = 300
_REGRESSION_SPAN = 60
_END = "</details>"
_CUT = "\n*The rest is cut; the report files have it all.*\n"
JUDGE_TITLE = "How the judge was measured"
_TRUST = {True: "reached", False: "missed", None: "not shown"}
_EXAMPLES = 10
"""Disagreements shown, of all labelled slices together; the item list of the report has all."""
_GRADED = {"agreement": "Agreement", "kappa": "Kappa", YOUDEN: "Youden's J",
           "precision": "Precision", "recall": "Recall"}  # fmt: skip
_RATED = {"agreement": "Agreement", "spearman": "Spearman's rho",
          "quadratic_kappa": "Weighted kappa", "mean_difference": "Mean difference",
          "pass_agreement": "Pass/fail agreement",
          "bias_by_length": "Points a doubling of length"}  # fmt: skip


def render(report: Report) -> str:
    """Return the summary: what decides first, all else folded; foreign text in code spans."""
    compared, since = report.comparison, report.since_anchor
    found, warnings = (compared.slices, compared.warnings) if compared else ((), ())
    kinds = words.ungraded(report)[:_MAX_MISSES]
    noted = [f"{part.name}: {part.note}" for part in report.slices if part.note]
    gates = words.by_urgency(report.decision.gates)
    undecided = (
        f"- **{gate.state}** {clean.prose(f'{gate.slice} {gate.name} {gate.estimate.text()}')}, "
        f"bar {clean.prose(words.bar(gate))}: {clean.prose(gate.reason)[:_MOST_OF_A_REASON]}"
        for gate in gates
        if gate.state != "PASS"
    )
    rows = words.usage_rows(report)
    usage = ((name, *map(str.strip, map(" ".join, cells))) for name, cells in rows)
    parts = (
        _head(report),
        _section("Another judge", [f"- **{clean.prose(one)}**" for one in warnings]),
        _section("Gates that did not pass", _fitting(undecided)),
        _section("Slices that lost", _fitting(_lost(found))),
        _regressions(report),
        _table("Gates", _GATES, map(_gate, gates)),
        _table("Compared with the baseline", _PAIRS, map(_pairs, found)),
        _table("Compared with the anchor", _PAIRS, map(_pairs, since.slices if since else ())),
        _table("Slices", _SLICES, map(_slice, report.slices)),
        _fold(JUDGE_TITLE, _judge(report)),
        _fold("Not graded", (f"- {n:,} {state}: {clean.span(kind)}" for state, kind, n in kinds)),
        _fold("Some of the misses", () if compared else _misses(report)),
        _table(
            "Seconds, tokens and cost of answers",
            words.USAGE_HEADER,
            usage,
            words.usage_notes(report),
        ),
        _fold("Notes", (f"- {clean.prose(one)}" for one in (*report.notes, *noted))),
    )
    return _bounded("\n".join(part for part in parts if part))  # fmt: skip


def _lost(compared: Sequence[SliceComparison]) -> Iterator[str]:
    for one in sorted(compared, key=lambda one: one.difference.value or 0):
        found = one.difference
        if not one.blocked and found.high is not None and found.high < 0:
            moved = f"{one.broke:,} broke, {one.fixed:,} fixed of {found.n:,}"
            yield f"- {clean.prose(one.name)}: {moved}, {clean.prose(words.signed(found))}"


def _regressions(report: Report) -> str:
    broke = words.broke(report)
    lines = [_item(*pair, limit=_REGRESSION_SPAN) for pair in broke[:_MAX_REGRESSIONS]]
    rest = f"\n{len(broke) - len(lines):,} more in the report.\n" if len(broke) > len(lines) else ""
    return _section("Worst regressions", lines) + rest


def _fitting(lines: Iterable[str], room: int = 700) -> list[str]:
    """Return the first lines that fit into so many characters, and how many do not."""
    every = list(lines)
    ends = accumulate(map(len, every))
    kept = max(1, sum(end <= room for end in ends))
    return every[:kept] + ([f"- {more:,} more below"] if (more := len(every) - kept) > 0 else [])


def _head(report: Report) -> str:
    counts, compared = report.counts, ""
    for word, found, path in (
        ("compared with", report.comparison, report.baseline),
        ("anchor", report.since_anchor, report.anchor),
    ):
        names = (found.model if found else "", PurePath(path.removesuffix("/run.json")).name)
        compared += f", {word} {' in '.join(map(clean.span, filter(None, names)))}" if path else ""
    stopped = f", {counts.stopped:,} stopped as decided" if counts.stopped else ""
    page = str(report.run.get("link", ""))  # the CI run that keeps the report, where there is one
    origin = words.origin(report.run)
    origin = f" {origin}." if origin else ""
    link = f" [The whole report]({page})." if _PLAIN_LINK.fullmatch(page) else ""
    return (
        f"## {report.verdict} (exit code {report.decision.code})\n\n"
        f"{clean.prose(report.decision.line)}\n\n"
        f"Model {clean.span(words.model(report))}, judge {clean.span(report.judge)}{compared}.\n"
        f"{plural(counts.planned, 'item')} planned: {counts.passed:,} right, "
        f"{counts.failed:,} missed, {counts.error:,} error, {counts.missing:,} missing{stopped}. "
        f"Tokens {words.tokens(report)}; cost {words.cost(report)}.{origin}{link}\n"
    )


def _gate(gate: GateResult) -> tuple[str, ...]:
    figures = number(gate.estimate.value), words.interval(gate.estimate), words.bar(gate)
    return f"{gate.slice} {gate.name}", gate.state, *figures, words.bounds(gate), gate.reason


def _pairs(one: SliceComparison) -> tuple[str, ...]:
    counts = (one.difference.n, one.fixed, one.broke)
    shown = words.signed(one.difference), words.p_value(one.p_value), words.odds(one.odds)
    return one.name, *(f"{count:,}" for count in counts), *shown


def _slice(part: SliceSummary) -> tuple[str, ...]:
    counts = part.counts
    name = f"{part.name} ({part.part})" if part.part else part.name
    ungraded = (counts.error, counts.missing, counts.stopped)
    numbers = (counts.planned, counts.passed, counts.failed, *ungraded)
    measures = ", ".join(f"{name} {found.text()}" for name, found in words.headline(part).items())
    return name, *(f"{count:,}" for count in numbers), measures


def _judge(report: Report) -> Iterator[str]:
    found = report.judging.calibrations
    yield from _cards([one for one in found if one.pass_bar is None], _GRADED)
    yield from _cards([one for one in found if one.pass_bar is not None], _RATED)
    own = [one for one in found if one.source == "records"]
    for one in own:
        cells: dict[str, list[str]] = defaultdict(list)
        for cell in one.confusion:
            cells[cell.label].append(f"{cell.count:,} {cell.grade}")
        if said := "; ".join(f"{label} got {', '.join(some)}" for label, some in cells.items()):
            yield f"{clean.prose(f'{one.dataset}:{one.language}')}: {clean.prose(said)}.\n"
    for people in (one.people for one in own if one.people):
        kappas = ", ".join(f"{p.first} and {p.second} {p.kappa.text()}" for p in people.pairs)
        tied = plural(people.undecided, "item") if people.undecided else ""
        text = (
            f"{people.slice}, the people among themselves: alpha {people.alpha.text()}, "
            f"kappa of {kappas}" + (f"; they tie on {tied}, in no figure" if tied else "")
        )
        yield f"{clean.prose(text)}.\n"
    for one in own:
        missed = (record for record in report.records if record.outcome == "failed"
                  and (record.dataset, record.language) == (one.dataset, one.language))  # fmt: skip
        for record in islice(missed, -(-_EXAMPLES // len(own))):
            yield (
                f"- {clean.prose(f'{record.dataset}:{record.language}')} row {record.row}: label "
                f"{clean.prose(record.label or '')}, judge {clean.prose(record.result)}: "
                f"{clean.span(record.question)} expected {clean.span(record.expected)} got "
                f"{clean.span(record.answer or '')}: {clean.span(record.reason)}"
            )


def _cards(cards: Sequence[Calibration], names: dict[str, str]) -> Iterator[str]:
    if not cards:
        return
    graded = names is _GRADED
    head = ("Labels", "Floor", *names.values(), *(["Finds the wrong ones"] if graded else []))
    rows = []
    for one in cards:
        floor = ", ".join(f"{name} {words.floor(name, bar)}" for name, bar in one.floor.items())
        reached = f"{_TRUST[one.trusted]}{' by a placeholder judge' if one.stand_in else ''}"
        state = f"{floor}: {reached}" if floor else "none"
        lost = f", {plural(one.ungraded, 'label')} without a verdict" if one.ungraded else ""
        shown = [one.measures[name].text() if name in one.measures else "–" for name in names]
        rates = one.separations[YOUDEN].rates if YOUDEN in one.separations else ()
        wrong = [number(rates[1].value) if len(rates) > 1 else "–"] if graded else []
        title = f"{one.dataset}:{one.language}, {one.labels}{lost}"
        rows.append([clean.prose(cell) for cell in (title, state, *shown, *wrong)])
    yield from (*markdown_table(head, rows), "")


def _misses(report: Report) -> list[str]:
    """Wrong answers before missing ones and low ratings before high, a few from each slice."""
    failed = [record for record in in_order(report.records) if record.outcome == "failed"]
    failed.sort(key=lambda r: (r.grade in (NOT_ATTEMPTED, UNANSWERED), r.rating or 0))
    taken = chain.from_iterable(some[:_MISSES_A_SLICE] for some in by_slice(failed).values())
    return [_item(record) for record in islice(taken, _MAX_MISSES)]


def _item(record: Record, old: Change | None = None, limit: int = clean.SPAN_LIMIT) -> str:
    mark, answer = words.mark(record.grade, record.rating), clean.span(record.answer or "", limit)
    got = f"got {answer}"
    if old:
        mark = f"{words.mark(old.grade, old.rating)} → {mark}"
        got = f"was {clean.span(old.answer or '', limit)} is {answer}"
    return (
        f"- {clean.prose(record.dataset)}:{clean.prose(record.language)} row {record.row}, "
        f"{mark}: {clean.span(record.question, limit)} expected "
        f"{clean.span(record.expected, limit)} {got}"
    )


def _section(title: str, lines: list[str]) -> str:
    return f"### {title}\n\n" + "\n".join(lines) + "\n" if lines else ""


def _fold(title: str, lines: Iterable[str]) -> str:
    body = "\n".join(lines).strip()
    return f"<details><summary>{title}</summary>\n\n{body}\n\n{_END}\n" if body else ""


def _table(
    title: str, header: tuple[str, ...], rows: Iterable[tuple[str, ...]], note: str = ""
) -> str:
    cells = [[clean.prose(cell) for cell in row] for row in rows]
    if not cells:
        return ""
    rest = len(cells) - _MAX_ROWS
    more = [f"\n{rest:,} more in the report."] if rest > 0 else []
    table = [*markdown_table(header, cells[:_MAX_ROWS]), *more, f"\n*{note}*" if note else ""]
    return _fold(f"{title} ({len(cells):,})", table)


def _bounded(text: str) -> str:
    """No code span or table row crosses a line end, so a cut between lines leaves none open."""
    raw = text.encode()
    if len(raw) <= MAX_BYTES:
        return text
    kept = raw[: MAX_BYTES - len(_CUT.encode()) - 2 * len(_END)].decode("utf-8", "ignore")
    whole = kept[: kept.rindex("\n") + 1]
    is_open = whole.count("<details>") > whole.count(_END)
    return whole + (f"\n{_END}\n" if is_open else "") + _CUT
