"""When a verdict of the rules stands beyond doubt, so that no model need be asked."""

from evaluators.judges.lexical.answer_analysis import AnswerAnalysis
from evaluators.judges.lexical.dates import Date
from evaluators.judges.lexical.folding import sound
from evaluators.judges.lexical.gold_forms import Form
from evaluators.judges.lexical.gold_matching import TOGETHER
from evaluators.judges.lexical.weighing import is_weighed
from evaluators.judges.lexical.word_matching import FULL_NAME, Match

_BRIEF = 12  # own words of an answer that says one thing
_OPEN = 20  # own words of a sentence about it, where other answers hold as well
_FULL = 40  # own words of a sentence or two about it
_HUSH = 6  # words of a refusal too short to hold an answer besides
_NEAR = 4  # words from the gold within which a doubt would touch it
_SHAKY = ("negations", "alternatives", "contrasts")
_TERSE = 8  # own words of an answer that is little more than its date
_PARTS = 2  # words of a gold that are found together by no accident
_GOLDS = 2  # accepted names beyond which a list of them may well be open
_YEARS = 2  # years apart from which two dates are no matter of opinion


def surely_right(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether a firm answer gives the gold itself, and nothing beside or after it."""
    counted = form.quantity is not None or form.date is not None
    if not _is_plain(finding, exam, counted=counted) or _is_shared(finding, form, exam):
        return False
    if is_weighed(finding, exam):
        return False
    first = exam.sentences[finding.start] == 0
    room = _BRIEF if exam.asks_several else _OPEN if exam.open_ended else _FULL
    whole = first and len(exam.own) <= room
    if finding.exact:
        return whole or len(exam.own) <= _BRIEF
    if finding.rule == FULL_NAME:
        return whole and len(exam.own) <= _BRIEF
    figures = any(word.isdecimal() for word in form.content)
    return whole and finding.rule == TOGETHER and len(form.content) >= _PARTS and not figures


def _is_plain(finding: Match, exam: AnswerAnalysis, *, counted: bool) -> bool:
    """Say whether an answer is whole and certain, and weighs or denies nothing near the gold."""
    if exam.cut or exam.hedged or exam.refused or exam.unsure:
        return False
    near = exam.said.words[max(0, finding.start - _NEAR) : finding.end + _NEAR]
    keys = (*_SHAKY, "approximate") if counted else _SHAKY
    return not any(not exam.tables.words(key).isdisjoint(near) for key in keys)


def _is_shared(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether the gold is the question's own word, or part of a list or of a longer name."""
    said = exam.said
    if _is_joined(finding, form, exam):
        return True
    after = said.words[finding.end : finding.end + 1]
    gap = said.gaps[finding.end]
    longer = (
        form.named and bool(after) and (gap == "-" or (gap == " " and _goes_on(after[0], exam)))
    )
    return longer or (exam.echoed.issuperset(form.content) and not exam.asks("alternatives"))


def _is_joined(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether "and" stands beside the gold, and another name beyond it."""
    words = exam.said.words
    joiners = exam.tables.words("joiners").difference(form.text.words)
    behind, beyond = words[: finding.start][::-1][:2], words[finding.end : finding.end + 2]
    sides = [side for side in (behind, beyond) if side and side[0] in joiners]
    return any(not form.named or any(_goes_on(word, exam) for word in side[1:]) for side in sides)


def _goes_on(word: str, exam: AnswerAnalysis) -> bool:
    return word in exam.capitals and word in exam.own


def is_firm(exam: AnswerAnalysis) -> bool:
    """Say whether an answer is whole, and neither hedges nor denies nor weighs anywhere."""
    whole = Match(start=0, end=len(exam.said.words), rule="")
    return _is_plain(whole, exam, counted=True)


def surely_wrong(exam: AnswerAnalysis) -> bool:
    """Say whether a terse, firm answer gives another year, or another person altogether."""
    if not exam.forms or not exam.own or not is_firm(exam):
        return False
    if all(form.date for form in exam.forms):
        return len(exam.own) <= _TERSE and _is_other_year(exam)
    named = all(form.named and not form.quantity for form in exam.forms)
    return named and len(exam.own) <= _BRIEF and _is_other_person(exam)


def _is_other_year(exam: AnswerAnalysis) -> bool:
    said = {date.year for date in exam.dates if date.year}
    wanted = [form.date.year for form in exam.forms if form.date and form.date.year]
    if len(said) != 1 or not wanted or any(_is_bound(date, exam) for date in exam.dates):
        return False
    return all(abs(year - other) >= _YEARS for year in said for other in wanted)


def _is_bound(date: Date, exam: AnswerAnalysis) -> bool:
    words, bounds = exam.said.words, exam.tables.words("bounds")
    beside = words[max(0, date.start - 1) : date.start] + words[date.end : date.end + 1]
    return not bounds.isdisjoint(beside)


def _is_other_person(exam: AnswerAnalysis) -> bool:
    """Say whether the question asks who, and a full name begins with no letter of the gold's."""
    asked = exam.tables.words("persons")
    given = [word for word in exam.own if word in exam.capitals and len(word) > 1]
    scripts = {form.text.cyrillic for form in exam.forms} | {exam.said.cyrillic}
    if len(given) < _PARTS or len(scripts) > 1 or asked.isdisjoint(exam.sort):
        return False
    initials = {sound(word)[:1] for form in exam.forms for word in form.text.words}
    return len(exam.forms) <= _GOLDS and initials.isdisjoint(sound(word)[:1] for word in given)


def surely_silent(exam: AnswerAnalysis) -> bool:
    """Say whether a refusal names nothing and counts nothing that could be an answer."""
    if len(exam.said.words) <= _HUSH and not exam.cut:
        return True
    named = exam.capitals.intersection(exam.own)
    counted = any(word.isdecimal() for word in exam.own)
    return len(exam.own) <= _OPEN and not named and not counted and not exam.cut
