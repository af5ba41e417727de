"""What a dead worker of xdist leaves behind does not end the run."""

from types import SimpleNamespace
from typing import Any

import pytest

from cases.dataset import Plan
from reports.plugin.dead_workers import DeadWorkers
from reports.plugin.session_results import SessionResults


def ready(send: Any) -> Any:
    """Return a worker that has become ready, whose commands go out by ``send``."""
    plan = Plan(datasets=(), items={})
    node = SimpleNamespace(sendcommand=send)
    DeadWorkers(plan, SessionResults(plan)).pytest_testnodeready(node)
    return node


def test_work_for_a_worker_that_has_just_died_is_dropped() -> None:
    """A closed pipe to a worker raises nothing: the run goes on to read of its death."""

    def closed(name: str, **values: object) -> None:
        raise OSError(name)

    ready(closed).sendcommand("steal", indices=[3, 4])


def test_a_living_worker_is_told_what_it_was_told_before() -> None:
    """Name and values of a command arrive unchanged."""
    told: list[tuple[str, dict[str, object]]] = []
    ready(lambda name, **values: told.append((name, values))).sendcommand("runtests", indices=[1])
    assert told == [("runtests", {"indices": [1]})]


def test_other_errors_of_sending_are_not_hidden() -> None:
    """Only a closed connection is passed over; a value that cannot be sent is a fault to see."""

    def refuses(name: str, **values: object) -> None:
        raise TypeError(name)

    with pytest.raises(TypeError):
        ready(refuses).sendcommand("runtests", indices=[object()])
