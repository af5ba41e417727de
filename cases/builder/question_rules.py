"""What can be said of questions without a model: by rule of each one, and of all together.

A dataset whose answers a first word gives away measures that word. To find that out, simple rules
learn the commoner answer per value of one feature on four fifths of the items, and answer the rest.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from cases.builder.build_step import ModelCalls, Step
from cases.builder.paragraphs import (
    Fault,
    comparable,
    contained,
    known_language,
    language_fault,
    nearest,
    sentences,
)
from cases.builder.recipe import QuestionRules, Recipe
from cases.builder.work_folder import Item, Values
from cases.check.alphabets import words
from evaluators.core import YES
from evaluators.statistics.intervals import wilson

STEM = 5  # letters by which two forms of a word are taken for one
WHOLE = 25  # letters from which a question found in one piece in its text is a copy
FOREIGN = 3  # words more that it shares with another text of its batch than with its own: swapped
FOLDS = 5


def check_questions(items: Sequence[Item], recipe: Recipe) -> list[Item]:
    """Return the items; the first rule that one breaks drops it. Others stay as they are."""
    language = known_language(recipe.language)
    # For a short text: one respelt word counts, a Latin name does not.
    spelling = replace(
        recipe.spelling,
        respelt=0.0,
        other_script=max(0.5, recipe.spelling.other_script),
        expected=0.0,
    )
    texts = {item.id: item.paragraph for item in items}
    before: list[str] = []
    checked = []
    for item in items:
        fault = item.state == "kept" and (
            _form_fault(item, recipe.question)
            or _copied(item, recipe.question)
            or language_fault(item.question, language, spelling)
            or _swapped(item, texts)
            or _repeated(item, before, recipe.question.similar)
        )
        checked.append(item.dropped(*fault) if fault else item)
        if checked[-1].state == "kept":
            before.append(comparable(item.question))
    return checked


def _form_fault(item: Item, rules: QuestionRules) -> Fault | None:
    """Return what is wrong with one question by itself."""
    question = item.question
    if not rules.shortest <= len(question) <= rules.longest:
        return "length", f"{len(question)} characters"
    if not question.endswith("?") or question.count("?") != 1:
        return "mark", "want one ? at the end"
    if found := _first(rules.open, question):
        return "open", f"begins like an open question: {found}"
    if found := _first(rules.negative, question):
        return "negative", f"yes and no mean either to: {found}"
    if not _first(rules.forms, question):
        return "form", "not the form of a yes/no question"
    return None


def _copied(item: Item, rules: QuestionRules) -> Fault | None:
    """Look whether a question is nearly a sentence of its text, or is there in one piece."""
    around = [comparable(one) for one in sentences(item.paragraph)]
    near = nearest(comparable(item.question), around, rules.copied)
    if near is not None:
        return "copied", f"a sentence of the text: {around[near][:60]}"
    forms = (pattern.match(item.question) for pattern in rules.forms)
    bare = comparable(item.question[next((form.end() for form in forms if form), 0) :])
    if len(bare) >= WHOLE and contained(bare, comparable(item.paragraph)) >= rules.copied:
        return "copied", f"stands in the text: {bare[:60]}"
    return None


def _first(patterns: Sequence[re.Pattern[str]], text: str) -> str:
    found = (pattern.search(text) for pattern in patterns)
    return next((match[0] for match in found if match), "")


def _swapped(item: Item, texts: Mapping[str, str]) -> Fault | None:
    """Look whether a question shares far more with another text of its batch than with its own."""
    question = _stems(item.question)
    own = question & _stems(item.paragraph)
    for other in item.batch:
        shared = question & _stems(texts.get(other, ""))
        if len(shared) >= len(own) + FOREIGN:
            return "swapped", f"fits the text of {other}: {', '.join(sorted(shared)[:5])}"
    return None


def _repeated(item: Item, before: Sequence[str], similar: float) -> Fault | None:
    found = nearest(comparable(item.question), before, similar)
    return None if found is None else ("repeated", f"nearly: {before[found]}")


def _stems(text: str) -> frozenset[str]:
    return frozenset(word.casefold()[:STEM] for word in words(text) if len(word) >= STEM)


class CheckStep(Step):
    """Drops by rule."""

    name = "check"
    help = "drop by rule what is no such question, a copy or a repetition"
    after = "generate"

    def settle(self) -> Values:
        """Return the version of the rules."""
        return self.fixed({"recipe": self.build.recipe.check_version})

    def work(self, items: Sequence[Item], _: ModelCalls) -> list[Item]:
        """Return the items, dropped where a rule refuses them."""
        return check_questions(items, self.build.recipe)


def question_only(items: Sequence[Item], negations: frozenset[str]) -> Values:
    """Return the share that each rule gets right which sees only the question, and the best one.

    ``majority`` is the share of the commoner answer, with nothing to learn. The best is picked
    after the fact, so that its share is a little too high; it stands with its interval.
    """
    if not items:
        return {}
    features: Mapping[str, Callable[[str], Hashable]] = {
        "first word": lambda question: _first_words(question, 1),
        "first two words": lambda question: _first_words(question, 2),
        "word of denial": lambda question: (
            not negations.isdisjoint(question.casefold().rstrip("?").split())
        ),
        "length": lambda question: len(question) // 20,
        "figure": lambda question: any(letter.isdigit() for letter in question),
    }
    shares = {"majority": max(Counter(item.answer for item in items).values()) / len(items)}
    for name, feature in features.items():
        shares[name] = _guessed(items, [feature(item.question) for item in items])
    best = max(shares, key=lambda name: shares[name])
    interval = wilson(shares[best] * len(items), len(items))
    return {"items": len(items), "shares": shares, "best": best, "interval": interval}


def _first_words(question: str, count: int) -> tuple[str, ...]:
    return tuple(word.casefold() for word in words(question)[:count])


def _guessed(items: Sequence[Item], values: Sequence[Hashable]) -> float:
    """Return the share of items whose answer follows from a feature with these values."""
    folds = [sha256(item.id.encode()).digest()[0] % FOLDS for item in items]
    by_value: dict[tuple[int, Hashable], Counter[str]] = defaultdict(Counter)
    overall: dict[int, Counter[str]] = defaultdict(Counter)
    for item, value, fold in zip(items, values, folds, strict=True):
        for other in set(range(FOLDS)) - {fold}:
            by_value[other, value][item.answer] += 1
            overall[other][item.answer] += 1
    right = 0
    for item, value, fold in zip(items, values, folds, strict=True):
        learnt = by_value.get((fold, value)) or overall[fold]
        right += max(sorted(learnt), key=lambda word: learnt[word], default=YES) == item.answer
    return right / len(items)
