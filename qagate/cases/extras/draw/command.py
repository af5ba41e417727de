"""``qagate draw``: draw questions, write a file a language, and check what was drawn."""

import sys
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from qagate.cases.extras.check.checks import check_files
from qagate.cases.extras.draw.draw import DrawRecipe, file_text
from qagate.evaluators.command_line import FAILED, CommandParser
from qagate.evaluators.core import UsageError
from qagate.evaluators.output import plural, say, write_texts

DONE = 0


def main(argv: Sequence[str]) -> int:
    """Draw questions, write a file a language, check them; return the code. Raises UsageError.

    Questions alone, for a closed-book trial, are not checked: their golds are not in the file.
    """
    options = _parser().parse_args(argv)
    if options.count is not None and options.count < 1:
        raise UsageError(
            f"draw: --count {options.count}: 1 or more questions are needed"
        )
    recipe = DrawRecipe(options.recipe, options.table)
    drawn = recipe.draw(options.seed, options.count)
    if recipe.is_of_another_table():
        say(
            sys.stderr,
            f"{options.table} is not the register that {options.recipe} names (another SHA-256): "
            "the golds are those of this table",
        )
    ending = ".questions.csv" if options.blind else ".csv"
    paths = {language: options.to / f"{language}{ending}" for language in drawn}
    for path in paths.values():
        if path.exists():
            raise UsageError(f"{path}: is there already; name another folder with --to")
    for language, path in paths.items():
        text = file_text(drawn[language], blind=options.blind)
        write_texts([(path, text)], to_commit=True)
        count = plural(len(drawn[language]), "question")
        say(sys.stdout, f"{path}: {count}, seed {options.seed}")
    if options.blind:
        return DONE
    code = DONE
    for language, path in paths.items():
        if not _checked(path, f"{options.dataset}:{language}"):
            code = FAILED
        items = quote(f"{options.dataset}:{language}={path}")
        say(
            sys.stdout,
            f"pytest -n 8 cases/{options.dataset} --items {items} --model PROVIDER:NAME",
        )
    return code


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="qagate draw",
        description="Draw questions with golds from a table (CSV, JSON, JSON lines or YAML), as a "
        "recipe says. The same seed draws the same questions, another one draws others.",
        epilog="exit codes: 0 drawn, 1 drawn, but with errors, 4 wrong arguments, recipe or table",
        allow_abbrev=False,
    )
    parser.add_argument(
        "table",
        metavar="TABLE",
        type=Path,
        help="the table, a row for each thing asked about",
    )
    parser.add_argument(
        "--recipe",
        metavar="FILE",
        type=Path,
        required=True,
        help="a YAML file; see docs/data.md",
    )
    parser.add_argument(
        "--seed", metavar="N", type=int, default=0, help="default: %(default)s"
    )
    parser.add_argument(
        "--count", metavar="N", type=int, help="of each kind, in place of the recipe's"
    )
    parser.add_argument(
        "--to",
        metavar="FOLDER",
        type=Path,
        default=Path("drawn"),
        help="default: %(default)s",
    )
    parser.add_argument(
        "--as",
        dest="dataset",
        metavar="DATASET",
        default="simpleqa",
        help="(%(default)s)",
    )
    parser.add_argument(
        "--blind", action="store_true", help="questions alone, for a closed-book trial"
    )
    return parser


def _checked(path: Path, as_: str) -> bool:
    """Check a drawn file and print what is wrong with it; return whether it has no errors."""
    result = check_files([path], as_)
    say(sys.stdout, *result.lines)
    say(sys.stderr, *result.refused)
    return not result.refused and not result.errors
