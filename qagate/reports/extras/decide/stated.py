"""A figure that the tool itself states, held against the samples that were read.

A reader may take the wrong score, or a new version of a tool may write it otherwise. So the figure
of the deciding score is recomputed; where it differs, nothing is decided, and both figures are
said. The repeats of an item become one value first, by the tool's own reducer.
"""

import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from qagate.reports.extras.decide.foreign_run import (
    ForeignRun,
    ScoredSample,
    StatedFigure,
)

CLOSE = 1e-6
"""As near as sums of floats in another order are."""
FEWEST_DIGITS = 2
"""Figures of fewer digits may be exact, or rounded to two: they are held to half of the second."""
RECOMPUTED = ("mean", "count")
MEAN = "mean"


def figures_of(run: ForeignRun, task: str, score: str) -> list[StatedFigure]:
    """Return what the tool states of a score of a task."""
    if task not in run.tasks:
        return []
    return [figure for figure in run.tasks[task].stated if figure.score == score]


def not_recomputed(figures: Sequence[StatedFigure]) -> str:
    """Return how samples make a figure that cannot be recomputed; empty where one can."""
    if any(figure.aggregation in RECOMPUTED for figure in figures):
        return ""
    return figures[0].aggregation if figures else ""


def contradictions(run: ForeignRun, scores: Mapping[str, str]) -> dict[str, str]:
    """Return, by task, in which figure of its score the tool and its own samples differ."""
    found = {}
    for task, score in scores.items():
        text = _contradiction(run, task, score)
        if text:
            found[task] = text
    return found


def _contradiction(run: ForeignRun, task: str, score: str) -> str:
    """Return in which figure tool and samples differ, with both; empty where they agree."""
    samples = [sample for sample in run.samples if sample.task == task]
    for figure in figures_of(run, task, score):
        span = _span(figure, samples)
        if span is None or _lies_in(figure.value, span):
            continue
        low, high = span
        own = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
        return (
            f"{run.tool} says {figure.text} {figure.value:.4g}, and the samples of {run.path.name} "
            f"say {score} {own}; give the log as the tool wrote it, or another --metric"
        )
    return ""


def _span(
    figure: StatedFigure, samples: Sequence[ScoredSample]
) -> tuple[float, float] | None:
    """Return from where to where a figure may lie; None where samples cannot say it.

    What has no score here may have counted in the tool, as right or as wrong.
    """
    values = _by_item(samples, figure.score, figure.reducer)
    if not values:
        return None
    if figure.aggregation == "count":
        right = sum(_value(sample, figure.score) == 1 for sample in samples)
        ungraded = sum(_value(sample, figure.score) is None for sample in samples)
        return float(right), float(right + ungraded)
    if figure.aggregation != MEAN:
        return None
    mean = statistics.fmean(values.values())
    items = len({sample.id for sample in samples})
    ungraded = items - len(values)
    if not ungraded:
        return mean, mean
    total = sum(values.values())
    lowest = min(0.0, *values.values())
    highest = max(1.0, *values.values())
    low = (total + ungraded * lowest) / items
    high = (total + ungraded * highest) / items
    return min(low, mean), max(high, mean)


def _lies_in(value: float, span: tuple[float, float]) -> bool:
    digits = len(repr(value).partition(".")[2])
    rounding = 0.51 * 10.0 ** -max(digits, FEWEST_DIGITS)
    tolerance = max(rounding, CLOSE, CLOSE * abs(value))
    low, high = span
    return low - tolerance <= value <= high + tolerance


def _value(sample: ScoredSample, score: str) -> float | None:
    return None if sample.error else sample.scores.get(score)


def _by_item(
    samples: Iterable[ScoredSample], score: str, reducer: str
) -> dict[str, float]:
    """Return one value for each item that has any."""
    values: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        value = _value(sample, score)
        if value is not None:
            values[sample.id].append(value)
    return {id_: reduced(given, reducer) for id_, given in values.items()}


# The tool's reducers


def reduced(values: Sequence[float], reducer: str) -> float:
    """Return the one value of an item's repeats, by the name that inspect_ai gives the way."""
    threshold = re.fullmatch(r"(at_least|pass_at)_(\d+)", reducer)
    if threshold:
        right = sum(value >= 1 for value in values)
        count = int(threshold[2])
        if threshold[1] == "at_least":
            return float(right >= count)
        return _chance_of_one_right(len(values), right, count)
    if reducer == "max":
        return max(values)
    if reducer == "median":
        return statistics.median(values)
    if reducer == "mode":
        return Counter(values).most_common(1)[0][0]
    return statistics.fmean(values)


def _chance_of_one_right(repeats: int, right: int, count: int) -> float:
    """Return the chance that one of ``count`` repeats drawn is right (Chen et al. 2021)."""
    if repeats - right < count:
        return 1.0
    return 1.0 - math.comb(repeats - right, count) / math.comb(repeats, count)


def with_one_value_an_item(run: ForeignRun, task: str, score: str) -> ForeignRun:
    """Return the run with the repeats of each item as one sample, as the tool's figure has them.

    Where the tool takes the mean of repeats, they stay: they are one cluster.
    """
    reducers = {figure.reducer for figure in figures_of(run, task, score)}
    if reducers <= {MEAN}:
        return run
    (reducer, *_) = sorted(reducers - {MEAN})
    values = _by_item(
        [sample for sample in run.samples if sample.task == task], score, reducer
    )
    samples = []
    seen = set[str]()
    for sample in run.samples:
        if sample.task == task:
            if sample.id in seen:
                continue
            seen.add(sample.id)
            if sample.id in values:
                scores = {**sample.scores, score: values[sample.id]}
                whole = replace(sample, scores=scores, repeat=1, error="")
                samples.append(whole)
                continue
        samples.append(sample)
    planned = run.tasks[task].planned
    repeats = sum(sample.task == task for sample in run.samples) / max(1, len(seen))
    tasks = {
        **run.tasks,
        task: replace(run.tasks[task], planned=round(planned / max(1.0, repeats))),
    }
    note = f"{task}: the repeats of an item are one value, by {run.tool}'s reducer {reducer}"
    return replace(run, samples=tuple(samples), tasks=tasks, notes=(*run.notes, note))
