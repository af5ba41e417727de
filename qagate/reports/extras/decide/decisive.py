"""Which score of a task decides, and which way of it is better: said, never guessed.

The score is the one that ``--metric`` names, else the tool's own main one, else the only one.
Several and no main one are asked for. The direction is the tool's, else that of ``--scale``, else
what the words of the values or the name plainly say; where nothing says it, it is asked for.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from qagate.cases.labels import Scale
from qagate.evaluators.core import UsageError
from qagate.evaluators.text import hint, listed, shown
from qagate.reports.extras.decide.foreign_run import (
    Choice,
    ForeignRun,
    ForeignTask,
    ScoredSample,
    ScoreName,
)
from qagate.reports.extras.decide.stated import figures_of, not_recomputed

NEAR_AN_END = 0.1
"""A share of the scale. Where no score is farther from the worst end, the scale is another's."""
WIDE = 10.0
"""A scale so wide is not that of scores from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisive:
    """The score of a task that decides."""

    name: str
    less_is_better: bool = False
    two_way: bool = False
    """Whether every score in both runs is 0 or 1: then gates are on the share of right answers."""
    is_main: bool = False
    """Whether the tool itself decides by it."""


def decisive_scores(runs: Sequence[ForeignRun], choice: Choice) -> dict[str, Decisive]:
    """Return the scores that decide, by task of the first run, alike in all. Raises UsageError."""
    scores = {}
    for name in runs[0].tasks:
        tasks = [run.tasks[name] for run in runs if name in run.tasks]
        scores[name] = _decisive(name, tasks, runs, choice)
    return scores


def _decisive(
    task: str, tasks: Sequence[ForeignTask], runs: Sequence[ForeignRun], choice: Choice
) -> Decisive:
    chosen = _chosen_name(task, tasks, choice)
    seen = [known.scores[chosen] for known in tasks if chosen in known.scores]
    for score in seen:
        if score.odd_word:
            raise UsageError(
                f"{task}: {shown(score.odd_word)} is no score by {chosen}; "
                f"say what it is worth, with --score {score.odd_word}=0.5, or leave it empty"
            )
    if not any(score.has_numbers for score in seen):
        others = [name for name in _names(tasks) if _is_candidate(name, tasks)]
        advice = "score them first"
        if others:
            advice = f"say --metric NAME, of {listed(others)}"
        raise UsageError(f"{task}: no sample has a score by {chosen}; {advice}")
    _check_recomputed(task, chosen, runs, choice)
    less = _is_less_better(task, chosen, seen, choice.scale)
    samples = [sample for run in runs for sample in run.samples if sample.task == task]
    values = set(_values(samples, chosen))
    if choice.scale is not None:
        _check_scale(task, chosen, values, choice.scale)
    on_scale = {placed(sample, chosen, choice) for sample in samples} - {None}
    return Decisive(
        name=chosen,
        less_is_better=less,
        two_way=on_scale <= {0.0, 1.0},
        is_main=any(known.main == chosen for known in tasks),
    )


def _values(samples: Iterable[ScoredSample], name: str) -> Iterable[float]:
    for sample in samples:
        value = sample.scores.get(name)
        if value is not None:
            yield value


# Which score


def _chosen_name(task: str, tasks: Sequence[ForeignTask], choice: Choice) -> str:
    names = _names(tasks)
    if not names:
        raise UsageError(f"{task}: no sample was scored; score the log first")
    for metric in choice.metrics:
        if metric in names:
            return metric
    mains = {known.main for known in tasks if known.main}
    if choice.metrics and not (len(names) == 1 and len(choice.metrics) > 1):
        metric = choice.metrics[0]
        raise UsageError(
            f"{task}: its samples have no score {shown(metric)}; {hint(metric, names)}"
        )
    if len(mains) == 1:
        return mains.pop()
    if len(mains) > 1:
        raise UsageError(
            f"{task}: the two results decide by {listed(sorted(mains))}; say --metric NAME"
        )
    with_numbers = [name for name in names if _is_candidate(name, tasks)]
    if len(with_numbers) > 1:
        raise UsageError(
            f"{task}: several scores, {listed(with_numbers)}; say which decides: --metric NAME"
        )
    return with_numbers[0] if with_numbers else names[0]


def _names(tasks: Sequence[ForeignTask]) -> list[str]:
    return list(dict.fromkeys(name for known in tasks for name in known.scores))


def _is_candidate(name: str, tasks: Sequence[ForeignTask]) -> bool:
    """Whether a score may be the one that is meant: one of numbers, without other words."""
    seen = [known.scores[name] for known in tasks if name in known.scores]
    has_numbers = any(score.has_numbers for score in seen)
    return has_numbers and not any(score.odd_word for score in seen)


def _check_recomputed(
    task: str, name: str, runs: Sequence[ForeignRun], choice: Choice
) -> None:
    """Raise UsageError for a score whose figure the samples do not make, unless it was named."""
    if name in choice.metrics:
        return
    for run in runs:
        way = not_recomputed(figures_of(run, task, name))
        if way:
            raise UsageError(
                f"{task}: {run.tool} takes {way} over {name}, which is no mean of the samples; "
                f"say --metric {shown(name)} to decide by the mean of what each sample has"
            )


# Which way is better


def _is_less_better(
    task: str, name: str, seen: Sequence[ScoreName], scale: Scale | None
) -> bool:
    """Return whether less is better; not on a scale, where the best is 1. Raises UsageError."""
    said = {score.less_is_better for score in seen} - {None}
    if len(said) > 1:
        raise UsageError(
            f"{name} of {task}: less is better in one result alone; give two of one metric"
        )
    if scale is None and any(score.contradictory for score in seen):
        raise UsageError(
            f"{name} of {task}: the tool passes some scores above the threshold and some below "
            "it; say --scale WORST:BEST"
        )
    if scale is None and not said:
        looks_less = any(score.looks_less for score in seen)
        advice = (
            "less seems to be better: --scale 1:0"
            if looks_less
            else "--scale 0:1 or 1:0"
        )
        raise UsageError(
            f"{name} of {task}: nothing says which way is better; say --scale WORST:BEST ({advice})"
        )
    is_less = True in said
    if scale is not None and is_less and scale.worst < scale.best:
        raise UsageError(
            f"--scale {scale.worst:g}:{scale.best:g}: the tool says that less is better in "
            f"{name} of {task}; want WORST:BEST, {scale.best:g}:{scale.worst:g}"
        )
    return is_less and scale is None


def _check_scale(task: str, name: str, values: set[float], scale: Scale) -> None:
    """Raise UsageError for a scale that is another's: on it every loss would look small."""
    if not values:
        return
    width = abs(scale.best - scale.worst)
    from_worst = max(abs(value - scale.worst) for value in values) / width
    is_share = width >= WIDE and all(0 <= value <= 1 for value in values)
    if is_share or from_worst <= NEAR_AN_END:
        raise UsageError(
            f"--scale {scale.worst:g}:{scale.best:g}: {name} of {task} is from "
            f"{min(values):g} to {max(values):g} in all samples of both results, so every change "
            "would look small; say the ends that a score can have"
        )


def placed(sample: ScoredSample, name: str, choice: Choice) -> float | None:
    """Return a sample's score from 0 to 1; None for none. Raises UsageError for one elsewhere."""
    value = given = sample.scores.get(name)
    if value is None or given is None or sample.error:
        return None
    if choice.scale is not None:
        value = (value - choice.scale.worst) / (choice.scale.best - choice.scale.worst)
    if not 0 <= value <= 1:
        raise UsageError(
            f"{sample.task} {sample.id}: {name} is {given:g}; say the scale of this score: "
            "--scale WORST:BEST"
        )
    return value
