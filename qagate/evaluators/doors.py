"""Doors: optional and heavy parts, found by name and loaded when they are named.

A door is a table of name → "module:object", a Protocol that the object meets, and a function
that loads it. The trunk knows the rooms in ``extras/`` by these tables alone. So a run loads
only what it names, and works without the rooms that it does not name. To add a part, write
an object that meets the Protocol and add a row.

Types of every layer are named here, and every layer asks here, so this module imports them
for the type checker alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from qagate.evaluators.core import Case, Judge, Model, Reply, Request
    from qagate.evaluators.ledger import Ledger
    from qagate.evaluators.ledger.place import PostgresUrl
    from qagate.evaluators.ledger.store import Store
    from qagate.evaluators.metric_specs import CheckSpec, MetricSpec
    from qagate.evaluators.models.adapter import ProviderAdapter
    from qagate.evaluators.models.targets import FunctionTarget, HttpTarget
    from qagate.evaluators.rubric import Style
    from qagate.evaluators.runtime.caller import Caller, CallRoute
    from qagate.evaluators.runtime.task import MetricRunner


def load_object(place: str) -> Any:
    """Return the object of "module:object". Raises ImportError for a missing library.

    The doors of ``cases`` and ``reports`` load by it too.
    """
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


# Provider: who answers calls. The providers with an API are a table of adapters in
# models/spec.py; here are the user's own targets.

PROVIDERS = {
    "http": "qagate.evaluators.extras.own_targets.service:adapter_of",
    "python": "qagate.evaluators.extras.own_targets.function:FunctionModel",
}


class ServiceAdapterMaker(Protocol):
    """Makes the adapter of a service with an API of its own."""

    def __call__(self, target: HttpTarget, name: str) -> ProviderAdapter:
        """Return how the service is called; its replies carry the name."""


def load_service_adapter() -> ServiceAdapterMaker:
    """Return what makes the adapter of a ``provider: http``."""
    maker: ServiceAdapterMaker = load_object(PROVIDERS["http"])
    return maker


class ConnectedModel(Protocol):
    """A model that has loaded what its calls need."""

    async def complete(self, request: Request) -> Reply:
        """One attempt, without retries. Raises only CallErrors."""

    async def close(self) -> None:
        """Close the connections of the running loop."""


class FunctionModelMaker(Protocol):
    """Makes a model of a user's function."""

    def __call__(
        self, spec: str, target: FunctionTarget, deadline: float
    ) -> ConnectedModel:
        """Return the model; a call may take ``deadline`` seconds."""


def load_function_model() -> FunctionModelMaker:
    """Return what makes the model of a ``python:MODULE:FUNCTION``."""
    maker: FunctionModelMaker = load_object(PROVIDERS["python"])
    return maker


# Call route: how replies come, other than by direct calls.

CALL_ROUTES = {
    "batches": "qagate.evaluators.extras.batches.batches:find_batches",
}


class CallRouteFinder(Protocol):
    """Finds out whether a run has a route, and opens it."""

    def __call__(
        self, caller: Caller, *, begins: bool, wait: float | None
    ) -> CallRoute | None:
        """Return the route of a run; None if it begins none and no earlier run left one open.

        ``wait`` is how many seconds the run waits for replies; None is to the end.
        """


def load_call_route(name: str) -> CallRouteFinder:
    """Return what finds the route with this name."""
    finder: CallRouteFinder = load_object(CALL_ROUTES[name])
    return finder


# Runs that a route has calls of, which go on however long that takes.

OPEN_RUNS = {
    "batches": "qagate.evaluators.extras.batches.waves:open_runs",
}


class OpenRuns(Protocol):
    """Finds the runs of which somebody still has calls."""

    def __call__(self, ledger: Ledger) -> frozenset[str]:
        """Return their ids."""


def load_open_runs(name: str) -> OpenRuns:
    """Return what finds the runs that the route with this name has calls of."""
    open_runs: OpenRuns = load_object(OPEN_RUNS[name])
    return open_runs


# Subcommand of ``qagate ledger`` for what a call route keeps there.

LEDGER_COMMANDS = {
    "batches": "qagate.evaluators.extras.batches.ledger_command:run",
}


class LedgerCommand(Protocol):
    """Runs a subcommand."""

    def __call__(self, options: argparse.Namespace) -> int:
        """Return the exit code. Raises UsageError."""


def load_ledger_command(name: str) -> LedgerCommand:
    """Return the subcommand with this name."""
    command: LedgerCommand = load_object(LEDGER_COMMANDS[name])
    return command


# Judge: rules that ask no model, and judges made of others.

JUDGES = {
    "lexical": "qagate.evaluators.extras.lexical.judge:lexical_judge",
    "panel": "qagate.evaluators.extras.panel.panel:PanelJudge",
    "cascade": "qagate.evaluators.extras.panel.cascade:CascadeJudge",
    "checks": "qagate.evaluators.extras.checks.checked_judge:CheckedJudge",
}


class LexicalJudgeMaker(Protocol):
    """Makes the judge that compares words."""

    def __call__(self, style: Style) -> Judge:
        """Return the judge that grades, or the one that rates."""


def load_lexical_judge() -> LexicalJudgeMaker:
    """Return what makes the judge ``lexical``."""
    maker: LexicalJudgeMaker = load_object(JUDGES["lexical"])
    return maker


class PanelMaker(Protocol):
    """Makes a judge of several that vote."""

    def __call__(self, *, judges: tuple[Judge, ...]) -> Judge:
        """Return the panel."""


def load_panel() -> PanelMaker:
    """Return what makes a panel."""
    maker: PanelMaker = load_object(JUDGES["panel"])
    return maker


class CascadeMaker(Protocol):
    """Makes a judge that asks a model only where rules are not sure."""

    def __call__(self, *, rules: Judge, model: Judge, rules_settle: bool) -> Judge:
        """Return the cascade; its model judges all where the rules settle nothing."""


def load_cascade() -> CascadeMaker:
    """Return what makes a cascade."""
    maker: CascadeMaker = load_object(JUDGES["cascade"])
    return maker


class CheckedJudgeMaker(Protocol):
    """Makes a judge that runs a data set's checks too."""

    def __call__(
        self, *, checks: Sequence[CheckSpec], behind: Judge | None = None
    ) -> Judge:
        """Return the judge; without one behind it, the checks give the verdict."""


def load_checked_judge() -> CheckedJudgeMaker:
    """Return what makes a judge with checks."""
    maker: CheckedJudgeMaker = load_object(JUDGES["checks"])
    return maker


# Metric: what measures an answer in addition to its verdict.

METRICS = {
    "deepeval": "qagate.evaluators.extras.deepeval.metric:metric_runners_of",
    "checks": "qagate.evaluators.extras.checks.answer_checks:load_check",
}


class MetricRunnersMaker(Protocol):
    """Makes what takes extra metrics."""

    def __call__(
        self, specs: Sequence[MetricSpec], model: Model
    ) -> tuple[MetricRunner, ...]:
        """Return what takes each of these metrics by this model."""


def load_metric_runners() -> MetricRunnersMaker:
    """Return what runs deepeval's metrics."""
    maker: MetricRunnersMaker = load_object(METRICS["deepeval"])
    return maker


class CheckLoader(Protocol):
    """Loads checks by code."""

    def __call__(self, spec: CheckSpec) -> Callable[[Case, str], object]:
        """Return the check's function. Raises UsageError if there is none or it cannot be made."""


def load_check_loader() -> CheckLoader:
    """Return what loads a check."""
    loader: CheckLoader = load_object(METRICS["checks"])
    return loader


# Ledger store: where replies are kept, by the scheme of its address. A file needs no door.

LEDGER_STORES = {
    "postgresql": "qagate.evaluators.extras.postgres.postgres:PostgresLedgers",
}


class LedgerStores(Protocol):
    """Opens the ledgers of one kind of database."""

    @staticmethod
    def open(url: PostgresUrl, *, read_only: bool) -> Store:
        """Return the open ledger. Raises UsageError if it cannot be reached or used."""

    @staticmethod
    def exists(url: PostgresUrl) -> bool:
        """Return whether there is a ledger. Raises UsageError if the database does not answer."""


def load_ledger_stores(scheme: str) -> LedgerStores:
    """Return what opens the ledgers at addresses with this scheme."""
    stores: LedgerStores = load_object(LEDGER_STORES[scheme])
    return stores
