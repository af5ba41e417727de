"""The workflow that publishes a version: its rights, and its steps run as GitHub runs them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.checkouts import fresh_checkout, shell
from tests.support.projects import ROOT

WORKFLOW: dict[str, Any] = yaml.safe_load(
    (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
)
BUILD = WORKFLOW["jobs"]["build"]
PUBLISH = WORKFLOW["jobs"]["publish"]
DATED = "## 0.1.0 (2026-12-01)"


def scripts() -> list[str]:
    """Return the shell steps of the job that builds, in order."""
    return [step["run"] for step in BUILD["steps"] if "run" in step]


def date_the_changelog(folder: Path) -> None:
    """Write the heading of a release, as the one who releases does."""
    changelog = folder / "CHANGELOG.md"
    text = changelog.read_text("utf-8")
    changelog.write_text(text.replace("## 0.1.0 (not released)", DATED), "utf-8")


def test_the_job_that_publishes_runs_no_code_of_ours() -> None:
    assert [step for step in PUBLISH["steps"] if "run" in step] == []
    assert "checkout" not in str(PUBLISH["steps"])


def test_only_the_job_that_publishes_may_publish() -> None:
    assert WORKFLOW["permissions"] == {}
    assert BUILD["permissions"] == {"contents": "read"}
    assert PUBLISH["permissions"] == {"id-token": "write"}


@pytest.mark.parametrize(
    ("tag", "is_dated", "code"),
    [("v0.1.0", True, 0), ("v0.1.1", True, 1), ("v0.1.0", False, 1)],
    ids=["agree", "another tag", "no date"],
)
def test_tag_version_and_changelog_agree(
    tmp_path: Path, tag: str, is_dated: bool, code: int
) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.1.0"\n')
    heading = DATED if is_dated else "## 0.1.0 (not released)"
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = shell(scripts()[0], tmp_path, TAG=tag, PATH=path)
    assert done.returncode == code
    assert ("::error title=release::" in done.stdout) == bool(code)


@pytest.mark.slow
def test_its_steps_build_a_wheel_that_works(tmp_path: Path) -> None:
    """As on a runner: in a fresh environment, over the files of the repository."""
    checkout = fresh_checkout(tmp_path / "checkout")
    date_the_changelog(checkout)
    python = tmp_path / "python"
    subprocess.run([sys.executable, "-m", "venv", str(python)], check=True)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    for script in scripts():
        done = shell(
            script,
            checkout,
            TAG="v0.1.0",
            RUNNER_TEMP=str(temporary),
            PATH=f"{python / 'bin'}:{os.environ['PATH']}",
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    assert sorted(path.name for path in (checkout / "dist").iterdir()) == [
        "qagate-0.1.0-py3-none-any.whl",
        "qagate-0.1.0.tar.gz",
    ]
