"""Why a place that holds the gold is not what the answer says.

Each rule answers with a reason or with nothing; the first that has a reason decides.
"""

import re
from collections.abc import Callable, Sequence

from qagate.evaluators.answers.refusals import BREAK
from qagate.evaluators.extras.lexical.analysis import Answer
from qagate.evaluators.extras.lexical.match import Match
from qagate.evaluators.extras.lexical.options import Mention
from qagate.evaluators.extras.lexical.tolerance import Tolerance

DENIED = "the answer denies the gold"
ABSENT = "the answer does not hold the gold"
ONE_OF_SEVERAL = "the gold is only one of several candidates"
ANOTHER_LEADS = "the answer opens with another candidate"
ANOTHER_FIRST = "the answer names another option first"

_NEGATION_REACH = 3
"""Words over which a negation reaches."""
_GRANTED = 4
"""Words within which a concession, and then another candidate, follows a gold."""
_MANY_WORDS = 3
"""Words of rivals that make a list of guesses."""
_MANY_NUMBERS = 2
"""Rivals of a number that do."""
_LISTED_SHARE = 0.6
"""Of the answer's own words, from which it is a list."""
_TURN = 6
"""Words after "but" within which another candidate stands."""
_FIRST_RANK = ("1",)
"""What opens a numbered list."""
_SENTENCE_END = re.compile(r"[.;!?\n…]")
_CROSS = re.compile(r"^[^\n]*[✗✘❌]")
_LIST_SIGN = re.compile(r"[,;/|\n•]")
_NAME_END = re.compile(r"[.;!]\s|^[^|]*\n")
_NUMBER_END = re.compile(r"[.,;!]\s|^[^|]*\n|\s[—–-]\s")
_LIST_END = re.compile(r"[.✓✔✅✗✘❌]")
_CELL_END = re.compile(r"[|;,.!\n]")


def objection(match: Match, answer: Answer) -> str:
    """Return why a match is not what the answer says, a key of ``reasons.yaml``; else nothing."""
    for rule in RULES:
        reason = rule(match, answer)
        if reason:
            return reason
    return ""


def _denied(match: Match, answer: Answer) -> str:
    return DENIED if is_denied(match.start, match.end, answer) else ""


def is_denied(start: int, end: int, answer: Answer) -> bool:
    """Return whether "not" stands close before the words, or "is wrong", "no" or ✗ right after."""
    if _is_denied_before(start, answer):
        return not any(answer.tables.phrases["negations"].spans(answer.question.words))
    return _is_denied_after(end, answer) or _is_marked_wrong(end, answer)


def _is_denied_before(start: int, answer: Answer) -> bool:
    words, gaps, tables = answer.text.words, answer.text.gaps, answer.tables
    first = start
    while (
        start - first < _NEGATION_REACH and first > 0 and not BREAK.search(gaps[first])
    ):
        first -= 1
        if words[first] in tables.words["contrasts"]:
            break
    return any(tables.phrases["negations"].spans(words[first:start]))


def _is_denied_after(end: int, answer: Answer) -> bool:
    words, tables = answer.text.words, answer.tables
    if BREAK.search(answer.text.gaps[end]):
        return False
    near = words[end : end + 1]
    if tables.any_of("function", near):
        near = words[end : end + 2]
    return tables.any_of("faults", near) or any(tables.phrases["negations"].spans(near))


def _is_marked_wrong(end: int, answer: Answer) -> bool:
    """Return whether a cross or a bare "no" stands next to the words in a table or a list."""
    words, gaps = answer.text.words, answer.text.gaps
    if _CROSS.search(gaps[end]):
        return True
    if end == len(words) or "\n" in gaps[end]:
        return False
    is_no = words[end] in answer.tables.words["rejections"]
    is_cell = end + 1 == len(words) or bool(_CELL_END.search(gaps[end + 1]))
    return is_no and is_cell


def _other_numeral(match: Match, answer: Answer) -> str:
    """Elizabeth II is not Elizabeth I."""
    alike = Tolerance(answer.tables).alike
    same, other = False, False
    for form in answer.forms:
        for word, value in form.numerals:
            for said_word, said_value in answer.numerals:
                if alike(word, said_word):
                    same = same or value == said_value
                    other = other or value != said_value
    return ABSENT if other and not same else ""


def _another_option_first(match: Match, answer: Answer) -> str:
    """Where the question lists options, the first one that is not denied is the choice."""
    for other in answer.other_options:
        if is_denied(other.start, other.end, answer):
            continue
        if other.start < match.start:
            return ANOTHER_FIRST
        if other.start >= match.end:
            return ONE_OF_SEVERAL if _is_listed_after(match, other, answer) else ""
    return ""


def _is_listed_after(match: Match, other: Mention, answer: Answer) -> bool:
    """Return whether only a comma, "and" or "or" stands between the gold and another option."""
    joining = answer.tables.words["joiners"] | answer.tables.words["alternatives"]
    between = answer.text.words[match.end : other.start]
    has_list_sign = _LIST_SIGN.search(answer.text.gaps[match.end])
    return all(word in joining for word in between) and bool(between or has_list_sign)


def _another_leads(match: Match, answer: Answer) -> str:
    """The first sentence is another name or number and nothing else: "Vienna. Sofia was second"."""
    end = _end_of_bare_opening(match, answer)
    words = answer.text.words[:end]
    if not words or match.start < end or answer.gold_words.intersection(words):
        return ""
    light = answer.tables.words["idle"] | answer.question_words
    if any(word in light or place in answer.hedges for place, word in enumerate(words)):
        return ""
    if words == _FIRST_RANK or is_denied(0, end, answer):
        return ""
    are_numbers = all(word.isdecimal() for word in words)
    if match.form.quantity or match.form.date:
        return ANOTHER_LEADS if are_numbers else ""
    are_names = all(word in answer.capitals or word.isdecimal() for word in words)
    return ANOTHER_LEADS if are_names and not are_numbers else ""


def _end_of_bare_opening(match: Match, answer: Answer) -> int:
    """Return where the first sentence ends, of numbers the first comma; 0 after an initial."""
    is_counted = match.form.quantity or match.form.date
    ends = _NUMBER_END if is_counted else _NAME_END
    for place in range(1, len(answer.text.words)):
        if ends.search(answer.text.gaps[place]):
            last = answer.text.words[place - 1]
            is_initial = len(last) < 3 or last in answer.tables.words["titles"]
            return 0 if is_initial and not last.isdecimal() else place
    return 0


def _one_of_several(match: Match, answer: Answer) -> str:
    """The gold is joined by "or", or listed with what is not the gold's."""
    words, tables = answer.text.words, answer.tables
    if _grants_another(match, answer):
        return "" if answer.asks("alternatives") else ONE_OF_SEVERAL
    rivals = _rivals(match, answer, -1) + _rivals(match, answer, +1)
    if not rivals:
        return ""
    first = match.start
    if tables.any_of("function", words[match.start - 1 : match.start]):
        first -= 1
    around = words[max(0, first - 1) : match.start] + words[match.end : match.end + 1]
    if tables.any_of("alternatives", around):
        return "" if answer.asks("alternatives") else ONE_OF_SEVERAL
    size = match.end - match.start + rivals
    if size < _LISTED_SHARE * len(answer.own_words):
        return ""
    is_joined = tables.any_of("joiners", around)
    if is_joined and (match.form.named or not answer.is_open):
        return ONE_OF_SEVERAL
    is_counted = match.form.quantity or match.form.date
    many = _MANY_NUMBERS if is_counted else _MANY_WORDS
    return ONE_OF_SEVERAL if rivals >= many and not answer.is_open else ""


def _grants_another(match: Match, answer: Answer) -> bool:
    """Return whether "or perhaps" and another name or number follow the gold."""
    words = answer.text.words
    near = words[match.end : match.end + _GRANTED]
    for _, end in answer.tables.phrases["concessions"].spans(near):
        granted = words[match.end + end : match.end + end + _GRANTED]
        if any(word.isdecimal() or word in answer.capitals for word in granted):
            return True
    return False


def _rivals(match: Match, answer: Answer, step: int) -> int:
    """Return how many words, next to a name or number names and numbers, are listed with it."""
    words, tables = answer.text.words, answer.tables
    gold_words = {word for form in answer.forms for word in form.content}
    joining_words = tables.words["joiners"] | tables.words["alternatives"]
    words_of_answer = set(answer.own_words)
    form = match.form
    is_counted = bool(form.quantity or form.date)
    is_telling = is_counted or (form.named and not form.listed)
    place = match.end if step > 0 else match.start - 1
    rivals = 0
    is_separated = False
    while 0 <= place < len(words) and words[place] not in gold_words:
        word = words[place]
        # The gap on the side of the match: gaps[i] is before word i.
        gap = answer.text.gaps[place if step > 0 else place + 1]
        joins = word in joining_words
        if joins or _LIST_SIGN.search(gap):
            is_separated = True
        is_rival = word in words_of_answer and (
            word.isdecimal()
            or (word in answer.capitals and not is_counted)
            or not is_telling
        )
        # "and the", "or a": the word that joins stands before it.
        follows_joiner = (
            is_telling
            and tables.any_of("function", [word])
            and words[place - 1] in joining_words
        )
        is_listed = is_separated and not _LIST_END.search(gap) and (is_rival or joins)
        if not is_listed and not follows_joiner:
            break
        if is_rival:
            rivals += 1
        place += step
    return rivals


def _overturned(match: Match, answer: Answer) -> str:
    """Another name follows after "but": it is usually said to be X, but it is Y."""
    words, gaps, tables = answer.text.words, answer.text.gaps, answer.tables
    own = set(answer.own_words)
    if own.isdisjoint(words[: match.start]):
        return ""
    others = (answer.capitals & own) - tables.words["speakers"] - answer.gold_words
    for place in range(match.end, len(words)):
        if _SENTENCE_END.search(gaps[place]):
            return ""
        if words[place] in tables.words["contrasts"]:
            turn = _words_of_sentence(place, place + _TURN, answer)
            return "" if others.isdisjoint(turn) else ONE_OF_SEVERAL
    return ""


def _words_of_sentence(start: int, end: int, answer: Answer) -> tuple[str, ...]:
    words, gaps = answer.text.words, answer.text.gaps
    for place in range(start, min(end, len(words))):
        if _SENTENCE_END.search(gaps[place]):
            return words[start:place]
    return words[start:end]


RULES: Sequence[Callable[[Match, Answer], str]] = (
    _denied,
    _other_numeral,
    _another_option_first,
    _another_leads,
    _one_of_several,
    _overturned,
)
