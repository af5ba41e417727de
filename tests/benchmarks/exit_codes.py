"""How whole runs of ``cases/simpleqa`` end: ``python -m tests.benchmarks.exit_codes [RUNS]``.

Each run draws both models' true answers, a judge that errs on answers and on the bundled labelled
ones, and is decided by the product's own code: floors, bars, margins and ``rise``, in both parts
and all languages. Nothing of a verdict is written here again.

The truth: the old model is right on ``RIGHT`` of the items, and refuses half of the others. A
share of items differs in the new one, as many lost as won where it is as good. ``ICC`` is how far a
fact goes the same way in all languages (a Gaussian copula). A loss takes right answers of one
language, or of all.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np

from qagate.bundled import BUNDLED_LABELS, CASES
from qagate.cases.dataset import Dataset, PlannedItem, Selection
from qagate.cases.plan import make_plan
from qagate.evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, Outcome, Verdict
from qagate.reports.gates.decide import SessionFacts
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.readings import Reading
from qagate.reports.run.record import Record, make_record
from qagate.reports.verdict.assemble import Facts, ReportInputs, account, decision_of
from tests.benchmarks.common import SEED, show
from tests.support.made_runs import before

RUNS = 1_000
JUDGE = "openai:judge"
FACTS = Facts(
    model="openai:new", judge=JUDGE, session=SessionFacts(), provenance={}, run={}
)
GRADES = (CORRECT, INCORRECT, NOT_ATTEMPTED)
RIGHT = 0.7
"""The share of items that the old model has right."""


@dataclass(frozen=True, kw_only=True)
class World:
    """What is true of two models and a judge."""

    name: str
    differing: float = 0.2
    """The share of items on which the models differ."""
    icc: float = 0.0
    """How far a fact goes the same way in all languages, 0 to 1."""
    judge: float = 0.97
    """The judge is right on this share of each class."""
    judge_in: Mapping[str, float] = field(default_factory=dict)
    """The same where it is another one in a language."""
    loss: float = 0.0
    """The share of all items that the new model gets wrong in place of right."""
    lost_in: str = ""
    """The language that loses; empty where all do."""


class Simulation:
    """Runs of the bundled SimpleQA sets."""

    def __init__(self) -> None:
        files = sorted((CASES / "simpleqa").rglob("dataset.yaml"))
        plan = make_plan(files, Selection())
        self.datasets: tuple[Dataset, ...] = plan.datasets
        self.items: list[PlannedItem] = list(plan.items.values())
        label_plan = make_plan(
            sorted(BUNDLED_LABELS.rglob("dataset.yaml")), Selection()
        )
        rubrics = {_rubric_version(item) for item in self.items}
        self.labels = [
            item
            for item in label_plan.items.values()
            if _rubric_version(item) in rubrics
        ]
        self.label_datasets = label_plan.datasets
        facts = [
            str(item.case.metadata.get("fact_id") or item.key) for item in self.items
        ]
        places = {fact: place for place, fact in enumerate(dict.fromkeys(facts))}
        self._facts = np.array([places[fact] for fact in facts])
        self._records = {
            grade: [self._record(item, grade) for item in self.items]
            for grade in GRADES
        }
        self._label_records = {
            grade: [self._record(item, grade) for item in self.labels]
            for grade in GRADES
        }

    @staticmethod
    def _record(item: PlannedItem, grade: str) -> Record:
        passed = grade == CORRECT
        if item.case.label:
            passed = grade == item.case.label
        outcome = Outcome(
            key=item.key,
            state="passed" if passed else "failed",
            answer="?",
            verdict=Verdict(grade=grade),
            measures={"check_language": 1.0},
            judge=JUDGE,
        )
        return make_record(item, outcome)

    @cached_property
    def _baseline(self) -> Baseline:
        records = self._records[CORRECT]
        inputs = ReportInputs(
            datasets=self.datasets, records=tuple(records), whole=self._whole
        )
        return before(account(inputs, FACTS, None))

    @cached_property
    def _whole(self) -> Mapping[str, int]:
        return Counter(item.slice.name for item in self.items)

    def codes(self, world: World, runs: int) -> Counter[int]:
        """Return how so many runs end, by exit code."""
        random = np.random.default_rng([SEED, *world.name.encode()])
        return Counter(self.code(world, random) for _ in range(runs))

    def code(self, world: World, random: np.random.Generator) -> int:
        """Return the exit code of one run."""
        old, new = self._answers(world, random)
        old_read = self._read(old, self.items, self._records, world, random)
        new_read = self._read(new, self.items, self._records, world, random)
        truth = [item.case.label or CORRECT for item in self.labels]
        labels = self._read(truth, self.labels, self._label_records, world, random)
        baseline = replace(
            self._baseline,
            report=replace(self._baseline.report, records=tuple(old_read)),
            reading=Reading(old=tuple(old_read)),
        )
        inputs = ReportInputs(
            datasets=self.datasets,
            records=tuple(new_read),
            whole=self._whole,
            labels=tuple(labels),
            label_datasets=self.label_datasets,
        )
        return decision_of(inputs, FACTS, baseline, None).code

    def _answers(
        self, world: World, random: np.random.Generator
    ) -> tuple[list[str], list[str]]:
        """Return what both models' answers truly are."""
        is_right = self._normal(world.icc, random) < _quantile(RIGHT)
        drawn = self._normal(world.icc, random)
        is_lost = drawn < _quantile(world.differing / 2 / RIGHT)
        is_won = drawn < _quantile(world.differing / 2 / (1 - RIGHT))
        flips = np.where(is_right, is_lost, is_won)
        is_right_now = is_right ^ flips
        languages = np.array([item.slice.language for item in self.items])
        loses = np.ones(len(self.items), dtype=bool)
        if world.lost_in:
            loses = languages == world.lost_in
        more = random.random(len(self.items)) < world.loss / RIGHT
        is_right_now &= ~(is_right_now & loses & more)
        refuses = random.random(len(self.items)) < 0.5
        refuses_now = np.where(flips, random.random(len(self.items)) < 0.5, refuses)
        return _grades(is_right, refuses), _grades(is_right_now, refuses_now)

    def _normal(self, icc: float, random: np.random.Generator) -> np.ndarray:
        """Return a normal variate for each item, alike within a fact as ``icc`` says."""
        of_fact = random.standard_normal(self._facts.max() + 1)[self._facts]
        own = random.standard_normal(len(self._facts))
        mixed: np.ndarray = np.sqrt(icc) * of_fact + np.sqrt(1 - icc) * own
        return mixed

    @staticmethod
    def _read(
        truth: Sequence[str],
        items: Sequence[PlannedItem],
        records: Mapping[str, Sequence[Record]],
        world: World,
        random: np.random.Generator,
    ) -> list[Record]:
        """Return the records as the judge grades these answers."""
        errs = random.random(len(items))
        other = random.integers(1, len(GRADES), len(items))
        read = []
        for place, item in enumerate(items):
            grade = truth[place]
            right = world.judge_in.get(item.slice.language, world.judge)
            if errs[place] >= right:
                shifted = GRADES.index(grade) + int(other[place])
                grade = GRADES[shifted % len(GRADES)]
            read.append(records[grade][place])
        return read


def _quantile(share: float) -> float:
    return NormalDist().inv_cdf(share)


def _rubric_version(item: PlannedItem) -> str:
    rubric = item.slice.rubric
    return "" if rubric is None else rubric.version


def _grades(is_right: np.ndarray, refuses: np.ndarray) -> list[str]:
    wrong = np.where(refuses, NOT_ATTEMPTED, INCORRECT)
    grades: list[str] = np.where(is_right, CORRECT, wrong).tolist()
    return grades


def worlds() -> Iterator[World]:
    """Yield what is simulated."""
    for icc, who in ((0.0, "the same model again"), (0.3, "another as good, ICC 0.3")):
        for share in (0.1, 0.2, 0.3):
            name = f"{who}, {100 * share:.0f} % differ"
            yield World(name=name, differing=share, icc=icc)
    yield World(name="as good, judge 0.94", judge=0.94)
    yield World(name="as good, judge 0.85 in pl", judge_in={"pl": 0.85})
    yield World(name="pl lost 12 points", loss=0.12, lost_in="pl")
    yield World(name="pl lost 20 points", loss=0.20, lost_in="pl")
    yield World(name="all lost 6 points", loss=0.06)


def lines(runs: int) -> Iterator[str]:
    """Yield how runs end in each world, with the standard error of exit 0."""
    simulation = Simulation()
    for world in worlds():
        codes = simulation.codes(world, runs)
        share = codes[0] / runs
        error = (share * (1 - share) / runs) ** 0.5
        ends = ", ".join(f"{code} in {codes[code] / runs:.3f}" for code in (0, 1, 6))
        yield f"{world.name}: exit {ends} (±{error:.3f}, {runs} runs)"


if __name__ == "__main__":
    show(lines, RUNS)
