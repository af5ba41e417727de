"""Which answers that rules settled the model behind them judges as well.

Labelled answers measure the model of a cascade: its rules may settle none of them. So the rules
are measured on answers of the slice itself. Of those that they settled the model judges
``CHECKED_ANSWERS``, drawn by a hash of the item, or all where there are fewer. The rules' verdict
stands; what the model says shows how far they are believed (``reports/judge/rule_errors.py``).
"""

import hashlib
import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from qagate.evaluators.core import Vote, parse_judges

CHECKED_ANSWERS = 60
"""Answers of a slice that rules settled and the model judges too."""

RuleChecks = Mapping[str, str]
"""What the model says of answers that rules settled, by the key of the item: its grade, or
nothing where it gave none."""
NO_CHECKS: RuleChecks = MappingProxyType({})
"""Of a run without rules before a model."""


def checks_in_part(parts: int) -> int:
    """Return how many answers of a slice are checked in one of so many shards."""
    return math.ceil(CHECKED_ANSWERS / parts)


def rules_of(judge: str) -> str:
    """Return the rules of a cascade, by its SPEC; empty for any other judge."""
    judges = parse_judges(judge.split(" "))
    return judges.members[0].rules if judges.is_cascade else ""


def is_settled_by(rules: str, votes: Iterable[Vote]) -> bool:
    """Return whether these rules gave the verdict with these votes."""
    return any(vote.judge == rules for vote in votes)


def in_drawn_order(keys: Iterable[str]) -> list[str]:
    """Return items in the order in which they are drawn; the same in every process."""

    def order(key: str) -> str:
        return hashlib.sha256(f"rules:{key}".encode()).hexdigest()

    return sorted(keys, key=order)
