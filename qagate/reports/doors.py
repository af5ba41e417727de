"""The doors of reports: optional and heavy parts, by the name that a user gives.

A door is a table of name → "module:object", a Protocol or class that the object meets, and a
function that loads it. The trunk knows the rooms in ``extras/`` by these tables alone, so a
run loads only what it names. To add a part, write an object that meets the Protocol and add
a row.

Types of every layer are named here, and every layer asks here, so this module imports them
for the type checker alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from qagate.evaluators.doors import load_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from qagate.reports.compare.sides import Compared
    from qagate.reports.plugin.feature import Feature
    from qagate.reports.run.report import GateResult
    from qagate.reports.verdict.assemble import CountedRun


# Command: what ``qagate NAME`` does.


@dataclass(frozen=True, slots=True)
class Command:
    """One command of ``qagate``."""

    help: str
    """One line for the list of all commands."""
    place: str


class CommandFunction(Protocol):
    """Does what a command says."""

    def __call__(self, words: Sequence[str], /) -> int:
        """Return the exit code, given the words after the command's name.

        Raises QAError, OSError or KeyboardInterrupt, of which qagate/command.py makes one
        line and an exit code.
        """


COMMANDS: Mapping[str, Command] = {
    "run": Command(
        "pytest with qagate's plugin, and all options of both",
        "qagate.reports.commands.run:main",
    ),
    "demo": Command(
        "see a first verdict in a minute, offline",
        "qagate.reports.extras.demo.command:main",
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
        "put runs side by side; two of them item by item",
        "qagate.reports.extras.side_by_side.command:main",
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
    "label": Command(
        "label answers of a run, so that your labels measure its judge",
        "qagate.reports.extras.label.command:main",
    ),
    "calibrate": Command(
        "measure a judge against labelled answers; print its card",
        "qagate.reports.extras.calibrate.command:main",
    ),
    "attack": Command(
        "try to fool a judge; print how often that worked",
        "qagate.reports.extras.calibrate.command:attack",
    ),
    "probe": Command(
        "find out what a model's server takes; print its entry for a models file",
        "qagate.reports.extras.probe.command:main",
    ),
    "ledger": Command(
        "what is in the ledger and what it cost; export, import, prune",
        "qagate.reports.commands.ledger:main",
    ),
    "build": Command(
        "make a BoolQ-type dataset from articles, with models and people",
        "qagate.reports.extras.builder.command:main",
    ),
    "start": Command(
        "from a spreadsheet to a gate: asks, and writes all its files",
        "qagate.cases.extras.new.start_command:main",
    ),
    "new": Command(
        "write the files of a data set of your own",
        "qagate.cases.extras.new.command:main",
    ),
    "schema": Command(
        "print the JSON Schema of dataset.yaml, gates or models files",
        "qagate.cases.extras.new.schema_command:main",
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


def load_command(name: str) -> CommandFunction:
    """Return what a command does."""
    function: CommandFunction = load_object(COMMANDS[name].place)
    return function


# Run elsewhere: ``qagate run`` in other processes than this one.

RUN_ELSEWHERE: Mapping[str, str] = {
    "--on": "qagate.reports.extras.ray.on_ray:main",
}
"""By the option of ``qagate run`` that asks for it; it is given all words of the run."""


def load_run_elsewhere(option: str) -> CommandFunction:
    """Return what makes a run with this option."""
    function: CommandFunction = load_object(RUN_ELSEWHERE[option])
    return function


# Feature of the plugin: an option of a run that takes no value, with hooks of its own.


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureOption:
    """An option of a run that takes no value and brings a feature of the plugin."""

    help: str
    place: str
    conflicts: Mapping[str, str] = field(default_factory=dict)
    """The options that cannot be given with it, each with why, and what to do."""


FEATURES: Mapping[str, FeatureOption] = {
    "until-decided": FeatureOption(
        help="ask in an order that the data fix; stop a slice once all its gates, "
        "which need `evidence: sequential`, are decided",
        place="qagate.reports.extras.sequential.early_stopping:UntilDecided",
        conflicts={
            "shard": "a shard decides nothing; leave out this or --shard",
            "batch": "it asks a few items at a time, and --batch all at once; "
            "leave one out",
        },
    ),
    "dry-run": FeatureOption(
        help="print items, calls, tokens, cost and how gates may end; call nothing",
        place="qagate.reports.extras.odds.dry_run:DryRun",
    ),
}
"""The features of the plugin, by the name of their option."""


def load_feature(name: str) -> Feature:
    """Return a new feature."""
    feature: Feature = load_object(FEATURES[name].place)()
    return feature


# Gate rule: how gates with one kind of evidence are decided.

GATE_RULES: Mapping[str, str] = {
    "audited": "qagate.reports.extras.sequential.sequential:audited_results",
    "sequential": "qagate.reports.extras.sequential.sequential:sequential_results",
}
"""By the ``evidence`` of a gate; the kinds that are not here are decided by the trunk."""


class GateRule(Protocol):
    """Decides the gates with one kind of evidence."""

    def __call__(
        self, run: CountedRun, compared: Sequence[Compared]
    ) -> Iterator[GateResult]:
        """Yield how these gates end, against each earlier run that the run is compared with."""


def load_gate_rule(evidence: str) -> GateRule:
    """Return the rule of gates with this evidence."""
    rule: GateRule = load_object(GATE_RULES[evidence])
    return rule
