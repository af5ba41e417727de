"""Every check by its name, and the running of them."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from cases.config import FILE
from cases.dataset import Dataset
from cases.tools.check import (
    balance,
    facts,
    gaps,
    gates,
    homoglyphs,
    leaks,
    raters,
    repeats,
    spelling,
    typography,
)
from cases.tools.check.findings import Finding, Note, Subject

SLICE_CHECKS: Mapping[str, Callable[[Subject], Iterable[Note]]] = {
    "duplicate": repeats.duplicates,
    "conflict": repeats.conflicts,
    "near-duplicate": repeats.near_duplicates,
    "leak": leaks.leaked_golds,
    "balance": balance.balance,
    "missing-field": gaps.missing_fields,
    "aliases": gaps.aliases,
    "id": gaps.ids,
    "mixed-scripts": homoglyphs.mixed_scripts,
    "look-alike": homoglyphs.look_alikes,
    "invisible": typography.invisible,
    "normal-form": typography.normal_form,
    "spaces": typography.spaces,
    "quotes": typography.quotes,
    "alphabet": spelling.alphabet,
    "orthography": spelling.orthography,
    "language": spelling.language,
    "repeated-fact": facts.repeated_facts,
    "label-source": raters.label_sources,
    "raters": raters.rater_agreement,
    "lone-label": raters.lone_labels,
}
"""What is checked in each slice."""

DATASET_CHECKS: Mapping[str, Callable[[Dataset, Mapping[str, Subject]], Iterable[Note]]] = {
    "missing-fact": facts.missing_facts,
    "breakdown": gaps.unused_breakdowns,
    "gates": gates.ungated,
    "margin": gates.narrow_margins,
}
"""What is checked over a dataset's slices together; ``subjects`` are by language."""


def check_slice(subject: Subject) -> list[Finding]:
    """Return what is wrong with one slice, in no order."""
    file = subject.slice_.path
    return [
        _finding(note, name, file)
        for name, check in SLICE_CHECKS.items()
        for note in check(subject)
    ]


def check_dataset(dataset: Dataset, subjects: Mapping[str, Subject]) -> list[Finding]:
    """Return what is wrong with a dataset as a whole, in no order."""
    file = dataset.folder / FILE
    return [
        _finding(note, name, file)
        for name, check in DATASET_CHECKS.items()
        for note in check(dataset, subjects)
    ]


def _finding(note: Note, check: str, file: Path) -> Finding:
    return Finding(
        severity=note.severity,
        file=note.file or file,
        row=note.row,
        check=check,
        message=note.message,
    )
