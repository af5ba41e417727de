"""The judge without a model: a placeholder, and the cheap half of a cascade."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice, pairwise, takewhile
from pathlib import Path
from typing import NamedTuple, cast

from qagate.evaluators.core import (
    CORRECT,
    INCORRECT,
    NOT_ATTEMPTED,
    Ask,
    Case,
    Judge,
    Verdict,
)
from qagate.evaluators.extras.lexical.analysis import BREAK, Answer
from qagate.evaluators.extras.lexical.match import (
    Match,
    Tolerance,
    find_matches,
    objection,
)
from qagate.evaluators.extras.lexical.overlap import OverlapRater
from qagate.evaluators.kinds import MARKS, UNANSWERABLE
from qagate.evaluators.languages.numbers import DASHES
from qagate.evaluators.languages.word_lists import plain, within_limit
from qagate.evaluators.reading import load_yaml
from qagate.evaluators.replies.labels import content_free
from qagate.evaluators.rubric import Style
from qagate.evaluators.user_code import SHORT, off_the_loop

REASONS_FILE = Path(__file__).with_name("reasons.yaml")

_TRIES = 16  # mentions of one gold; an answer that repeats it more often adds nothing
_REACH = 3  # words before a number within which a bound stands


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
    """Return the verdict of the first rule that has one, its reason in the item's language.

    It is sure of a bare declared form, a bare refusal, and a plain denial of a false premise.
    """
    verdict = _grade(case, answer)
    translations = _reasons().get(verdict.reason, {})
    return replace(verdict, reason=translations.get(case.language, verdict.reason))


@cache
def _reasons() -> Mapping[str, Mapping[str, str]]:
    """Return the reasons in other languages, by the English one."""
    return cast("Mapping[str, Mapping[str, str]]", load_yaml(REASONS_FILE))


def _grade(case: Case, answer: str) -> Verdict:
    beginning = within_limit(answer)
    if content_free(beginning, case.golds):
        return Verdict(grade=NOT_ATTEMPTED, reason="the answer says nothing")
    for mark in MARKS:
        marked = [
            gold.strip() for gold in case.golds if gold.strip().upper().startswith(mark)
        ]
        if truths := tuple(gold[len(mark) :].strip() for gold in marked):
            return _grade_premise(Answer(replace(case, golds=truths), answer), mark)
    analysis, said = Answer(case, answer), plain(beginning)
    if said and beginning == answer and any(said == plain(gold) for gold in case.golds):
        sure = not analysis.is_open and "?" not in answer
        return Verdict(grade=CORRECT, reason="the answer is the gold", sure=sure)
    return _compared(analysis)


def _compared(answer: Answer) -> Verdict:
    """Return CORRECT where a form stands in the answer; else why the first one does not count."""
    reasons = []
    for form in answer.forms:
        for match in islice(find_matches(form, answer), _TRIES):
            if not (reason := objection(match, answer)):
                return Verdict(
                    grade=CORRECT, reason=match.rule, sure=_is_sure(match, answer)
                )
            reasons.append(reason)
    if reasons:
        return Verdict(grade=INCORRECT, reason=reasons[0])
    if not answer.own_words and not answer.asks("alternatives"):
        return Verdict(grade=NOT_ATTEMPTED, reason="the answer says nothing")
    if _declines(answer):
        reason = "the answer declines and does not give the gold"
        return Verdict(grade=NOT_ATTEMPTED, reason=reason, sure=_is_bare(answer))
    if _is_coarse(answer):
        return Verdict(
            grade=NOT_ATTEMPTED, reason="the answer is less precise than the gold"
        )
    return Verdict(grade=INCORRECT, reason="the answer does not hold the gold")


def _is_sure(match: Match, answer: Answer) -> bool:
    """Return whether the answer is a declared form with light words and the question's in order."""
    known, words, gaps = answer.tables, answer.text.words, answer.text.gaps
    rest = words[: match.start] + words[match.end :]
    doubtful = answer.hedges or answer.refusals or answer.truncated or answer.spelt
    after = gaps[match.end] if match.end < len(words) else ""
    ordinal = match.form.quantity and after.startswith(".")
    signs = (gaps[match.end][:1], match.form.text.gaps[-1][:1])
    suffixed = any(sign in DASHES or sign == "+" for sign in signs)  # "3-an", "A+"
    if (
        not match.exact
        or match.form.place
        or answer.is_open
        or doubtful
        or suffixed
        or ordinal
    ):
        return False
    phrases = any(
        any(known.phrases[key].spans(words)) for key in ("negations", "more", "less")
    )
    keys = ("alternatives", "contrasts", "faults", "approximate", "between")
    echoes = answer.question_words.issuperset(words[match.start : match.end])
    asks = any("?" in gap for gap in gaps)
    if phrases or echoes or asks or any(known.any_of(key, rest) for key in keys):
        return False
    # "Spain beat Italy" does not answer who beat Spain: the order counts.
    asked, alike = iter(answer.question.words), Tolerance(known).alike
    idle = known.words["idle"] - known.words["joiners"]
    own = (word for word in rest if word not in idle)
    return all(any(alike(one, word) for one in asked) for word in own)


def _is_coarse(answer: Answer) -> bool:
    """Return whether an answer is right as far as it goes, and less precise than the gold."""
    words, asked, known = answer.text.words, answer.question_words, answer.tables
    dates = [
        one for one in answer.dates if not asked.issuperset(words[one.start : one.end])
    ]
    golds, own, alike = (
        [f.content for f in answer.forms],
        answer.own_words,
        Tolerance(known).alike,
    )
    if answer.asks("places") and own and not known.countries.intersection(golds):
        lands = (one for one in known.countries if len(one) == len(own))
        if any(all(map(alike, one, own)) for one in lands):
            return True
    for form in answer.forms:
        if gold := form.quantity:
            places = (
                (one.values[0], gold.values[0], one.start) for one in answer.quantities
            )
            if any(_leaves_room(*place, answer) for place in places):
                return True
        if dates and (date := form.date):
            rooms = (
                _leaves_room(d.year or 0, date.year or 0, d.start, answer)
                for d in dates
            )
            if all(map(date.agrees, dates)) or all(rooms):
                return True
    return False


def _leaves_room(value: float, gold: float, place: int, answer: Answer) -> bool:
    """Return whether "more than" or "before" leads up to a value and leaves the gold possible."""
    before = answer.text.words[max(0, place - _REACH) : place]
    spans = {key: answer.tables.phrases[key].spans(before) for key in ("more", "less")}
    found = (
        (start, key) for key in spans for start, end in spans[key] if end == len(before)
    )
    bound = min(found, default=(0, ""))[1]
    return (bound == "more" and value < gold) or (bound == "less" and value > gold)


_BARE = 12  # own words of a bare refusal
_REMARK = 2  # own words from which a clause says something


def _declines(answer: Answer) -> bool:
    """Return whether an answer declines or doubts, and does not offer anything in doubt."""
    if not answer.hedges:
        return bool(answer.refusals)
    counted = any(form.quantity or form.date for form in answer.forms)
    named = all(form.named for form in answer.forms)
    return not any(
        word.isdecimal()
        if counted or word.isdecimal()
        else word in answer.capitals or not named
        for word in answer.told
    )


def _is_bare(answer: Answer) -> bool:
    """Return whether a refusal names nothing and counts nothing that could be an answer."""
    known, words = answer.tables, answer.text.words
    offers = any(word.isdecimal() or word in answer.capitals for word in answer.told)
    turns = any(known.any_of(key, words) for key in ("contrasts", "alternatives"))
    brief = len(answer.own_words) <= _BARE and not answer.truncated
    return brief and not offers and not turns and not answer.hedges


class _Clause(NamedTuple):
    """What a part of an answer to a question without an ordinary answer does."""

    opener: str  # its first word
    own: int  # words that neither the question nor the gold has
    offers: bool  # a name or a number among them
    explicit: bool  # denies something in set words, such as "there is no"
    denies: bool  # in set words or before a verb
    declines: bool  # has a refusal

    @property
    def is_plain(self) -> bool:
        """Whether it neither denies nor declines."""
        return not self.denies and not self.declines


def _grade_premise(answer: Answer, mark: str) -> Verdict:
    """Return the verdict where forms say what is true instead; sure of a leading denial alone."""
    clauses = [*_clauses(answer)]
    declined = any(one.declines for one in clauses) or bool(answer.hedges)
    asks = any(answer.tables.phrases["clarifications"].spans(answer.text.words))
    asks = asks or "?" in answer.text.gaps[-1]
    denial = _denial(clauses, answer)
    offered = any(one.offers and one.is_plain for one in clauses)
    if mark == UNANSWERABLE and offered:
        return Verdict(
            grade=INCORRECT, reason="the answer takes the false premise for true"
        )
    if denial:
        doubtful = declined or answer.truncated or any(one.offers for one in clauses)
        sure = denial.explicit and denial is clauses[0] and not doubtful
        return Verdict(grade=CORRECT, reason="the answer denies the premise", sure=sure)
    if _tells_truth(answer) and not (answer.refusals and _is_bare(answer)):
        return Verdict(grade=CORRECT, reason="the answer says what is true instead")
    turns = answer.tables.words["contrasts"]
    first = takewhile(lambda one: not one.declines, clauses)
    stated = any(
        one.is_plain and (one.offers or one.own >= _REMARK) for one in first
    ) or any(
        after.opener in turns and before.is_plain != after.is_plain
        for before, after in pairwise(clauses)
    )
    if (asks and not any(one.offers for one in clauses)) or not clauses:
        return Verdict(grade=NOT_ATTEMPTED, reason="the answer says nothing")
    if declined and not offered and not stated:
        met = CORRECT if mark == UNANSWERABLE else NOT_ATTEMPTED
        return Verdict(
            grade=met, reason="the answer declines and does not give the gold"
        )
    return Verdict(
        grade=INCORRECT, reason="the answer takes the false premise for true"
    )


def _clauses(answer: Answer) -> Iterator[_Clause]:
    """Yield the clauses of an answer: a mark of punctuation or a contrast begins the next one."""
    words, gaps, tables = answer.text.words, answer.text.gaps, answer.tables
    starts = []
    for place, word in enumerate(words):
        is_parted = place == 0 or BREAK.search(gaps[place])
        if is_parted or word in tables.words["contrasts"]:
            starts.append(place)
    # Words that question or gold have too, in any inflected form, offer nothing new.
    given_words = answer.question_words | answer.gold_words
    is_alike = Tolerance(tables, names=True).alike
    repeated = set()
    for word in set(words) - tables.words["idle"]:
        if any(is_alike(given, word) for given in given_words):
            repeated.add(word)
    ends = [*starts[1:], len(words)]
    for start, end in zip(starts, ends, strict=True):
        yield _clause(answer, start, end, repeated)


def _clause(answer: Answer, start: int, end: int, heard: set[str]) -> _Clause:
    words, gaps, known = answer.text.words, answer.text.gaps, answer.tables
    taken = answer.refused | answer.hedges
    own = [
        place for place in range(start, end)
        if place not in taken and words[place] not in heard | known.words["idle"]
        and not (gaps[place] in DASHES and words[place] in known.endings)  # "NATO-nak"
    ]  # fmt: skip
    named = [
        i for i in own if words[i].isdecimal() or (i and words[i] in answer.capitals)
    ]

    def ends_of(key: str) -> list[int]:
        """Return where phrases end that neither the question nor a refusal has."""
        found = known.phrases[key].spans(words[start:end])
        spans = [range(start + first, start + after) for first, after in found]
        return [
            one.stop for one in spans if not taken.issuperset(one)
            and not answer.question_words.issuperset(words[one.start : one.stop])
        ]  # fmt: skip

    set_words, small = (
        ends_of("premise_denials"),
        known.words["function"] | answer.capitals,
    )
    bare = any(  # "not" before a small word or a name denies only that
        place < len(words)
        and not BREAK.search(gaps[place])
        and words[place] not in small
        for place in ends_of("negations")
    )
    doubts = known.any_of("doubts", words[start:end])  # "no doubt" affirms
    denies = bool(set_words or bare) and not doubts and not named
    declines = not answer.refused.isdisjoint(range(start, end))
    denies = denies or (declines and known.any_of("such", words[start:end]))
    return _Clause(
        words[start], len(own), bool(named), bool(set_words), denies, declines
    )


def _denial(clauses: Sequence[_Clause], answer: Answer) -> _Clause | None:
    """Return the clause that denies the premise, if no other one has offered anything before."""
    opens = answer.tables.words["relatives"]
    for place, one in enumerate(clauses):
        # one that only completes what was said ("a hill that is no more") denies nothing
        completes = one.opener in opens and place and clauses[place - 1].own
        if one.denies and not completes:
            return one
        if one.offers:
            return None
    return None


def _tells_truth(answer: Answer) -> bool:
    """Return whether the answer has a name or number of what is true that the question lacks."""
    telling = {
        word
        for form in answer.forms
        for word in form.text.words
        if word not in form.common
    }
    telling -= answer.question_words | answer.tables.words["idle"]
    alike = Tolerance(answer.tables, names=True).alike
    return any(alike(one, word) for one in telling for word in {*answer.text.words})
