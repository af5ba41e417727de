"""Random faults of all kinds cost time and items, never a grade and never the verdict."""

from pathlib import Path

import pytest

from tests.benchmarks.soak import Soak


@pytest.mark.slow
def test_a_run_among_faults_ends_as_one_without(tmp_path: Path) -> None:
    """F29: one state an item, no wrong grade or verdict; a second run asks for what lacks alone."""
    one = Soak(tmp_path, items=100, workers=2).run(1)
    assert one.problems == []
    assert one.injected.total() >= 5
