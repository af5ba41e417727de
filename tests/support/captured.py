"""The type of pytest's ``capsys``, short enough for a signature of one line."""

import pytest

Captured = pytest.CaptureFixture[str]
