"""The judge without a model: a placeholder, and the cheap half of a cascade."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import cast

from evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, Ask, Case, Verdict
from evaluators.judges.lexical import match as matching
from evaluators.judges.lexical.analysis import Answer
from evaluators.judges.lexical.fold import FOLDER, plain, within_limit
from evaluators.judges.lexical.numbers import DASHES
from evaluators.judges.lexical.refuse import declines, grade_premise, is_bare, premise
from evaluators.reading import load_yaml
from evaluators.replies.labels import content_free
from evaluators.user_code import SHORT, off_the_loop

_TRIES = 16  # mentions of one gold; an answer that repeats it more often adds nothing
_REACH = 3  # words before a number within which a bound or "about" stands
_LOOSE = 0.25  # how far "about" reaches, as a share of the gold


class LexicalJudge:
    """Grades by rule; never asks a model."""

    spec = "lexical"

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return the verdict that the rules give; never asks.

        Raises JudgeError (``judge_timeout``) where they take too long over a long answer.
        """
        if len(answer) <= SHORT:
            return grade(case, answer)
        return await off_the_loop(self.spec, lambda _: grade(case, answer), ask)


def grade(case: Case, answer: str) -> Verdict:
    """Return the verdict of the first rule that has one, its reason in the item's language.

    It is sure of a declared form with nothing of substance besides, of a bare refusal, and of an
    explicit denial of a false premise; everything else is a best guess.
    """
    verdict = _grade(case, answer)
    words = _reasons().get(verdict.reason, {})
    return replace(verdict, reason=words.get(case.language, verdict.reason))


@cache
def _reasons() -> Mapping[str, Mapping[str, str]]:
    return cast("Mapping[str, Mapping[str, str]]", load_yaml(FOLDER / "reasons.yaml"))


def _grade(case: Case, answer: str) -> Verdict:
    beginning = within_limit(answer)
    if content_free(beginning, case.golds):
        return Verdict(grade=NOT_ATTEMPTED, reason="the answer says nothing")
    mark, truths = premise(case.golds)
    if mark:
        return grade_premise(Answer(replace(case, golds=truths), answer), mark)
    analysis, said = Answer(case, answer), plain(beginning)
    if said and beginning == answer and any(said == plain(gold) for gold in case.golds):
        sure = not analysis.is_open and "?" not in answer
        return Verdict(grade=CORRECT, reason="the answer is the gold", sure=sure)
    return _found(analysis) or _missed(analysis)


def _found(answer: Answer) -> Verdict | None:
    """Return CORRECT where a form stands in the answer; else why the first one does not count."""
    reasons = []
    for form in answer.forms:
        for match in islice(matching.find_matches(form, answer), _TRIES):
            if matching.is_denied(match, answer):
                reasons.append("the answer denies the gold")
            elif matching.is_of_another(match, answer):
                reasons.append("the answer does not hold the gold")
            elif matching.is_one_of_several(match, answer) or matching.is_overturned(match, answer):
                reasons.append("the gold is only one of several candidates")
            else:
                return Verdict(grade=CORRECT, reason=match.rule, sure=_is_sure(match, answer))
    return Verdict(grade=INCORRECT, reason=reasons[0]) if reasons else None


def _missed(answer: Answer) -> Verdict:
    """Return the verdict on an answer in which no form stands."""
    if not answer.own_words and not answer.asks("alternatives"):
        return Verdict(grade=NOT_ATTEMPTED, reason="the answer says nothing")
    if declines(answer):
        reason = "the answer declines and does not give the gold"
        return Verdict(grade=NOT_ATTEMPTED, reason=reason, sure=is_bare(answer))
    if _is_coarse(answer):
        return Verdict(grade=NOT_ATTEMPTED, reason="the answer is less precise than the gold")
    return Verdict(grade=INCORRECT, reason="the answer does not hold the gold")


def _is_sure(match: matching.Match, answer: Answer) -> bool:
    """Return whether the answer is a declared form with nothing of substance besides.

    Besides it may have words that hold a sentence together, and words of the question in their
    order there: "Spain beat Italy" does not answer who beat Spain.
    """
    known, words, gaps = answer.tables, answer.text.words, answer.text.gaps
    rest = words[: match.start] + words[match.end :]
    doubtful = answer.hedges or answer.refusals or answer.truncated or answer.spelt
    after = gaps[match.end] if match.end < len(words) else ""
    ordinal = match.form.quantity and after.startswith(".")
    signs = (gaps[match.end][:1], match.form.text.gaps[-1][:1])
    suffixed = any(sign in DASHES or sign == "+" for sign in signs)  # "3-an", "A+"
    if not match.exact or match.form.place or answer.is_open or doubtful or suffixed or ordinal:
        return False
    phrases = any(known.phrases[key].within(words) for key in ("negations", "more", "less"))
    keys = ("alternatives", "contrasts", "faults", "approximate", "between")
    echoes = answer.question_words.issuperset(words[match.start : match.end])
    asks = any("?" in gap for gap in gaps)
    if phrases or echoes or asks or any(known.any_of(key, rest) for key in keys):
        return False
    asked, alike = iter(answer.question.words), matching.Tolerance(tables=known).alike
    idle = answer.idle_words - known.words["joiners"]
    own = (word for word in rest if word not in idle)
    return all(any(alike(one, word) for one in asked) for word in own)


def _is_coarse(answer: Answer) -> bool:
    """Return whether an answer is right as far as it goes, and less precise than the gold."""
    words, asked = answer.text.words, answer.question_words
    dates = [one for one in answer.dates if not asked.issuperset(words[one.start : one.end])]
    lands = answer.tables.countries
    golds = [form.content for form in answer.forms]
    if answer.asks("places") and not lands.intersection(golds):
        alike = matching.Tolerance(tables=answer.tables).alike
        own = answer.own_words
        same = (len(one) == len(own) and all(map(alike, one, own)) for one in lands)
        if own and any(same):
            return True
    for form in answer.forms:
        if gold := form.quantity:
            wanted = gold.values[0]
            for found in answer.quantities:
                value, before = found.values[0], words[max(0, found.start - _REACH) : found.start]
                about = answer.tables.any_of("approximate", before)
                near = about and abs(value - wanted) <= _LOOSE * abs(wanted)
                if near or _leaves_room(value, wanted, found.start, answer):
                    return True
        if dates and (date := form.date):
            rooms = (_leaves_room(d.year or 0, date.year or 0, d.start, answer) for d in dates)
            if all(map(date.agrees, dates)) or all(rooms):
                return True
    return False


def _leaves_room(value: float, gold: float, place: int, answer: Answer) -> bool:
    """Return whether "more than" or "before" leads up to a value and leaves the gold possible."""
    before = answer.text.words[max(0, place - _REACH) : place]
    found = [
        (start, key) for key in ("more", "less")
        for start, end in answer.tables.phrases[key].spans(before) if end == len(before)
    ]  # fmt: skip
    bound = min(found, default=(0, ""))[1]
    return (bound == "more" and value < gold) or (bound == "less" and value > gold)
