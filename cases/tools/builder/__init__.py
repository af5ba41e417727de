"""``python -m cases build``: make a BoolQ-type dataset from articles, with models and people."""

import sys
from collections.abc import Sequence
from pathlib import Path

from cases.tools.builder.arguments import DATASET, EVALUATE
from cases.tools.builder.evaluate import evaluate
from cases.tools.builder.folder import Folder
from cases.tools.builder.lock import locked
from cases.tools.builder.options import Options, read_options
from cases.tools.builder.pipeline import Pipeline
from cases.tools.builder.plan import Build
from cases.tools.builder.recipe import Recipe, find_recipe, load_recipe
from cases.tools.builder.steps import STEPS
from evaluators.core import UsageError
from evaluators.output import say


def main(argv: Sequence[str]) -> int:
    """Do the steps that are asked for and not done yet, print what came of them, and return 0.

    Raises UsageError for wrong arguments and files, BuildError where a step is not finished.
    """
    options = read_options(argv, {name: step.help for name, step in STEPS.items()})
    recipe = _recipe(options)
    if options.step == EVALUATE:
        evaluate(options, recipe, lambda line: say(sys.stdout, line))
        return 0
    with locked(options.folder):
        report = _built(options, recipe)
    for line in _lines(report, options.folder):
        say(sys.stdout, line)
    return 0


def _built(options: Options, recipe: Recipe) -> dict[str, object]:
    build = Build(
        options=options,
        recipe=recipe,
        folder=Folder(options.folder),
        say=lambda line: say(sys.stderr, line),
    )
    return Pipeline(build=build).run()


def _recipe(options: Options) -> Recipe:
    recipe = load_recipe(options.recipe or find_recipe(DATASET, options.language))
    if recipe.language != options.language:
        msg = f"{recipe.path}: a recipe for {recipe.language!r}, not for {options.language!r}"
        raise UsageError(msg)
    return recipe


def _lines(report: dict[str, object], folder: Path) -> list[str]:
    final = report["final"]
    states = final.items() if isinstance(final, dict) else ()
    lines = [f"{count:>7} {state}" for state, count in states]
    lines.append(f"{report['items']:>7} in all; {folder}/report.json says more")
    alone = report["question_only"]
    if isinstance(alone, dict) and alone:
        share, (low, high) = alone["shares"][alone["best"]], alone["interval"]
        lines.append(
            f"the question alone gives {share:.1%} of the answers away, by its {alone['best']} "
            f"(95 % interval {low:.1%} to {high:.1%}; the commoner answer: "
            f"{alone['shares']['majority']:.1%})"
        )
    return lines
