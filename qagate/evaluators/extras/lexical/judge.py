"""The judge without a model: a placeholder, and the cheap half of a cascade.

An answer is CORRECT where a form of the gold stands in it (``match.py``) and nothing speaks
against that (``objections.py``). Little is sure: a declared form with nothing else of substance, a
bare refusal, and a plain denial of a false premise.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import cast

from qagate.evaluators.core import (
    CORRECT,
    INCORRECT,
    NOT_ATTEMPTED,
    Ask,
    Case,
    Judge,
    Verdict,
)
from qagate.evaluators.extras.lexical.analysis import Answer
from qagate.evaluators.extras.lexical.golds import Form
from qagate.evaluators.extras.lexical.match import Match, find_matches
from qagate.evaluators.extras.lexical.objections import ABSENT, objection
from qagate.evaluators.extras.lexical.overlap import OverlapRater
from qagate.evaluators.extras.lexical.premises import (
    DECLINES,
    SAYS_NOTHING,
    grade_premise,
    is_bare,
)
from qagate.evaluators.extras.lexical.tolerance import Tolerance
from qagate.evaluators.kinds import MARKS
from qagate.evaluators.languages.numbers import DASHES, Date
from qagate.evaluators.languages.word_lists import plain, read, within_limit
from qagate.evaluators.reading import load_yaml
from qagate.evaluators.rubric import Style
from qagate.evaluators.user_code import SHORT, off_the_loop

REASONS_FILE = Path(__file__).with_name("reasons.yaml")

_MATCHES = 16
"""Places of one form that are tried; an answer that repeats it more often adds nothing."""
_BOUND = 3
"""Words before a number within which "more than" stands."""


def lexical_judge(style: Style) -> Judge:
    """Return the judge ``lexical``: it grades by rules, or rates by shared words."""
    if style == "rated":
        return OverlapRater()
    return LexicalJudge()


class LexicalJudge:
    """Grades by rule; never asks a model."""

    spec = "lexical"

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return the rules' verdict. Raises JudgeError (``judge_timeout``) if they take long."""
        if len(answer) <= SHORT:
            return grade(case, answer)
        return await off_the_loop(self.spec, lambda _: grade(case, answer), ask)


def grade(case: Case, answer: str) -> Verdict:
    """Return the verdict of the first rule that has one, its reason in the item's language."""
    verdict = _grade(case, answer)
    translations = _reasons().get(verdict.reason, {})
    return replace(verdict, reason=translations.get(case.language, verdict.reason))


@cache
def _reasons() -> Mapping[str, Mapping[str, str]]:
    """Return the reasons in other languages, by the English one."""
    return cast("Mapping[str, Mapping[str, str]]", load_yaml(REASONS_FILE))


def _grade(case: Case, answer: str) -> Verdict:
    beginning = within_limit(answer)
    said = plain(beginning)
    is_gold = any(said == plain(gold) for gold in case.golds)
    if not is_gold and not read(beginning).words:
        return Verdict(grade=NOT_ATTEMPTED, reason=SAYS_NOTHING)
    for mark in MARKS:
        truths = _marked(case, mark)
        if truths:
            return grade_premise(Answer(replace(case, golds=truths), answer), mark)
    analysis = Answer(case, answer)
    if is_gold and said and beginning == answer:
        sure = not analysis.is_open and "?" not in answer
        return Verdict(grade=CORRECT, reason="the answer is the gold", sure=sure)
    if analysis.order:
        return _grade_order(analysis.order, analysis)
    return _compare(analysis)


def _marked(case: Case, mark: str) -> tuple[str, ...]:
    """Return what stands behind a mark such as "FALSE PREMISE:" in the golds."""
    golds = [gold.strip() for gold in case.golds]
    return tuple(
        gold[len(mark) :].strip() for gold in golds if gold.upper().startswith(mark)
    )


def _grade_order(order: str, answer: Answer) -> Verdict:
    if any("".join(form.text.words) == order for form in answer.forms):
        return Verdict(grade=CORRECT, reason="the order is the gold's")
    return Verdict(grade=INCORRECT, reason=ABSENT)


def _compare(answer: Answer) -> Verdict:
    """Return CORRECT where a form stands in the answer; else why the first one does not count."""
    objections = []
    for form in answer.forms:
        for match in islice(find_matches(form, answer), _MATCHES):
            reason = objection(match, answer)
            if not reason:
                sure = _is_sure(match, answer)
                return Verdict(grade=CORRECT, reason=match.rule, sure=sure)
            objections.append(reason)
    if objections:
        return Verdict(grade=INCORRECT, reason=objections[0])
    if answer.says_nothing:
        return Verdict(grade=NOT_ATTEMPTED, reason=SAYS_NOTHING)
    if _declines(answer):
        return Verdict(grade=NOT_ATTEMPTED, reason=DECLINES, sure=is_bare(answer))
    if _is_coarse(answer):
        reason = "the answer is less precise than the gold"
        return Verdict(grade=NOT_ATTEMPTED, reason=reason)
    return Verdict(grade=INCORRECT, reason=ABSENT)


def _is_sure(match: Match, answer: Answer) -> bool:
    """Return whether the answer is a declared form with light words and the question's in order."""
    if not match.exact or match.form.place or answer.is_open:
        return False
    if answer.hedges or answer.refusals or answer.truncated or answer.spelt:
        return False
    if answer.other_options or _is_suffixed(match, answer):
        return False
    tables, words, gaps = answer.tables, answer.text.words, answer.text.gaps
    if answer.question_words.issuperset(words[match.start : match.end]):
        return False
    if any("?" in gap for gap in gaps):
        return False
    if any(
        any(tables.phrases[key].spans(words)) for key in ("negations", "more", "less")
    ):
        return False
    rest = words[: match.start] + words[match.end :]
    for key in ("alternatives", "contrasts", "faults", "approximate", "between"):
        if tables.any_of(key, rest):
            return False
    # "Spain beat Italy" does not answer who beat Spain: the order counts.
    idle = tables.words["idle"] - tables.words["joiners"]
    alike = Tolerance(tables).alike
    asked = iter(answer.question.words)
    return all(
        any(alike(word, asked_word) for asked_word in asked)
        for word in rest
        if word not in idle
    )


def _is_suffixed(match: Match, answer: Answer) -> bool:
    """Return whether a sign changes what it stands behind: "3-an", "3.", "A+"."""
    after = answer.text.gaps[match.end] if match.end < len(answer.text.words) else ""
    if match.form.quantity and after.startswith("."):
        return True
    signs = (answer.text.gaps[match.end][:1], match.form.text.gaps[-1][:1])
    return any(sign in DASHES or sign == "+" for sign in signs)


def _declines(answer: Answer) -> bool:
    """Return whether an answer declines or doubts, and does not offer anything in doubt."""
    if not answer.hedges:
        return bool(answer.refusals)
    is_counted = any(form.quantity or form.date for form in answer.forms)
    is_named = all(form.named for form in answer.forms)
    for word in answer.told:
        if word.isdecimal():
            return False
        if not is_counted and (word in answer.capitals or not is_named):
            return False
    return True


def _is_coarse(answer: Answer) -> bool:
    """Return whether an answer is right as far as it goes, and less precise than the gold."""
    return any(
        _leaves_number_open(form, answer) or _leaves_date_open(form, answer)
        for form in answer.forms
    )


def _leaves_number_open(form: Form, answer: Answer) -> bool:
    if not form.quantity:
        return False
    gold = form.quantity.values[0]
    return any(
        _leaves_room(quantity.values[0], gold, quantity.start, answer)
        for quantity in answer.quantities
    )


def _leaves_date_open(form: Form, answer: Answer) -> bool:
    """Return whether all dates that the question lacks are parts of the gold's, or bounds of it."""
    gold = form.date
    dates = [date for date in answer.dates if not _is_asked(date, answer)]
    if not gold or not dates:
        return False
    if all(gold.agrees(date) for date in dates):
        return True
    return all(
        _leaves_room(date.year or 0, gold.year or 0, date.start, answer)
        for date in dates
    )


def _is_asked(date: Date, answer: Answer) -> bool:
    return answer.question_words.issuperset(answer.text.words[date.start : date.end])


def _leaves_room(value: float, gold: float, place: int, answer: Answer) -> bool:
    """Return whether "more than" or "before" leads up to a value and leaves the gold possible."""
    before = answer.text.words[max(0, place - _BOUND) : place]
    bounds = []
    for key in ("more", "less"):
        for start, end in answer.tables.phrases[key].spans(before):
            if end == len(before):
                bounds.append((start, key))
    if not bounds:
        return False
    _, nearest = min(bounds)  # of "no less than" and "less than" the longer one
    return value < gold if nearest == "more" else value > gold
