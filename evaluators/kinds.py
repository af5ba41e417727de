"""The kinds of data sets: what a verdict on their items can be, and which verdicts pass."""

import hashlib
import typing
from collections.abc import Collection, Mapping
from typing import ClassVar

from evaluators.core import GRADES, NO, NOT_ATTEMPTED, UNANSWERED, YES, Verdict
from evaluators.rubric import Protocol
from evaluators.statistics.count_table import RATINGS
from evaluators.statistics.metrics import ANSWERS, CHECK_RESULTS, PASSED, Range, gate_ranges

Axes = tuple[tuple[str, ...], tuple[str, ...]]
"""Gold labels and outcomes, in the order to count and show them."""

Cluster = tuple[str, ...]
"""What items have in common that are not independent of each other; equal for all of them."""

FACT = "fact_id"
"""The metadata field that is the same for a fact in every language."""

FALSE_PREMISE = "FALSE PREMISE: "
"""What a gold begins with where the question assumes what is not so; what is true follows."""


class ItemView(typing.Protocol):
    """What a case and the record of its end have in common."""

    @property
    def id(self) -> str:
        """Its name within its data set and language."""

    @property
    def language(self) -> str:
        """The code of its language."""

    @property
    def question(self) -> str:
        """The question, as it was asked."""

    @property
    def context(self) -> str:
        """The passage that the question is about, empty where it has none."""

    @property
    def metadata(self) -> Mapping[str, object]:
        """The fields of its row that mean nothing to this suite."""

    @property
    def label(self) -> str | None:
        """What its verdict must be, None where no label was given."""


class Kind(str):
    """One kind of data set. It equals its name, which is how YAML files and ``run.json`` have it.

    ``heading`` is its title in reports, ``outcome_words`` are what a passed and a failed item are
    called there, and ``silent`` is the label of an answer that says nothing. ``keys`` are the
    settings that only this kind has. ``answered`` says that a model answers its items, rather than
    that recorded answers test the judge; ``by_rubric`` that a judge with a rubric reads the
    answers; ``rated`` that it gives a rating of 1 to 10; ``words`` that the answer is one of a
    language's two words; ``by_checks`` that code alone checks it; ``has_labels`` that every item
    has a label that its verdict must be.
    ``choices`` names what a person who reviews an answer may say of it, empty where nobody does.
    """

    heading: ClassVar[str]
    outcome_words: ClassVar[tuple[str, str]]
    silent: ClassVar[str] = ""
    keys: ClassVar[tuple[str, ...]] = ()
    choices: ClassVar[str] = ""
    answered: ClassVar[bool] = True
    by_rubric: ClassVar[bool] = False
    rated: ClassVar[bool] = False
    words: ClassVar[bool] = False
    by_checks: ClassVar[bool] = False
    has_labels: ClassVar[bool] = False

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the name alone: there is one object of each kind in a process."""
        return kind_of, (str(self),)

    def ranges(self, grades: tuple[str, ...] = GRADES) -> Mapping[str, Range]:
        """Return what a threshold can be, by the name of everything that a gate can name."""
        return gate_ranges(self, grades)

    def labels(self, grades: tuple[str, ...]) -> tuple[str, ...]:
        """Return what a verdict can be, where ``grades`` are those of the slice's rubric."""
        return grades

    def passes(
        self, case: ItemView, verdict: Verdict, passing: Collection[str], pass_bar: int
    ) -> bool:
        """Return whether an answer with this verdict is right.

        ``passing`` are the grades that the slice lets pass, ``pass_bar`` the lowest such rating.
        """
        return verdict.label == case.label

    def accepts(self, protocol: Protocol) -> bool:
        """Return whether a rubric with this protocol gives verdicts of this kind."""
        return True

    def axes(
        self, grades: tuple[str, ...], labels: Collection[str], results: Collection[str]
    ) -> Axes:
        """Return the axes of a count table for items with these labels and results."""
        raise NotImplementedError

    def cluster_of(self, item: ItemView, field: str = "") -> Cluster:
        """Return the cluster of an item: items of one cluster are not independent of each other.

        It is the value of the metadata ``field``, or of ``fact_id``, in whatever language; where
        an item has none, what this kind's items share (``shared``). An item that shares nothing
        is its own cluster, all its repeats together.
        """
        value = item.metadata.get(field or FACT)
        if text := "" if value is None else str(value).strip():
            return field or FACT, text
        return self.shared(item) or (item.language, item.id)

    def shared(self, item: ItemView) -> Cluster:
        """Return what an item of this kind may share with others, empty where it is nothing."""
        return ()


class _Graded(Kind):
    """Short factual answers, graded by a rubric's labels: CORRECT, INCORRECT, NOT_ATTEMPTED."""

    heading = "Graded"
    outcome_words = ("correct", "incorrect")
    silent = NOT_ATTEMPTED
    keys = ("penalty",)
    choices = "grade"
    by_rubric = True

    def passes(
        self, case: ItemView, verdict: Verdict, passing: Collection[str], pass_bar: int
    ) -> bool:
        """Return whether the grade is one that passes."""
        return verdict.grade in passing

    def accepts(self, protocol: Protocol) -> bool:
        """Return whether the rubric grades."""
        return protocol != "rate"

    def axes(
        self, grades: tuple[str, ...], labels: Collection[str], results: Collection[str]
    ) -> Axes:
        """Return the grades; there is no gold label to hold them against."""
        return ("",), grades


class _Rated(Kind):
    """Longer answers, rated from 1 to 10 against one expert answer."""

    heading = "Rated"
    outcome_words = ("pass", "below the bar")
    keys = ("pass_bar",)
    choices = "rating"
    by_rubric = True
    rated = True

    def labels(self, grades: tuple[str, ...]) -> tuple[str, ...]:
        """Return the ratings in digits."""
        return RATINGS

    def passes(
        self, case: ItemView, verdict: Verdict, passing: Collection[str], pass_bar: int
    ) -> bool:
        """Return whether the rating reaches the pass bar."""
        return verdict.rating is not None and verdict.rating >= pass_bar

    def accepts(self, protocol: Protocol) -> bool:
        """Return whether the rubric rates."""
        return protocol == "rate"

    def axes(
        self, grades: tuple[str, ...], labels: Collection[str], results: Collection[str]
    ) -> Axes:
        """Return the ratings."""
        return ("",), RATINGS


class _YesNo(Kind):
    """A passage and a question that is answered by yes or no."""

    heading = "Yes/no"
    outcome_words = ("right", "wrong")
    silent = UNANSWERED
    keys = ("yes", "no")
    choices = "yes_no"
    words = True
    has_labels = True

    def labels(self, grades: tuple[str, ...]) -> tuple[str, ...]:
        """Return yes, no and neither."""
        return ANSWERS

    def axes(
        self, grades: tuple[str, ...], labels: Collection[str], results: Collection[str]
    ) -> Axes:
        """Return yes and no against yes, no and neither."""
        return (YES, NO), ANSWERS

    def shared(self, item: ItemView) -> Cluster:
        """Return the passage: a model that misreads it misses all questions about it.

        Its hash stands for it: there may be a million.
        """
        context = item.context.encode("utf-8", "surrogatepass")
        return (hashlib.sha256(context).hexdigest(),) if context else ()


class _Judged(Kind):
    """Recorded answers with a label given beforehand: the judge is what is tested."""

    heading = "Judges"
    outcome_words = ("agree", "disagree")
    keys = ("floor", "floor_limit", "offline_floor")
    answered = False
    has_labels = True

    def axes(
        self, grades: tuple[str, ...], labels: Collection[str], results: Collection[str]
    ) -> Axes:
        """Return ratings where all labels are, otherwise the grades and whatever else was said."""
        if labels and set(labels) <= set(RATINGS):
            return RATINGS, RATINGS
        square = (*grades, *sorted({*labels, *results}.difference(grades)))
        return square, square

    def shared(self, item: ItemView) -> Cluster:
        """Return the question: a judge that has it wrong misjudges all answers to it."""
        return item.language, item.question


class _Checked(Kind):
    """Answers that code checks, without any judge: an item passes where all its checks do."""

    heading = "Checked"
    outcome_words = ("pass", "fail")
    by_checks = True

    def labels(self, grades: tuple[str, ...]) -> tuple[str, ...]:
        """Return what the checks together can say."""
        return CHECK_RESULTS

    def passes(
        self, case: ItemView, verdict: Verdict, passing: Collection[str], pass_bar: int
    ) -> bool:
        """Return whether every check passed."""
        return verdict.grade == PASSED

    def axes(
        self, grades: tuple[str, ...], labels: Collection[str], results: Collection[str]
    ) -> Axes:
        """Return PASS and FAIL."""
        return ("",), CHECK_RESULTS


GRADED, RATED, YES_NO, JUDGED, CHECKED = (
    _Graded("graded"),
    _Rated("rated"),
    _YesNo("yes_no"),
    _Judged("judged"),
    _Checked("checked"),
)
KINDS: Mapping[str, Kind] = {str(kind): kind for kind in (GRADED, RATED, YES_NO, JUDGED, CHECKED)}
"""Every kind by its name."""


def kind_of(name: str) -> Kind:
    """Return the kind of this name. Raises KeyError for any other."""
    return KINDS[name]
