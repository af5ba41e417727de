"""Answers that decline, and questions that rest on something false or have no answer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, Verdict
from evaluators.judges.lexical.analysis import BREAK, Answer, Span
from evaluators.judges.lexical.match import Tolerance
from evaluators.judges.lexical.numbers import DASHES
from evaluators.judges.lexical.tables import Phrases
from evaluators.kinds import MARKS, UNANSWERABLE

_BARE = 12  # own words of a bare refusal
_REMARK = 2  # own words from which a clause says something


def declines(answer: Answer) -> bool:
    """Return whether an answer declines or doubts, and does not offer anything in doubt."""
    counted = any(form.counted for form in answer.forms)
    named = all(form.named for form in answer.forms)
    fits = (
        word.isdecimal() if counted or word.isdecimal() else word in answer.capitals or not named
        for word in _beside(answer)
    )
    return bool(answer.refusals or answer.hedges) and not (answer.hedges and any(fits))


def is_bare(answer: Answer) -> bool:
    """Return whether a refusal names nothing and counts nothing that could be an answer."""
    known, words = answer.tables, answer.text.words
    offers = any(word.isdecimal() or word in answer.capitals for word in _beside(answer))
    turns = any(known.any_of(key, words) for key in ("contrasts", "alternatives"))
    brief = len(answer.own_words) <= _BARE and not answer.truncated
    return brief and not offers and not turns and not answer.hedges


def _beside(answer: Answer) -> list[str]:
    """Return the answer's own words that are no part of a refusal, its first word left out."""
    declined = {place for span in answer.refusals for place in range(*span)} | {0}
    words, own = enumerate(answer.text.words), set(answer.own_words)
    return [word for i, word in words if i not in declined and word in own]


def premise(golds: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the mark of golds without an ordinary answer, and what is true instead."""
    for mark in MARKS:
        truths = [gold.strip() for gold in golds if gold.strip().upper().startswith(mark)]
        if truths:
            return mark, tuple(truth[len(mark) :].strip() for truth in truths)
    return "", ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clause:
    """A part of an answer to a question without an ordinary answer."""

    denies: bool
    """Whether it denies something, in set words or before a verb."""
    explicit: bool
    """Whether it does so in set words, such as "there is no"."""
    declines: bool
    """Whether a refusal stands in it."""
    offers: bool
    """Whether it has a name or a number that neither the question nor the gold has."""
    has_own: bool
    """Whether a word of its own stands in it."""
    states: bool
    """Whether it says enough of its own to be an answer."""
    recalls: bool
    """Whether it has a word of the question or the gold."""
    asks: bool
    """Whether it ends with a question mark."""
    opener: str
    """Its first word."""

    @property
    def is_plain(self) -> bool:
        """Whether it neither denies nor declines."""
        return not self.denies and not self.declines


def grade_premise(answer: Answer, mark: str) -> Verdict:
    """Return the verdict on an answer whose forms say what is true instead.

    It is sure only of an answer that begins with an explicit denial and offers nothing.
    """
    clauses = [*_clauses(answer)]
    declined = any(one.declines for one in clauses) or bool(answer.hedges)
    asks = answer.tables.phrases["clarifications"].within(answer.text.words)
    asks = asks or (bool(clauses) and clauses[-1].asks)
    denial = _denial(clauses, answer)
    offered = any(one.offers and one.is_plain for one in clauses)
    if mark == UNANSWERABLE and offered:
        return Verdict(grade=INCORRECT, reason="the answer takes the false premise for true")
    if denial:
        doubtful = declined or answer.truncated or any(one.offers for one in clauses)
        sure = denial.explicit and denial is clauses[0] and not doubtful
        return Verdict(grade=CORRECT, reason="the answer denies the premise", sure=sure)
    if _tells_truth(answer):
        return Verdict(grade=CORRECT, reason="the answer says what is true instead")
    turns = answer.tables.words["contrasts"]
    first = takewhile(lambda one: not one.declines, clauses)
    stated = any(one.states and one.is_plain for one in first) or any(
        after.opener in turns and before.is_plain != after.is_plain
        for before, after in pairwise(clauses)
    )
    if (asks and not any(one.offers for one in clauses)) or not clauses:
        return Verdict(grade=NOT_ATTEMPTED, reason="the answer says nothing")
    if declined and not offered and not stated:
        met = CORRECT if mark == UNANSWERABLE else NOT_ATTEMPTED
        return Verdict(grade=met, reason="the answer declines and does not give the gold")
    return Verdict(grade=INCORRECT, reason="the answer takes the false premise for true")


def _clauses(answer: Answer) -> Iterator[_Clause]:
    """Yield the clauses of an answer: a mark of punctuation or a contrast begins the next one."""
    words, gaps, known = answer.text.words, answer.text.gaps, answer.tables
    begins = [
        place for place, word in enumerate(words)
        if place == 0 or BREAK.search(gaps[place]) or word in known.words["contrasts"]
    ]  # fmt: skip
    shared = {*answer.question_words, *(word for form in answer.forms for word in form.text.words)}
    alike = Tolerance(tables=known, scripts=answer.text.cyrillic).alike
    heard = {word for word in set(words) if any(alike(one, word) for one in shared)}
    for start, end in zip(begins, [*begins[1:], len(words)], strict=True):
        yield _clause(answer, start, end, heard - answer.idle_words)


def _clause(answer: Answer, start: int, end: int, heard: set[str]) -> _Clause:
    words, gaps, known = answer.text.words, answer.text.gaps, answer.tables
    refused = {place for span in answer.refusals for place in range(*span)}
    taken = refused | answer.hedges
    own = [
        place for place in range(start, end)
        if place not in taken and words[place] not in heard | answer.idle_words
        and not (gaps[place] in DASHES and words[place] in known.endings)  # "NATO-nak"
    ]  # fmt: skip
    named = [i for i in own if words[i].isdecimal() or (i and words[i] in answer.capitals)]
    set_words = _new(known.phrases["premise_denials"], answer, start, end, taken)
    bare = _verbal(answer, _new(known.phrases["negations"], answer, start, end, taken))
    doubts = known.any_of("doubts", words[start:end])  # "no doubt" affirms
    denies = bool(set_words or bare) and not doubts and not named
    declines = not refused.isdisjoint(range(start, end))
    last = any(sign in gaps[end] for sign in ".;:!?\n")
    return _Clause(
        explicit=bool(set_words),
        denies=denies or (declines and known.any_of("such", words[start:end])),
        declines=declines,
        offers=bool(named),
        has_own=bool(own),
        states=bool(named) or len(own) >= _REMARK or (last and bool(own)),
        recalls=not heard.isdisjoint(words[start:end]),
        asks="?" in gaps[end],
        opener=words[start],
    )


def _new(phrases: Phrases, answer: Answer, start: int, end: int, taken: set[int]) -> list[Span]:
    """Return where a clause has phrases that neither the question nor a refusal has."""
    words = answer.text.words
    return [
        (start + one, start + after) for one, after in phrases.spans(words[start:end])
        if not taken.issuperset(range(start + one, start + after))
        and not answer.question_words.issuperset(words[start + one : start + after])
    ]  # fmt: skip


def _verbal(answer: Answer, spans: list[Span]) -> list[Span]:
    """Return the negations before a verb: "not" before a small word or a name denies only that."""
    words, gaps = answer.text.words, answer.text.gaps
    small = answer.tables.words["function"] | answer.capitals
    return [
        span for span in spans
        if span[1] < len(words) and not BREAK.search(gaps[span[1]]) and words[span[1]] not in small
    ]  # fmt: skip


def _denial(clauses: Sequence[_Clause], answer: Answer) -> _Clause | None:
    """Return the clause that denies the premise, if no other one has given an answer before it.

    Where the next clause completes it with something offered ("no doubt that in 1907"), it only
    completes what was said ("a hill that is no more"), or it adds to it without a word of the
    question ("The cornet. Nobody disputes it."), it denies nothing.
    """
    opens = answer.tables.words["relatives"]
    for place, one in enumerate(clauses):
        after = clauses[place + 1] if place + 1 < len(clauses) else one
        completed = after.opener in opens and after.offers and not after.denies
        completes = one.opener in opens and place and clauses[place - 1].has_own
        adds = not one.recalls and any(before.states for before in clauses[:place])
        if one.denies and not (completed or completes or adds):
            return one
        if one.offers:
            return None
    return None


def _tells_truth(answer: Answer) -> bool:
    """Return whether the answer has a name or number of what is true that the question lacks."""
    telling = {word for form in answer.forms for word in form.text.words if word not in form.common}
    telling -= answer.question_words | answer.idle_words
    alike = Tolerance(tables=answer.tables, scripts=answer.text.cyrillic).alike
    return any(alike(one, word) for one in telling for word in set(answer.text.words))
