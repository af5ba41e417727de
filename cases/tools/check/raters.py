"""Labels given beforehand: where they come from, and whether the raters agree."""

from collections.abc import Iterator
from itertools import combinations

from cases.loading import RATERS
from cases.tools.check.findings import Note, Subject, rows_listed, warning
from cases.tools.check.gaps import has_field
from evaluators.core import Case
from evaluators.text import listed, shown

SOURCE = "label_source"
AGREEMENT = 0.8
"""The lowest share of equal pairs of labels that passes without a word."""


def label_sources(subject: Subject) -> Iterator[Note]:
    """Yield that judged rows do not say who gave their labels."""
    if subject.slice_.kind.answered:
        return
    bare = [case.row for case in subject.cases if not has_field(case, SOURCE)]
    if bare:
        message = (
            f"{SOURCE!r} is missing in {len(bare)} of {len(subject.cases)} rows "
            f"({rows_listed(bare)}); say who gave the label, for instance 'human'"
        )
        yield warning(bare[0] if len(bare) < len(subject.cases) else 0, message)


def rater_agreement(subject: Subject) -> Iterator[Note]:
    """Yield that a slice's raters agree too seldom; ratings, which differ by degrees, are left."""
    if subject.slice_.kind.answered:
        return
    rated = [labels for case in subject.cases if (labels := _labels(case))]
    pairs = [pair for labels in rated for pair in combinations(labels, 2)]
    if not pairs or any(label.isdigit() for label in rated[0]):
        return
    equal = sum(one == two for one, two in pairs)
    if equal < AGREEMENT * len(pairs):
        message = (
            f"the raters agree in {equal} of {len(pairs)} pairs of labels, below {AGREEMENT:.0%}; "
            "settle the rules of labelling and label again"
        )
        yield warning(0, message)


def lone_labels(subject: Subject) -> Iterator[Note]:
    """Yield the rows whose label no rater gave; for ratings, one outside of what they gave."""
    if subject.slice_.kind.answered:
        return
    for case in subject.cases:
        labels = _labels(case)
        if labels and not _is_among(case.label or "", labels):
            given = listed(dict.fromkeys(labels))
            message = f"label {shown(case.label)} is that of no rater ({given}); correct it"
            yield warning(case.row, message)


def _labels(case: Case) -> list[str]:
    names = sorted(name for name in case.metadata if _is_rater(name))
    return [str(case.metadata[name]) for name in names]


def _is_rater(name: str) -> bool:
    return name.startswith(RATERS) and name.removeprefix(RATERS).isdigit()


def _is_among(label: str, labels: list[str]) -> bool:
    numbers = [int(given) for given in labels if given.isdigit()]
    if numbers and label.isdigit():
        return min(numbers) <= int(label) <= max(numbers)
    return label in labels
