"""How often canaries find a judge that drifted, and how often chance alone looks like one:
``python -m tests.benchmarks.canaries``.

A judge has graded answers in five languages, enough of each grade for all canaries. A share of
the answers is a toss-up: the judge gives the one grade or the other each time with one half.
Of the grades that call an answer wrong, a drift turns a share, everywhere or in one language.
The counts are drawn here; what they mean is the product's own rule.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from qagate.evaluators.judges.drift import (
    RIGHT_CANARIES,
    SILENT_CANARIES,
    WRONG_CANARIES,
    CanaryResult,
    voids_of,
)
from tests.benchmarks.common import SEED, show

LANGUAGES = ("bg", "de", "en", "hu", "pl")
JUDGE = "openai:judge"
RUBRIC = "simpleqa"


class Judging(NamedTuple):
    """How a judge grades anew."""

    tossed: float = 0.01
    """The share of answers that get the one grade or the other by chance."""
    drift: float = 0.0
    """The share of grades that call an answer wrong, and do so no more."""
    in_one_language: bool = False
    """Whether it drifts in the first language alone."""


class Alarms(NamedTuple):
    """The shares of runs in which kept grades are void."""

    anywhere: float
    everywhere: float
    in_first_language: float
    """Also those in which they are void everywhere."""


def alarms(judging: Judging, runs: int) -> Alarms:
    """Return how often kept grades are void in so many runs."""
    random = np.random.default_rng(SEED)
    by_chance = judging.tossed / 2
    differ = np.zeros((runs, len(LANGUAGES)), dtype=np.int64)
    for number in range(len(LANGUAGES)):
        drifts = number == 0 or not judging.in_one_language
        drift = judging.drift if drifts else 0.0
        wrong = random.binomial(
            WRONG_CANARIES, by_chance + drift * (1 - by_chance), runs
        )
        silent = random.binomial(SILENT_CANARIES, by_chance, runs)
        differ[:, number] = wrong + silent
    right = random.binomial(RIGHT_CANARIES, by_chance, runs)
    anywhere = everywhere = first = 0
    for counts, turned in zip(differ.tolist(), right.tolist(), strict=True):
        places = _void_places(tuple(counts), turned)
        anywhere += bool(places)
        everywhere += "" in places
        first += bool(places & {"", LANGUAGES[0]})
    return Alarms(anywhere / runs, everywhere / runs, first / runs)


@cache
def _void_places(differ: tuple[int, ...], right: int) -> frozenset[str]:
    """Return the languages in which kept grades are void; an empty name stands for all."""
    results = [_result("", RIGHT_CANARIES, right)]
    for language, count in zip(LANGUAGES, differ, strict=True):
        results.append(_result(language, WRONG_CANARIES + SILENT_CANARIES, count))
    return frozenset(place.language for place in voids_of(results))


def _result(language: str, asked: int, differ: int) -> CanaryResult:
    rubric = RUBRIC if language else ""
    return CanaryResult(
        judge=JUDGE, language=language, rubric=rubric, asked=asked, differ=differ
    )


def lines(runs: int) -> Iterator[str]:
    yield f"{runs:,} runs, seed {SEED}, {len(LANGUAGES)} languages"
    for tossed in (0.01, 0.02):
        alarm = alarms(Judging(tossed=tossed), runs)
        yield (
            f"false alarm, {100 * tossed:g} % tossed up: {alarm.anywhere:.3f}, "
            f"everywhere {alarm.everywhere:.3f}"
        )
    for drift in (0.03, 0.05, 0.10):
        alarm = alarms(Judging(drift=drift), runs)
        yield f"found, {100 * drift:g} % drift in all languages: {alarm.anywhere:.3f}"
    for drift in (0.05, 0.10, 0.15, 0.20):
        alarm = alarms(Judging(drift=drift, in_one_language=True), runs)
        yield f"found, {100 * drift:g} % in one language: {alarm.in_first_language:.3f}"


if __name__ == "__main__":
    show(lines, 200_000)
