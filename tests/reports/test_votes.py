"""What votes show in the report, and who judged: rules, panels, calibration."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace

from qagate.cases.dataset import Dataset
from qagate.evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, Vote
from qagate.evaluators.kinds import kind_of
from qagate.evaluators.statistics.agreement import cohen_kappa, krippendorff_alpha
from qagate.evaluators.statistics.intervals import Estimate
from qagate.evaluators.typed_data import decode
from qagate.reports.judge.votes import panels, vote_notes
from qagate.reports.run.evidence import (
    Calibration,
    ConfusionCell,
    Corrected,
    Judging,
    RulesCheck,
)
from qagate.reports.run.record import Record
from tests.support.made_records import make_record, make_slice, numbered
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of
from tests.support.tables import tabled

BG = make_slice()
ESTIMATE = Estimate(value=0.5, low=0.25, high=0.75, n=8)


def voted(
    *labels: tuple[str, ...], names: Sequence[str] = ("a", "b", "c")
) -> list[Record]:
    """Return a record for each row of votes; an empty label is a vote that is missing."""
    return [
        make_record(
            number,
            grade=row[0] or None,
            outcome="passed" if len(set(row)) == 1 else "error",
            votes=tuple(
                Vote(judge=name, grade=label or None, error="" if label else "gone: x")
                for name, label in zip(names, row, strict=False)
            ),
        )
        for number, row in enumerate(labels)
    ]


ROWS = (
    (CORRECT, CORRECT, CORRECT), (CORRECT, INCORRECT, INCORRECT),
    (NOT_ATTEMPTED, NOT_ATTEMPTED, ""), (INCORRECT, INCORRECT, INCORRECT),
    (CORRECT, INCORRECT, NOT_ATTEMPTED),
)  # fmt: skip


def test_a_panels_agreement() -> None:
    """Krippendorff's alpha, Cohen's kappa of each two, who differs; 6 and 7 nearly agree."""
    (found,) = panels(
        [(BG, voted(*ROWS)), (make_slice(language="en"), numbered([{}]))], "a b c"
    )
    assert (found.slice, found.judges) == ("d:bg", ("a", "b", "c"))
    assert found.alpha == krippendorff_alpha(
        [[one for one in row if one] for row in ROWS]
    )
    first, second, third = found.pairs
    assert (first.first, first.second) == ("a", "b")
    assert first.kappa == cohen_kappa([(row[0], row[1]) for row in ROWS])
    assert (second.kappa.n, third.kappa.n) == (4, 4)
    assert found.split == ("d-bg-i1", "d-bg-i4")
    assert (found.undecided, found.silent) == (2, {"c": 1})
    rows = [(CORRECT, CORRECT, ""), (CORRECT, INCORRECT, CORRECT)]
    (found,) = panels([(BG, voted(*rows))], "a b")
    assert len(found.pairs) == 1
    assert found.silent == {}
    near = voted(("6", "7"), ("2", "3"), ("9", "9"), ("4", "4"), names="ab")
    far = voted(("6", "7"), ("2", "9"), ("9", "2"), ("4", "4"), names="ab")
    (close,), (wide,) = (panels([(BG, records)], "a b") for records in (near, far))
    for one, other in (
        (close.alpha, wide.alpha),
        (close.pairs[0].kappa, wide.pairs[0].kappa),
    ):
        assert (one.value or 0) > 0.9
        assert (other.value or 0) < 0
        assert one.low is not None


def test_a_panels_note_names_what_is_to_be_reviewed() -> None:
    """At most ten items by name, and who gave no vote; one label alone leaves it undefined."""
    rows = [(CORRECT, INCORRECT)] * 12 + [(CORRECT, ""), (CORRECT, CORRECT)]
    (note,) = vote_notes("a b", None, panels([(BG, voted(*rows))], "a b"))
    assert note.startswith("d:bg: alpha of 2 judges -0.")
    assert (
        "they differ on 12 (12 without a verdict), to be reviewed: d-bg-i0, d-bg-i1"
        in note
    )
    assert note.endswith("d-bg-i9 and 2 more; b gave no vote on 1")
    (alone,) = panels([(BG, voted((CORRECT, CORRECT)))], "a b")
    assert alone.alpha.value is None
    assert vote_notes("a b", None, [alone]) == [
        "d:bg: alpha of 2 judges undefined; kappa of a and b undefined"
    ]


def test_what_is_said_of_judges_survives_its_file() -> None:
    """Everything read back from ``run.json`` is what was written: gates can be decided again."""
    cell = ConfusionCell(label=CORRECT, grade=INCORRECT, count=2)
    known = Calibration(
        dataset="labels", language="bg", measures={"kappa": ESTIMATE}, floor={"kappa": 0.6},
        trusted=False, graders=("d:bg",), source="ledger", items=2, confusion=(cell,), cost=None,
    )  # fmt: skip
    rates = {"labelled": 300, "sensitivity": 0.9, "specificity": 0.8}
    made = Judging(
        calibrations=(known,),
        rules=RulesCheck(
            judged=4,
            settled=3,
            difference=ESTIMATE,
            differing=("k1",),
            grades={"k1": INCORRECT, "k2": ""},
        ),
        panels=panels([(BG, voted(*ROWS))], "a b c"),
        corrected=(Corrected(slice="d:bg", correct=ESTIMATE, **rates),),  # type: ignore[arg-type]
    )
    assert decode(Judging, json.loads(json.dumps(asdict(made)))) == made


JUDGED = graded_slice(
    dataset="judges", kind=kind_of("judged"), thresholds=(), floor={"agreement": 0.6}
)


def judged_dataset(**changes: object) -> Dataset:
    """Return labelled items in English, with a floor."""
    one = replace(JUDGED, **changes)  # type: ignore[arg-type]
    return facts_dataset(one, name="judges", kind=one.kind, judge_unmeasured=False)


def labelled(letters: str) -> list[Record]:
    """Return labelled items, every other one wrong; the judge confirms the label of each c."""
    other = {"CORRECT": "INCORRECT", "INCORRECT": "CORRECT", None: None}
    return [
        replace(
            one,
            dataset="judges",
            key=f"judges-{one.id}",
            metadata={},
            label="INCORRECT" if number % 2 else "CORRECT",
            grade=other[one.grade] if number % 2 else one.grade,
        )
        for number, one in enumerate(answered(letters))
    ]


def of(
    records: list[Record], *datasets: Dataset, judge: str = "openai:judge"
) -> Judging:
    return run_of(records, *(datasets or (facts_dataset(),)), judge=judge).judging


def test_who_graded_is_counted() -> None:
    """By names that providers returned, outages are nobody's; without labels, unmeasured."""
    other = [replace(one, judge="judge-2025", key="x", id="x") for one in answered("c")]
    found = of([*answered("cie"), *other])
    assert (found.graded, found.by_judge) == (3, {"judge-2025": 1, "judge-2026": 2})
    assert found.settled == 0
    assert of(answered("cc")).unmeasured == ("facts:en",)
    found = of(
        [*answered("c"), *labelled("ci")], facts_dataset(), judged_dataset(floor={})
    )
    assert (found.calibrations[0].trusted, found.unmeasured) == (False, ())


@tabled("judge", "spec", "settled")
def test_what_took_no_call_is_settled(judge: str, spec: str, settled: int) -> None:
    """Rules need none, and where a model was spared its SPEC signs."""
    assert of(answered("ci", judge=judge), judge=spec).settled == settled


def test_items_on_which_a_panel_splits_are_named() -> None:
    split = (Vote(judge="a", grade="CORRECT"), Vote(judge="b", grade="INCORRECT"))
    silent = (
        Vote(judge="a", grade="CORRECT"),
        Vote(judge="b", error="timeout: no reply"),
    )
    records = [*answered("c", votes=split), *answered("cc", votes=silent)[1:]]
    found = of(records, judge="openai:a openai:b")
    assert found.disagreements == ("facts-en-i0",)
    assert found.settled == 0


@tabled("judge", "language", "said")
def test_a_language_without_words_is_named(
    judge: str, language: str, said: bool
) -> None:
    """There a refusal may be taken for a wrong answer, which no figure shows."""
    made = run_of(
        answered("ci", language), facts_dataset(graded_slice(language)), judge=judge
    )
    assert any("lexical has no words of de" in note for note in made.notes) is said
