"""Doors: each object behind one meets its Protocol, as mypy sees here, and can be loaded."""

from collections.abc import Callable, Mapping
from functools import partial

import pytest

from qagate.evaluators import doors
from qagate.evaluators.extras.batches.batches import find_batches
from qagate.evaluators.extras.batches.ledger_command import run as run_batches_command
from qagate.evaluators.extras.checks.answer_checks import load_check
from qagate.evaluators.extras.checks.checked_judge import CheckedJudge
from qagate.evaluators.extras.deepeval.metric import metric_runners_of
from qagate.evaluators.extras.lexical.judge import lexical_judge
from qagate.evaluators.extras.own_targets.function import FunctionModel
from qagate.evaluators.extras.own_targets.service import adapter_of
from qagate.evaluators.extras.panel.cascade import CascadeJudge
from qagate.evaluators.extras.panel.panel import PanelJudge
from qagate.evaluators.extras.postgres.postgres import PostgresLedgers
from qagate.evaluators.ledger.sqlite import SqliteStore
from qagate.evaluators.ledger.store import Store

SERVICE: doors.ServiceAdapterMaker = adapter_of
FUNCTION: doors.FunctionModelMaker = FunctionModel
BATCHES: doors.CallRouteFinder = find_batches
BATCHES_COMMAND: doors.LedgerCommand = run_batches_command
LEXICAL: doors.LexicalJudgeMaker = lexical_judge
PANEL: doors.PanelMaker = PanelJudge
CASCADE: doors.CascadeMaker = CascadeJudge
CHECKED: doors.CheckedJudgeMaker = CheckedJudge
DEEPEVAL: doors.MetricRunnersMaker = metric_runners_of
CHECKS: doors.CheckLoader = load_check
POSTGRES: doors.LedgerStores = PostgresLedgers
FILE_STORE: type[Store] = SqliteStore

TABLES: Mapping[str, tuple[Mapping[str, str], Mapping[str, object]]] = {
    "provider": (doors.PROVIDERS, {"http": SERVICE, "python": FUNCTION}),
    "call route": (doors.CALL_ROUTES, {"batches": BATCHES}),
    "ledger command": (doors.LEDGER_COMMANDS, {"batches": BATCHES_COMMAND}),
    "judge": (
        doors.JUDGES,
        {"lexical": LEXICAL, "panel": PANEL, "cascade": CASCADE, "checks": CHECKED},
    ),
    "metric": (doors.METRICS, {"deepeval": DEEPEVAL, "checks": CHECKS}),
    "ledger store": (doors.LEDGER_STORES, {"postgresql": POSTGRES}),
}
"""By kind: the table, and the objects above by the names that it gives them."""

LOADS: Mapping[str, tuple[Callable[[], object], object]] = {
    "http": (doors.load_service_adapter, SERVICE),
    "python": (doors.load_function_model, FUNCTION),
    "batches": (partial(doors.load_call_route, "batches"), BATCHES),
    "ledger": (partial(doors.load_ledger_command, "batches"), BATCHES_COMMAND),
    "lexical": (doors.load_lexical_judge, LEXICAL),
    "panel": (doors.load_panel, PANEL),
    "cascade": (doors.load_cascade, CASCADE),
    "checked": (doors.load_checked_judge, CHECKED),
    "deepeval": (doors.load_metric_runners, DEEPEVAL),
    "checks": (doors.load_check_loader, CHECKS),
    "postgresql": (partial(doors.load_ledger_stores, "postgresql"), POSTGRES),
}
"""The loading functions, and what each returns."""


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_names_exactly_the_objects_that_are_typed_here(kind: str) -> None:
    table, objects = TABLES[kind]
    places = {name: place_of(made) for name, made in objects.items()}
    assert dict(table) == places


def place_of(made: object) -> str:
    """Return where an object is defined, as a door names it."""
    return f"{made.__module__}:{getattr(made, '__qualname__', '')}"


@pytest.mark.parametrize("name", LOADS)
def test_a_door_loads_its_object(name: str) -> None:
    load, made = LOADS[name]
    assert load() is made


def test_every_entry_of_a_table_has_a_loading_function_here() -> None:
    entries = [name for table, _ in TABLES.values() for name in table]
    assert len(entries) == len(LOADS)
