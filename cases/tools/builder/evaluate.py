"""``build … evaluate``: the table of models and the sheet of their errors."""

from pathlib import Path

from cases import evaluation
from cases.tools.builder.folder import Folder
from cases.tools.builder.freezing import data_file
from cases.tools.builder.lock import locked
from cases.tools.builder.options import Options
from cases.tools.builder.recipe import Recipe
from cases.tools.builder.sources import Say
from evaluators.core import UsageError
from evaluators.output import write_texts


def evaluate(options: Options, recipe: Recipe, say: Say) -> None:
    """Write the comparison of models into its folder. Raises UsageError for any wrong input."""
    wanted = options.evaluating
    if not wanted.runs and not wanted.predictions:
        msg = "build: evaluate: name models: --run NAME=REPORT_FOLDER or --predictions NAME=FILE"
        raise UsageError(msg)
    path = wanted.data or _frozen(options, recipe.language)
    data = evaluation.read_data(path, recipe.language, recipe.labels)
    models = evaluation.entrants(
        data, wanted.runs, wanted.predictions, allow_missing=wanted.allow_missing
    )
    facets = evaluation.facets_of(recipe.type_of)
    table = evaluation.standings(data, models, facets)
    text = evaluation.markdown(data, table)
    write_texts(
        [
            (wanted.out / "models.md", text),
            (wanted.out / "models.csv", evaluation.csv_table(table)),
            (wanted.out / "models.json", evaluation.json_table(data, table)),
            (wanted.out / "errors.csv", evaluation.sheet(data, models, facets)),
        ]
    )
    for line in text.split("\n\n## ", 1)[0].splitlines():
        say(line)
    say(f"{wanted.out}: models.md, models.csv, models.json, errors.csv")


def _frozen(options: Options, language: str) -> Path:
    """Return the file that was frozen from the work folder."""
    to = None
    if options.folder.is_dir():
        with locked(options.folder):
            to = Folder(options.folder).options("freeze").get("to")
    if not to:
        msg = "build: evaluate: say which items: --data FILE; nothing was frozen in this folder"
        raise UsageError(msg)
    return data_file(Path(str(to)), language)
