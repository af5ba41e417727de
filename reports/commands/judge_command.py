"""What ``calibrate`` and ``attack`` share: options of the judge, progress, and judging."""

import argparse
import json
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import TextIO

from evaluators.answerers import RecordedAnswer
from evaluators.command_line import CommandParser
from evaluators.core import GRADES, Case, Judge, Outcome, QAError, UsageError
from evaluators.judge_spec import LEXICAL, PYTHON, parse_judges
from evaluators.judges.factory import DEFAULT_RUBRIC, JudgeFactory, connect_judges, rubric_for
from evaluators.ledger_place import read_place
from evaluators.models.catalogue import load_catalogue, replaced_entries
from evaluators.models.keys import KEY_ENV, MODELS_FILE, read_key_names, require_key
from evaluators.models.spec import Spec
from evaluators.output import progress_on, say
from evaluators.rubric import Rubric, Style
from evaluators.runtime.caller import CallSettings
from evaluators.runtime.engine import Task
from evaluators.runtime.session import CallSession, InterruptedJudgingError, JudgedTasks
from evaluators.secrets import Key, mask
from evaluators.text import digest


def check_target(path: Path) -> None:
    """Raise UsageError where no file could be written, before anything is paid for."""
    if not path.parent.is_dir() or path.is_dir():
        raise UsageError(f"--json {path}: its folder does not exist, or it is a folder itself")


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Write a value as JSON. Raises QAError where that fails."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise QAError(
            f"{path}: cannot be written ({error.strerror}); choose another --json"
        ) from None


LEDGER = Path(".qa/ledger.sqlite3")
EXITS = """\
exit codes: 0 measured, 1 {failed}, 4 wrong arguments or an unreadable file,
130 interrupted; replies that were paid for are kept, and running again goes on"""


def judge_parser(command: str, description: str, failed: str) -> CommandParser:
    """Return the parser of a command that puts answers to a judge; ``failed`` explains exit 1."""
    parser = CommandParser(
        prog=f"qagate {command}",
        description=description,
        epilog=EXITS.format(failed=failed),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--judge", action="append", required=True, metavar="SPEC",
        help=f"{LEXICAL}, a model (openai:NAME, openai-responses:NAME, anthropic:NAME, "
             f"openai:NAME@URL, a name of models.yaml), {LEXICAL}+MODEL, or {PYTHON}MODULE:CLASS, "
             "a rule judge of your own; several are a panel")  # fmt: skip
    add("--models", type=Path, metavar="FILE", help=MODELS_FILE)
    add("--rubric", metavar="NAME", help="a bundled rubric, or the path of one")
    add("--key-env", action="append", default=[], metavar="URL=NAME", help=KEY_ENV)
    add("--limit", type=positive, metavar="N", help="at most N answers, chosen by a hash")
    add("--ledger", type=read_place, default=LEDGER, metavar="PATH",
        help="a file (default: %(default)s) or postgresql://HOST/DATABASE")  # fmt: skip
    add("--replay", action="store_true", help="send nothing; answer from the ledger")
    add("--concurrency", type=positive, default=16, metavar="N", help="calls in flight")
    add("--json", type=Path, metavar="OUT", help="write the figures as JSON as well")
    return parser


def positive(text: str) -> int:
    """Return a whole number from 1. Raises ArgumentTypeError."""
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        raise argparse.ArgumentTypeError(f"want a whole number from 1, got {text[:40]!r}")
    return int(text)


def judges_of(options: argparse.Namespace) -> JudgeFactory:
    """Return the judges that the options name, their keys read from the environment.

    Raises UsageError, also for a rubric that no model would be asked by.
    """
    judges = connect_judges(
        parse_judges(options.judge),
        partial(_key, options, read_key_names(options.key_env)),
        load_catalogue(own=options.models),
    )
    if replaced := replaced_entries(options.models):
        say(sys.stderr, replaced)
    if options.rubric and not judges.models:
        raise UsageError(
            f"--rubric {options.rubric}: {judges.name} asks no model, so no rubric is used"
        )
    return judges


def rubric_of(options: argparse.Namespace, language: str, style: Style) -> Rubric:
    """Return the rubric that the options name in a language, or the style's usual one."""
    rubric = rubric_for(options.rubric or DEFAULT_RUBRIC[style], language, style)
    if rubric.has_own_labels:
        raise UsageError(
            f"--rubric {options.rubric}: it has the labels {', '.join(rubric.labels)}, and answers "
            f"are measured here by {', '.join(GRADES)}; give another"
        )
    return rubric


def judging_task(key: str, case: Case, judge: Judge, repeat: int = 1) -> Task:
    """Return the task of judging a recorded answer; ``repeat`` counts from 1, as the judge does."""
    return Task(
        key=key,
        case=case,
        repeat=repeat,
        answerer=RecordedAnswer(),
        judge=judge,
        passes=lambda *_: True,
    )


def judged(
    tasks: Sequence[Task], judges: JudgeFactory, options: argparse.Namespace, stream: TextIO
) -> JudgedTasks:
    """Judge the answers with the options' ledger and limits, showing progress on the stream."""
    settings = CallSettings(
        ledger=options.ledger, replay=options.replay, concurrency=options.concurrency
    )
    session = CallSession(judges.models, judges.specs, settings)
    by_key = {task.key: task for task in tasks}
    progress = progress_on(stream)

    def show(outcomes: Mapping[str, Outcome]) -> None:
        progress.show(progress_line(outcomes, len(by_key)), len(outcomes), len(by_key))

    try:
        return session.judge(by_key, show)
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
    """Return what to type to do the same again; users in addresses are not shown."""
    return mask(shlex.join(["python", "-m", "evaluators", command, *argv]))


def sample_places(count: int, limit: int | None, name: Callable[[int], str]) -> list[int]:
    """Return which of ``count`` answers to take, in order: all, or ``limit`` by a hash of names."""
    places = list(range(count))
    if limit is None or limit >= count:
        return places
    return sorted(sorted(places, key=lambda place: digest(name(place)))[:limit])


def _key(options: argparse.Namespace, names: Mapping[str, str], spec: Spec) -> Key | None:
    return None if options.replay else require_key(spec, names)
