"""Folders that the tests of datasets and thresholds start from."""

from pathlib import Path

import pytest

from tests.support.declaring import RUBRIC


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    own = tmp_path / "facts"
    own.mkdir()
    return own


@pytest.fixture
def rubrics(tmp_path: Path) -> Path:
    own = tmp_path / "rubrics"
    own.mkdir()
    for language in ("en", "bg"):
        (own / f"facts.{language}.yaml").write_text(
            RUBRIC.format(language), encoding="utf-8"
        )
    return own
