"""The tables at the end of a run: whole, readable, and never wider than 100 columns."""

from reports.plugin.terminal import WIDTH, estimate_text, gate_lines, slice_lines, wrapped
from reports.report import Estimate
from tests.samples import full


def test_no_line_is_wider_than_the_terminal() -> None:
    """Long reasons are wrapped, and every slice and gate is there."""
    report = full()
    lines = slice_lines(report.slices, breakdowns=True)
    for gate in report.decision.gates:
        first, *rest = gate_lines(gate)
        lines += [" " * 13 + first, *rest]
    assert max(map(len, lines)) <= WIDTH
    text = "\n".join(lines)
    assert all(one.name in text for one in report.slices)


def test_breakdowns_are_shown_only_on_request() -> None:
    """-v adds a line for each value of a metadata field, with how many items it has."""
    report = full()
    short, long = slice_lines(report.slices), slice_lines(report.slices, breakdowns=True)
    added = [line for line in long if line not in short]
    assert added
    assert all(" = " in line and "(n=" in line for line in added)


def test_sentences_are_wrapped_with_an_indent() -> None:
    """Long notes stay within 100 columns and can be told apart."""
    lines = wrapped("note: " + "word " * 60)
    assert max(map(len, lines)) <= WIDTH
    assert len(lines) > 2
    assert all(line.startswith("    ") for line in lines[1:])


def test_an_estimate_is_shown_with_its_interval() -> None:
    """An undefined measure says so; a figure without an interval stands alone."""
    assert estimate_text(Estimate(value=0.5, low=0.4, high=0.6, n=9)) == "0.500 [0.400, 0.600]"
    assert estimate_text(Estimate(value=0.5, low=None, high=None, n=9)) == "0.500"
    assert estimate_text(Estimate(value=None, low=None, high=None, n=0)) == "undefined"
