"""A job on its way to a process that was forked before the job was known."""

import copyreg
import pickle
from io import BytesIO

from evaluators.core import UsageError
from evaluators.models.secrets import Key
from evaluators.runtime.engine_job import Job


def pack(job: Job) -> bytes:
    """Return a job as bytes for the pipe to a process of our own, and for nothing else.

    The keys of its models are in them.
    """
    buffer = BytesIO()
    pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = copyreg.dispatch_table | {Key: _reveal}
    pickler.dump(job)
    return buffer.getvalue()


def unpack(packed: bytes) -> Job:
    """Return the job. Raises UsageError, whatever is wrong with it."""
    try:
        job = pickle.loads(packed)
    except Exception as error:  # noqa: BLE001  # no traceback, of another process even
        msg = f"the engine failed: {type(error).__name__}: {error}"
        raise UsageError(msg) from None
    assert isinstance(job, Job)
    return job


def _reveal(key: Key) -> tuple[type[Key], tuple[str]]:
    return Key, (key.reveal(),)
