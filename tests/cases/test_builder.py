"""The whole way: counts that add up, nothing asked twice, nothing lost on a kill."""

import json
import os
import random
import re
import signal
import time
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.support.building import confirmed, entries, listed, models, question, rows, texts_of
from tests.support.building_site import FEW, funnel_adds_up, site
from tests.support.loopback import Answer, Handler, Seen, reply


def hashed(text: str) -> int:
    return sha256(text.encode()).digest()[0]


def slowly(handler: Handler, seconds: float) -> Handler:
    """Return the handler with a pause before each answer."""
    return lambda seen: replace(handler(seen), delay=seconds)


Said = list[dict[str, Any]]


def cut(seen: Seen, said: Said) -> Answer:
    body = json.dumps(said, ensure_ascii=False)
    return reply(seen, text=body[: len(body) // 2])


def miscounted(seen: Seen, said: Said) -> Answer:
    return listed(seen, said[:-1])


def wordy(seen: Seen, said: Said) -> Answer:
    body = json.dumps(said, ensure_ascii=False)
    return reply(seen, text=f"Вось мой спіс:\n```json\n{body}\n```\nГатова!")


def swapped(seen: Seen, said: Said) -> Answer:
    return listed(seen, said[::-1])


def mislabelled(seen: Seen, said: Said) -> Answer:
    return listed(seen, [{**said[0], "answer": "Магчыма"}, *said[1:]])


def open_ended(seen: Seen, said: Said) -> Answer:
    return listed(seen, [*said[:-1], {**said[-1], "question": "Дзе гэта здарылася першы раз?"}])


WAYS = (cut, miscounted, wordy, swapped, mislabelled, open_ended, listed, listed)


def unruly(seen: Seen) -> Answer:
    """Misbehave in every way there is, and always in the same way for the same request."""
    asked = texts_of(seen)
    if not asked:
        return doubtful(seen)
    if any(hashed(one["text"]) < 4 for one in asked):
        return reply(seen, text="Прабачце, не магу.")  # whatever it stands beside
    return WAYS[hashed(seen.prompt) % len(WAYS)](seen, entries(asked))


def doubtful(seen: Seen) -> Answer:
    turn = hashed(seen.prompt.partition("[ПАЧАТАК")[2]) % 8
    if turn == 0:
        return confirmed(seen, "INCORRECT", "З тэксту гэта не вынікае.")
    return reply(seen, text="Хм.") if turn == 1 else confirmed(seen)


def test_unruly_models_lose_nothing_that_can_be_had(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counts add up from sampled to validated, and a second run asks nothing."""
    with site(tmp_path, unruly) as made:
        made.provider = "anthropic"
        assert made.all() == 0
        report = funnel_adds_up(tmp_path / "work")
        assert max(made.asked.values()) <= 3, "an unreadable verdict is asked for three times"
        before = sum(made.asked.values())
        files = made.files("work")
        assert made.all() == 0
        assert sum(made.asked.values()) == before
        assert made.files("work") == files
    final = report["final"]
    assert {"dropped at generate: unreadable", "dropped at check: open"} <= set(final)
    assert {"dropped at validate: not_confirmed", "dropped at validate: unreadable"} <= set(final)
    checked = [row for row in rows(tmp_path / "work", "validate") if row["state"] == "kept"]
    assert len(checked) > 60
    for row in checked:
        assert row["question"] == question(row["paragraph"]), "matched to its own text"
        assert row["validator"]["explanation"] == "Вынікае з тэксту."
        origin = row["origin"]
        assert all(origin[key] for key in ("source", "title", "url", "licence", "page"))
    said = capsys.readouterr()
    assert "(done before)" in said.err
    assert "the question alone gives" in said.out
    assert re.search(r"generate: \d+ requests sent; all replies", said.err)


def test_a_kill_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    """Killed again and again, the command ends with the files of an undisturbed run."""

    draw = random.Random(8)
    with site(tmp_path, slowly(unruly, 0.01), articles=70) as made:
        assert made.all(folder="calm", count=FEW) == 0
        calm = sum(made.asked.values())
        kills = 0
        while kills < 4:
            before = made.generator.count + made.validator.count
            child = made.start("stormy")
            more, end = draw.randint(0, 25), time.monotonic() + 30
            while made.generator.count + made.validator.count < before + more:
                if child.poll() is not None or time.monotonic() > end:
                    break
                time.sleep(0.005)
            child.kill()
            child.communicate()
            kills += 1
        assert made.all(folder="stormy", count=FEW) == 0
        total = sum(made.asked.values())
    assert made.files("stormy") == made.files("calm")
    funnel_adds_up(tmp_path / "stormy")
    # What a kill meets in flight, or not yet on the disk, is asked once more; nothing else is.
    assert total - 2 * calm <= kills * 12
    assert not list((tmp_path / "stormy").glob(".*.part"))


def test_an_interruption_keeps_what_is_in_flight(tmp_path: Path) -> None:
    """Ctrl-C waits for the calls under way, and the next run asks only for the rest."""

    with site(tmp_path, slowly(models(), 0.05), articles=70) as made:
        child = made.start("work")
        while made.generator.count < 4 and child.poll() is None:
            time.sleep(0.01)
        os.kill(child.pid, signal.SIGINT)
        _, said = child.communicate(timeout=30)
        assert (child.returncode, said.split(b"\n")[-2]) == (130, b"interrupted")
        assert made.all(count=FEW) == 0
        assert max(made.asked.values()) == 1
    funnel_adds_up(tmp_path / "work")
