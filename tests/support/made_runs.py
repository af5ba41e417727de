"""Whole runs made of records, without a session: for tests of what is done with runs later."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from qagate.cases.dataset import Dataset, Slice, SliceSample, Threshold
from qagate.evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED
from qagate.evaluators.kinds import kind_of
from qagate.evaluators.rubric import Rubric
from qagate.reports.gates.decide import SessionFacts
from qagate.reports.render.writer import write
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.readings import Reading
from qagate.reports.run.record import Record
from qagate.reports.run.report import Report
from qagate.reports.verdict.assemble import Facts, ReportInputs, account
from tests.support.made_records import make_record
from tests.support.samples import rendered
from tests.support.tables import kept

RUBRIC = Rubric(
    name="facts",
    language="en",
    protocol="tool",
    system="",
    user="",
    version="facts.en@1#a",
    scores={CORRECT: 1.0, INCORRECT: 0.0, NOT_ATTEMPTED: 0.5},
)
LETTERS = {"c": CORRECT, "i": INCORRECT, "n": NOT_ATTEMPTED}
SPEC = "openai:judge"
ORIGIN = {
    "file": "en.csv",
    "data_sha256": "ab" * 32,
    "rubric": RUBRIC.version,
    "pass_bar": None,
}


def graded_slice(language: str = "en", *rules: Threshold, **fields: object) -> Slice:
    made = Slice(
        dataset="facts",
        language=language,
        kind=kind_of("graded"),
        path=Path(f"{language}.csv"),
        rubric=RUBRIC,
        thresholds=rules or (Threshold(measure="correct", min=0.5),),
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def facts_dataset(*slices: Slice, **fields: object) -> Dataset:
    """Return the dataset ``facts``, by default one English slice; its gates need no labels."""
    made = Dataset(
        name="facts",
        folder=Path("facts"),
        kind=kind_of("graded"),
        slices={one.language: one for one in slices or (graded_slice(),)},
        judge_unmeasured=True,
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def answered(letters: str, language: str = "en", **fields: object) -> list[Record]:
    """Return a record for each letter: c, i, n are grades, e an error, m missing, s not asked."""
    alike = kept(__file__, "alike") | {"language": language}

    def made(number: int, letter: str) -> Record:
        grade = LETTERS.get(letter)
        state = {"c": "passed", "e": "error", "m": "missing", "s": "stopped"}.get(
            letter, "failed"
        )
        own: dict[str, object] = {
            "key": f"facts-{language}-i{number}",
            "question": f"Question {number}?",
            "answer": None if grade is None else f"{letter}: {number}",
            "outcome": state,
            "grade": grade,
            "reason": f"It is {grade}." if grade else "",
            "error": {"e": "timeout: no reply", "m": "stopped: -x"}.get(letter, ""),
            "score": RUBRIC.scores.get(grade or ""),
            "metadata": {
                "fact_id": f"F{number}",
                "topic": "Art" if number % 2 else "Sport",
            },
        }
        return make_record(number, **alike | own | fields)

    return [made(number, letter) for number, letter in enumerate(letters)]


def run_of(
    records: Sequence[Record],
    *datasets: Dataset,
    baseline: Report | Baseline | None = None,
    whole: Mapping[str, int] | None = None,
    samples: Mapping[str, SliceSample] | None = None,
    labels: tuple[Record, ...] = (),
    label_datasets: tuple[Dataset, ...] = (),
    rule_checks: Mapping[str, str] | None = None,
    **facts: object,
) -> Report:
    """Return the report of these records, against a baseline where one is given.

    A baseline that nobody read yet is read as it stands: by this run's judge, with the same grades.
    """
    earlier = before(baseline) if isinstance(baseline, Report) else baseline
    if earlier is not None:
        earlier = as_read(earlier)
    known = datasets or (facts_dataset(),)
    sizes = {one.name: 0 for dataset in known for one in dataset.slices.values()}
    for record in records:
        sizes[f"{record.dataset}:{record.language}"] += 1
    given = Facts(
        model="openai:new",
        judge=SPEC,
        session=SessionFacts(
            pytest_code=int(any(r.outcome != "passed" for r in records))
        ),
        provenance={
            "seed": 0,
            "slices": dict.fromkeys(sizes, ORIGIN),
            "python": "3.11",
        },
        run={"id": "r1"},
    )
    return account(
        ReportInputs(
            datasets=known,
            records=tuple(records),
            whole=whole or sizes,
            samples=samples or {},
            labels=labels,
            label_datasets=label_datasets,
            rule_checks=rule_checks or {},
        ),
        replace(given, **facts),  # type: ignore[arg-type]
        earlier,
    )


def as_read(earlier: Baseline) -> Baseline:
    """Return an earlier run of which this run's judge thinks as its own did."""
    if earlier.reading is not None:
        return earlier
    return replace(earlier, reading=Reading(old=earlier.records))


def before(report: Report, path: str = "before") -> Baseline:
    """Return a report as a baseline: another run, as its replies took other seconds."""
    sha256 = json.loads(rendered(report)["run.json"])["records"]["sha256"]
    records = tuple(replace(one, seconds=one.seconds + 0.5) for one in report.records)
    return Baseline(path=path, report=replace(report, records=records), sha256=sha256)


def with_records(baseline: Baseline, records: Iterable[Record]) -> Baseline:
    return replace(baseline, report=replace(baseline.report, records=tuple(records)))


def written(report: Report, folder: Path) -> Path:
    write(report, folder)
    return folder
