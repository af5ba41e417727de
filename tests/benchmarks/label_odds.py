"""How many labels open a language to a good judge: ``python -m tests.benchmarks.label_odds``.

Simulated is a judge that is right on the same share of every label. It is trusted by the
floor of the bundled labels: agreement over all answers, the lower end of its interval, and
Youden's J above 0 with its whole interval. The intervals are the product's.

Labels have the mix of the bundled ones. They stand on a question each, or four on each
question. There a judge may err on each answer for itself, or misread questions: then two
answers to one question are right or wrong together with correlation 0.3 (a beta-binomial).
All five languages are taken to have equal labels and judges that err independently.

Each row has its own random numbers, from the seed and its place, so a row can be computed
alone. Printed is the table of docs/labels.md, as Markdown.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from qagate.bundled import CASES
from qagate.cases.config import load_dataset
from qagate.cases.dataset import DATASET_FILE
from qagate.evaluators.core import CORRECT, GRADES, INCORRECT, NOT_ATTEMPTED
from qagate.evaluators.kinds import JUDGED
from qagate.evaluators.output import markdown_table
from qagate.evaluators.statistics.count_table import CountTable, count_patterns
from qagate.evaluators.statistics.metrics import YOUDEN, Sample
from tests.benchmarks.common import SEED, show

ROUNDS = 4_000
"""Simulated judges a cell; a chance is then known to 0.016 or better (95 %)."""
RIGHT_SHARES = (0.90, 0.94, 0.97, 0.99)
LABELS = (60, 120, 240)
MIX = (CORRECT, CORRECT, INCORRECT, INCORRECT, NOT_ATTEMPTED)
"""Two fifths, two fifths and a fifth, as the bundled labels have them."""
TO_ONE_QUESTION = 4
SHARED = 0.3
"""The correlation of errors on answers to one question."""
LANGUAGES = 5
WRONG_GRADE = {CORRECT: INCORRECT, INCORRECT: CORRECT, NOT_ATTEMPTED: INCORRECT}
"""What a judge says that errs on an answer with this label."""
HEADER = (
    "Labels",
    "Questions",
    "Errors",
    *(f"right on {share:.2f}" for share in RIGHT_SHARES),
)
FLOORS = load_dataset(CASES / "judges" / DATASET_FILE).slices["en"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """So many labels on so many questions; ``correlation`` of errors on one question."""

    labels: int
    questions: int
    correlation: float = 0.0

    @property
    def names(self) -> tuple[str, str, str]:
        """The first cells of its line in the table."""
        errors = "share questions" if self.correlation else "alone"
        return f"{self.labels}", f"{self.questions}", errors


def rows() -> list[Row]:
    """Return the rows of the table."""
    table = []
    for labels in LABELS:
        quarter = labels // TO_ONE_QUESTION
        table.append(Row(labels=labels, questions=labels))
        table.append(Row(labels=labels, questions=quarter))
        table.append(Row(labels=labels, questions=quarter, correlation=SHARED))
    return table


def chance_of_trust(row: Row, right_share: float, rounds: int = ROUNDS) -> float:
    """Return how often a judge right on this share of all answers is trusted in a language."""
    place = rows().index(row), RIGHT_SHARES.index(right_share)
    random = np.random.default_rng([SEED, *place])
    size = (rounds, row.questions)
    shares: npt.NDArray[np.float64] = np.full(size, right_share)
    if row.correlation:
        # The share right on a question varies so that two answers correlate by this much.
        weight = 1 / row.correlation - 1
        shares = random.beta(weight * right_share, weight * (1 - right_share), size)
    each = row.labels // row.questions
    is_right = random.random((*size, each)) < shares[..., np.newaxis]
    trusted = 0
    for judged in is_right:
        trusted += is_trusted(_patterns(judged))
    return trusted / rounds


Pattern = tuple[tuple[str, bool], ...]
"""The answers to one question: the label of each, and whether it was graded as labelled."""


def _patterns(is_right: npt.NDArray[np.bool_]) -> frozenset[tuple[Pattern, int]]:
    """Return which patterns the questions have, each with the number of such questions."""
    counts: Counter[Pattern] = Counter()
    answer = 0
    for question in is_right:
        pattern = []
        for right in question:
            pattern.append((MIX[answer % len(MIX)], bool(right)))
            answer += 1
        counts[tuple(sorted(pattern))] += 1
    return frozenset(counts.items())


@cache
def is_trusted(questions: frozenset[tuple[Pattern, int]]) -> bool:
    """Return whether the floor trusts a judge with these patterns of right and wrong grades."""
    clusters = []
    for pattern, count in questions:
        cells = []
        for label, right in pattern:
            grade = label if right else WRONG_GRADE[label]
            cells.append((GRADES.index(label), GRADES.index(grade)))
        clusters += [cells] * count
    patterns, items = count_patterns(clusters, (len(GRADES), len(GRADES)))
    table = CountTable(counts=patterns, golds=GRADES, outcomes=GRADES)
    clustered = any(len(cells) > 1 for cells in clusters)
    sample = Sample(kind=JUDGED, patterns=table, items=items, clustered=clustered)
    found = sample.estimates(("agreement", YOUDEN))
    agreement = found["agreement"]
    youden = found[YOUDEN]
    return (
        (agreement.value or 0.0) >= FLOORS.floor["agreement"]
        and (agreement.low or 0.0) >= FLOORS.floor_limit["agreement"]
        and (youden.low or 0.0) > 0
    )


def cell(row: Row, right_share: float, rounds: int = ROUNDS) -> str:
    """Return the chance of trust in a language, and in all five."""
    in_one = chance_of_trust(row, right_share, rounds)
    return f"{in_one:.2f} / {in_one**LANGUAGES:.2f}"


def lines(rounds: int) -> Iterator[str]:
    """Yield the lines of the table."""
    heading, rule = markdown_table(HEADER, [])
    yield heading
    yield rule
    for row in rows():
        chances = [cell(row, right_share, rounds) for right_share in RIGHT_SHARES]
        yield markdown_table(HEADER, [[*row.names, *chances]])[-1]


if __name__ == "__main__":
    show(lines, ROUNDS)
