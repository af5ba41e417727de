"""Questions without an ordinary answer: on a false premise, or on what nobody knows.

Their gold says what is true instead. An answer is read clause by clause: which one denies, which
declines, and which offers a name or a number all the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from qagate.evaluators.answers.refusals import BREAK
from qagate.evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, Verdict
from qagate.evaluators.extras.lexical.analysis import Answer
from qagate.evaluators.extras.lexical.tolerance import Tolerance
from qagate.evaluators.kinds import UNANSWERABLE
from qagate.evaluators.languages.numbers import DASHES

DENIES = "the answer denies the premise"
TELLS_TRUTH = "the answer says what is true instead"
TAKES_FOR_TRUE = "the answer takes the false premise for true"
DECLINES = "the answer declines and does not give the gold"
SAYS_NOTHING = "the answer says nothing"

_BARE_REFUSAL = 12
"""Own words of a bare refusal, at most."""
_REMARK = 2
"""Own words from which a clause says something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """What a part of an answer does."""

    opener: str
    """Its first word."""
    own_words: int
    """How many of its words neither the question nor the gold has."""
    offers: bool
    """Whether a name or a number is among them."""
    is_explicit: bool
    """Whether it denies something in set words, such as "there is no"."""
    denies: bool
    """Whether it denies something, in set words or before a verb."""
    declines: bool
    """Whether it has a refusal."""

    @property
    def is_plain(self) -> bool:
        """Whether it neither denies nor declines."""
        return not self.denies and not self.declines


def grade_premise(answer: Answer, mark: str) -> Verdict:
    """Return the verdict where the gold says what is true; sure of a leading denial alone."""
    clauses = list(_clauses(answer))
    offers = any(clause.offers for clause in clauses)
    offers_plainly = any(clause.offers and clause.is_plain for clause in clauses)
    if mark == UNANSWERABLE and offers_plainly:
        return Verdict(grade=INCORRECT, reason=TAKES_FOR_TRUE)
    declines = any(clause.declines for clause in clauses) or bool(answer.hedges)
    denial = _denial(clauses, answer)
    if denial:
        is_doubtful = declines or answer.truncated or offers
        is_sure = denial.is_explicit and denial is clauses[0] and not is_doubtful
        return Verdict(grade=CORRECT, reason=DENIES, sure=is_sure)
    is_refusal = bool(answer.refusals) and is_bare(answer)
    if not is_refusal and _tells_truth(answer):
        return Verdict(grade=CORRECT, reason=TELLS_TRUTH)
    if not clauses or (_asks_back(answer) and not offers):
        return Verdict(grade=NOT_ATTEMPTED, reason=SAYS_NOTHING)
    if declines and not offers_plainly and not _states_something(clauses, answer):
        met = CORRECT if mark == UNANSWERABLE else NOT_ATTEMPTED
        return Verdict(grade=met, reason=DECLINES)
    return Verdict(grade=INCORRECT, reason=TAKES_FOR_TRUE)


def is_bare(answer: Answer) -> bool:
    """Return whether a refusal names nothing and counts nothing that could be an answer."""
    tables, words = answer.tables, answer.text.words
    if answer.truncated or answer.hedges or len(answer.own_words) > _BARE_REFUSAL:
        return False
    if tables.any_of("contrasts", words) or tables.any_of("alternatives", words):
        return False
    return not any(word.isdecimal() or word in answer.capitals for word in answer.told)


def _asks_back(answer: Answer) -> bool:
    requests = answer.tables.phrases["clarifications"].spans(answer.text.words)
    return any(requests) or "?" in answer.text.gaps[-1]


def _states_something(clauses: Sequence[Clause], answer: Answer) -> bool:
    """Return whether a clause before the refusal tells something, or a contrast parts the two."""
    for clause in clauses:
        if clause.declines:
            break
        if clause.is_plain and (clause.offers or clause.own_words >= _REMARK):
            return True
    for before, after in pairwise(clauses):
        is_contrast = after.opener in answer.tables.words["contrasts"]
        if is_contrast and before.is_plain != after.is_plain:
            return True
    return False


def _clauses(answer: Answer) -> Iterator[Clause]:
    """Yield the clauses of an answer: a mark of punctuation or a contrast begins the next one."""
    words, gaps, tables = answer.text.words, answer.text.gaps, answer.tables
    starts = []
    for place, word in enumerate(words):
        is_parted = place == 0 or BREAK.search(gaps[place])
        if is_parted or word in tables.words["contrasts"]:
            starts.append(place)
    repeated = _words_given(answer)
    ends = [*starts[1:], len(words)]
    for start, end in zip(starts, ends, strict=True):
        yield _clause(answer, start, end, repeated)


def _words_given(answer: Answer) -> set[str]:
    """Return the answer's words that question or gold have too, in any form: they are not new."""
    given_words = answer.question_words | answer.gold_words
    is_alike = Tolerance(answer.tables, names=True).alike
    repeated = set()
    for word in set(answer.text.words) - answer.tables.words["idle"]:
        if any(is_alike(given, word) for given in given_words):
            repeated.add(word)
    return repeated


def _clause(answer: Answer, start: int, end: int, repeated: set[str]) -> Clause:
    words, tables = answer.text.words, answer.tables
    own_places = _own_places(answer, start, end, repeated)
    offers = any(
        words[place].isdecimal() or (place > 0 and words[place] in answer.capitals)
        for place in own_places
    )
    is_explicit = bool(_phrase_ends("premise_denials", answer, start, end))
    denies = is_explicit or _negates_a_verb(answer, start, end)
    if offers or tables.any_of("doubts", words[start:end]):  # "no doubt" affirms
        denies = False
    return Clause(
        opener=words[start],
        own_words=len(own_places),
        offers=offers,
        is_explicit=is_explicit,
        denies=denies,
        declines=not answer.refused.isdisjoint(range(start, end)),
    )


def _own_places(answer: Answer, start: int, end: int, repeated: set[str]) -> list[int]:
    words, gaps, tables = answer.text.words, answer.text.gaps, answer.tables
    taken = answer.refused | answer.hedges
    places = []
    for place in range(start, end):
        is_light = words[place] in repeated or words[place] in tables.words["idle"]
        is_ending = (
            gaps[place] in DASHES and words[place] in tables.endings
        )  # "NATO-nak"
        if place not in taken and not is_light and not is_ending:
            places.append(place)
    return places


def _phrase_ends(key: str, answer: Answer, start: int, end: int) -> list[int]:
    """Return where phrases of a list end that neither the question nor a refusal has."""
    words = answer.text.words
    taken = answer.refused | answer.hedges
    ends = []
    for first, after in answer.tables.phrases[key].spans(words[start:end]):
        phrase = range(start + first, start + after)
        is_asked = answer.question_words.issuperset(words[phrase.start : phrase.stop])
        if not taken.issuperset(phrase) and not is_asked:
            ends.append(phrase.stop)
    return ends


def _negates_a_verb(answer: Answer, start: int, end: int) -> bool:
    """Return whether "not" stands before more than a small word or a name: it denies only that."""
    words, gaps = answer.text.words, answer.text.gaps
    small = answer.tables.words["function"] | answer.capitals
    for place in _phrase_ends("negations", answer, start, end):
        if place == len(words) or BREAK.search(gaps[place]):
            continue
        if words[place] not in small:
            return True
    return False


def _denial(clauses: Sequence[Clause], answer: Answer) -> Clause | None:
    """Return the clause that denies the premise, if no other one has offered anything before."""
    relatives = answer.tables.words["relatives"]
    for place, clause in enumerate(clauses):
        # One that completes what was said ("a hill that is no more") denies nothing.
        completes = (
            clause.opener in relatives
            and place > 0
            and clauses[place - 1].own_words > 0
        )
        if clause.denies and not completes:
            return clause
        if clause.offers:
            return None
    return None


def _tells_truth(answer: Answer) -> bool:
    """Return whether the answer has a name or number of what is true that the question lacks."""
    telling = set()
    for form in answer.forms:
        telling |= set(form.text.words) - form.common
    telling -= answer.question_words | answer.tables.words["idle"]
    is_alike = Tolerance(answer.tables, names=True).alike
    said = set(answer.text.words)
    return any(is_alike(wanted, word) for wanted in telling for word in said)
