"""What came of each step: counts that add up, balance, and what the question alone gives away."""

from collections import Counter
from collections.abc import Mapping, Sequence

from cases.tools.builder.items import Item
from cases.tools.builder.trivial import shares
from evaluators.core import NO, YES
from evaluators.statistics.intervals import wilson

Files = Mapping[str, Sequence[Item]]
"""The rows of each step that was made, in the steps' order."""


def final_states(files: Files) -> Counter[str]:
    """Return how many sampled items are where: each is counted once, at the last step it reached.

    A state is ``dropped at STEP: REASON``, ``pending at STEP: REASON``, or ``kept by STEP``.
    """
    last: dict[str, str] = {}
    for step, items in files.items():
        for item in items:
            why = f": {item.reason}" if item.reason else ""
            word = "kept by" if item.state == "kept" else f"{item.state} at"
            last[item.id] = f"{word} {step}{why}"
    return Counter(last.values())


def report(files: Files, negations: frozenset[str]) -> dict[str, object]:
    """Return the counts of all steps, and the balance and the sources of what is left."""
    left = [item for item in _last(files) if item.state == "kept"]
    answered = [item for item in left if item.answer]
    return {
        "steps": {step: _step(items) for step, items in files.items()},
        "final": dict(sorted(final_states(files).items())),
        "items": len({item.id for items in files.values() for item in items}),
        "answers": {
            answer: sum(item.answer == answer for item in answered) for answer in (YES, NO)
        },
        "sources": dict(sorted(Counter(item.origin.group for item in left).items())),
        "licences": dict(sorted(Counter(item.origin.licence for item in left).items())),
        "question_only": question_only(answered, negations),
    }


def question_only(items: Sequence[Item], negations: frozenset[str]) -> dict[str, object]:
    """Return what rules that see only the question get right, and the best one with its interval.

    The best is chosen after the fact, so that its share is a little too high.
    """
    found = shares(items, negations)
    if not found:
        return {}
    best = max(found, key=lambda name: found[name])
    interval = wilson(found[best] * len(items), len(items))
    return {"items": len(items), "shares": found, "best": best, "interval": interval}


def summary(step: str, items: Sequence[Item]) -> str:
    """Return one line on a step."""
    counts = Counter(item.state for item in items)
    parts = [f"{len(items)} in, {counts['kept']} kept"]
    for state in ("dropped", "pending"):
        if counts[state]:
            why = Counter(item.reason for item in items if item.state == state)
            listed = ", ".join(f"{reason} {count}" for reason, count in why.most_common())
            parts.append(f"{counts[state]} {state} ({listed})")
    return f"{step}: {', '.join(parts)}"


def _last(files: Files) -> Sequence[Item]:
    return list(files.values())[-1] if files else ()


def _step(items: Sequence[Item]) -> dict[str, object]:
    found: dict[str, object] = {"in": len(items)}
    for state in ("kept", "dropped", "pending"):
        rows = [item for item in items if item.state == state]
        found[state] = len(rows)
        if rows and state != "kept":
            found[f"{state}_why"] = dict(sorted(Counter(item.reason for item in rows).items()))
    return found
