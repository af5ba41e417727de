"""A small version of the benchmark of what a verdict costs: its bars, and the order of its rows."""

from dataclasses import replace

from tests.benchmarks.verdict_cost import WHOLE, price_of_items, simulate, table

RUNS = 300


def test_an_unchanged_model_is_decided_by_a_tenth_of_the_items() -> None:
    """A median of at most 400 of 4,326, with 16 calls in flight or with 128; it passes."""
    for concurrency in (16, 128):
        found = simulate(replace(WHOLE, concurrency=concurrency), 0.0, RUNS)
        assert found.median <= 400
        assert found.passed > 0.99


def test_a_model_worse_by_the_margin_never_passes_but_for_2_5_percent() -> None:
    """Looked at after every item; 1.8 % more is the noise of so few runs."""
    assert simulate(WHOLE, WHOLE.margin, RUNS).passed <= 0.025 + 0.018


def test_a_clearly_worse_model_is_stopped_within_200_items() -> None:
    """A median over runs in which 15 % of the answers are lost and 20 % differ; all FAIL."""
    found = simulate(replace(WHOLE, discordance=0.2), 0.15, RUNS)
    assert (found.median <= 200, found.failed) == (True, 1.0)


def test_each_way_costs_less_than_the_one_before() -> None:
    """Fixed, cascade, sequential and both, in USD: for many items stopping spares most."""
    rows = [line.split("|") for line in table(WHOLE, price_of_items(), 100)[2:]]
    costs = [float(row[5].replace(",", "")) for row in rows]
    assert [row[1].strip() for row in rows] == ["fixed", "cascade", "sequential", "both"]
    assert costs == sorted(costs, reverse=True)
    assert costs[3] < costs[0] / 10
