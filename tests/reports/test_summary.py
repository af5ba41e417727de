"""Claims about a slice's counts, measures, intervals and breakdowns."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.evaluators.core import (
    CORRECT,
    GRADES,
    INCORRECT,
    NO,
    NOT_ATTEMPTED,
    UNANSWERED,
    YES,
    QAError,
)
from qagate.evaluators.kinds import kind_of
from qagate.evaluators.statistics.count_table import worst_case_fills
from qagate.evaluators.statistics.intervals import Estimate, wilson
from qagate.evaluators.statistics.metrics import (
    ANSWER_STATES,
    DROP,
    METRICS,
    RISE,
    USAGE,
)
from qagate.reports.metrics.summary import summarise, tabulate
from qagate.reports.run.record import Record
from qagate.reports.run.report import SliceSummary
from tests.support.made_records import graded, make_record, make_slice, numbered
from tests.support.made_runs import RUBRIC
from tests.support.tables import tabled


def values(summary: SliceSummary) -> dict[str, float | None]:
    return {name: estimate.value for name, estimate in summary.measures.items()}


def answers(*pairs: tuple[str, str]) -> list[Record]:
    """Yes/no records of (gold, answer), or labelled ones of (label, grade)."""
    return numbered([{"label": gold, "grade": answer} for gold, answer in pairs])


@tabled("correct", "incorrect", "not_attempted", "percent")
def test_f_as_published(
    correct: int, incorrect: int, not_attempted: int, percent: float
) -> None:
    """Five rows of published SimpleQA counts give the published F, to a tenth of a percent."""
    summary = summarise(graded(correct, incorrect, not_attempted), make_slice())
    assert round(100 * (summary.measures["f_score"].value or 0), 1) == percent


def test_graded_measures_by_hand() -> None:
    """Every measure in the order to show, with its interval; a mean score of scored grades."""
    summary = summarise(graded(5, 3, 2), make_slice(penalty=0.5))
    marked = ["premise_corrected", "premise_declined", "premise_accepted"]
    assert [*summary.measures, *marked, "mean_score"] == list(METRICS["graded"])
    assert values(summary) == {
        "correct": 0.5, "incorrect": 0.3, "not_attempted": 0.2, "attempted": 0.8,
        "correct_given_attempted": 0.625, "f_score": 10 / 18, "penalised": 0.35,
    }  # fmt: skip
    assert summary.labels == {CORRECT: 5, INCORRECT: 3, NOT_ATTEMPTED: 2}
    assert summary.confusion == ()
    measures = summarise(graded(5, 3, 2), make_slice()).measures
    low, high = wilson(5, 10) or (0, 0)
    assert measures["correct"] == Estimate(value=0.5, low=low, high=high, n=10)
    low, high = wilson(5, 8) or (0, 0)
    assert measures["correct_given_attempted"] == Estimate(
        value=0.625, low=low, high=high, n=8
    )
    records = [replace(r, score=RUBRIC.scores[r.grade or ""]) for r in graded(2, 1, 1)]
    with_rubric = make_slice(rubric=RUBRIC)
    assert values(summarise(records, with_rubric))["mean_score"] == 0.625
    assert values(summarise(records, make_slice()))["mean_score"] == 0.625
    assert "mean_score" not in summarise(graded(2, 1, 1), with_rubric).measures
    unscored = [*records[:3], replace(records[3], score=None)]
    assert values(summarise(unscored, make_slice()))["mean_score"] is None


def test_errors_and_missing_items_are_counted_and_in_no_measure() -> None:
    """Part of the plan, neither right nor wrong; by topic, without one under a heading."""
    records = [*graded(3, 1, error=2), make_record(99, outcome="missing")]
    summary = summarise(records, make_slice(), partial=True)
    counts = summary.counts
    assert (counts.planned, counts.passed, counts.failed) == (7, 3, 1)
    assert (counts.error, counts.missing) == (2, 1)
    assert summary.measures["correct"].value == 0.75
    assert (summary.partial, summary.name) == (True, "d:bg")
    records = [
        make_record(1, grade=CORRECT, metadata={"topic": "art"}),
        make_record(2, grade=INCORRECT, outcome="failed", metadata={"topic": "art"}),
        make_record(3, grade=CORRECT),
        make_record(4, outcome="error", metadata={"topic": "war"}),
    ]
    by_topic = summarise(records, make_slice(by=("topic",))).breakdowns["topic"]
    correct = {text: found["correct"].value for text, found in by_topic.items()}
    assert correct == {"(none)": 1.0, "art": 0.5}


def test_rated_and_yes_no_measures_by_hand() -> None:
    """Bar 7: mean 7, three pass; an unanswered yes is a false negative, else no prediction."""
    records = numbered([{"rating": rating} for rating in (1, 7, 10, 10)])
    summary = summarise(records, make_slice("rated", pass_bar=7))
    assert values(summary) == {
        "mean_rating": 7.0,
        "pass_rate": 0.75,
        "normalised": 6 / 9,
    }
    assert list(summary.labels) == [str(n) for n in range(1, 11)]
    assert summary.labels["10"] == 2
    given_no = [(NO, YES), (NO, NO), (NO, NO), (NO, UNANSWERED)]
    records = answers(*[(YES, YES)] * 4, (YES, NO), (YES, UNANSWERED), *given_no)
    summary = summarise(records, make_slice("yes_no"))
    f1 = {"f1": 8 / 11, "macro_f1": (8 / 11 + 4 / 7) / 2}
    shares = {"accuracy": 0.6, "unanswered": 0.2, "majority_baseline": 0.6}
    assert values(summary) == pytest.approx(
        {"precision": 4 / 5, "recall": 4 / 6, **f1, **shares}
    )
    counts = {(cell.label, cell.grade): cell.count for cell in summary.confusion}
    assert counts[YES, UNANSWERED] == 1
    assert sum(counts.values()) == 10


def test_choices_by_hand() -> None:
    """A is right twice and chosen four times of six; an unanswered item favours no place."""
    chosen = [
        ("A", "A"),
        ("A", "A"),
        ("B", "A"),
        ("C", "A"),
        ("B", "B"),
        ("C", UNANSWERED),
    ]
    summary = summarise(answers(*chosen), make_slice("choice"))
    assert values(summary) == pytest.approx(
        {
            "accuracy": 3 / 6,
            "unanswered": 1 / 6,
            "fixed_place": 2 / 6,
            "position_bias_1": (4 - 2) / 6,
            "position_bias_2": (1 - 2) / 6,
            "position_bias_3": (0 - 1) / 6,
        }
    )


def test_bias_is_counted_by_place_in_every_alphabet() -> None:
    """А is the first letter of options in Bulgarian, as A is in English."""
    summary = summarise(answers(("Б", "А"), ("А", "А")), make_slice("choice"))
    assert values(summary)["position_bias_1"] == 1 / 2


def test_an_order_has_no_place() -> None:
    summary = summarise(answers(("CADB", "CADB"), ("BA", "AB")), make_slice("choice"))
    assert values(summary) == {"accuracy": 0.5, "unanswered": 0.0, "fixed_place": 0.5}


def test_a_model_that_guesses_has_no_bias_beyond_its_interval() -> None:
    """Wrong answers to every side alike: 0 lies within the interval of each place."""
    pairs = [(gold, answer) for gold in "ABCD" for answer in "ABCD"] * 10
    measures = summarise(answers(*pairs), make_slice("choice")).measures
    for place in range(1, 5):
        bias = measures[f"position_bias_{place}"]
        assert bias.low is not None
        assert bias.high is not None
        assert bias.low < 0 < bias.high


def test_a_model_that_always_says_b_has_a_bias() -> None:
    measures = summarise(
        answers(*[(gold, "B") for gold in "ABCD"] * 10), make_slice("choice")
    ).measures
    low, high = measures["position_bias_2"].low, measures["position_bias_1"].high
    assert low is not None
    assert low > 0.5
    assert high is not None
    assert high < 0


def test_ungraded_choices_are_bounded_by_what_they_might_have_been() -> None:
    """Every way to grade two open items lies within the fills' extremes, and meets them."""
    slice_ = make_slice("choice")
    graded = answers(("A", "A"), ("B", "C"), ("C", UNANSWERED))
    open_items = numbered(
        [{"label": label, "outcome": "error", "grade": None} for label in "AB"]
    )
    fills = worst_case_fills(tabulate([*graded, *open_items], slice_).patterns)

    def figures(
        records: Sequence[Record], fill: Mapping[str, str] | None
    ) -> dict[str, float]:
        sample = tabulate(records, slice_, fill)
        names = ("accuracy", "unanswered", "position_bias_1", "position_bias_2")
        return {name: sample.value(name) or 0.0 for name in names}

    bounds = [figures([*graded, *open_items], fill) for fill in fills]
    possible = []
    for first, second in product(("A", "B", "C", UNANSWERED), repeat=2):
        ended = answers(("A", first), ("B", second))
        possible.append(figures([*graded, *ended], None))
    for name in possible[0]:
        bounded = [figures_of_fill[name] for figures_of_fill in bounds]
        seen = [figures_of_grades[name] for figures_of_grades in possible]
        assert min(bounded) == pytest.approx(min(seen))
        assert max(bounded) == pytest.approx(max(seen))


def test_one_class_only_is_undefined_where_it_must_be() -> None:
    """All "no": accuracy is 1, metrics of "yes" None (F26); other labels join the table."""
    found = values(summarise(answers((NO, NO), (NO, NO)), make_slice("yes_no")))
    assert found["accuracy"] == 1
    assert [found[name] for name in ("precision", "recall", "f1", "macro_f1")] == [
        None
    ] * 4
    summary = summarise(answers((YES, YES), (NO, YES)), make_slice("judged"))
    undefined = dict.fromkeys(("precision", "recall", "youden", "youden_incorrect"))
    assert values(summary) == {"agreement": 0.5, "kappa": 0.0, **undefined}


def test_judged_grades_by_hand() -> None:
    """9 of 10 agree, held against the labels; digits have Spearman, quadratic kappa, bias."""
    pairs = (
        [(CORRECT, CORRECT)] * 5 + [(INCORRECT, INCORRECT)] * 4 + [(INCORRECT, CORRECT)]
    )
    summary = summarise(answers(*pairs), make_slice("judged"))
    chance_free = dict.fromkeys(("kappa", "youden", "youden_incorrect"), 0.8)
    shares = {"agreement": 0.9, "precision": 5 / 6, "recall": 1}
    assert values(summary) == pytest.approx(chance_free | shares)
    counts = {(cell.label, cell.grade): cell.count for cell in summary.confusion}
    assert counts[INCORRECT, CORRECT] == 1
    assert tuple(summary.labels) == GRADES
    rows = [{"label": str(n), "rating": min(10, n + 1)} for n in range(1, 11)]
    found = values(summarise(numbered(rows), make_slice("judged")))
    ordered = [
        "agreement",
        "spearman",
        "quadratic_kappa",
        "mean_difference",
        "pass_agreement",
    ]
    assert list(found) == [*ordered, "precision", "recall", "youden"]
    assert (found["mean_difference"], found["pass_agreement"]) == (0.9, 0.9)
    assert (found["agreement"], found["youden"]) == (0.1, 0.8)
    assert (found["spearman"] or 0) > 0.99


def test_repeats_are_clustered_by_item() -> None:
    """Repeats leave the interval of the items; pairs of judgements show whether one wavers."""
    single = graded(30, 70)
    repeated = [
        replace(r, repeat=n, key=f"{r.key}~r{n}") for r in single for n in (1, 2, 3)
    ]
    once = summarise(single, make_slice()).measures
    thrice = summarise(repeated, make_slice()).measures
    assert thrice["correct"].n == 300
    for name in ("correct", "f_score"):
        assert thrice[name].value == once[name].value
        assert thrice[name].low == pytest.approx(once[name].low, abs=0.01)
        assert thrice[name].high == pytest.approx(once[name].high, abs=0.01)
    slice_ = make_slice("judged")
    records = judgements(CORRECT, CORRECT, CORRECT, INCORRECT, CORRECT, CORRECT)
    found = summarise(records, slice_).measures["self_agreement"]
    assert found.n == 6
    assert found.value == pytest.approx(4 / 6)
    assert (found.low or 0) < 4 / 6
    once = summarise(judgements(CORRECT, INCORRECT), slice_).measures
    assert "self_agreement" not in once
    assert "self_agreement" not in summarise(records, make_slice("graded")).measures


def judgements(*grades: str) -> list[Record]:
    return [
        make_record(number % 2, repeat=number // 2 + 1, label=CORRECT, grade=grade)
        for number, grade in enumerate(grades)
    ]


@pytest.mark.parametrize("kind", ["graded", "rated", "yes_no", "judged"])
def test_an_empty_slice_has_undefined_measures(kind: str) -> None:
    """Without items each is None without interval (F26); the loader takes these names."""
    summary = summarise([], make_slice(kind))
    assert set(summary.measures.values()) == {
        Estimate(value=None, low=None, high=None, n=0)
    }
    used = set() if kind == "judged" else {*USAGE, *ANSWER_STATES}
    named = set(METRICS[kind]) - {"majority_baseline"}
    assert set(kind_of(kind).ranges()) - {DROP, RISE} == named | used


def test_perfect_figures_have_intervals() -> None:
    """Ten ratings of 7 prove no mean of 7.000: what they left unseen may be 1 or 10."""

    def unseen(count: int) -> float:
        return 1 - wilson(count, count)[0]  # type: ignore[index]

    def measured(
        kind: str, rows: Sequence[Mapping[str, object]]
    ) -> dict[str, Estimate]:
        return dict(summarise(numbered(rows), make_slice(kind)).measures)

    mean = measured("rated", [{"rating": 7}] * 10)["mean_rating"]
    expected = (7.0, 7 - 6 * unseen(10), 7 + 3 * unseen(10))
    assert (mean.value, mean.low, mean.high) == pytest.approx(expected)
    kappa = measured(
        "judged", [{"grade": g, "label": g} for g in (CORRECT, INCORRECT)] * 20
    )
    found = measured("judged", [{"rating": r, "label": str(r)} for r in (2, 9)] * 20)
    for one in (kappa["kappa"], found["spearman"], found["quadratic_kappa"]):
        assert (one.value, one.low, one.high) == pytest.approx(
            (1, 1 - 2 * unseen(40), 1)
        )
    scores = summarise(graded(30), make_slice()).measures
    assert scores["penalised"].low == pytest.approx(1 - 2 * unseen(30))
    assert scores["f_score"].low == pytest.approx(1 - unseen(30))


@tabled("kind", "fields")
def test_a_record_of_another_kind_is_an_error(
    kind: str, fields: dict[str, object]
) -> None:
    """A grade or label that the kind does not know is never counted as something else."""
    with pytest.raises(QAError, match=r"d-bg-i7: label .* makes no sense"):
        summarise([make_record(7, **fields)], make_slice(kind))


def sound(estimates: Sequence[Estimate]) -> bool:
    """Whether no number is NaN or infinite and no interval is reversed."""
    numbers = [x for e in estimates for x in (e.value, e.low, e.high) if x is not None]
    ordered = all(
        e.low <= e.high for e in estimates if e.low is not None and e.high is not None
    )
    return ordered and all(map(math.isfinite, numbers))


COUNTS = st.tuples(*[st.integers(0, 40)] * 3, st.integers(0, 3)).map(
    lambda some: graded(*some)
)
ANSWERS = st.tuples(st.sampled_from([YES, NO]), st.sampled_from([YES, NO, UNANSWERED]))
RATINGS = st.fixed_dictionaries(
    {"rating": st.integers(1, 10), "label": st.integers(1, 10).map(str)}
)


@settings(max_examples=120, deadline=None)
@given(
    st.tuples(st.just("graded"), COUNTS)
    | st.tuples(st.just("yes_no"), st.lists(ANSWERS).map(lambda some: answers(*some)))
    | st.tuples(
        st.sampled_from(["rated", "judged"]),
        st.lists(RATINGS, max_size=30).map(numbered),
    )
)
def test_any_records_give_sound_figures(drawn: tuple[str, list[Record]]) -> None:
    """No NaN; states sum to the plan; of yes/no every rate is within 0 to 1 (F26)."""
    kind, records = drawn
    summary = check(kind, records)
    if kind == "yes_no":
        assert all(0 <= (one.value or 0) <= 1 for one in summary.measures.values())


def check(kind: str, records: list[Record]) -> SliceSummary:
    summary = summarise(records, make_slice(kind))
    state = summary.counts
    assert sound(list(summary.measures.values()))
    assert state.passed + state.failed + state.error + state.missing == state.planned
    assert (
        kind != "graded" or sum(summary.labels.values()) == state.passed + state.failed
    )
    assert json.dumps(
        [asdict(one) for one in summary.measures.values()], allow_nan=False
    )
    return summary
