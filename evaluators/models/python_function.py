"""A model that is a Python function of the user's: a pipeline, an agent, whatever is shipped.

It is called in the engine's process, which is forked from pytest's: what its module does when it is
imported is done before the fork, so connections and threads are for its first call.
"""

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from evaluators.core import UsageError
from evaluators.messages import AskedCase
from evaluators.user_code import load_named

PROVIDER = "python"
Function = Callable[[AskedCase], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTarget:
    """A function by its ``name``, MODULE:FUNCTION, and what the user calls its ``version``.

    Without one it is the function's attribute ``version``, else its module's ``__version__``, else
    a hash of the module's source: other code is never answered for by kept replies.
    """

    name: str
    version: str = ""

    @classmethod
    def parse(cls, text: str) -> "FunctionTarget":
        """Return what ``MODULE:FUNCTION`` or ``MODULE:FUNCTION@VERSION`` names, not loaded yet."""
        name, _, version = text.partition("@")
        return cls(name=name, version=version)

    def load(self) -> Function:
        """Return the function. Raises UsageError where there is none."""
        return _load(self.name)[0]

    @property
    def is_hashed(self) -> bool:
        """Whether only its module's source tells it from other code."""
        return not self.version and _load(self.name)[2]

    @property
    def release(self) -> str:
        """Its version, however it is known."""
        return self.version or _load(self.name)[1]


def _load(name: str) -> tuple[Function, str, bool]:
    """Return a function, its own version, and whether that is a hash."""
    option = f"{PROVIDER}:{name}"
    module, found = load_named(name, option, "function")
    if not callable(found) or inspect.isclass(found):
        raise UsageError(
            f"{option}: no function, and no object that can be called; give one that takes a case"
        )
    declared = getattr(found, "version", None) or getattr(module, "__version__", None)
    if declared:
        return found, str(declared), False
    if not module.__file__:
        raise UsageError(
            f"{option}: its module has no file to tell versions by; say {option}@VERSION"
        )
    return found, f"sha256:{_source_hash(module)}", True


@cache
def _source_hash(module: ModuleType) -> str:
    """Return a hash of what a module was imported from; asked for with every call."""
    return hashlib.sha256(Path(module.__file__ or "").read_bytes()).hexdigest()[:16]
