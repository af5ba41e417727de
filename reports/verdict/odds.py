"""How likely a run ends in exit 0, 1 or 6: all its gates, decided over simulated runs.

The model of the records is asked again. With probability ``discordance`` an item takes the outcome
of another one with the same gold label, so every metric keeps its mean; linked items change alone.
A worse model gets more items wrong. Labelled items, which measure the judge, do not change.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from cases.dataset import Dataset, Evidence, PlannedItem, Slice, Threshold
from evaluators.core import Outcome
from evaluators.statistics.metrics import DROP, YOUDEN
from reports.gates.decide import listed
from reports.gates.power import DISCORDANCES
from reports.judge.errors import calibrations_in
from reports.metrics.summary import gold_of
from reports.run.baseline import Baseline
from reports.run.evidence import Calibration
from reports.run.record import Record, by_slice, make_record
from reports.run.report import Decision
from reports.verdict.assemble import (
    CountedRun,
    Facts,
    KnownRun,
    ReportInputs,
    decision_of,
    known_run,
)

if TYPE_CHECKING:
    from numpy.random import Generator

SEED = 20261122
RUNS = 200  # the most simulated runs a line, over up to ``EASY`` records; fewer over more
FEWEST = 40
EASY = 2_000
ERROR = 0.02  # the standard error of its shares at which a line has enough runs
MARGIN = 0.1  # the margin of a slice without a ``drop`` gate, of its own or of its dataset
MIN_REPEATED = 20  # the fewest repeated items that show how many differ between two runs
ALONE = 0.2  # what one language alone loses in the last line, as a share of its items
LOSSES = {0.5: "worse by half the margin", 1.0: "worse by the margin", 2.0: "worse by two margins"}

OF_GRADE = ("outcome", "grade", "rating", "score", "measures")
"""The fields of a record that an item takes over from another one."""

Move = tuple[int, int]  # the place of an item that changes, and of the item whose outcome it takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Discordance:
    """How many items differ between two runs of one model."""

    shares: tuple[float, ...]
    source: str
    """How the shares are known."""


def known_discordance(baseline: Baseline | None) -> Discordance:
    """Return the discordance between the baseline's repeats, else a guess."""
    if baseline and (share := discordance_of_repeats(baseline.records)) is not None:
        return Discordance(shares=(share,), source="as between repeats of the baseline")
    return Discordance(shares=DISCORDANCES, source="not known (a baseline with --repeats tells)")


def discordance_of_repeats(records: Sequence[Record]) -> float | None:
    """Return the share of items that changed when asked again; None if unknown."""
    asked: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for record in records:
        if record.is_graded:
            asked[record.dataset, record.language, record.id].append(bool(record.passes()))
    again = [results for results in asked.values() if len(results) > 1]
    if len(again) < MIN_REPEATED:
        return None
    shares = (2 * sum(one) * (len(one) - sum(one)) / (len(one) * (len(one) - 1)) for one in again)
    return sum(shares) / len(again)


def known_records(
    items: Sequence[PlannedItem],
    baseline: Baseline | None,
    known: Callable[[Sequence[str]], Mapping[str, Outcome]],
    judge: str,
) -> tuple[Record, ...]:
    """Return a record of each item: the baseline's, else that of its ``known`` outcome."""
    before: dict[tuple[object, ...], Record] = {}
    for record in baseline.records if baseline else ():
        if record.is_graded:
            identity = record.dataset, record.language, record.id, record.digest
            before.setdefault(identity, record)
            before[*identity, record.repeat] = record
    same = bool(baseline and baseline.run.get("judge") == judge)
    old: dict[str, Record] = {}
    for item in items:
        case = item.case
        identity = case.dataset, case.language, case.id, case.digest
        found = before.get((*identity, item.repeat)) or before.get(identity)
        if found and (same or item.slice.kind.answered):
            own: Any = {"judge": found.judge if same else judge, "reason": "simulated"}
            own |= {"key": item.key, "row": case.row, "repeat": item.repeat}
            old[item.key] = replace(found, **own)
    outcomes = known([item.key for item in items if item.key not in old])
    return tuple(old.get(item.key) or make_record(item, outcomes[item.key]) for item in items)


def known_calibrations(
    baseline: Baseline | None, items: Sequence[PlannedItem]
) -> list[Calibration]:
    """Return the baseline's calibrations of the judge, where this run measures none."""
    names = {item.slice.name for item in items}
    found = calibrations_in(baseline.run) if baseline else ()
    others = (one for one in found if f"{one.dataset}:{one.language}" not in names)
    return [replace(one, source="session") for one in others]


@dataclass(frozen=True, slots=True, kw_only=True)
class Odds:
    """How simulated runs ended."""

    runs: int
    codes: Mapping[int, float]
    """The share of runs by exit code."""
    blame: tuple[tuple[str, float], ...]
    """The share of runs that each gate, by name, kept from exit 0; largest first."""
    stuck: Mapping[str, str]
    """Why a gate was INCONCLUSIVE in all runs, for one and the same reason."""
    passed: Mapping[str, int] = field(default_factory=dict)
    """How many runs ended in exit 0, by the slice that was worse alone."""

    @property
    def text(self) -> str:
        """The shares of the exit codes in words."""
        codes = ", ".join(f"{code} with {self.codes.get(code, 0.0):.2f}" for code in (0, 1, 6))
        return f"exit {codes}"

    @property
    def error(self) -> float:
        """The largest standard error of the shares."""
        return standard_error({code: share * self.runs for code, share in self.codes.items()})


def standard_error(counts: Mapping[int, float]) -> float:
    """Return the largest standard error of the shares, with a run more either way."""
    runs = sum(counts.values()) + 2
    shares = [(count + 1) / runs for count in counts.values()]
    return max(math.sqrt(share * (1 - share) / runs) for share in shares)


class Simulation:
    """A future run; ``inputs`` has a known record of each item, ungraded ones drawn anew."""

    def __init__(
        self,
        inputs: ReportInputs,
        facts: Facts,
        baseline: Baseline | None,
        anchor: Baseline | None = None,
    ) -> None:
        self._inputs = replace(inputs, datasets=tuple(map(_by_judge, inputs.datasets)))
        self._facts, self._earlier = facts, (baseline, anchor)

    @cached_property
    def _known(self) -> KnownRun:
        return known_run(self._inputs, self._facts, self._earlier)

    @cached_property
    def _slices(self) -> list[SimulatedSlice]:
        grouped, seen = by_slice(self._inputs.records), seen_by_judge(self._known[0])
        return [
            SimulatedSlice(one, grouped[one.name], margin_of(part, one), seen.get(one.name, 1.0))
            for part in self._inputs.datasets
            for one in part.slices.values()
            if one.name in grouped
        ]

    def odds(
        self,
        discordance: float,
        worse: float = 0.0,
        runs: int = RUNS,
        alone: float = 0.0,
        error: float = 0.0,
    ) -> Odds:
        """Return how runs end that lost ``worse`` margins, or each a share ``alone`` of a slice."""
        import numpy as np

        varied = (discordance, worse, alone) if alone else (discordance, worse)
        random = np.random.default_rng([SEED, *(round(1e6 * one) for one in varied)])
        able = [one for one in self._slices if one.can_lose] if alone else []
        passed, blame, codes = Counter[str](), Counter[str](), Counter[int]()
        reasons = defaultdict[str, set[str]](set)
        for number in range(runs):
            if number >= FEWEST and standard_error(codes) <= error:  # so many are enough
                break
            lost = able[number % len(able)] if able else None
            losses = ((one, alone * (one is lost)) for one in self._slices)
            drawn = (one.records(random, discordance, worse, loss) for one, loss in losses)
            decision = self._decided(chain.from_iterable(drawn))
            codes[decision.code] += 1
            if lost:
                passed[lost.name] += decision.code == 0
            for one in decision.gates:
                name = f"{one.slice} {one.name} {one.bar}"
                blame[name] += one.state != "PASS"
                reasons[name].add(one.reason if one.state == "INCONCLUSIVE" else "")
        same = ((name, some) for name, some in reasons.items() if len(some) == 1)
        return Odds(
            runs=(runs := codes.total()),
            codes={code: number / runs for code, number in sorted(codes.items())},
            blame=tuple((name, count / runs) for name, count in blame.most_common() if count),
            stuck={name: max(some) for name, some in same if any(some)},
            passed=passed,
        )

    def _decided(self, records: Iterable[Record]) -> Decision:
        inputs = replace(self._inputs, records=tuple(records))
        return decision_of(inputs, self._facts, *self._earlier, known=self._known)

    def lines(self, differ: Discordance) -> Iterator[str]:
        """Yield how likely the run ends in which exit code, a line a model; each takes seconds."""
        runs = max(FEWEST, min(RUNS, RUNS * EASY // len(self._inputs.records)))
        models = [(share, 0.0, "unchanged") for share in differ.shares]
        models += [(differ.shares[0], margins, text) for margins, text in LOSSES.items()]
        yield f"odds of all gates together, {FEWEST} to {runs} simulated runs a line (seed {SEED})"
        found: list[Odds] = []
        for share, margins, text in models:
            found.append(self.odds(share, margins, runs, error=ERROR))
            yield f"    {found[-1].text}: {text}, {100 * share:.2g} % of items differ"
        if sum(one.can_lose for one in self._slices) > 1:
            found.append(self.odds(differ.shares[0], runs=runs, alone=ALONE))
            passed = found[-1].passed
            worst = max(passed, key=passed.__getitem__)
            hidden = f"; most often passed: {worst}" if passed[worst] else ""
            yield (
                f"    {found[-1].text}: one language alone worse by {100 * ALONE:.0f} points, "
                f"another in each run{hidden}"
            )
        blame = ", ".join(f"{name} ({share:.2f})" for name, share in found[0].blame[:3])
        yield f"    most often not PASS in the first line: {blame or 'no gate'}"
        stuck = found[0].stuck
        for reason in dict.fromkeys(stuck.values()):
            names = listed([name for name, why in stuck.items() if why == reason])
            yield f"    INCONCLUSIVE for all answers: {names}; {reason}"
        error = max(odds.error for odds in found)
        yield (
            f"    standard error at most {error:.2f}; the share that differs is {differ.source}; "
            "items change one by one; a margin is that of a slice's or its data set's drop gate, "
            f"else {MARGIN:g}; gates on seconds, tokens and cost are left out"
        )


def _by_judge(dataset: Dataset) -> Dataset:
    """Return a dataset whose audited gates the judge decides, and none of unknown usage."""

    def judged(gates: Sequence[Threshold]) -> tuple[Threshold, ...]:
        known: Mapping[Evidence, Evidence] = {"audited": "confident"}
        kept = ((one, known.get(one.evidence, one.evidence)) for one in gates if not one.of_usage)
        return tuple(replace(one, evidence=evidence) for one, evidence in kept)

    own = {
        key: replace(one, thresholds=judged(one.thresholds)) for key, one in dataset.slices.items()
    }
    return replace(dataset, slices=own, pooled=judged(dataset.pooled))


def seen_by_judge(run: CountedRun) -> dict[str, float]:
    """Return the share of a true loss that the judge sees in each slice: Youden's J, if known."""
    return {
        name: max(0.0, found.value)
        for one in run.calibrations
        for name in one.graders
        if (found := one.measures.get(YOUDEN)) and found.value is not None
    }


def margin_of(dataset: Dataset, slice_: Slice) -> float:
    """Return the drop of the passing share that a slice's gates let pass."""
    gates = (*slice_.thresholds, *dataset.pooled)
    margins = (one.max for one in gates if one.measure == DROP and not one.of)
    return next((margin for margin in margins if margin), MARGIN)


class SimulatedSlice:
    """One slice, asked again and again."""

    def __init__(
        self, slice_: Slice, records: Sequence[Record], margin: float, seen: float = 1.0
    ) -> None:
        """``seen`` is the share of a true loss that the judge sees."""
        self.name, self._records = slice_.name, tuple(records)
        self._margin, self._seen = margin, seen
        self._gold = [gold_of(one, slice_.kind) for one in records]
        self._graded = [place for place, one in enumerate(records) if one.is_graded]
        bar = slice_.pass_bar if slice_.kind.rated else None
        self._right = {place for place in self._graded if records[place].passes(bar)}
        self._golds, self._wrong = (defaultdict[str, list[int]](list) for _ in range(2))
        alike: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for place in self._graded:
            self._golds[self._gold[place]].append(place)
            alike[self._gold[place]][records[place].result].append(place)
            if place not in self._right:
                self._wrong[self._gold[place]].append(place)
        self._groups = [list(groups.values()) for groups in alike.values()]
        """The places of each gold label, by their outcome."""
        self._sides = 0.0
        """The share of items that change sides if each takes the outcome of any other."""
        for places in self._golds.values():
            rate = len(self._right.intersection(places)) / len(places)
            self._sides += len(places) / len(self._graded) * 2 * rate * (1 - rate)
        self.is_answered = slice_.kind.answered
        self.can_lose = self.is_answered and bool(self._right and self._wrong)
        """Whether a model answers it, rightly and wrongly, so that a loss can be drawn."""

    def records(
        self, random: Generator, discordance: float, worse: float, lost: float = 0.0
    ) -> list[Record]:
        """Return the records of one more run, worse by margins and a lost share of items."""
        found = list(self._records)
        if not self.is_answered or not self._graded:
            return found
        share = min(1.0, discordance / self._sides) if self._sides else 0.0
        moved = dict(move for groups in self._groups for move in _exchanges(random, groups, share))
        moves = [*moved.items()]
        for place in (place for place, one in enumerate(found) if not one.is_graded):
            alike = self._golds.get(self._gold[place]) or self._graded
            moves.append((place, _one_of(alike, random)))
        right = [place for place in self._graded if moved.get(place, place) in self._right]
        drop = (worse * self._margin + lost) * self._seen
        chance = drop * len(self._graded) / max(1, len(self._right))
        for place, draw in zip(right, random.random(len(right)).tolist(), strict=True):
            if draw < chance and (wrong := self._wrong[self._gold[place]]):
                moves.append((place, _one_of(wrong, random)))
        for place, donor in moves:
            taken = {name: getattr(self._records[donor], name) for name in OF_GRADE}
            found[place] = replace(found[place], error="", **taken)
        return found


def _exchanges(random: Generator, groups: Sequence[Sequence[int]], share: float) -> Iterator[Move]:
    """Yield each item that changes, with one of the group that it changes to.

    Counts between groups are multinomial over all items, as the records are one run by luck.
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
