"""Calls that fail again and again, and two commands in one folder."""

from pathlib import Path
from typing import Any

import pytest

from cases.builder.generation import Generator
from cases.builder.work_folder import drop_failed, locked
from evaluators.core import Reply, Request, TransientError
from tests.cases.test_builder_generation import as_text, texts
from tests.support.building import entries, make_item, models, recipe, rows, texts_of, with_calls
from tests.support.building_site import funnel_adds_up, site
from tests.support.loopback import Answer, Handler, Seen
from tests.support.scripted import Scripted


def failing_on(mark: str, good: Handler) -> Any:
    """Return models whose calls about a text with this mark bring a body that is no reply."""

    def handle(seen: Seen) -> Answer:
        is_bad = not texts_of(seen) and mark in seen.prompt
        return Answer(body="upstream says no") if is_bad else good(seen)

    return handle


def test_what_fails_on_every_run_can_be_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An item blocks the way until --leave-out-failed; then it is counted with its reason."""
    good = models()
    with site(tmp_path, good, articles=30) as made:
        assert made.all(count=4) == 0
        for step in ("validate", "probe"):
            (tmp_path / "work" / f"{step}.jsonl").unlink()
        bad = rows(tmp_path / "work", "check")[0]["question"]
    with site(tmp_path, failing_on(bad, good), articles=30) as made:
        words = [*made.sources(4), *made.checker]
        assert made.build("validate", *words[-2:]) == 1
        told = capsys.readouterr().err
        assert "1 items are not done" in told
        assert "--leave-out-failed drops what fails every time" in told
        assert made.build("validate", *words[-2:], "--leave-out-failed") == 0
        assert made.build("probe", *made.writer) == 0
        assert made.build("review", "--share", "0") == 0
    report = funnel_adds_up(tmp_path / "work")
    assert report["final"]["dropped at validate: failed_bad_body"] == 1


def test_later_waves_go_on_without_what_failed(tmp_path: Path) -> None:
    """The generator begins a new wave although a call of an earlier one failed."""
    items = [make_item(number) for number in range(105)]
    first = items[0].paragraph
    kind = "server"
    failure = TransientError(kind, "HTTP 500")

    def says(request: Request) -> Reply:
        asked = texts(request)
        if any(one["text"] == first for one in asked):
            raise failure
        return as_text(entries(asked))

    generator = Generator(
        model=Scripted(says),
        recipe=recipe(),
        seed=1,
        passes=lambda done: done,
        leave_out=True,
    )
    done = with_calls(tmp_path, lambda calls: generator.generate(items, calls))
    failed = [item for item in done if item.state == "dropped"]
    assert {item.reason for item in failed} == {"failed_server"}
    assert 0 < len(failed) <= 5
    assert all(item.state == "kept" for item in done[100:])


def test_a_fault_of_the_whole_command_leaves_nothing_out() -> None:
    """A wrong key, no budget, or not one call that worked: all of it waits for the next run."""
    late = make_item(1, state="pending", reason="timeout")
    keyless = make_item(2, state="pending", reason="auth")
    assert drop_failed([late]) == [late]
    dropped, kept, waiting = drop_failed([late, make_item(3), keyless])
    assert (dropped.state, dropped.reason) == ("dropped", "failed_timeout")
    assert kept.state == "kept"
    assert waiting == keyless


def test_two_commands_do_not_share_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second is told so and does nothing; afterwards the folder is free."""
    with site(tmp_path, models(), articles=30) as made:
        with locked(tmp_path / "work"):
            assert made.build("sample", *made.sources(4)) == 1
            assert "another command is at work there" in capsys.readouterr().err
            assert not (tmp_path / "work" / "sample.jsonl").exists()
        assert made.build("sample", *made.sources(4)) == 0
