"""The types of pytest's fixtures, short enough for a signature of one line."""

import pytest

Captured = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
