"""The kinds of data sets: what a verdict on an item can be, and which verdicts pass."""

import hashlib
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Annotated, Self

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

FALSE_PREMISE, UNANSWERABLE = MARKS = "FALSE PREMISE:", "UNANSWERABLE:"
"""Begin golds of questions without an answer: one corrects what is asked, or declines."""


class Kind(str):
    """One kind of data set. It equals its name, as in YAML files and ``run.json``."""

    heading: str
    """Its title in reports."""
    outcome_words: tuple[str, str]
    """What reports call a passed and a failed item."""
    silent: str
    """The label of an answer that says nothing."""
    keys: tuple[str, ...]
    """The settings that only this kind has."""
    choices: str
    """The table of what a reviewer may say of an answer; empty if answers are not reviewed."""
    answered: bool
    """Whether a model answers its items; if not, recorded answers test the judge."""
    by_rubric: bool
    """Whether a judge with a rubric reads the answers."""
    rated: bool
    """Whether verdicts are ratings from 1 to 10."""
    words: bool
    """Whether the answer is one of a language's two words."""
    by_checks: bool
    """Whether code alone checks the answers; an item passes if all its checks do."""
    has_labels: bool
    """Whether every item has a label that its verdict must equal."""
    fixed: tuple[str, ...]
    """The labels of a verdict, where they are not the grades of a rubric."""

    def __new__(
        cls,
        name: str,
        *,
        heading: str,
        outcome_words: tuple[str, str],
        silent: str = "",
        keys: tuple[str, ...] = (),
        choices: str = "",
        answered: bool = True,
        by_rubric: bool = False,
        rated: bool = False,
        words: bool = False,
        by_checks: bool = False,
        has_labels: bool = False,
        fixed: tuple[str, ...] = (),
    ) -> Self:
        """Return the kind of this name."""
        kind = super().__new__(cls, name)
        kind.heading = heading
        kind.outcome_words = outcome_words
        kind.silent = silent
        kind.keys = keys
        kind.choices = choices
        kind.answered = answered
        kind.by_rubric = by_rubric
        kind.rated = rated
        kind.words = words
        kind.by_checks = by_checks
        kind.has_labels = has_labels
        kind.fixed = fixed
        return kind

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the name alone: there is one object of each kind in a process."""
        return kind_of, (str(self),)

    def ranges(self, grades: tuple[str, ...] = GRADES) -> Mapping[str, Range]:
        """Return the range of a threshold, by the name of each metric a gate can name."""
        own = metric_ranges(self, grades)
        return {**own, **ANSWER_RANGES} if self.answered else own

    def passes(
        self, case: ItemView, verdict: Verdict, passing: Collection[str], pass_bar: int
    ) -> bool:
        """Return whether an answer with this verdict is right.

        ``passing`` are the grades that pass, ``pass_bar`` the lowest rating that does. A judge's
        verdict must be the item's label. One that says only right or not right is met by every
        verdict on that side; without one there is nothing to miss.
        """
        if self.by_checks:
            return verdict.grade == PASSED
        if not self.has_labels:
            return is_right(verdict.label, passing, pass_bar)
        if case.label is None:
            return not self.answered
        if case.label == NOT_CORRECT or (
            case.label == CORRECT and verdict.rating is not None
        ):
            return is_right(verdict.label, passing, pass_bar) == (case.label == CORRECT)
        return verdict.label == case.label

    def axes(
        self, grades: tuple[str, ...], labels: Collection[str], results: Collection[str]
    ) -> Axes:
        """Return the axes of a count table for items with these labels and results.

        A judge's verdicts are counted by label: as ratings if all labels are, as right or not right
        if a label says no more, otherwise as the grades and all other results.
        """
        if self.words:
            return (YES, NO), self.fixed
        if self.answered:
            return (("", PREMISE) if PREMISE in labels else ("",)), self.fixed or grades
        if NOT_CORRECT in labels:
            return TWO_WAY, TWO_WAY
        if labels and set(labels) <= set(RATINGS):
            return RATINGS, RATINGS
        square = (*grades, *sorted({*labels, *results}.difference(grades)))
        return square, square

    def gold_label(self, label: str | None, expected: str) -> str:
        """Return the label under which an item is counted: its own, ``PREMISE``, or empty."""
        if self == "graded" and expected.startswith(MARKS):
            return PREMISE
        return (label or "") if self.has_labels else ""

    def cluster_of(self, item: ItemView, field: str = "") -> Cluster:
        """Return the cluster of an item: items of one cluster are not independent.

        It is the value of the metadata ``field``, or of ``fact_id``, in any language; without one,
        what items of this kind share (``shared``). Otherwise an item is its own cluster, with all
        its repeats and all copies of its question, where it has one.
        """
        value = item.metadata.get(field or FACT)
        if text := "" if value is None else str(value).strip():
            return field or FACT, text
        return self.shared(item) or (
            item.language,
            _plain(item.question) or item.id,
            item.context,
        )

    def shared(self, item: ItemView) -> Cluster:
        """Return what an item of this kind may share with others, or nothing.

        It is a hash of the passage: a model that misreads it misses all its questions. Under test a
        judge, it is the question: a judge that misreads it misjudges all answers to it.
        """
        if self.words and item.context:
            return (
                hashlib.sha256(
                    item.context.encode("utf-8", "surrogatepass")
                ).hexdigest(),
            )
        return () if self.answered else (item.language, item.question)


@lru_cache(2**15)  # records are counted many times over
def _plain(question: str) -> str:
    return " ".join(question.casefold().split())


def is_right(label: str, passing: Collection[str], pass_bar: int) -> bool:
    """Return whether a grade or rating is that of a right answer."""
    return int(label) >= pass_bar if label.isdigit() else label in passing


GRADED = Kind(  # short factual answers, graded by a rubric's labels
    "graded", heading="Graded", outcome_words=("correct", "incorrect"), silent=NOT_ATTEMPTED,
    keys=("penalty",), choices="grade", by_rubric=True,
)  # fmt: skip
RATED = Kind(  # longer answers, rated from 1 to 10 against one expert answer
    "rated", heading="Rated", outcome_words=("pass", "below the bar"), keys=("pass_bar",),
    choices="rating", by_rubric=True, rated=True, fixed=RATINGS,
)  # fmt: skip
YES_NO = Kind(  # a passage and a question that is answered by yes or no
    "yes_no", heading="Yes/no", outcome_words=("right", "wrong"), silent=UNANSWERED,
    keys=("yes", "no"), choices="yes_no", words=True, has_labels=True, fixed=ANSWERS,
)  # fmt: skip
JUDGED = Kind(  # recorded answers with a label given beforehand: the judge is what is tested
    "judged", heading="Judges", outcome_words=("agree", "disagree"), answered=False,
    keys=("floor", "floor_limit", "offline_floor", "labels", "attacks", "pass_bar"),
    has_labels=True,
)  # fmt: skip
CHECKED = Kind(  # answers that code checks, without a judge
    "checked", heading="Checked", outcome_words=("pass", "fail"), by_checks=True,
    fixed=CHECK_RESULTS,
)  # fmt: skip
KINDS: Mapping[str, Kind] = {
    str(kind): kind for kind in (GRADED, RATED, YES_NO, JUDGED, CHECKED)
}
"""Every kind by its name."""


def kind_of(name: str) -> Kind:
    """Return the kind of this name. Raises KeyError for any other."""
    return KINDS[name]
