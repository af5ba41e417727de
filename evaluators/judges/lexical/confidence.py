"""When a verdict of the rules is beyond doubt, so that no model need be asked."""

from evaluators.judges.lexical.answer_analysis import AnswerAnalysis
from evaluators.judges.lexical.folding import sound
from evaluators.judges.lexical.gold_matching import FULL_NAME, TOGETHER, Match
from evaluators.judges.lexical.rival_answers import is_weighed

_BRIEF = 12  # own words of an answer that says one thing
_OPEN = 20  # own words of a sentence about it, where other answers hold as well
_FULL = 40  # own words of a sentence or two about it
_SILENT = 6  # words of a refusal too short to hold an answer besides
_NEAR = 4  # words from the gold within which a doubt would touch it
_TERSE = 8  # own words of an answer that is little more than its date
_PARTS = 2  # words of a gold that are found together by no accident
_GOLDS = 2  # accepted names beyond which a list of them may well be open
_YEARS = 2  # years apart from which two dates are no matter of opinion


def is_firm(analysis: AnswerAnalysis) -> bool:
    """Say whether an answer is whole, and neither hedges nor denies nor weighs anywhere."""
    return _is_plain(analysis, analysis.answer.words, counted=True)


def _is_plain(analysis: AnswerAnalysis, words: tuple[str, ...], *, counted: bool) -> bool:
    """Say whether an answer is whole and certain, and these words of it weigh or deny nothing."""
    if analysis.truncated or analysis.hedges or analysis.refusals or analysis.doubts:
        return False
    approximate = counted and analysis.tables.any_of("approximate", words)
    keys = ("negations", "alternatives", "contrasts")
    return not approximate and not any(analysis.tables.any_of(key, words) for key in keys)


def is_surely_right(match: Match) -> bool:
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


def is_surely_wrong(analysis: AnswerAnalysis) -> bool:
    """Say whether a terse, firm answer gives another year, or another person altogether."""
    if not analysis.forms or not analysis.own_words or not is_firm(analysis):
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


def is_surely_silent(analysis: AnswerAnalysis) -> bool:
    """Say whether a refusal names nothing and counts nothing that could be an answer."""
    if analysis.truncated or len(analysis.answer.words) <= _SILENT:
        return not analysis.truncated
    named = analysis.capitals.intersection(analysis.own_words)
    counted = any(word.isdecimal() for word in analysis.own_words)
    return len(analysis.own_words) <= _OPEN and not named and not counted
