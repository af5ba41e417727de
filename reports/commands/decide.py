"""``qagate decide``: the verdict over two results of another tool."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cases.config import load_gates
from cases.labels import Scale
from evaluators.output import say
from reports.commands.recorded_runs import OUT, Parser
from reports.imports.foreign import MARGIN, Choice, ImportedRun, slug, tasks_of
from reports.imports.forms import FORMS, ROLES, load
from reports.render import console
from reports.render.writer import Files, write, write_files
from reports.run.baseline import load_baseline
from reports.run.clean import line
from reports.run.report import safe_report
from reports.verdict.assemble import account

OLD = "-baseline"  # what the name of the folder ends with that holds the baseline as a run of ours

_TEXTS = {
    "metric": ("NAME", "the score that decides (default: the tool's own first)"),
    "slice": ("FIELD", "a metadata field or column; each of its values is a slice"),
    "cluster": ("FIELD", "a metadata field or column that dependent samples share"),
    "new": ("MODEL", "the provider or model of the new run, where a file has several"),
    "old": ("MODEL", "the provider or model of the old run, where a file has several"),
}
"""The options that take a word: what it stands for, and its help."""


def main(argv: Sequence[str]) -> int:
    """Print the gates, write the report and return the exit code."""
    options = _parser().parse_args(argv)
    told: Any = {name: getattr(options, name) for name in ("metric", "slice", "cluster", "scale")}
    told["columns"] = dict(options.column)
    choices = [Choice(provider=one, **told) for one in (options.new, options.old)]
    paths = options.result, options.baseline
    runs = [load(path, options.form, one) for path, one in zip(paths, choices, strict=True)]
    tasks = tasks_of(runs, choices[0])
    shared = {name: task for name, task in tasks.items() if name in runs[1].scorers}
    each = zip(paths, runs, (tasks, shared), choices, strict=True)
    new, old = (ImportedRun(path=p, run=r, tasks=t, choice=c) for p, r, t, c in each)
    gates = None
    if options.gates is not None:
        scorers = (one for some in new.run.scorers.values() for one in some)
        gates = load_gates(options.gates, [slug(one.name) for one in scorers])
    before, inputs = old.inputs(None), new.inputs(gates, options.labels)
    home = options.to.with_name(options.to.name + OLD)
    write_files(Files(safe_report(account(before, old.facts(before), None)), ["json"]), home)
    report = safe_report(account(inputs, new.facts(inputs), load_baseline(home)))
    page = next(path for path in write(report, options.to) if path.suffix == ".html")
    said = f"no --gates: the main score may drop by {MARGIN:g} in each slice, and in all together"
    default = [] if options.gates else [said]
    ends = f"report: {page}", *console.next_step(report, options.to), report.decision.line
    say(sys.stdout, *map(line, (*default, *console.gates(report), *ends)))
    return report.decision.code


def _parser() -> Parser:
    parser = Parser(
        "decide",
        "Decide over two results of another tool: inspect_ai logs, samples of "
        "lm-evaluation-harness, results.json of promptfoo, test runs of deepeval, or any CSV or "
        "JSONL with an id and a score. No model is asked.",
        "0 every gate passed, 1 a gate failed, 3 the report could not be written, 4 wrong "
        "arguments or no readable result, 6 INCONCLUSIVE",
    )
    text = "the new result: a file, or the folder that the tool wrote"
    parser.add_argument("result", metavar="NEW", type=Path, help=text)
    text = "the result to compare with, of the same tool and the same items"
    parser.add_argument("--baseline", metavar="OLD", type=Path, required=True, help=text)
    text = f"what the results are, of {', '.join(FORMS)} (default: found by their content)"
    parser.add_argument("--from", dest="form", choices=list(FORMS), metavar="FORM", help=text)
    for name, (metavar, text) in _TEXTS.items():
        parser.add_argument(f"--{name}", metavar=metavar, default="", help=text)
    text = f"thresholds (default: the main score may drop by {MARGIN:g}, in each slice and in all)"
    parser.add_argument("--gates", metavar="FILE", type=Path, help=text)
    text = "a CSV with id and verdict: what a person says of answers of NEW; measures the scorer"
    parser.add_argument("--labels", metavar="FILE", type=Path, help=text)
    text = "the scale of a score that is not from 0 to 1, such as 1:5"
    parser.add_argument("--scale", metavar="LOWEST:HIGHEST", type=_scale, help=text)
    roles = "; ".join(f"{role}: {what}" for role, what in ROLES.items())
    text = f"a table's column for a role; may be repeated. {roles}"
    columns: dict[str, Any] = {"type": _column, "action": "append", "default": []}
    parser.add_argument("--column", metavar="ROLE=NAME", **columns, help=text)
    parser.add_to(f"a folder for the report; the baseline's goes to DIR{OLD} (default: {OUT})")
    parser.set_defaults(to=OUT, form="")
    return parser


def _scale(text: str) -> Scale:
    try:
        return Scale.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _column(text: str) -> tuple[str, str]:
    role, _, name = text.partition("=")
    if role not in ROLES or not name:
        what = f"want ROLE=NAME, ROLE one of {', '.join(ROLES)}; got {text!r}"
        raise argparse.ArgumentTypeError(what)
    return role, name
