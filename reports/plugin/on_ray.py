"""Shards as tasks of Ray: on the processors of this machine, or of a cluster.

A task that is lost with its process or machine is tried again by Ray, and goes on from the ledger.
"""

import logging
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from evaluators.core import QAError, UsageError
from reports.plugin.options import Options
from reports.plugin.shard_work import Ends, ShardEnd, ShardJob, Show, work

RETRIES = 5  # of a task whose process or machine died
ANSWER_SECONDS = 5.0
GRACE_SECONDS = 15.0  # for tasks to end after an interrupt
STORE_BYTES = 200 * 1024 * 1024  # a job is some kilobytes: its items are in a file
OF_THIS_RUN = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_MODE": "token"}
"""What keeps a cluster of this run's own on the loopback address, and to those with its token."""


def load_ray(address: str) -> Any:
    """Return the package. Raises UsageError where it is not installed, or no cluster answers.

    Without an ``address`` the settings of a cluster of this run's own are made: Ray reads them as
    it is loaded.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if not address:
        os.environ.update({**OF_THIS_RUN, "RAY_AUTH_TOKEN": secrets.token_hex(32)})
    try:
        ray = import_module("ray")
    except ImportError:
        raise UsageError("--on ray: Ray is not installed; pip install 'qagate[ray]'") from None
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        if host and port.isdigit():  # Ray itself would try for minutes
            socket.create_connection((host, int(port)), ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"--on ray:{address}: no cluster answers there ({error}); start it, or say --on ray"
        ) from None
    return ray


class RayTasks:
    """Each shard is a task; ``slots`` are the processors of the cluster.

    Without an ``address`` a cluster is started on this machine, and ends with the run.
    """

    def __init__(self, ray: Any, address: str, options: Options) -> None:
        self._ray = ray
        self._folder = "" if address else tempfile.mkdtemp(prefix="qa-ray-")
        own = {
            "address": "local",
            "include_dashboard": False,
            "object_store_memory": STORE_BYTES,
            "_temp_dir": self._folder,
        }
        try:
            where = {"address": address} if address else own
            ray.init(**where, logging_level=logging.ERROR, log_to_driver=False)
        except (OSError, ValueError, RuntimeError) as error:
            self.close()
            raise UsageError(
                f"--on ray: {str(error).splitlines()[0]}; is a cluster there, and this its version?"
            ) from None
        self.slots = max(1, int(ray.cluster_resources().get("CPU", 1)))
        machines = sum(bool(node["Alive"]) for node in ray.nodes())
        if machines > 1 and "://" not in str(options.ledger):
            self.close()
            raise UsageError(
                f"--on ray:{address}: {machines} machines cannot share {options.ledger}; "
                "name a --ledger postgresql://…"
            )

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
            what = f"{type(error.cause).__name__}: {error.cause}"
            raise UsageError(
                f"--on ray: a shard failed ({what}); is qagate the same on every machine?"
            ) from None
        except errors.RayError:
            return None
        return end

    def close(self) -> None:
        """Leave the cluster, or end it where it is this run's own."""
        self._ray.shutdown()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
