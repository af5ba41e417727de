"""A copy of this repository as somebody has it who has just cloned it, and commands run there."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.support.projects import ROOT

OF_THIS_PROCESS = ("PYTEST_", "COVERAGE", "COV_", "PYTHONPATH", "VIRTUAL_ENV")
"""Variables of a test run that a person does not have begin so."""


def fresh_checkout(folder: Path) -> Path:
    """Write the files that git knows into a folder, as they are now, and return it."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True
    )
    for name in listed.stdout.decode().rstrip("\0").split("\0"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def shell(
    script: str, folder: Path, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run a script in a folder by bash, which ends at the first command that fails."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(OF_THIS_PROCESS)
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**environment, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
