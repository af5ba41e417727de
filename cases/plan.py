"""What a run is made of: the user's choice, its items, and the plan that every process shares.

A worker of xdist gets the plan from the controller, so nothing that reads files is loaded here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cases.slices import Dataset, Slice
from evaluators.core import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceFile:
    """A ``DATASET:LANG=FILE`` option, taken apart."""

    dataset: str
    language: str
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the user wants to be asked; the defaults ask everything once.

    ``limit`` (at least 1) bounds the items of each slice, picked by a hash of id and ``seed``.
    """

    items: tuple[SliceFile, ...] = ()
    prompts: tuple[SliceFile, ...] = ()
    languages: tuple[str, ...] = ()
    limit: int | None = None
    seed: int = 0
    repeats: int = 1
    gates: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One planned pytest case. ``key`` is its pytest id: ASCII, unique in the run."""

    key: str
    slice: Slice
    case: Case
    repeat: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Every item that the choice allows, by key, in the order of the files.

    ``hashes`` holds the SHA-256 of each slice's data file, by the slice's name, as it was read.
    """

    datasets: tuple[Dataset, ...]
    items: Mapping[str, Item]
    hashes: Mapping[str, str] = field(default_factory=dict)

    def of(self, dataset: Dataset) -> list[Item]:
        """Return the items of one dataset."""
        slices = set(map(id, dataset.slices.values()))
        return [item for item in self.items.values() if id(item.slice) in slices]
