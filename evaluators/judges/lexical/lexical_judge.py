"""The judge without a model: fixed rules of language and number, the same every time."""

from collections.abc import Callable
from itertools import islice, pairwise

from evaluators.content import content_free
from evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, Ask, Case, Verdict
from evaluators.judges.lexical.answer_analysis import LIMIT, AnswerAnalysis, analyse, segments
from evaluators.judges.lexical.confidence import is_firm, surely_right, surely_silent, surely_wrong
from evaluators.judges.lexical.dates import agrees, covers
from evaluators.judges.lexical.folding import plain
from evaluators.judges.lexical.gold_forms import Form
from evaluators.judges.lexical.gold_matching import find_matches
from evaluators.judges.lexical.numbers import Quantity, near
from evaluators.judges.lexical.rejections import reject_reason

_TRIES = 16  # mentions of one gold; an answer that repeats it more often adds nothing


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
    exam = analyse(case, answer)
    verdicts = (rule(exam) for rule in RULES)
    verdict = next((verdict for verdict in verdicts if verdict), None)
    if verdict is None and content_free(answer[:LIMIT], case.golds):
        verdict = Verdict(grade=NOT_ATTEMPTED, reason="the answer says nothing", sure=True)
    if verdict:
        return verdict
    reason, sure = "the answer does not hold the gold", surely_wrong(exam)
    return Verdict(grade=INCORRECT, reason=reason, sure=sure)


def _blank(exam: AnswerAnalysis) -> Verdict | None:
    if exam.said.words:
        return None
    return Verdict(grade=NOT_ATTEMPTED, reason="the answer says nothing", sure=not exam.cut)


def _alone(exam: AnswerAnalysis) -> Verdict | None:
    """Correct when nothing but words that hold a sentence together stands beside the gold."""
    idle = exam.tables.words("openers") | exam.tables.words("function")
    for form in exam.forms:
        kept = tuple(w for w in exam.full.words if w in form.text.words or w not in idle)
        if kept == form.text.words and not form.place and _same_figure(form, exam):
            return Verdict(grade=CORRECT, reason="the answer is the gold alone", sure=is_firm(exam))
    return None


def _same_figure(form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether signs leave the gold what it is: words alone do not show a minus."""
    bare = form.quantity is None and not form.signed
    return bare or next(find_matches(form, exam), None) is not None


def _found(exam: AnswerAnalysis) -> Verdict | None:
    """Correct when some form stands in the answer beyond doubt; else what the first doubt says."""
    doubted = None
    for form in exam.forms:
        for finding in islice(find_matches(form, exam), _TRIES):
            why_not = reject_reason(finding, form, exam)
            if not why_not:
                sure = surely_right(finding, form, exam)
                return Verdict(grade=CORRECT, reason=finding.rule, sure=sure)
            doubted = doubted or why_not
    return doubted


def _idle(exam: AnswerAnalysis) -> Verdict | None:
    chooses = bool(exam.content) and exam.asks(
        "alternatives"
    )  # "this or that?" is answered by echo
    if exam.own or chooses:
        return None
    return Verdict(grade=NOT_ATTEMPTED, reason="the answer says nothing of its own")


def _refused(exam: AnswerAnalysis) -> Verdict | None:
    if not declines(exam):
        return None
    reason = "the answer declines and does not give the gold"
    return Verdict(grade=NOT_ATTEMPTED, reason=reason, sure=surely_silent(exam))


def _loose_figure(exam: AnswerAnalysis) -> Verdict | None:
    golds = [form.quantity for form in exam.forms if form.quantity]
    found = exam.quantities if golds else []
    spanned = any(_is_between(pair, gold, exam) for pair in pairwise(found) for gold in golds)
    if spanned or any(_is_loose(figure, gold, exam) for figure in found for gold in golds):
        reason = "the figure is too loose to be right or wrong"
        return Verdict(grade=NOT_ATTEMPTED, reason=reason)
    return None


def _is_between(pair: tuple[Quantity, Quantity], gold: Quantity, exam: AnswerAnalysis) -> bool:
    """Say whether two figures are the ends of a stated range in which the gold lies."""
    low, high = pair
    words, known = exam.said.words, exam.tables
    opened = words[low.start - 1 : low.start] + words[low.end : high.start]
    stated = not known.words("ranges").isdisjoint(opened)
    joined = not known.words("range_joins").isdisjoint(opened)
    return stated and joined and low.values[0] <= gold.values[0] <= high.values[0]


def _is_loose(figure: Quantity, gold: Quantity, exam: AnswerAnalysis) -> bool:
    """Say whether "about", "more than" or "less than" a figure leaves room for the gold."""
    before = exam.said.words[max(0, figure.start - 3) : figure.start]
    known = exam.tables
    value, wanted = figure.values[0], gold.values[0]
    more = known.phrases("more").find(before) is not None
    less = known.phrases("less").find(before) is not None
    vague = not known.words("approximate").isdisjoint(before)
    return (
        (more and value <= wanted) or (less and value >= wanted) or (vague and near(figure, gold))
    )


def _undecided(exam: AnswerAnalysis) -> Verdict | None:
    if not undecided(exam):
        return None
    return Verdict(grade=NOT_ATTEMPTED, reason="the answer does not choose between candidates")


def _coarse_date(exam: AnswerAnalysis) -> Verdict | None:
    golds = [form.date for form in exam.forms if form.date]
    dates = exam.dates if golds else []
    if any(agrees(date, gold) and not covers(date, gold) for date in dates for gold in golds):
        return Verdict(grade=INCORRECT, reason="the date is less precise than the gold")
    return None


RULES: tuple[Callable[[AnswerAnalysis], Verdict | None], ...] = (
    _blank,
    _alone,
    _found,
    _idle,
    _refused,
    _loose_figure,
    _undecided,
    _coarse_date,
)


_SHORT = 6  # words of a stretch that can be an answer without a word of belief in it
_LONG = 12  # words of a stretch that can be one, with a word of belief
_FEW = 8  # own words of an answer that is nothing but candidates


def declines(exam: AnswerAnalysis) -> bool:
    """Say whether the answer declines, or is unsure, and offers nothing all the same."""
    if not exam.refused and not exam.unsure:
        return False
    return not offers(exam)


def offers(exam: AnswerAnalysis) -> bool:
    """Say whether some stretch of the answer offers a thing of the kind that the gold is.

    Beside a refusal it takes a word of belief ("I think"); beside mere doubt a short one is enough.
    """
    said, marks = exam.said, {*exam.hedged}
    for start, end in segments(said, exam.tables, [*exam.refused, *exam.unsure]):
        stretch = [place for place in range(start, end) if place not in marks]
        believed = len(stretch) < end - start <= _LONG
        brief = not exam.refused and len(stretch) <= _SHORT
        if (believed or brief) and any(_is_offer(said.words[place], exam) for place in stretch):
            return True
    return False


def _is_offer(word: str, exam: AnswerAnalysis) -> bool:
    """Say whether a word is the answer's own, and of the gold's kind: a figure, a name, a noun."""
    if word not in exam.own:
        return False
    if any(form.quantity or form.date for form in exam.forms):
        return word.isdecimal() or word in exam.tables.numbers
    return word in exam.capitals or not all(form.named for form in exam.forms)


def undecided(exam: AnswerAnalysis) -> bool:
    """Say whether the answer is little more than candidates with "or" between them."""
    words, alternatives = exam.said.words, exam.tables.words("alternatives")
    named = all(form.named for form in exam.forms)
    if len(exam.own) > _FEW or exam.asks("alternatives") or not named:
        return False
    names = exam.capitals.intersection(exam.own)
    return any(
        words[place] in alternatives and {words[place - 1], words[place + 1]} <= names
        for place in range(1, len(words) - 1)
    )
