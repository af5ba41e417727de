"""Every check by its name, and running them over data sets or a data file."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from cases.check import item_checks, set_checks
from cases.check.item_checks import Finding, Subject, read_subject
from cases.check.set_checks import DIFFICULTY_DATE
from cases.config import FILE, load_dataset, with_items
from cases.dataset import Dataset, Slice
from evaluators.core import UsageError
from evaluators.reading import load_settings
from evaluators.text import hint, shown

BUNDLED = Path(__file__).parents[1]

SLICE_CHECKS: Mapping[str, Callable[[Subject], Iterable[Finding]]] = {
    "duplicate": item_checks.duplicates,
    "conflict": item_checks.conflicts,
    "leak": item_checks.leaks,
    "id": item_checks.ids,
    "superseded": item_checks.superseded,
    "overlap": item_checks.overlap,
    "loose-gold": item_checks.loose_golds,
    "mixed-scripts": item_checks.mixed_scripts,
    "invisible": item_checks.invisible,
    "language": item_checks.other_language,
    "balance": set_checks.balance,
    "cue-word": set_checks.cue_words,
    "closed-book": set_checks.closed_book,
    "twins": set_checks.twins,
    "cluster": set_checks.unclustered,
    "too-easy": set_checks.too_easy,
}
"""What is checked in each slice."""

DATASET_CHECKS: Mapping[str, Callable[[Dataset, Mapping[str, Subject]], Iterable[Finding]]] = {
    "gates": set_checks.ungated,
    "margin": set_checks.narrow_margins,
}
"""What is checked over the slices of a data set together; subjects are by language."""

DATED_CHECKS = {"old-difficulty": set_checks.old_difficulty}
"""What is checked there of the date in ``check: {difficulty_date: …}``."""

GONE = (
    *("near-duplicate", "missing-field", "aliases", "look-alike", "normal-form", "spaces"),
    *("quotes", "alphabet", "orthography", "repeated-fact", "function-word", "coarse-gold"),
    *("missing-source", "stale", "amended-act", "question-type", "label-source", "raters"),
    *("lone-label", "missing-fact", "breakdown"),
)
"""Checks of earlier versions, which a ``dataset.yaml`` may still waive."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What was found in data files."""

    files: int = 0
    items: int = 0
    findings: frozenset[Finding] = frozenset()
    refused: tuple[str, ...] = ()
    """Messages about files that could not be loaded."""
    waived: tuple[str, ...] = ()
    """What data sets ask not to be told, with the reason."""

    @property
    def lines(self) -> list[str]:
        """The findings in the order of files and rows."""
        ordered = sorted(self.findings, key=lambda one: (str(one.file), one.row, one.line))
        return [finding.line for finding in ordered]


def check_datasets(paths: Sequence[Path]) -> CheckResult:
    """Check the data sets named, or in these folders, each once. Raises UsageError."""
    here = Path.cwd()
    bundled = BUNDLED.relative_to(here) if BUNDLED.is_relative_to(here) else BUNDLED
    files: dict[Path, None] = {}
    for path in paths or [bundled]:
        below = sorted(path.rglob(FILE)) if path.is_dir() else [path]
        if not below:
            raise UsageError(f"{path}: no {FILE} in this folder or below it; name another")
        if below[0].name != FILE:
            what = f"neither a folder nor a {FILE}"
            raise UsageError(f"{path}: {what}; say --as DATASET:LANG to check a data file")
        files |= dict.fromkeys(below)
    results = [_check_dataset(load_dataset(file)) for file in files]
    return CheckResult(
        files=sum(result.files for result in results),
        items=sum(result.items for result in results),
        findings=frozenset().union(*(result.findings for result in results)),
        refused=tuple(message for result in results for message in result.refused),
        waived=tuple(message for result in results for message in result.waived),
    )


def check_files(paths: Sequence[Path], as_: str) -> CheckResult:
    """Check data files as items of ``DATASET:LANG``, without its gates. Raises UsageError."""
    if not paths:
        raise UsageError(f"check: --as {as_}: no file given; name the data files to check")
    name, colon, language = as_.partition(":")
    bundled = {path.parent.name: path for path in sorted(BUNDLED.rglob(FILE))}
    if name not in bundled or not colon:
        raise UsageError(f"check: --as {shown(as_)}: want DATASET:LANG; {hint(name, bundled)}")
    dataset = load_dataset(bundled[name])
    slices = [with_items(dataset, language, path).slices[language] for path in paths]
    return _check_slices(slices)[0]


def findings(
    checks: Mapping[str, Callable[..., Iterable[Finding]]], file: Path, *subjects: object
) -> list[Finding]:
    """Return what these checks find in subjects, with the names of check and file, in no order."""
    return [
        replace(finding, check=name, file=file)
        for name, check in checks.items()
        for finding in check(*subjects)
    ]


def _check_dataset(dataset: Dataset) -> CheckResult:
    own = load_settings(dataset.folder / FILE).part("check")
    own.check_keys(("waive", DIFFICULTY_DATE, "stale_after"))  # the last is of earlier versions
    waive = own.part("waive")
    waive.check_keys((*SLICE_CHECKS, *DATASET_CHECKS, *DATED_CHECKS, *GONE))
    reasons = {name: waive.text(name) for name in waive.values if name not in GONE}
    result, subjects = _check_slices(dataset.slices.values())
    try:
        text = own.text(DIFFICULTY_DATE)
        measured = date.fromisoformat(text) if text else None
    except ValueError:
        raise own.problem(DIFFICULTY_DATE, f"want a date YYYY-MM-DD, got {shown(text)}") from None
    dated = findings(DATED_CHECKS, own.path, subjects, measured)
    whole = findings(DATASET_CHECKS, own.path, dataset, subjects)
    found = result.findings.union(whole, dated)
    counts = Counter(finding.check for finding in found)
    return replace(
        result,
        findings=frozenset(finding for finding in found if finding.check not in reasons),
        waived=tuple(
            f"{waive.path}: {name}: waived, {counts[name]} not shown: {reason}"
            for name, reason in reasons.items()
        ),
    )


def _check_slices(slices: Collection[Slice]) -> tuple[CheckResult, dict[str, Subject]]:
    """Return what is wrong with slices one by one, and those that can be loaded, by language."""
    subjects, refused, items = {}, [], 0
    found: list[Finding] = []
    for slice_ in slices:
        try:
            subject = read_subject(slice_)
        except UsageError as problem:
            refused.append(str(problem))
            continue
        subjects[slice_.language] = subject
        items += len(subject.cases)
        found += findings(SLICE_CHECKS, slice_.path, subject)
    return CheckResult(len(slices), items, frozenset(found), tuple(refused)), subjects
