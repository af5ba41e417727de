"""Code of the user's own, named as MODULE:NAME on a command line or in a data set's file."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from evaluators.core import UsageError
from evaluators.secrets import mask, one_line


def load_named(text: str, option: str, kind: str) -> tuple[ModuleType, object]:
    """Return the module and what MODULE:NAME names in it; the working folder is searched too.

    Raises UsageError, beginning with ``option``, where there is none or its module fails; ``kind``
    is what is wanted: a class, a function.
    """
    from evaluators.text import hint  # noqa: PLC0415  # which needs the masks of keys

    name, colon, attribute = text.partition(":")
    if not (name and colon and attribute):
        raise UsageError(
            f"{option}: want python:MODULE:{kind.upper()}, for instance python:my_code:my_{kind}"
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        module = import_module(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever the user's module raises
        reason = one_line(mask(f"{type(error).__name__}: {error}"))
        missing = isinstance(error, ModuleNotFoundError) and error.name == name
        close = hint(name, _modules()) if missing else ""
        advice = close if close.startswith("did you mean") else "give one that can"
        raise UsageError(
            f"{option}: module {name!r} cannot be imported ({reason}); {advice}"
        ) from None
    if not hasattr(module, attribute):
        known = [one for one in vars(module) if not one.startswith("_")]
        raise UsageError(
            f"{option}: module {name!r} has no {kind} {attribute!r}; {hint(attribute, known)}"
        )
    return module, getattr(module, attribute)


def _modules() -> list[str]:
    """Return the modules of the working folder, one of which may have been meant."""
    return [path.stem for path in Path.cwd().glob("*.py")]
