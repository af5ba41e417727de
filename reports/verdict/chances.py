"""How likely a run ends in exit 0, 1 or 6: its gates, decided over simulated runs of a known model.

The model is taken to be the one that gave the records, asked again. With the chance ``discordance``
an item comes out on the other side of right and wrong, as often to the one as to the other, so that
every metric keeps its mean: the item takes the outcome of another one with the same gold label.
Items change independently, linked ones too. A worse model gets so many more items wrong, of which
the judge sees a part. Labelled items, which measure the judge, stay as they are.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from cases.dataset import Dataset, Slice, Threshold
from evaluators.statistics.metrics import DROP, YOUDEN
from reports.compare.pairs import pair_records
from reports.metrics.summary import gold_of
from reports.run.baseline import Baseline
from reports.run.record import Record, by_slice
from reports.run.report import Decision, Report
from reports.verdict.assemble import Facts, account, decision_of
from reports.verdict.counted_run import ReportInputs

if TYPE_CHECKING:
    from numpy.random import Generator

Move = tuple[int, int]
"""The place of an item that changes, and of the one whose outcome it takes."""

SEED = 20261122
RUNS = 200

MARGIN = 0.1
"""What "the margin" is for a slice without a ``drop`` gate of its own or of its dataset."""

ENOUGH = 20
"""Pairs of records from which on the share that differs is worth something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chances:
    """How ``runs`` simulated runs ended: the share of each exit code.

    ``blame`` is the share of them that each gate, by its name, kept from exit 0, largest first;
    ``stuck`` says why a gate was INCONCLUSIVE in all of them, for one and the same reason.
    """

    runs: int
    codes: Mapping[int, float]
    blame: tuple[tuple[str, float], ...]
    stuck: Mapping[str, str]

    @property
    def error(self) -> float:
        """The largest standard error of the shares."""
        return max(math.sqrt(share * (1 - share) / self.runs) for share in self.codes.values())


class Simulation:
    """A run to come.

    ``inputs`` has a record of every planned item, as the known model left it; one without a grade
    comes out like any other of its slice. Gates that people decide count as if they agreed with
    the judge.
    """

    def __init__(
        self,
        inputs: ReportInputs,
        facts: Facts,
        baseline: Baseline | None,
        anchor: Baseline | None = None,
    ) -> None:
        self._material = replace(inputs, datasets=tuple(map(_by_judge, inputs.datasets)))
        self._facts = facts
        self._baseline = baseline
        self._anchor = anchor

    @cached_property
    def _slices(self) -> list[SliceAgain]:
        grouped, seen = by_slice(self._material.records), seen_by_judge(self._known)
        return [
            SliceAgain(one, grouped[one.name], margin_of(dataset, one) * seen.get(one.name, 1.0))
            for dataset in self._material.datasets
            for one in dataset.slices.values()
            if one.name in grouped
        ]

    @cached_property
    def _known(self) -> Report:
        return account(self._material, self._facts, self._baseline)

    def chances(self, discordance: float, worse: float = 0.0, runs: int = RUNS) -> Chances:
        """Return how the run ends if so many items differ, and the model lost ``worse`` margins."""
        import numpy as np

        random = np.random.default_rng([SEED, round(1e6 * discordance), round(1e6 * worse)])
        codes: Counter[int] = Counter()
        blame: Counter[str] = Counter()
        reasons: dict[str, set[str]] = defaultdict(set)
        for _ in range(runs):
            decision = self.decide(random, discordance, worse)
            codes[decision.code] += 1
            for one in decision.gates:
                name = f"{one.slice} {one.name} {one.bar}"
                blame[name] += one.state != "PASS"
                reasons[name].add(one.reason if one.state == "INCONCLUSIVE" else "")
        return Chances(
            runs=runs,
            codes={code: number / runs for code, number in sorted(codes.items())},
            blame=tuple((name, count / runs) for name, count in blame.most_common() if count),
            stuck={
                name: max(some) for name, some in reasons.items() if len(some) == 1 and any(some)
            },
        )

    def decide(self, random: Generator, discordance: float, worse: float) -> Decision:
        """Return how one simulated run is decided."""
        drawn = (one.records(random, discordance, worse) for one in self._slices)
        records = tuple(record for some in drawn for record in some)
        inputs = replace(self._material, records=records)
        return decision_of(inputs, self._facts, self._baseline, self._anchor, known=self._known)


def _by_judge(dataset: Dataset) -> Dataset:
    """Return a dataset whose audited gates are decided by the judge's verdicts.

    Gates on what answers take are left out: nobody knows it of answers that are not there yet.
    """

    def judged(gates: Sequence[Threshold]) -> tuple[Threshold, ...]:
        return tuple(
            replace(one, evidence="confident") if one.evidence == "audited" else one
            for one in gates
            if not one.of_usage
        )

    slices = {
        name: replace(one, thresholds=judged(one.thresholds))
        for name, one in dataset.slices.items()
    }
    return replace(dataset, slices=slices, pooled=judged(dataset.pooled))


def seen_by_judge(report: Report) -> dict[str, float]:
    """Return what share of a true loss the judge sees in each slice: Youden's J, where it is known.

    A judge with errors takes some wrong answers for right and some right ones for wrong, whatever
    the model is, so that a loss of d looks like one of J·d.
    """
    return {
        name: max(0.0, found.value)
        for one in report.judging.calibrations
        for name in one.graders
        if (found := one.measures.get(YOUDEN)) and found.value is not None
    }


def margin_of(dataset: Dataset, slice_: Slice) -> float:
    """Return the drop of the share of right items that a slice's gates let pass."""
    gates = (*slice_.thresholds, *dataset.pooled)
    margins = (one.max for one in gates if one.measure == DROP and not one.of)
    return next((margin for margin in margins if margin), MARGIN)


class SliceAgain:
    """One slice, asked again and again."""

    def __init__(self, slice_: Slice, records: Sequence[Record], margin: float) -> None:
        self._slice = slice_
        self._records = tuple(records)
        self._margin = margin
        graded = [place for place, one in enumerate(records) if one.is_graded]
        golds: dict[str, list[int]] = defaultdict(list)
        for place in graded:
            golds[gold_of(records[place], slice_.kind)].append(place)
        self._golds = {gold: self._by_outcome(places) for gold, places in golds.items()}
        self._graded = graded
        self._right = [place for place in graded if self._is_right(place)]
        self._wrong = {
            gold: [place for place in places if not self._is_right(place)]
            for gold, places in golds.items()
        }

    def _by_outcome(self, places: Sequence[int]) -> list[list[int]]:
        groups: dict[str, list[int]] = defaultdict(list)
        for place in places:
            groups[self._records[place].result].append(place)
        return list(groups.values())

    def _is_right(self, place: int) -> bool:
        bar = self._slice.pass_bar if self._slice.kind.rated else None
        return bool(self._records[place].passes(bar))

    def records(self, random: Generator, discordance: float, worse: float) -> list[Record]:
        """Return the records of one more run; those of labelled items are as they were."""
        found = list(self._records)
        if not self._slice.kind.answered or not self._graded:
            return found
        for place, donor in self._moves(random, discordance, worse * self._margin):
            found[place] = _with_outcome(found[place], self._records[donor])
        return found

    def _moves(self, random: Generator, discordance: float, drop: float) -> Iterator[Move]:
        share = self._share(discordance)
        moved = [
            move for groups in self._golds.values() for move in _exchanges(random, groups, share)
        ]
        yield from moved
        for place in range(len(self._records)):
            if not self._records[place].is_graded:
                yield place, _one_of(self._like(place), random)
        like = {place: place for place in self._graded} | dict(moved)
        right = [place for place, donor in like.items() if self._is_right(donor)]
        chance = drop * len(self._graded) / max(1, len(self._right))
        for place, draw in zip(right, random.random(len(right)).tolist(), strict=True):
            wrong = self._wrong[gold_of(self._records[place], self._slice.kind)]
            if draw < chance and wrong:
                yield place, _one_of(wrong, random)

    def _like(self, place: int) -> list[int]:
        """Return the graded items with the gold label of this one; all where there is none."""
        groups = self._golds.get(gold_of(self._records[place], self._slice.kind), [])
        return [other for group in groups for other in group] or self._graded

    def _share(self, discordance: float) -> float:
        """Return which share of items has to draw a new outcome for so many to change sides."""
        sides = 0.0
        for groups in self._golds.values():
            places = [place for group in groups for place in group]
            rate = sum(map(self._is_right, places)) / len(places)
            sides += len(places) / len(self._graded) * 2 * rate * (1 - rate)
        return min(1.0, discordance / sides) if sides else 0.0


def _exchanges(random: Generator, groups: Sequence[Sequence[int]], share: float) -> Iterator[Move]:
    """Yield which items of these groups change, each with one of the group that it changes to.

    How many go from each group to each other is multinomial over all items. If items changed one
    by one, the sum would vary less than that of a model which is asked twice does: the records
    are but one of its runs, whose own luck is unknown.
    """
    import numpy as np

    sizes = np.array([len(group) for group in groups])
    total = int(sizes.sum())
    rates = share * np.outer(sizes, sizes) / total**2
    np.fill_diagonal(rates, 0.0)
    flat = rates.ravel()
    counts = random.multinomial(total, [*flat, 1 - flat.sum()])[:-1].reshape(rates.shape)
    for group, row in zip(groups, counts, strict=True):
        targets = random.permutation(np.repeat(np.arange(len(groups)), row))[: len(group)]
        places = random.permutation(group)[: len(targets)]
        for place, target in zip(places.tolist(), targets.tolist(), strict=True):
            yield place, _one_of(groups[target], random)


def _one_of(places: Sequence[int], random: Generator) -> int:
    return places[int(random.integers(len(places)))]


def _with_outcome(record: Record, donor: Record) -> Record:
    return replace(
        record,
        outcome=donor.outcome,
        grade=donor.grade,
        rating=donor.rating,
        score=donor.score,
        measures=donor.measures,
        error="",
    )


def discordance_of_repeats(records: Sequence[Record]) -> float | None:
    """Return which share of items came out otherwise when asked again; None without repeats."""
    asked: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for record in records:
        if record.is_graded:
            asked[record.dataset, record.language, record.id].append(bool(record.passes()))
    again = [results for results in asked.values() if len(results) > 1]
    if len(again) < ENOUGH:
        return None
    shares = (2 * sum(one) * (len(one) - sum(one)) / (len(one) * (len(one) - 1)) for one in again)
    return sum(shares) / len(again)


def discordance_between(new: Sequence[Record], old: Sequence[Record]) -> float | None:
    """Return which share of items came out otherwise in two runs; None for too few, or for none.

    Where nothing at all differs the replies are likely the same ones.
    """
    pairs = [one for one in pair_records(new, old).pairs if one.new.is_graded]
    differ = sum(one.new.passes() != one.old.passes() for one in pairs)
    return differ / len(pairs) if differ and len(pairs) >= ENOUGH else None
