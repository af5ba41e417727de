"""Why a gold that is found in an answer may still not be what the answer says."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial

from evaluators.core import INCORRECT, NOT_ATTEMPTED, Verdict
from evaluators.judges.lexical import rival_answers as rivals
from evaluators.judges.lexical.answer_analysis import AnswerAnalysis
from evaluators.judges.lexical.gold_forms import Form
from evaluators.judges.lexical.gold_matching import Match, find_matches
from evaluators.judges.lexical.numbers import Quantity

_BREAK = re.compile(r"[.,;:!?\n()\"”“„«»]")
_ASIDE = re.compile(r"[,(–—]")
_BOUND = 4  # words before a number in which a bound may be
_RANGE = 5  # words between the opening of a range and its second end
_REACH = 3  # words over which a negation reaches
_BRIEF = 8  # own words of an answer that may well give one example of several
_SEVERAL = 3  # different golds that make a list
_LATE = 30  # words before a gold that answer something else, where they deny something
_LONG = 20  # own words above which an answer tells a story rather than a name


def reject_reason(match: Match) -> Verdict | None:
    """Return the verdict on a match that does not count, or None where nothing speaks against."""
    for grade, reason, holds in _REASONS:
        if holds(match):
            return Verdict(grade=grade, reason=reason)
    return None


def _negated(match: Match) -> bool:
    """Say whether a negation comes before, as in "not X"; "not Graz but X" denies Graz."""
    words, gaps = match.analysis.answer.words, match.analysis.answer.gaps
    known = match.analysis.tables
    for place in range(match.start - 1, max(-1, match.start - 1 - _REACH), -1):
        if _BREAK.search(gaps[place + 1]) or words[place] in known.words("contrasts"):
            return False
        if words[place] in known.words("negations"):
            undone = words[place + 1] in known.words("undoing")
            return not undone and not match.analysis.asks("negations")
    return False


def _denied(match: Match) -> bool:
    """Say whether a denial follows at once: "X is not", "X is wrong"; "X, not Graz" denies Graz."""
    known, after = match.analysis.tables, match.after(2)
    if _ASIDE.search(match.analysis.answer.gaps[match.end]) and len(after) > 1:
        return False
    linked = known.any_of("function", after[:1])
    near = after if linked else after[:1]
    called_wrong = known.any_of("faults", near) and not match.analysis.asks("faults")
    return called_wrong or known.any_of("negations", near)


def _range_end(match: Match) -> bool:
    """Say whether a number or date is only one end of "between this and that"."""
    known, before = match.analysis.tables, match.before(_RANGE)
    counted = match.form.quantity is not None or match.form.date is not None
    joined = known.any_of("range_joins", before[-1:] + match.after(1))
    return counted and joined and known.any_of("ranges", before)


def _part_of_a_count(match: Match) -> bool:
    """Say whether a figure only counts a part of another: "3 medals, 2 of them gold"."""
    near, known = match.before(_REACH) + match.after(_REACH), match.analysis.tables
    return known.has_phrase("subsets", near) and any(True for _ in _other_figures(match))


def _granted(match: Match) -> bool:
    """Say whether the gold is only granted beside the candidate that the answer prefers."""
    analysis, words = match.analysis, match.analysis.answer.words
    start, end = match.start, match.end
    while start and not _BREAK.search(analysis.answer.gaps[start]):
        start -= 1
    while end < len(words) and not _BREAK.search(analysis.answer.gaps[end]):
        end += 1
    concession = analysis.tables.has_phrase("concessions", words[start:end])
    return concession and any(word in analysis.own_words for word in words[:start])


def _bounded(key: str, match: Match) -> bool:
    """Say whether a phrase such as "more than" leads up to the gold's number, which has none."""
    before, phrases = match.before(_BOUND), match.analysis.tables.phrases(key)
    leads = any(end == len(before) for _, end in phrases.spans(before))
    return leads and bool(match.form.quantity) and phrases.find(match.form.text.words) is None


def _second_figure(match: Match) -> bool:
    """Say whether an earlier line of the answer gives another figure."""
    gaps = match.analysis.answer.gaps
    lines = (place for place in range(match.start, -1, -1) if "\n" in gaps[place])
    line = next(lines, 0)
    return any(other.end <= line for other in _other_figures(match))


def _overtaken(match: Match) -> bool:
    """Say whether another figure or date comes first, and a contrast leads over to the gold's."""
    analysis, date = match.analysis, match.form.date
    if date:
        rivals = (other for other in analysis.dates if other.year and other.year != date.year)
        ends = (other.end for other in rivals if other.end <= match.start)
    else:
        ends = (other.end for other in _other_figures(match))
    first = next(ends, match.start)
    return analysis.tables.any_of("contrasts", analysis.answer.words[first : match.start])


def _other_figures(match: Match) -> Iterator[Quantity]:
    """Yield the figures before the gold that are of its unit and contradict it."""
    if gold := match.form.quantity:
        for other in match.analysis.quantities:
            earlier = other.end <= match.start and other.unit == gold.unit
            if earlier and not other.rounds_to(gold):
                yield other


def _repeats(match: Match) -> bool:
    """Say whether words of the question only run into the gold, or are in a late sentence."""
    form, analysis = match.form, match.analysis
    if not analysis.question_words.issuperset(match.words) or analysis.asks("alternatives"):
        return False
    split = match.exact and len(match.words) > len(form.text.words)
    return split or (form.quantity is None and analysis.sentences[match.start] > 0)


def _falls_short(match: Match) -> bool:
    """Say whether a talkative answer has fewer than half of several different golds.

    Where the question asks for one thing, only a late mention in a long answer is so little.
    """
    analysis = match.analysis
    late = len(analysis.own_words) > _LONG and analysis.sentences[match.start] > 0
    if len(analysis.own_words) <= _BRIEF or not (analysis.asks_several or late):
        return False
    wanted, met = _golds_met(analysis)
    return wanted >= _SEVERAL and met * 2 < wanted


@lru_cache(maxsize=1)
def _golds_met(analysis: AnswerAnalysis) -> tuple[int, int]:
    """Return how many different things the golds name, and how many of them the answer holds.

    Forms name different things where none holds the words of another.
    """
    wanted: list[Form] = []
    for form in analysis.forms:
        words = {*form.content}
        if not any(words <= {*other.content} or words >= {*other.content} for other in wanted):
            wanted.append(form)
    return len(wanted), sum(any(True for _ in find_matches(form, analysis)) for form in wanted)


def _comes_late(match: Match) -> bool:
    """Say whether the gold comes after a long run-up that denies something."""
    analysis, before = match.analysis, match.before(match.start)
    denies = analysis.tables.any_of("negations", before) and not analysis.asks("negations")
    return len(before) > _LATE and denies


_DENIES = "the answer denies the gold"
_CANDIDATE = "the gold is only one of several candidates"
_REASONS: tuple[tuple[str, str, Callable[[Match], bool]], ...] = (
    (INCORRECT, _DENIES, _negated),
    (INCORRECT, _DENIES, _denied),
    (INCORRECT, _DENIES, rivals.dismissed),
    (INCORRECT, "the gold is only what some say", rivals.one_side),
    (INCORRECT, "the gold is only what was once or wrongly held", rivals.superseded),
    (NOT_ATTEMPTED, "the gold is only the end of a range", _range_end),
    (INCORRECT, _CANDIDATE, rivals.one_of_several),
    (INCORRECT, _CANDIDATE, rivals.several_and_unsure),
    (INCORRECT, _CANDIDATE, rivals.left_open),
    (INCORRECT, _CANDIDATE, _second_figure),
    (INCORRECT, _CANDIDATE, rivals.one_of_many_or),
    (INCORRECT, "the gold is only one item of a list", rivals.one_of_many),
    (INCORRECT, "another is put beside the gold as equally true", rivals.one_too_many),
    (INCORRECT, "the gold is only a part of another count", _part_of_a_count),
    (INCORRECT, "the gold is only granted beside another candidate", _granted),
    (INCORRECT, "the bound rules the gold out", partial(_bounded, "excluding")),
    (NOT_ATTEMPTED, "the bound leaves the number open", partial(_bounded, "inclusive")),
    (INCORRECT, "the gold only repeats the question", _repeats),
    (INCORRECT, "another candidate stands before the gold", _overtaken),
    (INCORRECT, "the gold is only a later item of a list", rivals.trails),
    (INCORRECT, "fewer than half of the accepted answers are given", _falls_short),
    (INCORRECT, "the gold comes late, after something else was said", _comes_late),
)
