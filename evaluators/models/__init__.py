"""Models behind APIs."""

from collections.abc import Iterable
from importlib import import_module

from evaluators.core import Model
from evaluators.models.late import DIALECTS, SDKS, LazyModel
from evaluators.models.secrets import Key
from evaluators.models.spec import Spec

__all__ = ["DIALECTS", "SDKS", "connect", "load"]


def connect(spec: Spec, key: Key | None = None) -> Model:
    """Return the model that a Spec names; nothing is loaded or connected before its first call.

    Without a key every call is a FatalError, which is what a replay wants.
    """
    return LazyModel(spec, key)


def load(specs: Iterable[Spec]) -> None:
    """Load what these models' first calls will need; each SDK takes half a second."""
    for provider in {spec.provider: None for spec in specs}:
        import_module(SDKS[provider])
        import_module(DIALECTS[provider])
