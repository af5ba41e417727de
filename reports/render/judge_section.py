"""The section of ``summary.md`` on how the judge was measured: figures, people, disagreements."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

from evaluators.output import markdown_table, plural
from evaluators.statistics.intervals import number
from evaluators.statistics.metrics import YOUDEN
from reports.render import words
from reports.run import clean
from reports.run.evidence import Calibration, PanelAgreement
from reports.run.report import Report

TITLE = "How the judge was measured"
STATES = {True: "reached", False: "missed", None: "not shown"}
EXAMPLES = 10
"""Disagreements shown, of all labelled slices together; the item list of the report has all."""
GRADED = {"agreement": "Agreement", "kappa": "Kappa", YOUDEN: "Youden's J",
          "precision": "Precision", "recall": "Recall"}  # fmt: skip
RATED = {"agreement": "Agreement", "spearman": "Spearman's rho",
         "quadratic_kappa": "Weighted kappa", "mean_difference": "Mean difference",
         "pass_agreement": "Pass/fail agreement",
         "bias_by_length": "Points a doubling of length"}  # fmt: skip


def judge_section(report: Report) -> str:
    """Return the section, empty where nothing measured the judge."""
    found = report.judging.calibrations
    rated = [one for one in found if one.pass_bar is not None]
    graded = [one for one in found if one.pass_bar is None]
    own = [one for one in found if one.source == "records"]
    parts = (
        *_table(graded, GRADED),
        *_table(rated, RATED),
        *(line for one in own for line in _confusion(one)),
        *(line for one in own if one.people for line in _people(one.people)),
        *(line for one in own for line in _disagreements(report, one, -(-EXAMPLES // len(own)))),
    )
    return "\n".join((f"### {TITLE}\n", *parts)) + "\n" if parts else ""


def _table(cards: Sequence[Calibration], names: dict[str, str]) -> Iterator[str]:
    if not cards:
        return
    graded = names is GRADED
    head = ("Labels", "Floor", *names.values(), *(["Finds the wrong ones"] if graded else []))
    rows = []
    for one in cards:
        floor = ", ".join(f"{name} {words.floor(name, bar)}" for name, bar in one.floor.items())
        reached = f"{STATES[one.trusted]}{' by a placeholder judge' if one.stand_in else ''}"
        state = f"{floor}: {reached}" if floor else "none"
        lost = f", {plural(one.ungraded, 'label')} without a verdict" if one.ungraded else ""
        shown = [one.measures[name].text() if name in one.measures else "–" for name in names]
        rates = one.separations[YOUDEN].rates if YOUDEN in one.separations else ()
        wrong = [number(rates[1].value) if len(rates) > 1 else "–"] if graded else []
        title = f"{one.dataset}:{one.language}, {one.labels}{lost}"
        rows.append([clean.prose(cell) for cell in (title, state, *shown, *wrong)])
    yield from markdown_table(head, rows)
    yield ""


def _confusion(one: Calibration) -> Iterator[str]:
    found: dict[str, list[str]] = defaultdict(list)
    for cell in one.confusion:
        found[cell.label].append(f"{cell.count:,} {cell.grade}")
    said = "; ".join(f"{label} got {', '.join(some)}" for label, some in found.items())
    if said:
        yield f"{clean.prose(f'{one.dataset}:{one.language}')}: {clean.prose(said)}.\n"


def _people(one: PanelAgreement) -> Iterator[str]:
    kappas = ", ".join(f"{p.first} and {p.second} {p.kappa.text()}" for p in one.pairs)
    tied = f"; they tie on {plural(one.undecided, 'item')}, in no figure" if one.undecided else ""
    text = f"{one.slice}, the people among themselves: alpha {one.alpha.text()}, kappa of {kappas}"
    yield f"{clean.prose(text + tied)}.\n"


def _disagreements(report: Report, one: Calibration, most: int) -> Iterator[str]:
    own = (record for record in report.records if record.outcome == "failed"
           and (record.dataset, record.language) == (one.dataset, one.language))  # fmt: skip
    for record in islice(own, most):
        yield (
            f"- {clean.prose(f'{record.dataset}:{record.language}')} row {record.row}: label "
            f"{clean.prose(record.label or '')}, judge {clean.prose(record.result)}: "
            f"{clean.span(record.question)} expected {clean.span(record.expected)} got "
            f"{clean.span(record.answer or '')}: {clean.span(record.reason)}"
        )
