"""One judge, named by its SPEC, asked from any thread or event loop."""

import threading
import weakref
from concurrent.futures import Future

from evaluators.core import Case, Judge, Usage, Verdict
from evaluators.judge_spec import PanelSpec
from evaluators.judges.factory import connect_judges
from evaluators.models.keys import require_key
from evaluators.models.spec import Spec
from evaluators.runtime.caller import Caller, CallSettings, Meter
from evaluators.runtime.session import CallSession, CallThread
from evaluators.secrets import Key

Judged = tuple[Verdict, Usage]
"""A verdict, and the usage of the replies behind it."""


class JudgeSession:
    """The models, ledger and limits of one judge; several metrics may share them.

    Raises UsageError for an unknown SPEC, a missing key, or a cost limit that cannot be kept
    because a price is unknown.
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

    def ask(self, judge: Judge, case: Case, answer: str) -> Future[Judged]:
        """Return the verdict's future, which raises what the judge or the call raised."""

        async def judged(caller: Caller) -> Judged:
            meter = Meter(price=caller.price)
            verdict = await judge.judge(case, answer, caller.metered(meter))
            return verdict, meter.usage

        with self._lock:
            if self._thread is None:
                self._thread = CallThread(self._session)
                weakref.finalize(self, self._thread.close)
            return self._thread.submit(judged)

    def close(self) -> None:
        """Close connections and files; the next question opens them again."""
        with self._lock:
            if self._thread is not None:
                self._thread.close()
            self._thread = None

    def _key(self, spec: Spec) -> Key | None:
        return None if self.settings.replay else require_key(spec)
