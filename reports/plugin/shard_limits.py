"""A run's limits parted among its shards: together they keep what is allowed for all."""

import time
from dataclasses import dataclass, field

from cases.tasks import SliceTraits
from evaluators.judges.adjudicated import Adjudications
from reports.plugin.options import Options
from reports.plugin.shard_work import Part, ShardJob


@dataclass(slots=True, kw_only=True)
class Shares:
    """What is left of a run's limits: each shard is granted its share as it begins.

    What one leaves of its money others may use; all of them together keep within ``--max-cost``,
    but for what a task that dies had spent: the next attempt at it has the same share.
    """

    options: Options
    slots: int
    left: int
    began: float = field(default_factory=time.time)
    spent: float = 0.0
    granted: dict[Part, float] = field(default_factory=dict)

    def job(self, part: Part, traits: SliceTraits, adjudications: Adjudications) -> ShardJob:
        """Return the job of a part, with its share of what is left."""
        options, money = self.options, self.options.max_cost
        if money is not None:
            free = max(0.0, money - self.spent - sum(self.granted.values()))
            money = self.granted[part] = free * part.count / max(1, self.left)
        self.left -= part.count
        return ShardJob(
            part=part,
            options=options,
            traits=None if part.beside else traits,
            adjudications={} if part.beside else adjudications,
            concurrency=max(1, options.concurrency // self.slots),
            rpm=None if options.rpm is None else max(1, options.rpm // self.slots),
            max_cost=money,
            until=None if options.deadline is None else self.began + options.deadline,
        )

    def settle(self, part: Part, spent: float) -> None:
        """Note what a shard has spent of what it was granted."""
        self.granted.pop(part, None)
        self.spent += spent
