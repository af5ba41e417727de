"""The arguments of ``python -m cases build``: their names, help and bounds."""

import argparse
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from cases.problems import shown
from evaluators.command_line import Parser
from evaluators.core import UsageError

ALL = "all"
EVALUATE = "evaluate"
GROUP = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
DATASET = "boolq"
NOTE = """\
A step that is done is not done again; after an interruption the same command goes on where it
stopped, and no call that was paid for is made twice. Options of a step that was made before need
not be repeated. Everything stands in the work folder: one JSONL a step, report.json with all
counts, settings.json. The steps from review on need people and are done where they are named.

exit codes: 0 done, 1 a step could not be finished (run again), 4 wrong arguments or an unreadable
file, 130 interrupted.

example:
  python -m cases build boolq --language be \\
      --source encyclopaedia=bewiki-latest-pages-articles.xml.bz2 \\
      --licence "encyclopaedia=CC BY-SA 4.0" \\
      --source news=articles.jsonl --licence news=CC0 \\
      --generator openai:NAME --validator anthropic:NAME --max-cost 20
  python -m cases build boolq --language be review --reviewer Anna --reviewer Jan --share 0.5
  python -m cases build boolq --language be accept be-1.Anna.json be-2.csv
  python -m cases build boolq --language be freeze --to cases/mine --splits dev=0.2,test=0.8
  python -m cases build boolq --language be evaluate --run new=reports/out \\
      --predictions mdeberta=mdeberta.csv"""


def make_parser(steps: Mapping[str, str]) -> argparse.ArgumentParser:
    """Return the parser; ``steps`` maps the known steps to their help."""
    known = {**steps, EVALUATE: "compare models on a dataset: one table, and what they miss"}
    table = "\n".join(f"  {name:<11}{what}" for name, what in known.items())
    parser = Parser(
        prog="python -m cases build",
        description=f"Make a BoolQ-type dataset, step by step.\n\nsteps:\n{table}",
        epilog=NOTE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    words = [*steps, EVALUATE, ALL]
    parser.add_argument("dataset", choices=[DATASET], help="the type of dataset")
    parser.add_argument(
        "step_word",
        choices=words,
        nargs="?",
        metavar="STEP",
        help="one step (default: all that need no people)",
    )
    parser.add_argument(
        "files", type=Path, nargs="*", metavar="FILE", help="with accept: what reviewers sent back"
    )
    parser.add_argument("--step", choices=words, metavar="STEP", help="the same as an option")
    parser.add_argument("--language", required=True, metavar="CODE", help="such as be or en")
    parser.add_argument(
        "--recipe", type=Path, metavar="FILE", help="your own YAML file for the language"
    )
    parser.add_argument(
        "--folder", type=Path, help=f"work folder (default: .qa/build/{DATASET}-LANGUAGE)"
    )
    _add_sampling(parser.add_argument_group("sample"))
    _add_models(parser.add_argument_group("generate and validate"))
    _add_people(parser.add_argument_group("review, accept and freeze"))
    _add_evaluating(parser.add_argument_group("evaluate"))
    _add_calling(parser.add_argument_group("calls to models"))
    return parser


def _add_sampling(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="GROUP=WHERE",
        help="a dump (.xml, .xml.bz2, .xml.gz), the address of a wiki's api.php, a file of "
        "articles (.jsonl, .csv, .json) or a folder of .txt; repeatable",
    )
    group.add_argument(
        "--count",
        action="append",
        default=[],
        metavar="GROUP=N",
        help="how many items the group is to have (default: 500)",
    )
    group.add_argument(
        "--licence",
        action="append",
        default=[],
        metavar="GROUP=TEXT",
        help="needed where a source names none",
    )
    group.add_argument(
        "--oversample",
        type=_number("--oversample", 1, 10),
        metavar="X",
        help="how many times more are sampled, for some will drop (default: 1.3)",
    )
    group.add_argument("--seed", type=int, metavar="N", help="default: 1")
    group.add_argument("--contact", default="", help="your address, which wikis want to know")


def _add_models(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("--generator", metavar="SPEC", help="the model that writes the questions")
    group.add_argument(
        "--plain",
        action=argparse.BooleanOptionalAction,
        help="ask for JSON text, not for a function call",
    )
    group.add_argument("--validator", metavar="SPEC", help="a model of another provider")
    group.add_argument(
        "--blind",
        action=argparse.BooleanOptionalAction,
        help="the validator answers by itself first, and must agree",
    )
    group.add_argument(
        "--same-provider",
        action=argparse.BooleanOptionalAction,
        help="allow a validator of the generator's provider",
    )


def _add_people(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--reviewer", action="append", metavar="NAME", help="who reviews; once for each person"
    )
    group.add_argument(
        "--share", type=_number("--share", 0, 1), metavar="X", help="of items reviewed (default: 1)"
    )
    group.add_argument(
        "--overlap",
        type=_number("--overlap", 0, 1),
        metavar="X",
        help="share of them that two people see (default: 0.2)",
    )
    group.add_argument(
        "--unreviewed",
        action=argparse.BooleanOptionalAction,
        help="keep what too few people have seen",
    )
    group.add_argument("--to", metavar="DIR", help="the dataset's folder, which names it")
    group.add_argument(
        "--splits", metavar="NAME=SHARE,…", help="such as train=0.8,dev=0.1,test=0.1"
    )
    group.add_argument("--force", action="store_true", help="write over files of that folder")


def _add_evaluating(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("--data", type=Path, metavar="FILE", help="the items (default: the frozen)")
    group.add_argument(
        "--run",
        action="append",
        default=[],
        metavar="NAME=FOLDER",
        help="a model by the report folder of its run; repeatable",
    )
    group.add_argument(
        "--predictions",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="a model by a CSV or JSONL file of id and answer; repeatable",
    )
    group.add_argument(
        "--allow-missing", action="store_true", help="count items without an answer as unanswered"
    )
    group.add_argument("--out", type=Path, metavar="DIR", help="default: evaluation in --folder")


def _add_calling(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--ledger", type=Path, default=Path(".qa/ledger.sqlite3"), help="default: %(default)s"
    )
    group.add_argument("--concurrency", type=_count("--concurrency"), default=16, metavar="N")
    group.add_argument("--rpm", type=_count("--rpm"), metavar="N", help="requests a minute")
    group.add_argument(
        "--max-cost", type=_number("--max-cost", 0, 1e6), metavar="USD", help="what may be spent"
    )
    group.add_argument(
        "--deadline", type=_number("--deadline", 0, 1e7), metavar="S", help="seconds to work"
    )
    group.add_argument("--replay", action="store_true", help="answer from the ledger alone")
    group.add_argument(
        "--leave-out-failed",
        action="store_true",
        help="drop the items whose call fails again, and go on without them",
    )


def named(option: str) -> Callable[[str], tuple[str, Path]]:
    """Return what reads NAME=PATH; the name may be a model's, with any signs but ``=``."""

    def split(text: str) -> tuple[str, Path]:
        name, _, where = text.partition("=")
        if not name.strip() or not where.strip():
            msg = f"build: {option} {shown(text)}: write NAME=PATH, such as mdeberta=answers.csv"
            raise UsageError(msg)
        return name.strip(), Path(where.strip())

    return split


def shares(text: str) -> dict[str, float]:
    """Return the share of each split. Raises UsageError where they do not make 1 together."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, share = pair("--splits")(part.strip())
        if name in found:
            msg = f"build: --splits: {shown(name)} stands twice"
            raise UsageError(msg)
        found[name] = _number("--splits", 0.001, 1)(share)
    if not math.isclose(sum(found.values()), 1, abs_tol=1e-6):
        msg = f"build: --splits {shown(text)}: shares make {sum(found.values()):g} together, not 1"
        raise UsageError(msg)
    return found


def pair(option: str) -> Callable[[str], tuple[str, str]]:
    """Return what reads GROUP=VALUE."""

    def split(text: str) -> tuple[str, str]:
        group, mark, value = text.partition("=")
        if not mark or not GROUP.fullmatch(group) or not value.strip():
            msg = f"build: {option} {shown(text)}: write GROUP=VALUE, such as news=VALUE"
            raise UsageError(msg)
        return group, value.strip()

    return split


def _count(option: str) -> Callable[[str], int]:
    return lambda text: whole(option, text, 1, 100_000)


def whole(option: str, text: str, low: int, high: int) -> int:
    """Return a whole number within bounds. Raises UsageError."""
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or not low <= int(text) <= high:
        msg = f"build: {option} {shown(text)}: want a whole number from {low} to {high:,}"
        raise UsageError(msg)
    return int(text)


def _number(option: str, low: float, high: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            msg = f"build: {option} {shown(text)}: want a number from {low:g} to {high:,g}"
            raise UsageError(msg)
        return value

    return read
