"""``python -m evaluators calibrate``: measure a judge against labelled answers."""

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from evaluators.calibration.card import Provenance, card_json, card_text
from evaluators.calibration.files import check_target, write_json
from evaluators.calibration.judges import DEFAULT_RUBRIC, JudgeFactory, rubric_for
from evaluators.calibration.labelled import Item, Labelled, Reading, read_labelled
from evaluators.calibration.measuring import job_key, measured
from evaluators.calibration.options import (
    bench_of,
    chosen,
    command_line,
    judge_parser,
    judged,
    positive,
    today,
    version_of,
)
from evaluators.calibration.scales import parse_scale
from evaluators.calibration.session import Job, Judged
from evaluators.canonical import canonical
from evaluators.core import Outcome, QAError, UsageError
from evaluators.output import say
from evaluators.rubric import Rubric

COMMAND = "calibrate"


def main(argv: Sequence[str]) -> int:
    """Measure the judge, print its card, and return 0.

    Raises UsageError for wrong arguments or files, QAError where no answer got a verdict.
    """
    options = _parser().parse_args(argv)
    bench = bench_of(options)
    labelled = read_labelled(options.file, _reading(options))
    rubrics = _rubrics(labelled, options.rubric)
    items = _chosen(labelled, options.limit)
    if options.json:
        check_target(options.json)
    jobs = _jobs(labelled, items, bench, (rubrics, options.repeats))
    done = judged(jobs, bench, options, sys.stderr)
    found = measured(labelled, items, done.outcomes, options.repeats)
    if sum(found.errors.values()) == found.judgements:
        raise _nothing(done.outcomes)
    about = _provenance(labelled, bench, (rubrics, done), argv)
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
             "label_2 …; optionally language, context")  # fmt: skip
    add("--kind", choices=("graded", "rated"), help="default: what the labels look like")
    add("--language", default="en", metavar="xx", help="of rows that name none; default: en")
    add("--repeats", type=positive, default=1, metavar="N", help="judge each answer N times")
    add("--scale", default="1:10", metavar="WORST:BEST", help="of the ratings; default: 1:10")
    add("--two-way", action="store_true", help="tell only CORRECT from the rest")
    add("--label", default="", metavar="COLUMN", help="the column with the label")
    add("--rater", action="append", default=[], metavar="COLUMN", help="a person's labels")
    return parser


def _reading(options: argparse.Namespace) -> Reading:
    if options.two_way and options.kind == "rated":
        msg = "--two-way: ratings are not grades; leave it out"
        raise UsageError(msg)
    return Reading(
        language=options.language,
        style=options.kind,
        scale=parse_scale(options.scale),
        two_way=options.two_way,
        label=options.label,
        raters=tuple(options.rater),
    )


def _rubrics(labelled: Labelled, name: str | None) -> dict[str, Rubric]:
    wanted = name or DEFAULT_RUBRIC[labelled.style]
    return {code: rubric_for(wanted, code, labelled.style) for code in labelled.languages}


def _chosen(labelled: Labelled, limit: int | None) -> list[Item]:
    items = labelled.items
    places = chosen(len(items), limit, lambda place: canonical([place, items[place].case.digest]))
    return [items[place] for place in places]


def _jobs(
    labelled: Labelled,
    items: Sequence[Item],
    bench: JudgeFactory,
    means: tuple[Mapping[str, Rubric], int],
) -> list[Job]:
    rubrics, repeats = means
    judges = {code: bench.make(labelled.style, rubric) for code, rubric in rubrics.items()}
    return [
        Job(
            key=job_key(item, repeat),
            case=item.case,
            judge=judges[item.case.language],
            repeat=repeat,
        )
        for item in items
        for repeat in range(1, repeats + 1)
    ]


def _nothing(outcomes: Mapping[str, Outcome]) -> QAError:
    texts = Counter(f"{one.kind}: {one.message}" for one in outcomes.values())
    text, count = texts.most_common(1)[0]
    return QAError(f"no answer got a verdict; {count} of {len(outcomes)}: {text}")


def _provenance(
    labelled: Labelled,
    bench: JudgeFactory,
    means: tuple[Mapping[str, Rubric], Judged],
    argv: Sequence[str],
) -> Provenance:
    rubrics, done = means
    return Provenance(
        judge=bench.name,
        version=version_of(bench),
        rubrics={code: one.version for code, one in rubrics.items()} if bench.models else {},
        data=labelled.path.name,
        sha256=labelled.sha256,
        style=labelled.style,
        source=labelled.source,
        date=today().isoformat(),
        command=command_line(COMMAND, argv),
        requests=done.requests,
    )
