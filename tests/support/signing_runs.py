"""Runs that a person has to sign: two releases over the bundled questions, by a scripted judge.

Nothing is asked. An answer is the question's own gold, another question's gold, or a refusal, as a
generator with a fixed seed says, and the judge errs on three of a hundred answers and labels.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from qagate.bundled import EVALUATORS
from qagate.cases.config import load_dataset
from qagate.cases.dataset import Dataset, Slice
from qagate.cases.loading import load_cases
from qagate.evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, Case
from qagate.evaluators.kinds import MARKS
from qagate.reports.gates.decide import SessionFacts
from qagate.reports.run.record import Record
from qagate.reports.run.report import Report
from qagate.reports.verdict.assemble import Facts, ReportInputs, account
from tests.support.made_records import BLANK
from tests.support.made_runs import as_read, before

CASES = EVALUATORS.parent / "cases"
REFUSALS = {
    "en": "I do not know.",
    "bg": "Не знам.",
    "pl": "Nie wiem.",
    "hu": "Nem tudom.",
    "be": "Не ведаю.",
}
SENTENCES = {
    "en": "It was {}.",
    "bg": "Това е {}.",
    "pl": "Było to {}.",
    "hu": "Ez {} volt.",
    "be": "Гэта {}.",
}
RIGHT = 0.94
REFUSED = 0.2
"""The share of the answers that are not right."""
FLIPPED = 0.02
"""The share of answers that differ between two runs of one model."""
JUDGE_ERRS = 0.03
SECONDS_AN_ANSWER = 0.4
USD_AN_ANSWER = 0.006


@dataclass(frozen=True, kw_only=True)
class Release:
    """A model under test."""

    name: str
    seed: int
    lost: Mapping[str, float]
    """The share of right answers that it loses, by language."""


OLD = Release(name="openai:assistant-2026-05", seed=1, lost={})
FAILING = Release(name="openai:assistant-2026-11", seed=2, lost={"pl": 0.25})
OPEN = Release(name="openai:assistant-2026-11-rc2", seed=3, lost={"pl": 0.09})
PASSING = Release(name="openai:assistant-2026-11-rc3", seed=4, lost={})


def signing_run(release: Release, baseline: Report | None = None) -> Report:
    """Return the report of a release over ``cases/simpleqa``, beside another one's."""
    dataset = load_dataset(CASES / "simpleqa/dataset.yaml")
    judges = load_dataset(CASES / "judges/dataset.yaml")
    slices = {name: one for name, one in dataset.slices.items() if name in REFUSALS}
    dataset = replace(dataset, slices=slices)
    records = [
        record for slice_ in slices.values() for record in _answers(slice_, release)
    ]
    labels = [record for slice_ in judges.slices.values() for record in _labels(slice_)]
    sizes = dict.fromkeys((slice_.name for slice_ in slices.values()), 0)
    for record in records:
        sizes[f"{record.dataset}:{record.language}"] += 1
    facts = _facts(release, dataset, labels, judges)
    earlier = None if baseline is None else as_read(before(baseline))
    inputs = ReportInputs(
        datasets=(dataset,),
        records=tuple(records),
        whole=sizes,
        labels=tuple(labels),
        label_datasets=(judges,),
    )
    return account(inputs, facts, earlier)


def _facts(
    release: Release, dataset: Dataset, labels: list[Record], judges: Dataset
) -> Facts:
    origins = {
        slice_.name: {"file": slice_.path.name} for slice_ in dataset.slices.values()
    }
    return Facts(
        model=release.name,
        judge="openai:judge-large-3",
        session=SessionFacts(pytest_code=1),
        provenance={"seed": 0, "slices": origins},
        run={
            "id": release.name,
            "started": "2026-11-29T00:44:00+00:00",
            "seconds": 76.0,
            "command": "pytest -n 8 cases/simpleqa",
        },
        labels=tuple(labels),
        label_datasets=(judges,),
    )


def _answers(slice_: Slice, release: Release) -> Iterator[Record]:
    cases = load_cases(slice_)
    golds = [case.golds[0] for case in cases if not case.golds[0].startswith(MARKS)]
    shared = random.Random(slice_.language)
    own = random.Random(f"{slice_.language} {release.seed}")
    for case in cases:
        is_right = shared.random() < RIGHT
        if own.random() < FLIPPED:
            is_right = not is_right
        if own.random() < release.lost.get(slice_.language, 0.0):
            is_right = False
        yield _answer(slice_, case, golds, own, is_right=is_right)


def _answer(
    slice_: Slice, case: Case, golds: list[str], drawn: random.Random, *, is_right: bool
) -> Record:
    gold = case.golds[0]
    grade = CORRECT if is_right else INCORRECT
    answer = SENTENCES[slice_.language].format(gold)
    if not is_right and drawn.random() < REFUSED:
        grade = NOT_ATTEMPTED
        answer = REFUSALS[slice_.language]
    elif not is_right:
        answer = SENTENCES[slice_.language].format(_another(gold, golds, drawn))
    return replace(
        BLANK,
        key=f"{slice_.dataset}-{slice_.language}-{case.id}",
        id=case.id,
        row=case.row,
        dataset=slice_.dataset,
        language=slice_.language,
        question=case.question,
        expected=case.expected,
        golds=case.golds,
        digest=case.digest,
        metadata=case.metadata,
        answer=answer,
        outcome="passed" if is_right else "failed",
        grade=grade,
        answer_state="declined" if grade == NOT_ATTEMPTED else "answered",
        reason=f"The answer is {grade}.",
        model="assistant",
        judge="judge-large-3",
        tokens=120,
        cost=USD_AN_ANSWER,
        seconds=SECONDS_AN_ANSWER,
        answer_seconds=SECONDS_AN_ANSWER * (0.5 + drawn.random()),
        answer_tokens_in=80,
        answer_tokens_out=12,
        answer_cost=USD_AN_ANSWER,
        measures={"check_language": 1.0},
    )


def _another(gold: str, golds: list[str], drawn: random.Random) -> str:
    """Return another question's gold of the same kind and about the same length."""
    has_digit = any(sign.isdigit() for sign in gold)
    alike = [
        other
        for other in golds
        if other != gold
        and any(sign.isdigit() for sign in other) == has_digit
        and abs(len(other) - len(gold)) < 6
    ]
    return drawn.choice(alike or golds)


def _labels(slice_: Slice) -> Iterator[Record]:
    """Yield the labelled answers of a language with the judge's grades."""
    drawn = random.Random(f"labels {slice_.language}")
    for case in load_cases(slice_):
        grade = case.label or INCORRECT
        if drawn.random() < JUDGE_ERRS:
            grade = INCORRECT if grade == CORRECT else CORRECT
        yield replace(
            BLANK,
            key=f"{slice_.dataset}-{slice_.language}-{case.id}",
            id=case.id,
            row=case.row,
            dataset=slice_.dataset,
            language=slice_.language,
            question=case.question,
            expected=case.expected,
            golds=case.golds,
            digest=case.digest,
            metadata=case.metadata,
            answer=case.recorded or "",
            label=case.label,
            outcome="passed" if grade == case.label else "failed",
            grade=grade,
            judge="judge-large-3",
            cost=USD_AN_ANSWER,
        )
