"""How many more items or labels would decide a gate: the interval itself is asked.

The end of an interval does not shrink by the square root of the items in general: for few
clusters, near 0 and 1, or where the judge's labels are what is short, such a rule is out by a
factor of 3 to 50. So the counts are doubled until the gate is decided, all else as seen, and then
halved in between. What is doubled is the unit that is short: facts or groups where items depend
on each other, pairs otherwise, or the judge's labels. Each number alone would do.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from qagate.evaluators.output import plural
from qagate.reports.compare.change import ChangeCase
from qagate.reports.gates.change_evidence import ChangeEvidence
from qagate.reports.gates.judge_errors import with_labels
from qagate.reports.metrics.gate import MORE_LABELS

MOST_TIMES = 1024
"""A gate that needs more is better served by another margin."""
MOST_TIMES_DRAWN = 32
"""The same where each try is a bootstrap."""

Attempt = Callable[[float], ChangeEvidence | None]
"""Returns the evidence if something were there so many times; None where that cannot be said."""


def remedies_of(evidence: ChangeEvidence) -> Sequence[str]:
    """Return what would decide an INCONCLUSIVE gate, in a few words; each of them alone would."""
    remedies = []
    more_items = _more_items(evidence)
    if more_items:
        remedies.append(more_items)
    more_labels = _more_labels(evidence)
    if more_labels:
        remedies.append(more_labels)
    return remedies


def units_to_decide(evidence: ChangeEvidence) -> tuple[float, str] | None:
    """Return how many units would decide a gate, and what they are called; None if none would."""
    if evidence.change.counts is None:
        times = _fewest_doublings(
            lambda times: _with_items(evidence, times), MOST_TIMES_DRAWN
        )
    else:
        times = _fewest_times(lambda times: _with_items(evidence, times))
    if times is None:
        return None
    units = evidence.change.units
    name = "pair"
    if evidence.change.seen.n > units:
        name = _cluster_name(evidence)
    return _rounded(units * times, above=units), name


def _more_items(evidence: ChangeEvidence) -> str:
    needed = units_to_decide(evidence)
    if needed is None:
        return ""
    number, name = needed
    more = round(number - evidence.change.units)
    return f"about {plural(more, f'more {name}')}"


def _more_labels(evidence: ChangeEvidence) -> str:
    errors = evidence.errors
    if errors is None or errors.unknown or errors.is_read:
        return ""
    times = _fewest_times(
        lambda times: replace(evidence, errors=with_labels(errors, times))
    )
    if times is None:
        return ""
    labels = errors.youden().labels
    more = round(_rounded(labels * times, above=labels) - labels)
    return f"about {more:,} {MORE_LABELS}"


def _cluster_name(evidence: ChangeEvidence) -> str:
    if all(not side.slice_.cluster for side in evidence.sides):
        return "fact" if _shares_facts(evidence) else "group"
    return "group"


def _shares_facts(evidence: ChangeEvidence) -> bool:
    for side in evidence.sides:
        for pair in side.pairs:
            return side.cluster_of(pair)[0] == "fact_id"
    return False


def _with_items(evidence: ChangeEvidence, times: float) -> ChangeEvidence | None:
    cases: list[ChangeCase] = []
    for case in evidence.cases:
        if case.scaled is None:
            return None
        cases.append(case.scaled(times))
    change = replace(evidence.change, cases=cases)
    return replace(evidence, change=change)


def _fewest_doublings(attempt: Attempt, most: float) -> float | None:
    """Return how often a gate's items have to be there, by doubling; None if not even ``most``."""
    times = 2.0
    while times <= most:
        if _is_decided(attempt(times)):
            return times
        times *= 2
    return None


def _fewest_times(attempt: Attempt) -> float | None:
    """Return about how many times as many would decide; None where ``MOST_TIMES`` would not."""
    enough = _fewest_doublings(attempt, MOST_TIMES)
    if enough is None:
        return None
    too_few = enough / 2
    while enough - too_few > 0.01 * enough:
        middle = (enough + too_few) / 2
        if _is_decided(attempt(middle)):
            enough = middle
        else:
            too_few = middle
    return enough


def _is_decided(evidence: ChangeEvidence | None) -> bool:
    return evidence is not None and evidence.state(evidence.p_value()) != "INCONCLUSIVE"


def _rounded(number: float, *, above: float) -> float:
    """Return a number to two digits, as it should not look exact, and above what there is."""
    return max(above + 1, math.ceil(float(f"{number:.1e}")))
