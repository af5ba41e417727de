"""Items that stand more than once in a slice, word for word or nearly."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from cases.dataset import Slice
from cases.tools.check.findings import Note, Subject, error, warning
from evaluators.core import Case
from evaluators.judges.lexical.folding import plain, read, without
from evaluators.judges.lexical.language_tables import tables
from evaluators.text import shown

SIMILAR = 0.8
"""From which weighted Jaccard similarity on two questions are held to be nearly the same."""
MOST = 50
"""With how many earlier questions that share a rare word one is compared."""

_OUTER = ".,;:!?\"'`“”„«»()[]"

Bag = frozenset[str]


def duplicates(subject: Subject) -> Iterator[Note]:
    """Yield the items that ask and expect the same as one before."""
    for before, case in _repeats(subject):
        if not _contradict(subject.slice_, before, case):
            message = f"the same item as row {before.row}: {shown(case.question)}; keep one"
            yield error(case.row, message)


def conflicts(subject: Subject) -> Iterator[Note]:
    """Yield the items that ask the same as one before and expect something else."""
    for before, case in _repeats(subject):
        if _contradict(subject.slice_, before, case):
            mine, other = _gold(case), _gold(before)
            message = (
                f"the same question as row {before.row} has gold {shown(mine)} here and "
                f"{shown(other)} there; correct one or word the question more exactly"
            )
            yield error(case.row, message)


def _repeats(subject: Subject) -> Iterator[tuple[Case, Case]]:
    """Yield pairs of the first item with a question and each later one with the same."""
    first: dict[tuple[str, ...], Case] = {}
    for case in subject.cases:
        before = first.setdefault(_key(subject.slice_, case), case)
        if before is not case:
            yield before, case


def _key(slice_: Slice, case: Case) -> tuple[str, ...]:
    asked = (_flat(case.question), _flat(case.context))
    if slice_.kind.answered:  # there the item is an answer, and raters may see other golds
        return asked
    return (*asked, _flat(case.recorded or ""), *sorted(map(_flat, case.golds)))


def _flat(text: str) -> str:
    """Return a text without case and outer marks of its words; ``C++`` stays another than ``C``."""
    return " ".join(word.strip(_OUTER) for word in plain(text).split()) or text


def _contradict(slice_: Slice, one: Case, two: Case) -> bool:
    if slice_.kind.has_labels:
        return one.label != two.label
    articles = tables(slice_.language).words("articles")
    return not _forms(one, articles) & _forms(two, articles)


def _forms(case: Case, articles: frozenset[str]) -> set[tuple[str, ...]]:
    """Return the words of each gold without articles; a gold without words stands for itself."""
    return {without(read(gold), articles).words or (gold,) for gold in case.golds}


def _gold(case: Case) -> str:
    return case.label or case.expected


def near_duplicates(subject: Subject) -> Iterator[Note]:
    """Yield the items whose question has nearly the words of one before, with the same answer.

    Words count by their rarity in the slice; figures must agree, for they make another question.
    Judged items are left out: they repeat a question on purpose.
    """
    if not subject.slice_.kind.answered:
        return
    cases = list({_key(subject.slice_, case): case for case in subject.cases}.values())
    bags = [frozenset(read(case.question).words) for case in cases]
    weights = _weights(bags)
    told: set[int] = set()
    for first, second in _candidates(bags, weights):
        before, case = cases[first], cases[second]
        if second in told or not _alike(bags[first], bags[second], weights):
            continue
        if _same_answer(subject.slice_, before, case):
            told.add(second)
            message = (
                f"nearly the question of row {before.row}, {shown(before.question)}, with the "
                f"same answer: {shown(case.question)}; keep one"
            )
            yield warning(case.row, message)


def _weights(bags: Sequence[Bag]) -> Mapping[str, float]:
    count = Counter(word for bag in bags for word in bag)
    return {word: math.log1p(len(bags) / count[word]) for word in count}


def _candidates(bags: Sequence[Bag], weights: Mapping[str, float]) -> Iterator[tuple[int, int]]:
    """Yield index pairs of bags that share one of their rarest words.

    Two bags as similar as ``SIMILAR`` share a word of these prefixes (Chaudhuri et al. 2006,
    ICDE, "A primitive operator for similarity joins"), so only ``MOST`` can lose a pair.
    """
    holders: dict[str, list[int]] = defaultdict(list)
    for index, bag in enumerate(bags):
        prefix = _prefix(bag, weights)
        for other in sorted({other for word in prefix for other in holders[word][-MOST:]}):
            yield other, index
        for word in prefix:
            holders[word].append(index)


def _prefix(bag: Bag, weights: Mapping[str, float]) -> list[str]:
    """Return the rarest words, so many that the rest alone cannot make a bag similar."""
    chosen = []
    left = total = _weight(bag, weights)
    for word in sorted(bag, key=lambda word: (-weights[word], word)):
        if left < SIMILAR * total:
            break
        chosen.append(word)
        left -= weights[word]
    return chosen


def _weight(bag: Iterable[str], weights: Mapping[str, float]) -> float:
    return math.fsum(weights[word] for word in bag)


def _alike(one: Bag, two: Bag, weights: Mapping[str, float]) -> bool:
    if any(word.isdigit() for word in one ^ two):
        return False
    return _weight(one & two, weights) >= SIMILAR * _weight(one | two, weights)


def _same_answer(slice_: Slice, one: Case, two: Case) -> bool:
    """Return whether two similar questions have one answer; a passage is part of the question."""
    if _flat(one.context) != _flat(two.context):
        return False
    return slice_.kind.rated or not _contradict(slice_, one, two)
