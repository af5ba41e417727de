"""A margin's verdict in words: the figures, where they lie, and what would decide it."""

from collections.abc import Iterator

from qagate.evaluators.output import plural
from qagate.evaluators.statistics.intervals import figure, span_of
from qagate.reports.compare.sides import Sides
from qagate.reports.gates.change_evidence import ChangeEvidence, is_strict
from qagate.reports.gates.remedies import remedies_of, units_to_decide
from qagate.reports.gates.strictness import Strictness
from qagate.reports.run.report import GateState


def reason(evidence: ChangeEvidence, state: GateState) -> str:
    """Return the verdict in words, and the counts it rests on."""
    rule = evidence.threshold
    seen = evidence.change.seen
    name = f"{rule.of}: " if rule.of else ""
    what = "new / old - 1" if rule.relative else "new - old"
    value = figure(seen.value or 0.0, evidence.sign * evidence.margin)
    text = f"{name}{what} is {value}"
    if evidence.is_confident and seen.interval:
        text += f", 95 % interval {span_of(seen.interval)}"
    text += f": {_zone(evidence, state)}"
    if state == "INCONCLUSIVE":
        text += _advice(evidence)
    text += f" ({'; '.join(_basis(evidence))})"
    share = evidence.cases[0].share
    note = ""
    if evidence.errors is not None and share is not None:
        note = evidence.errors.sentence(share)
    elif evidence.errors is not None and evidence.errors.unknown:
        note = f"the verdict is about the judge's opinion: {evidence.errors.basis}"
    if note:
        text += f"; {note}"
    return text


def _advice(evidence: ChangeEvidence) -> str:
    missing = missing_text(evidence.sides)
    if missing and not evidence.threshold.of_usage:
        return f"; first see to the {missing}"
    needed = units_to_decide(evidence)
    if needed is None:
        return ""
    number, name = needed
    return f"; about {plural(round(number), name)} would decide it"


def missing_text(sides: Sides) -> str:
    """Return how many items count at their worst, and why; empty where none does."""
    counts = (
        (sum(side.count("ungraded") for side in sides), "ungraded"),
        (sum(side.count("absent") for side in sides), "missing"),
        (sum(side.count("edited") for side in sides), "edited"),
    )
    parts = [f"{count:,} {word}" for count, word in counts if count]
    total = sum(count for count, _ in counts)
    if not total:
        return ""
    noun = "item" if total == 1 else "items"
    return f"{', '.join(parts)} {noun}"


def _basis(evidence: ChangeEvidence) -> Iterator[str]:
    sides = evidence.sides
    counts = evidence.change.counts
    if counts is not None:
        yield counts.basis(evidence.threshold.of)
    else:
        yield plural(evidence.change.seen.n, "pair")
    yield from missing_basis(evidence)
    yield from added_basis(sides)
    yield from strictness_basis(evidence.strictness)


def strictness_basis(strictness: Strictness) -> Iterator[str]:
    """Yield what a gate is held to where it is more than usual."""
    if is_strict(strictness):
        level = 100 * (1 - 2 * strictness.tail)
        reasons = []
        if strictness.candidates.are_several:
            reasons.append(f"one of {strictness.candidates.number} candidates")
        if strictness.tries:
            reasons.append(f"set {strictness.number} of answers of this model")
        yield f"held to {level:.4g} %, as {' and '.join(reasons)}"


def missing_basis(evidence: ChangeEvidence) -> Iterator[str]:
    """Yield how many items are missing, and what the change would be at either extreme."""
    unknown = len(evidence.cases) > 1
    if not unknown:
        return
    text = missing_text(evidence.sides) or "items without a figure"
    if evidence.threshold.of_usage:
        text = (
            f"{evidence.cases[1].change.n - evidence.change.seen.n:,} without a figure"
        )
    values = evidence.values
    yield f"{text}: at worst {figure(values[0])}, at best {figure(values[-1])}"
    if any(side.count("edited") for side in evidence.sides):
        yield "to mend a question, retire its id and add it under a new one"


def added_basis(sides: Sides) -> Iterator[str]:
    """Yield how many items of this run have nothing to be compared with."""
    added = sum(len(side.added) for side in sides)
    if not added:
        return
    share = added / (added + sum(len(side.pairs) for side in sides))
    role = sides[0].role
    yield f"{plural(added, 'item')} that the {role} lacks left out, {share:.0%} of all"


def _zone(evidence: ChangeEvidence, state: GateState) -> str:
    rule = evidence.threshold
    change = rule.measure
    margin = f"the margin of {rule.amount(evidence.margin)}"
    allowed = allowed_by_judge(evidence)
    within = margin
    if allowed is not None:
        within += f", {figure(allowed, evidence.margin)} on the judge's scale"
    neither = f"neither to be within {within}, nor"
    if allowed is None:
        neither = f"neither to be within {within} nor"
    if not evidence.is_confident:
        if state == "PASS":
            return f"the {change} is within {within}"
        if state == "FAIL":
            return f"the {change} is beyond {margin}"
        return f"the {change} is {neither.replace(' to be', '')} beyond it"
    if state == "PASS":
        return f"the {change} is shown to be within {within}"
    if rule.fail == "margin":
        if state == "FAIL":
            return f"the {change} is shown to be beyond {margin}"
        return f"shown {neither} beyond it"
    if state == "FAIL":
        return f"shown to be worse, and not shown to be within {within}"
    return f"shown {neither} to be worse"


def allowed_by_judge(evidence: ChangeEvidence) -> float | None:
    """Return the harm that the judge may show at most; None where its errors change nothing.

    With its errors and those of the pairs combined, this is the end that the interval of the
    pairs has to keep to: what is left of (d + mJ)² by m² (J - low J)².
    """
    errors = evidence.errors
    if errors is None or errors.unknown or errors.is_read or not evidence.margin:
        return None
    youden = errors.youden(evidence.strictness.tail)
    if youden.low <= 0 or youden.low >= 1:
        return None
    shrunk = evidence.margin * youden.value
    if not evidence.is_confident:
        return shrunk
    harm = evidence.sign * (evidence.change.seen.value or 0.0)
    room = shrunk - harm
    lost = evidence.margin * (youden.value - youden.low)
    if room <= lost:
        return evidence.margin * youden.low
    return float(harm + (room**2 - lost**2) ** 0.5)


def needs(evidence: ChangeEvidence) -> str:
    """Return the end that the interval has to keep to, where it is not the margin itself."""
    allowed = allowed_by_judge(evidence)
    if allowed is None or evidence.errors is None:
        return ""
    youden = evidence.errors.youden(evidence.strictness.tail)
    word, sign = ("above", "-") if evidence.sign < 0 else ("below", "+")
    shown = youden.low if evidence.is_confident else youden.value
    bound = figure(allowed, evidence.margin)
    return f"needs {word} {sign}{bound}: judge J {shown:.2f}"


def remedy(evidence: ChangeEvidence) -> str:
    """Return what would decide an INCONCLUSIVE gate, in a few words; empty if nothing is known."""
    sides = evidence.sides
    if not evidence.threshold.of_usage:
        ungraded = sum(side.count("ungraded") for side in sides)
        if ungraded:
            return f"grade {ungraded:,} more"
        missing = missing_text(sides)
        if missing:
            return f"see to the {missing}"
    errors = evidence.errors
    is_known = errors is not None and not errors.unknown and not errors.is_read
    if errors is not None and is_known and errors.youden().low <= 0:
        return "a better judge"
    return " or ".join(remedies_of(evidence))
