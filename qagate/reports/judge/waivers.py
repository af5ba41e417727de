"""Which slices' grades count as read although no label measures whoever gave them.

Nothing measures code, so a slice that code grades is not asked about here. A team may waive the
measurement of a judge by name, and only where it has no labels: beside labels that show errors, a
waiver would hide them. And the placeholder run, in which rules grade the recorded answers that come
with this package, shows how everything works before a model is named. It is known by the content of
each row, so that a file of one's own under the same name is none.
"""

from collections.abc import Iterable, Sequence
from functools import cache

from qagate.bundled import bundled_dataset
from qagate.cases.config import load_dataset
from qagate.cases.dataset import DATASET_FILE, Dataset, Slice
from qagate.cases.loading import load_cases
from qagate.evaluators.core import LEXICAL, RECORDED, QAError
from qagate.reports.run.record import Record

PLACEHOLDER = "rules grade bundled answers as a placeholder"
"""The waiver of a placeholder run."""
UNMEASURED = (
    "judge: unmeasured; no labels show how it errs, and its gates decide all the same"
)
"""The waiver that a data set declares."""


def waiver_of(
    dataset: Dataset,
    slice_: Slice,
    records: Sequence[Record],
    judge: str,
    *,
    has_labels: bool,
) -> str:
    """Return why the grades of a slice count as read; empty where labels have to show it."""
    if is_placeholder(slice_, records, judge):
        return PLACEHOLDER
    if dataset.judge_unmeasured and not has_labels:
        return UNMEASURED
    return ""


def is_placeholder(slice_: Slice, records: Sequence[Record], judge: str) -> bool:
    """Return whether rules grade nothing but recorded answers that come with this package."""
    if judge != LEXICAL or not slice_.kind.by_rubric:
        return False
    if any(record.model not in ("", RECORDED) for record in records):
        return False
    return are_bundled_answers(
        slice_, ((record.digest, record.answer) for record in records)
    )


def are_bundled_answers(
    slice_: Slice, answers: Iterable[tuple[str, str | None]]
) -> bool:
    """Return whether all answers, with the digests of their items, come with this package.

    Items without an answer say nothing, and some answer there must be.
    """
    bundled = _bundled_answers(slice_.dataset, slice_.language)
    found = {(digest, answer) for digest, answer in answers if answer is not None}
    return bool(found) and found <= bundled


@cache
def _bundled_answers(dataset: str, language: str) -> frozenset[tuple[str, str | None]]:
    """Return the digest and the recorded answer of each bundled row."""
    folder = bundled_dataset(dataset)
    if folder is None:
        return frozenset()
    try:
        slice_ = load_dataset(folder / DATASET_FILE).slices.get(language)
        if slice_ is None:
            return frozenset()
        cases = load_cases(slice_)
    except QAError:
        return frozenset()
    return frozenset(
        (case.digest, case.recorded) for case in cases if case.recorded is not None
    )
