"""What the controller hears of the tests, and from it the one outcome of every planned item."""

from collections import Counter
from collections.abc import Mapping, Sequence

from cases.dataset import Plan
from evaluators.core import Outcome


def key_of(nodeid: str) -> str:
    """Return an item's key: what the last brackets of a node id hold; empty without brackets."""
    _, bracket, rest = nodeid.rpartition("[")
    return rest.removesuffix("]") if bracket else ""


class SessionResults:
    """Collects pytest's reports, and pairs them with the engine's outcomes at the end.

    ``planned`` are the keys of the selected items; ``other_failures`` counts what failed besides
    graded misses and ERRORs.
    """

    def __init__(self, plan: Plan) -> None:
        self.planned: tuple[str, ...] = ()
        self.other_failures = 0
        self._plan = plan
        self._words: dict[str, str] = {}
        self._ended: set[str] = set()
        self._deaths: Counter[str] = Counter()

    def select(self, nodeids: Sequence[str]) -> tuple[str, ...]:
        """Note which tests will be run; return the keys of those that are planned items."""
        keys = dict.fromkeys(map(key_of, nodeids))
        self.planned = tuple(key for key in keys if key in self._plan.items)
        return self.planned

    def note(self, nodeid: str, when: str, outcome: str, word: str) -> None:
        """Note one report; ``word`` is what the worker calls it, empty where that is nothing."""
        key = key_of(nodeid)
        is_death = when == "???" and key in self._plan.items
        if outcome == "failed" and not word and not is_death:
            self.other_failures += 1
        if outcome == "skipped" and not word:
            word = "skipped"
        if word:
            self._words[key] = word
        if when == "teardown":
            self._ended.add(key)

    def died(self, nodeid: str) -> bool:
        """Note that a worker died on this test; return whether it may be tried once more."""
        key = key_of(nodeid)
        self._deaths[key] += 1
        return self._deaths[key] == 1

    def untested(self, outcomes: Mapping[str, Outcome]) -> int:
        """Return how many items have a verdict, yet no test: their workers died."""
        lost = [key for key in self.planned if key in outcomes and key not in self._ended]
        return len(lost) if self._deaths else 0

    def final(self, outcomes: Mapping[str, Outcome], reason: str) -> dict[str, Outcome]:
        """Return the final outcome of every planned item, by key.

        ``reason`` (stopped, interrupted, …) is the kind of those whose test did not end. Where
        workers died the engine's word counts alone: a verdict needs no worker.
        """
        return {key: self._final(key, outcomes.get(key), reason) for key in self.planned}

    def _final(self, key: str, outcome: Outcome | None, reason: str) -> Outcome:
        word = self._words.get(key)
        if self._deaths[key] > 1:
            message = "the worker died twice while running this item"
            return Outcome(key=key, state="error", kind="worker_died", message=message)
        if key not in self._ended and not (outcome and self._deaths):
            message = "its test was not run to the end"
            return Outcome(key=key, state="missing", kind=reason, message=message)
        if word == "skipped":
            return Outcome(key=key, state="missing", kind="skipped", message="its test was skipped")
        if outcome is None and word == "missing":
            message = "the engine had stopped before it came to this item"
            return Outcome(key=key, state="missing", kind=reason, message=message)
        if outcome is None:
            message = "the engine posted no outcome"
            return Outcome(key=key, state="error", kind="engine_lost", message=message)
        return outcome
