"""The judge without a model: fixed rules of language and number, the same every time."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, pairwise

from evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, Ask, Case, Verdict
from evaluators.judges.lexical.answer_analysis import AnswerAnalysis, analyse, within_limit
from evaluators.judges.lexical.certain_misses import is_surely_silent, is_surely_wrong
from evaluators.judges.lexical.certainty import is_firm, is_surely_right
from evaluators.judges.lexical.coarse_dates import is_coarse
from evaluators.judges.lexical.evasions import evasive_places
from evaluators.judges.lexical.folding import plain
from evaluators.judges.lexical.gold_matching import find_matches
from evaluators.judges.lexical.language_tables import reason_in
from evaluators.judges.lexical.numbers import Quantity
from evaluators.judges.lexical.premises import denied_premise, grade_premise
from evaluators.judges.lexical.rejections import reject_reason
from evaluators.judges.lexical.word_matching import Span, Tolerance
from evaluators.replies.labels import content_free
from evaluators.user_code import SHORT, off_the_loop

_STOP = re.compile(r"[.;!?\n…]")
_TRIES = 16  # mentions of one gold; an answer that repeats it more often adds nothing
_PAIR = 2  # items that make a gold a list
_COUNTED = 12  # items of a list that somebody may state the number of
_SHORT = 6  # words of a stretch that can be an answer without a word of belief in it
_LONG = 12  # words of a stretch that can be one, with a word of belief
_FEW = 8  # own words of an answer that is nothing but candidates


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
    """Return the verdict of the first rule that has one, its reason in the item's language."""
    verdict = _grade(case, answer)
    return replace(verdict, reason=reason_in(case.language, verdict.reason))


def _grade(case: Case, answer: str) -> Verdict:
    beginning = within_limit(answer)
    said = plain(beginning)
    if truths := denied_premise(case.golds):
        return _on_a_premise(replace(case, golds=truths), answer)
    analysis = analyse(case, answer)
    if said and beginning == answer and any(said == plain(gold) for gold in case.golds):
        return Verdict(grade=CORRECT, reason="the answer is the gold", sure=not analysis.asks_more)
    if not analysis.answer.words:
        sure = not analysis.truncated
        return Verdict(grade=NOT_ATTEMPTED, reason="the answer says nothing", sure=sure)
    verdicts = (rule(analysis) for rule in _RULES)
    if verdict := next(filter(None, verdicts), None):
        return verdict
    if content_free(beginning, case.golds):
        return Verdict(grade=NOT_ATTEMPTED, reason="the answer says nothing", sure=True)
    reason, sure = "the answer does not hold the gold", is_surely_wrong(analysis)
    return Verdict(grade=INCORRECT, reason=reason, sure=sure)


def _on_a_premise(case: Case, answer: str) -> Verdict:
    """Return the verdict on an answer to a question that rests on something false."""
    if content_free(within_limit(answer), case.golds):
        return Verdict(grade=NOT_ATTEMPTED, reason="the answer says nothing", sure=True)
    analysis = analyse(case, answer)
    return grade_premise(analysis, declines=_refused(analysis) is not None)


def _alone(analysis: AnswerAnalysis) -> Verdict | None:
    """Correct when nothing but words that hold a sentence together is beside the gold."""
    for form in analysis.forms:
        words = tuple(
            word
            for word in analysis.full.words
            if word in form.text.words or word not in analysis.idle_words
        )
        if words != form.text.words or form.place:
            continue
        match = next(find_matches(form, analysis), None)
        bare = form.quantity is None and not form.signed  # words alone do not show a minus
        if bare or match:
            sure = is_firm(analysis) and match is not None and is_surely_right(match)
            return Verdict(grade=CORRECT, reason="the answer is the gold alone", sure=sure)
    return None


def _found(analysis: AnswerAnalysis) -> Verdict | None:
    """Correct when some form is in the answer beyond doubt; else the first reason against one."""
    rejection = None
    for form in analysis.forms:
        for match in islice(find_matches(form, analysis), _TRIES):
            reason = reject_reason(match)
            if not reason:
                sure = is_surely_right(match)
                return Verdict(grade=CORRECT, reason=match.rule, sure=sure)
            rejection = rejection or reason
    return rejection


def _idle(analysis: AnswerAnalysis) -> Verdict | None:
    """Not attempted when nothing is the answer's own; "this or that?" is answered by an echo."""
    content = any(word not in analysis.idle_words for word in analysis.answer.words)
    if analysis.own_words or (content and analysis.asks("alternatives")):
        return None
    return Verdict(grade=NOT_ATTEMPTED, reason="the answer says nothing of its own")


def _refused(analysis: AnswerAnalysis) -> Verdict | None:
    """Not attempted when the answer declines, or is unsure, and offers nothing all the same.

    Beside a refusal an offer takes a word of belief ("I think"); beside mere doubt a short one is
    enough.
    """
    words, hedges = analysis.answer.words, analysis.hedges
    if not analysis.refusals and not analysis.doubts:
        return _evaded(analysis)
    for start, end in _stretches(analysis):
        places = [place for place in range(start, end) if place not in hedges]
        believed = len(places) < end - start <= _LONG
        brief = not analysis.refusals and len(places) <= _SHORT
        if (believed or brief) and any(_is_offer(words[place], analysis) for place in places):
            return None
    reason = "the answer declines and does not give the gold"
    return Verdict(grade=NOT_ATTEMPTED, reason=reason, sure=is_surely_silent(analysis))


def _evaded(analysis: AnswerAnalysis) -> Verdict | None:
    """Not attempted when a clause declines in its own words, and no word could be an answer.

    In that clause only a figure or a name could be one, its first word left out.
    """
    words, evasive = analysis.answer.words, evasive_places(analysis)
    recalled = analysis.tables.words("recalled")
    for place, word in enumerate(words if evasive else ()):
        telling = place and (word in analysis.capitals or word.isdecimal())
        idle = place in analysis.hedges or word in recalled
        if idle or (place in evasive and not telling):
            continue
        if _is_offer(word, analysis):
            return None
    reason = "the answer declines in words of its own"
    return Verdict(grade=NOT_ATTEMPTED, reason=reason) if evasive else None


def _stretches(analysis: AnswerAnalysis) -> Iterator[Span]:
    """Yield the stretches between full stops, contrasts, refusals and words of doubt."""
    words, contrasts = analysis.answer.words, analysis.tables.words("contrasts")
    spans = [*analysis.refusals, *analysis.doubts]
    taken = {place for span in spans for place in range(*span)}
    start = 0
    for place, word in enumerate(words):
        cut = word in contrasts or place in taken
        if cut or (place and _STOP.search(analysis.answer.gaps[place])):
            yield start, place
            start = place + 1 if cut else place
    yield start, len(words)


def _is_offer(word: str, analysis: AnswerAnalysis) -> bool:
    """Say whether a word is the answer's own, and of the gold's kind: figure, name or noun."""
    if word not in analysis.own_words or _is_a_part(word, analysis):
        return False
    if any(form.quantity or form.date for form in analysis.forms):
        return word.isdecimal() or word in analysis.tables.numbers
    if word in analysis.tables.numbers or word in analysis.tables.words("speakers"):
        return False
    alike = Tolerance(tables=analysis.tables).alike
    if any(alike(asked, word) for asked in analysis.question_words):
        return False
    return word in analysis.capitals or not all(form.named for form in analysis.forms)


def _is_a_part(word: str, analysis: AnswerAnalysis) -> bool:
    """Say whether a word is one item of several that the gold lists."""
    return any(word in item for form in analysis.forms for item in form.items)


def _miscounted(analysis: AnswerAnalysis) -> Verdict | None:
    """Incorrect when beside a refusal another number of things is stated than the gold lists."""
    items = max((len(form.items) for form in analysis.forms), default=0)
    words, asked = analysis.answer.words, analysis.question_words
    named = any(_is_a_part(word, analysis) for word in analysis.own_words)
    if not analysis.refusals or items < _PAIR or named:
        return None
    counts = {
        figure.values[0] for figure in analysis.quantities
        if not figure.unit and not asked.issuperset(words[figure.start : figure.end])
    }  # fmt: skip
    if any(_PAIR <= count <= _COUNTED and count != items for count in counts):
        return Verdict(grade=INCORRECT, reason="the answer counts more or fewer than the gold")
    return None


def _loose_figure(analysis: AnswerAnalysis) -> Verdict | None:
    for gold in (form.quantity for form in analysis.forms if form.quantity):
        figures = analysis.quantities
        spanned = any(_is_between(pair, gold, analysis) for pair in pairwise(figures))
        if spanned or any(_is_loose(figure, gold, analysis) for figure in figures):
            reason = "the figure is too loose to be right or wrong"
            return Verdict(grade=NOT_ATTEMPTED, reason=reason)
    return None


def _is_between(pair: tuple[Quantity, Quantity], gold: Quantity, analysis: AnswerAnalysis) -> bool:
    """Say whether two figures are the ends of a stated range in which the gold lies."""
    (low, high), known, words = pair, analysis.tables, analysis.answer.words
    signs = words[low.start - 1 : low.start] + words[low.end : high.start]
    stated = known.any_of("ranges", signs) and known.any_of("range_joins", signs)
    return stated and low.values[0] <= gold.values[0] <= high.values[0]


def _is_loose(figure: Quantity, gold: Quantity, analysis: AnswerAnalysis) -> bool:
    """Say whether "about", "more than" or "less than" a figure leaves room for the gold."""
    known, before = analysis.tables, analysis.answer.words[max(0, figure.start - 3) : figure.start]
    value, wanted = figure.values[0], gold.values[0]
    more = value <= wanted and known.has_phrase("more", before)
    less = value >= wanted and known.has_phrase("less", before)
    return more or less or (known.any_of("approximate", before) and figure.is_near(gold))


def _undecided(analysis: AnswerAnalysis) -> Verdict | None:
    """Incorrect when the answer is little more than candidates with "or" between them."""
    words, alternatives = analysis.answer.words, analysis.tables.words("alternatives")
    named = all(form.named for form in analysis.forms)
    if len(analysis.own_words) > _FEW or analysis.asks("alternatives") or not named:
        return None
    names = analysis.capitals.intersection(analysis.own_words)
    for left, word, right in zip(words, words[1:], words[2:], strict=False):
        if word in alternatives and {left, right} <= names:
            reason = "the answer does not choose between candidates"
            return Verdict(grade=INCORRECT, reason=reason)
    return None


def _coarse_place(analysis: AnswerAnalysis) -> Verdict | None:
    """Not attempted when of "town, land" only the land is named."""
    generic = analysis.tables.words("generic") | analysis.tables.words("places")
    own = [word for word in analysis.own_words if word not in generic]
    alike = Tolerance(tables=analysis.tables, names=True).alike
    for land in (form.land for form in analysis.forms if form.land):
        if own and all(any(alike(word, said) for word in land) for said in own):
            return Verdict(grade=NOT_ATTEMPTED, reason="the place is less precise than the gold")
    return None


def _coarse_date(analysis: AnswerAnalysis) -> Verdict | None:
    reason = "the date is less precise than the gold"
    return Verdict(grade=NOT_ATTEMPTED, reason=reason) if is_coarse(analysis) else None


_RULES = (
    _alone,
    _found,
    _idle,
    _undecided,
    _miscounted,
    _refused,
    _loose_figure,
    _coarse_date,
    _coarse_place,
)
