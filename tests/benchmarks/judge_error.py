"""What a judge's errors do to a drop gate: ``python -m tests.benchmarks.judge_error``.

Simulated are models that are truly worse by exactly the margin, and unchanged ones. A world says
what right and wrong answers and refusals turned into, and how a judge grades each class. The judge
grades both answers of a pair, each for itself, and the labelled answers. A gate passes if both
hold: the two errors combined with J of the class that the judge keeps least, and the change that is
corrected class by class. For comparison stands what each would let pass alone, and what passes if
the grades are believed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from qagate.evaluators.core import CORRECT, GRADES
from qagate.evaluators.output import aligned_table
from qagate.evaluators.statistics.misclassification import (
    ClassRow,
    Confusion,
    GradeChange,
    GradeChanges,
    allowed_by_youden,
    borrowed,
    corrected_change,
)
from qagate.evaluators.statistics.paired import tango
from tests.benchmarks.common import SEED, show

Shares = tuple[float, float, float]
"""Of CORRECT, INCORRECT and NOT_ATTEMPTED."""

CELLS = tuple(GradeChange("s", old, new) for old in GRADES for new in GRADES)
EACH_ALONE = np.eye(len(CELLS))


def errs_by(share: float) -> tuple[Shares, Shares, Shares]:
    """Return a judge that takes right answers for wrong, and the others for right, so often."""
    right = 1 - share
    return (right, share, 0.0), (share, right, 0.0), (share, 0.0, right)


def misses(share: float, *, of_right: float = 0.0) -> tuple[Shares, Shares, Shares]:
    """Return a judge that lets a share of the wrong answers pass, and sees every refusal."""
    return (1 - of_right, of_right, 0.0), (share, 1 - share, 0.0), (0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What truly changed between two models, and who graded them."""

    name: str
    pairs: int
    judge: tuple[Shares, Shares, Shares]
    """How each class is graded."""
    labels: tuple[int, int, int]
    """Labelled answers of each class."""
    old: Shares
    """What the old answers truly are."""
    moved: tuple[tuple[int, int, float], ...]
    """From which class to which, and the share of all answers."""
    bundled: tuple[int, int, int] = (0, 0, 0)
    """Labels that are borrowed, by a judge right on 0.97 of each class."""

    @property
    def joint(self) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        """The true shares of pairs, by old and by new class."""
        joint = np.diag(np.array(self.old, dtype=np.float64))
        for before, now, share in self.moved:
            joint[before, before] -= share
            joint[before, now] += share
        return joint

    @property
    def loss(self) -> float:
        """By how much the new model is truly worse."""
        joint = self.joint
        return float(joint[0, 1:].sum() - joint[1:, 0].sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """The share of rounds that pass."""

    both: float
    by_youden: float
    by_class: float
    believed: float


def passes(
    world: World, margin: float, rounds: int, random: np.random.Generator
) -> Passes:
    """Return how often a gate with this margin passes in a world."""
    judge = np.array(world.judge)
    judged = (judge.T @ world.joint @ judge).ravel()
    counts = np.zeros(4)
    for _ in range(rounds):
        confusion = _confusion(world, random)
        table = random.multinomial(world.pairs, judged)
        by_youden, believed = _by_youden(table, margin, confusion)
        by_class = _by_class(table, margin, confusion)
        counts += [by_youden and by_class, by_youden, by_class, believed]
    both, by_youden, by_class, believed = (counts / rounds).tolist()
    return Passes(both=both, by_youden=by_youden, by_class=by_class, believed=believed)


def _confusion(world: World, random: np.random.Generator) -> Confusion:
    """Return what fresh labels show of the judge."""
    rows = []
    for place, shares in enumerate(world.judge):
        own = _row(random.multinomial(world.labels[place], shares))
        if not world.bundled[place] or own.labels >= 30:
            rows.append(own)
            continue
        lent = _row(random.multinomial(world.bundled[place], errs_by(0.03)[place]))
        columns = [0] if place == 0 else [1, 2]
        rows.append(borrowed(own, lent, columns) if own.labels else lent)
    return Confusion(classes=GRADES, inner=frozenset({CORRECT}), rows=tuple(rows))


def _row(counts: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> ClassRow:
    labels = int(counts.sum())
    shares = counts / max(1, labels)
    return ClassRow(shares=tuple(shares.tolist()), labels=labels, size=float(labels))


def _by_youden(
    table: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    margin: float,
    confusion: Confusion,
) -> tuple[bool, bool]:
    """Return whether the first condition holds, and whether it would for a judge without errors."""
    pairs = int(table.sum())
    fixed, broke = int(table[[3, 6]].sum()), int(table[[1, 2]].sum())
    low, _ = tango(fixed, broke, pairs) or (-1.0, 1.0)
    value = (fixed - broke) / pairs
    allowed = allowed_by_youden(value, low, margin, confusion.youden())
    return allowed, low > -margin


def _by_class(
    table: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    margin: float,
    confusion: Confusion,
) -> bool:
    changes = GradeChanges(
        cells=CELLS, counts=EACH_ALONE, clusters=table.astype(np.float64)
    )
    corrected = corrected_change(changes, {"s": confusion})
    return corrected is not None and corrected.is_above(-margin)


LOST_RIGHT_ONES = ((0, 1, 0.1),)
"""A tenth of the answers was right and is confidently wrong."""
REFUSALS_TURNED = ((0, 2, 0.1), (2, 1, 0.2))
"""A tenth was right and is refused, and a fifth was refused and is confidently wrong."""
WORLDS = (
    World(
        name="many refusals labelled, 0.5 caught",
        pairs=2_000,
        judge=misses(0.5),
        labels=(300, 50, 250),
        old=(0.8, 0.2, 0.0),
        moved=LOST_RIGHT_ONES,
    ),
    World(
        name="many refusals labelled, 0.8 caught",
        pairs=340,
        judge=misses(0.2),
        labels=(300, 50, 250),
        old=(0.8, 0.2, 0.0),
        moved=LOST_RIGHT_ONES,
    ),
    World(
        name="refusals turned wrong, 0.5 caught",
        pairs=2_000,
        judge=misses(0.5),
        labels=(300, 50, 250),
        old=(0.6, 0.1, 0.3),
        moved=REFUSALS_TURNED,
    ),
    World(
        name="refusals turned wrong, 0.8 caught",
        pairs=2_000,
        judge=misses(0.2, of_right=0.03),
        labels=(80, 80, 45),
        old=(0.6, 0.1, 0.3),
        moved=REFUSALS_TURNED,
    ),
    World(
        name="refusals turned wrong, 0.9 caught",
        pairs=4_326,
        judge=misses(0.1, of_right=0.03),
        labels=(80, 80, 45),
        old=(0.6, 0.1, 0.3),
        moved=REFUSALS_TURNED,
    ),
    World(
        name="bundled labels, right on 0.97",
        pairs=340,
        judge=errs_by(0.03),
        labels=(80, 80, 45),
        old=(0.6, 0.3, 0.1),
        moved=((0, 1, 0.15), (1, 0, 0.05)),
    ),
    World(
        name="20 own labels, right on 0.87",
        pairs=340,
        judge=errs_by(0.13),
        labels=(20, 20, 20),
        old=(0.6, 0.3, 0.1),
        moved=((0, 1, 0.15), (1, 0, 0.05)),
        bundled=(80, 80, 45),
    ),
)
"""In each the new model is worse by exactly 0.1."""


def unchanged(world: World) -> World:
    """Return a world in which as many answers moved either way between right and wrong."""
    return replace(world, moved=((0, 1, 0.1), (1, 0, 0.1)), old=(0.6, 0.3, 0.1))


def lines(rounds: int) -> Iterator[str]:
    """Yield how often a model worse by the margin passes, and an unchanged one."""
    random = np.random.default_rng(SEED)
    head = ("world", "pairs", "both", "by J", "by class", "believed", "unchanged")
    rows: list[Sequence[str]] = [head]
    highest = 0.0
    for world in WORLDS:
        worse = passes(world, world.loss, rounds, random)
        same = passes(unchanged(world), world.loss, rounds, random)
        highest = max(highest, worse.both)
        figures = (
            worse.both,
            worse.by_youden,
            worse.by_class,
            worse.believed,
            same.both,
        )
        rows.append(
            (world.name, f"{world.pairs}", *(f"{100 * share:.2f}" for share in figures))
        )
    yield f"seed {SEED}, {rounds:,} rounds a row; passes in percent"
    yield from aligned_table(rows)
    yield f"highest chance that a model worse by the margin passes: {100 * highest:.2f} %"


if __name__ == "__main__":
    show(lines, 20_000)
