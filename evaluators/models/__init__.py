"""Models behind APIs."""

from collections.abc import Mapping
from importlib import import_module
from threading import Thread

from evaluators.core import Model
from evaluators.models.secrets import Key
from evaluators.models.spec import Spec

DIALECTS: Mapping[str, str] = {
    "openai": "evaluators.models.openai",
    "anthropic": "evaluators.models.anthropic",
}
"""The module that speaks each provider's API, as its ``DIALECT``."""

SDKS: Mapping[str, str] = {"openai": "openai", "anthropic": "anthropic"}
"""The package of each provider."""


def connect(spec: Spec, key: Key | None = None) -> Model:
    """Return the model that a Spec names; no connection is made before its first call.

    Without a key every call is a FatalError, which is what a replay wants. Each provider's module,
    and its SDK, is loaded only where that provider is used.
    """
    from evaluators.models.api import ApiModel

    if key is not None:
        # An SDK takes a second to load: while tests are collected, and not before the first call.
        Thread(target=import_module, args=(SDKS[spec.provider],), daemon=True).start()
    return ApiModel(spec, key, import_module(DIALECTS[spec.provider]).DIALECT)
