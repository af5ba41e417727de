"""A job on its way to a process that was forked before the job was known."""

import copyreg
import pickle
from io import BytesIO

from evaluators.hosting.job import Job
from evaluators.models.secrets import Key


def pack(job: Job) -> bytes:
    """Return a job as bytes for the pipe to a process of our own, and for nothing else.

    The keys of its models are in them.
    """
    buffer = BytesIO()
    pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = copyreg.dispatch_table | {Key: _reveal}
    pickler.dump(job)
    return buffer.getvalue()


def _reveal(key: Key) -> tuple[type[Key], tuple[str]]:
    return Key, (key.reveal(),)
