"""Whether labels on answers of both runs show that the judge favours one of them.

That a judge errs alike on both runs is assumed wherever its errors are taken off a difference.
Labels that ``qagate label RUN --baseline=OLD`` drew from both test it, by language. Where they show
that the judge moves the difference, paired gates of the slice are INCONCLUSIVE.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from qagate.cases.dataset import Slice
from qagate.cases.labels import DRAWN_GRADE
from qagate.cases.plan import NEAR_THE_BAR
from qagate.evaluators.kinds import is_right
from qagate.evaluators.statistics.favour import Favour, GradeLabels, LabelledRun
from qagate.evaluators.statistics.intervals import Estimate
from qagate.evaluators.statistics.paired import holm
from qagate.reports.judge.labels import Labels
from qagate.reports.run.record import Record
from qagate.reports.run.report import Obstacle

FEWEST_LABELS = 10
"""On answers of each run: fewer show nothing."""
TAILS = 0.05
"""The error of a finding, over all languages together."""
Answer = tuple[str, str, str]
"""Question, context and answer: what a label is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFavour:
    """What labels on answers of both runs say of the judge of a slice."""

    language: str
    favour: Favour
    is_shown: bool = False
    """Whether the judge is shown to favour a run, beside all other languages."""

    @property
    def estimate(self) -> Estimate:
        """By how much it moves the difference, new less old."""
        return self.favour.estimate

    @property
    def obstacle(self) -> str:
        """Why a difference of the two runs is not believed; empty where it is."""
        if not self.is_shown:
            return ""
        run = "new" if self.favour.ends().value > 0 else "old"
        return (
            f"judge {Obstacle.DISTRUSTED} in {self.language}: it favours the {run} run by "
            f"{self.text}; use another judge"
        )

    @property
    def text(self) -> str:
        """By how much, in words."""
        figures = self.estimate.text("{value}, 95 % interval {low} to {high}")
        return f"{figures}, over {self.favour.labels} labels on answers of both runs"


def favour_of(
    slice_: Slice, labels: Labels, new: Sequence[Record], old: Sequence[Record]
) -> Favour | None:
    """Return how far the judge of a slice may favour a run; None where too few labels say so."""
    label_of: dict[Answer, bool] = {}
    for _, record in labels.own:
        if record.label is not None and DRAWN_GRADE in record.metadata:
            passing = is_right(record.label, slice_.passing, slice_.pass_bar)
            label_of[_answer_of(record)] = passing
    runs = [_labelled_run(slice_, records, label_of) for records in (new, old)]
    if any(run.labels < FEWEST_LABELS for run in runs):
        return None
    return Favour(new=runs[0], old=runs[1])


def _labelled_run(
    slice_: Slice, records: Iterable[Record], label_of: Mapping[Answer, bool]
) -> LabelledRun:
    counts: Counter[tuple[bool, str]] = Counter()
    labels: Counter[tuple[bool, str]] = Counter()
    right: Counter[tuple[bool, str]] = Counter()
    labelled = set()
    for record in records:
        if not record.is_graded:
            continue
        grade = _grade_of(slice_, record)
        counts[grade] += 1
        answer = _answer_of(record)
        if answer in label_of and answer not in labelled:
            labelled.add(answer)
            labels[grade] += 1
            right[grade] += label_of[answer]
    total = sum(counts.values())
    return LabelledRun(
        grades=tuple(
            GradeLabels(
                share=count / total,
                passes=grade[0],
                right=right[grade],
                labels=labels[grade],
            )
            for grade, count in counts.items()
        )
    )


def _grade_of(slice_: Slice, record: Record) -> tuple[bool, str]:
    """Return whether a grade passes, and the grade; of a rating whether it is near the bar."""
    passes = is_right(record.result, slice_.passing, slice_.pass_bar)
    if record.rating is None:
        return passes, record.result
    is_near = abs(record.rating - slice_.pass_bar) <= NEAR_THE_BAR
    return passes, "near" if is_near else "far"


def _answer_of(record: Record) -> Answer:
    return record.question, record.context, record.answer or ""


def shown_favours(
    favours: Mapping[str, tuple[str, Favour]],
) -> dict[str, JudgeFavour]:
    """Return by slice what its labels show, given language and figures: adjusted by Holm."""
    p_values = holm([favour.p_value() for _, favour in favours.values()])
    shown = {}
    for (name, (language, favour)), p_value in zip(
        favours.items(), p_values, strict=True
    ):
        shown[name] = JudgeFavour(
            language=language, favour=favour, is_shown=p_value <= TAILS
        )
    return shown
