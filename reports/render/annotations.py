"""Workflow commands that GitHub Actions shows as annotations: one for each gate not passed.

Figures and names from thresholds alone: no text of a model or of a data file gets into a command.
"""

from collections.abc import Iterator

from evaluators.statistics.estimate import number
from reports.render import words
from reports.report import GateResult, Report

LIMIT = 10  # GitHub shows ten errors and ten warnings a step
_LEVELS = {"FAIL": "error", "INCONCLUSIVE": "warning"}


def annotations(report: Report) -> Iterator[str]:
    """Yield a line for each gate that failed or is undecided, FAIL first, at most ten a level."""
    left = dict.fromkeys(_LEVELS.values(), LIMIT)
    for gate in words.by_urgency(report.decision.gates):
        level = _LEVELS.get(gate.state)
        if level and left[level]:
            left[level] -= 1
            title = _property(f"{gate.state}: {gate.slice} {gate.rule.measure}")
            yield f"::{level} title={title}::{_data(_sentence(gate))}"


def _sentence(gate: GateResult) -> str:
    found = gate.estimate
    shown = f"{gate.rule.measure} {number(found.value)}"
    return f"{shown}, 95 % interval {words.interval(found)}, n={found.n}; bar {words.bar(gate)}"


def _data(text: str) -> str:
    """Return a message as GitHub's toolkit escapes it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
