"""Judges by their SPECs whose models are scripted."""

from collections.abc import Sequence

from evaluators.core import Model
from evaluators.judge_spec import parse_judges
from evaluators.judges.factory import JudgeFactory


def judges(
    *specs: str,
    models: Sequence[Model] = (),
    tie_breaker: str = "",
    audit: float = 0.05,
    seed: int = 0,
) -> JudgeFactory:
    """Return the judges that these SPECs name; each model in them is one of ``models``."""
    return JudgeFactory(
        spec=parse_judges(specs, tie_breaker),
        models={model.spec: model for model in models},
        specs={},
        audit=audit,
        seed=seed,
    )
