"""When a wrong answer, or a refusal, is beyond doubt."""

from evaluators.judges.lexical.answer_analysis import AnswerAnalysis
from evaluators.judges.lexical.certainty import is_firm
from evaluators.judges.lexical.folding import sound

_SILENT = 6  # words of a refusal too short to hold an answer besides
_TERSE = 3  # own words of an answer that is little more than its date
_NAMES = 4  # words of an answer that is nothing but a name
_GOLDS = 2  # accepted names beyond which a list of them may well be open
_YEARS = 2  # years apart from which two dates are no matter of opinion
_PARTS = 2  # words of a full name
_OPEN = 20  # own words of a refusal that explains itself


def is_surely_wrong(analysis: AnswerAnalysis) -> bool:
    """Say whether a terse, firm answer gives another year, or another person altogether."""
    if not analysis.forms or not analysis.own_words or not is_firm(analysis):
        return False
    if all(form.date for form in analysis.forms):
        return len(analysis.own_words) <= _TERSE and _is_other_year(analysis)
    named = all(form.named and not form.quantity for form in analysis.forms)
    return named and len(analysis.own_words) <= _NAMES and _is_other_person(analysis)


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
    counted = any(word.isdecimal() for word in analysis.own_words)
    if analysis.truncated or counted:
        return False
    named = analysis.capitals.intersection(analysis.own_words)
    if len(analysis.answer.words) <= _SILENT:  # its first word, and those that decline, are no name
        spoken = {place for span in analysis.refusals for place in range(*span)} | {0}
        words = enumerate(analysis.answer.words)
        return named.isdisjoint(word for place, word in words if place not in spoken)
    return len(analysis.own_words) <= _OPEN and not named
