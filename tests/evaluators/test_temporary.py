"""Temporary folders go with their processes, or soon after."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from qagate.evaluators import temporary
from qagate.evaluators.temporary import LOCK, temporary_folder
from tests.support.fixtures import Patch

HELD = """
import sys, time
from qagate.evaluators.temporary import temporary_folder
with temporary_folder("qa-test-") as folder:
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _own_temporary_files(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def test_a_folder_goes_with_its_block(tmp_path: Path) -> None:
    with temporary_folder("qa-test-") as folder:
        (folder / "file").write_text("x")
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_killed_process_goes_with_the_next(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", HELD], stdout=subprocess.PIPE)
    assert process.stdout is not None
    held = Path(process.stdout.readline().decode().strip())
    with temporary_folder("qa-test-") as folder:
        assert sorted(tmp_path.iterdir()) == sorted([folder, held])
    process.kill()
    process.wait()
    process.stdout.close()
    with temporary_folder("qa-test-") as folder:
        assert list(tmp_path.iterdir()) == [folder]


def test_a_folder_that_is_cleared_before_it_is_locked_is_made_anew(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    """Another process may find the file between its creation and its lock."""
    opened = os.open
    cleared: list[Path] = []

    def open_and_clear(path: Path, flags: int, *args: Any, **kwargs: Any) -> int:
        file = opened(path, flags, *args, **kwargs)
        if flags & os.O_CREAT and not cleared:
            cleared.append(path.parent)
            temporary._remove_if_left(path.parent)
        return file

    monkeypatch.setattr(os, "open", open_and_clear)
    with temporary_folder("qa-test-") as folder:
        assert folder.is_dir()
        assert [folder] != cleared
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_no_process_of_ours_made_stays(tmp_path: Path) -> None:
    (tmp_path / "qa-test-other").mkdir()
    (tmp_path / "qa-test-file").write_text("x")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / LOCK).touch()
    (tmp_path / "qa-test-link").symlink_to(tmp_path / "elsewhere")
    with temporary_folder("qa-test-"):
        pass
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"qa-test-other", "qa-test-file", "elsewhere", "qa-test-link"}
    assert (tmp_path / "elsewhere" / LOCK).exists()
