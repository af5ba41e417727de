"""Several runs over the same items: what counts, what differs, and what nobody knows."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.evaluators.core import UsageError
from qagate.evaluators.kinds import kind_of
from qagate.evaluators.statistics.intervals import wilson
from qagate.reports.extras.side_by_side.counting import (
    RunFigures,
    SideBySide,
    count_runs,
    worst_share,
)
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.record import Record
from qagate.reports.run.report import Decided
from tests.support.made_runs import (
    answered,
    facts_dataset,
    graded_slice,
    run_of,
)

RATED = graded_slice(kind=kind_of("rated"), pass_bar=6)


def run(letters: str, name: str, language: str = "en", **facts: object) -> Baseline:
    records = answered(letters, language)
    return of_records(records, name, language, **facts)


def of_records(
    records: Sequence[Record], name: str, *languages: str, **facts: object
) -> Baseline:
    slices = [graded_slice(language) for language in languages or ("en",)]
    known: dict[str, object] = {"model": f"openai:{name}", **facts}
    made = run_of(records, facts_dataset(*slices), **known)  # type: ignore[arg-type]
    return Baseline(path=f"runs/{name}", report=made, sha256=name)


def figures(runs: SideBySide, name: str, slice_name: str = "facts:en") -> RunFigures:
    for part in runs.slices:
        for figures in part.runs:
            if (part.name, figures.run) == (slice_name, name):
                return figures
    raise AssertionError(f"no {name} in {slice_name}")


def test_every_item_of_the_first_run_counts_once() -> None:
    runs = count_runs([run("ccni", "old"), run("cnee", "new")])
    segments = figures(runs, "new").segments
    assert (segments.right, segments.silent, segments.wrong) == (1, 1, 0)
    assert (segments.ungraded, segments.lacking) == (2, 0)


def test_an_ungraded_item_counts_as_wrong_and_widens_the_range() -> None:
    runs = count_runs([run("c" * 40, "old"), run("c" * 30 + "e" * 10, "new")])
    right = figures(runs, "new").right
    assert right.value == 30 / 40
    lowest, _ = wilson(30, 40) or (0.0, 0.0)
    assert right.low == pytest.approx(lowest)
    assert right.high == 1.0


def test_an_item_that_was_not_asked_counts_as_wrong() -> None:
    old = run("c" * 40, "old")
    runs = count_runs([old, of_records(answered("c" * 40)[:30], "new")])
    assert figures(runs, "new").right.value == 30 / 40
    assert figures(runs, "new").segments.lacking == 10
    assert any("10 items not asked (10 in facts:en)" in note for note in runs.notes)


@pytest.mark.parametrize("field", ["question", "context", "digest"])
def test_an_item_with_other_data_counts_as_wrong(field: str) -> None:
    records = answered("c" * 40)
    edited = {field: "another", "digest": "f" * 64}
    records[0] = replace(records[0], **edited)  # type: ignore[arg-type]
    runs = count_runs([run("c" * 40, "old"), of_records(records, "new")])
    assert figures(runs, "new").right.value == 39 / 40
    assert any("1 item with another question" in note for note in runs.notes)


def test_items_of_a_later_run_alone_are_named_and_in_no_figure() -> None:
    runs = count_runs([run("c" * 40, "old"), run("c" * 45, "new")])
    assert figures(runs, "new").items == 40
    assert any("5 items that the first run does not have" in n for n in runs.notes)


def test_a_slice_that_the_first_run_lacks_is_counted_and_not_compared() -> None:
    both = [*answered("c" * 40), *answered("i" * 40, "bg")]
    runs = count_runs([run("c" * 40, "old"), of_records(both, "new", "en", "bg")])
    assert figures(runs, "new", "facts:bg").right.value == 0.0
    assert figures(runs, "new", "facts:bg").change is None
    assert figures(runs, "new", "facts:*").change is None
    assert figures(runs, "old", "facts:bg").segments.lacking == 40
    assert "old did not ask facts:bg: nothing is compared with it there." in runs.notes


def test_a_shown_loss_is_called_worse() -> None:
    runs = count_runs([run("c" * 100, "old"), run("c" * 70 + "i" * 30, "new")])
    change = figures(runs, "new").change
    assert change is not None
    assert change.finding == "worse"
    assert change.difference.value == pytest.approx(-0.3)
    assert figures(runs, "old").change is None


def test_what_nobody_knows_is_never_called_better_or_worse() -> None:
    """All of these could have been right, and all wrong."""
    runs = count_runs([run("c" * 50 + "i" * 50, "old"), run("e" * 100, "new")])
    change = figures(runs, "new").change
    assert change is not None
    assert change.finding == "open"
    assert change.difference.interval is not None
    assert change.difference.interval[0] < -0.5 < 0.5 < change.difference.interval[1]


def test_p_values_are_adjusted_over_the_whole_table() -> None:
    """Six losses in two hundred are shown alone, and not among five runs."""
    old = run("c" * 200, "old")
    letters = "c" * 194 + "i" * 6
    alone = figures(count_runs([old, run(letters, "new")]), "new").change
    others = [run("c" * 199 + "i", f"other{number}") for number in range(4)]
    among = count_runs([old, run(letters, "new"), *others])
    change = figures(among, "new").change
    assert alone is not None
    assert alone.finding == "worse"
    assert change is not None
    assert change.p_value == alone.p_value
    assert change.adjusted == pytest.approx(5 * change.p_value)
    assert change.finding == "open"


def test_grades_of_another_judge_are_shown_and_called_neither() -> None:
    records = [replace(record, judge="judge-b") for record in answered("i" * 100)]
    new = of_records(records, "new", judge="openai:judge-b")
    runs = count_runs([run("c" * 100, "old"), new])
    change = figures(runs, "new").change
    assert change is not None
    assert change.difference.value == -1.0
    assert change.finding == "not comparable"
    assert any("the judge changed" in note for note in runs.notes)


def test_another_way_of_asking_the_judge_is_a_caution_too() -> None:
    sent = {"openai:judge": {"parameters": {"temperature": 0}}}
    other = {"openai:judge": {"parameters": {"temperature": 1}}}
    origin = run("c", "old").report.provenance
    old = run("c" * 50, "old", provenance={**origin, "sent": sent})
    new = run("i" * 50, "new", provenance={**origin, "sent": other})
    change = figures(count_runs([old, new]), "new").change
    assert change is not None
    assert "temperature" in change.caution


def rated(ratings: Sequence[int | None], name: str, bar: int = 6) -> Baseline:
    records = []
    for record, rating in zip(answered("c" * len(ratings)), ratings, strict=True):
        graded = replace(record, grade=None, score=None, rating=rating)
        if rating is None:
            graded = replace(graded, outcome="error", error="timeout: no reply")
        elif rating < bar:
            graded = replace(graded, outcome="failed")
        records.append(graded)
    dataset = facts_dataset(replace(RATED, pass_bar=bar), kind=kind_of("rated"))
    made = run_of(records, dataset, model=f"openai:{name}")
    return Baseline(path=f"runs/{name}", report=made, sha256=name)


def test_ratings_are_counted_from_one_to_ten() -> None:
    runs = count_runs([rated([7] * 10, "old"), rated([10, 1, 3, 3, *[8] * 6], "new")])
    scores = figures(runs, "new").scores
    assert [*scores] == [str(rating) for rating in range(1, 11)]
    assert [scores[text].count for text in ("1", "3", "8", "10", "9")] == [
        *(1, 2, 6, 1, 0)
    ]
    assert figures(runs, "new").mean.value == pytest.approx(6.5)


def test_a_missing_rating_is_the_lowest_in_the_mean() -> None:
    runs = count_runs([rated([10] * 10, "old"), rated([*[10] * 9, None], "new")])
    mean = figures(runs, "new").mean
    assert mean.value == pytest.approx(9.1)
    assert mean.high == pytest.approx(10.0)


def test_ratings_are_read_by_the_first_runs_bar() -> None:
    runs = count_runs([rated([7] * 10, "old"), rated([5] * 10, "new", bar=4)])
    assert figures(runs, "new").right.value == 0.0
    assert "new in facts:en: its pass_bar 4 is read as 6 here." in runs.notes


def test_runs_without_a_shared_item_are_refused() -> None:
    with pytest.raises(UsageError, match="no item in common"):
        count_runs([run("c", "old"), run("c", "new", "bg")])


def test_runs_of_one_model_are_told_apart_by_their_folders() -> None:
    first = run("c", "gpt")
    second = replace(first, path="elsewhere/nightly/run.json")
    third = replace(first, path="other/gpt")
    names = [named.name for named in count_runs([first, second, third]).runs]
    assert names == ["gpt (gpt)", "nightly (gpt)", "gpt (gpt) 3"]


def test_a_run_that_was_cut_short_is_named() -> None:
    cut = run("cc", "new", complete=False)
    assert "new was cut short." in count_runs([run("cc", "old"), cut]).notes


# Nights: the same model, asked again and again


def night(letters: str, number: int, baseline: Baseline | None = None) -> Baseline:
    name = f"n{number}"
    records = [
        replace(record, asked_by=name, answer=f"{letter} of {name[:1]}")
        for record, letter in zip(answered(letters), letters, strict=True)
    ]
    started = f"2026-11-{number + 1:02}T00:00:00+00:00"
    made = run_of(records, model="openai:gpt", run={"id": name, "started": started})
    decided = Decided(
        run=name,
        at=0.0,
        code=0,
        model="openai:gpt",
        baseline=baseline.sha256 if baseline else "",
        monitor=baseline is not None,
    )
    report = replace(made, decided=decided)
    return Baseline(path=f"runs/{name}", report=report, sha256=name)


def test_monitored_runs_follow_their_baseline_in_the_order_of_time() -> None:
    first = night("c" * 40, 0)
    later = [night("c" * 40, number, first) for number in (3, 1, 2)]
    runs = count_runs([first, *later])
    assert [name[:2] for name in runs.nights] == ["n0", "n1", "n2", "n3"]


def test_runs_without_monitor_are_no_nights() -> None:
    runs = count_runs([run("cc", "old"), run("cc", "new")])
    assert runs.nights == []
    assert runs.slices[0].asked_again is None


def test_verdicts_that_change_are_counted_from_night_to_night() -> None:
    """Two of forty changed at the first repetition, and none at the second."""
    first = night("c" * 40, 0)
    second = night("c" * 38 + "ii", 1, first)
    again = count_runs([first, second, night("c" * 38 + "ii", 2, first)])
    asked_again = again.slices[0].asked_again
    assert asked_again is not None
    assert asked_again.verdicts.value == 2 / 80
    assert asked_again.wordings.value == 2 / 80
    assert asked_again.verdicts.interval is not None


def test_an_ungraded_answer_counts_as_changed() -> None:
    first = night("c" * 40, 0)
    asked_again = (
        count_runs([first, night("c" * 39 + "e", 1, first)]).slices[0].asked_again
    )
    assert asked_again is not None
    assert asked_again.verdicts.value == 1 / 40


def test_an_answer_that_was_not_asked_again_says_nothing_of_change() -> None:
    first = night("c" * 40, 0)
    second = night("c" * 40, 1, first)
    kept = [replace(record, asked_by="n0") for record in second.records[:15]]
    records = (*kept, *second.records[15:])
    second = replace(second, report=replace(second.report, records=records))
    asked_again = count_runs([first, second]).slices[0].asked_again
    assert asked_again is not None
    assert asked_again.kept == 15
    assert asked_again.verdicts.n == 25


OUTCOMES = st.lists(
    st.tuples(st.tuples(st.text("abc", max_size=2)), st.none() | st.booleans()),
    min_size=1,
    max_size=30,
)


@settings(max_examples=30)
@given(OUTCOMES)
def test_a_range_holds_its_figure_whatever_the_unknown_items_are(
    outcomes: list[tuple[tuple[str], bool | None]],
) -> None:
    share = worst_share(outcomes)
    assert share.value is not None
    assert share.low is not None
    assert share.high is not None
    for unknown in (True, False):
        known = [(c, unknown if hit is None else hit) for c, hit in outcomes]
        value = worst_share(known).value or 0.0
        assert share.low - 1e-9 <= value <= share.high + 1e-9


@settings(max_examples=30)
@given(OUTCOMES, st.data())
def test_leaving_an_item_out_never_raises_a_share(
    outcomes: list[tuple[tuple[str], bool | None]], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(outcomes) - 1))
    less = list(outcomes)
    less[place] = (outcomes[place][0], None)
    assert (worst_share(less).value or 0.0) <= (worst_share(outcomes).value or 0.0)
    assert (worst_share(less).low or 0.0) <= (worst_share(outcomes).low or 0.0) + 1e-9
