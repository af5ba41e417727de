"""Prompts and rubrics: templates of one language, read from YAML and filled in one pass."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Protocol = Literal["tool", "letter", "json", "rate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """An answer prompt. ``version`` is its name, language, version and content hash."""

    name: str
    language: str
    system: str
    user: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """How a judge is asked. ``scores`` maps grades to 0..1 where the rubric gives them."""

    name: str
    language: str
    protocol: Protocol
    system: str
    user: str
    version: str
    scores: Mapping[str, float] = field(default_factory=dict)
