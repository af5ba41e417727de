"""The options of ``qagate decide``."""

import argparse
from pathlib import Path
from typing import Any

from qagate.cases.labels import Scale
from qagate.reports.commands.given_runs import OUT, RecordedRunParser
from qagate.reports.extras.decide.candidates import OLD
from qagate.reports.extras.decide.form_table import ROLES, forms
from qagate.reports.extras.decide.imported_run import MAX_DROP
from qagate.reports.extras.decide.paths import field_path

_TEXTS = {
    "slice": (
        "PATH",
        "a metadata field, column or path; each of its values is a slice",
    ),
    "cluster": (
        "PATH",
        "a metadata field, column or path that dependent samples share",
    ),
    "rows": ("PATH", "where the rows are, in a JSON object with several lists"),
    "old": ("NAME", "the same of OLD"),
}
"""The options that take a word: what it stands for, and its help."""


def decide_parser() -> RecordedRunParser:
    """Return the parser of the command's options."""
    parser = RecordedRunParser(
        "decide",
        "Decide over two results of another tool: inspect_ai, lm-evaluation-harness, promptfoo, "
        "deepeval, MLflow, azure-ai-evaluation, pydantic-evals, Langfuse, OpenAI Evals, "
        "Braintrust, ragas, HELM, lighteval, or any table with an id and a score. "
        "No model is asked.",
        "0 every gate passed, of each NEW; 1 a gate failed, of any NEW; 3 the report could not be "
        "written; 4 wrong arguments or no readable result; 6 INCONCLUSIVE",
    )
    text = (
        "the new result: a file, or the folder that the tool wrote. Several are candidates: each "
        "has a verdict and a report of its own, adjusted for their number (Holm)"
    )
    parser.add_argument("result", metavar="NEW", nargs="+", type=Path, help=text)
    text = "the result to compare with, of the same tool and the same items"
    parser.add_argument(
        "--baseline", metavar="OLD", type=Path, required=True, help=text
    )
    known_forms = [form.name for form in forms().values() if not form.instead]
    text = f"what the results are, of {', '.join(known_forms)} (default: found by their content)"
    parser.add_argument(
        "--from", dest="form", choices=known_forms, metavar="FORM", help=text
    )
    repeated: dict[str, Any] = {"action": "append", "default": []}
    text = "the score that decides; may be repeated: of each task the first that it has"
    parser.add_argument("--metric", metavar="NAME", help=text, **repeated)
    text = (
        "the provider, model or prompt to take of NEW, where a file has several, in rows or in "
        "columns (* in --column is the model); may be repeated: each is a candidate"
    )
    parser.add_argument("--new", metavar="NAME", help=text, **repeated)
    for name, (metavar, text) in _TEXTS.items():
        kind = _check_path if metavar == "PATH" else str
        parser.add_argument(
            f"--{name}", metavar=metavar, type=kind, default="", help=text
        )
    text = f"how much the deciding score may drop, in each slice and in all (default: {MAX_DROP:g})"
    parser.add_argument(
        "--margin", metavar="SHARE", type=_margin, default=MAX_DROP, help=text
    )
    text = "one verdict over all tasks, or over each group that the tool names"
    parser.add_argument("--pool", action="store_true", help=text)
    text = "thresholds, in place of --margin"
    parser.add_argument("--gates", metavar="FILE", type=Path, help=text)
    text = "a CSV with id and verdict: what a person says of answers of NEW; measures the scorer"
    parser.add_argument("--labels", metavar="FILE", type=Path, help=text)
    text = "the worst and the best score, if not 0 and 1: such as 1:5, or 5:1 where 1 is best"
    parser.add_argument("--scale", metavar="WORST:BEST", type=_scale, help=text)
    text = (
        "a field in which the results were measured otherwise, with what it is now, as the "
        "verdict prints it; may be repeated"
    )
    parser.add_argument(
        "--accept-changed", metavar="FIELD=NEW", type=_change, help=text, **repeated
    )
    text = "what a word is worth as a score, from 0 to 1; may be repeated"
    parser.add_argument(
        "--score", metavar="WORD=NUMBER", type=_word, help=text, **repeated
    )
    roles = "; ".join(f"{role}: {meaning}" for role, meaning in ROLES.items())
    text = (
        "where in a row a role stands: a column, or a path such as metrics.*.value or "
        f"scores[name].value; may be repeated. {roles}"
    )
    parser.add_argument(
        "--column", metavar="ROLE=PATH", type=_column, help=text, **repeated
    )
    parser.add_to(
        f"a folder for the report; the baseline's goes to DIR{OLD}, those of several candidates "
        f"to DIR/NAME (default: {OUT})"
    )
    parser.set_defaults(to=OUT, form="")
    return parser


def _scale(text: str) -> Scale:
    try:
        return Scale.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _margin(text: str) -> float:
    try:
        margin = float(text)
    except ValueError:
        margin = -1.0
    if not 0 < margin < 1:
        raise argparse.ArgumentTypeError(
            f"want a share between 0 and 1, such as 0.03; got {text!r}"
        )
    return margin


def _word(text: str) -> tuple[str, float]:
    word, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if not word or not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(
            f"want WORD=NUMBER, the number from 0 to 1, such as fair=0.5; got {text!r}"
        )
    return word.strip().casefold(), value


def _change(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals or not value:
        raise argparse.ArgumentTypeError(
            f"want FIELD=NEW, as the verdict prints it; got {text!r}"
        )
    return name, value


def _column(text: str) -> tuple[str, str]:
    role, _, path = text.partition("=")
    if role not in ROLES or not path:
        raise argparse.ArgumentTypeError(
            f"want ROLE=PATH, ROLE one of {', '.join(ROLES)}; got {text!r}"
        )
    _check_path(path)
    return role, path


def _check_path(text: str) -> str:
    """Return a path as it is given, or nothing. Raises ArgumentTypeError for what is none."""
    try:
        if text:
            field_path(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text
