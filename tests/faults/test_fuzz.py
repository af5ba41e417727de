"""The readers of foreign data hold on damaged input, and the fuzzer sees where one does not."""

import random
import time
from pathlib import Path

import pytest

from qagate.evaluators.core import UsageError
from tests.benchmarks.fuzz import Reader, finding_of, mutated, readers

INPUTS = 15
"""Of each reader; ``python -m tests.benchmarks.fuzz`` tries thousands."""


def read_wrongly(path: Path) -> object:
    raise KeyError(path.name)


def read_in_two_lines(path: Path) -> object:
    raise UsageError("first\nsecond")


def read_for_ever(path: Path) -> object:
    while True:
        time.process_time()


@pytest.mark.parametrize("name", readers())
def test_a_reader_refuses_damaged_input_in_one_line(name: str, tmp_path: Path) -> None:
    reader = readers()[name]
    chance = random.Random(name)
    for _ in range(INPUTS):
        path = tmp_path / f"input{reader.suffix}"
        path.write_bytes(mutated(chance.choice(reader.seeds), chance))
        assert finding_of(reader, path) == ""


@pytest.mark.parametrize("name", readers())
def test_a_sound_input_of_the_fuzzer_is_read(name: str, tmp_path: Path) -> None:
    """One that is refused at once would never reach what stands behind the first check."""
    reader = readers()[name]
    accepted = 0
    for seed in reader.seeds:
        path = tmp_path / f"input{reader.suffix}"
        path.write_bytes(seed)
        try:
            reader.read(path)
        except UsageError:  # the file names others that are not there
            continue
        accepted += 1
    assert accepted or name == "dataset.yaml"


@pytest.mark.parametrize(
    ("read", "finding"),
    [
        (read_wrongly, "KeyError"),
        (read_in_two_lines, "several lines"),
        (read_for_ever, "more than 1 s"),
    ],
)
def test_the_fuzzer_sees_what_nobody_foresaw(
    read: object, finding: str, tmp_path: Path
) -> None:
    assert callable(read)
    reader = Reader(read=read, seeds=[b""], suffix=".txt")
    assert finding_of(reader, tmp_path / "input.txt").startswith(finding)
