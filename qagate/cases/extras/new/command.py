"""``qagate new``: write the files of a data set, with an example row to be replaced.

In a language that has no example it is English, and the command names the lines to translate.
Whoever has rows already begins with ``qagate start``, which asks for what it needs.
"""

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from qagate.cases.extras.new.files import (
    Example,
    NewDataset,
    check_language,
    check_name,
    is_judged_in_english,
    load_texts,
    rubric_file,
)
from qagate.cases.extras.new.repository import ignore_in_git
from qagate.evaluators.command_line import CommandParser
from qagate.evaluators.core import UsageError
from qagate.evaluators.output import say, write_texts
from qagate.evaluators.statistics.paired import shown_by

DONE = 0
ROWS_OF_ADVICE = (40, 200)
"""Numbers of rows of which the smallest drop is told."""
JUDGE_ADVICE = (
    "rules decide nothing here: let a model judge (--judge SPEC), then label answers of that "
    "run to measure it: qagate label"
)
"""What it takes before a judge decides over the new rows."""


def main(argv: Sequence[str]) -> int:
    """Write the files of a data set, print their paths and return the exit code."""
    texts = load_texts()
    options = _read_options(argv, list(texts.kinds))
    folder = options.to / options.name
    if folder.exists():
        raise UsageError(
            f"{folder}: is there already; choose another name, or write into it by hand"
        )
    kind = texts.kinds[options.kind]
    example = texts.example(options.lang)
    dataset = NewDataset(
        name=options.name,
        kind=options.kind,
        data={options.lang: kind.rows.format_map(asdict(example))},
        suffix=kind.data,
    )
    files = dataset.texts(texts)
    texts_by_path = {folder / name: text for name, text in files.items()}
    write_texts(texts_by_path.items(), to_commit=True)

    is_translated = options.lang in texts.languages
    for name, text in files.items():
        advice = "" if is_translated else _translation_advice(text, example)
        say(sys.stdout, f"{folder / name}{advice}")
    if is_judged_in_english(kind, options.lang):
        missing = rubric_file(kind, options.lang)
        say(sys.stdout, f"the judge reads English rules: there is no {missing}")
    ignored = ignore_in_git(options.to)
    if ignored:
        say(sys.stdout, ignored)
    if kind.rubric and kind.slots:
        say(sys.stdout, JUDGE_ADVICE)
    if kind.slots:
        say(sys.stdout, _drops_advice())
    say(sys.stdout, f"put your rows in place of these, then: qagate run {folder}")
    return DONE


def _drops_advice() -> str:
    """Return how many rows show which drop."""
    by_rows = [f"{rows} rows can show {shown_by(rows)}" for rows in ROWS_OF_ADVICE]
    return "; ".join(by_rows)


def _read_options(argv: Sequence[str], kinds: Sequence[str]) -> Namespace:
    parser = CommandParser(
        prog="qagate new",
        description="Write the files of a data set of your own: settings, data with a row to be "
        "replaced, an answer prompt, and the test module; with --kind judged, labelled answers "
        "that measure a judge. They run as they are, and decide nothing without your rows. If you "
        "have a spreadsheet, begin with qagate start.",
        epilog="exit codes: 0 written, 4 wrong arguments or a folder that is there",
        allow_abbrev=False,
    )
    parser.add_argument(
        "name", metavar="NAME", help="of the data set; also its folder's"
    )
    parser.add_argument(
        "--lang", metavar="LANG", default="en", help="its language (default: en)"
    )
    parser.add_argument("--kind", choices=kinds, default="graded", help="(%(default)s)")
    parser.add_argument(
        "--to", metavar="DIR", type=Path, default=Path(), help="where (default: .)"
    )
    options = parser.parse_args(argv)
    check_name(options.name)
    check_language(options.lang, "--lang")
    return options


def _translation_advice(text: str, english: Example) -> str:
    """Return which lines of a file hold texts of the English example; empty where none does."""
    phrases = [
        english.question,
        english.context,
        english.expected,
        english.wrong,
        english.claim,
        english.choose,
        "yes: ",
    ]
    numbers = []
    for number, line in enumerate(text.splitlines(), start=1):
        if any(phrase in line for phrase in phrases):
            numbers.append(str(number))
    if not numbers:
        return ""
    noun = "lines" if len(numbers) > 1 else "line"
    return f": translate {noun} {', '.join(numbers)}"
