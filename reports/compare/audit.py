"""People's verdicts on pairs of answers: which pairs to look at, and what those looked at show.

The judge only says where to look. Each pair is looked at with a known probability, and what people
say of it is weighed by 1 / probability: on average that is the true difference, whatever the judge
got wrong. Horvitz and Thompson (1952), J. Am. Stat. Assoc. 47:663; judged differences as the guess
that people correct: Zrnic and Candès (2024), "Active statistical inference".
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

from evaluators.core import Verdict
from evaluators.judges.adjudicated import answer_digest
from evaluators.kinds import Cluster
from evaluators.statistics.betting import ENOUGH, Observations, log_capital
from evaluators.text import digest
from reports.compare.pairs import Pair, PairedSlice, unanswered
from reports.run.clean import MASK
from reports.run.record import Record

SAMPLE = "sample"

FEWEST = 20
"""Pairs that are worth a form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedPair:
    """Both answers to one item, and whether people are to look at them.

    ``key`` names the two answers. ``why`` is a key of the form's reasons, empty for answers of the
    same text, between which there is no difference to look for. ``probability`` is that of being
    looked at, ``drawn`` says whether it is. ``guess`` is the judge's new - old, 0 where it gave no
    verdict; ``old`` and ``new`` say whether people let the answers pass, None where nobody said.
    """

    pair: Pair
    key: str
    why: str
    probability: float
    drawn: bool
    guess: int
    old: bool | None
    new: bool | None

    @property
    def is_open(self) -> bool:
        """Whether people are still to look at one of the two answers."""
        there = None not in (self.pair.old.answer, self.pair.new.answer)
        return self.drawn and there and not self.is_known

    @property
    def is_known(self) -> bool:
        """Whether people have looked at both answers because the audit asked them to."""
        return self.drawn and None not in (self.old, self.new)

    def lowest(self) -> float:
        """Return the least that its weighed difference can be."""
        return (bool(self.new) - (self.old is not False)) / self.probability if self.drawn else 0.0

    def highest(self) -> float:
        """Return the most that its weighed difference can be."""
        return ((self.new is not False) - bool(self.old)) / self.probability if self.drawn else 0.0

    def expected(self, trust: float) -> float:
        """Return its weighed difference, if unknown as people agree with so much of the judge's."""
        return trust * self.guess / self.probability if self.is_open else self.lowest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The pairs of some slices in units that are independent, in a fixed order.

    The order is that of hashes of the items, so that nobody chooses it and that items which are
    added do not change that of the others. ``share`` is the probability of a pair that nothing
    speaks for.
    """

    units: tuple[tuple[AuditedPair, ...], ...]
    share: float

    @property
    def pairs(self) -> Iterator[AuditedPair]:
        """Every pair, in order."""
        return (one for unit in self.units for one in unit)

    @property
    def known(self) -> int:
        """How many units come before the first that people are still to look at."""
        places = (place for place, unit in enumerate(self.units) if any(p.is_open for p in unit))
        return next(places, len(self.units))

    def observations(self, difference: Callable[[AuditedPair], float]) -> Observations:
        """Return the differences of the units: with unknown ones at their lowest, for instance."""
        import numpy as np

        totals = [sum(map(difference, unit)) for unit in self.units]
        sizes = [len(unit) for unit in self.units]
        return Observations(
            totals=np.array(totals, dtype=np.float64),
            sizes=np.array(sizes, dtype=np.float64),
            bound=1 / min([self.share, *(one.probability for one in self.pairs if one.drawn)]),
            largest=max(sizes, default=1),
        )

    def next_pairs(self, margin: float, bar: float) -> list[AuditedPair]:
        """Return the pairs to look at next: as many as may decide it, and at least ``FEWEST``.

        That is, if people confirm all differences that the judge sees, or as many as so far.
        ``margin`` is the drop that passes, ``bar`` the difference below which the gate fails.
        """
        checked = [one for one in self.pairs if one.is_known and one.guess]
        confirmed = sum(one.lowest() * one.probability == one.guess for one in checked)
        ends = [len(self.units)]
        for trust in (1.0, (confirmed + 1) / (len(checked) + 2)):
            seen = self.observations(partial(AuditedPair.expected, trust=trust))
            for capital in (log_capital(seen, -margin), log_capital(seen.mirrored, -bar)):
                enough = capital >= math.log(ENOUGH)
                ends += [int(enough.argmax()) + 1] if enough.any() else []
        count = sum(one.is_open for unit in self.units[: min(ends)] for one in unit)
        return [one for one in self.pairs if one.is_open][: max(count, FEWEST)]

    def growth(self, margin: float, bar: float) -> list[tuple[int, float, float]]:
        """Return how many pairs were looked at, and the logarithms of the two capitals, so far."""
        capitals = (
            log_capital(self.observations(AuditedPair.lowest), -margin),
            log_capital(self.observations(AuditedPair.highest).mirrored, -bar),
        )
        looked = accumulate(sum(one.drawn for one in unit) for unit in self.units)
        rows = zip(looked, *(map(float, one) for one in capitals), strict=True)
        return [row for _, row in zip(range(self.known), rows, strict=False)]


def audit_of(sides: Sequence[PairedSlice], share: float) -> Audit:
    """Return which pairs of these slices are to be looked at, and what people said of them.

    Items that one of the runs did not ask are pairs too, of which one answer is not known, and so
    are those that the old one did not grade.
    ``share`` (above 0, at most 1) is the probability of a pair that nothing speaks for.
    """
    clusters: dict[Cluster, list[tuple[str, AuditedPair]]] = defaultdict(list)
    for side in sides:
        for old, new in side.matches:
            place = digest([new.digest, new.dataset, new.language, new.id, new.repeat])
            one = _audited(Pair(new=new, old=old or unanswered(new)), side, share)
            clusters[side.slice_.cluster_of(new)].append((place, one))
    units = [sorted(unit, key=lambda two: two[0]) for unit in clusters.values()]
    units.sort(key=lambda unit: unit[0][0])
    return Audit(units=tuple(tuple(one for _, one in unit) for unit in units), share=share)


def _audited(pair: Pair, side: PairedSlice, share: float) -> AuditedPair:
    """Return a pair with what is known of it.

    A verdict given in the audit of these very answers says with what probability they were drawn:
    a later run may know people's verdicts alone, and no longer what the judge had said.
    """
    digests = [answer_digest(one, one.answer or "") for one in (pair.old, pair.new)]
    key = digest(["audit", *digests])[:32]
    verdicts = (side.people.get(one) for one in digests)
    said = [one for one in verdicts if one and one.pair == key and one.probability]
    why = _why(pair, side.bar)
    probability = {"": 0.0, SAMPLE: share}.get(why, 1.0)
    if said:
        why, probability = said[0].picked, said[0].probability
    drawn = bool(said) or int(key, 16) < probability * 16 ** len(key)
    old, new = (_by_people(one, side) for one in (pair.old, pair.new))
    before, now = (one.passes(side.bar) for one in (pair.old, pair.new))
    return AuditedPair(
        pair=pair,
        key=key,
        why=why,
        probability=probability,
        drawn=drawn,
        guess=0 if before is None or now is None else now - before,
        old=old,
        new=new,
    )


def _why(pair: Pair, bar: int | None) -> str:
    """Return why people should look at a pair, ``SAMPLE`` where chance is to say whether."""
    old, new = pair.old, pair.new
    if old.answer and old.answer == new.answer and MASK not in old.answer:
        return ""
    if not old.is_graded or not new.is_graded:
        return "no_verdict"
    if old.passes(bar) != new.passes(bar):
        return "flipped"
    return "judges_differ" if old.is_disputed or new.is_disputed else SAMPLE


def _by_people(record: Record, side: PairedSlice) -> bool | None:
    """Return whether people let this answer pass, None where they have not said.

    An answer that is blank is not put before them: a rule has graded it.
    """
    if record.answer is None:
        return None
    said = side.people.get(answer_digest(record, record.answer))
    if said is None:
        settled = record.adjudicated_by or not record.answer.strip()
        return record.passes(side.bar) if settled else None
    verdict = Verdict(grade=None if said.rating else said.label, rating=said.rating)
    part = side.slice_
    return part.kind.passes(record, verdict, part.passing, part.pass_bar)
