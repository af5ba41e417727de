"""People's verdicts on pairs of answers: which pairs to look at, and what they show.

The judge only says where to look. Each pair is drawn with a known probability, and its difference
by people's verdicts is weighted by 1 / probability. The mean is unbiased for any errors of the
judge: Horvitz and Thompson (1952), J. Am. Stat. Assoc. 47:663. Judged differences are the guess
that people correct: Zrnic and Candès (2024), "Active statistical inference".
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

from qagate.evaluators.adjudications import answer_digest
from qagate.evaluators.output import plural
from qagate.evaluators.statistics.betting import (
    DECISIVE,
    Bounds,
    Observations,
    log_capital,
)
from qagate.evaluators.text import digest
from qagate.reports.compare.people import pair_key
from qagate.reports.compare.shares import change_ends
from qagate.reports.compare.sides import PairedSlice
from qagate.reports.compare.states import Pair
from qagate.reports.run.clean import MASK
from qagate.reports.run.evidence import PlannedPair
from qagate.reports.run.record import Record

BY_CHANCE = "sample"
MIN_PAIRS = 20  # the fewest pairs to put on one form


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedPair:
    """Both answers to one item, and whether people are to look at them."""

    pair: Pair
    key: str
    """A hash of the two answers."""
    plan: PlannedPair
    drawn: bool
    """Whether people are to look at it."""
    passes: tuple[bool | None, bool | None]
    """Whether people let each answer pass, old and new; None where nobody has looked."""
    changed: str = ""
    """What has changed since the first form was made; empty if nothing has."""

    @property
    def is_open(self) -> bool:
        """Whether people have yet to look at one of the two answers."""
        there = None not in (self.pair.old.answer, self.pair.new.answer)
        return self.drawn and there and not self.is_known

    @property
    def is_known(self) -> bool:
        """Whether people have looked at both answers because the audit asked them to."""
        return self.drawn and None not in self.passes

    @property
    def ends(self) -> Bounds:
        """The lowest and the highest possible value of its weighted difference."""
        low, high = change_ends(*self.passes)
        chance = self.plan.probability
        return (low / chance, high / chance) if self.drawn else (0.0, 0.0)

    def expected(self, trust: float) -> float:
        """Return its weighted difference; an open pair's is the guess times ``trust``, 0 to 1."""
        return (
            trust * self.plan.judged / self.plan.probability
            if self.is_open
            else self.ends[0]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The pairs of some slices in independent units, sorted by hashes that nobody chooses."""

    units: tuple[tuple[AuditedPair, ...], ...]
    share: float
    """The probability to draw a pair without a reason to look at it."""

    @property
    def pairs(self) -> Iterator[AuditedPair]:
        """Every pair, in order."""
        return (one for unit in self.units for one in unit)

    @property
    def reached(self) -> tuple[tuple[AuditedPair, ...], ...]:
        """The units before the first open one after all that people have looked at."""
        places = range(len(self.units))
        seen = [
            place for place in places if any(one.is_known for one in self.units[place])
        ]
        behind = places[seen[-1] + 1 if seen else 0 :]
        opened = (
            place for place in behind if any(one.is_open for one in self.units[place])
        )
        return self.units[: next(opened, len(self.units))]

    @property
    def changed(self) -> str:
        """Why the plan of the first form does not hold any more; empty where it does."""
        found = Counter(one.changed for one in self.pairs if one.changed)
        if not found:
            return ""
        (what, count), *_ = found.most_common(1)
        return (
            f"the first form was made with {what} ({plural(count, 'pair')}); go on with that, or "
            "begin an audit anew with another --adjudications FILE"
        )

    def observations(self, difference: Callable[[AuditedPair], float]) -> Observations:
        """Return the differences of the units, for instance with unknown ones at their lowest."""
        import numpy as np

        totals = [sum(map(difference, unit)) for unit in self.units]
        sizes = [len(unit) for unit in self.units]
        return Observations(
            totals=np.array(totals, dtype=np.float64),
            sizes=np.array(sizes, dtype=np.float64),
            bound=1
            / min(
                [self.share, *(one.plan.probability for one in self.pairs if one.drawn)]
            ),
            largest=max(sizes, default=1),
        )

    @property
    def ends(self) -> tuple[Observations, Observations]:
        """The differences with unknown ones at their lowest, and at their highest."""
        low = self.observations(lambda one: one.ends[0])
        return low, self.observations(lambda one: one.ends[1])

    @property
    def by_language(self) -> dict[str, "Audit"]:
        """The same pairs, each language's by itself."""
        found: dict[str, list[tuple[AuditedPair, ...]]] = defaultdict(list)
        for unit in self.units:
            for name in dict.fromkeys(one.pair.new.language for one in unit):
                found[name].append(
                    tuple(one for one in unit if one.pair.new.language == name)
                )
        return {
            name: replace(self, units=tuple(units)) for name, units in found.items()
        }

    def next_pairs(
        self, margin: float, bar: float, passing_capital: float = DECISIVE
    ) -> list[AuditedPair]:
        """Return the pairs to look at next: as many as may decide it, and at least ``MIN_PAIRS``.

        They decide if people confirm all of the judge's differences, or the same share as so far.
        ``passing_capital`` is what a PASS takes.
        """
        checked = [one for one in self.pairs if one.is_known and one.plan.judged]
        confirmed = sum(
            one.ends[0] * one.plan.probability == one.plan.judged for one in checked
        )
        ends = [len(self.units)]
        for trust in (1.0, (confirmed + 1) / (len(checked) + 2)):
            seen = self.observations(partial(AuditedPair.expected, trust=trust))
            for capital, decisive in (
                (log_capital(seen, -margin), passing_capital),
                (log_capital(seen.mirrored, -bar), DECISIVE),
            ):
                enough = capital >= math.log(decisive)
                ends += [int(enough.argmax()) + 1] if enough.any() else []
        count = sum(one.is_open for unit in self.units[: min(ends)] for one in unit)
        return [one for one in self.pairs if one.is_open][: max(count, MIN_PAIRS)]

    def growth(self, margin: float, bar: float) -> list[tuple[int, float, float]]:
        """Return, unit by unit, the pairs looked at and the natural logs of both capitals."""
        low, high = self.ends
        capitals = log_capital(low, -margin), log_capital(high.mirrored, -bar)
        looked = accumulate(sum(one.drawn for one in unit) for unit in self.reached)
        return [
            (n, float(a), float(b)) for n, a, b in zip(looked, *capitals, strict=False)
        ]


def audit_of(
    sides: Sequence[PairedSlice], share: float, as_now: Audit | None = None
) -> Audit:
    """Return which pairs of these slices people are to look at, and their verdicts so far.

    ``share``, above 0, is the probability to draw a pair without a reason. Answers may be unknown.
    ``as_now`` is the audit of the same answers by today's settings, where ``sides`` are read by
    those of then: it says which pairs are drawn, and what people said stands.
    """
    drawn_now: dict[str, AuditedPair] = {}
    if as_now is not None:
        drawn_now = {audited.pair.new.key: audited for audited in as_now.pairs}
    units: dict[str, list[tuple[str, AuditedPair]]] = defaultdict(list)
    for side in sides:
        for pair in side.pairs:
            new = pair.new
            place = digest([new.digest, new.dataset, new.language, new.id, new.repeat])
            unit = units[side.place_of(pair)]
            audited = drawn_now.get(new.key)
            if audited is None:
                audited = _audited(pair, side, share)
            else:
                audited = _read_again(audited, pair, side)
            unit.append((place, audited))
    ordered = (sorted(units[place], key=lambda two: two[0]) for place in sorted(units))
    return Audit(
        units=tuple(tuple(one for _, one in unit) for unit in ordered), share=share
    )


def _read_again(audited: AuditedPair, pair: Pair, side: PairedSlice) -> AuditedPair:
    """Return a pair with what people's verdicts on its answers are worth in another slice."""
    before = _by_people(pair.old, side, audited.pair.old)
    now = _by_people(pair.new, side, audited.pair.new)
    return replace(audited, pair=pair, passes=(before, now))


def _audited(pair: Pair, side: PairedSlice, share: float) -> AuditedPair:
    """Return a pair with people's verdicts and the reason to look at it.

    What the first form planned stays; of two probabilities, on one hash, the greater counts.
    """

    def planned(why: str, judged: int) -> PlannedPair:
        chance, order = {"": 0.0, BY_CHANCE: share}.get(why, 1.0), side.slice_.order
        return PlannedPair(
            why=why, probability=chance, judged=judged, share=share, order=order
        )

    digests = [
        answer_digest(record, record.answer or "") for record in (pair.old, pair.new)
    ]
    key = pair_key(pair.old, pair.new)
    verdicts = (side.people.get(one) for one in digests)
    said = [one for one in verdicts if one and one.pair == key and one.probability]
    before = pair.old.passes(side.bar)
    now = pair.new.passes(side.bar)
    judged = 0 if before is None or now is None else now - before
    fresh, first = planned(_why(pair, side.bar), judged), side.plan.get(key)
    if first is None and said:  # accepted before plans were kept
        chance = said[0].probability
        first = replace(planned(said[0].picked, judged), probability=chance)
        first = replace(first, share=chance if first.why == BY_CHANCE else share)
    if first and (pair.old.adjudicated_by or pair.new.adjudicated_by):
        fresh = planned(first.why, first.judged)
    plan = first or fresh
    probability = max(plan.probability, fresh.probability)
    return AuditedPair(
        pair=pair,
        key=key,
        plan=replace(plan, probability=probability),
        drawn=bool(said) or int(key, 16) < probability * 16 ** len(key),
        passes=(_by_people(pair.old, side), _by_people(pair.new, side)),
        changed=_changed(first, fresh) if first else "",
    )


def _changed(first: PlannedPair, now: PlannedPair) -> str:
    """Return what differs from the first form; a verdict that the judge lacked may come later."""
    if first.share != now.share:
        return f"`share: {first.share:g}`, not {now.share:g}"
    if first.order != now.order:
        return f"`order: {first.order}`, not {now.order}"
    judged = "no_verdict" not in (first.why, now.why)
    if judged and (first.why, first.judged) != (now.why, now.judged):
        return "other verdicts of the judge"
    return ""


def _why(pair: Pair, bar: int | None) -> str:
    """Return why people should look at a pair; ``BY_CHANCE`` where chance decides."""
    old, new = pair.old, pair.new
    if old.answer and old.answer == new.answer and MASK not in old.answer:
        return ""
    if not old.is_graded or not new.is_graded:
        return "no_verdict"
    if old.passes(bar) != new.passes(bar):
        return "flipped"
    return "judges_differ" if old.is_disputed or new.is_disputed else BY_CHANCE


def _by_people(
    record: Record, side: PairedSlice, shown: Record | None = None
) -> bool | None:
    """Return whether people let this answer pass; blank ones are not shown to them, but by rule.

    ``shown`` is the record as it was on their form, where golds or words are other ones by now.
    """
    if record.answer is None:
        return None
    said = side.people.get(answer_digest(shown or record, record.answer))
    if said is None:
        settled = record.adjudicated_by or not record.answer.strip()
        return record.passes(side.bar) if settled else None
    part = side.slice_
    return part.kind.passes(record, said.verdict, part.passing, part.pass_bar)
