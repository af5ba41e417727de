"""How likely a run ends in exit 0, 1 or 6, by simulated runs, and what each gate can show.

The model of the records is asked again. With probability ``discordance`` an item takes the outcome
of another one with the same gold label, so every metric keeps its mean; linked items change alone.
A worse model gets more items wrong. Labelled items, which measure the judge, do not change.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

from qagate.cases.dataset import Dataset, PlannedItem, Slice, Threshold
from qagate.evaluators.core import Outcome
from qagate.evaluators.number_text import figure
from qagate.evaluators.output import plural
from qagate.evaluators.statistics.betting import expected_units
from qagate.evaluators.statistics.metrics import DROP
from qagate.evaluators.statistics.misclassification import margin_shown
from qagate.evaluators.statistics.paired import POWER, confirmed_margin, smallest_n
from qagate.evaluators.text import first_of
from qagate.reports.gates.notes import Clusters, scoped_gates
from qagate.reports.judge.errors import JudgeErrors
from qagate.reports.judge.labels import Labels, LabelSet
from qagate.reports.judge.slice_judge import SliceJudge, errors_of
from qagate.reports.metrics.summary import gold_of
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.record import Record, make_record
from qagate.reports.verdict.assemble import (
    CountedRun,
    Facts,
    ReportInputs,
    count_run,
    decision_of,
)

if TYPE_CHECKING:
    from numpy.random import Generator

SEED = 20261122
RUNS = (
    200  # the most simulated runs a line, over up to ``EASY`` records; fewer over more
)
FEWEST = 40
EASY = 2_000
ERROR = 0.02  # the standard error of its shares at which a line has enough runs
MARGIN = (
    0.1  # the margin of a slice without a ``drop`` gate, of its own or of its dataset
)
MIN_REPEATED = (
    20  # the fewest repeated items that show how many differ between two runs
)
ALONE = 0.2  # what one language alone loses in the last line, as a share of its items
LOSSES = {
    0.5: "worse by half the margin",
    1.0: "worse by the margin",
    2.0: "worse by two margins",
}

DISCORDANCES = (0.1, 0.2, 0.3)
"""Assumed shares of pairs that differ between two runs of one model, where none is known."""


def known_discordance(baseline: Baseline | None) -> tuple[tuple[float, ...], str]:
    """Return which shares of items may differ between runs of one model, and how that is known.

    A baseline that asked items several times tells: of two of its answers to one item, drawn at
    random, one passes and the other does not in that share, on average over these items.
    """
    repeats: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for record in baseline.records if baseline else ():
        passed = record.passes()
        if passed is not None:
            item = record.dataset, record.language, record.id
            repeats[item].append(passed)
    shares = []
    for results in repeats.values():
        asked = len(results)
        if asked > 1:
            passes = results.count(True)
            pairs = asked * (asked - 1) / 2
            shares.append(passes * (asked - passes) / pairs)
    if len(shares) < MIN_REPEATED:
        return DISCORDANCES, "not known (a baseline with --repeats tells)"
    return (sum(shares) / len(shares),), "as between repeats of the baseline"


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
    same = bool(baseline and baseline.report.judge == judge)
    old: dict[str, Record] = {}
    for item in items:
        case = item.case
        identity = case.dataset, case.language, case.id, case.digest
        found = before.get((*identity, item.repeat)) or before.get(identity)
        if found and (same or item.slice.kind.answered):
            now = replace(found, key=item.key, row=case.row, repeat=item.repeat)
            if case.recorded is not None:  # with the old one it would be the same file
                now = replace(now, answer=case.recorded)
            old[item.key] = replace(
                now, judge=found.judge if same else judge, reason="simulated"
            )
    outcomes = known([item.key for item in items if item.key not in old])
    return tuple(
        old.get(item.key) or make_record(item, outcomes[item.key]) for item in items
    )


@dataclass(slots=True, kw_only=True)
class Odds:
    """How simulated runs ended, as numbers of runs."""

    ended: Counter[int] = field(default_factory=Counter)
    """By exit code."""
    blame: Counter[str] = field(default_factory=Counter)
    """Of those that each gate, by name, kept from exit 0."""
    reasons: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Why each gate was INCONCLUSIVE; empty where it was not."""
    passed: Counter[str] = field(default_factory=Counter)
    """Of those with exit 0, by the slice that was worse alone."""

    @property
    def codes(self) -> dict[int, float]:
        """The share of runs by exit code."""
        return {
            code: number / self.ended.total() for code, number in self.ended.items()
        }

    @property
    def error(self) -> float:
        """The largest standard error of the shares, with a run more either way."""
        runs = self.ended.total() + 2
        shares = [(count + 1) / runs for count in self.ended.values()]
        return max(math.sqrt(share * (1 - share) / runs) for share in shares)


class Simulation:
    """A future run; ``inputs`` has a known record of each item, ungraded ones drawn anew.

    The judge decides its audited gates, and it has none on usage, which is unknown.
    """

    def __init__(
        self, inputs: ReportInputs, facts: Facts, *earlier: Baseline | None
    ) -> None:
        def judged(gates: Sequence[Threshold]) -> tuple[Threshold, ...]:
            return tuple(
                replace(one, evidence="confident") if one.evidence == "audited" else one
                for one in gates
                if not one.of_usage
            )

        datasets = []
        for part in inputs.datasets:
            slices = part.slices.items()
            own = {
                key: replace(one, thresholds=judged(one.thresholds))
                for key, one in slices
            }
            datasets.append(replace(part, slices=own, pooled=judged(part.pooled)))
        self._inputs = replace(inputs, datasets=tuple(datasets))
        self._facts, self._earlier = facts, earlier
        self._known = count_run(
            self._inputs, inputs.records, facts.judge, for_gates=True
        )
        grouped, seen = self._known.records, seen_by_judge(self._known)
        self._slices = [
            (
                SimulatedSlice(one, grouped[one.name]),
                margin_of(part, one),
                seen.get(one.name, 1.0),
            )
            for part in datasets
            for one in part.slices.values()
            if one.name in grouped
        ]
        """Each with its margin, and the share of a true loss that the judge sees."""
        self._able = [one for one, *_ in self._slices if one.can_lose]

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
        random = np.random.default_rng([SEED, *(round(1e6 * rate) for rate in varied)])
        odds = Odds()
        for number in range(runs):
            if number >= FEWEST and odds.error <= error:  # so many are enough
                break
            lost = self._able[number % len(self._able)] if alone else None
            drawn: list[Record] = []
            for slice_, margin, seen in self._slices:
                loss = worse * margin
                if slice_ is lost:
                    loss += alone
                drawn += slice_.records(random, discordance, loss * seen)
            inputs = replace(self._inputs, records=tuple(drawn))
            decision = decision_of(
                inputs, self._facts, *self._earlier, known=self._known
            )
            odds.ended[decision.code] += 1
            # Names are entered with 0 first, so that equal numbers stand in the order of the gates.
            if lost:
                odds.passed.setdefault(lost.name, 0)
                if decision.code == 0:
                    odds.passed[lost.name] += 1
            for gate in decision.gates:
                name = f"{gate.slice} {gate.name} {gate.bar}"
                odds.blame.setdefault(name, 0)
                if gate.state != "PASS":
                    odds.blame[name] += 1
                reason = gate.reason if gate.state == "INCONCLUSIVE" else ""
                odds.reasons[name].add(reason)
        return odds

    def lines(self, shares: Sequence[float], source: str) -> Iterator[str]:
        """Yield how the run may end, a line a model; ``shares`` may differ, as ``source`` says."""
        runs = max(FEWEST, min(RUNS, RUNS * EASY // len(self._inputs.records)))
        models = [(share, 0.0, "unchanged", 0.0) for share in shares]
        models += [(shares[0], margins, text, 0.0) for margins, text in LOSSES.items()]
        if len(self._able) > 1:
            text = f"one language alone worse by {100 * ALONE:.0f} points, another in each run"
            models.append((shares[0], 0.0, text, ALONE))
        yield f"odds of all gates together, {FEWEST} to {runs} simulated runs a line (seed {SEED})"
        found: list[Odds] = []
        for share, margins, text, alone in models:
            odds = self.odds(share, margins, runs, alone, 0.0 if alone else ERROR)
            found.append(odds)
            said = "" if alone else f", {100 * share:.2g} % of items differ"
            if alone and odds.passed.total():
                said = f"; most often passed: {odds.passed.most_common(1)[0][0]}"
            codes = ", ".join(
                f"{code} with {odds.codes.get(code, 0.0):.2f}" for code in (0, 1, 6)
            )
            yield f"    exit {codes}: {text}{said}"
        first, gates = found[0], defaultdict[str, list[str]](list)
        most = (
            (name, n / first.ended.total())
            for name, n in first.blame.most_common(3)
            if n
        )
        blame = ", ".join(f"{name} ({share:.2f})" for name, share in most)
        yield f"    most often not PASS in the first line: {blame or 'no gate'}"
        for name, some in first.reasons.items():
            gates["".join(some) if len(some) == 1 else ""].append(name)
        for reason, names in gates.items():
            if reason:
                yield f"    INCONCLUSIVE for all answers: {first_of(names)}; {reason}"
        yield (
            f"    standard error at most {max(one.error for one in found):.2f}; the share that "
            f"differs is {source}; items change one by one; a margin is that of a slice's or its "
            f"data set's drop gate, else {MARGIN:g}; gates on seconds, tokens and cost are left out"
        )


def seen_by_judge(run: CountedRun) -> dict[str, float]:
    """Return the share of a true loss that the judge sees in each slice: Youden's J, if known."""
    seen = {}
    for name, judge in run.judges.items():
        errors = errors_of([(judge, 1.0)])
        if not errors.obstacle and not errors.is_read:
            seen[name] = max(0.0, errors.youden().value)
    return seen


def margin_of(dataset: Dataset, slice_: Slice) -> float:
    """Return the drop of the passing share that a slice's gates let pass."""
    gates = (*slice_.thresholds, *dataset.pooled)
    margins = (one.max for one in gates if one.measure == DROP and not one.of)
    return next((margin for margin in margins if margin), MARGIN)


class SimulatedSlice:
    """One slice, asked again and again."""

    def __init__(self, slice_: Slice, records: Sequence[Record]) -> None:
        self.name, self._records = slice_.name, tuple(records)
        self._gold = [gold_of(one, slice_.kind) for one in records]
        self._graded = [place for place, one in enumerate(records) if one.is_graded]
        bar = slice_.pass_bar if slice_.kind.rated else None
        self._right = {place for place in self._graded if records[place].passes(bar)}
        alike: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for place in self._graded:
            alike[self._gold[place]][records[place].result].append(place)
        self._groups = [list(groups.values()) for groups in alike.values()]
        """The places of each gold label, by their outcome."""
        self._golds = {
            gold: sorted(chain(*groups.values())) for gold, groups in alike.items()
        }
        golds = self._golds.items()
        self._wrong = {
            key: [one for one in own if one not in self._right] for key, own in golds
        }
        rates = ((len(own), 1 - len(self._wrong[key]) / len(own)) for key, own in golds)
        self._sides = sum(
            n / len(self._graded) * 2 * rate * (1 - rate) for n, rate in rates
        )
        """The share of items that change sides if each takes the outcome of any other."""
        self.is_answered = slice_.kind.answered
        self.can_lose = (
            self.is_answered and bool(self._right) and any(self._wrong.values())
        )
        """Whether a model answers it, rightly and wrongly, so that a loss can be drawn."""

    def records(
        self, random: Generator, discordance: float, loss: float
    ) -> list[Record]:
        """Return the records of one more run, where the judge sees a share of items lost."""
        found = list(self._records)
        if not self.is_answered or not self._graded:
            return found
        share = min(1.0, discordance / self._sides) if self._sides else 0.0
        moves = dict(
            move
            for groups in self._groups
            for move in _exchanges(random, groups, share)
        )
        right = [
            place for place in self._graded if moves.get(place, place) in self._right
        ]
        for place in (place for place, one in enumerate(found) if not one.is_graded):
            moves[place] = _one_of(
                self._golds.get(self._gold[place]) or self._graded, random
            )
        chance = loss * len(self._graded) / max(1, len(self._right))
        for place, draw in zip(right, random.random(len(right)).tolist(), strict=True):
            if draw < chance and (wrong := self._wrong[self._gold[place]]):
                moves[place] = _one_of(wrong, random)
        for place, donor in moves.items():
            found[place] = _graded_like(found[place], self._records[donor])
        return found


def _graded_like(record: Record, donor: Record) -> Record:
    """Return a record with the grade of another one, and all that goes with it."""
    return replace(
        record,
        outcome=donor.outcome,
        grade=donor.grade,
        rating=donor.rating,
        score=donor.score,
        error="",
        measures=donor.measures,
    )


def _exchanges(
    random: Generator, groups: Sequence[Sequence[int]], share: float
) -> Iterator[tuple[int, int]]:
    """Yield each item that changes, with one of the group that it changes to.

    Counts between groups are multinomial over all items, as the records are one run by luck.
    """
    import numpy as np

    sizes = np.array([len(group) for group in groups])
    total = int(sizes.sum())
    rates = share * np.outer(sizes, sizes) / total**2
    np.fill_diagonal(rates, 0.0)
    flat = rates.ravel()
    counts = random.multinomial(total, [*flat, 1 - flat.sum()])[:-1].reshape(
        rates.shape
    )
    for group, row in zip(groups, counts, strict=True):
        targets = random.permutation(np.repeat(np.arange(len(groups)), row))[
            : len(group)
        ]
        places = random.permutation(group)[: len(targets)]
        for place, target in zip(places.tolist(), targets.tolist(), strict=True):
            yield place, _one_of(groups[target], random)


def _one_of(places: Sequence[int], random: Generator) -> int:
    return places[int(random.integers(len(places)))]


def power_lines(
    dataset: Dataset,
    clusters: Clusters,
    *,
    baseline: bool,
    discordances: Sequence[float],
    sets: Sequence[LabelSet] = (),
) -> Iterator[str]:
    """Yield the smallest drop that each paired gate excludes if such shares of pairs differ.

    ``sets`` are labelled answers as a judge grades them.
    """
    undecided = "" if baseline else "; without --baseline it is not decided"
    sizes = [(dataset.slices[language], len(own)) for language, own in clusters.items()]
    for name, count, thresholds in scoped_gates(dataset, clusters):
        parts = [part for part in sizes if part[0].name == name] or sizes
        for one in (one for one in thresholds if one.paired and count):
            errors = _expected_errors(parts, sets, one.of)
            said = _paired(one, count, discordances, errors)
            yield f"{name} {one.name} {one.bar}: {said}{undecided}"


def _paired(
    threshold: Threshold,
    count: int,
    discordances: Sequence[float],
    errors: JudgeErrors | None,
) -> str:
    """Return the smallest drop that a gate on a share can exclude for an unchanged model."""
    margin, pairs = threshold.max or 0.0, plural(count, "independent pair")
    shares = either(f"{100 * share:.2g}" for share in discordances)
    if threshold.evidence == "audited":
        return "no forecast: people decide it, with `qagate review … --until-decided`"
    if threshold.evidence == "sequential":
        needed = [units_needed(threshold, count, share) for share in discordances]
        units, open_ = (
            either(f"{n:,}" for n, _ in needed),
            [f"{100 * n:.0f}" for _, n in needed],
        )
        return (
            f"--until-decided takes about {units} of {pairs} for an unchanged model if {shares} % "
            f"differ, and leaves {either(open_)} % of such runs open"
        )
    if not threshold.of_share or threshold.evidence == "estimate" or not 0 < margin < 1:
        return "no forecast for this gate alone; see the odds of all gates"
    if count < (fewest := smallest_n(margin)):
        return f"can never pass with {pairs}; it takes {fewest:,} even if none differs"
    margins = either(
        figure(_smallest_drop(count, share, errors)) for share in discordances
    )
    if errors is not None and errors.basis:
        pairs = f"{pairs} and {errors.basis.removeprefix('by ')}"
    return (
        f"{pairs} exclude a {threshold.measure} of {margins} with a chance of {POWER:g} if "
        f"{shares} % of them differ"
    )


def _smallest_drop(count: int, discordance: float, errors: JudgeErrors | None) -> float:
    """Return the smallest drop that pairs exclude, widened by what labels leave open of a judge."""
    margin = confirmed_margin(count, discordance) or 1.0
    if errors is None or errors.unknown or errors.obstacle or errors.is_read:
        return margin
    return margin_shown(margin, errors.youden()) or 1.0


def expected_shares(
    dataset: Dataset,
    clusters: Clusters,
    *,
    baseline: bool,
    discordance: float,
    sets: Sequence[LabelSet] = (),
) -> dict[str, float]:
    """Return the share of each slice asked until decided, if unchanged; a bar needs all items."""
    sizes = [(dataset.slices[language], len(own)) for language, own in clusters.items()]
    shares: dict[str, float] = {}
    for name, count, gates in scoped_gates(dataset, clusters):
        shares[name] = 0.0 if all(gate.paired for gate in gates) else 1.0
        parts = [
            part for part in sizes if part[0].name == name
        ] or sizes  # of the pool all
        for gate in (gate for gate in gates if gate.paired and baseline):
            errors = _expected_errors(parts, sets, gate.of)
            units, _ = units_needed(gate, count, discordance, errors)
            shares[name] = max(shares[name], units / max(count, 1))
    _, pooled = shares.popitem()
    return {name: max(pooled, share) for name, share in shares.items()}


def _expected_errors(
    slices: Sequence[tuple[Slice, int]], sets: Sequence[LabelSet], measure: str
) -> JudgeErrors | None:
    """Return the errors that labels of an earlier run show; None where they show none."""
    judges = []
    for slice_, count in slices:
        labels = Labels.of(slice_, sets)
        if slice_.kind.by_rubric and labels:
            judges.append((SliceJudge(slice_=slice_, labels=labels), float(count)))
    return errors_of(judges, measure) if judges else None


def units_needed(
    threshold: Threshold,
    count: int,
    discordance: float,
    errors: JudgeErrors | None = None,
) -> tuple[int, float]:
    """Return how many of ``count`` pairs a sequential margin takes, and the share left open."""
    margin = threshold.max or 0.0
    limit = margin if threshold.fail == "margin" else 0.0
    allowed = errors.shrunk(margin) if errors else margin
    units, left = expected_units(max(allowed, 0.0), limit, discordance, count)
    return round(units), left


def either(words: Iterable[str]) -> str:
    """Return words with an ``or`` before the last."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last
