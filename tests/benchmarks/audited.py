"""What a drop gate decides from people's verdicts: ``python -m tests.benchmarks.audited [SHARED]``.

Simulated are 1,000 items, their two answers, whether people let each pass, and a judge that errs on
a share of the answers, each for itself (one judge errs 10 points more often on wrong answers of the
new model alone). Pairs are looked at by the plan: never where both answers are the same text,
always where the judge sees a difference, else with a probability of 0.25 or 0.5. A model that is
worse by exactly the margin must not pass, looked at after every label; the figures are shares of
the rounds. In some rows four items are one fact, on which a model is right or wrong as a whole.

With the shared folder, real answers of two models are decided as well: published grades stand for
people, and the rules of the lexical judge are the judge.
"""

import csv
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evaluators.core import CORRECT, Case
from evaluators.judges.adjudicated import Adjudication, answer_digest
from evaluators.judges.lexical.judge import grade
from evaluators.statistics.betting import ENOUGH, Observations, log_capital
from reports.compare.audit import Audit, audit_of
from reports.compare.pairs import PairedSlice, pair_records
from reports.run.record import Record
from tests.benchmarks.labelled import LETTERS
from tests.support.made_records import make_record, make_slice

Array = npt.NDArray[np.float64]

SEED = 20261122
ROUNDS = 2000
ITEMS = 1000
SHARE = 0.25
MARGINS = (0.10, 0.05)
GRADES = Path("data") / "simpleqa_graded_cs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A judge that is right on a share ``quality`` of all answers, and two models.

    ``fooled`` is by how much less often it sees that an answer of the new model is wrong. ``drop``
    is by how much the new model is worse; on ``discordance`` of the items the two differ, and on
    ``alike`` of them they give the same text. ``size`` items are one fact, on all of which a model
    is right or wrong alike. ``share`` of the pairs that nothing speaks for are looked at.
    """

    quality: float
    fooled: float = 0.0
    drop: float = 0.0
    discordance: float = 0.10
    alike: float = 0.30
    right: float = 0.75
    size: int = 1
    share: float = SHARE


JUDGES = (
    Situation(quality=0.98),
    Situation(quality=0.90),
    Situation(quality=0.80),
    Situation(quality=0.90, fooled=0.10),
)


LINKED = (
    Situation(quality=0.90, share=0.5),
    Situation(quality=0.90, size=4),
    Situation(quality=0.90, size=4, share=0.5),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """Weighed differences of each fact in each round, and how many of its pairs were looked at."""

    values: Array
    looked: Array


def looks_of(one: Situation, rounds: int, random: np.random.Generator) -> Looks:
    """Return what people find who look where the plan sends them."""
    shape, facts = (rounds, ITEMS), (rounds, ITEMS // one.size)
    # Of a fact: same text, then broke, then unchanged, then fixed.
    kind = np.repeat(random.random(facts), one.size, axis=1)
    right = np.repeat(random.random(facts) < one.right, one.size, axis=1)
    same = kind < one.alike
    broke = ~same & (kind < one.alike + (one.discordance + one.drop) / 2)
    fixed = kind >= 1 - (one.discordance - one.drop) / 2
    old, new = (right | broke) & ~fixed, (right | fixed) & ~broke
    slips = random.random(shape) >= one.quality - np.where(new, 0.0, one.fooled)
    judged_old = old ^ (random.random(shape) >= one.quality)
    judged_new = np.where(same, judged_old, new ^ slips)
    chance = np.where(same, 0.0, np.where(judged_old != judged_new, 1.0, one.share))
    looked = random.random(shape) < chance
    truth = new.astype(np.float64) - old
    values = np.divide(truth, chance, out=np.zeros(shape), where=looked)
    parts = (*facts, one.size)
    return Looks(values=values.reshape(parts).sum(axis=2), looked=looked.reshape(parts).sum(axis=2))


def first_pass(values: Array, margin: float, one: Situation) -> int | None:
    """Return how many facts it took until the gate passed, None where it never did."""
    sizes = np.full(len(values), float(one.size))
    seen = Observations(totals=values, sizes=sizes, bound=1 / one.share, largest=one.size)
    above = log_capital(seen, -margin) >= np.log(ENOUGH)
    return int(above.argmax()) + 1 if above.any() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How often the gate passed, and how many pairs were looked at: the median of all rounds."""

    passed: float
    looked: float


def outcome_of(one: Situation, margin: float, rounds: int, random: np.random.Generator) -> Outcome:
    """Return how the gate of this margin ends."""
    looks = looks_of(one, rounds, random)
    ends = [first_pass(values, margin, one) for values in looks.values]
    counts = [row[:end].sum() for row, end in zip(looks.looked, ends, strict=True)]
    passed = np.mean([end is not None for end in ends])
    return Outcome(passed=float(passed), looked=float(np.median(counts)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Real:
    """Two models on real items: the gate's verdict, and after how many of the pairs."""

    old: str
    new: str
    margin: float
    truth: float
    judged: float
    state: str
    looked: int
    pairs: int


def real(folder: Path, margins: tuple[float, ...] = MARGINS) -> Iterator[Real]:
    """Yield every ordered pair of the models that are graded in a folder."""
    models = {path.stem: run_of(path) for path in sorted(folder.glob("*-20*.csv"))}
    for (old, before), (new, after) in permutations(models.items(), 2):
        people = {**before[1], **after[1]}
        pairing = pair_records(after[0], before[0])
        side = PairedSlice(slice_=make_slice("graded"), pairing=pairing, people=people)
        audit = audit_of([side], SHARE)
        for margin in margins:
            state, looked = decided(audit, margin)
            yield Real(
                old=old,
                new=new,
                margin=margin,
                truth=mean_of([bool(one.new) - bool(one.old) for one in audit.pairs]),
                judged=mean_of([one.plan.judged for one in audit.pairs]),
                state=state,
                looked=looked,
                pairs=len(pairing.pairs),
            )


def mean_of(values: list[int]) -> float:
    """Return the mean of the pairs' differences."""
    return sum(values) / len(values)


def run_of(path: Path) -> tuple[list[Record], dict[str, Adjudication]]:
    """Return a model's answers as the lexical judge sees them, and the published grades."""
    records, people = [], {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            record = judged(row)
            digest = answer_digest(record, record.answer or "")
            records.append(record)
            people[digest] = Adjudication(
                item=record.key, digest=digest, label=LETTERS[row["Grade"]], name="published"
            )
    return records, people


def judged(row: dict[str, str]) -> Record:
    """Return a row as a run of the lexical judge would record it."""
    number, question, answer = int(row["simpleqa_row"]), row["Question"], row["Predicted answers"]
    case = Case(
        id=str(number),
        dataset="d",
        language="cs",
        row=number,
        question=question,
        golds=(row["Answers"],),
    )
    verdict = grade(case, answer)
    return make_record(
        number,
        language="cs",
        question=question,
        answer=answer,
        grade=verdict.grade,
        outcome="passed" if verdict.grade == CORRECT else "failed",
        digest=case.digest,
    )


def decided(audit: Audit, margin: float) -> tuple[str, int]:
    """Return the verdict, and how many pairs had been looked at by then."""
    looked = 0
    for looked, passes, fails in audit.growth(margin, -margin):
        if max(passes, fails) >= np.log(ENOUGH):
            return "PASS" if passes > fails else "FAIL", looked
    return "INCONCLUSIVE", looked


def main() -> int:
    """Print the simulated figures, then those of real answers where they are there."""
    say = sys.stdout.write
    random = np.random.default_rng(SEED)
    say(f"seed {SEED}, {ROUNDS:,} rounds of {ITEMS:,} items; passes in percent\n")
    say(f"{'margin':>6} {'judge':>6} {'fooled':>6} {'share':>6} {'a fact':>6} ")
    say(f"{'worse by margin':>16} {'unchanged':>10} {'pairs looked at (median)':>26}\n")
    for margin in MARGINS:
        for judge in (*JUDGES, *LINKED):
            worse = replace(judge, drop=margin)
            wrong, power = (outcome_of(one, margin, ROUNDS, random) for one in (worse, judge))
            say(f"{margin:>6.2f} {judge.quality:>6.2f} {judge.fooled:>6.2f} {judge.share:>6.2f} ")
            say(f"{judge.size:>6} {100 * wrong.passed:>16.2f} {100 * power.passed:>10.1f} ")
            say(f"{power.looked:>26.0f}\n")
    folder = Path(sys.argv[1]) / GRADES if len(sys.argv) > 1 else None
    for one in real(folder) if folder else ():
        share = 100 * one.looked / one.pairs
        say(f"{one.old} -> {one.new}, margin {one.margin:.2f}: truly {one.truth:+.3f}, ")
        say(f"judged {one.judged:+.3f}: {one.state} after {one.looked} of {one.pairs:,} pairs ")
        say(f"({share:.1f} %)\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
