"""Our judges as deepeval's metrics, in a project that is somebody else's."""

import json

import pytest

from tests.conftest import ROOT
from tests.support.loopback import Answer, Seen, loopback, plausible
from tests.support.tables import kept

HOST = kept(__file__, "host")
INI = f"""
[pytest]
pythonpath = {ROOT}
addopts = -p no:deepeval -p no:asyncio -p no:repeat -p no:rerunfailures -p no:anyio
    -p no:cacheprovider
"""


def unreadable_where_broken(seen: Seen) -> Answer:
    """Return a plausible reply, but one without any verdict where the answer asks for it."""
    if "[[broken=yes]]" in seen.prompt:
        return plausible(lambda asked, name, schema: "?")(seen)
    return plausible()(seen)


@pytest.mark.slow
def test_assert_test_and_evaluate_take_our_metrics(pytester: pytest.Pytester) -> None:
    """One run of a host's tests: scores as promised, every call made once, an error is no score.

    Row F27 of the fault matrix.
    """
    with loopback(handler=unreadable_where_broken) as server:
        pytester.makefile(".ini", pytest=INI)
        pytester.makepyfile(test_host=HOST.format(judge=f"openai:j@{server.url}/v1"))
        pytester.runpytest_subprocess().assert_outcomes(passed=5)
        assert server.count == 2 + 2 + 12 * 2 + 3 * 2
        assert server.peak <= 16
        rows = json.loads((pytester.path / "rows.json").read_text())
    good = [(name, score) for name, score, error in rows if error is None]
    assert sorted(set(good)) == [("Judge", pytest.approx(1 / 3)), ("Judge", 1.0)]
    assert len(good) == 24
    bad = [(name, score, "3 replies without a verdict" in error) for name, score, error in rows
           if error is not None]  # fmt: skip
    assert sorted(bad) == [("Judge", None, True), ("Judge", None, True)]
