"""Which answers of a run people label: as many of each grade of the judge, blind to grade and run.

A judge is measured class by class, and most answers of a good model are of one class. So answers
are drawn by what the judge said of them: ``ENOUGH_OF_A_CLASS`` of each grade, or all where there
are fewer. Of ratings those near the bar count, ``ENOUGH_OF_A_CLASS`` on each side; ``FEW_FAR`` of
those farther off are drawn too, as a judge may rate a poor answer very well. What the judge said of
an answer is its *stratum*; its share of all answers is kept, so that figures can be weighted back.

Answers are spread over questions: no question has a second answer before every other has one.
Spare answers follow, for classes that people find less often than the judge does (``goals.py``).
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from qagate.cases.dataset import Slice
from qagate.cases.extras.review.goals import Goal
from qagate.cases.plan import ENOUGH_OF_A_CLASS, NEAR_THE_BAR
from qagate.evaluators.adjudications import answer_digest
from qagate.evaluators.kinds import Cluster
from qagate.reports.run.clean import MASK
from qagate.reports.run.record import Record, in_order

LOWEST_RATING, HIGHEST_RATING = 1, 10
FEW_FAR = 10
"""Answers rated far from the bar that are labelled, on each side of it."""
MAX_SPARE = 60
"""Spare answers of each stratum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelAnswer:
    """A graded answer of a run, or of the run before it."""

    record: Record
    slice_: Slice
    """As it is declared today."""
    run: str
    """The id of the run that it is from."""

    @property
    def digest(self) -> str:
        """The digest of the answer to this item."""
        return answer_digest(self.record, self.record.answer or "")

    @property
    def id(self) -> str:
        """The item, ``@``, and the digest of the answer."""
        record = self.record
        return f"{record.dataset}-{record.language}-{record.id}@{self.digest}"

    @property
    def row_id(self) -> str:
        """The id of its row in a labelled set."""
        return self.digest[:16]

    @property
    def judged(self) -> str:
        """The judge's own grade, or its rating in digits, also where a person's stands."""
        record = self.record
        if not record.adjudicated_by:
            return record.result
        if record.judge_rating is not None:
            return str(record.judge_rating)
        return record.judge_grade or ""

    @property
    def stratum(self) -> str:
        """The judge's grade, or the band of ratings with its own, such as ``7-9``."""
        return stratum_of(self.slice_, self.judged)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """The answers of one slice that are to be labelled."""

    slice_: Slice
    first: tuple[LabelAnswer, ...]
    """In the order to show them."""
    spare: tuple[LabelAnswer, ...]
    goals: tuple[Goal, ...]


def answers_of(
    records: Iterable[Record], slices: Mapping[str, Slice], run: str
) -> list[LabelAnswer]:
    """Return the graded answers of a run in these slices, by the name of the slice."""
    answers = []
    for record in in_order(records):
        slice_ = slices.get(f"{record.dataset}:{record.language}")
        if slice_ is None or record.answer is None or _is_masked(record):
            continue
        answer = LabelAnswer(record=record, slice_=slice_, run=run)
        if answer.stratum:
            answers.append(answer)
    return answers


def _is_masked(record: Record) -> bool:
    """Return whether a text of it is not what the judge read: a key was masked."""
    texts = (record.question, record.context, record.answer or "", *record.golds)
    return any(MASK in text for text in texts)


def stratum_of(slice_: Slice, judged: str) -> str:
    """Return the grade, or the band of ratings that one in digits belongs to; empty for none."""
    if not slice_.kind.rated:
        return judged if judged in slice_.labels else ""
    if not judged.isdigit():
        return ""
    for low, high in bands(slice_):
        if low <= int(judged) <= high:
            return band_name(low, high)
    return ""


def bands(slice_: Slice) -> list[tuple[int, int]]:
    """Return the bands of ratings, the best first: two near the bar, and what is beyond them."""
    bar = slice_.pass_bar
    ends = [
        (bar + NEAR_THE_BAR + 1, HIGHEST_RATING),
        (bar, min(HIGHEST_RATING, bar + NEAR_THE_BAR)),
        (max(LOWEST_RATING, bar - NEAR_THE_BAR), bar - 1),
        (LOWEST_RATING, bar - NEAR_THE_BAR - 1),
    ]
    return [(low, high) for low, high in ends if low <= high]


def band_name(low: int, high: int) -> str:
    """Return the name of a band: ``5-6``, or ``10`` for a single rating."""
    return f"{low}-{high}" if low < high else str(low)


def strata_of(slice_: Slice) -> dict[str, int]:
    """Return how many answers of each stratum are labelled at first, by its name."""
    if not slice_.kind.rated:
        return dict.fromkeys(slice_.labels, ENOUGH_OF_A_CLASS)
    wanted = {}
    for low, high in bands(slice_):
        is_near = abs(low - slice_.pass_bar) <= NEAR_THE_BAR
        wanted[band_name(low, high)] = ENOUGH_OF_A_CLASS if is_near else FEW_FAR
    return wanted


def shares_of(answers: Iterable[LabelAnswer]) -> dict[tuple[str, str], float]:
    """Return the share of each stratum among the answers of its slice, by slice and stratum."""
    counts = Counter((answer.slice_.name, answer.stratum) for answer in answers)
    totals: Counter[str] = Counter()
    for (name, _), count in counts.items():
        totals[name] += count
    return {
        (name, stratum): count / totals[name]
        for (name, stratum), count in counts.items()
    }


def draw_answers(
    slice_: Slice,
    answers: Sequence[LabelAnswer],
    labels: Mapping[str, str],
    seed: int = 0,
) -> Drawing:
    """Return the answers of a slice to label.

    ``labels`` are those that answers have already, by the id of their row: they count, and such an
    answer is not drawn again. The same seed draws the same.
    """
    in_turn = _in_turn(answers, seed)
    labelled_of: Counter[str] = Counter()
    by_stratum: dict[str, list[LabelAnswer]] = defaultdict(list)
    for answer in in_turn:
        if answer.row_id in labels:
            labelled_of[answer.stratum] += 1
        else:
            by_stratum[answer.stratum].append(answer)
    first = []
    spare = []
    for stratum, wanted in strata_of(slice_).items():
        left = by_stratum[stratum]
        number = max(0, wanted - labelled_of[stratum])
        first += left[:number]
        spare += left[number : number + MAX_SPARE]
    first.sort(key=lambda answer: _rank(seed, "shown", answer.id))
    return Drawing(
        slice_=slice_,
        first=tuple(first),
        spare=tuple(spare),
        goals=_goals(slice_, answers, labels),
    )


def _in_turn(answers: Iterable[LabelAnswer], seed: int) -> list[LabelAnswer]:
    """Return different answers in a drawn order: all first ones of a question before any second.

    The order is drawn over all grades, so an answer's chance to stand early does not depend on
    its grade.
    """
    different = {answer.id: answer for answer in answers}.values()
    drawn = sorted(different, key=lambda answer: _rank(seed, "label", answer.id))
    seen: Counter[Cluster] = Counter()
    turns = []
    for answer in drawn:
        cluster = answer.slice_.cluster_of(answer.record)
        turns.append((seen[cluster], answer))
        seen[cluster] += 1
    turns.sort(key=lambda turn: turn[0])
    return [answer for _, answer in turns]


def _goals(
    slice_: Slice, answers: Iterable[LabelAnswer], labels: Mapping[str, str]
) -> tuple[Goal, ...]:
    """Return how many labels each class is to have: enough, or as many as it has answers."""
    judged = Counter(answer.stratum for answer in answers)
    given = Counter(labels.values())
    goals = []
    for stratum, wanted in strata_of(slice_).items():
        if wanted < ENOUGH_OF_A_CLASS:
            continue
        verdicts = verdicts_of(slice_, stratum)
        goal = Goal(
            name=stratum,
            verdicts=verdicts,
            wanted=min(wanted, judged[stratum]),
            have=sum(given[verdict] for verdict in verdicts),
        )
        goals.append(goal)
    return tuple(goals)


def verdicts_of(slice_: Slice, stratum: str) -> tuple[str, ...]:
    """Return the labels that belong to a stratum: the grade, or each rating of the band."""
    if not slice_.kind.rated:
        return (stratum,)
    low, _, high = stratum.partition("-")
    return tuple(str(rating) for rating in range(int(low), int(high or low) + 1))


def with_reading(
    answers: Sequence[LabelAnswer], read: Iterable[Record]
) -> list[LabelAnswer]:
    """Return earlier answers with the grades that a later run's judge gave them, where it did."""
    records = {record.key: record for record in read}
    regraded = []
    for answer in answers:
        record = records.get(answer.record.key)
        if record is None or record.answer != answer.record.answer:
            regraded.append(answer)
        else:
            regraded.append(replace(answer, record=record))
    return regraded


def _rank(seed: int, *parts: str) -> bytes:
    """Return a hash that puts answers in an order which only the seed decides."""
    text = "\0".join((str(seed), *parts))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
