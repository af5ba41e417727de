"""``qagate draw``: fresh questions from a table, checked as soon as they are written."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from cases.check.checks import check_files
from cases.draw import DrawRecipe, file_text
from evaluators.command_line import CommandParser
from evaluators.core import UsageError
from evaluators.output import plural, say, write_texts

DONE, FOUND = 0, 1


def main(argv: Sequence[str]) -> int:
    """Draw questions, write a file a language, check them; return the code. Raises UsageError."""
    options = _parser().parse_args(argv)
    if options.count is not None and options.count < 1:
        raise UsageError(f"draw: --count {options.count}: 1 or more questions are needed")
    drawn = DrawRecipe(options.recipe, options.table).draw(options.seed, options.count)
    ending = ".questions.csv" if options.blind else ".csv"
    paths = {language: options.to / f"{language}{ending}" for language in drawn}
    if there := next((path for path in paths.values() if path.exists()), None):
        raise UsageError(f"{there}: is there already; name another folder with --to")
    write_texts(
        (path, file_text(drawn[language], blind=options.blind)) for language, path in paths.items()
    )
    for language, path in paths.items():
        say(sys.stdout, f"{path}: {plural(len(drawn[language]), 'question')}, seed {options.seed}")
    code, dataset = DONE, options.dataset
    for language, path in () if options.blind else paths.items():
        result = check_files([path], f"{dataset}:{language}")
        say(sys.stdout, *result.lines)
        say(sys.stderr, *result.refused)
        items = shlex.quote(f"{dataset}:{language}={path}")
        say(sys.stdout, f"pytest -n 8 cases/{dataset} --items {items} --model PROVIDER:NAME")
        if result.refused or any(one.severity == "error" for one in result.findings):
            code = FOUND
    return code


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="qagate draw",
        description="Draw questions with golds from a table (CSV, JSON, JSON lines or YAML), as a "
        "recipe says. The same seed draws the same questions, another one draws others.",
        epilog="exit codes: 0 drawn, 1 drawn, but with errors, 4 wrong arguments, recipe or table",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("table", metavar="TABLE", type=Path, help="the table, a row for each thing asked about")
    add("--recipe", metavar="FILE", type=Path, required=True, help="a YAML file; see docs/data.md")
    add("--seed", metavar="N", type=int, default=0, help="default: %(default)s")
    add("--count", metavar="N", type=int, help="of each kind, in place of the recipe's")
    add("--to", metavar="FOLDER", type=Path, default=Path("drawn"), help="default: %(default)s")
    add("--as", dest="dataset", metavar="DATASET", default="simpleqa", help="(%(default)s)")
    add("--blind", action="store_true", help="questions alone, for a closed-book trial")
    return parser
