"""What the sections of the page are given: bars, histograms, tables and words for gates."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from cases.dataset import Threshold
from evaluators.kinds import kind_of
from evaluators.statistics.betting import ENOUGH
from evaluators.statistics.intervals import Estimate, wilson
from reports.render import charts, views, words
from reports.render.charts import against, around, growth, plot, reach_of
from reports.run.evidence import AuditStep, AuditTrail, ConfusionCell
from reports.run.report import Decision, GateResult, GateState
from reports.verdict.promoted import BASELINES
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of
from tests.support.samples import full, gate, report


def share(state: GateState, count: int, n: int, **bars: object) -> GateResult:
    """Return a gate on a share of ``count`` in ``n`` items, none of them ungraded."""
    rule = Threshold(measure="correct", **bars)  # type: ignore[arg-type]
    shown = Estimate.of(value := count / n, wilson(count, n), n)
    return gate(state, threshold=rule, estimate=shown, worst=value, best=value)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (share("PASS", 37, 60, min=0.55), "would fail with 5 items fewer"),
        (share("PASS", 33, 60, min=0.55), "would fail with 1 item fewer"),
        (share("FAIL", 30, 60, min=0.55), "would pass with 3 items more"),
        (share("PASS", 16, 60, max=0.35), "would fail with 6 items more"),
        (share("FAIL", 22, 60, max=0.35), "would pass with 1 item fewer"),
        (share("PASS", 0, 60, max=0.0), "would fail with 1 item more"),
        (share("INCONCLUSIVE", 37, 60, min=0.55), ""),
        (share("PASS", 37, 60, min=0.55, max=0.9), ""),
        (share("PASS", 37, 60, min=0.3, evidence="confident"), ""),
        (gate("PASS"), ""),
        (gate("PASS", threshold=Threshold(measure="f_score", min=0.3), worst=0.6, best=0.6), ""),
    ],
)
def test_a_gate_says_how_many_items_would_turn_it(made: GateResult, text: str) -> None:
    """Only where the measure is a share of items, its bar is one, and nothing is ungraded."""
    assert views.outlook(made) == text


@pytest.mark.parametrize("count", range(61))
def test_one_item_less_than_named_does_not_turn_a_gate(count: int) -> None:
    """The number is the smallest: checked by counting, on both sides of the bar."""
    passes = count / 60 >= 0.55
    words = views.outlook(share("PASS" if passes else "FAIL", count, 60, min=0.55)).split()
    step = int(words[3])
    turned = count - step if passes else count + step
    assert (turned / 60 >= 0.55) != passes
    before = turned + 1 if passes else turned - 1
    assert (before / 60 >= 0.55) == passes


def test_the_nearest_gate_is_named_where_all_pass() -> None:
    """By items, not by the distance of figures; a slice's gates share a row, none is lost."""
    far, near = share("PASS", 60, 100, min=0.5), share("PASS", 8, 10, min=0.7)
    assert views.nearest([far, near]) is near
    assert views.nearest([far, share("FAIL", 1, 10, min=0.7)]) is None
    assert views.nearest([gate("PASS", worst=None)]) is None
    made = [gate("FAIL", language="pl"), gate("PASS"), gate("PASS", language="pl")]
    rows = views.gate_rows(made)
    assert [(name, len(found)) for name, found in rows.items()] == [
        ("simpleqa:pl", 2),
        ("simpleqa:en", 1),
    ]


def test_a_bar_is_filled_by_its_parts() -> None:
    """Right, silent and wrong sum to the plan, ungraded items included."""
    (part,) = run_of(answered("cciinem")).slices
    found = charts.segments(part)
    assert [(one.word, one.count) for one in found] == [
        ("correct", 2), ("not attempted", 1), ("incorrect", 2), ("ungraded", 2),
        ("stopped", 0),
    ]  # fmt: skip
    assert sum(one.width for one in found) == pytest.approx(100, abs=0.05)
    assert found[-2].start == pytest.approx(100 * 5 / 7, abs=0.01)
    assert [one.count for one in charts.states(part.counts)] == [2, 3, 1, 1, 0]


def test_every_kind_has_its_words_and_columns() -> None:
    """Headline measures a kind; columns from 1 to 10, marked below the bar; 10 after 9."""
    kinds = views.kinds(full(5).slices)
    assert [one.title for one in kinds] == ["Graded", "Rated", "Yes/no", "Judges"]
    assert kinds[0].shown == ("correct", "f_score", "correct_given_attempted")
    assert "penalised" in kinds[0].rest
    assert kinds[0].fields == ("topic",)
    assert [one.word for one in charts.segments(kinds[3].slices[0])][:1] == ["agree"]
    (rated,) = [part for part in full(5).slices if part.kind == "rated"]
    columns = charts.histogram(rated, 6)
    assert [one.count for one in columns] == [n * n for n in range(1, 11)]
    assert columns[-1].height == 60
    assert [one.tone for one in columns] == ["wrong"] * 5 + ["right"] * 5
    assert {one.tone for one in charts.histogram(rated, None)} == {"right"}
    cells = [("10", "9", 1), ("9", "10", 2), ("9", "9", 3)]
    grades, rows = charts.matrix(ConfusionCell(label=a, grade=b, count=n) for a, b, n in cells)
    assert grades == ["9", "10"]
    assert rows == {"9": [("9", 3), ("10", 2)], "10": [("9", 1), ("10", 0)]}
    declared = graded_slice(kind=kind_of("rated"), pass_bar=7)
    found = views.sections(report(datasets=(facts_dataset(declared),)))
    assert found["pass_bars"] == {"facts:en": 7}


def test_figures_times_and_names_are_short() -> None:
    """In UTC; three decimals, more where a bar is finer; a promoted run by its name."""
    assert views.date("2026-11-21T21:37:43+00:00") == "2026-11-21 21:37 UTC"
    assert views.date(None) == "unknown"
    assert (
        views.exit_meaning(Decision(gates=(), code=77, line="")) == "as pytest or a plugin has it"
    )
    shown = [views.fixed(x) for x in (0.00296, -0.0001, 0.5, None, float("nan"))]
    assert shown == ["0.003", "0.000", "0.500", "undefined", "undefined"]
    for rule, text in (
        (Threshold(measure="correct", min=0.36), "0.003"),
        (Threshold(measure="check_pii", max=0.001), "0.00296"),
        (Threshold(measure="cost", max=0.05), "0.00296"),
    ):
        assert views.shown_as(gate("PASS", threshold=rule))(0.00296) == text
    assert words.run_name(str(Path("/home/ana") / BASELINES / "2026-11")) == "2026-11"
    for path in ("last-release/run.json", "baselines/x", "run", ""):
        assert words.run_name(path) == path


def test_what_became_of_the_other_items_is_counted() -> None:
    """Only what occurred is named."""
    made = run_of(answered("ccien"), baseline=run_of(answered("cic")))
    assert made.comparison is not None
    assert views.others(made.comparison.slices[0]) == [("right in both", 1), ("new", 2)]


def test_the_headline_repeats_nothing_that_stands_next_to_it() -> None:
    """Neither verdict, exit code nor a gate listed below; what else the last line says stays."""
    gates = [gate("FAIL")]
    line = f"GATES FAIL (1 of 1 failed): exit 1; {gates[0].slice} {gates[0].name}; 2 failures"
    assert views.headline(line, gates) == "1 of 1 gates failed; 2 failures"
    assert views.headline("GATES PASS (3 of 3): exit 0; 3 missed", []) == (
        "3 of 3 gates passed; 3 missed"
    )
    assert views.headline("GATES INCONCLUSIVE (1 of 3): exit 6", []) == "1 of 3 gates undecided"
    for other in ("NOTHING GRADED: exit 4; refused", "NO GATES: exit 6; 3 selected"):
        assert views.headline(other, []) == other


@pytest.mark.parametrize(("code", "gates", "said"), [
    (0, "PASS", ""), (6, "INCONCLUSIVE", ""), (1, "FAIL", ""),
    (1, "PASS", "something failed that is not an item's miss"),
])  # fmt: skip
def test_an_exit_code_is_explained_where_the_verdict_does_not(
    code: int, gates: GateState, said: str
) -> None:
    """A failing gate says exit 1 itself; with passing gates the page says what it was."""
    assert views.exit_meaning(Decision(gates=(gate(gates),), code=code, line="")) == said


def test_a_gate_is_drawn_on_its_own_axis() -> None:
    """A rate from 0 to 1, ratings from 1 to 10, a drop around zero; the unknown is not drawn."""
    drawn = plot(gate("FAIL", threshold=Threshold(measure="correct", min=0.35, max=0.9)))
    assert (drawn.start, drawn.end, drawn.value, drawn.bars) == (0, 1, 21, (35, 90))
    assert (drawn.low, drawn.high, drawn.worst, drawn.best) == (10, 32, 15, 25)
    assert drawn.zero is None
    rated = plot(
        gate("PASS", threshold=Threshold(measure="mean_rating", min=5.5), worst=None, best=11.0)
    )
    assert (rated.start, rated.end, rated.bars, rated.worst) == (1, 10, (50,), None)
    assert rated.best == 100
    drop = gate("FAIL", threshold=Threshold(measure="drop", max=0.1), worst=-0.2, best=0.0,
                estimate=Estimate(value=-0.1, low=-0.2, high=0.0, n=9))  # fmt: skip
    drawn = plot(drop)
    assert drawn.start == -drawn.end
    assert drawn.bars == (drawn.value,)
    assert (drawn.best, drawn.zero) == (50, 50)
    nothing = Estimate(value=None, low=None, high=float("nan"), n=0)
    drawn = plot(gate("INCONCLUSIVE", threshold=Threshold(measure="drop"), estimate=nothing,
                      worst=None, best=None))  # fmt: skip
    assert (drawn.value, drawn.low, drawn.high, drawn.bars) == (None, None, None, ())
    zero = gate("PASS", threshold=Threshold(measure="drop", max=0.0), worst=0.0, best=0.0,
                estimate=Estimate(value=0.0, low=0.0, high=0.0, n=1))  # fmt: skip
    assert plot(zero).value == 50
    found = Estimate(value=0.8, low=0.7, high=0.9, n=50)
    assert against(found, 0.55).bars == (55,)
    assert against(found, None).bars == ()


def test_the_evidence_of_people_is_two_lines() -> None:
    """From 1, on the same height for both, to what decides; the worst is drawn at 1/100."""
    steps = (
        AuditStep(looked=0, passing=0.0, failing=0.0),
        AuditStep(looked=40, passing=math.log10(ENOUGH), failing=-9.0),
    )
    nothing = Estimate(value=None, low=None, high=None, n=0)
    trail = AuditTrail(
        pairs=99, alike=0, looked=40, open=0, next=0, judged=nothing, corrected=nothing, steps=steps
    )
    drawn = growth(trail)
    assert drawn.enough == 4
    assert drawn.passing == ((0, drawn.start), (100, 4))
    assert drawn.failing == ((0, drawn.start), (100, 84))
    assert growth(replace(trail, steps=())).passing == ()


def test_differences_share_an_axis_that_holds_them_all() -> None:
    """Lines one below the other can be compared, and no whisker is cut."""
    some = [Estimate(value=v, low=v - 0.1, high=v + 0.1, n=9) for v in (-0.3, 0.2)]
    reach = reach_of(some)
    assert reach > 0.4
    drawn = [around(one, reach) for one in some]
    assert {one.zero for one in drawn} == {50}
    assert 0 < (drawn[0].low or 0) < (drawn[0].value or 0) < 50 < (drawn[1].value or 0)
    assert reach_of([]) == 1
