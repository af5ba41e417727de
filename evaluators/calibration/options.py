"""Options that measuring and attacking a judge have in common."""

import argparse
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TextIO

from evaluators.calibration.judges import LEXICAL, JudgeFactory, connect_bench
from evaluators.calibration.session import InterruptedJudgingError, Job, Judged, Store, judge_all
from evaluators.canonical import digest
from evaluators.command_line import Parser
from evaluators.core import Outcome, UsageError
from evaluators.files import file_hash
from evaluators.models.secrets import Key, require_key
from evaluators.models.spec import Spec
from evaluators.output import progress_on, say

LEDGER = Path(".qa/ledger.sqlite3")
PACKAGE = Path(__file__).parents[1]
RULES = ("lexical/*", "judges/lexical.py", "judges/overlap.py", "content.py", "characters.py")
EXITS = """\
exit codes: 0 measured, 1 {failed}, 4 wrong arguments or an unreadable file,
130 interrupted; replies that were paid for are kept, and running again goes on"""


def judge_parser(command: str, description: str, failed: str) -> Parser:
    """Return the parser of a command that puts answers to a judge; ``failed`` explains exit 1."""
    parser = Parser(
        prog=f"python -m evaluators {command}",
        description=description,
        epilog=EXITS.format(failed=failed),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--judge", action="append", required=True, metavar="SPEC",
        help=f"{LEXICAL}, a model (openai:NAME, anthropic:NAME, openai:NAME@URL, a name of "
             f"models.yaml), or {LEXICAL}+MODEL; several are a panel")  # fmt: skip
    add("--rubric", metavar="NAME", help="a bundled rubric, or the path of one")
    add("--limit", type=positive, metavar="N", help="at most N answers, chosen by a hash")
    add("--ledger", type=Path, default=LEDGER, metavar="PATH", help="default: %(default)s")
    add("--replay", action="store_true", help="send nothing; answer from the ledger")
    add("--concurrency", type=positive, default=16, metavar="N", help="calls in flight")
    add("--json", type=Path, metavar="OUT", help="write the figures as JSON as well")
    return parser


def positive(text: str) -> int:
    """Return a whole number from 1. Raises ArgumentTypeError."""
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        msg = f"want a whole number from 1, got {text[:40]!r}"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def bench_of(options: argparse.Namespace) -> JudgeFactory:
    """Return the judge that the options name, its keys read from the environment.

    Raises UsageError, also for a rubric that no model would be asked by.
    """
    bench = connect_bench(options.judge, _no_key if options.replay else _key)
    if options.rubric and not bench.models:
        msg = f"--rubric {options.rubric}: {bench.name} asks no model, so no rubric is used"
        raise UsageError(msg)
    return bench


def version_of(bench: JudgeFactory) -> str:
    """Return a hash of what the judge is: its models' identities, and the rules' own files."""
    rules = {}
    if LEXICAL in bench.name:
        files = sorted(path for pattern in RULES for path in PACKAGE.glob(pattern))
        wanted = [path for path in files if path.suffix in (".py", ".yaml")]
        rules = {path.relative_to(PACKAGE).as_posix(): file_hash(path) for path in wanted}
    return digest([bench.name, [dict(model.identity) for model in bench.models], rules])[:12]


def judged(
    jobs: Sequence[Job], bench: JudgeFactory, options: argparse.Namespace, stream: TextIO
) -> Judged:
    """Judge the answers with the options' ledger and limits, showing progress on the stream."""
    store = Store(
        ledger=options.ledger,
        day=today(),
        replay=options.replay,
        concurrency=options.concurrency,
    )
    progress = progress_on(stream)

    def watch(outcomes: Mapping[str, Outcome], planned: int) -> None:
        progress.show(progress_line(outcomes, planned), len(outcomes), planned)

    try:
        return judge_all(jobs, bench, store, watch)
    except InterruptedJudgingError as error:
        progress.close()
        say(stream, str(error))
        raise KeyboardInterrupt from None
    finally:
        progress.close()


def progress_line(outcomes: Mapping[str, Outcome], planned: int) -> str:
    """Return how many answers are judged, how many calls failed, and what it cost so far."""
    ended = outcomes.values()
    errors = sum(one.state in ("error", "missing") for one in ended)
    unknown = any(one.usage.cost is None for one in ended)
    spent = "an unknown sum" if unknown else f"${sum(one.usage.spent for one in ended):.4f}"
    return f"judged {len(outcomes)} of {planned}, errors {errors}, spent {spent}"


def today() -> date:
    """Return the day, in UTC, that a card bears and whose prices hold."""
    return datetime.now(UTC).date()


def command_line(command: str, argv: Sequence[str]) -> str:
    """Return what to type to do the same again."""
    return shlex.join(["python", "-m", "evaluators", command, *argv])


def chosen(count: int, limit: int | None, name: Callable[[int], str]) -> list[int]:
    """Return which of ``count`` answers to take, in order: all, or ``limit`` by a hash of names."""
    places = list(range(count))
    if limit is None or limit >= count:
        return places
    return sorted(sorted(places, key=lambda place: digest(name(place)))[:limit])


def _key(spec: Spec) -> Key | None:
    return require_key(spec, os.environ)


def _no_key(spec: Spec) -> Key | None:
    return None
