"""``qagate schema``: print the JSON Schema of a file that a team writes."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from qagate.cases.extras.new.schema import (
    Schema,
    dataset_schema,
    editor_line,
    gates_schema,
    models_schema,
    schema_text,
)
from qagate.evaluators.command_line import CommandParser
from qagate.evaluators.output import say, write_texts

SCHEMAS: Mapping[str, Callable[[], Schema]] = {
    "dataset": dataset_schema,
    "gates": gates_schema,
    "models": models_schema,
}
"""What makes the schema of each kind of file."""


def main(argv: Sequence[str]) -> int:
    """Print a schema, or write it to a file, and return the exit code."""
    options = _read_options(argv)
    schema = SCHEMAS[options.file]()
    text = schema_text(schema)
    if options.to is None:
        say(sys.stdout, text.rstrip())
        return 0
    write_texts([(options.to, text)])
    say(sys.stdout, f"{options.to}: begin your file with this line, relative to it:")
    say(sys.stdout, editor_line(options.to.name))
    return 0


def _read_options(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser(
        prog="qagate schema",
        description="Print the JSON Schema of dataset.yaml, a gates file or a models file. An "
        "editor that is given it completes keys and marks mistakes.",
        epilog="exit codes: 0 printed or written, 3 not written, 4 wrong arguments",
        allow_abbrev=False,
    )
    parser.add_argument("file", choices=list(SCHEMAS), help="whose schema")
    parser.add_argument(
        "--to", metavar="FILE", type=Path, help="write it there (default: print it)"
    )
    return parser.parse_args(argv)
