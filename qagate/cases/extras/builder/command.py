"""``qagate build``: its options, and the steps that make a BoolQ-type data set.

The command itself begins in the room ``builder`` of reports, because ``evaluate``
reads recorded runs.
"""

import math
import re
import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from qagate.cases.extras.builder.freeze import FreezeStep
from qagate.cases.extras.builder.generation import CheckStep, GenerateStep
from qagate.cases.extras.builder.recipe import DATASET, Recipe, find_recipe, load_recipe
from qagate.cases.extras.builder.sampling import DUMPS, SampleStep
from qagate.cases.extras.builder.steps import (
    BY_PEOPLE,
    Build,
    BuildOptions,
    BuildStep,
    run_steps,
)
from qagate.cases.extras.builder.validation import (
    AcceptStep,
    ProbeStep,
    ReviewStep,
    ValidateStep,
)
from qagate.cases.extras.builder.work_folder import Values, WorkFolder, locked
from qagate.evaluators.command_line import CommandParser
from qagate.evaluators.core import UsageError
from qagate.evaluators.ledger.place import read_place
from qagate.evaluators.models.keys import KEY_ENV
from qagate.evaluators.models.spec import MODELS_FILE
from qagate.evaluators.optional import require
from qagate.evaluators.output import say
from qagate.evaluators.text import shown

_STEPS: tuple[type[BuildStep], ...] = (
    SampleStep,
    GenerateStep,
    CheckStep,
    ValidateStep,
    ProbeStep,
    ReviewStep,
    AcceptStep,
    FreezeStep,
)
"""In the order in which they are done."""
STEPS = {step.name: step for step in _STEPS}
ALL = "all"
EVALUATE = "evaluate"
NOTE = """\
The recipe says how: texts and their licences under `sources`, everything else under `build`. A key
that your recipe leaves out comes from the bundled recipe of its language:

  language: be
  sources:
    encyclopaedia: {from: bewiki-latest-pages-articles.xml.bz2, licence: CC BY-SA 4.0, count: 500}
    news: {from: articles.jsonl, licence: CC0}
  build: {generator: "openai:NAME", validator: "anthropic:NAME", splits: {dev: 0.2, test: 0.8}}

A step that is done is not done again. After an interruption the same command continues, and no
call is paid for twice. The work folder holds one JSONL file a step, and report.json with all
counts. The steps from review on need people and are done only if they are named.

exit codes: 0 done, 1 a step could not be finished (run again), 4 wrong arguments or an unreadable
file, 130 interrupted.

example:
  qagate build boolq --recipe mine.yaml --max-cost 20
  qagate build boolq --recipe mine.yaml review --reviewer Anna --reviewer Jan
  qagate build boolq --recipe mine.yaml accept be-1.Anna.json be-2.csv
  qagate build boolq --recipe mine.yaml freeze --to cases/mine
  qagate build boolq --recipe mine.yaml evaluate --run new=reports/out --run old=last/"""


def chosen_recipe(options: BuildOptions) -> Recipe:
    """Return the user's recipe, or the bundled one of a language. Raises UsageError.

    A dump of Wikipedia needs a package that is not always installed: that is said here, before
    anything is done.
    """
    path = options.recipe or find_recipe(options.language or "")
    recipe = load_recipe(path)
    if options.step in (ALL, SampleStep.name):
        for group in recipe.sources:
            for path in group.files:
                if path.name.endswith(DUMPS):
                    require("mwparserfromhell", str(path))
    if options.language not in (None, recipe.language):
        raise UsageError(
            f"{recipe.path}: a recipe for {recipe.language!r}, not for {options.language!r}"
        )
    return recipe


def work_folder_of(options: BuildOptions, recipe: Recipe) -> Path:
    """Return the folder with what was made so far."""
    return options.folder or Path(f".qa/build/{DATASET}-{recipe.language}")


def make(options: BuildOptions, recipe: Recipe) -> int:
    """Do the steps that are asked for and not done yet; print what there is, and return 0.

    Raises UsageError, BuildError.
    """
    if options.step == ALL:
        names = [name for name in STEPS if name not in BY_PEOPLE]
    else:
        names = [options.step]
    folder = work_folder_of(options, recipe)
    with locked(folder):
        build = Build(
            options=options,
            recipe=recipe,
            folder=WorkFolder(folder),
            say=partial(say, sys.stderr),
        )
        report = run_steps(build, [STEPS[name] for name in names])
    say(sys.stdout, *_lines(report, folder))
    return 0


def _lines(report: Values, folder: Path) -> Iterator[str]:
    for state, count in report["final"].items():
        yield f"{count:>7} {state}"
    yield f"{report['items']:>7} in all; {folder}/report.json says more"
    if alone := report["question_only"]:
        share, (low, high) = alone["shares"][alone["best"]], alone["interval"]
        yield (
            f"the question alone gives {share:.1%} of the answers away, by its {alone['best']} "
            f"(95 % interval {low:.1%} to {high:.1%}; the more frequent answer: "
            f"{alone['shares']['majority']:.1%})"
        )


def read_options(argv: Sequence[str]) -> BuildOptions:
    """Return the options of a command line. Raises UsageError for anything wrong."""
    words = _parser().parse_intermixed_args(argv)
    options = BuildOptions(
        step=words.step,
        files=words.files,
        recipe=words.recipe,
        language=words.language,
        folder=words.folder,
        generator=words.generator,
        validator=words.validator,
        reviewers=words.reviewers,
        unreviewed=words.unreviewed,
        to=words.to,
        run=words.run,
        ledger=words.ledger,
        concurrency=words.concurrency,
        rpm=words.rpm,
        key_env=words.key_env,
        models=words.models,
        max_cost=words.max_cost,
        deadline=words.deadline,
        replay=words.replay,
        leave_out_failed=words.leave_out_failed,
    )
    if options.files and options.step != "accept":
        raise UsageError(
            f"build: {options.step} takes no files, got {options.files[0]}"
        )
    if not options.language and not options.recipe:
        raise UsageError("build: say which language: --recipe FILE, or --language CODE")
    return options


def _parser() -> CommandParser:
    table = {name: step.help for name, step in STEPS.items()}
    table[EVALUATE] = (
        "compare models that were run on the frozen set, and list what they miss"
    )
    steps = "\n".join(f"  {name:<11}{what}" for name, what in table.items())
    parser = CommandParser(
        prog="qagate build",
        description=f"Make a BoolQ-type dataset, step by step.\n\nsteps:\n{steps}",
        epilog=NOTE,
        formatter_class=RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("dataset", metavar="DATASET", choices=[DATASET], help=f"the type: {DATASET}")
    text = "one step (default: all that need no people)"
    add(
        "step", choices=[*table, ALL], nargs="?", default=ALL, metavar="STEP", help=text
    )
    text = "with accept: what reviewers sent back"
    add("files", type=Path, nargs="*", default=[], metavar="FILE", help=text)
    add("--recipe", type=Path, metavar="FILE", help="your YAML file; see below")
    text = "the bundled recipe to use, such as be, if you give none"
    add("--language", metavar="CODE", help=text)
    add(
        "--folder",
        type=Path,
        help=f"work folder (default: .qa/build/{DATASET}-LANGUAGE)",
    )
    add("--generator", metavar="SPEC", help="the model that writes the questions")
    add(
        "--validator",
        metavar="SPEC",
        help="a model of another provider, which confirms them",
    )
    text = "with review: who reviews; once for each person"
    add(
        "--reviewer",
        dest="reviewers",
        action="append",
        default=[],
        metavar="NAME",
        help=text,
    )
    text = "with review: ask nobody; with accept: keep what too few people have seen"
    add("--unreviewed", action="store_true", help=text)
    add("--to", metavar="DIR", help="with freeze: the dataset's folder, which names it")
    text = "with evaluate: a model by the report folder of its run; repeatable"
    add(
        "--run",
        type=_model,
        action="append",
        default=[],
        metavar="NAME=FOLDER",
        help=text,
    )
    _add_calling(parser)
    return parser


def _add_calling(parser: CommandParser) -> None:
    add = parser.add_argument_group("calls to models").add_argument
    ledger = Path(".qa/ledger.sqlite3")
    add(
        "--ledger",
        type=read_place,
        default=ledger,
        metavar="PLACE",
        help="default: %(default)s",
    )
    count, text = (
        partial(_number, "--concurrency", whole=True),
        "calls at once (default: 16)",
    )
    add("--concurrency", type=count, default=16, metavar="N", help=text)
    add(
        "--rpm",
        type=partial(_number, "--rpm", whole=True),
        metavar="N",
        help="requests a minute",
    )
    add("--key-env", action="append", default=[], metavar="URL=NAME", help=KEY_ENV)
    add("--models", type=Path, metavar="FILE", help=MODELS_FILE)
    text = "the most that this command may spend"
    add("--max-cost", type=partial(_number, "--max-cost"), metavar="USD", help=text)
    text = "seconds for the whole command"
    add("--deadline", type=partial(_number, "--deadline"), metavar="S", help=text)
    add("--replay", action="store_true", help="answer from the ledger alone")
    text = "drop the items whose call fails again, and go on without them"
    add("--leave-out-failed", action="store_true", help=text)


def _number(option: str, text: str, *, whole: bool = False) -> float:
    low, kind = (1, "a whole number") if whole else (0, "a number")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= 1_000_000 or (whole and not value.is_integer()):
        raise UsageError(
            f"build: {option} {shown(text)}: want {kind} from {low} to 1,000,000"
        )
    return int(value) if whole else value


def _model(text: str) -> tuple[str, Path]:
    name, _, where = text.partition("=")
    if not re.fullmatch(r"[^\s=][^=]*", name.strip()) or not where.strip():
        raise UsageError(
            f"build: --run {shown(text)}: write NAME=FOLDER, such as new=reports/out"
        )
    return name.strip(), Path(where.strip())
