"""The judge without a model: fixed rules of language and number, the same every time."""

import re
from collections.abc import Iterator
from itertools import islice, pairwise

from evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, Ask, Case, Verdict
from evaluators.judges.lexical.answer_analysis import LIMIT, AnswerAnalysis, analyse
from evaluators.judges.lexical.folding import plain, sound
from evaluators.judges.lexical.gold_matching import FULL_NAME, TOGETHER, Match, find_matches
from evaluators.judges.lexical.numbers import Quantity
from evaluators.judges.lexical.rejections import reject_reason
from evaluators.judges.lexical.rival_answers import is_weighed
from evaluators.judges.lexical.word_matching import Span
from evaluators.replies.reply_text import content_free

_STOP = re.compile(r"[.;!?\n…]")
_TRIES = 16  # mentions of one gold; an answer that repeats it more often adds nothing
_SHORT = 6  # words of a stretch that can be an answer without a word of belief in it
_LONG = 12  # words of a stretch that can be one, with a word of belief
_FEW = 8  # own words of an answer that is nothing but candidates
_BRIEF = 12  # own words of an answer that says one thing
_OPEN = 20  # own words of a sentence about it, where other answers hold as well
_FULL = 40  # own words of a sentence or two about it
_SILENT = 6  # words of a refusal too short to hold an answer besides
_NEAR = 4  # words from the gold within which a doubt would touch it
_TERSE = 8  # own words of an answer that is little more than its date
_PARTS = 2  # words of a gold that are found together by no accident
_GOLDS = 2  # accepted names beyond which a list of them may well be open
_YEARS = 2  # years apart from which two dates are no matter of opinion


class LexicalJudge:
    """Grades by rule; never asks a model."""

    spec = "lexical"

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return the verdict that the rules give; never raises and never asks."""
        return grade(case, answer)


def grade(case: Case, answer: str) -> Verdict:
    """Return the verdict of the first rule that has one."""
    said = plain(answer[:LIMIT])
    if said and len(answer) <= LIMIT and any(said == plain(gold) for gold in case.golds):
        return Verdict(grade=CORRECT, reason="the answer is the gold", sure=True)
    analysis = analyse(case, answer)
    if not analysis.answer.words:
        sure = not analysis.truncated
        return Verdict(grade=NOT_ATTEMPTED, reason="the answer says nothing", sure=sure)
    verdicts = (rule(analysis) for rule in _RULES)
    if verdict := next(filter(None, verdicts), None):
        return verdict
    if content_free(answer[:LIMIT], case.golds):
        return Verdict(grade=NOT_ATTEMPTED, reason="the answer says nothing", sure=True)
    reason, sure = "the answer does not hold the gold", _is_surely_wrong(analysis)
    return Verdict(grade=INCORRECT, reason=reason, sure=sure)


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
        bare = form.quantity is None and not form.signed  # words alone do not show a minus
        if bare or any(find_matches(form, analysis)):
            sure = _is_firm(analysis)
            return Verdict(grade=CORRECT, reason="the answer is the gold alone", sure=sure)
    return None


def _found(analysis: AnswerAnalysis) -> Verdict | None:
    """Correct when some form is in the answer beyond doubt; else the first reason against one."""
    rejection = None
    for form in analysis.forms:
        for match in islice(find_matches(form, analysis), _TRIES):
            reason = reject_reason(match)
            if not reason:
                sure = _is_surely_right(match)
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
        return None
    for start, end in _stretches(analysis):
        places = [place for place in range(start, end) if place not in hedges]
        believed = len(places) < end - start <= _LONG
        brief = not analysis.refusals and len(places) <= _SHORT
        if (believed or brief) and any(_is_offer(words[place], analysis) for place in places):
            return None
    reason = "the answer declines and does not give the gold"
    return Verdict(grade=NOT_ATTEMPTED, reason=reason, sure=_is_surely_silent(analysis))


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
    if word not in analysis.own_words:
        return False
    if any(form.quantity or form.date for form in analysis.forms):
        return word.isdecimal() or word in analysis.tables.numbers
    return word in analysis.capitals or not all(form.named for form in analysis.forms)


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
    """Not attempted when the answer is little more than candidates with "or" between them."""
    words, alternatives = analysis.answer.words, analysis.tables.words("alternatives")
    named = all(form.named for form in analysis.forms)
    if len(analysis.own_words) > _FEW or analysis.asks("alternatives") or not named:
        return None
    names = analysis.capitals.intersection(analysis.own_words)
    for left, word, right in zip(words, words[1:], words[2:], strict=False):
        if word in alternatives and {left, right} <= names:
            reason = "the answer does not choose between candidates"
            return Verdict(grade=NOT_ATTEMPTED, reason=reason)
    return None


def _coarse_date(analysis: AnswerAnalysis) -> Verdict | None:
    golds = [form.date for form in analysis.forms if form.date]
    dates = analysis.dates if golds else []
    if any(date.agrees(gold) and not date.covers(gold) for date in dates for gold in golds):
        return Verdict(grade=INCORRECT, reason="the date is less precise than the gold")
    return None


_RULES = (_alone, _found, _idle, _refused, _loose_figure, _undecided, _coarse_date)


def _is_firm(analysis: AnswerAnalysis) -> bool:
    """Say whether an answer is whole, and neither hedges nor denies nor weighs anywhere."""
    return _is_plain(analysis, analysis.answer.words, counted=True)


def _is_plain(analysis: AnswerAnalysis, words: tuple[str, ...], *, counted: bool) -> bool:
    """Say whether an answer is whole and certain, and these words of it weigh or deny nothing."""
    if analysis.truncated or analysis.hedges or analysis.refusals or analysis.doubts:
        return False
    approximate = counted and analysis.tables.any_of("approximate", words)
    keys = ("negations", "alternatives", "contrasts")
    return not approximate and not any(analysis.tables.any_of(key, words) for key in keys)


def _is_surely_right(match: Match) -> bool:
    """Say whether a firm answer gives the gold itself, and nothing beside or after it."""
    form, analysis = match.form, match.analysis
    near = analysis.answer.words[max(0, match.start - _NEAR) : match.end + _NEAR]
    counted = form.quantity is not None or form.date is not None
    if not _is_plain(analysis, near, counted=counted) or _is_shared(match) or is_weighed(match):
        return False
    size = len(analysis.own_words)
    room = _BRIEF if analysis.asks_several else _OPEN if analysis.open_ended else _FULL
    whole = analysis.sentences[match.start] == 0 and size <= room
    if match.exact:
        return whole or size <= _BRIEF
    if match.rule == FULL_NAME:
        return whole and size <= _BRIEF
    figures = any(word.isdecimal() for word in form.content)
    return whole and match.rule == TOGETHER and len(form.content) >= _PARTS and not figures


def _is_shared(match: Match) -> bool:
    """Say whether the gold is the question's own word, or part of a list or of a longer name."""
    form, analysis = match.form, match.analysis
    joiners = analysis.tables.words("joiners").difference(form.text.words)
    for side in (match.before(2)[::-1], match.after(2)):  # "and" beside the gold, a name beyond
        shared = not form.named or any(map(analysis.is_own_name, side[1:]))
        if shared and not joiners.isdisjoint(side[:1]):
            return True
    gap = analysis.answer.gaps[match.end]
    continued = gap == "-" or (gap == " " and any(map(analysis.is_own_name, match.after(1))))
    if form.named and match.after(1) and continued:
        return True
    return analysis.question_words.issuperset(form.content) and not analysis.asks("alternatives")


def _is_surely_wrong(analysis: AnswerAnalysis) -> bool:
    """Say whether a terse, firm answer gives another year, or another person altogether."""
    if not analysis.forms or not analysis.own_words or not _is_firm(analysis):
        return False
    if all(form.date for form in analysis.forms):
        return len(analysis.own_words) <= _TERSE and _is_other_year(analysis)
    named = all(form.named and not form.quantity for form in analysis.forms)
    return named and len(analysis.own_words) <= _BRIEF and _is_other_person(analysis)


def _is_other_year(analysis: AnswerAnalysis) -> bool:
    words = analysis.answer.words
    for date in analysis.dates:
        beside = words[max(0, date.start - 1) : date.start] + words[date.end : date.end + 1]
        if analysis.tables.any_of("bounds", beside):
            return False
    years = {date.year for date in analysis.dates if date.year}
    wanted = [form.date.year for form in analysis.forms if form.date and form.date.year]
    apart = all(abs(year - other) >= _YEARS for year in years for other in wanted)
    return len(years) == 1 and bool(wanted) and apart


def _is_other_person(analysis: AnswerAnalysis) -> bool:
    """Say whether the question asks who, and a full name begins with no letter of the gold's."""
    names = [word for word in analysis.own_words if word in analysis.capitals and len(word) > 1]
    scripts = {form.text.cyrillic for form in analysis.forms} | {analysis.answer.cyrillic}
    asks_who = analysis.tables.any_of("persons", analysis.question_head)
    if len(names) < _PARTS or len(scripts) > 1 or not asks_who:
        return False
    initials = {sound(word)[:1] for form in analysis.forms for word in form.text.words}
    return len(analysis.forms) <= _GOLDS and initials.isdisjoint(sound(word)[:1] for word in names)


def _is_surely_silent(analysis: AnswerAnalysis) -> bool:
    """Say whether a refusal names nothing and counts nothing that could be an answer."""
    if analysis.truncated or len(analysis.answer.words) <= _SILENT:
        return not analysis.truncated
    named = analysis.capitals.intersection(analysis.own_words)
    counted = any(word.isdecimal() for word in analysis.own_words)
    return len(analysis.own_words) <= _OPEN and not named and not counted
