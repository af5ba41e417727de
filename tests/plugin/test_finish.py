"""The tables at the end of a run: whole, readable, and never wider than 100 columns."""

from dataclasses import replace

from evaluators.statistics.intervals import Estimate
from reports.plugin.finish import slice_lines
from reports.render import console
from tests.support.samples import full, part, record, report


def test_no_line_is_wider_than_the_terminal() -> None:
    """Long reasons are wrapped, and every slice and gate is there."""
    made = full()
    lines = [*slice_lines(made.slices, breakdowns=True), *console.gates(made)]
    assert max(map(len, lines)) <= console.WIDTH
    text = "\n".join(lines)
    assert all(one.name in text for one in made.slices)


def test_breakdowns_are_shown_only_on_request() -> None:
    """-v adds a line for each value of a metadata field, with how many items it has."""
    made = full()
    short, long = slice_lines(made.slices), slice_lines(made.slices, breakdowns=True)
    added = [line for line in long if line not in short]
    assert added
    assert all(" = " in line and "(n=" in line for line in added)


def test_a_metadata_value_cannot_steer_the_terminal() -> None:
    """A control sequence or a line end of a data file stays text on its own line."""
    share = {"correct": Estimate(value=1.0, low=0.2, high=1.0, n=1)}
    made = part("graded", (record(1),), {"correct": 1.0})
    made = replace(made, breakdowns={"topic": {"\x1b[31mred\nPASS": share}})
    text = "\n".join(slice_lines((made,), breakdowns=True))
    assert "red" in text
    assert "\x1b" not in text
    assert not any(line.startswith("PASS") for line in text.splitlines())


def test_notes_are_wrapped_with_an_indent() -> None:
    """Long notes stay within 100 columns and can be told apart; a hyphen breaks no line."""
    lines = list(console.notes(report(notes=("word " * 60 + "one-two " * 40,))))
    assert max(map(len, lines)) <= console.WIDTH
    assert len(lines) > 2
    assert all(line.startswith("    ") for line in lines[1:])
    assert "one-two".join([""] * 41) == "".join(lines).replace(" ", "").partition("word" * 60)[2]


def test_an_estimate_is_shown_with_its_interval() -> None:
    """An undefined measure says so; a figure without an interval stands alone."""
    assert Estimate(value=0.5, low=0.4, high=0.6, n=9).text() == "0.500 [0.400, 0.600]"
    assert Estimate(value=0.5, low=None, high=None, n=9).text() == "0.500"
    assert Estimate(value=None, low=None, high=None, n=0).text() == "undefined"
