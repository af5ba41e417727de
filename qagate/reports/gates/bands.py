"""What a gate shows beside its verdict: a band that obeys it, and the metric then and now.

A picture must never say another thing than the verdict. So the band is that of the reading which
decided: of a change, all that pairs and labels together do not rule out; of a bar, the worst cases
or the ends of the intervals. Where more than the band decides, such as a correction for several
gates, its end is moved to the bar: nothing nearer was shown. Hence a band lies inside the bar
where a gate passes, wholly beyond it where it fails, and on both sides of it where neither holds.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from qagate.cases.dataset import Threshold
from qagate.evaluators.statistics.intervals import Interval
from qagate.evaluators.statistics.metrics import DROP
from qagate.reports.compare.sides import Compared, Sides
from qagate.reports.compare.values import before_and_now, value_of
from qagate.reports.run.report import Decision, GateResult, GateState

HAIR = 1e-9
"""How far inside a bar a band ends that only rounding moved over it."""


def allowed(threshold: Threshold) -> Interval:
    """Return the values that a threshold lets pass; of a margin the changes, new - old."""
    if not threshold.paired:
        low = -math.inf if threshold.min is None else threshold.min
        high = math.inf if threshold.max is None else threshold.max
        return low, high
    margin = threshold.max or 0.0
    if threshold.measure == DROP:
        return -margin, math.inf
    return -math.inf, margin


def limit_of(threshold: Threshold, state: GateState) -> Interval:
    """Return the bar that is drawn: of ``fail: zero`` it is 0 where the gate fails."""
    if state == "FAIL" and threshold.fail == "zero":
        return allowed(replace(threshold, max=0.0))
    return allowed(threshold)


def obeying(band: Interval, limit: Interval, state: GateState) -> Interval:
    """Return the band with its ends on the side of the limit that the verdict says."""
    low, high = band
    floor, ceiling = limit
    if state == "PASS":
        return min(max(low, floor), ceiling), max(min(high, ceiling), floor)
    beyond_floor = floor - HAIR
    beyond_ceiling = ceiling + HAIR
    is_about_floor = _is_nearer_floor(band, limit)
    if state == "FAIL":
        if is_about_floor:
            return min(low, beyond_floor), min(high, beyond_floor)
        return max(low, beyond_ceiling), max(high, beyond_ceiling)
    if is_about_floor:
        return min(low, beyond_floor), max(high, floor)
    return min(low, ceiling), max(high, beyond_ceiling)


def _is_nearer_floor(band: Interval, limit: Interval) -> bool:
    """Return which end of the limit a band is about: the one that it is beyond, or near."""
    low, high = band
    floor, ceiling = limit
    room_at_floor = low - floor
    room_at_ceiling = ceiling - high
    return room_at_floor <= room_at_ceiling


def with_pictures(decision: Decision, compared: Sequence[Compared]) -> Decision:
    """Return a decision whose gates have bands that obey them, and their metric then and now."""
    gates = tuple(_with_picture(gate, compared) for gate in decision.gates)
    return replace(decision, gates=gates)


def _with_picture(gate: GateResult, compared: Sequence[Compared]) -> GateResult:
    limit = limit_of(gate.threshold, gate.state)
    band = gate.band or gate.estimate.interval
    # A pool that fails by one of its languages is drawn by these.
    if band is not None and not gate.bands:
        band = obeying(band, limit, gate.state)
    bands = {name: obeying(own, limit, "FAIL") for name, own in gate.bands.items()}
    old, new = _then_and_now(gate, compared)
    return replace(gate, band=band, bands=bands, old=old, new=new)


def _then_and_now(
    gate: GateResult, compared: Sequence[Compared]
) -> tuple[float | None, float | None]:
    sides = sides_of(gate, compared)
    threshold = gate.threshold
    if threshold.paired:
        return before_and_now(threshold.of, sides) if sides else (None, None)
    old = None
    if len(sides) == 1:
        (side,) = sides
        old_records = [pair.old for pair in side.pairs]
        old = value_of(threshold.measure, side.slice_, old_records)
    return old, gate.estimate.value


def sides_of(gate: GateResult, compared: Iterable[Compared]) -> Sides:
    """Return the slices of a gate beside the earlier run that it is about."""
    role = "anchor" if gate.anchored else "baseline"
    for sides in compared:
        scope = [side for name, side in sides.items() if _is_in(name, gate)]
        if scope and scope[0].role == role:
            return scope
    return []


def _is_in(name: str, gate: GateResult) -> bool:
    if gate.language:
        return name == gate.slice
    return name.partition(":")[0] == gate.dataset
