"""The command line of ``python -m cases build``, as values."""

import argparse
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from cases.builder.folder import Values
from cases.problems import shown
from evaluators.core import UsageProblem

ALL = "all"
GROUP = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
DATASET = "boolq"
NOTE = """\
A step that is done is not done again; after an interruption the same command goes on where it
stopped, and no call that was paid for is made twice. Options of a step that was made before need
not be repeated. Everything stands in the work folder: one JSONL a step, report.json with all
counts, settings.json.

exit codes: 0 done, 1 a step could not be finished (run again), 4 wrong arguments or an unreadable
file, 130 interrupted.

example:
  python -m cases build boolq --language be \\
      --source encyclopaedia=bewiki-latest-pages-articles.xml.bz2 \\
      --licence "encyclopaedia=CC BY-SA 4.0" \\
      --source news=articles.jsonl --licence news=CC0 \\
      --generator openai:NAME --validator anthropic:NAME --max-cost 20"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calling:
    """How models are asked, for the whole command."""

    ledger: Path
    concurrency: int
    rpm: int | None
    max_cost: float | None
    deadline: float | None
    replay: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user asked for. ``given`` holds the steps' own options, None where not given."""

    language: str
    recipe: Path | None
    folder: Path
    step: str
    contact: str
    given: Values
    calling: Calling


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        msg = f"build: {message}; see `python -m cases build --help`"
        raise UsageProblem(msg)


def read_options(argv: Sequence[str], steps: Mapping[str, str]) -> Options:
    """Return the options of a command line; ``steps`` maps the known steps to their help.

    Raises UsageProblem for anything wrong.
    """
    found = _parser(steps).parse_intermixed_args(argv)
    if found.step_word and found.step and found.step_word != found.step:
        msg = f"build: {found.step_word!r} and --step {found.step!r}; name one step"
        raise UsageProblem(msg)
    return Options(
        language=found.language,
        recipe=found.recipe,
        folder=found.folder or Path(f".qa/build/{DATASET}-{found.language}"),
        step=found.step or found.step_word or ALL,
        contact=found.contact,
        given=_given(found),
        calling=Calling(
            ledger=found.ledger,
            concurrency=found.concurrency,
            rpm=found.rpm,
            max_cost=found.max_cost,
            deadline=found.deadline,
            replay=found.replay,
        ),
    )


def _given(found: argparse.Namespace) -> Values:
    groups: dict[str, list[str]] = {}
    for group, where in map(_pair("--source"), found.source):
        groups.setdefault(group, []).append(where)
    counts = {
        group: _whole("--count", number, 1, 1_000_000)
        for group, number in map(_pair("--count"), found.count)
    }
    return {
        "sources": groups or None,
        "counts": counts or None,
        "licences": dict(map(_pair("--licence"), found.licence)) or None,
        "oversample": found.oversample,
        "seed": found.seed,
        "generator": found.generator,
        "plain": found.plain,
        "validator": found.validator,
        "blind": found.blind,
        "same_provider": found.same_provider,
    }


def _parser(steps: Mapping[str, str]) -> argparse.ArgumentParser:
    table = "\n".join(f"  {name:<11}{what}" for name, what in steps.items())
    parser = _Parser(
        prog="python -m cases build",
        description=f"Make a BoolQ-type dataset, step by step.\n\nsteps:\n{table}",
        epilog=NOTE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    words = [*steps, ALL]
    parser.add_argument("dataset", choices=[DATASET], help="the type of dataset")
    parser.add_argument(
        "step_word", choices=words, nargs="?", metavar="STEP", help="one step (default: all)"
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


def _pair(option: str) -> Callable[[str], tuple[str, str]]:
    def split(text: str) -> tuple[str, str]:
        group, mark, value = text.partition("=")
        if not mark or not GROUP.fullmatch(group) or not value.strip():
            msg = f"build: {option} {shown(text)}: write GROUP=VALUE, such as news=VALUE"
            raise UsageProblem(msg)
        return group, value.strip()

    return split


def _count(option: str) -> Callable[[str], int]:
    return lambda text: _whole(option, text, 1, 100_000)


def _whole(option: str, text: str, low: int, high: int) -> int:
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or not low <= int(text) <= high:
        msg = f"build: {option} {shown(text)}: want a whole number from {low} to {high:,}"
        raise UsageProblem(msg)
    return int(text)


def _number(option: str, low: float, high: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            msg = f"build: {option} {shown(text)}: want a number from {low:g} to {high:,g}"
            raise UsageProblem(msg)
        return value

    return read
