"""Claims about what a report says of its judge: who graded, how often, and how it was measured."""

from dataclasses import replace
from pathlib import Path

from cases.dataset import Dataset, Slice
from evaluators.core import Vote
from evaluators.kinds import kind_of
from reports.run.evidence import Judging
from reports.run.record import Record
from tests.support.made_runs import RUBRIC, answered, facts_dataset, graded_slice, run_of
from tests.support.tables import tabled

JUDGED = Slice(
    dataset="judges",
    language="en",
    kind=kind_of("judged"),
    path=Path("en.csv"),
    rubric=RUBRIC,
    floor={"agreement": 0.6},
)


def judged_dataset(**changes: object) -> Dataset:
    """Return labelled items in English, with a floor."""
    one = replace(JUDGED, **changes)  # type: ignore[arg-type]
    return Dataset(name="judges", folder=Path("judges"), kind=kind_of("judged"), slices={"en": one})


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


def of(records: list[Record], *datasets: Dataset, judge: str = "openai:judge") -> Judging:
    return run_of(records, *(datasets or (facts_dataset(),)), judge=judge).judging


def test_who_graded_is_counted() -> None:
    """By the names that providers returned; an outage is nobody's."""
    other = [replace(one, judge="judge-2025", key="x", id="x") for one in answered("c")]
    found = of([*answered("cie"), *other])
    assert (found.graded, found.by_judge) == (3, {"judge-2025": 1, "judge-2026": 2})
    assert found.settled == 0


@tabled("judge", "spec", "settled")
def test_what_took_no_call_is_settled(judge: str, spec: str, settled: int) -> None:
    """Rules need none, and where a model was spared its SPEC signs."""
    assert of(answered("ci", judge=judge), judge=spec).settled == settled


def test_rules_before_a_model_settle_and_are_audited() -> None:
    """The first vote is who decided; a second is that of an audit, which may disagree."""
    rules = Vote(judge="lexical", grade="CORRECT")
    model = Vote(judge="openai:judge", grade="CORRECT")
    against = replace(model, grade="INCORRECT")
    votes = [(rules,), (rules, model), (rules, against), (model,)]
    records = [replace(one, votes=v) for one, v in zip(answered("cccc"), votes, strict=True)]
    found = of(records, judge="lexical+openai:judge")
    assert (found.settled, found.audited) == (3, 2)
    assert found.audit_disagreements == ("facts-en-i2",)
    assert found.disagreements == ()


def test_a_panel_that_split_is_named() -> None:
    """The keys of the items over which its members differ; silence is no vote."""
    votes = (Vote(judge="a", grade="CORRECT"), Vote(judge="b", grade="INCORRECT"))
    silent = (Vote(judge="a", grade="CORRECT"), Vote(judge="b", error="timeout: no reply"))
    records = [*answered("c", votes=votes), *answered("cc", votes=silent)[1:]]
    found = of(records, judge="openai:a openai:b")
    assert found.disagreements == ("facts-en-i0",)
    assert (found.audited, found.settled) == (0, 0)


@tabled("letters", "trusted", "words")
def test_calibration_is_agreement_beside_its_floor(
    letters: str, trusted: bool | None, words: str
) -> None:
    """With the slices that hang on it; labels without a grade may have been right or wrong."""
    found = of([*answered("cc"), *labelled(letters)], facts_dataset(), judged_dataset())
    (one,) = found.calibrations
    assert (one.dataset, one.language, one.graders) == ("judges", "en", ("facts:en",))
    assert one.floor == {"agreement": 0.6}
    assert one.trusted is trusted
    assert one.reason.startswith(words)
    assert bool(one.blocks) is (trusted is not True)
    assert one.measures["agreement"].n == len(letters) - letters.count("e") - letters.count("m")


def test_a_judge_without_labels_is_unmeasured() -> None:
    """The slice is named; without a floor nothing says whether to trust it."""
    assert of(answered("cc")).unmeasured == ("facts:en",)
    found = of([*answered("c"), *labelled("ci")], facts_dataset(), judged_dataset(floor={}))
    assert (found.calibrations[0].trusted, found.unmeasured) == (None, ())


@tabled("judge", "language", "said")
def test_a_language_that_the_rules_have_no_words_of_is_named(
    judge: str, language: str, said: bool
) -> None:
    """There a refusal may be taken for a wrong answer, which no figure shows."""
    own = facts_dataset(graded_slice(language))
    made = run_of(answered("ci", language), own, judge=judge)
    assert any("lexical has no words of de" in note for note in made.notes) is said
