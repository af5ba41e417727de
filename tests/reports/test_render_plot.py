"""Where numbers are drawn: positions along an axis, for gates, differences and floors."""

import math
from dataclasses import replace

from cases.dataset import Threshold
from evaluators.statistics.betting import ENOUGH
from evaluators.statistics.intervals import Estimate
from reports.render.charts import against, around, growth, plot, reach_of
from reports.run.evidence import AuditStep, AuditTrail
from tests.support.samples import gate


def test_a_rate_is_drawn_from_0_to_1() -> None:
    """Value, interval, bounds and bar at their share of the line."""
    drawn = plot(gate("FAIL", threshold=Threshold(measure="correct", min=0.35, max=0.9)))
    assert (drawn.start, drawn.end, drawn.value, drawn.bars) == (0, 1, 21, (35, 90))
    assert (drawn.low, drawn.high, drawn.worst, drawn.best) == (10, 32, 15, 25)
    assert drawn.zero is None


def test_ratings_have_the_axis_of_ratings() -> None:
    """From 1 to 10, whatever the figures; what lies outside is drawn at the end."""
    rated = plot(
        gate("PASS", threshold=Threshold(measure="mean_rating", min=5.5), worst=None, best=11.0)
    )
    assert (rated.start, rated.end, rated.bars, rated.worst) == (1, 10, (50,), None)
    assert rated.best == 100


def test_a_drop_has_an_axis_around_zero_with_its_margin_below() -> None:
    """The bar is minus the margin; zero stands in the middle."""
    drop = gate("FAIL", threshold=Threshold(measure="drop", max=0.1), worst=-0.2, best=0.0,
                estimate=Estimate(value=-0.1, low=-0.2, high=0.0, n=9))  # fmt: skip
    drawn = plot(drop)
    assert drawn.start == -drawn.end
    assert drawn.bars == (drawn.value,)
    assert (drawn.best, drawn.zero) == (50, 50)


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


def test_an_undefined_gate_is_an_empty_line() -> None:
    """Nothing is drawn where nothing is known."""
    nothing = Estimate(value=None, low=None, high=float("nan"), n=0)
    drawn = plot(gate("INCONCLUSIVE", threshold=Threshold(measure="drop"), estimate=nothing,
                      worst=None, best=None))  # fmt: skip
    assert (drawn.value, drawn.low, drawn.high, drawn.bars) == (None, None, None, ())
    zero = gate("PASS", threshold=Threshold(measure="drop", max=0.0), worst=0.0, best=0.0,
                estimate=Estimate(value=0.0, low=0.0, high=0.0, n=1))  # fmt: skip
    assert plot(zero).value == 50


def test_differences_share_an_axis_that_holds_them_all() -> None:
    """Lines one below the other can be compared, and no whisker is cut."""
    some = [Estimate(value=v, low=v - 0.1, high=v + 0.1, n=9) for v in (-0.3, 0.2)]
    reach = reach_of(some)
    assert reach > 0.4
    drawn = [around(one, reach) for one in some]
    assert {one.zero for one in drawn} == {50}
    assert 0 < (drawn[0].low or 0) < (drawn[0].value or 0) < 50 < (drawn[1].value or 0)
    assert reach_of([]) == 1


def test_an_agreement_stands_against_its_floor() -> None:
    """On a line from 0 to 1, without a bar where no floor is given."""
    found = Estimate(value=0.8, low=0.7, high=0.9, n=50)
    assert against(found, 0.55).bars == (55,)
    assert against(found, None).bars == ()
