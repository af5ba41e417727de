"""Models behind APIs."""

from evaluators.core import Model
from evaluators.models.secrets import Key
from evaluators.models.spec import Spec


def connect(spec: Spec, key: Key | None = None) -> Model:
    """Return the model that a Spec names; no connection is made before its first call.

    Without a key every call is a FatalError, which is what a replay wants. Each provider's module,
    and its SDK, is loaded only where that provider is used.
    """
    from evaluators.models.api import ApiModel

    if spec.provider == "openai":
        from evaluators.models.openai import OPENAI

        return ApiModel(spec, key, OPENAI)
    from evaluators.models.anthropic import ANTHROPIC

    return ApiModel(spec, key, ANTHROPIC)
