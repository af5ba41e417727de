"""The checks of rules before a model: some answers that they settled go to the model too.

Which answers the rules settle shows only as they come. So the items of a slice have a drawn order
(``judges/rule_checks.py``), and an answer is checked as soon as all items before it have ended and
too few of those were settled. Whatever the items end in, the same ones are checked: in a replay
too, and whether calls are slow or fast. Nobody waits for a check but the end of the run.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from qagate.evaluators import core
from qagate.evaluators.core import CallError, JudgeError, Outcome
from qagate.evaluators.judges.members import judging_models
from qagate.evaluators.judges.rule_checks import in_drawn_order, is_settled_by, rules_of
from qagate.evaluators.runtime.caller import Caller, ItemClock, Meter
from qagate.evaluators.runtime.item_worker import JUDGING_GRACE_SECONDS, AskJudge
from qagate.evaluators.runtime.slice_stops import slice_name_of
from qagate.evaluators.runtime.task import Task


@dataclass(slots=True)
class _Draw:
    """The items of one slice in their drawn order, and how far it has come."""

    keys: list[str]
    place: int = 0
    """Of the first item that is not known to have ended."""
    checked: int = 0


class HearsChecks(Protocol):
    """Says when enough was asked, and hears what the model says of the rules."""

    def note_rule_check(self, key: str, label: str) -> None:
        """Note what the model says of an answer that rules before it settled."""


class RuleChecks:
    """The checks of one run, in the loop of its engine.

    Attributes::

    :labels: What the model said, by item, as far as it was asked.

    :usage: What that took.

    :_ended: The items that have ended.

    :_settled: The answers that rules settled, by item.
    """

    def __init__(
        self,
        tasks: Mapping[str, Task],
        caller: Caller,
        ask_judge: AskJudge,
        *,
        most: int,
        stopping: HearsChecks | None = None,
    ) -> None:
        self.labels: dict[str, str] = {}
        self.usage = core.Usage()
        self._tasks = tasks
        self._caller = caller
        self._ask_judge = ask_judge
        self._most = most
        self._stopping = stopping
        self._ended: set[str] = set()
        self._settled: dict[str, str] = {}
        self._checking: list[asyncio.Task[None]] = []
        keys: dict[str, list[str]] = defaultdict(list)
        for key, task in tasks.items():
            if rules_of(task.judge.spec) and not task.is_labelled:
                keys[slice_name_of(task.case)].append(key)
        self._draws: dict[str, _Draw] = {}
        for name, of_slice in keys.items():
            # A run that may stop early asks by a hash already, and needs its checks soon.
            drawn = in_drawn_order(of_slice) if stopping is None else of_slice
            self._draws[name] = _Draw(drawn)

    def note(self, outcome: Outcome) -> None:
        """Note how an item ended, and check what is known to be drawn by that."""
        task = self._tasks[outcome.key]
        draw = self._draws.get(slice_name_of(task.case))
        if draw is None:
            return
        self._ended.add(outcome.key)
        verdict = outcome.verdict
        rules = rules_of(task.judge.spec)
        if verdict is not None and is_settled_by(rules, verdict.votes):
            self._settled[outcome.key] = outcome.answer or ""
        self._advance(draw)

    async def finish(self) -> None:
        """Check what is left to check, and wait until all is. Items that did not end are none.

        Raises LedgerError.
        """
        for draw in self._draws.values():
            self._ended.update(draw.keys)
            self._advance(draw)
        await asyncio.gather(*self._checking)

    def abandon(self) -> None:
        """Let no check go on."""
        for checking in self._checking:
            checking.cancel()

    def _advance(self, draw: _Draw) -> None:
        while draw.checked < self._most and draw.place < len(draw.keys):
            key = draw.keys[draw.place]
            if key not in self._ended:
                return
            draw.place += 1
            if key in self._settled:
                draw.checked += 1
                self._checking.append(asyncio.create_task(self._check(key)))

    async def _check(self, key: str) -> None:
        task = self._tasks[key]
        (model,) = judging_models(task.judge)
        clock = ItemClock(slice_name=slice_name_of(task.case))
        meter = Meter(price=self._caller.price, clock=clock)
        meter.end_answer()
        ask = self._ask_judge(meter, task.case)
        label = ""
        with self._caller.route.item(meter):
            judging = model.judge(task.case, self._settled[key], ask)
            try:
                verdict = await self._caller.sender.before_the_end(
                    judging, JUDGING_GRACE_SECONDS
                )
                label = verdict.label
            except (CallError, JudgeError):
                pass  # an answer that the model did not grade counts at its worst
            finally:
                self.usage += meter.usage
        self.labels[key] = label
        if self._stopping is not None:
            self._stopping.note_rule_check(key, label)
