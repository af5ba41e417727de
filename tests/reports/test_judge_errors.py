"""Claims about what a judge's errors say of a run: corrected rates, what they leave out, drift."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.cases.dataset import Slice, Threshold
from qagate.evaluators.core import CORRECT, INCORRECT
from qagate.evaluators.statistics.intervals import corrected_rate, wilson
from qagate.evaluators.statistics.metrics import YOUDEN, YOUDEN_INCORRECT
from qagate.reports.compare.sides import PairedSlice
from qagate.reports.compare.states import pair_records
from qagate.reports.judge import judging
from qagate.reports.judge.measured import separations
from qagate.reports.metrics.gate import gate_inputs
from qagate.reports.metrics.summary import summarise
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.evidence import Calibration, Corrected, Judging
from qagate.reports.run.record import Record
from tests.support.figures import some
from tests.support.made_records import graded, make_slice, numbered
from tests.support.samples import report
from tests.support.tables import tabled

BAR = Threshold(measure="correct", evidence="corrected")
JUDGED = make_slice("judged", dataset="labels")


def labelled(
    right: tuple[int, int], wrong: tuple[int, int], ungraded: int = 0
) -> list[Record]:
    """Return labels of right answers passed, missed, ungraded; of wrong ones passed, refused."""
    rows: list[dict[str, object]] = []
    for label, (passed, refused) in ((CORRECT, right), (INCORRECT, wrong)):
        rows += [{"label": label, "grade": CORRECT}] * passed
        rows += [{"label": label, "grade": INCORRECT}] * refused
    rows += [{"label": CORRECT, "outcome": "error", "answer": None}] * ungraded
    return [replace(one, question=f"{one.id}?") for one in numbered(rows)]


def measured(records: Sequence[Record], **fields: object) -> Calibration:
    """Return the judge of d:bg as these labelled records show it."""
    summary = summarise(records, JUDGED)
    made = Calibration(
        dataset="labels", language="bg", measures=summary.measures, graders=("d:bg",),
        items=len(records), ungraded=summary.counts.ungraded,
        separations=separations(gate_inputs(JUDGED, records, summary)),
    )  # fmt: skip
    return replace(made, **fields)  # type: ignore[arg-type]


def test_what_labels_show_of_a_judge() -> None:
    """Both rates; one class shows none; an ungraded label counts at worst, and at best above."""
    found = measured(labelled((45, 5), (10, 40))).separations
    assert found[YOUDEN].youden.value == pytest.approx(0.9 + 0.8 - 1)
    assert [one.value for one in found[YOUDEN].rates] == [0.9, 0.8]
    assert found[YOUDEN].youden.n == found[YOUDEN_INCORRECT].youden.n == 100
    assert found[YOUDEN].fewest == 50
    assert found[YOUDEN_INCORRECT].youden.value == pytest.approx(0.7)
    unsure = (
        measured(labelled((45, 3), (10, 40), ungraded=2)).separations[YOUDEN].youden
    )
    best = measured(labelled((47, 3), (10, 40))).separations[YOUDEN].youden
    sure = found[YOUDEN].youden
    assert (unsure.value, unsure.low, unsure.high) == (sure.value, sure.low, best.high)
    assert measured(labelled((45, 5), (0, 0))).separations == {}


def by_people(records: Sequence[Record], count: int) -> list[Record]:
    return [
        replace(one, adjudicated_by="Ana") if place < count else one
        for place, one in enumerate(records)
    ]


def corrected(
    records: Sequence[Record], labels: Sequence[Record], **fields: object
) -> Corrected | None:
    found = judging.correct_rates(
        [make_slice()], {"d:bg": records}, [measured(labels, **fields)]
    )
    return found[0] if found else None


def test_a_rate_is_corrected_where_each_class_has_thirty_labels() -> None:
    """Rogan and Gladen's; few labels, a blind judge, lost or constructed ones are no basis."""
    labels = labelled((27, 3), (6, 24))
    (found,) = judging.correct_rates(
        [make_slice()], {"d:bg": graded(60, 40)}, [measured(labels)]
    )
    assert found.correct.value == pytest.approx((0.6 + 0.8 - 1) / (0.9 + 0.8 - 1))
    assert (found.sensitivity, found.specificity, found.labelled) == (0.9, 0.8, 60)
    low, high = found.correct.interval or (0.0, 0.0)
    assert low < 4 / 7 < high
    assert high - low > 0.19  # wider than the raw rate's own
    (note,) = judging.corrected_notes([found])
    assert note.startswith("d:bg: correct, corrected for the judge's errors: 0.571 [")
    assert note.endswith(
        "(sensitivity 0.900, specificity 0.800, from 60 labelled items)"
    )
    for counts in (((27, 2), (60, 240)), ((15, 15), (15, 15)), ((40, 5), (6, 24), 1)):
        assert corrected(graded(60, 40), labelled(*counts)) is None
    written = some(corrected(graded(60, 40), labels, constructed=60))
    assert written.caution == (
        "60 of the labels are unit tests of the judge, constructed answers: they say nothing "
        "certain about its errors on this run's own"
    )


def test_labels_that_do_not_fit_the_answers_correct_nothing() -> None:
    """60 of 60 by a judge that finds 6 in 10 fit no share; J belongs to its bar and language."""
    found = some(corrected(graded(60, 0), labelled((24, 16), (1, 39))))
    assert (found.correct.value, found.correct.interval) == (None, None)
    (note,) = judging.corrected_notes([found])
    assert note.startswith(
        "d:bg: correct, corrected for the judge's errors: not known (s"
    )
    assert note.endswith("; the labels do not fit these answers")
    weak = some(corrected(graded(3, 3), labelled((20, 20), (16, 24))))
    assert (weak.unfit, weak.correct.value) == (
        "the judge errs too often for a conclusion",
        None,
    )
    own = measured([], pass_bar=6)
    other = replace(own, language="pl", graders=("d:pl",))
    rated = make_slice("rated", pass_bar=6)
    assert judging.measuring(rated, [other, own]) == (own, other)
    assert judging.measuring(replace(rated, pass_bar=7), [other, own]) == ()
    assert judging.measuring(make_slice(), [other, own]) == ()
    assert judging.measuring(rated, [other]) == ()


@given(
    *[
        st.tuples(st.integers(0, 60), st.integers(0, 60)).filter(
            lambda one: sum(one) > 0
        )
    ]
    * 3
)
def test_is_wider(
    judged: tuple[int, int], right: tuple[int, int], wrong: tuple[int, int]
) -> None:
    """For any labels: an interval within 0 to 1, and not narrower than the judged share's."""
    counts = [(float(one[0]), float(sum(one))) for one in (judged, right, wrong)]
    found = corrected_rate(*counts)
    if found:
        low, high = some(found.interval)
        bottom, top = wilson(*counts[0]) or (0.0, 1.0)
        assert 0 <= low <= some(found.value) <= high <= 1
        assert high - low >= min(top - bottom, 1 - low, high) - 1e-9


@tabled("bar", "letters", "state", "said")
def test_a_bar_may_be_decided_on_the_corrected_rate(
    bar: dict[str, float], letters: tuple[int, int, int], state: str, said: str
) -> None:
    """With its whole interval; items without a grade count at either extreme."""
    right, wrong, lost = letters
    slice_ = make_slice("graded", replace(BAR, **bar))  # type: ignore[arg-type]
    records = graded(right, wrong)
    records += [
        replace(one, id=f"e{one.id}", grade=None, outcome="error")
        for one in graded(lost)
    ]
    judge = measured(labelled((54, 6), (12, 48)))
    if lost == 0 and wrong == 0:
        judge = measured(labelled((36, 24), (1, 59)))
    (gate,) = judging.corrected_gates(slice_, records, [judge], "")
    assert (gate.state, said in gate.reason) == (state, True)
    (blocked,) = judging.corrected_gates(slice_, records, [judge], "judge not trusted")
    assert (blocked.state, blocked.reason) == ("INCONCLUSIVE", "judge not trusted")
    (bare,) = judging.corrected_gates(slice_, records, [], "")
    assert bare.reason == "no 30 graded labels of each class measure the judge's errors"


def test_what_people_decided_is_not_corrected() -> None:
    """60 of 100 by people are 60 %; answers that share their fate say as much as one."""
    labels, answers = labelled((40, 10), (5, 45)), graded(60, 40)
    assert corrected(by_people(answers, 100), labels) is None
    half = [*graded(30, 20), *[replace(one, id=f"p{one.id}") for one in graded(30, 20)]]
    (found,) = judging.correct_rates(
        [make_slice()], {"d:bg": by_people(half, 50)}, [measured(labels)]
    )
    judge_alone = (0.6 + 0.9 - 1) / (0.8 + 0.9 - 1)
    assert found.correct.value == pytest.approx((0.6 + judge_alone) / 2)
    assert (found.by_people, found.caution) == (50, "50 answers by people as they are")
    once = labelled((27, 3), (6, 24))
    thrice = [replace(one, id=f"{one.id}-{n}") for one in once for n in range(3)]
    apart = [replace(one, question=one.id) for one in thrice]
    ends = []
    for labels in (apart, thrice, once):
        (found,) = judging.correct_rates(
            [make_slice()], {"d:bg": graded(600, 400)}, [measured(labels)]
        )
        ends.append(found.correct.interval or (0.0, 0.0))
    widths = [high - low for low, high in ends]
    assert widths[0] < 0.8 * widths[1]
    assert widths[1] == pytest.approx(widths[2], rel=0.02)


def side(
    new: Sequence[Record], old: Sequence[Record], slice_: Slice = JUDGED
) -> PairedSlice:
    return PairedSlice(slice_=slice_, pairing=pair_records(new, old))


def before(*calibrations: Calibration) -> Baseline:
    old = report((), judging=Judging(calibrations=calibrations))
    return Baseline(path="old", report=old, sha256="")


def test_a_judge_that_reads_the_same_labels_otherwise_is_named() -> None:
    """Item by item where both runs have them; else by what both runs say of the same labels."""
    old = labelled((45, 5), (10, 40))
    old = [
        replace(r, outcome="passed" if r.label == r.grade else "failed") for r in old
    ]
    new = [
        replace(r, grade=INCORRECT, outcome="failed") if n < 9 else r
        for n, r in enumerate(old)
    ]
    now = measured(new)
    (paired,) = judging.drift_notes([now], {"labels:bg": side(new, old)}, None)
    assert paired.startswith(
        "judge compared with the baseline's, on the labelled items of labels:bg: agreement 0.850 "
        "then, 0.760 now, new - old -0.090 [-0.1"
    )
    assert paired.endswith(", over 100 pairs")
    then = measured(old, confusion=summarise(old, JUDGED).confusion)
    now = replace(now, confusion=summarise(new, JUDGED).confusion)
    (unpaired,) = judging.drift_notes([now], {}, before(then))
    assert unpaired == (
        "judge compared with the baseline's, on the labelled items of labels:bg: agreement 0.850 "
        "[0.767, 0.907] then, 0.760 [0.668, 0.833] now"
    )
    other = replace(then, confusion=then.confusion[1:])
    for nothing in (None, before(), before(other)):
        assert list(judging.drift_notes([now], {}, nothing)) == []
