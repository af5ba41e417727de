"""How each model stands: all measures, and its accuracy on each kind of item."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cases.evaluation.answers import Data, Entrant
from cases.evaluation.misses import Facet, values_of
from cases.evaluation.scores import Estimate, scores

Kinds = Mapping[str, Mapping[str, Estimate]]
"""Accuracy by facet and by its value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelScores:
    """One model. ``ungraded`` items ended in an error; they are in no figure."""

    name: str
    measures: Mapping[str, Estimate]
    kinds: Kinds
    ungraded: int


def standings(
    data: Data, models: Sequence[Entrant], facets: Mapping[str, Facet]
) -> tuple[ModelScores, ...]:
    """Return how the models stand, in their order."""
    return tuple(_standing(data, model, facets) for model in models)


def _standing(data: Data, model: Entrant, facets: Mapping[str, Facet]) -> ModelScores:
    pairs = {
        id_: (str(data.cases[id_].label), answer)
        for id_, answer in model.answers.items()
        if answer is not None
    }
    kinds: dict[str, dict[str, Estimate]] = {}
    for name, facet in facets.items():
        kinds[name] = {
            value: scores(pairs[id_] for id_ in ids if id_ in pairs)["accuracy"]
            for value, ids in values_of(data, facet).items()
        }
    return ModelScores(
        name=model.name,
        measures=scores(pairs.values()),
        kinds=kinds,
        ungraded=len(model.answers) - len(pairs),
    )
