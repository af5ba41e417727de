"""``qagate attack``: try to fool a judge before it is trusted."""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cases.attack_pack import Probe, load_bundled, load_pack
from evaluators.core import CORRECT, Judge, Outcome, QAError, UsageError, Verdict
from evaluators.judges.factory import JudgeFactory, Place
from evaluators.output import say
from evaluators.rubric import Rubric
from evaluators.runtime.engine import Task
from evaluators.secrets import mask, one_line
from evaluators.statistics.intervals import Estimate
from reports.commands.attacked_metric import add_metric_options, metric_judge
from reports.commands.judge_command import (
    check_target,
    judge_parser,
    judged,
    judges_of,
    judging_task,
    rubric_of,
    sample_places,
    write_json,
)
from reports.judge.judge_agreement import share
from reports.judge.judge_card import figure_json, figure_text, padded_table

REASON = 160  # characters of a judge's reason that are shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What an attack wants of the judge: CORRECT, or a rating of ``pass_bar`` and more.

    ``min_score`` is that of a metric, whose grade says whether it was reached.
    """

    pass_bar: int | None = None
    min_score: float | None = None

    @property
    def words(self) -> str:
        """What happened to an answer that got it."""
        if self.min_score is not None:
            return f"scored {self.min_score:g} or more"
        return "graded CORRECT" if self.pass_bar is None else f"rated {self.pass_bar} or more"

    def reached(self, verdict: Verdict) -> bool:
        """Return whether the verdict is what the attack wants."""
        if self.pass_bar is None:
            return verdict.grade == CORRECT
        return verdict.rating is not None and verdict.rating >= self.pass_bar


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One probe, what it aimed at, and how its judging ended."""

    probe: Probe
    outcome: Outcome
    aim: Aim

    @property
    def failed(self) -> bool:
        """Whether no verdict came."""
        return self.outcome.verdict is None or not self.outcome.verdict.label

    @property
    def passed(self) -> bool:
        """Whether the judge let the answer pass."""
        return self.outcome.verdict is not None and self.aim.reached(self.outcome.verdict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacked:
    """The figures. ``success`` is the share of attacks that passed, of those with a verdict.

    ``controls_lost`` is the share of controls that were not; ``errors`` counts, by kind, what got
    no verdict. ``fooled`` and ``lost`` name the probes.
    """

    success: Estimate
    by_kind: Mapping[str, Estimate]
    by_language: Mapping[str, Estimate]
    controls_lost: Estimate
    errors: Mapping[str, int]
    fooled: tuple[Tried, ...]
    lost: tuple[Tried, ...]


def attacked(tried: Sequence[Tried]) -> Attacked:
    """Return the figures over all probes."""
    known = [one for one in tried if not one.failed]
    attacks = [one for one in known if not one.probe.control]
    controls = [one for one in known if one.probe.control]
    return Attacked(
        success=_share(attacks),
        by_kind=_grouped(attacks, lambda one: one.probe.kind),
        by_language=_grouped(attacks, lambda one: one.probe.case.language),
        controls_lost=_share(controls, passed=False),
        errors=Counter(one.outcome.kind or one.outcome.state for one in tried if one.failed),
        fooled=tuple(one for one in attacks if one.passed),
        lost=tuple(one for one in controls if not one.passed),
    )


def result_text(judge: str, found: Attacked, aim: Aim) -> str:
    """Return the figures as Markdown that reads well as plain text."""
    errors = ", ".join(f"{kind} {count}" for kind, count in sorted(found.errors.items()))
    rows = [
        (f"attacks {aim.words}", figure_text(found.success)),
        (f"controls not {aim.words}", figure_text(found.controls_lost)),
        (
            "errors, counted apart",
            f"{sum(found.errors.values())}{f' ({errors})' if errors else ''}",
        ),
    ]
    lines = [
        f"# Attacks on {one_line(mask(judge)).replace('`', '')}",
        "",
        *padded_table(("", "share [95 % interval]"), rows),
        *_table("kind of attack", aim.words, found.by_kind),
        *_table("language", aim.words, found.by_language),
        *_named(f"Attacks that were {aim.words}", found.fooled),
        *_named(f"Controls that were not {aim.words}", found.lost),
    ]
    return "\n".join(lines)


def result_json(judge: str, found: Attacked) -> dict[str, object]:
    """Return the figures as a value for JSON."""
    return {
        "judge": judge,
        "success": figure_json(found.success),
        "by_kind": {name: figure_json(figure) for name, figure in found.by_kind.items()},
        "by_language": {name: figure_json(figure) for name, figure in found.by_language.items()},
        "controls_lost": figure_json(found.controls_lost),
        "errors": dict(found.errors),
        "fooled": [one.probe.case.id for one in found.fooled],
        "lost": [one.probe.case.id for one in found.lost],
    }


def _share(tried: Sequence[Tried], *, passed: bool = True) -> Estimate:
    hits = [one.passed == passed for one in tried]
    return share(hits, [one.probe.case.id for one in tried])


def _grouped(attacks: Sequence[Tried], name: Callable[[Tried], str]) -> dict[str, Estimate]:
    names = dict.fromkeys(map(name, attacks))
    return {each: _share([one for one in attacks if name(one) == each]) for each in names}


def _table(title: str, column: str, figures: Mapping[str, Estimate]) -> list[str]:
    rows = [(name, figure_text(figure)) for name, figure in figures.items()]
    return ["", *padded_table((title, column), rows)]


def _named(title: str, tried: Sequence[Tried]) -> list[str]:
    if not tried:
        return []
    return ["", f"{title}:", *(f"- {one.probe.case.id}: {_reason(one)}" for one in tried)]


def _reason(one: Tried) -> str:
    verdict = one.outcome.verdict
    said = f"{verdict.label}, {verdict.reason}" if verdict else ""
    return one_line(mask(said), REASON)


COMMAND = "attack"
DONE, EXCEEDED = 0, 1


def main(argv: Sequence[str]) -> int:
    """Attack the judge, print how often it was fooled, and return the exit code.

    1 where ``--max-success`` is exceeded, otherwise 0. Raises UsageError for wrong arguments or
    files, QAError where no attack got a verdict.
    """
    options = _parser().parse_args(argv)
    judges = judges_of(options)
    probes = _probes(options)
    if options.json:
        check_target(options.json)
    languages = dict.fromkeys(probe.case.language for probe in probes)
    if options.metric:
        aim, name = Aim(min_score=options.min_score), f"{options.metric} by {judges.name}"
        metric = metric_judge(options, judges, probes)
        tasks = [judging_task(one.case.id, one.case, metric) for one in probes]
    else:
        rubrics = {language: rubric_of(options, language, options.kind) for language in languages}
        aim, name = _aim(options, rubrics), judges.name
        tasks = _jobs(probes, judges, rubrics)
    done = judged(tasks, judges, options, sys.stderr)
    ended = done.outcomes
    found = attacked([Tried(probe=one, outcome=ended[one.case.id], aim=aim) for one in probes])
    if not found.success.n:
        why = next(iter(done.outcomes.values())).message
        raise QAError(f"no attack got a verdict; the first error: {why}")
    say(sys.stdout, result_text(name, found, aim))
    if options.json:
        write_json(options.json, result_json(name, found))
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
    add("--kind", choices=("graded", "rated"), default="graded",
        help="grades, or ratings of regulatory answers; default: %(default)s")  # fmt: skip
    add("--pass-bar", type=int, choices=range(1, 11), metavar="N",
        help="an attack has worked from this rating on; default: the rubric's")  # fmt: skip
    add("--languages", default="", metavar="en,bg", help="default: all that have attacks")
    add("--pack", type=Path, action="append", default=[], metavar="FILE",
        help="attacks of your own in place of the bundled ones")  # fmt: skip
    add_metric_options(parser)
    add("--max-success", type=_rate, metavar="RATE", help="exit 1 above this share, 0 to 1")
    return parser


def _rate(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"want a number from 0 to 1, got {text[:40]!r}")
    return share


def _probes(options: argparse.Namespace) -> list[Probe]:
    if options.pack:
        probes = [probe for path in options.pack for probe in load_pack(path)]
    else:
        names = options.languages.split(",") if options.languages else ()
        probes = load_bundled(dict.fromkeys(name.strip() for name in names), options.kind)
    places = sample_places(len(probes), options.limit, lambda place: probes[place].case.id)
    ids = [probes[place].case.id for place in places]
    if len(set(ids)) < len(ids):
        raise UsageError("--pack: an id stands in two files; rename one")
    return [probes[place] for place in places]


def _aim(options: argparse.Namespace, rubrics: Mapping[str, Rubric]) -> Aim:
    bars = [one.pass_bar for one in rubrics.values() if one.style == "rated"]
    if options.pass_bar and not bars:
        raise UsageError("--pass-bar: grades have none; say --kind rated, or leave it out")
    return Aim(pass_bar=options.pass_bar or min(bars, default=None))


def _jobs(
    probes: Sequence[Probe], judges: JudgeFactory, rubrics: Mapping[str, Rubric]
) -> list[Task]:
    made: dict[str, Judge] = {}
    for language, rubric in rubrics.items():
        place = Place(style=rubric.style, rubric=rubric, audited=False, name=language)
        made[language] = judges.build(place)
    return [judging_task(probe.case.id, probe.case, made[probe.case.language]) for probe in probes]
