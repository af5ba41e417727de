"""Checks of yes/no items: whether their questions give the answer away, and their twins.

A set whose answers follow from a word of the question measures that word and no reading.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from cases.check.alphabets import words
from cases.check.field_checks import has_field
from cases.check.findings import Note, Subject, error, rows_listed, warning
from evaluators.core import NO, YES, Case
from evaluators.text import shown

BAR = 0.58
"""The highest share of answers that a rule without the passage may give."""
FEWEST = 150
"""Below so many items the best of many words is above the bar by chance."""
SURE = 2.33
"""Standard errors above one half at which a predictor is right by more than luck, one in 100."""
TYPES = (("negation", "denial"), ("comparison",), ("time",), ("count", "number"))
"""The types of question that trip models most, each with another name of it."""
LEAST_TYPE = 0.1
YES_SHARE = (0.3, 0.7)
FEWEST_OF_TYPE = 30
TWINS = ("twin", "twin_id")
LINKS = (*TWINS, "story_id")
"""Fields whose value says which items are about one story."""
ONE_FACT = 0.7
"""The least share of words in their order that twin passages have in common."""


def cue_words(subject: Subject) -> Iterator[Note]:
    """Yield the one word whose presence in the question answers too many items.

    Shares are balanced: yes and no count alike, however many there are of each.
    """
    items = _labelled(subject)
    if len(items) < FEWEST:
        return
    totals = Counter(case.label for case, _ in items)
    counts = Counter((word, case.label) for case, own in items for word in own)
    gaps = {
        word: counts[word, YES] / totals[YES] - counts[word, NO] / totals[NO]
        for word in sorted({word for word, _ in counts})
    }
    best = max(gaps, key=lambda word: (abs(gaps[word]), word))
    share = (1 + abs(gaps[best])) / 2
    if share > BAR:
        said = "yes" if gaps[best] > 0 else "no"
        message = (
            f"the word {shown(best)} in a question means {said}: that rule alone answers "
            f"{share:.0%} right, above {BAR:.0%} ({counts[best, YES]} yes, {counts[best, NO]} no); "
            "reword questions or add twins with the other answer"
        )
        yield warning(0, message)


def closed_book(subject: Subject) -> Iterator[Note]:
    """Yield that the words of the questions answer too many items without their passages.

    A naive Bayes rule learns from all items but those of the same cluster (twins, for instance).
    """
    items = _labelled(subject)
    if len(items) < FEWEST:
        return
    margins = _margins(subject, items)
    right = [row for row, (label, margin) in margins.items() if (margin > 0) == (label == YES)]
    shares = []
    for answer in (YES, NO):
        of_answer = [row for row, (label, _) in margins.items() if label == answer]
        shares.append(len(set(right) & set(of_answer)) / len(of_answer))
    share = sum(shares) / 2
    if share > max(BAR, 0.5 + SURE * 0.5 / math.sqrt(len(items))):
        surest = sorted(right, key=lambda row: -abs(margins[row][1]))
        message = (
            f"the words of the questions alone answer {share:.0%} right, above {BAR:.0%}: "
            f"{len(right)} of {len(items)} items, most surely rows {rows_listed(surest, 10)}; "
            "reword those or add twins with the other answer"
        )
        yield warning(0, message)


def _labelled(subject: Subject) -> list[tuple[Case, frozenset[str]]]:
    """Return yes/no items with the words of their questions; none where one answer is missing."""
    if not subject.slice_.kind.words:
        return []
    items = [
        (case, frozenset(word.casefold() for word in words(case.question)))
        for case in subject.cases
        if case.label in (YES, NO)
    ]
    return items if len({case.label for case, _ in items}) > 1 else []


def _margins(
    subject: Subject, items: Sequence[tuple[Case, frozenset[str]]]
) -> Mapping[int, tuple[str, float]]:
    """Return, by row, the label and the log odds of yes by what other clusters teach."""
    totals = Counter(case.label for case, _ in items)
    counts = Counter((word, case.label) for case, own in items for word in own)
    clusters: dict[object, list[tuple[Case, frozenset[str]]]] = defaultdict(list)
    for case, own in items:
        clusters[subject.slice_.cluster_of(case)].append((case, own))
    found: dict[int, tuple[str, float]] = {}
    for members in clusters.values():
        size = Counter(case.label for case, _ in members)
        seen = Counter((word, case.label) for case, own in members for word in own)
        rates = _Rates(counts, totals, seen, size)
        found |= {case.row: (str(case.label), rates.log_odds(own)) for case, own in members}
    return found


@dataclass(frozen=True, slots=True)
class _Rates:
    """How often words stand in questions of either answer, those ``seen`` in one cluster aside."""

    counts: Counter[tuple[str, str | None]]
    totals: Counter[str | None]
    seen: Counter[tuple[str, str | None]]
    size: Counter[str | None]

    def log_odds(self, own: frozenset[str]) -> float:
        """Return the log odds of yes by these words, each rate smoothed by one."""
        return math.fsum(math.log(self._of(word, YES) / self._of(word, NO)) for word in own)

    def _of(self, word: str, answer: str) -> float:
        times = self.counts[word, answer] - self.seen[word, answer]
        return (times + 1) / (self.totals[answer] - self.size[answer] + 2)


def types_of_question(subject: Subject) -> Iterator[Note]:
    """Yield the types of question, by the column ``type``, that are rare or mean one answer."""
    typed = [(str(case.metadata.get("type") or ""), case) for case in subject.cases]
    counts = Counter(name for name, _ in typed if name)
    if not subject.slice_.kind.words or len(typed) < FEWEST or not counts:
        return
    for names in TYPES:
        count = sum(counts[name] for name in names)
        if count < LEAST_TYPE * len(typed):
            message = f"{count} of {len(typed)} questions are of type {names[0]!r}"
            yield warning(0, f"{message}; add some until it is {LEAST_TYPE:.0%}")
    for name, count in counts.items():
        yes = sum(case.label == YES for other, case in typed if other == name) / count
        if count >= FEWEST_OF_TYPE and not YES_SHARE[0] <= yes <= YES_SHARE[1]:
            message = f"{yes:.0%} of the {count} questions of type {shown(name)} are answered yes"
            yield warning(
                0, f"{message}; add items until it is {YES_SHARE[0]:.0%} to {YES_SHARE[1]:.0%}"
            )


def twins(subject: Subject) -> Iterator[Note]:
    """Yield the twins that are no pair of opposite answers to passages that differ in one fact."""
    if not subject.slice_.kind.words:
        return
    for field in TWINS:
        for name, pair in _linked(subject, field).items():
            rows = rows_listed(case.row for case in pair)
            if len(pair) != 2:
                message = f"{field} {shown(name)} is that of {len(pair)} rows ({rows})"
                yield error(pair[0].row, f"{message}; twins are two")
            elif pair[0].label == pair[1].label:
                message = f"the twins {shown(name)} (rows {rows}) have the same answer"
                yield error(pair[1].row, f"{message}; change the fact that decides it")
            elif not ONE_FACT <= _likeness(pair) < 1:
                message = f"the passages of the twins {shown(name)} (rows {rows}) "
                what = "are the same" if _likeness(pair) == 1 else "differ in more than a fact"
                yield warning(pair[1].row, f"{message}{what}; change one fact of one passage")


def _likeness(pair: Sequence[Case]) -> float:
    """Return the share of the words of two passages that are the same in the same order."""
    one, two = (case.context.split() for case in pair)
    return 1.0 if one == two else SequenceMatcher(None, one, two, autojunk=False).ratio()


def unclustered_twins(subject: Subject) -> Iterator[Note]:
    """Yield the field that joins items which the data set counts as independent."""
    for field in LINKS:
        linked = _linked(subject, field).values()
        if any(len({subject.slice_.cluster_of(case) for case in some}) > 1 for some in linked):
            message = f"rows with one {field!r} are counted as independent"
            yield warning(0, f"{message}; say 'cluster: {field}' in dataset.yaml")


def _linked(subject: Subject, field: str) -> Mapping[str, Sequence[Case]]:
    """Return the items by their value in a field, where they have one."""
    found: dict[str, list[Case]] = defaultdict(list)
    for case in subject.cases:
        if has_field(case, field):
            found[str(case.metadata[field]).strip()].append(case)
    return found
