"""Judges by their SPECs whose models are scripted."""

from collections.abc import Sequence

from qagate.evaluators.core import Model, parse_judges
from qagate.evaluators.judges.factory import JudgeFactory


def judges(*specs: str, models: Sequence[Model] = ()) -> JudgeFactory:
    return JudgeFactory(
        spec=parse_judges(specs),
        models={model.spec: model for model in models},
        specs={},
    )
