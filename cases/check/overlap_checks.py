"""Checks of whether a judge is measured, or attacked, on the items that it is to decide about."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cases.attack_pack import LANGUAGES, load_bundled
from cases.check.alphabets import language_of
from cases.check.findings import Note, Subject, warning
from cases.config import FILE, load_dataset
from cases.loading import load_cases
from evaluators.core import Case
from evaluators.judges.lexical.folding import plain, read
from evaluators.judges.lexical.language_tables import tables
from evaluators.text import shown

JUDGES = Path(__file__).parents[1] / "judges"
STEM = 5
"""Letters by which two forms of a word are taken for one."""
SHARED = 0.4
"""The share of the shorter question's stems that make a second question about a gold the same."""
FEWEST = 2
"""Stems that two questions about one fact share at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """An item that measures or attacks judges: where it stands, and what is compared of it."""

    name: str
    question: str
    golds: frozenset[str]
    stems: frozenset[str]


def calibration_overlap(subject: Subject) -> Iterator[Note]:
    """Yield the items that also measure or attack judges: of them a judge is known too well.

    Those have the same question, or a question with much the same words and the same gold. They are
    compared with the bundled labelled items and attacks of the language.
    """
    slice_ = subject.slice_
    if not slice_.kind.by_rubric:
        return
    known = _known(slice_.language)
    for case in subject.cases:
        own = _compared("", case)
        found = [one.name for one in known if _is_same(own, one)]
        if found:
            message = (
                f"{shown(case.question)} is also asked of judges, in {', '.join(found[:3])}; keep "
                "it in one of the two, or the judge is measured where it decides"
            )
            yield warning(case.row, message)


@cache
def _known(language: str) -> Sequence[Known]:
    """Return the bundled items that measure or attack judges in a language."""
    found = []
    for file in sorted(JUDGES.rglob(FILE)):
        dataset = load_dataset(file)
        if own := dataset.slices.get(language):
            found += [_compared(f"{own.name} row {case.row}", case) for case in load_cases(own)]
    if language in LANGUAGES:
        probes = load_bundled([language])
        found += [_compared(f"attack {probe.case.id}", probe.case) for probe in probes]
    return found


def _compared(name: str, case: Case) -> Known:
    words = set(read(case.question).words) - _light(case.language)
    return Known(
        name=name,
        question=plain(case.question),
        golds=frozenset(" ".join(read(gold).words) for gold in case.golds),
        stems=frozenset(word[:STEM] for word in words),
    )


@cache
def _light(language: str) -> frozenset[str]:
    """Return the frequent words of a language, as they are compared."""
    own = language_of(language)
    stops = read(" ".join(own.stops if own else ())).words
    return tables(language).words("function") | tables(language).words("articles") | set(stops)


def _is_same(one: Known, two: Known) -> bool:
    if one.question == two.question:
        return True
    both = one.stems & two.stems
    enough = max(FEWEST, SHARED * min(len(one.stems), len(two.stems)))
    return len(both) >= enough and not one.golds.isdisjoint(two.golds)
