"""Runs in batches that are killed at every step: nothing is submitted twice, nothing is lost."""

from collections.abc import Callable
from pathlib import Path

from tests.conftest import INI  # noqa: F401  # the projects of killing.py are made of it
from tests.support.batch_runs import BatchRuns
from tests.support.batch_server import batch_server
from tests.support.loopback import Answer, Seen
from tests.support.tables import tabled

TEXTS = [f"What is number {number}? [[answer=n{number}]]" for number in range(8)]
ANSWERS = [f"n{number}" for number in range(8)]
"""The API, the step at which a run is killed, and whether the server carries the step out."""


@tabled("provider", "step", "is_done")
def test_a_run_killed_at_any_step_is_gone_on_with(
    tmp_path: Path, provider: str, step: str, is_done: bool
) -> None:
    """Before and after each request of the way: one batch in the end, and every reply."""
    kill: list[Callable[[], object]] = []

    def on(name: str, seen: Seen) -> Answer | None:
        if name != step or not kill:
            return None
        kill.pop()()
        # Carried out or not, nobody hears of it.
        return Answer(status=0 if is_done else 1, action="reset", delay=0.05)

    with batch_server(step=on) as server:
        runs = BatchRuns(tmp_path, server, provider)
        runs.run_killed(TEXTS, kill.append)
        assert runs.run(TEXTS).texts == ANSWERS
        assert len(server.batches) == 1
        assert server.repeats == 0
        assert server.direct == []
        assert [wave.state for wave in runs.waves][-1] == "read"
