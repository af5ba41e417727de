"""What page, summary and terminal say of the health of answers: the same words in all three."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qagate.reports.metrics.health import sentences
from qagate.reports.run.evidence import SliceHealth, Symptom, SymptomCount
from qagate.reports.run.report import Report

TITLE = "Health of the answers"
WAIVED = "health: off, so these shares decide nothing"
TITLES: Mapping[Symptom, str] = {
    "cut": "Cut short",
    "thought_only": "Thoughts alone",
    "empty": "Empty",
    "echo": "Repeat the prompt",
    "repetition": "One thing over and over",
    "declined": "Decline",
    "other_language": "In another language",
}
"""What a column is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthRemark:
    """A symptom of many answers, with its likely cause."""

    mark: str
    """SEVERE, WARNING or WAIVED."""
    text: str

    @property
    def tone(self) -> str:
        """The class of its badge on the page."""
        return "INCONCLUSIVE" if self.mark == "SEVERE" else "missing"


def causes(report: Report) -> list[HealthRemark]:
    """Return what is wrong with many answers and why that may be, the severe first."""
    waived = [part for part in report.health if part.is_waived]
    others = [part for part in report.health if not part.is_waived]
    found = [
        HealthRemark(mark="SEVERE", text=text) for text in sentences(others, "severe")
    ]
    found += [
        HealthRemark(mark="WARNING", text=text) for text in sentences(others, "warning")
    ]
    for text in (*sentences(waived, "severe"), *sentences(waived, "warning")):
        found.append(HealthRemark(mark="WAIVED", text=f"{text} ({WAIVED})"))
    return found


def shown_symptoms(report: Report) -> list[Symptom]:
    """Return the symptoms that an answer of one of the runs has, in the order to show them."""
    found = {count.symptom for part in report.health for count in part.symptoms}
    return [symptom for symptom in TITLES if symptom in found]


def ill_slices(report: Report) -> list[SliceHealth]:
    """Return the slices of which an answer has a symptom, in this run or in the baseline."""
    return [part for part in report.health if part.symptoms]


def count_of(part: SliceHealth, symptom: Symptom) -> SymptomCount | None:
    """Return how many answers of a slice have a symptom; None where none ever had it."""
    for count in part.symptoms:
        if count.symptom == symptom:
            return count
    return None


def numbers(part: SliceHealth, symptom: Symptom) -> str:
    """Return the count then and now, such as ``0 → 53``; without a baseline that of now."""
    count = count_of(part, symptom)
    now = count.count if count else 0
    if part.old_answers is None:
        return f"{now:,}"
    then = count.old_count if count else 0
    return f"{then or 0:,} → {now:,}"


def share(part: SliceHealth, symptom: Symptom) -> str:
    """Return which share of this run's answers has a symptom, such as ``12%``; empty for none."""
    count = count_of(part, symptom)
    if count is None or not count.count:
        return ""
    return f"{100 * count.count / part.answers:.0f}%"


def table(report: Report) -> Sequence[Sequence[str]]:
    """Return the rows of a table: slice, answers, and the numbers of each symptom shown."""
    shown = shown_symptoms(report)
    rows = []
    for part in ill_slices(report):
        cells = [numbers(part, symptom) for symptom in shown]
        rows.append([part.name, f"{part.answers:,}", *cells])
    return rows
