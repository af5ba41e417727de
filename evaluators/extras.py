"""Extra measures of an answer, beside its verdict: taken together, each failing alone."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from evaluators.core import Ask, CallError, Case, JudgeError
from evaluators.ledger import LedgerError
from evaluators.metrics import MetricSpec
from evaluators.models.secrets import mask, one_line


class Measurer(Protocol):
    """Whatever gives an answer a number from 0 to 1 beside its verdict."""

    @property
    def spec(self) -> MetricSpec:
        """What it measures."""
        ...

    async def measure(self, case: Case, answer: str, ask: Ask) -> float:
        """Return the number. Raises CallError or JudgeError where there is none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricResults:
    """Extra measures of one answer: the value by name, None where ``unmeasured`` says why.

    ``failure`` is why no further reply can be kept, or empty.
    """

    values: Mapping[str, float | None] = field(default_factory=dict)
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    failure: str = ""


async def measure_all(
    measurers: Sequence[Measurer], case: Case, answer: str, ask: Ask
) -> MetricResults:
    """Return what the measurers say of an answer; one that fails leaves no trace on the others."""
    asked = (measurer.measure(case, answer, ask) for measurer in measurers)
    found = await asyncio.gather(*asked, return_exceptions=True)
    values: dict[str, float | None] = {}
    unmeasured: dict[str, str] = {}
    failure = ""
    for measurer, result in zip(measurers, found, strict=True):
        name = measurer.spec.name
        if isinstance(result, BaseException) and not isinstance(result, Exception):
            raise result
        values[name] = None if isinstance(result, Exception) else result
        if isinstance(result, Exception):
            unmeasured[name] = _told(result)
        if isinstance(result, LedgerError):
            failure = str(result)
    return MetricResults(values=values, unmeasured=unmeasured, failure=failure)


def _told(error: Exception) -> str:
    if isinstance(error, CallError | JudgeError):
        return f"{error.kind}: {error}"
    kind = "ledger" if isinstance(error, LedgerError) else "internal"
    return f"{kind}: {one_line(mask(f'{type(error).__name__}: {error}'))}"
