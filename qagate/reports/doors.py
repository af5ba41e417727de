"""The doors of reports: what is optional or heavy, by the name that a user gives.

The trunk reaches the rooms (``qagate/*/extras/``) through these tables alone. Each names
"module:object", which is loaded when it is asked for: a room costs nothing until it is used.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any


def load(target: str) -> Any:
    """Return the object that "module:object" names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


@dataclass(frozen=True, slots=True)
class Command:
    """One command of ``qagate``."""

    help: str
    """One line for the list of all commands."""
    target: str
    """The function that takes the command's words and returns the exit code."""


COMMANDS: Mapping[str, Command] = {
    "run": Command(
        "pytest with qagate's plugin, and all options of both",
        "qagate.reports.commands.run:main",
    ),
    "rejudge": Command(
        "judge the answers of an earlier run anew, by today's golds",
        "qagate.reports.commands.run:rejudge",
    ),
    "render": Command(
        "write the files of a report again, in any format",
        "qagate.reports.commands.recorded_runs:render",
    ),
    "compare": Command(
        "compare two runs item by item",
        "qagate.reports.commands.recorded_runs:compare",
    ),
    "gate": Command(
        "decide with other gates or another baseline",
        "qagate.reports.commands.recorded_runs:gate",
    ),
    "show": Command(
        "print an item with its prompts and replies",
        "qagate.reports.commands.recorded_runs:show",
    ),
    "merge": Command(
        "put the runs of CI shards together",
        "qagate.reports.extras.merge.command:main",
    ),
    "list": Command(
        "list the runs that are kept",
        "qagate.reports.commands.recorded_runs:list_runs",
    ),
    "promote": Command(
        "keep a run by name",
        "qagate.reports.commands.recorded_runs:promote",
    ),
    "decide": Command(
        "decide over two results of another tool",
        "qagate.reports.extras.decide.command:main",
    ),
    "review": Command(
        "hand answers to people, and take their verdicts back",
        "qagate.reports.extras.sequential.command:main",
    ),
    "calibrate": Command(
        "measure a judge against labelled answers; print its card",
        "qagate.reports.commands.calibrate:main",
    ),
    "attack": Command(
        "try to fool a judge; print how often that worked",
        "qagate.reports.commands.calibrate:attack",
    ),
    "ledger": Command(
        "what is in the ledger and what it cost; export, import, prune",
        "qagate.reports.commands.ledger:main",
    ),
    "build": Command(
        "make a BoolQ-type dataset from articles, with models and people",
        "qagate.reports.extras.builder.command:main",
    ),
    "new": Command(
        "write the files of a data set of your own",
        "qagate.cases.extras.new.command:main",
    ),
    "draw": Command(
        "draw fresh questions from a table by a recipe",
        "qagate.cases.extras.draw.command:main",
    ),
    "check": Command(
        "look for what is wrong with datasets although they can be loaded",
        "qagate.cases.extras.check.command:main",
    ),
    "download": Command(
        "fetch a public benchmark, or answers that people labelled",
        "qagate.cases.extras.download.command:main",
    ),
}
"""The commands of ``qagate``, in the order of its help."""


GATE_RULES: Mapping[str, str] = {
    "audited": "qagate.reports.extras.sequential.sequential:audited_results",
    "sequential": "qagate.reports.extras.sequential.sequential:sequential_results",
}
"""The rules that lie in rooms, by the ``evidence`` of a gate; see verdict/assemble.py."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureOption:
    """An option of a run that takes no value and brings a feature of the plugin."""

    help: str
    target: str
    """The feature: a class that ``qagate.reports.plugin.feature.Feature`` describes."""
    conflicts: Mapping[str, str] = field(default_factory=dict)
    """The options that cannot be given with it, each with why, and what to do."""


FEATURES: Mapping[str, FeatureOption] = {
    "until-decided": FeatureOption(
        help="ask in an order that the data fix; stop a slice once all its gates, "
        "which need `evidence: sequential`, are decided",
        target="qagate.reports.extras.sequential.early_stopping:UntilDecided",
        conflicts={
            "shard": "a shard decides nothing; leave out this or --shard",
            "batch": "it asks a few items at a time, and --batch all at once; "
            "leave one out",
        },
    ),
    "dry-run": FeatureOption(
        help="print items, calls, tokens, cost and how gates may end; call nothing",
        target="qagate.reports.extras.odds.dry_run:DryRun",
    ),
}
"""The features of the plugin, by the name of their option."""

RUN_ELSEWHERE: Mapping[str, str] = {
    "--on": "qagate.reports.extras.ray.on_ray:main",
}
"""Options of ``qagate run`` by which it is not pytest in this process that runs.

Each names the function that takes all words of the run and returns the exit code.
"""

FOREIGN_RESULTS: Mapping[str, str] = {
    "inspect": "qagate.reports.extras.decide.forms:read_inspect",
    "lm_eval": "qagate.reports.extras.decide.forms:read_harness",
    "promptfoo": "qagate.reports.extras.decide.forms:read_promptfoo",
    "deepeval": "qagate.reports.extras.decide.forms:read_deepeval",
    "table": "qagate.reports.extras.decide.forms:read_rows",
}
"""What reads the results of another tool, by the word for ``qagate decide --from``.

A form is found by its content, in this order: a table comes last, as any rows are one.
"""
