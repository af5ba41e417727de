"""Checks of items against each other: repeats, contradictions, leaks, balance of classes."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from cases.check.findings import Note, Subject, error, warning
from cases.dataset import Slice
from evaluators.core import GRADES, NO, YES, Case
from evaluators.judges.lexical.folding import plain, read, without
from evaluators.judges.lexical.language_tables import Tables, tables
from evaluators.text import shown

SIMILAR = 0.8
"""From which weighted Jaccard similarity on two questions are held to be nearly the same."""
MOST = 50
"""With how many earlier questions that share a rare word one is compared."""

FEWEST_LETTERS = 4
"""A gold of fewer letters stands in many questions by chance."""
FEWEST = 10
"""Below so many items a share says nothing."""
YES_SHARE = (0.4, 0.6)
LEAST_GRADE = 0.1

_OUTER = ".,;:!?\"'`“”„«»()[]"

Bag = frozenset[str]


def duplicates(subject: Subject) -> Iterator[Note]:
    """Yield the items that ask and expect the same as one before."""
    for before, case in _repeats(subject, contradicting=False):
        message = f"the same item as row {before.row}: {shown(case.question)}; keep one"
        yield error(case.row, message)


def conflicts(subject: Subject) -> Iterator[Note]:
    """Yield the items that ask the same as one before and expect something else."""
    for before, case in _repeats(subject, contradicting=True):
        mine, other = (one.label or one.expected for one in (case, before))
        message = (
            f"the same question as row {before.row} has gold {shown(mine)} here and "
            f"{shown(other)} there; correct one or word the question more exactly"
        )
        yield error(case.row, message)


def _repeats(subject: Subject, *, contradicting: bool) -> Iterator[tuple[Case, Case]]:
    """Yield pairs of the first item with a question and each later one with the same."""
    own = subject.slice_
    first: dict[tuple[str, ...], Case] = {}
    for case in subject.cases:
        before = first.setdefault(_key(own, case), case)
        if before is not case and _contradict(own, before, case) == contradicting:
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
    """Return whether two items have no gold in common, articles aside."""
    if slice_.kind.has_labels:
        return one.label != two.label
    articles = tables(slice_.language).words("articles")
    forms = (
        {without(read(gold), articles).words or (gold,) for gold in case.golds}
        for case in (one, two)
    )
    return not set.intersection(*forms)


def near_duplicates(subject: Subject) -> Iterator[Note]:
    """Yield the items whose question has nearly the words of one before, with the same answer.

    Words count by their rarity in the slice; figures must agree, for they make another question.
    Judged items are left out: they repeat a question on purpose.
    """
    if not subject.slice_.kind.answered:
        return
    cases = list({_key(subject.slice_, case): case for case in subject.cases}.values())
    bags = [frozenset(read(case.question).words) for case in cases]
    weights = word_weights(bags)
    found: set[int] = set()
    for first, second in _candidates(bags, weights):
        before, case = cases[first], cases[second]
        if second in found or not _alike(bags[first], bags[second], weights):
            continue
        # a passage is part of the question
        same_question = _flat(before.context) == _flat(case.context)
        rated = subject.slice_.kind.rated
        if same_question and (rated or not _contradict(subject.slice_, before, case)):
            found.add(second)
            message = (
                f"nearly the question of row {before.row}, {shown(before.question)}, with the "
                f"same answer: {shown(case.question)}; keep one"
            )
            yield warning(case.row, message)


def word_weights(bags: Sequence[Bag]) -> Mapping[str, float]:
    """Return how much each word counts: the more, the fewer bags have it."""
    count = Counter(word for bag in bags for word in bag)
    return {word: math.log1p(len(bags) / times) for word, times in count.items()}


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


def leaked_golds(subject: Subject) -> Iterator[Note]:
    """Yield the items whose question holds a gold form of four letters or more as whole words.

    A question that offers a choice ("X or Y") names its answer rightly, and yes and no are told
    by no question.
    """
    if subject.slice_.kind.words:
        return
    own = tables(subject.slice_.language)
    for case in subject.cases:
        words = read(case.question).words
        if own.words("alternatives") & set(words[1:]):  # as a first word it may only ask
            continue
        question = f" {' '.join(words)} "
        gold = next((gold for gold in case.golds if _core(gold, own) in question), "")
        if gold:
            message = (
                f"gold {shown(gold)} stands in the question {shown(case.question)}; "
                "reword the question or drop this form"
            )
            yield warning(case.row, message)


def _core(gold: str, own: Tables) -> str:
    """Return a gold's folded words between spaces; where they are too short, what no text holds."""
    words = without(read(gold), own.words("articles")).words
    letters = sum(len(word) for word in words if word.isalpha())
    return f" {' '.join(words)} " if letters >= FEWEST_LETTERS else "\n"


def balance(subject: Subject) -> Iterator[Note]:
    """Yield how a slice's classes are out of balance: yes and no, or the labels of judged items."""
    counts = Counter(case.label or "" for case in subject.cases)
    if len(subject.cases) < FEWEST:
        return
    if subject.slice_.kind.words:
        share = counts[YES] / counts.total()
        if not YES_SHARE[0] <= share <= YES_SHARE[1]:
            what = f"{share:.0%} of the answers are yes ({counts[YES]} yes, {counts[NO]} no)"
            wanted = f"{YES_SHARE[0]:.0%} to {YES_SHARE[1]:.0%}"
            yield warning(0, f"{what}; add items until it is {wanted}")
    elif not subject.slice_.kind.answered and counts.keys() <= set(GRADES):
        for grade in GRADES:
            if counts[grade] / counts.total() < LEAST_GRADE:
                what = f"{counts[grade]} of {counts.total()} labels are {grade}"
                yield warning(0, f"{what}; add items until it is {LEAST_GRADE:.0%}")
