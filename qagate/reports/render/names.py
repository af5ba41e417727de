"""What reports for people call things: languages by their names, slices by their languages.

``simpleqa:pl`` is "Polish", and "Polish in simpleqa" where a run has several data sets.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

from qagate.evaluators.reading import load_yaml
from qagate.reports.run.report import GateResult, Report

LANGUAGES = Path(__file__).parent / "texts" / "languages.yaml"
ALL_LANGUAGES = "all languages together"
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@cache
def _languages() -> dict[str, str]:
    return cast("dict[str, str]", load_yaml(LANGUAGES))


def language_name(code: str) -> str:
    """Return the English name of a language: ``Polish``, ``Portuguese (BR)``; else its code."""
    base, _, rest = code.partition("-")
    name = _languages().get(base.casefold())
    if name is None:
        return code
    return f"{name} ({rest})" if rest else name


def number_word(number: int) -> str:
    """Return a small number in words, a larger one in digits."""
    return NUMBERS[number] if number < len(NUMBERS) else f"{number:,}"


def listed(names: Sequence[str]) -> str:
    """Return ``Polish``, ``Polish and Hungarian``, ``Polish, Hungarian and English``."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names of a run's slices."""

    datasets: tuple[str, ...]
    """The data sets that a model answered."""
    slices: tuple[str, ...]
    """All slices, as the record calls them."""

    @classmethod
    def of(cls, report: Report) -> "Names":
        """Return the names of a run."""
        answered = [part.dataset for part in report.slices if part.kind.answered]
        return cls(
            datasets=tuple(dict.fromkeys(answered)),
            slices=tuple(part.name for part in report.slices),
        )

    def of_slice(self, name: str) -> str:
        """Return what people call a slice, or a pool such as ``simpleqa:*``."""
        dataset, _, language = name.partition(":")
        called = ALL_LANGUAGES if language == "*" else language_name(language)
        return f"{called}{self.within(dataset)}"

    def within(self, dataset: str) -> str:
        """Return `` in eba`` where it takes that to tell data sets apart."""
        if len(self.datasets) < 2 and dataset in (*self.datasets, ""):
            return ""
        return f" in {dataset}"

    def of_gate(self, gate: GateResult) -> str:
        """Return what people call the slice of a gate."""
        return self.of_slice(gate.slice)

    def in_words(self, text: str) -> str:
        """Return a sentence of the record with its slices called as people call them."""
        for name in sorted(self.slices, key=len, reverse=True):
            pattern = rf"(?<![\w:]){re.escape(name)}(?![\w:])"
            called = self.of_slice(name).replace("\\", r"\\")
            text = re.sub(pattern, called, text)
        return text
