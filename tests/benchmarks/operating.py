"""How right a dry run's chances are: ``python -m tests.benchmarks.operating``.

The chances that ``--dry-run`` shows, from the baseline's records alone, next to the exits of runs
that are drawn by code of its own from a truth that it cannot see. There every item has chances of
its own for each outcome (Dirichlet), from which each run draws it by itself; so much do they differ
from item to item that two runs of one model differ in the given share of items. In files of paired
gates the baseline is drawn anew for each run, from the same chances; where bars stand on one run,
it is the one baseline that the user has, and the chances are drawn from what is left open by it.
A worse model gets each of its right answers wrong with the chance that makes up the loss. The exits
are those of the product's own gates over the records drawn.

Then, for each bundled data set: how often its gates FAIL a model that did not change, and one that
is worse by 10 and by 20 points in every language, with the recorded answers as the baseline.
"""

import asyncio
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from qagate.cases.config import load_gates, with_gates
from qagate.cases.dataset import Dataset, Selection, Slice
from qagate.cases.plan import make_plan
from qagate.cases.tasks import make_tasks
from qagate.evaluators.runtime.forecast import NOTHING_KEPT, known_outcome
from qagate.reports.extras.odds.odds import Simulation, margin_of, seen_by_judge
from qagate.reports.gates.decide import SessionFacts
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.record import Record, make_record
from qagate.reports.run.report import Decision
from qagate.reports.verdict.assemble import (
    CountedRun,
    Facts,
    ReportInputs,
    account,
    count_run,
    decision_of,
)
from tests.benchmarks.common import ROOT, SEED, Array
from tests.support.judging import judges
from tests.support.made_runs import (
    answered,
    before,
    facts_dataset,
    graded_slice,
    with_records,
)
from tests.support.tables import kept

RUNS = 2500
RUNS_OF_ALL = 1000  # of the bundled data sets, which take longer
RUNS_OF_CHANGES = 400
DISCORDANCE = 0.1
SHARES = {"c": 0.62, "i": 0.25, "n": 0.13}
ITEMS = 60
LOSSES = (0.0, 0.5, 1.0)
RESULT = ("outcome", "grade", "rating", "score")
CHANGES = ((0.05, 0.0), (0.1, 0.0), (0.1, 0.1), (0.1, 0.2))
FILES = kept(__file__, "files")


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run as it stands: what is declared, its records, and itself as a baseline."""

    datasets: tuple[Dataset, ...]
    records: tuple[Record, ...]
    baseline: Baseline | None

    @cached_property
    def known(self) -> CountedRun:
        """These very records, counted; their labels are judged alike in every draw."""
        return count_run(self.inputs, self.records, FACTS.judge, for_gates=True)

    @cached_property
    def inputs(self) -> ReportInputs:
        """What the product is given."""
        names = Counter(f"{one.dataset}:{one.language}" for one in self.records)
        return ReportInputs(datasets=self.datasets, records=self.records, whole=names)

    def decide(self, records: Sequence[Record], old: Sequence[Record] = ()) -> Decision:
        """Return how other records are decided against the baseline, or against these old ones."""
        baseline = self.baseline
        if baseline and old:
            baseline = with_records(baseline, old)
        inputs = replace(self.inputs, records=tuple(records))
        return decision_of(inputs, FACTS, baseline, known=self.known)


FACTS = Facts(model="m", judge="lexical", session=SessionFacts(), provenance={}, run={})


def made_run(datasets: tuple[Dataset, ...], records: tuple[Record, ...]) -> Run:
    """Return the run of these records, compared with itself."""
    run = Run(datasets=datasets, records=records, baseline=None)
    return replace(run, baseline=before(account(run.inputs, FACTS, None)))


def of_file(text: str) -> Run:
    """Return a run of two made-up languages with the gates of this file."""
    slices = [graded_slice(language) for language in ("en", "bg")]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "gates.yaml"
        path.write_text("replace: all\n" + text, encoding="utf-8")
        dataset = with_gates(
            facts_dataset(*slices, judge_unmeasured=True), load_gates(path)
        )
    letters = [
        letter for letter, share in SHARES.items() for _ in range(round(share * ITEMS))
    ]
    random = np.random.default_rng(SEED)  # the languages know different facts
    drawn = ("".join(random.permutation(letters)) for _ in slices)
    runs = (
        answered(own, s.language, judge="lexical")
        for own, s in zip(drawn, slices, strict=True)
    )
    return made_run((dataset,), tuple(chain.from_iterable(runs)))


def bundled() -> Run:
    """Return the run of the bundled recorded answers, by rules.

    Attacks that the rules do not withstand are left out.
    """
    files = (
        one
        for one in (ROOT / "cases").rglob("dataset.yaml")
        if one.parent.name not in ("attacks_eba", "gold_inside")
    )
    plan = make_plan(sorted(files), Selection())
    tasks = make_tasks(plan.items.values(), None, judges("lexical"))

    async def records() -> tuple[Record, ...]:
        found = [
            (key, await known_outcome(task, NOTHING_KEPT))
            for key, task in tasks.items()
        ]
        return tuple(make_record(plan.items[key], outcome) for key, outcome in found)

    return made_run(plan.datasets, asyncio.run(records()))


class Truth(NamedTuple):
    """The items of one slice with one gold label, as a model's true chances have them.

    ``outcomes`` are the results that occur, each with a record that has it; ``right`` says which of
    them pass. ``first`` has the baseline's outcome of each item.
    """

    places: list[int]
    outcomes: list[Record]
    right: Array
    first: Array

    def chances(
        self, random: np.random.Generator, share: float, *, known: bool
    ) -> Array:
        """Return the chances of each item (row) of each outcome; given its first one, or not."""
        spread = share / (1 - share)
        counts = self.first.sum(axis=0)
        mean = random.dirichlet(counts) if known else counts / counts.sum()
        weights = spread * mean + (self.first if known else 0.0)
        drawn = random.standard_gamma(np.broadcast_to(weights, self.first.shape))
        drawn += 1e-300  # of a tiny weight all may be zero
        found: Array = drawn / drawn.sum(axis=1, keepdims=True)
        return found

    def draw(
        self, random: np.random.Generator, chances: Array, loss: float
    ) -> list[Record]:
        """Return the outcome of each item in one run of a model that loses so many right ones."""
        ends = chances.cumsum(axis=1)
        found = (random.random((len(ends), 1)) > ends[:, :-1]).sum(axis=1)
        wrong = self.first.sum(axis=0) * (1 - self.right)
        lost = self.right[found].astype(bool) & (random.random(len(found)) < loss)
        found[lost] = random.choice(
            len(wrong), p=wrong / wrong.sum(), size=int(lost.sum())
        )
        return [self.outcomes[one] for one in found]


def truths(run: Run, slice_: Slice) -> Iterator[Truth]:
    """Yield the items of a slice by gold label."""
    bar = slice_.pass_bar if slice_.kind.rated else None
    groups: dict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(run.records):
        if (one.dataset, one.language) == (slice_.dataset, slice_.language):
            groups[(one.label or "") if slice_.kind.has_labels else ""].append(place)
    for places in groups.values():
        own = [run.records[place] for place in places]
        kinds = {one.result: one for one in own}
        first = np.array([[float(one.result == kind) for kind in kinds] for one in own])
        right = np.array([float(bool(one.passes(bar))) for one in kinds.values()])
        yield Truth(
            places=places, outcomes=list(kinds.values()), right=right, first=first
        )


class Model(NamedTuple):
    """The model under test in one slice: ``share`` of an item's chances are those of all items."""

    truths: tuple[Truth, ...]
    share: float
    rate: float


def models(run: Run, discordance: float) -> dict[str, Model]:
    """Return the model in each answered slice such that so many items differ between two runs."""
    found = {}
    for slice_ in (one for dataset in run.datasets for one in dataset.slices.values()):
        own = tuple(truths(run, slice_)) if slice_.kind.answered else ()
        if own:
            sizes = np.array([len(one.places) for one in own])
            rates = np.array([(one.first @ one.right).mean() for one in own])
            sides = float((sizes * 2 * rates * (1 - rates)).sum() / sizes.sum())
            rate = float((sizes * rates).sum() / sizes.sum())
            if sides:  # where every answer is right there is no other to draw from
                share = min(0.99, discordance / sides)
                found[slice_.name] = Model(truths=own, share=share, rate=rate)
    return found


def drawn_runs(
    run: Run, discordance: float, losses: Mapping[str, float], *, known: bool, runs: int
) -> Iterator[tuple[list[Record], list[Record]]]:
    """Yield the records of so many runs of a model, and those of the baseline before each.
    ``losses`` are the points that it lost, by slice. The baseline is the run's own where it is
    ``known``, and drawn from the same chances where it is not."""
    random = np.random.default_rng(
        [SEED, round(1000 * discordance), round(1000 * sum(losses.values()))]
    )
    slices = models(run, discordance)
    for _ in range(runs):
        new, old = list(run.records), list(run.records)
        for name, model in slices.items():
            for truth in model.truths:
                chances = truth.chances(random, model.share, known=known)
                lost = min(1.0, losses.get(name, 0.0) / model.rate)
                for records, loss in (
                    [(new, lost)] if known else [(old, 0.0), (new, lost)]
                ):
                    drawn = truth.draw(random, chances, loss)
                    for place, like in zip(truth.places, drawn, strict=True):
                        result = {name: getattr(like, name) for name in RESULT}
                        records[place] = replace(records[place], **result)
        yield new, old


class Row(NamedTuple):
    """One model with one gates file: the share of runs by exit code, predicted and drawn."""

    file: str
    loss: float
    predicted: Mapping[int, float]
    drawn: Mapping[int, float]

    @property
    def miss(self) -> float:
        """By how much the prediction is off at most."""
        codes = {*self.predicted, *self.drawn}
        return max(
            abs(self.predicted.get(one, 0.0) - self.drawn.get(one, 0.0))
            for one in codes
        )

    def __str__(self) -> str:
        sides = (self.predicted, self.drawn)
        pairs = (
            " ".join(f"{one.get(code, 0.0):.3f}" for one in sides) for code in (0, 1, 6)
        )
        return f"{self.file:<28} {self.loss:>5.1f}  {'  '.join(pairs)}  {self.miss:.3f}"


def rows(file: str, run: Run, *, known: bool, runs: int = RUNS) -> Iterator[Row]:
    """Yield a row for each model: unchanged, and worse by half, one and two margins."""
    simulation, seen = (
        Simulation(run.inputs, FACTS, run.baseline),
        seen_by_judge(run.known),
    )
    for loss in LOSSES:
        losses = {
            slice_.name: loss * margin_of(dataset, slice_) * seen.get(slice_.name, 1.0)
            for dataset in run.datasets
            for slice_ in dataset.slices.values()
        }
        drawn = drawn_runs(run, DISCORDANCE, losses, known=known, runs=runs)
        codes = Counter(
            run.decide(new, () if known else old).code for new, old in drawn
        )
        yield Row(
            file=file,
            loss=loss,
            predicted=simulation.odds(DISCORDANCE, loss, runs).codes,
            drawn={code: count / runs for code, count in codes.items()},
        )


def failures(
    run: Run, discordance: float, points: float, runs: int
) -> Mapping[str, float]:
    """Return the share of runs that end in each exit code, and that FAIL gates of each data set. A
    data set's name stands for all its gates, with ``bars`` after it for those on one run alone."""
    losses = dict.fromkeys(models(run, discordance), points)
    found: Counter[str] = Counter()
    for new, _ in drawn_runs(run, discordance, losses, known=True, runs=runs):
        decision = run.decide(new)
        failed = [gate for gate in decision.gates if gate.state == "FAIL"]
        found[f"exit {decision.code}"] += 1
        found.update({gate.dataset for gate in failed})
        bars = {f"{gate.dataset} bars" for gate in failed if not gate.threshold.paired}
        found.update({*bars, "any bars"} if bars else ())
    return {name: count / runs for name, count in sorted(found.items())}


def main(parts: Sequence[str]) -> int:
    """Print how right the chances are, then what the bundled gates do; or the parts named."""
    say = partial(print, flush=True)
    runs = f"{RUNS} runs of each model ({RUNS_OF_ALL} and {RUNS_OF_CHANGES} of bundled data)"
    say(f"{runs}, {DISCORDANCE:.0%} of items differ, seed {SEED}")
    say("margins lost; exits 0, 1 and 6, each predicted and drawn; largest miss")
    bundle = bundled()
    for name, text in FILES.items():
        for row in (
            rows(name, of_file(text), known="bars" in name) if name in parts else ()
        ):
            say(row)
    for row in (
        rows("bundled", bundle, known=True, runs=RUNS_OF_ALL)
        if "bundled" in parts
        else ()
    ):
        say(row)
    for share, points in CHANGES if "gates" in parts else ():
        found = failures(bundle, share, points, RUNS_OF_CHANGES)
        each = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
        say(f"bundled gates, {share:.0%} differ, {points:.0%} worse: {each}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or [*FILES, "bundled", "gates"]))
