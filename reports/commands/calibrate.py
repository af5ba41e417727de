"""``qagate calibrate``: measure a judge against labelled answers."""

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from cases.download.labelled_sets import LabelledSet, load_labelled_sets
from cases.labelled_file import LabelledAnswer, LabelledFile, Reading, read_labelled
from cases.labels import parse_scale
from evaluators.core import QAError, UsageError
from evaluators.judges.factory import JudgeFactory, Place
from evaluators.output import say
from evaluators.rubric import Rubric
from evaluators.runtime.engine import Task
from evaluators.text import canonical, hint
from reports.commands.judge_command import (
    check_target,
    command_line,
    judge_parser,
    judged,
    judges_of,
    judging_task,
    positive,
    rubric_of,
    sample_places,
    today,
    write_json,
)
from reports.judge.judge_card import Provenance, card_json, card_text, job_key, measured

COMMAND = "calibrate"
SCALE = "1:10"


def main(argv: Sequence[str]) -> int:
    """Measure the judge, print its card, and return 0.

    Raises UsageError for wrong arguments or files, QAError where no answer got a verdict.
    """
    options = _parser().parse_args(argv)
    judges = judges_of(options)
    set_ = None if options.file.exists() else _named(options.file)
    labelled = read_labelled(set_.path() if set_ else options.file, _reading(options, set_))
    rubrics = {code: rubric_of(options, code, labelled.style) for code in labelled.languages}
    items = _sample(labelled, options.limit)
    if options.json:
        check_target(options.json)
    done = judged(_jobs(items, judges, rubrics, options.repeats), judges, options, sys.stderr)
    pass_bar = options.pass_bar or next(one.pass_bar for one in rubrics.values())
    found = measured(labelled, items, done.outcomes, options.repeats, pass_bar)
    if sum(found.errors.values()) == found.judgements:
        texts = Counter(f"{one.kind}: {one.message}" for one in done.outcomes.values())
        text, count = texts.most_common(1)[0]
        raise QAError(f"no answer got a verdict; {count} of {len(done.outcomes)}: {text}")
    about = Provenance(
        judge=judges.name,
        version=judges.version,
        rubrics={code: one.version for code, one in rubrics.items()} if judges.models else {},
        data=labelled.path.name,
        sha256=labelled.sha256,
        style=labelled.style,
        source=labelled.source,
        date=today().isoformat(),
        command=command_line(COMMAND, argv),
        requests=done.requests,
    )
    say(sys.stdout, card_text(about, found).rstrip())
    if options.json:
        write_json(options.json, card_json(about, found))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = judge_parser(
        COMMAND,
        "Measure a judge against labelled answers (CSV or JSONL) and print its card.",
        "no answer got a verdict",
    )
    add = parser.add_argument
    add("file", type=Path, metavar="FILE",
        help="columns question, gold (or answer), predicted_answer, and label or label_1, "
             "label_2 …; optionally aliases, tolerance, language, context; or the name of a set "
             "that people labelled, fetched by qagate download: "
             f"{', '.join(load_labelled_sets())}")  # fmt: skip
    add("--kind", choices=("graded", "rated"), help="default: what the labels look like")
    add("--language", default="en", metavar="xx", help="of rows that name none; default: en")
    add("--repeats", type=positive, default=1, metavar="N", help="judge each answer N times")
    add("--scale", metavar="WORST:BEST", help=f"of the ratings; default: the set's own, or {SCALE}")
    add("--pass-bar", type=int, choices=range(1, 11), metavar="N",
        help="the lowest rating that passes, 1 to 10; default: the rubric's")  # fmt: skip
    add("--two-way", action="store_true", help="tell only CORRECT from the rest")
    add("--label", default="", metavar="COLUMN", help="the column with the label")
    add("--rater", action="append", default=[], metavar="COLUMN", help="a person's labels")
    return parser


def _named(path: Path) -> LabelledSet | None:
    """Return the labelled set of this name, None for what can only be a file.

    Raises UsageError for an unknown name, and for a set that has not been fetched.
    """
    sets = load_labelled_sets()
    found = sets.get(str(path))
    if not found and not path.suffix:
        raise UsageError(f"{path}: no such file, and no set of this name; {hint(str(path), sets)}")
    if found and not found.path().exists():
        raise UsageError(f"{found.path()} is not there; fetch it: qagate download {found.name}")
    return found


def _reading(options: argparse.Namespace, set_: LabelledSet | None) -> Reading:
    own = set_.scale if set_ else ""
    if options.two_way and options.kind == "rated":
        raise UsageError("--two-way: ratings are not grades; leave it out")
    return Reading(
        language=options.language,
        style=options.kind or ("rated" if own else None),
        scale=parse_scale(options.scale or own or SCALE),
        two_way=options.two_way,
        label=options.label,
        raters=tuple(options.rater),
    )


def _sample(labelled: LabelledFile, limit: int | None) -> list[LabelledAnswer]:
    items = labelled.items
    places = sample_places(
        len(items), limit, lambda place: canonical([place, items[place].case.digest])
    )
    return [items[place] for place in places]


def _jobs(
    items: Sequence[LabelledAnswer],
    judges: JudgeFactory,
    rubrics: Mapping[str, Rubric],
    repeats: int,
) -> list[Task]:
    made = {
        (code, repeat): judges.build(
            Place(style=rubric.style, rubric=rubric, repeat=repeat, audited=False, name=code)
        )
        for code, rubric in rubrics.items()
        for repeat in range(1, repeats + 1)
    }
    return [
        judging_task(job_key(item, repeat), item.case, made[item.case.language, repeat], repeat)
        for item in items
        for repeat in range(1, repeats + 1)
    ]
