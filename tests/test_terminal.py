"""The tables at the end of a run: whole, readable, and never wider than 100 columns."""

from reports.plugin.terminal import WIDTH, estimate_text, gate_lines, slice_lines
from reports.report import Estimate
from tests.samples import full


def test_no_line_is_wider_than_the_terminal() -> None:
    """Long reasons are wrapped, and every slice and gate is there."""
    report = full()
    lines = slice_lines(report.slices)
    for gate in report.decision.gates:
        first, *rest = gate_lines(gate)
        lines += [" " * 13 + first, *rest]
    assert max(map(len, lines)) <= WIDTH
    text = "\n".join(lines)
    assert all(one.name in text for one in report.slices)


def test_an_estimate_is_shown_with_its_interval() -> None:
    """An undefined measure says so; a figure without an interval stands alone."""
    assert estimate_text(Estimate(value=0.5, low=0.4, high=0.6, n=9)) == "0.500 [0.400, 0.600]"
    assert estimate_text(Estimate(value=0.5, low=None, high=None, n=9)) == "0.500"
    assert estimate_text(Estimate(value=None, low=None, high=None, n=0)) == "undefined"
