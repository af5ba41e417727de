"""``python -m evaluators attack``: try to fool a judge before it is trusted."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from evaluators.attacks.pack import LANGUAGES, Probe, load_bundled, load_pack
from evaluators.attacks.result import Attacked, Tried, attacked, result_json, result_text
from evaluators.calibration.files import check_target, write_json
from evaluators.calibration.judges import DEFAULT_RUBRIC, JudgeFactory, rubric_for
from evaluators.calibration.options import bench_of, chosen, judge_parser, judged
from evaluators.calibration.session import Job
from evaluators.core import Judge, QAError, UsageError
from evaluators.output import say

COMMAND = "attack"
DONE, EXCEEDED = 0, 1


def main(argv: Sequence[str]) -> int:
    """Attack the judge, print how often it was fooled, and return the exit code.

    1 where ``--max-success`` is exceeded, otherwise 0. Raises UsageError for wrong arguments or
    files, QAError where no attack got a verdict.
    """
    options = _parser().parse_args(argv)
    bench = bench_of(options)
    probes = _probes(options)
    if options.json:
        check_target(options.json)
    done = judged(_jobs(probes, bench, options.rubric), bench, options, sys.stderr)
    found = attacked([Tried(probe=one, outcome=done.outcomes[one.case.id]) for one in probes])
    if not found.success.n:
        why = next(iter(done.outcomes.values())).message
        msg = f"no attack got a verdict; the first error: {why}"
        raise QAError(msg)
    say(sys.stdout, result_text(bench.name, found))
    if options.json:
        write_json(options.json, result_json(bench.name, found))
    return _code(found, options.max_success)


def _code(found: Attacked, bar: float | None) -> int:
    if bar is None or (found.success.value or 0.0) <= bar:
        return DONE
    say(sys.stderr, f"--max-success {bar:g} exceeded: {found.success.value:.3f}")
    return EXCEEDED


def _parser() -> argparse.ArgumentParser:
    parser = judge_parser(
        COMMAND,
        "Put attacks, and odd right answers as controls, to a judge; print how often they worked.",
        "no attack got a verdict, or --max-success exceeded",
    )
    add = parser.add_argument
    add("--languages", default=",".join(LANGUAGES), metavar="en,bg", help="default: %(default)s")
    add("--pack", type=Path, action="append", default=[], metavar="FILE",
        help="attacks of your own in place of the bundled ones")  # fmt: skip
    add("--max-success", type=_share, metavar="RATE", help="exit 1 above this share, 0 to 1")
    return parser


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        msg = f"want a number from 0 to 1, got {text[:40]!r}"
        raise argparse.ArgumentTypeError(msg)
    return share


def _probes(options: argparse.Namespace) -> list[Probe]:
    if options.pack:
        probes = [probe for path in options.pack for probe in load_pack(path)]
    else:
        names = options.languages.split(",")
        probes = load_bundled(dict.fromkeys(name.strip() for name in names))
    places = chosen(len(probes), options.limit, lambda place: probes[place].case.id)
    ids = [probes[place].case.id for place in places]
    if len(set(ids)) < len(ids):
        msg = "--pack: an id stands in two files; rename one"
        raise UsageError(msg)
    return [probes[place] for place in places]


def _jobs(probes: Sequence[Probe], bench: JudgeFactory, name: str | None) -> list[Job]:
    wanted = name or DEFAULT_RUBRIC["graded"]
    languages = dict.fromkeys(probe.case.language for probe in probes)
    judges: Mapping[str, Judge] = {
        language: bench.make("graded", rubric_for(wanted, language, "graded"))
        for language in languages
    }
    return [
        Job(key=probe.case.id, case=probe.case, judge=judges[probe.case.language])
        for probe in probes
    ]
