"""What can be said of a question without a model: its form, its language, whom it resembles."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from cases.tools.builder.items import Item
from cases.tools.builder.prose import sentences
from cases.tools.builder.recipe import QuestionRules, Recipe, SpellingRules
from cases.tools.builder.similar import contained, nearest, plain
from cases.tools.builder.spelling import fault
from cases.tools.check.languages import Language
from cases.tools.check.scripts import words

STEM = 5  # letters by which two forms of a word are taken for one
WHOLE = 25  # letters from which a question found in one piece in its text is a copy
FOREIGN = 3  # words more that it shares with another text of its batch than with its own: swapped


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """Checks questions by a recipe."""

    recipe: Recipe
    language: Language

    def check(self, items: Sequence[Item]) -> list[Item]:
        """Return the items; the first rule that one breaks drops it. Others stay as they are."""
        texts = {item.id: item.paragraph for item in items}
        before: list[str] = []
        checked = []
        for item in items:
            reason, detail = self._fault(item, texts, before) if item.state == "kept" else ("", "")
            if reason:
                checked.append(replace(item, state="dropped", reason=reason, detail=detail))
                continue
            checked.append(item)
            if item.state == "kept":
                before.append(plain(item.question))
        return checked

    def _fault(
        self, item: Item, texts: Mapping[str, str], before: Sequence[str]
    ) -> tuple[str, str]:
        rules = self.recipe.question
        for name, check in FORMS.items():
            detail = check(item, rules)
            if detail:
                return name, detail
        reason, detail = fault(item.question, self.language, _for_questions(self.recipe.spelling))
        if reason:
            return reason, detail
        if detail := _swapped(item, texts):
            return "swapped", detail
        found = nearest(plain(item.question), before, rules.similar)
        return ("", "") if found is None else ("repeated", f"nearly: {before[found]}")


def _length(item: Item, rules: QuestionRules) -> str:
    size = len(item.question)
    return "" if rules.shortest <= size <= rules.longest else f"{size} characters"


def _mark(item: Item, _: QuestionRules) -> str:
    question = item.question
    return "" if question.endswith("?") and question.count("?") == 1 else "want one ? at the end"


def _open(item: Item, rules: QuestionRules) -> str:
    found = _first(rules.open, item.question)
    return f"begins like an open question: {found}" if found else ""


def _form(item: Item, rules: QuestionRules) -> str:
    return "" if _first(rules.forms, item.question) else "not the form of a yes/no question"


def _copied(item: Item, rules: QuestionRules) -> str:
    """Compare with each sentence, and look for the question in one piece."""
    question = plain(item.question)
    around = [plain(one) for one in sentences(item.paragraph)]
    found = nearest(question, around, rules.copied)
    if found is None:
        bare = plain(_without_form(item.question, rules))
        whole = len(bare) >= WHOLE and contained(bare, plain(item.paragraph)) >= rules.copied
        return f"stands in the text: {bare[:60]}" if whole else ""
    return f"a sentence of the text: {around[found][:60]}"


Check = Callable[[Item, QuestionRules], str]
FORMS: Mapping[str, Check] = {
    "length": _length,
    "mark": _mark,
    "open": _open,
    "form": _form,
    "copied": _copied,
}
"""Checks of one question alone by the reason that they give; the first fault counts."""


def _first(patterns: Sequence[re.Pattern[str]], text: str) -> str:
    found = (pattern.search(text) for pattern in patterns)
    return next((match[0] for match in found if match), "")


def _without_form(question: str, rules: QuestionRules) -> str:
    for pattern in rules.forms:
        if match := pattern.match(question):
            return question[match.end() :]
    return question


def _for_questions(rules: SpellingRules) -> SpellingRules:
    """Return the rules for a short text: one respelt word counts, a Latin name does not."""
    return replace(rules, respelt=0.0, other_script=max(0.5, rules.other_script), expected=0.0)


def _swapped(item: Item, texts: Mapping[str, str]) -> str:
    """Look whether a question shares far more with another text of its batch than with its own."""
    asked = _stems(item.question)
    own = asked & _stems(item.paragraph)
    for other in item.batch:
        shared = asked & _stems(texts.get(other, ""))
        if len(shared) >= len(own) + FOREIGN:
            return f"fits the text of {other}: {', '.join(sorted(shared)[:5])}"
    return ""


def _stems(text: str) -> frozenset[str]:
    return frozenset(word.casefold()[:STEM] for word in words(text) if len(word) >= STEM)
