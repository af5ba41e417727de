"""Shards as tasks of Ray: on the processors of this machine, or of a cluster.

A task that is lost with its process or machine is tried again by Ray, and goes on from the ledger.
"""

import logging
import os
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from evaluators.core import QAError, UsageError
from reports.plugin.options import Options
from reports.plugin.shard_work import Ends, ShardEnd, ShardJob, Show, work

RETRIES = 5  # of a task whose process or machine died
GRACE_SECONDS = 15.0  # for tasks to end after an interrupt
LOOPBACK = "127.0.0.1"


def check_ray() -> None:
    """Raise UsageError where Ray is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray  # noqa: F401, PLC0415  # an optional package, and seconds to load
    except ImportError:
        msg = "--on ray: Ray is not installed; pip install 'qagate[ray]'"
        raise UsageError(msg) from None


class RayTasks:
    """Each shard is a task; ``slots`` are the processors of the cluster.

    Without an ``address`` a cluster is started on this machine, and ends with the run.
    """

    def __init__(self, address: str, options: Options) -> None:
        ray: Any = import_module("ray")  # much of it has no types
        self._ray = ray
        here: dict[str, Any] = {
            "address": "local", "include_dashboard": False, "_node_ip_address": LOOPBACK,
            "object_store_memory": 200 * 1024 * 1024,
        }  # fmt: skip
        try:
            ray.init(
                **({"address": address} if address else here),
                logging_level=logging.ERROR,
                log_to_driver=False,
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            msg = f"--on ray:{address}: {str(error).splitlines()[0]}; start it, or say --on ray"
            raise UsageError(msg) from None
        self.slots = max(1, int(ray.cluster_resources().get("CPU", 1)))
        machines = sum(bool(node["Alive"]) for node in ray.nodes())
        if machines > 1 and "://" not in str(options.ledger):
            msg = (
                f"--on ray:{address}: {machines} machines cannot share {options.ledger}; "
                "name a --ledger postgresql://…"
            )
            self.close()
            raise UsageError(msg)

    def run(self, jobs: Iterator[ShardJob], slots: int, show: Show) -> Ends:
        """Yield each job with what came of it, None where it was lost."""
        pending: dict[Any, ShardJob] = {}
        try:
            yield from self._tasks(jobs, slots, show, pending)
        except KeyboardInterrupt:
            yield from self._cancelled(pending)
        finally:
            self.close()

    def _tasks(
        self, jobs: Iterator[ShardJob], slots: int, show: Show, pending: dict[Any, ShardJob]
    ) -> Ends:
        task = self._ray.remote(max_retries=RETRIES)(work)
        while True:
            while len(pending) < slots and (job := next(jobs, None)):
                pending[task.remote(job)] = job
            if not pending:
                return
            done, _ = self._ray.wait(list(pending), num_returns=1)
            end = self._end(done[0])
            job = pending.pop(done[0])
            show(job.part.count)
            yield job, end

    def _cancelled(self, pending: dict[Any, ShardJob]) -> Ends:
        """Interrupt what is under way, and yield what it had come to."""
        for one in pending:
            self._ray.cancel(one, force=False)
        done, _ = (
            self._ray.wait(list(pending), num_returns=len(pending), timeout=GRACE_SECONDS)
            if pending
            else ([], [])
        )
        for one in done:
            if end := self._end(one):
                yield pending[one], end

    def _end(self, task: Any) -> ShardEnd | None:
        """Return what came of a task, None where it was lost. Raises what it raised of ours."""
        errors = self._ray.exceptions
        try:
            end: ShardEnd = self._ray.get(task)
        except errors.RayTaskError as error:
            if isinstance(error.cause, QAError | OSError):
                raise error.cause from None
            raise
        except errors.RayError:
            return None
        return end

    def close(self) -> None:
        """Leave the cluster, or end it where it is this run's own."""
        self._ray.shutdown()
