"""Killed at any moment, the command ends after a re-run with the files of a calm run."""

import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.building import models, unruly
from tests.support.building_site import (
    TWO,
    Site,
    agreeing,
    answers_of,
    back_from_both,
    funnel_adds_up,
    reviewed_site,
    site,
)
from tests.support.loopback import Handler

pytestmark = pytest.mark.slow


@pytest.fixture
def reviewed(tmp_path: Path) -> Iterator[Site]:
    with reviewed_site(tmp_path) as made:
        yield made


def slowly(handler: Handler, seconds: float) -> Handler:
    """Return the handler with a pause before each answer."""
    return lambda seen: replace(handler(seen), delay=seconds)


def test_a_kill_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    """Killed again and again, the command ends with the files of an undisturbed run."""

    draw = random.Random(8)
    with site(tmp_path, slowly(unruly, 0.01), articles=70, build="blind: false") as made:
        assert made.all(folder="calm") == 0
        calm = sum(made.asked.values())
        kills = 0
        while kills < 4:
            before = made.generator.count + made.validator.count
            child = made.start("stormy")
            more, end = draw.randint(0, 25), time.monotonic() + 30
            while made.generator.count + made.validator.count < before + more:
                if child.poll() is not None or time.monotonic() > end:
                    break
                time.sleep(0.005)
            child.kill()
            child.communicate()
            kills += 1
        assert made.all(folder="stormy") == 0
        total = sum(made.asked.values())
    assert made.files("stormy") == made.files("calm")
    funnel_adds_up(tmp_path / "stormy")
    # What a kill meets in flight, or not yet on the disk, is asked once more; nothing else is.
    assert total - 2 * calm <= kills * 12
    assert not list((tmp_path / "stormy").glob(".*.part"))


def test_an_interruption_keeps_what_is_in_flight(tmp_path: Path) -> None:
    """Ctrl-C waits for the calls under way, and the next run asks only for the rest."""

    with site(tmp_path, slowly(models(), 0.05), articles=70) as made:
        child = made.start("work")
        while made.generator.count < 4 and child.poll() is None:
            time.sleep(0.01)
        os.kill(child.pid, signal.SIGINT)
        _, said = child.communicate(timeout=30)
        assert (child.returncode, said.split(b"\n")[-2]) == (130, b"interrupted")
        assert made.all() == 0
        assert max(made.asked.values()) == 1
    funnel_adds_up(tmp_path / "work")


class _KilledError(BaseException):
    """Stands for a kill: nothing catches it."""


def dying(at: int) -> Callable[[Path, Path], Path]:
    """Return a ``Path.replace`` that works so many times, and then is where the kill comes."""
    left, replace = iter(range(at)), Path.replace

    def instead(self: Path, target: Path) -> Path:
        if next(left, None) is None:
            raise _KilledError
        return replace(self, target)

    return instead


def all_files(*folders: Path) -> dict[str, bytes]:
    """Return everything in some folders, but for the lock."""
    places = [path for folder in folders for path in folder.rglob("*")]
    return {
        f"{path}": path.read_bytes() for path in places if path.is_file() and path.name != "lock"
    }


@pytest.mark.parametrize("step", ["review", "accept", "freeze"])
def test_a_kill_between_renames_loses_nothing(
    reviewed: Site, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Killed before any of its renames, a step ends after a re-run with the files of a calm run."""
    work, to = reviewed.path / "work", reviewed.path / "mine"
    files = back_from_both(reviewed, agreeing(answers_of(work)))
    words = {"freeze": ["--to", str(to)], "accept": files}
    for one in ("review", "accept", "freeze"):
        assert reviewed.build(one, *words.get(one, TWO)) == 0
    calm = all_files(work, to)
    for at in range({"review": 6, "accept": 3, "freeze": 9}[step]):
        (work / f"{step}.jsonl").unlink()
        shutil.rmtree(to)
        with monkeypatch.context() as patched:
            patched.setattr(Path, "replace", dying(at))
            with pytest.raises(_KilledError):
                reviewed.build(step, *words.get(step, TWO))
        assert reviewed.build(step, *words.get(step, TWO)) == 0
        # Counts of later steps are told again when these are asked for.
        assert reviewed.build("freeze") == 0
    assert all_files(work, to) == calm
