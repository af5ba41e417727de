"""The kinds of data sets: what a verdict on an item can be, and which verdicts pass.

Each kind is a class, and says all that differs between kinds: others ask it and never compare its
name. ``Kind`` itself is the plain case, an item that a model answers and that has no label; a class
overrides what is different for it. There is one object of each class, in ``KINDS``.

To add a kind, write its class, put its object into ``KINDS`` and its metrics into ``METRICS``
(``statistics/metrics.py``).
"""

import hashlib
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Annotated, ClassVar

from msgspec import Meta

from qagate.evaluators.core import (
    CORRECT,
    GRADES,
    NO,
    NOT_ATTEMPTED,
    UNANSWERED,
    YES,
    ItemView,
    Verdict,
)
from qagate.evaluators.option_letters import MOST_OPTIONS, place_of
from qagate.evaluators.statistics.count_table import PREMISE, RATINGS
from qagate.evaluators.statistics.metrics import (
    ANSWER_RANGES,
    ANSWERS,
    CHECK_RESULTS,
    PASSED,
    Range,
    metric_ranges,
)

DatasetName = Annotated[str, Meta(pattern=r"(?a)^([A-Za-z]\w*)?\Z")]
LanguageName = Annotated[
    str, Meta(pattern=r"^([a-z][A-Za-z0-9]{0,39}(-[A-Za-z0-9]{1,39})*)?\Z")
]
MetricName = Annotated[
    str, Meta(pattern=r"(?a)^([A-Za-z]\w*([@^]\d{1,2})?( \(anchor\))?)?\Z")
]
"""What names look like in a recorded run, which anybody may have written; checked as it is read."""

Axes = tuple[tuple[str, ...], tuple[str, ...]]
"""Gold labels and outcomes, in the order to count and show them."""

Cluster = tuple[str, ...]
"""A value that items share if they are not independent of each other."""

FACT = "fact_id"
"""The metadata field that names a fact in all languages."""

NOT_CORRECT = "NOT_CORRECT"
"""The label of an answer of which it is only known that it is not right."""

TWO_WAY = (CORRECT, NOT_CORRECT)
"""The labels that say only whether an answer is right."""

FALSE_PREMISE = "FALSE PREMISE:"
UNANSWERABLE = "UNANSWERABLE:"
MARKS = (FALSE_PREMISE, UNANSWERABLE)
"""Begin golds of questions without an answer: one corrects what is asked, or declines."""


class Kind(str):
    """One kind of data set. It equals its name, as in YAML files and ``run.json``."""

    heading: ClassVar[str]
    """Its title in reports."""
    outcome_words: ClassVar[tuple[str, str]]
    """What reports call a passed and a failed item."""
    silent: ClassVar[str] = ""
    """The label of an answer that says nothing."""
    keys: ClassVar[tuple[str, ...]] = ()
    """The settings that only this kind has."""
    choices: ClassVar[str] = ""
    """The table of what a reviewer may say of an answer; empty if answers are not reviewed."""
    answered: ClassVar[bool] = True
    """Whether a model answers its items; if not, recorded answers test the judge."""
    by_rubric: ClassVar[bool] = False
    """Whether a judge with a rubric reads the answers."""
    rated: ClassVar[bool] = False
    """Whether verdicts are ratings from 1 to 10."""
    closed: ClassVar[bool] = False
    """Whether the answer is one of options that are known beforehand, and code reads which."""
    words: ClassVar[bool] = False
    """Whether these are a language's two words, and not options of the item."""
    by_checks: ClassVar[bool] = False
    """Whether code alone checks the answers; an item passes if all its checks do."""
    has_labels: ClassVar[bool] = False
    """Whether every item has a label that its verdict must equal."""
    fixed: ClassVar[tuple[str, ...]] = ()
    """The labels of a verdict, where they are not the grades of a rubric."""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the name alone: there is one object of each kind in a process."""
        return kind_of, (str(self),)

    def ranges(self, grades: tuple[str, ...] = GRADES) -> Mapping[str, Range]:
        """Return the range of a threshold, by the name of each metric a gate can name.

        ``grades`` are the labels of the rubric.
        """
        return {**metric_ranges(self, grades), **ANSWER_RANGES}

    def passes(
        self, case: ItemView, verdict: Verdict, passing: Collection[str], pass_bar: int
    ) -> bool:
        """Return whether an answer with this verdict is right.

        ``passing`` are the grades that pass, ``pass_bar`` the lowest rating that does.
        """
        return is_right(verdict.label, passing, pass_bar)

    def axes(
        self, grades: tuple[str, ...], labels: Collection[str], results: Collection[str]
    ) -> Axes:
        """Return the axes of a count table: for what items are counted under, and for outcomes.

        ``labels`` are the gold labels of the items, ``results`` the verdicts that graded them.
        """
        return ("",), self.fixed or grades

    def gold_label(self, label: str | None, expected: str) -> str:
        """Return the label under which an item is counted; empty if there is none.

        ``label`` is the item's own, ``expected`` its main gold.
        """
        return ""

    def cluster_of(self, item: ItemView, field: str = "") -> Cluster:
        """Return the cluster of an item: items of one cluster are not independent.

        It is the value of the metadata ``field``, or of ``fact_id``, in any language; without one,
        what items of this kind share (``shared``). Otherwise an item is its own cluster, with all
        its repeats and all copies of its question, where it has one.
        """
        name = field or FACT
        value = item.metadata.get(name)
        text = "" if value is None else str(value).strip()
        if text:
            return name, text
        shared = self.shared(item)
        if shared:
            return shared
        return item.language, _plain(item.question) or item.id, item.context

    def shared(self, item: ItemView) -> Cluster:
        """Return what an item of this kind may share with others, or nothing."""
        return ()


class GradedKind(Kind):
    """Short factual answers, graded by a rubric's labels."""

    heading = "Graded"
    outcome_words = ("correct", "incorrect")
    silent = NOT_ATTEMPTED
    keys = ("penalty",)
    choices = "grade"
    by_rubric = True

    def axes(
        self, grades: tuple[str, ...], labels: Collection[str], results: Collection[str]
    ) -> Axes:
        """Return the grades, and count questions without an answer apart."""
        if PREMISE in labels:
            return ("", PREMISE), grades
        return ("",), grades

    def gold_label(self, label: str | None, expected: str) -> str:
        """Return ``PREMISE`` for a question on a false premise, or without an answer."""
        return PREMISE if expected.startswith(MARKS) else ""


class RatedKind(Kind):
    """Longer answers, rated from 1 to 10 against one expert answer."""

    heading = "Rated"
    outcome_words = ("pass", "below the bar")
    keys = ("pass_bar",)
    choices = "rating"
    by_rubric = True
    rated = True
    fixed = RATINGS


class ClosedKind(Kind):
    """A question whose answer is one of options that are known beforehand."""

    outcome_words = ("right", "wrong")
    silent = UNANSWERED
    closed = True
    has_labels = True

    def passes(
        self, case: ItemView, verdict: Verdict, passing: Collection[str], pass_bar: int
    ) -> bool:
        """Return whether the chosen option is the label."""
        return case.label is not None and verdict.label == case.label

    def gold_label(self, label: str | None, expected: str) -> str:
        """Return the item's label."""
        return label or ""

    def shared(self, item: ItemView) -> Cluster:
        """Return a hash of the passage: a model that misreads it misses all its questions."""
        if not item.context:
            return ()
        passage = item.context.encode("utf-8", "surrogatepass")
        return (hashlib.sha256(passage).hexdigest(),)


class YesNoKind(ClosedKind):
    """A passage and a question that is answered by yes or no."""

    heading = "Yes/no"
    keys = ("yes", "no")
    choices = "yes_no"
    words = True
    fixed = ANSWERS

    def axes(
        self, grades: tuple[str, ...], labels: Collection[str], results: Collection[str]
    ) -> Axes:
        """Return both labels, and the answers."""
        return (YES, NO), ANSWERS


class ChoiceKind(ClosedKind):
    """A question with options, of which the answer chooses one, or puts all in order.

    Label and verdict are the letter of an option as it was shown, or for an order all letters.
    """

    heading = "Choice"
    keys = ("shuffle", "index_from")

    def axes(
        self, grades: tuple[str, ...], labels: Collection[str], results: Collection[str]
    ) -> Axes:
        """Return the letters of right options, and of all that were right or chosen."""
        golds = sorted({*labels} - {""}, key=_by_place) or ["A"]
        outcomes = sorted({*golds, *results} - {UNANSWERED}, key=_by_place)
        return tuple(golds), (*outcomes, UNANSWERED)


class JudgedKind(Kind):
    """Recorded answers with a label given beforehand: the judge is what is tested.

    A label is a grade, a rating in digits, or says only whether the answer is right (``TWO_WAY``).
    """

    heading = "Judges"
    outcome_words = ("agree", "disagree")
    answered = False
    keys = ("floor", "floor_limit", "offline_floor", "labels", "attacks", "pass_bar")
    has_labels = True

    def ranges(self, grades: tuple[str, ...] = GRADES) -> Mapping[str, Range]:
        """Return the ranges of its metrics alone: nothing is answered, so nothing is compared."""
        return metric_ranges(self, grades)

    def passes(
        self, case: ItemView, verdict: Verdict, passing: Collection[str], pass_bar: int
    ) -> bool:
        """Return whether the judge's verdict is the label.

        A label that says only right or not right is met by every verdict on that side. CORRECT says
        no more where the verdict is a rating. Without a label there is nothing to miss.
        """
        if case.label is None:
            return True
        label_is_right = case.label == CORRECT
        says_only_side = case.label == NOT_CORRECT or (
            label_is_right and verdict.rating is not None
        )
        if not says_only_side:
            return verdict.label == case.label
        return is_right(verdict.label, passing, pass_bar) == label_is_right

    def axes(
        self, grades: tuple[str, ...], labels: Collection[str], results: Collection[str]
    ) -> Axes:
        """Return one axis twice, for the gold labels and for the judge's verdicts.

        So the diagonal counts where the judge agrees. The axis is right and not right as soon as
        one gold label is NOT_CORRECT; the ratings if all gold labels are ratings; and otherwise
        the grades, then what else stands in ``labels`` or ``results``.
        """
        if NOT_CORRECT in labels:
            return TWO_WAY, TWO_WAY
        if labels and set(labels) <= set(RATINGS):
            return RATINGS, RATINGS
        others = {*labels, *results}.difference(grades)
        axis = (*grades, *sorted(others))
        return axis, axis

    def gold_label(self, label: str | None, expected: str) -> str:
        """Return the item's label."""
        return label or ""

    def shared(self, item: ItemView) -> Cluster:
        """Return the question: a judge that misreads it misjudges all answers to it."""
        return item.language, item.question


class CheckedKind(Kind):
    """Answers that code checks, without a judge."""

    heading = "Checked"
    outcome_words = ("pass", "fail")
    by_checks = True
    fixed = CHECK_RESULTS

    def passes(
        self, case: ItemView, verdict: Verdict, passing: Collection[str], pass_bar: int
    ) -> bool:
        """Return whether all checks passed."""
        return verdict.grade == PASSED


@lru_cache(2**15)  # records are counted many times over
def _plain(question: str) -> str:
    return " ".join(question.casefold().split())


def _by_place(label: str) -> tuple[int, str]:
    """Return the place of a letter in its alphabet, for sorting; orders stand last."""
    place = place_of(label)
    if place is None:
        return MOST_OPTIONS, label
    return place, label


def is_right(label: str, passing: Collection[str], pass_bar: int) -> bool:
    """Return whether a grade, or a rating in digits, is that of a right answer."""
    if label.isdigit():
        return int(label) >= pass_bar
    return label in passing


GRADED = GradedKind("graded")
RATED = RatedKind("rated")
YES_NO = YesNoKind("yes_no")
CHOICE = ChoiceKind("choice")
JUDGED = JudgedKind("judged")
CHECKED = CheckedKind("checked")

KINDS: Mapping[str, Kind] = {
    "graded": GRADED,
    "rated": RATED,
    "yes_no": YES_NO,
    "choice": CHOICE,
    "judged": JUDGED,
    "checked": CHECKED,
}
"""Every kind by its name."""


def kind_of(name: str) -> Kind:
    """Return the kind of this name. Raises KeyError for any other."""
    return KINDS[name]
