"""One judge, named by its SPEC, asked from any thread, event loop or process."""

import os
import threading
import weakref
from concurrent.futures import Future
from dataclasses import dataclass

from evaluators.core import Case, Judge, Verdict
from evaluators.judge_spec import PanelSpec
from evaluators.judges.factory import connect_judges
from evaluators.models.keys import require_key
from evaluators.models.spec import Spec
from evaluators.runtime.calls import Caller, Meter
from evaluators.runtime.sender import CallSettings
from evaluators.runtime.session import CallSession, CallThread
from evaluators.secrets import Key
from evaluators.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A verdict, and what the replies behind it took."""

    verdict: Verdict
    usage: Usage


class JudgeSession:
    """Where one judge, named by its SPEC, is asked; several metrics may share it.

    A process that was forked makes connections of its own. Raises UsageError for a SPEC that
    names nothing, a key that is not set, or a cost limit that could not be kept.
    """

    def __init__(self, judge: str, settings: CallSettings | None = None) -> None:
        self.name = judge
        self.settings = settings or CallSettings()
        self.judges = connect_judges(PanelSpec.parse(judge), self._key)
        self._session = CallSession(
            self.judges.models, self.judges.specs, self.settings, "max_cost"
        )
        self._lock = threading.Lock()
        self._thread: CallThread | None = None
        self._of_parents: list[CallThread] = []  # their files are not to be closed here
        self._finalizer: weakref.finalize[..., JudgeSession] | None = None

    def ask(self, judge: Judge, case: Case, answer: str) -> Future[Judged]:
        """Return what will hold the verdict, or raise what the judge or the call raised."""

        async def judged(caller: Caller) -> Judged:
            meter = Meter(price=caller.price)
            verdict = await judge.judge(case, answer, caller.metered(meter))
            return Judged(verdict=verdict, usage=meter.usage)

        with self._lock:
            thread = self._thread_here()
        return thread.submit(judged)

    def close(self) -> None:
        """Give connections and files back; asked again, the session opens anew."""
        with self._lock:
            if self._finalizer is not None:
                self._finalizer()
            self._thread = None

    def _key(self, spec: Spec) -> Key | None:
        return None if self.settings.replay else require_key(spec)

    def _thread_here(self) -> CallThread:
        if self._thread is not None and self._thread.process == os.getpid():
            return self._thread
        if self._thread is not None and self._finalizer is not None:
            self._finalizer.detach()
            self._of_parents.append(self._thread)
        self._thread = CallThread(self._session)
        self._finalizer = weakref.finalize(self, self._thread.close)
        return self._thread
