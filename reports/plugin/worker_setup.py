"""How the controller hands the plan to the workers, and workers their reports to the controller.

The plan is made once and read by every worker from a file: reading and checking the data again
took each of them a third of its start.
"""

import gc
import pickle
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reports.plugin.worker import WORKER_INPUT, WorkerInput

INPUT_KEY = "qa"  # of xdist's workerinput
PLAN_FILE = "plan.pickle"
PACKED = "qa-packed"  # of a report on its way to the controller
WORKERS_NICE = "10"  # text, as execnet wants it


class WorkerSetup:
    """The controller's hooks that prepare xdist's workers."""

    def __init__(self, given: WorkerInput) -> None:
        self._given = given

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: Sequence[Any]) -> None:
        """Give local workers a lower priority than the engine, for which they all wait."""
        for spec in specs:
            if spec.popen and not spec.nice:
                spec.nice = WORKERS_NICE

    @pytest.hookimpl(optionalhook=True, trylast=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker where the plan is; the first time, write it.

        The folder is readable by the user alone.
        """
        path = self._given.outcome_store.with_name(PLAN_FILE)
        if not path.exists():
            try:
                path.write_bytes(pickle.dumps(self._given, pickle.HIGHEST_PROTOCOL))
            except OSError as error:
                raise pytest.UsageError(
                    f"{path}: the plan cannot be written ({error.strerror}); free space there"
                ) from None
        node.workerinput[INPUT_KEY] = str(path)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_from_serializable(self, data: dict[str, Any]) -> None:
        """Unpack what a worker packed, for pytest's own hook."""
        if PACKED in data:
            data.update(pickle.loads(data.pop(PACKED)))


class ReportPacker:
    """A worker's hook that sends each report as one value: execnet writes values in Python."""

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self) -> Generator[None, object, object]:
        """Pack what pytest made of a report; xdist adds a few values beside it."""
        return {PACKED: pickle.dumps((yield), pickle.HIGHEST_PROTOCOL)}


def read_worker_input(workerinput: Mapping[str, Any]) -> WorkerInput | None:
    """Return what the controller gave this worker; None where it runs no dataset."""
    if INPUT_KEY not in workerinput:
        return None
    try:
        content = Path(workerinput[INPUT_KEY]).read_bytes()
    except FileNotFoundError:  # the controller was interrupted and has ended
        return None
    with gc_paused():
        given: WorkerInput = pickle.loads(content)
    return given


def join(config: pytest.Config, given: WorkerInput) -> None:
    """Let this process run the plan's tests; each dataset and language becomes a mark."""
    config.stash[WORKER_INPUT] = given
    config.pluginmanager.register(CollectionWithoutGc(), "qa-collection-without-gc")
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(ReportPacker(), "qa-report-packer")
    datasets = given.plan.datasets
    for dataset in datasets:
        config.addinivalue_line("markers", f"{dataset.name}: items of the dataset {dataset.name}")
    for language in sorted({language for dataset in datasets for language in dataset.slices}):
        config.addinivalue_line("markers", f"{language}: items in the language {language}")


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause garbage collection while long-lived objects are created; leave it off if it was off.

    Its passes over thousands of new items, none of which it can free, were a fifth of a worker's
    start.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class CollectionWithoutGc:
    """Pauses garbage collection while pytest makes its items."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Make the items without it."""
        with gc_paused():
            return (yield)
