"""Every check by its name, and running them over data sets or a data file."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cases.check import (
    cue_checks,
    field_checks,
    gold_checks,
    item_checks,
    overlap_checks,
    power_checks,
    text_checks,
    upkeep_checks,
)
from cases.check.findings import CheckSettings, Finding, Note, Subject, read_subject
from cases.config import FILE, load_dataset, with_items
from cases.dataset import Dataset
from evaluators.core import UsageError
from evaluators.settings import load_settings
from evaluators.text import hint, shown

BUNDLED = Path(__file__).parents[1]

SLICE_CHECKS: Mapping[str, Callable[[Subject], Iterable[Note]]] = {
    "duplicate": item_checks.duplicates,
    "conflict": item_checks.conflicts,
    "near-duplicate": item_checks.near_duplicates,
    "leak": item_checks.leaked_golds,
    "balance": item_checks.balance,
    "missing-field": field_checks.missing_fields,
    "aliases": field_checks.aliases,
    "id": field_checks.ids,
    "mixed-scripts": text_checks.mixed_scripts,
    "look-alike": text_checks.look_alikes,
    "invisible": text_checks.invisible,
    "normal-form": text_checks.normal_form,
    "spaces": text_checks.spaces,
    "quotes": text_checks.quotes,
    "alphabet": text_checks.alphabet,
    "orthography": text_checks.orthography,
    "language": text_checks.language,
    "repeated-fact": field_checks.repeated_facts,
    "function-word": gold_checks.function_words,
    "coarse-gold": gold_checks.coarse_golds,
    "missing-source": upkeep_checks.missing_sources,
    "stale": upkeep_checks.stale_items,
    "amended-act": upkeep_checks.amended_acts,
    "too-easy": power_checks.too_easy,
    "overlap": overlap_checks.calibration_overlap,
    "cue-word": cue_checks.cue_words,
    "closed-book": cue_checks.closed_book,
    "question-type": cue_checks.types_of_question,
    "twins": cue_checks.twins,
    "cluster": cue_checks.unclustered_twins,
    "label-source": field_checks.label_sources,
    "raters": field_checks.rater_agreement,
    "lone-label": field_checks.lone_labels,
}
"""What is checked in each slice."""

DATASET_CHECKS: Mapping[str, Callable[[Dataset, Mapping[str, Subject]], Iterable[Note]]] = {
    "missing-fact": field_checks.missing_facts,
    "breakdown": field_checks.unused_breakdowns,
    "gates": field_checks.ungated,
    "margin": field_checks.narrow_margins,
}
"""What is checked over a data set's slices together; ``subjects`` are by language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What was found, in order, in so many files and items.

    ``refused`` holds the messages about files that could not be loaded, ``waived`` what data sets
    ask not to be told, with the reason.
    """

    files: int = 0
    items: int = 0
    findings: tuple[Finding, ...] = ()
    refused: tuple[str, ...] = ()
    waived: tuple[str, ...] = ()


def check_datasets(paths: Sequence[Path]) -> CheckResult:
    """Check the data sets that are named or that are in the folders named, each once.

    Raises UsageError for a path that is neither, or a ``dataset.yaml`` that cannot be loaded.
    """
    here = Path.cwd()
    bundled = BUNDLED.relative_to(here) if BUNDLED.is_relative_to(here) else BUNDLED
    files = dict.fromkeys(file for path in paths or [bundled] for file in _below(path))
    return _joined([_check_dataset(load_dataset(file)) for file in files])


def check_files(paths: Sequence[Path], as_: str) -> CheckResult:
    """Check data files as the items of a bundled data set's language, without its gates.

    ``as_`` is ``DATASET:LANG``. Raises UsageError where there is no such data set, or no path.
    """
    if not paths:
        raise UsageError(f"check: --as {as_}: no file given; name the data files to check")
    name, colon, language = as_.partition(":")
    bundled = {path.parent.name: path for path in sorted(BUNDLED.rglob(FILE))}
    if name not in bundled or not colon:
        raise UsageError(f"check: --as {shown(as_)}: want DATASET:LANG; {hint(name, bundled)}")
    dataset = load_dataset(bundled[name])
    results = []
    for path in paths:
        try:
            slice_ = with_items(dataset, language, path).slices[language]
            subject = read_subject(slice_, read_settings(dataset))
        except UsageError as problem:
            results.append(CheckResult(files=1, refused=(str(problem),)))
        else:
            findings = tuple(check_slice(subject))
            results.append(CheckResult(files=1, items=len(subject.cases), findings=findings))
    return _joined(results)


def read_settings(dataset: Dataset) -> CheckSettings:
    """Return what a data set says to its checks. Raises UsageError for what is not known."""
    part = load_settings(dataset.folder / FILE).part("check")
    part.check_keys(("stale_after", "waive"))
    waived = part.part("waive")
    waived.check_keys((*SLICE_CHECKS, *DATASET_CHECKS))
    return CheckSettings(
        stale_after=part.whole("stale_after", 1, math.inf) or CheckSettings().stale_after,
        waived={name: waived.text(name) for name in waived.values},
    )


def check_slice(subject: Subject) -> list[Finding]:
    """Return what is wrong with one slice, in no order."""
    return _findings(SLICE_CHECKS, subject.slice_.path, subject)


def check_dataset(dataset: Dataset, subjects: Mapping[str, Subject]) -> list[Finding]:
    """Return what is wrong with a data set as a whole, in no order."""
    return _findings(DATASET_CHECKS, dataset.folder / FILE, dataset, subjects)


def _findings(
    checks: Mapping[str, Callable[..., Iterable[Note]]], file: Path, *subjects: object
) -> list[Finding]:
    return [
        Finding(
            severity=note.severity,
            file=note.file or file,
            row=note.row,
            check=name,
            message=note.message,
        )
        for name, check in checks.items()
        for note in check(*subjects)
    ]


def _below(path: Path) -> list[Path]:
    files = sorted(path.rglob(FILE)) if path.is_dir() else [path]
    if not files:
        raise UsageError(f"{path}: no {FILE} in this folder or below it; name another")
    if files[0].name != FILE:
        raise UsageError(
            f"{path}: neither a folder nor a {FILE}; say --as DATASET:LANG to check a data file"
        )
    return files


def _check_dataset(dataset: Dataset) -> CheckResult:
    subjects: dict[str, Subject] = {}
    refused, own = [], read_settings(dataset)
    for language, slice_ in dataset.slices.items():
        try:
            subjects[language] = read_subject(slice_, own)
        except UsageError as problem:
            refused.append(str(problem))
    findings = [finding for subject in subjects.values() for finding in check_slice(subject)]
    findings += check_dataset(dataset, subjects)
    counts = Counter(finding.check for finding in findings)
    return CheckResult(
        files=len(dataset.slices),
        items=sum(len(subject.cases) for subject in subjects.values()),
        findings=tuple(finding for finding in findings if finding.check not in own.waived),
        refused=tuple(refused),
        waived=tuple(
            f"{dataset.folder / FILE}: {name}: waived, {counts[name]} not shown: {reason}"
            for name, reason in own.waived.items()
        ),
    )


def _joined(results: Sequence[CheckResult]) -> CheckResult:
    findings = {finding for result in results for finding in result.findings}
    return CheckResult(
        files=sum(result.files for result in results),
        items=sum(result.items for result in results),
        findings=tuple(sorted(findings, key=Finding.place)),
        refused=tuple(message for result in results for message in result.refused),
        waived=tuple(message for result in results for message in result.waived),
    )
