"""Who measures whom in a run: each slice's judge, with its labels, its waiver or its obstacle."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from qagate.cases.dataset import Dataset, Slice
from qagate.evaluators.core import parse_judges
from qagate.evaluators.judges.rule_checks import NO_CHECKS, RuleChecks
from qagate.evaluators.statistics.misclassification import Confusion
from qagate.reports.judge.labels import Labels, LabelSet
from qagate.reports.judge.rule_errors import rule_errors
from qagate.reports.judge.slice_judge import SliceJudge
from qagate.reports.judge.trust import trust_of
from qagate.reports.judge.waivers import waiver_of
from qagate.reports.run.columns import DrawnRecords, KindColumn
from qagate.reports.run.record import Record
from qagate.reports.run.report import Obstacle

NAME_A_MODEL = "name a model as the judge"


def slice_judges(
    datasets: Sequence[Dataset],
    records: Mapping[str, Sequence[Record]],
    sets: Sequence[LabelSet],
    judge: str,
    checks: RuleChecks = NO_CHECKS,
) -> dict[str, SliceJudge]:
    """Return who reads each answered slice that has ``records``, by its name."""
    judges = {}
    for dataset in datasets:
        for slice_ in dataset.slices.values():
            if slice_.name not in records or not slice_.kind.answered:
                continue
            labels = Labels.of(slice_, sets)
            judges[slice_.name] = slice_judge(
                dataset,
                slice_,
                records[slice_.name],
                labels,
                judge,
                checks=checks,
            )
    return judges


def slice_judge(
    dataset: Dataset,
    slice_: Slice,
    records: Sequence[Record],
    labels: Labels,
    judge: str,
    *,
    checks: RuleChecks = NO_CHECKS,
) -> SliceJudge:
    """Return who reads the answers of a slice, and whether what they say is believed."""
    if not slice_.kind.by_rubric:
        return SliceJudge(slice_=slice_, labels=labels)
    waiver = waiver_of(dataset, slice_, records, judge, has_labels=bool(labels))
    made = SliceJudge(
        slice_=slice_, labels=labels, waiver=waiver, grades=grades_of(records)
    )
    if waiver:
        return made
    rules = rule_errors(slice_, records, judge, checks)
    obstacle = _obstacle(made, judge) or rules.obstacle(slice_.language)
    return replace(made, obstacle=obstacle, misread=rules.misread)


def grades_of(records: Sequence[Record]) -> Counter[str]:
    """Return how often each grade or rating was given."""
    if isinstance(records, DrawnRecords):
        return grades_in(records.columns.column)
    return Counter(record.result for record in records if record.is_graded)


def grades_in(column: KindColumn) -> Counter[str]:
    """Return how often each grade or rating was given to the records of a column."""
    grades: Counter[str] = Counter()
    for record, times in column.counted:
        if record.is_graded:
            grades[record.result] += times
    return grades


def read_by(judge: SliceJudge, *runs: Sequence[Record]) -> SliceJudge:
    """Return who reads the answers of several runs; their grades say how many labels it takes."""
    grades: Counter[str] = Counter()
    for records in runs:
        grades.update(grades_of(records))
    return replace(judge, grades=grades)


def _obstacle(made: SliceJudge, judge: str) -> str:
    """Return why nothing that a judge says is believed; empty where it is."""
    slice_ = made.slice_
    if made.lack:
        return made.lack
    reader = made.reader()
    why = trust_of(made.labels, reader).obstacle(slice_.language)
    if not why and isinstance(reader, Confusion) and reader.inverse is None:
        why = (
            f"judge {Obstacle.DISTRUSTED} in {slice_.language}: its grades do not tell the classes "
            "of answers apart; use another judge"
        )
    if why and parse_judges(judge.split(" ")).is_offline:
        return f"{why}; {NAME_A_MODEL} (--judge)"
    return why
