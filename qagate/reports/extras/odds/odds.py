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
from functools import cached_property
from typing import TYPE_CHECKING

from qagate.cases.dataset import Dataset, PlannedItem, Slice, Threshold
from qagate.evaluators.core import Outcome
from qagate.evaluators.number_text import figure
from qagate.evaluators.output import plural
from qagate.evaluators.statistics.betting import expected_units
from qagate.evaluators.statistics.intervals import Z95, Places
from qagate.evaluators.statistics.metrics import DROP
from qagate.evaluators.statistics.misclassification import margin_shown
from qagate.evaluators.statistics.paired import POWER, confirmed_margin, smallest_n
from qagate.evaluators.text import first_of
from qagate.reports.compare.sides import Compared, PairedSlice
from qagate.reports.compare.states import KNOWN, Pairing
from qagate.reports.gates.bars import bar_readings
from qagate.reports.gates.decide import FAILED, INCONCLUSIVE, OK
from qagate.reports.gates.notes import Clusters, scoped_gates
from qagate.reports.judge.errors import JudgeErrors
from qagate.reports.judge.labels import Labels, LabelSet
from qagate.reports.judge.measuring import grades_in, grades_of
from qagate.reports.judge.slice_judge import SliceJudge, errors_of
from qagate.reports.metrics.summary import gold_of, summarise, tabulate
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.columns import (
    DrawnRecords,
    RecordColumns,
    columns_of,
    graded_like,
)
from qagate.reports.run.readings import Reading
from qagate.reports.run.record import Record, make_record
from qagate.reports.run.report import Decision
from qagate.reports.verdict.assemble import (
    CountedRun,
    Facts,
    ReportInputs,
    count_run,
    decision_on,
    doubts_of,
    sides_of,
)
from qagate.reports.verdict.pairing import beside_baseline

if TYPE_CHECKING:
    from numpy.random import Generator

SEED = 20261122
MOST_RUNS = 300
"""Of each data set, for a line."""
FEWEST = 20
AT_ONCE = 20
"""Runs that are simulated before the error is looked at again."""
ALONE_RUNS = 10
"""For each slice that is worse alone."""
ERROR = 0.02
"""The standard error of a line's chances at which it has enough runs."""
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
            # A new run asks anew: with the earlier run's id it would be compared with itself.
            now = replace(
                found, key=item.key, row=case.row, repeat=item.repeat, asked_by=""
            )
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
class Tally:
    """How the gates of one data set ended in simulated runs, as numbers of runs."""

    is_certain: bool = False
    """Whether no model answers it, so that it ends in one way alone."""
    ended: Counter[int] = field(default_factory=Counter)
    """By exit code."""
    blame: Counter[str] = field(default_factory=Counter)
    """Of those that each gate, by name, kept from exit 0."""
    reasons: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Why each gate was INCONCLUSIVE; empty where it was not."""

    def add(self, decision: Decision) -> None:
        """Count one run."""
        self.ended[decision.code] += 1
        for gate in decision.gates:
            # Entered with 0 first, so that equal numbers stand in the order of the gates.
            name = f"{gate.slice} {gate.name} {gate.bar}"
            self.blame.setdefault(name, 0)
            if gate.state != "PASS":
                self.blame[name] += 1
            reason = gate.reason if gate.state == "INCONCLUSIVE" else ""
            self.reasons[name].add(reason)

    @property
    def runs(self) -> int:
        """How many were simulated."""
        return self.ended.total()

    def share(self, *codes: int) -> float:
        """Return the share of runs that ended in one of these codes."""
        return sum(self.ended[code] for code in codes) / self.runs

    def share_with_error(self, *codes: int) -> float:
        """Return the share with a run more either way, so that 0 and 1 have an error, too."""
        if self.is_certain:
            return self.share(*codes)
        return (sum(self.ended[code] for code in codes) + 1) / (self.runs + 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Odds:
    """How likely a run ends in each code, by its data sets, which end independently.

    A run fails if any data set fails, and passes if all pass.
    """

    tallies: Mapping[str, Tally]
    """By data set."""

    @property
    def codes(self) -> dict[int, float]:
        """The chance of 0, 1 and 6."""
        passes = math.prod(tally.share(OK) for tally in self.tallies.values())
        holds = math.prod(1 - tally.share(FAILED) for tally in self.tallies.values())
        return {OK: passes, FAILED: 1 - holds, INCONCLUSIVE: holds - passes}

    @property
    def error(self) -> float:
        """The largest standard error of the three, by the delta method."""
        of_codes = [0.0, 0.0, 0.0]
        for variances in self._variances().values():
            for place, variance in enumerate(variances):
                of_codes[place] += variance
        return math.sqrt(max(of_codes))

    def least_known(self) -> str:
        """Return the data set of which more runs would tell most."""
        variances = self._variances()
        return max(variances, key=lambda name: max(variances[name]))

    def _variances(self) -> dict[str, tuple[float, float, float]]:
        """Return what each data set adds to the variances of the three chances."""
        tallies = self.tallies.values()
        passes = math.prod(tally.share_with_error(OK) for tally in tallies)
        holds = math.prod(1 - tally.share_with_error(FAILED) for tally in tallies)
        variances = {}
        for name, tally in self.tallies.items():
            if tally.is_certain:
                continue
            runs = tally.runs + 2
            share_passes = tally.share_with_error(OK)
            share_holds = max(share_passes, 1 - tally.share_with_error(FAILED))
            of_pass = passes**2 * (1 - share_passes) / share_passes / runs
            of_hold = holds**2 * (1 - share_holds) / share_holds / runs
            of_both = passes * holds * (1 - share_holds) / share_holds / runs
            rest = max(0.0, of_pass + of_hold - 2 * of_both)
            variances[name] = of_pass, of_hold, rest
        return variances

    def blame(self) -> list[tuple[str, float]]:
        """Return which gates kept most runs from exit 0, each with its share of runs."""
        shares = {}
        for tally in self.tallies.values():
            for name, number in tally.blame.items():
                shares[name] = number / tally.runs
        most = sorted(shares.items(), key=lambda entry: -entry[1])
        return [(name, share) for name, share in most if share]

    def never_decided(self) -> dict[str, list[str]]:
        """Return the gates that are INCONCLUSIVE for one reason in all runs, by the reason."""
        gates: dict[str, list[str]] = defaultdict(list)
        for tally in self.tallies.values():
            for name, reasons in tally.reasons.items():
                if len(reasons) == 1 and "" not in reasons:
                    gates["".join(reasons)].append(name)
        return gates


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedLoss:
    """How a simulated model is worse than the one of the records."""

    margins: float = 0.0
    """How many margins each slice lost."""
    alone: str = ""
    """The slice that alone lost ``ALONE`` of its items; empty for none."""


UNCHANGED = SimulatedLoss()


class Simulation:
    """A future run; ``inputs`` has a known record of each item, ungraded ones drawn anew.

    The judge decides its audited gates, and it has none on usage, which is unknown.
    """

    def __init__(
        self, inputs: ReportInputs, facts: Facts, *earlier: Baseline | None
    ) -> None:
        datasets = tuple(_decided_by_judge(dataset) for dataset in inputs.datasets)
        inputs = replace(inputs, datasets=datasets)
        slices = {}
        records: list[Record] = []
        known = count_run(inputs, inputs.records, facts.judge, for_gates=True)
        for name, slice_ in known.slices.items():
            slices[name] = SimulatedSlice(slice_, known.records[name])
            records += slices[name].graded_records
        known = count_run(inputs, records, facts.judge, for_gates=True, known=known)
        read = [_as_read(baseline) for baseline in earlier]
        compared = [sides_of(known, baseline, facts) for baseline in read]
        doubts = doubts_of(known, facts, earlier, facts.session)
        seen = seen_by_judge(known)
        self.datasets: dict[str, SimulatedDataset] = {}
        for dataset in datasets:
            names = [slice_.name for slice_ in known.of(dataset)]
            if names:
                self.datasets[dataset.name] = SimulatedDataset(
                    run=replace(
                        _only(known, dataset, names),
                        plain=_read_one_way(known, compared, names),
                    ),
                    compared=[_sides_only(sides, names) for sides in compared],
                    facts=facts,
                    earlier=earlier,
                    doubts=doubts,
                    slices=[slices[name] for name in names],
                    margins={
                        name: margin_of(dataset, known.slices[name])
                        * seen.get(name, 1.0)
                        for name in names
                    },
                    seen=seen,
                )

    def odds(
        self,
        discordance: float,
        worse: float = 0.0,
        runs: int = MOST_RUNS,
        error: float = 0.0,
    ) -> Odds:
        """Return how runs of a model end that lost ``worse`` margins, by so many runs at most.

        Fewer are simulated once the standard error of all chances is ``error``.
        """
        loss = SimulatedLoss(margins=worse)
        tallies = {}
        randoms = {}
        for name, part in self.datasets.items():
            tallies[name] = Tally(is_certain=not part.is_drawn)
            randoms[name] = _random(discordance, worse, name)
            first_runs = min(runs, FEWEST) if part.is_drawn else 1
            part.simulate(tallies[name], randoms[name], first_runs, discordance, loss)
        odds = Odds(tallies=tallies)
        while True:
            if not any(part.is_drawn for part in self.datasets.values()):
                return odds
            name = odds.least_known()
            if odds.error <= error or tallies[name].runs >= runs:
                return odds
            more = min(AT_ONCE, runs - tallies[name].runs)
            self.datasets[name].simulate(
                tallies[name], randoms[name], more, discordance, loss
            )

    def odds_of_one_worse(
        self, discordance: float, others: Odds
    ) -> tuple[dict[str, Odds], float]:
        """Return how runs end in which one slice alone is worse, by slice; and the error.

        The other data sets are as in ``others``. The error is that of the mean over slices.
        """
        found: dict[str, Odds] = {}
        for name, part in self.datasets.items():
            for slice_ in part.slices:
                if not slice_.can_lose:
                    continue
                tally = Tally()
                random = _random(discordance, ALONE, slice_.name)
                loss = SimulatedLoss(alone=slice_.name)
                part.simulate(tally, random, ALONE_RUNS, discordance, loss)
                found[slice_.name] = Odds(tallies={**others.tallies, name: tally})
        squares = sum(odds.error**2 for odds in found.values())
        return found, math.sqrt(squares) / max(1, len(found))

    def lines(self, shares: Sequence[float], source: str) -> Iterator[str]:
        """Yield how the run may end, a line a model; ``shares`` may differ, as ``source`` says."""
        yield (
            f"odds of all gates together, by up to {MOST_RUNS} simulated runs of each data set "
            f"(seed {SEED}); ± is the 95 % interval"
        )
        models = [(share, 0.0, "unchanged") for share in shares]
        models += [(shares[0], margins, text) for margins, text in LOSSES.items()]
        found = []
        for share, margins, text in models:
            odds = self.odds(share, margins, MOST_RUNS, ERROR)
            found.append(odds)
            codes = codes_text(odds.codes, odds.error)
            yield f"    {codes}: {text}, {100 * share:.2g} % of items differ"
        by_slice, error = self.odds_of_one_worse(shares[0], found[0])
        if len(by_slice) > 1:
            yield _line_of_one_worse(by_slice, error)
        first = found[0]
        blame = ", ".join(f"{name} ({share:.2f})" for name, share in first.blame()[:3])
        yield f"    most often not PASS in the first line: {blame or 'no gate'}"
        for reason, names in first.never_decided().items():
            yield f"    INCONCLUSIVE for all answers: {first_of(names)}; {reason}"
        yield (
            f"    the share that differs is {source}; items change one by one; a margin is that "
            f"of a slice's or its data set's drop gate, else {MARGIN:g}; gates on seconds, tokens "
            "and cost are left out"
        )


def codes_text(codes: Mapping[int, float], error: float) -> str:
    """Return the chances of 0, 1 and 6 in words, with the half of their 95 % interval."""
    chances = ", ".join(
        f"{code} with {codes.get(code, 0.0):.2f}" for code in (OK, FAILED, INCONCLUSIVE)
    )
    half = max(0.01, Z95 * error)
    return f"exit {chances}, ± {half:.2f}"


def _line_of_one_worse(by_slice: Mapping[str, Odds], error: float) -> str:
    codes = {}
    for code in (OK, FAILED, INCONCLUSIVE):
        codes[code] = sum(odds.codes[code] for odds in by_slice.values()) / len(
            by_slice
        )
    passes = {name: odds.codes[OK] for name, odds in by_slice.items()}
    most = max(passes, key=lambda name: passes[name])
    text = f"one language alone worse by {100 * ALONE:.0f} points, another in each run"
    if passes[most]:
        text += f"; most often passed: {most}"
    return f"    {codes_text(codes, error)}: {text}"


def _random(discordance: float, worse: float, name: str) -> Generator:
    import numpy as np

    numbers = [SEED, round(1e6 * discordance), round(1e6 * worse), *name.encode()]
    return np.random.default_rng(numbers)


def _as_read(baseline: Baseline | None) -> Baseline | None:
    """Return an earlier run whose answers the new run reads; as they were graded, for all we know.

    A run reads both sides by its own judge, so that a changed one leaves no gate open.
    """
    if baseline is None or baseline.reading is not None:
        return baseline
    return replace(baseline, reading=Reading(old=tuple(baseline.records)))


def _decided_by_judge(dataset: Dataset) -> Dataset:
    """Return a data set whose audited gates the judge decides, without gates on usage."""

    def decided(gates: Sequence[Threshold]) -> tuple[Threshold, ...]:
        kept = []
        for gate in gates:
            if gate.of_usage:
                continue
            if gate.evidence == "audited":
                kept.append(replace(gate, evidence="confident"))
            else:
                kept.append(gate)
        return tuple(kept)

    slices = {
        language: replace(slice_, thresholds=decided(slice_.thresholds))
        for language, slice_ in dataset.slices.items()
    }
    return replace(dataset, slices=slices, pooled=decided(dataset.pooled))


def _only(run: CountedRun, dataset: Dataset, names: Sequence[str]) -> CountedRun:
    """Return a run of one data set alone."""
    return replace(
        run,
        datasets=(dataset,),
        slices={name: run.slices[name] for name in names},
        records={name: run.records[name] for name in names},
        summaries={name: run.summaries[name] for name in names},
        samples={name: run.samples[name] for name in names},
        judges={name: run.judges[name] for name in names if name in run.judges},
    )


def _read_one_way(
    run: CountedRun, compared: Sequence[Compared], names: Sequence[str]
) -> frozenset[str]:
    """Return the slices that bars read in one way: no setting has changed, no item is new."""
    plain = []
    for name in names:
        side = beside_baseline(compared, name)
        readings = bar_readings(run.slices[name], run.records[name], side)
        if len(readings) == 1 and not readings[0].name:
            plain.append(name)
    return frozenset(plain)


def _sides_only(sides: Compared, names: Sequence[str]) -> Compared:
    return {name: sides[name] for name in names if name in sides}


@dataclass(kw_only=True)
class SimulatedDataset:
    """One data set of a future run: its gates are decided by themselves, again and again."""

    run: CountedRun
    """As known: each simulated run differs from it by what is drawn."""
    compared: Sequence[Compared]
    facts: Facts
    earlier: Sequence[Baseline | None]
    doubts: tuple[str, ...]
    slices: Sequence[SimulatedSlice]
    margins: Mapping[str, float]
    """By slice, as the judge sees them."""
    seen: Mapping[str, float]
    """The share of a true loss that the judge sees, by slice."""

    @property
    def is_drawn(self) -> bool:
        """Whether a model answers it, so that runs differ."""
        return any(slice_.is_answered for slice_ in self.slices)

    def simulate(
        self,
        tally: Tally,
        random: Generator,
        runs: int,
        discordance: float,
        loss: SimulatedLoss,
    ) -> None:
        """Add so many runs to a tally."""
        for _ in range(runs):
            donors = {}
            for slice_ in self.slices:
                lost = loss.margins * self.margins[slice_.name]
                if slice_.name == loss.alone:
                    lost += ALONE * self.seen.get(slice_.name, 1.0)
                if slice_.is_answered:
                    donors[slice_.name] = slice_.draw(random, discordance, lost)
            tally.add(self.decision(donors))

    def decision(self, donors: Mapping[str, Places]) -> Decision:
        """Return how a run ends whose records have the grades of these donors, by slice."""
        records = dict(self.run.records)
        summaries = dict(self.run.summaries)
        samples = dict(self.run.samples)
        judges = dict(self.run.judges)
        for slice_ in self.slices:
            if slice_.name not in donors:
                continue
            name = slice_.name
            drawn = DrawnRecords(slice_.graded_records, donors[name], slice_.columns)
            records[name] = drawn
            samples[name] = tabulate(drawn, slice_.slice_)
            known = summaries[name]
            summary = summarise(
                drawn,
                slice_.slice_,
                known.partial,
                for_gates=True,
                sample=samples[name],
            )
            summaries[name] = replace(
                summary, whole=known.whole, sample=known.sample, note=known.note
            )
            if name in judges:
                judges[name] = replace(judges[name], grades=grades_of(drawn))
        run = replace(
            self.run,
            records=records,
            summaries=summaries,
            samples=samples,
            judges=judges,
        )
        compared = [self._drawn_sides(sides, donors, judges) for sides in self.compared]
        return decision_on(run, compared, self.facts, self.earlier, self.doubts)

    def _drawn_sides(
        self,
        sides: Compared,
        donors: Mapping[str, Places],
        judges: Mapping[str, SliceJudge],
    ) -> Compared:
        drawn = dict(sides)
        for slice_ in self.slices:
            side = sides.get(slice_.name)
            if side is None or slice_.name not in donors:
                continue
            judge = side.judge
            if judge is not None:
                grades = Counter(judges[slice_.name].grades)
                grades.update(grades_in(side.old_column))
                judge = replace(judge, grades=grades)
            of_pairs = slice_.donors_of_pairs(side, donors[slice_.name])
            drawn[slice_.name] = replace(side, donors=of_pairs, judge=judge)
        return drawn


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
    """One slice, asked again and again: each time its records get the grades of others, donors."""

    def __init__(self, slice_: Slice, records: Sequence[Record]) -> None:
        import numpy as np

        self.slice_ = slice_
        self.name = slice_.name
        bar = slice_.pass_bar if slice_.kind.rated else None
        by_gold: dict[str, dict[str, list[int]]] = defaultdict(
            lambda: defaultdict(list)
        )
        self._ungraded: list[tuple[int, str]] = []
        """The place and the gold label of each record without a grade."""
        self._right = np.zeros(len(records), dtype=bool)
        for place, record in enumerate(records):
            gold = gold_of(record, slice_.kind)
            if record.is_graded:
                by_gold[gold][record.result].append(place)
                self._right[place] = bool(record.passes(bar))
            else:
                self._ungraded.append((place, gold))
        self._size = len(records)
        self._groups = [
            [np.array(places) for places in by_result.values()]
            for by_result in by_gold.values()
        ]
        """The places of each gold label, by their outcome."""
        self._of_gold = {
            gold: np.concatenate([np.array(places) for places in by_result.values()])
            for gold, by_result in by_gold.items()
        }
        self._graded = np.array(
            [place for places in self._of_gold.values() for place in places], dtype=int
        )
        self._wrong = [
            (places, places[~self._right[places]]) for places in self._of_gold.values()
        ]
        """The places of each gold label, and those of them that are wrong."""
        self._sides = self._share_that_changes_sides()
        self.is_answered = slice_.kind.answered and bool(len(self._graded))
        """Whether a model answers it, so that runs differ."""
        self.can_lose = (
            self.is_answered
            and bool(self._right.any())
            and any(len(wrong) for _, wrong in self._wrong)
        )
        """Whether a model answers it, rightly and wrongly, so that a loss can be drawn."""
        self.graded_records = self._with_grades(records)
        """The records; those of answers that had none have the grade of some other."""
        self._pairs: dict[int, tuple[Pairing, Places, Places]] = {}

    def _share_that_changes_sides(self) -> float:
        """Return the share of items that would be right once and wrong once in two runs.

        It is the largest that an exchange of outcomes gives: each item takes that of any other
        with its gold label. Of a share p that is right, 2 p (1 - p) change then.
        """
        share = 0.0
        for places, wrong in self._wrong:
            right = 1 - len(wrong) / len(places)
            weight = len(places) / len(self._graded)
            share += weight * 2 * right * (1 - right)
        return share

    def _with_grades(self, records: Sequence[Record]) -> tuple[Record, ...]:
        graded = list(records)
        if self.is_answered:
            for place, gold in self._ungraded:
                donor = int(self._of_gold.get(gold, self._graded)[0])
                graded[place] = graded_like(records[place], records[donor])
        return tuple(graded)

    @cached_property
    def columns(self) -> RecordColumns:
        """The records as columns."""
        return columns_of(self.graded_records, self.slice_)

    def draw(self, random: Generator, discordance: float, loss: float) -> Places:
        """Return the donors of one more run, by place; the judge sees a share ``loss`` lost."""
        import numpy as np

        donors = np.arange(self._size)
        share = min(1.0, discordance / self._sides) if self._sides else 0.0
        for groups in self._groups:
            _exchange(donors, random, groups, share)
        for place, gold in self._ungraded:
            donors[place] = random.choice(self._of_gold.get(gold, self._graded))
        if loss > 0:
            right = int(self._right[donors[self._graded]].sum())
            chance = loss * len(self._graded) / max(1, right)
            for places, wrong in self._wrong:
                if not len(wrong):
                    continue
                is_lost = self._right[donors[places]]
                is_lost &= random.random(len(places)) < chance
                lost = places[is_lost]
                donors[lost] = random.choice(wrong, len(lost))
        return donors

    def donors_of_pairs(self, side: PairedSlice, donors: Places) -> Places:
        """Return the donor of each pair's new record, by the places of pairs."""
        import numpy as np

        record_of_pair, pair_of_record = self._places_of(side.pairing)
        of_pairs = np.arange(len(record_of_pair))
        is_here = record_of_pair >= 0
        of_pairs[is_here] = pair_of_record[donors[record_of_pair[is_here]]]
        return of_pairs

    def _places_of(self, pairing: Pairing) -> tuple[Places, Places]:
        """Return the place of each pair's record, -1 where it has none, and the other way round.

        A record without a pair counts as one of its kind that has one.
        """
        import numpy as np

        known = self._pairs.get(id(pairing))
        if known is not None:
            return known[1], known[2]
        place_of = {
            record.key: place for place, record in enumerate(self.graded_records)
        }
        record_of_pair = np.full(len(pairing.pairs), -1)
        pair_of_record = np.full(self._size, -1)
        for place, pair in enumerate(pairing.pairs):
            record = place_of.get(pair.new.key, -1)
            if pair.state in KNOWN and record >= 0:
                record_of_pair[place] = record
                pair_of_record[record] = place
        kinds = self.columns.column.places
        pair_of_kind: dict[int, int] = {}
        for record in np.flatnonzero(pair_of_record >= 0).tolist():
            pair_of_kind.setdefault(int(kinds[record]), int(pair_of_record[record]))
        for record in np.flatnonzero(pair_of_record < 0).tolist():
            pair_of_record[record] = pair_of_kind.get(int(kinds[record]), 0)
        self._pairs[id(pairing)] = pairing, record_of_pair, pair_of_record
        return record_of_pair, pair_of_record


def _exchange(
    donors: Places, random: Generator, groups: Sequence[Places], share: float
) -> None:
    """Let items of each group take the outcome of others, in place.

    Counts between groups are multinomial over all items, as the records are one run by luck.
    """
    import numpy as np

    if len(groups) < 2:
        return
    sizes = np.array([len(group) for group in groups])
    total = int(sizes.sum())
    rates = share * np.outer(sizes, sizes) / total**2
    np.fill_diagonal(rates, 0.0)
    flat = rates.ravel()
    counts = random.multinomial(total, [*flat, 1 - flat.sum()])[:-1].reshape(
        rates.shape
    )
    for group, row in zip(groups, counts, strict=True):
        targets = random.permutation(np.repeat(np.arange(len(groups)), row))
        targets = targets[: len(group)]
        places = random.permutation(group)[: len(targets)]
        for number, target in enumerate(groups):
            moved = places[targets == number]
            donors[moved] = random.choice(target, len(moved))


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
