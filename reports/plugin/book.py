"""What the tests came to, as the controller hears of it, and how every planned item ended."""

from collections import Counter
from collections.abc import Mapping, Sequence

from cases.plan import Plan
from evaluators.core import Outcome


def key_of(nodeid: str) -> str:
    """Return what stands between the last brackets of a node id, an item's key; or nothing."""
    _, bracket, rest = nodeid.rpartition("[")
    return rest.removesuffix("]") if bracket else ""


class SessionResults:
    """Counts reports, and pairs them with the engine's outcomes when the session is over."""

    def __init__(self, plan: Plan) -> None:
        self.planned: tuple[str, ...] = ()
        self.other_failures = 0
        self.words: dict[str, str] = {}
        self.ended: set[str] = set()
        self._plan = plan
        self._deaths: Counter[str] = Counter()

    def select(self, nodeids: Sequence[str]) -> tuple[str, ...]:
        """Note which tests will be run; return the keys of those that are planned items."""
        keys = dict.fromkeys(map(key_of, nodeids))
        self.planned = tuple(key for key in keys if key in self._plan.items)
        return self.planned

    def collect_failed(self) -> None:
        """Note a test module that could not be collected."""
        self.other_failures += 1

    def note(self, nodeid: str, when: str, outcome: str, word: str) -> None:
        """Note one report; ``word`` is what the test's side called it, or empty."""
        key = key_of(nodeid)
        if outcome == "failed" and not word and not self._is_death(key, when):
            self.other_failures += 1
        if outcome == "skipped" and not word:
            word = "skipped"
        if word:
            self.words[key] = word
        if when == "teardown":
            self.ended.add(key)

    def died(self, nodeid: str) -> bool:
        """Note that a worker died on this test; return whether it may be tried once more."""
        key = key_of(nodeid)
        self._deaths[key] += 1
        return self._deaths[key] == 1

    def _is_death(self, key: str, when: str) -> bool:
        return when == "???" and key in self._plan.items

    def close(self, outcomes: Mapping[str, Outcome], reason: str) -> dict[str, Outcome]:
        """Return the one end state of every planned item.

        ``reason`` (stopped, interrupted …) is that of the items whose test did not come to its end.
        """
        return {key: self._end(key, outcomes.get(key), reason) for key in self.planned}

    def _end(self, key: str, outcome: Outcome | None, reason: str) -> Outcome:
        if self._deaths[key] > 1:
            message = "the worker died twice while running this item"
            return Outcome(key=key, state="error", kind="worker_died", message=message)
        if key not in self.ended:
            message = "its test was not run to the end"
            return Outcome(key=key, state="missing", kind=reason, message=message)
        if self.words.get(key) == "skipped":
            return Outcome(key=key, state="missing", kind="skipped", message="its test was skipped")
        if outcome is None and self.words.get(key) == "missing":
            message = "the engine had stopped before it came to this item"
            return Outcome(key=key, state="missing", kind=reason, message=message)
        if outcome is None:
            message = "the engine posted no outcome"
            return Outcome(key=key, state="error", kind="engine_lost", message=message)
        return outcome
