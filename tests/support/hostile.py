"""Texts that attack what shows them, and where more of their kind may be found."""

from pathlib import Path

import pytest

from tests.support.tables import grown, kept

KIT = Path(__file__).parents[3] / "shared" / "robustness"

HOSTILE = tuple(map(grown, kept(__file__, "hostile")))


def needs_kit() -> Path:
    """Return the folder of the robustness examples, or skip where they are not at hand."""
    if not (KIT / "kit.py").is_file():
        pytest.skip("the robustness examples are not here")
    return KIT
