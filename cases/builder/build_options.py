"""The command line of ``python -m cases build``: its options, their help and bounds."""

import argparse
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from evaluators.command_line import CommandParser
from evaluators.core import UsageError
from evaluators.ledger_place import Place, read_place
from evaluators.models.keys import KEY_ENV, MODELS_FILE
from evaluators.text import shown

ALL = "all"
EVALUATE = "evaluate"
DATASET = "boolq"
GROUP = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
MODEL = re.compile(r"\s*[^\s=][^=]*")  # as providers name them
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


T = TypeVar("T")
ArgumentGroup = argparse._ArgumentGroup


class Options(argparse.Namespace):
    """What the user asked for.

    The options of the steps, from ``sources`` on, are None where they are not given; a step then
    takes those it was made with before. ``run`` and ``predictions`` hold models by name.
    """

    language: str
    recipe: Path | None
    folder: Path
    step: str
    files: list[Path]
    contact: str
    force: bool

    sources: dict[str, list[str]] | None
    counts: dict[str, int] | None
    licences: dict[str, str] | None
    oversample: float | None
    seed: int | None
    generator: str | None
    plain: bool | None
    validator: str | None
    second_validator: str | None
    blind: bool | None
    same_provider: bool | None
    probe: bool | None
    reviewers: list[str] | None
    share: float | None
    overlap: float | None
    unreviewed: bool | None
    to: str | None
    splits: dict[str, float] | None

    data: Path | None
    run: list[tuple[str, Path]]
    predictions: list[tuple[str, Path]]
    allow_missing: bool
    out: Path

    ledger: Place
    concurrency: int
    rpm: int | None
    key_env: list[str]
    models: Path | None
    max_cost: float | None
    deadline: float | None
    replay: bool
    leave_out_failed: bool


def read_options(argv: Sequence[str], steps: Mapping[str, str]) -> Options:
    """Return the options of a command line; ``steps`` maps the known steps to their help.

    Raises UsageError for anything wrong.
    """
    found = _parser(steps).parse_intermixed_args(argv, namespace=Options())
    if found.step_word and found.step and found.step_word != found.step:
        raise UsageError(f"build: {found.step_word!r} and --step {found.step!r}; name one step")
    found.step = found.step or found.step_word or ALL
    if found.files and found.step != "accept":
        raise UsageError(f"build: {found.step} takes no files, got {found.files[0]}; accept does")
    found.folder = found.folder or Path(f".qa/build/{DATASET}-{found.language}")
    found.out = found.out or found.folder / "evaluation"
    groups: dict[str, list[str]] = {}
    for group, where in found.source:
        groups.setdefault(group, []).append(where)
    found.sources = groups or None
    found.counts, found.licences = dict(found.count) or None, dict(found.licence) or None
    return found


def _parser(steps: Mapping[str, str]) -> argparse.ArgumentParser:
    known = {**steps, EVALUATE: "compare models on a dataset: one table, and what they miss"}
    table = "\n".join(f"  {name:<11}{what}" for name, what in known.items())
    parser = CommandParser(
        prog="python -m cases build",
        description=f"Make a BoolQ-type dataset, step by step.\n\nsteps:\n{table}",
        epilog=NOTE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add, words = parser.add_argument, [*steps, EVALUATE, ALL]
    add("dataset", choices=[DATASET], help="the type of dataset")
    text = "one step (default: all that need no people)"
    add("step_word", choices=words, nargs="?", metavar="STEP", help=text)
    text = "with accept: what reviewers sent back"
    add("files", type=Path, nargs="*", metavar="FILE", help=text)
    add("--step", choices=words, metavar="STEP", help="the same as an option")
    add("--language", required=True, metavar="CODE", help="such as be or en")
    add("--recipe", type=Path, metavar="FILE", help="your own YAML file for the language")
    add("--folder", type=Path, help=f"work folder (default: .qa/build/{DATASET}-LANGUAGE)")
    _add_sampling(parser.add_argument_group("sample"))
    _add_models(parser.add_argument_group("generate and validate"))
    _add_people(parser.add_argument_group("review, accept and freeze"))
    _add_evaluating(parser.add_argument_group("evaluate"))
    _add_calling(parser.add_argument_group("calls to models"))
    return parser


def _add_sampling(group: ArgumentGroup) -> None:
    add = partial(group.add_argument, action="append", default=[])
    text = (
        "a dump (.xml, .xml.bz2, .xml.gz), the address of a wiki's api.php, a file of "
        "articles (.jsonl, .csv, .json) or a folder of .txt; repeatable"
    )
    add("--source", type=_pair("--source", str), metavar="GROUP=WHERE", help=text)
    text = "how many items the group is to have (default: 500)"
    count = _whole("--count", 1_000_000)
    add("--count", type=_pair("--count", count), metavar="GROUP=N", help=text)
    text = "needed where a source names none"
    add("--licence", type=_pair("--licence", str), metavar="GROUP=TEXT", help=text)
    text = "how many times more are sampled, for some will drop (default: 1.3)"
    number = _number("--oversample", 1, 10)
    group.add_argument("--oversample", type=number, metavar="X", help=text)
    group.add_argument("--seed", type=int, metavar="N", help="default: 1")
    group.add_argument("--contact", default="", help="your address, which wikis want to know")


def _add_models(group: ArgumentGroup) -> None:
    add, flag = group.add_argument, argparse.BooleanOptionalAction
    add("--generator", metavar="SPEC", help="the model that writes the questions")
    add("--plain", action=flag, help="ask for JSON text, not for a function call")
    add("--validator", metavar="SPEC", help="a model of another provider")
    text = "another, asked of what the first does not confirm; where it does, people decide"
    add("--second-validator", metavar="SPEC", help=text)
    text = "the validator first answers by itself (default); where it differs, people decide"
    add("--blind", action=flag, help=text)
    add("--same-provider", action=flag, help="allow a validator of the generator's provider")
    text = "drop what both models answer without the text (default)"
    add("--probe", action=flag, help=text)


def _add_people(group: ArgumentGroup) -> None:
    add, flag = group.add_argument, argparse.BooleanOptionalAction
    text = "who reviews; once for each person"
    add("--reviewer", dest="reviewers", action="append", metavar="NAME", help=text)
    number = _number("--share", 0, 1)
    add("--share", type=number, metavar="X", help="of items reviewed (default: 1)")
    text = "share of them that two people see (default: 0.2)"
    add("--overlap", type=_number("--overlap", 0, 1), metavar="X", help=text)
    add("--unreviewed", action=flag, help="keep what too few people have seen")
    add("--to", metavar="DIR", help="the dataset's folder, which names it")
    text = "such as train=0.8,dev=0.1,test=0.1"
    add("--splits", type=_shares, metavar="NAME=SHARE,…", help=text)
    add("--force", action="store_true", help="write over files of that folder")


def _add_evaluating(group: ArgumentGroup) -> None:
    add, models = group.add_argument, partial(group.add_argument, action="append", default=[])
    model = partial(_pair, read=Path, names=MODEL, form="NAME=PATH, such as mdeberta=answers.csv")
    add("--data", type=Path, metavar="FILE", help="the items (default: the frozen)")
    text = "a model by the report folder of its run; repeatable"
    models("--run", type=model("--run"), metavar="NAME=FOLDER", help=text)
    text = "a model by a CSV or JSONL file of id and answer; repeatable"
    models("--predictions", type=model("--predictions"), metavar="NAME=FILE", help=text)
    add("--allow-missing", action="store_true", help="count items without an answer as unanswered")
    add("--out", type=Path, metavar="DIR", help="default: evaluation in --folder")


def _add_calling(group: ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--ledger", type=read_place, default=Path(".qa/ledger.sqlite3"), help="default: %(default)s"
    )
    add("--concurrency", type=_whole("--concurrency"), default=16, metavar="N")
    add("--rpm", type=_whole("--rpm"), metavar="N", help="requests a minute")
    add("--key-env", action="append", default=[], metavar="URL=NAME", help=KEY_ENV)
    add("--models", type=Path, metavar="FILE", help=MODELS_FILE)
    number = _number("--max-cost", 0, 1e6)
    add("--max-cost", type=number, metavar="USD", help="what may be spent")
    add("--deadline", type=_number("--deadline", 0, 1e7), metavar="S", help="seconds to work")
    add("--replay", action="store_true", help="answer from the ledger alone")
    text = "drop the items whose call fails again, and go on without them"
    add("--leave-out-failed", action="store_true", help=text)


def _pair(
    option: str,
    read: Callable[[str], T],
    names: re.Pattern[str] = GROUP,
    form: str = "GROUP=VALUE, such as news=VALUE",
) -> Callable[[str], tuple[str, T]]:
    """Return what reads such a pair."""

    def split(text: str) -> tuple[str, T]:
        name, _, value = text.partition("=")
        if not names.fullmatch(name) or not value.strip():
            raise UsageError(f"build: {option} {shown(text)}: write {form}")
        return name.strip(), read(value.strip())

    return split


def _shares(text: str) -> dict[str, float]:
    """Return the share of each split. Raises UsageError where they do not make 1 together."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, share = _pair("--splits", str)(part.strip())
        if name in found:
            raise UsageError(f"build: --splits: {shown(name)} stands twice")
        found[name] = _number("--splits", 0.001, 1)(share)
    if not math.isclose(sum(found.values()), 1, abs_tol=1e-6):
        raise UsageError(
            f"build: --splits {shown(text)}: shares make {sum(found.values()):g} together, not 1"
        )
    return found


def _whole(option: str, high: int = 100_000) -> Callable[[str], int]:
    """Return what reads a whole number from 1."""

    def read(text: str) -> int:
        if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or not 1 <= int(text) <= high:
            raise UsageError(
                f"build: {option} {shown(text)}: want a whole number from 1 to {high:,}"
            )
        return int(text)

    return read


def _number(option: str, low: float, high: float) -> Callable[[str], float]:
    """Return what reads a number within bounds."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise UsageError(
                f"build: {option} {shown(text)}: want a number from {low:g} to {high:,g}"
            )
        return value

    return read
