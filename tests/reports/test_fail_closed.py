"""The verdict fails closed: whatever is left out of a run never makes it pass."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases.dataset import Dataset, Slice, Threshold
from cases.gates_file import DatasetGates, GatesFile, with_gates
from evaluators.core import CORRECT, INCORRECT
from evaluators.kinds import kind_of
from reports.assemble import Facts, decision_of
from reports.baseline import Baseline
from reports.counted_run import Material
from reports.gates.decide import SessionFacts
from reports.record import Record
from tests.support.made_runs import (
    ORIGIN,
    RUBRIC,
    SPEC,
    answered,
    before,
    facts_dataset,
    graded_slice,
    run_of,
)

GATES = (
    Threshold(measure="correct", min=0.6),
    Threshold(measure="incorrect", max=0.3),
    Threshold(measure="drop", max=0.3, evidence="confident"),
)
FACTS = facts_dataset(graded_slice("en", *GATES), judge_unmeasured=False)
LABELS = Slice(
    dataset="judges",
    language="en",
    kind=kind_of("judged"),
    path=Path("en.csv"),
    rubric=RUBRIC,
    floor={"agreement": 0.7},
)
JUDGES = Dataset(name="judges", folder=Path("judges"), kind=LABELS.kind, slices={"en": LABELS})
ORIGINS = {"slices": {"facts:en": ORIGIN, "judges:en": ORIGIN}}


@dataclass(frozen=True)
class Scene:
    """A run with its labelled items and its baseline; so many items were planned of each."""

    asked: tuple[Record, ...]
    labels: tuple[Record, ...]
    baseline: Baseline
    planned: tuple[int, int]
    facts: Dataset = FACTS

    def passes(self) -> bool:
        """Whether it ends in exit 0."""
        material = Material(
            datasets=(self.facts, JUDGES),
            records=(*self.asked, *self.labels),
            whole=dict(zip(("facts:en", "judges:en"), self.planned, strict=True)),
        )
        failed = any(one.outcome != "passed" for one in material.records)
        session = SessionFacts(pytest_code=int(failed))
        known = Facts(model="m", judge=SPEC, session=session, provenance=ORIGINS, run={})
        return decision_of(material, known, self.baseline).code == 0


def scene(new: str, old: str, labels: str) -> Scene:
    """A run over answers with these grades.

    Of the labels c and i are of right answers, in capitals of wrong ones; the letter is the grade.
    """
    items = tuple(
        replace(
            one,
            dataset="judges",
            key=f"judges-{one.id}",
            label=CORRECT if letter.islower() else INCORRECT,
            metadata={},
        )
        for letter, one in zip(labels, answered(labels.lower()), strict=True)
    )
    return Scene(
        asked=tuple(answered(new)),
        labels=items,
        baseline=before(run_of(answered(old), FACTS)),
        planned=(len(new), len(items)),
    )


def without(records: tuple[Record, ...], place: int) -> tuple[Record, ...]:
    return records[: place % len(records)] + records[place % len(records) + 1 :]


def refused(records: tuple[Record, ...], place: int) -> tuple[Record, ...]:
    """The same with one item that the judge did not grade."""
    one = records[place % len(records)]
    lost = replace(one, outcome="error", grade=None, score=None, error="refused: no")
    return tuple(lost if other is one else other for other in records)


def repeating(some: Scene, place: int) -> Scene:
    """Under a gates file that has only some of the gates."""
    kept = tuple(gate for bit, gate in enumerate(GATES) if place >> bit & 1)
    file = GatesFile(datasets={"facts": DatasetGates(languages={"en": kept})})
    return replace(some, facts=with_gates(some.facts, file))


LOSSES: dict[str, Callable[[Scene, int], Scene]] = {
    "a grade": lambda some, at: replace(some, asked=refused(some.asked, at)),
    "a question": lambda some, at: replace(some, asked=without(some.asked, at)),
    "a label's grade": lambda some, at: replace(some, labels=refused(some.labels, at)),
    "a labelled item": lambda some, at: replace(some, labels=without(some.labels, at)),
    "all labels": lambda some, at: replace(some, labels=(), planned=(some.planned[0], 0)),
    "a partner": lambda some, at: replace(
        some, baseline=replace(some.baseline, records=without(some.baseline.records, at))
    ),
    "a gate": repeating,
}


def letters(choice: str, least: int, most: int) -> st.SearchStrategy[str]:
    some = st.lists(st.sampled_from(choice), min_size=least, max_size=most)
    return some.map("".join)


ANSWERS = letters("cccccccccccccin", 12, 30)
LABELLED = st.builds(str.__add__, letters("IIIIIC", 0, 12), letters("ccccci", 1, 12))


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=40)
@given(new=ANSWERS, old=ANSWERS, labels=LABELLED, at=st.integers(0))
def test_what_is_left_out_never_makes_a_run_pass(
    loss: str, new: str, old: str, labels: str, at: int
) -> None:
    """Not asked, not graded, not labelled, without a partner, or not declared again in a file."""
    whole = scene(new, old, labels)
    assert whole.passes() or not LOSSES[loss](whole, at).passes()


@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_left_out_of_a_run_that_passes_may_matter(loss: str) -> None:
    """The run that the losses are taken from can pass, and a loss can end that."""
    whole = scene("c" * 30, "c" * 30, "ccccccciii")
    assert whole.passes()
    if loss not in ("a grade", "a partner", "a gate"):  # one of thirty does not tip a gate
        assert not LOSSES[loss](whole, 0).passes()


def test_a_judge_that_refuses_the_only_wrong_answer_is_not_a_judge_without_errors() -> None:
    """How well it tells right from wrong stays unknown, and no drop passes on its word."""
    whole = scene("c" * 28, "c" * 28, "Icccccc")
    assert not whole.passes()
    assert not LOSSES["a label's grade"](whole, 0).passes()
