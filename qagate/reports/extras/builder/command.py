"""``qagate build``: the steps that make a data set, and ``evaluate``, which compares models on it.

All steps are the cases' own. Only ``evaluate`` reads recorded runs, which the cases do not know,
so the command begins here.
"""

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qagate.cases.extras.builder.command import (
    EVALUATE,
    chosen_recipe,
    make,
    read_options,
    work_folder_of,
)
from qagate.cases.extras.builder.freeze import prose
from qagate.cases.extras.builder.recipe import Recipe
from qagate.cases.extras.builder.validation import INTERVAL
from qagate.cases.extras.review.sheet import filled_template, spreadsheet_text
from qagate.evaluators.core import UsageError
from qagate.evaluators.output import say, write_texts
from qagate.evaluators.statistics.metrics import METRICS
from qagate.reports.run.record import Record
from qagate.reports.run.report import SliceSummary
from qagate.reports.run.run_json import load_report

TEMPLATE = Path(__file__).with_name("models.md.j2")


def main(argv: Sequence[str]) -> int:
    """Do the steps that are asked for and not done yet. Raises UsageError, BuildError."""
    options = read_options(argv)
    recipe = chosen_recipe(options)
    if options.step != EVALUATE:
        return make(options, recipe)
    folder = work_folder_of(options, recipe) / "evaluation"
    say(sys.stdout, *evaluate(options.run, recipe, folder))
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRun:
    """A model by the name that the user gave it, and its run over the data set."""

    name: str
    folder: Path
    summary: SliceSummary
    records: Sequence[Record]
    """One an item: the first, where items were repeated."""

    @property
    def items(self) -> set[tuple[str, str]]:
        """What was asked: each item's id and digest."""
        return {(record.id, record.digest) for record in self.records}


def evaluate(
    models: Sequence[tuple[str, Path]], recipe: Recipe, out: Path
) -> list[str]:
    """Write a comparison of models, and return lines about it.

    Raises UsageError unless each model has a name of its own and a run over the same items.
    """
    if not models:
        raise UsageError(
            "build: evaluate: name models: --run NAME=REPORT_FOLDER, once for each"
        )
    names = [name for name, _ in models]
    if len(set(names)) < len(names):
        raise UsageError("build: two models have one name; give each a name of its own")
    runs = [_load_run(name, folder, recipe) for name, folder in models]
    first = runs[0]
    for run in runs:
        if run.items != first.items:
            raise UsageError(
                f"{run.folder}: not the same items as {first.folder}; "
                "run all models on one dataset"
            )
    text = filled_template(
        TEMPLATE,
        models={run.name: run.summary for run in runs},
        metrics=METRICS["yes_no"].values(),
        interval=INTERVAL,
        prose=prose,
    )
    sheet = error_sheet({run.name: run.records for run in runs})
    write_texts([(out / "models.md", text), (out / "errors.csv", sheet)])
    head = text.split("\n\n## ", 1)[0]
    return [*head.splitlines(), f"{out}: models.md, errors.csv"]


def _load_run(name: str, folder: Path, recipe: Recipe) -> ModelRun:
    """Return a model's run over the one yes/no slice in the recipe's language."""
    report = load_report(folder)
    summaries = []
    for summary in report.slices:
        is_yes_no = METRICS["yes_no"].keys() <= summary.measures.keys()
        if summary.language == recipe.language and is_yes_no:
            summaries.append(summary)
    if len(summaries) != 1:
        raise UsageError(
            f"{folder}: {len(summaries)} yes/no slices in {recipe.language!r}; "
            "give a run over one"
        )
    summary = summaries[0]
    records = []
    for record in report.records:
        is_of_slice = (record.dataset, record.language) == (
            summary.dataset,
            recipe.language,
        )
        if is_of_slice and record.repeat < 2:
            records.append(record)
    return ModelRun(name=name, folder=folder, summary=summary, records=records)


def error_sheet(models: Mapping[str, Sequence[Record]]) -> str:
    """Return as CSV the items that half or more of the graded models miss, most missed first."""
    records_of: dict[str, dict[str, Record]] = defaultdict(dict)
    for name, records in models.items():
        for record in records:
            records_of[record.id][name] = record
    missed_items = []
    for by_model in records_of.values():
        graded = [record for record in by_model.values() if record.is_graded]
        missed = [record for record in graded if record.grade != record.label]
        if not missed or 2 * len(missed) < len(graded):
            continue
        item = next(iter(by_model.values()))
        row = [
            item.id,
            str(len(missed)),
            str(len(graded)),
            item.question,
            item.context,
            item.label or "",
        ]
        for name in models:
            answer = by_model[name].grade if name in by_model else None
            row.append(answer or "")
        share_missed = len(missed) / len(graded)
        missed_items.append((-share_missed, item.row, row))
    header = ["id", "missed_by", "of_models", "question", "passage", "gold"]
    header += [f"answer: {name}" for name in models]
    rows = [row for _, _, row in sorted(missed_items)]
    return spreadsheet_text([header, *rows])
