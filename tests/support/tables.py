"""The longer tables and texts of the tests: those of ``test_x.py`` stand in ``x.yaml``, by name."""

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

T = TypeVar("T", bound=Callable[..., object])


def kept(test_file: str, name: str) -> Any:
    """Return what the data of a test's or helper's file has under a name."""
    return deepcopy(_read(Path(test_file))[name])


@cache
def _read(path: Path) -> dict[str, Any]:
    file = path.with_name(f"{path.stem.removeprefix('test_')}.yaml")
    read: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return read


def tabled(*names: str) -> Callable[[T], T]:
    """Run a test with each row of its table, under these names of its parameters."""

    def parametrize(test: T) -> T:
        rows = kept(test.__code__.co_filename, test.__name__.removeprefix("test_"))
        parametrized: T = pytest.mark.parametrize(
            names if names[1:] else names[0], rows
        )(test)
        return parametrized

    return parametrize


def grown(text: str) -> str:
    """Return ``aaa`` for ``a × 3``, so that a table may hold long texts; any other as it is."""
    unit, _, times = text.partition(" × ")
    return unit * int(times or 1)
