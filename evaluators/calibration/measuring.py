"""From a judge's verdicts on labelled answers to the content of its card."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from evaluators.calibration.figures import (
    Figure,
    Grading,
    Rating,
    confusion,
    graded_figures,
    rated_figures,
    rater_figures,
    self_agreement,
)
from evaluators.calibration.labelled import Item, Label, Labelled, agreed
from evaluators.calibration.scales import NOT_CORRECT
from evaluators.core import CORRECT, GRADES, Outcome, Verdict

ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Figures over some of the items, by name; ``confusion`` counts (label, grade) pairs."""

    title: str
    figures: Mapping[str, Figure]
    confusion: Mapping[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was found.

    ``items`` have a verdict and a label to hold it against, on ``questions`` different questions.
    ``errors`` counts, by kind, answers on which the judge gave no verdict, of ``judgements`` in
    all; ``unlabelled`` items, on which the raters tie, are in no figure. ``cost`` is that of the
    replies used, in USD, None where a price is unknown.
    """

    items: int
    questions: int
    judgements: int
    unlabelled: int
    errors: Mapping[str, int]
    sections: tuple[Section, ...]
    people: Mapping[str, Figure]
    repeats: Figure
    labels: tuple[str, ...]
    judges: tuple[str, ...]
    tokens: int
    cost: float | None


def job_key(item: Item, repeat: int) -> str:
    """Return the name of one judging of an item."""
    return f"{item.case.id}~{repeat}"


def measured(
    labelled: Labelled, items: Sequence[Item], outcomes: Mapping[str, Outcome], repeats: int
) -> Measured:
    """Return all figures over these items; each item's first verdict is held against its label."""
    every = [outcomes[job_key(item, r)] for item in items for r in range(1, repeats + 1)]
    said = {item.case.id: _said(outcomes[job_key(item, 1)], labelled) for item in items}
    judged = [item for item in items if said[item.case.id] is not None]
    pairs = [(item, item.label, said[item.case.id]) for item in judged]
    costs = [outcome.usage.cost for outcome in every]
    return Measured(
        items=sum(label is not None for _, label, _ in pairs),
        questions=len({_cluster(item) for item, label, _ in pairs if label is not None}),
        judgements=len(every),
        unlabelled=sum(item.label is None for item in items),
        errors=Counter(one.kind or one.state for one in every if one.state in ("error", "missing")),
        sections=tuple(_sections(labelled, pairs)),
        people=_people(labelled, items),
        repeats=self_agreement([_verdicts(item, outcomes, repeats) for item in items]),
        labels=_labels(labelled),
        judges=tuple(sorted({one.judge for one in every if one.judge})),
        tokens=sum(one.usage.input_tokens + one.usage.output_tokens for one in every),
        cost=None if None in costs else sum(cost or 0.0 for cost in costs),
    )


Pair = tuple[Item, Label | None, Label | None]


def _said(outcome: Outcome, labelled: Labelled) -> Label | None:
    verdict = outcome.verdict
    if outcome.state in ("error", "missing") or verdict is None:
        return None
    if labelled.style == "rated":
        return None if verdict.rating is None else float(verdict.rating)
    return _collapsed(verdict.grade, two_way=labelled.two_way)


def _collapsed(grade: Label | None, *, two_way: bool) -> Label | None:
    if two_way and grade not in (CORRECT, None):
        return NOT_CORRECT
    return grade


def _verdicts(item: Item, outcomes: Mapping[str, Outcome], repeats: int) -> list[str]:
    ended = [outcomes[job_key(item, repeat)] for repeat in range(1, repeats + 1)]
    return [_name(one.verdict) for one in ended if one.state in ("passed", "failed")]


def _name(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    return verdict.grade or "" if verdict.rating is None else str(verdict.rating)


def _labels(labelled: Labelled) -> tuple[str, ...]:
    if labelled.style == "rated":
        return ()
    return (CORRECT, NOT_CORRECT) if labelled.two_way else GRADES


def _sections(labelled: Labelled, pairs: Sequence[Pair]) -> Iterable[Section]:
    yield _section(ALL, labelled, pairs)
    languages = dict.fromkeys(item.case.language for item, _, _ in pairs)
    if len(languages) > 1:
        for language in languages:
            some = [pair for pair in pairs if pair[0].case.language == language]
            yield _section(language, labelled, some)
    if labelled.own_label and len(labelled.raters) > 1:
        together = [(item, agreed(list(item.raters.values())), said) for item, _, said in pairs]
        yield _section("against the raters' majority or mean", labelled, together)


def _section(title: str, labelled: Labelled, pairs: Sequence[Pair]) -> Section:
    known = [(item, label, said) for item, label, said in pairs if None not in (label, said)]
    if labelled.style == "rated":
        ratings = [
            Rating(
                label=float(label or 0),
                given=int(said or 0),
                length=len(item.answer),
                cluster=_cluster(item),
            )
            for item, label, said in known
        ]
        return Section(title=title, figures=rated_figures(ratings))
    grades = [
        Grading(
            label=str(_collapsed(label, two_way=labelled.two_way)),
            given=str(said),
            cluster=_cluster(item),
        )
        for item, label, said in known
    ]
    return Section(title=title, figures=graded_figures(grades), confusion=confusion(grades))


def _people(labelled: Labelled, items: Sequence[Item]) -> dict[str, Figure]:
    if len(labelled.raters) < 2:
        return {}
    two_way = labelled.two_way
    units = [
        {name: _collapsed(label, two_way=two_way) or "" for name, label in item.raters.items()}
        if labelled.style == "graded"
        else dict(item.raters)
        for item in items
    ]
    return rater_figures(units, numbers=labelled.style == "rated")


def _cluster(item: Item) -> str:
    """Return what answers to the same question share."""
    return f"{item.case.language} {item.case.question}"
