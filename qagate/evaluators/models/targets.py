"""The user's own targets: a service (JSON over HTTP), or a Python function, as it ships.

Here is what identifies and describes them. ``extras/own_targets`` calls them.
"""

import hashlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from qagate.evaluators.core import AskedCase, UsageError
from qagate.evaluators.user_code import load_named

PYTHON, HTTP = "python", "http"
"""The providers of a function and of a service."""

METHODS = ("POST", "PUT", "GET")
CASE_PLACES = ("question", "context", "language", "metadata")
PLACES = (*CASE_PLACES, "prompt", "messages")
"""What a body may name in braces. A place that is a whole text keeps its type, such as a list."""

TOKEN_KINDS = ("input", "output")
PLACE = re.compile(r"\{(\w+)\}")
Function = Callable[[AskedCase], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTarget:
    """How one service is asked and read. Each JSONPath leads to one value in its reply."""

    url: str
    method: str
    body: Mapping[str, Any]
    """The body, with places in braces; the query of a GET."""
    answer: str
    """The JSONPath of the answer."""
    tokens: Mapping[str, str] = field(default_factory=dict)
    """The JSONPaths of ``input`` and ``output`` tokens."""
    cost: str = ""
    """The JSONPath of the cost in USD."""

    @property
    def takes_case(self) -> bool:
        """Whether it asks for parts of the case, and not for the filled prompt alone."""
        return any(place in CASE_PLACES for place in places(self.body))


def places(template: object) -> Iterator[str]:
    """Yield the names in braces anywhere in a body."""
    if isinstance(template, str):
        yield from PLACE.findall(template)
    elif isinstance(template, Mapping):
        for value in template.values():
            yield from places(value)
    elif isinstance(template, list | tuple):
        for value in template:
            yield from places(value)


def check_path(path: str) -> str:
    """Return what is wrong with a JSONPath in a few words; empty if nothing is."""
    from jsonpath import JSONPathError  # noqa: PLC0415  # few have such entries

    try:
        compiled_path(path)
    except JSONPathError as error:
        return str(error).splitlines()[0]
    if not path.startswith("$"):
        return "a path starts with $, for instance $.answer"
    return ""


@cache
def compiled_path(text: str) -> Any:
    """Return a JSONPath, compiled. Raises JSONPathError if it is none."""
    from jsonpath import compile as compiled  # noqa: PLC0415

    return compiled(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTarget:
    """A function of the user's, imported when it is first needed."""

    name: str
    """MODULE:FUNCTION."""
    version: str = ""
    """What the user calls this version; empty to read it from the code."""

    def load(self) -> Function:
        """Return the function. Raises UsageError if there is none."""
        return _load(self.name).function

    @property
    def is_hashed(self) -> bool:
        """Whether only a hash of its module's source tells it from other code."""
        return not self.version and _load(self.name).is_hashed

    @property
    def release(self) -> str:
        """The user's version, else the function's, its module's, or a hash of its source."""
        return self.version or _load(self.name).version


class LoadedFunction(NamedTuple):
    """A user's function, with what tells its version."""

    function: Function
    version: str
    """The function's or its module's own; else a hash of the module's source."""
    is_hashed: bool


def _load(name: str) -> LoadedFunction:
    option = f"{PYTHON}:{name}"
    module, target = load_named(name, option, "function")
    if not callable(target) or inspect.isclass(target):
        raise UsageError(
            f"{option}: no function, and no object that can be called; give one that takes a case"
        )
    declared = getattr(target, "version", None) or getattr(module, "__version__", None)
    if declared:
        return LoadedFunction(target, str(declared), is_hashed=False)
    if not module.__file__:
        raise UsageError(
            f"{option}: its module has no file to tell versions by; say {option}@VERSION"
        )
    version = f"sha256:{_source_hash(module)}"
    return LoadedFunction(target, version, is_hashed=True)


@cache
def _source_hash(module: ModuleType) -> str:
    """Return a hash of a module's source. It is kept by module, not by path.

    A second import of the same file may be of other code.
    """
    source = Path(str(module.__file__)).read_bytes()
    return hashlib.sha256(source).hexdigest()[:16]
