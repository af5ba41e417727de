"""``python -m cases build``: make a BoolQ-type dataset, or compare models on one (``evaluate``)."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from cases.builder.build_options import DATASET, EVALUATE, Options, read_options
from cases.builder.build_step import Build
from cases.builder.datasheet import interval_text
from cases.builder.freeze import data_file
from cases.builder.model_answers import (
    Facet,
    ModelAnswers,
    ModelScores,
    YesNoData,
    facets_of,
    read_data,
    read_models,
    score_models,
)
from cases.builder.pipeline import STEPS, run_steps
from cases.builder.recipe import Recipe, find_recipe, load_recipe
from cases.builder.work_folder import Folder, Values, locked
from cases.review.sheet_files import spreadsheet_text, visible
from evaluators.core import UsageError
from evaluators.output import markdown_table, say, write_texts
from evaluators.statistics.metrics import METRICS

PARSERS = ("mwxml", "mwparserfromhell")  # of dumps, and of an article's markup


def main(argv: Sequence[str]) -> int:
    """Do the steps that are asked for and not done yet, print their counts, and return 0.

    Raises UsageError for wrong arguments and files, BuildError where a step is not finished.
    """
    options = read_options(argv, {name: step.help for name, step in STEPS.items()})
    if missing := [name for name in PARSERS if find_spec(name) is None]:
        raise UsageError(f"{', '.join(missing)}: not installed; pip install 'qagate[builder]'")
    recipe = load_recipe(options.recipe or find_recipe(DATASET, options.language))
    if recipe.language != options.language:
        raise UsageError(
            f"{recipe.path}: a recipe for {recipe.language!r}, not for {options.language!r}"
        )
    if options.step == EVALUATE:
        lines = evaluate(options, recipe)
    else:
        with locked(options.folder):
            build = Build(
                options=options,
                recipe=recipe,
                folder=Folder(options.folder),
                say=lambda line: say(sys.stderr, line),
            )
            report = run_steps(build)
        lines = [*_lines(report, options.folder)]
    say(sys.stdout, *lines)
    return 0


def _lines(report: Values, folder: Path) -> Iterator[str]:
    for state, count in report["final"].items():
        yield f"{count:>7} {state}"
    yield f"{report['items']:>7} in all; {folder}/report.json says more"
    if alone := report["question_only"]:
        share, (low, high) = alone["shares"][alone["best"]], alone["interval"]
        yield (
            f"the question alone gives {share:.1%} of the answers away, by its {alone['best']} "
            f"(95 % interval {low:.1%} to {high:.1%}; the commoner answer: "
            f"{alone['shares']['majority']:.1%})"
        )


def evaluate(options: Options, recipe: Recipe) -> list[str]:
    """Write the comparison of models into its folder and return what to print of it.

    Raises UsageError for any wrong input.
    """
    if not options.run and not options.predictions:
        raise UsageError(
            "build: evaluate: name models: --run NAME=REPORT_FOLDER or --predictions NAME=FILE"
        )
    path = options.data or _frozen_file(options)
    data = read_data(path, recipe.language, recipe.labels)
    models = read_models(
        data, options.run, options.predictions, allow_missing=options.allow_missing
    )
    facets = facets_of(recipe.type_of)
    table = score_models(data, models, facets)
    text = markdown(data, table)
    files = {
        "models.md": text,
        "models.csv": csv_table(table),
        "models.json": json_table(data, table),
        "errors.csv": error_sheet(data, models, facets),
    }
    write_texts((options.out / name, content) for name, content in files.items())
    return [*text.split("\n\n## ", 1)[0].splitlines(), f"{options.out}: {', '.join(files)}"]


def _frozen_file(options: Options) -> Path:
    """Return the file that was frozen from the work folder."""
    to = None
    if options.folder.is_dir():
        with locked(options.folder):
            to = Folder(options.folder).options("freeze").get("to")
    if not to:
        raise UsageError(
            "build: evaluate: say which items: --data FILE; nothing was frozen in this folder"
        )
    return data_file(Path(to), options.language)


def markdown(data: YesNoData, table: Sequence[ModelScores]) -> str:
    """Return the measures of every model, and its accuracy on each kind of item."""
    metrics = METRICS["yes_no"].values()
    rows = []
    for one in table:
        figures = (interval_text(one.measures[row.name]) for row in metrics)
        counts = (f"{one.measures['accuracy'].n:,}", f"{one.ungraded:,}")
        rows.append((_escaped(one.name), *figures, *counts))
    lines = [
        f"# Models on `{data.path.name}` ({data.language})\n",
        f"{len(data.cases):,} items. Each figure stands with its 95 % interval. The positive class "
        f"is {data.words['YES']}; an unanswered item is wrong. Items whose call failed are not "
        "graded and in no figure.\n",
        *markdown_table(("Model", *(row.title for row in metrics), "Items", "Not graded"), rows),
    ]
    models = [_escaped(one.name) for one in table]
    for facet in table[0].kinds if table else ():
        title = facet.replace("_", " ")
        by_value = []
        for value in table[0].kinds[facet]:
            found = [one.kinds[facet][value] for one in table]
            figures = (f"{interval_text(one)}, n = {one.n:,}" for one in found)
            by_value.append((_escaped(value), *figures))
        lines += [f"\n\n## Accuracy by {title}\n"]
        lines += markdown_table((title.capitalize(), *models), by_value)
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Return a text for a cell of a Markdown table."""
    flat = visible(text).replace("\n", " ").replace("\t", " ")
    return "".join(f"\\{char}" if char in "\\`*_[]<>|&~" else char for char in flat)


def csv_table(table: Sequence[ModelScores]) -> str:
    """Return one row a model and measure, with interval and number of items."""
    rows = []
    for one in table:
        for name, found in one.measures.items():
            numbers = (found.value, found.low, found.high)
            texts = ("" if number is None else f"{number:.6f}" for number in numbers)
            rows.append((one.name, name, *texts, str(found.n)))
    rows += [
        (one.name, "not_graded", str(one.ungraded), "", "", str(one.ungraded)) for one in table
    ]
    return spreadsheet_text([("model", "measure", "value", "low", "high", "n"), *rows])


def json_table(data: YesNoData, table: Sequence[ModelScores]) -> str:
    """Return everything that the other tables show, in full precision."""
    value = {
        "data": data.path.name,
        "language": data.language,
        "items": len(data.cases),
        "positive": data.words["YES"],
        "models": [asdict(one) for one in table],
    }
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def error_sheet(
    data: YesNoData, models: Sequence[ModelAnswers], facets: Mapping[str, Facet]
) -> str:
    """Return the items that at least half of the models miss, those that most miss first.

    Each row holds what every model answered; models whose call failed are not counted.
    """
    found = []
    for id_, case in data.cases.items():
        answers = [model.answers[id_] for model in models]
        graded = [answer for answer in answers if answer is not None]
        missed = sum(answer != case.label for answer in graded)
        if missed and 2 * missed >= len(graded):
            row = [
                *(id_, str(missed), str(len(graded))),
                *(facet(case) for facet in facets.values()),
                *(case.question, case.context, data.words[str(case.label)]),
                *("" if one is None else data.words.get(one, one) for one in answers),
            ]
            found.append((-missed / len(graded), case.row, row))
    header = ["id", "missed_by", "of_models", *facets, "question", "passage", "gold"]
    header += [f"answer: {model.name}" for model in models]
    rows = [row for _, _, row in sorted(found, key=lambda one: one[:2])]
    return spreadsheet_text([header, *rows])
