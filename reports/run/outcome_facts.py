"""What a report says of all outcomes together, counted one by one: nothing of an item is kept."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from cases.dataset import PlannedItem
from evaluators.core import Outcome


@dataclass(slots=True, kw_only=True)
class OutcomeFacts:
    """What was counted so far.

    ``slices`` are the names of those with an outcome, ``models`` and ``judges`` what the providers
    named. Of the ``verdicts``, ``earlier`` rest on replies that an earlier run paid for, and
    ``imported`` on ones that came by ``ledger import``. ``failed`` counts items that a test fails
    for, ``unpriced`` says that some cost is not known, ``spent`` is in USD. ``unmeasured`` has for
    each extra metric how many items lack it, and why the first does.
    """

    slices: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    judges: set[str] = field(default_factory=set)
    items: int = 0
    failed: int = 0
    verdicts: int = 0
    earlier: int = 0
    imported: int = 0
    spent: float = 0.0
    unpriced: bool = False
    unmeasured: dict[str, tuple[int, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, outcomes: Iterable[tuple[PlannedItem, Outcome]]) -> "OutcomeFacts":
        """Return the facts of all of these."""
        found = cls()
        for item, outcome in outcomes:
            found.add(item, outcome)
        return found

    def add(self, item: PlannedItem, outcome: Outcome) -> None:
        """Count one more."""
        usage = outcome.usage
        self.slices.add(item.slice.name)
        self.models |= {outcome.model} - {""}
        self.judges |= {outcome.judge} - {""}
        self.items += 1
        self.failed += outcome.state in ("failed", "error")
        self.spent += usage.spent
        self.unpriced |= usage.cost is None
        if outcome.state in ("passed", "failed"):
            self.verdicts += 1
            self.earlier += usage.earlier > 0
            self.imported += usage.imported > 0
        for name, why in outcome.unmeasured.items():
            count, first = self.unmeasured.get(name, (0, why))
            self.unmeasured[name] = count + 1, first

    @property
    def replies(self) -> dict[str, int]:
        """How many verdicts there are, and how many rest on replies that others paid for."""
        return {"verdicts": self.verdicts, "earlier": self.earlier, "imported": self.imported}
