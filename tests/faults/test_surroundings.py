"""What stands around a run: clocks, name servers, locales, links and files of others."""

import os
import pickle
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluators.core import TransientError, UsageError
from evaluators.ledger import Ledger
from evaluators.models.spec import parse
from tests.conftest import Project
from tests.support.loopback import Answer, Seen, loopback, plausible
from tests.support.model_calls import ask, asked, error_body

YAML = "kind: graded\nlanguages:\n  bg: {file: bg.jsonl, gates: {correct: {min: 0.5}}}\n"
PROMPT = 'name: answer\nlanguage: bg\nversion: "1"\nuser: "{question}"\n'


def jumping(seconds: float) -> Callable[[], float]:
    """Return a wall clock that is put forward and back by this much, again and again."""
    real, chance = time.time, random.Random(1)
    return lambda: real() + chance.choice((0.0, seconds, -seconds))


@pytest.mark.slow
def test_a_clock_that_jumps_changes_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour forth and back (daylight saving): nothing waits, ends early, is lost or paid twice.

    Row F18 of the fault matrix.
    """
    project.dataset("capital", {"bg": [None] * 12}, YAML)
    project.write("qa/capital/answer.bg.yaml", PROMPT)
    left = [Answer(status=429, headers={"retry-after": "0.05"}, body=error_body("later"))]

    def handle(seen: Seen) -> Answer:
        return left.pop() if left else plausible()(seen)

    with loopback(handler=handle) as server:
        monkeypatch.setattr(time, "time", jumping(3600.0))
        options = (f"--model=openai:m@{server.url}/v1", "--deadline=60", "qa")
        first = project.run_in_process(*options)
        count = server.count
        again = project.run_in_process(*options)
    assert {record["outcome"] for record in project.records()} <= {"passed", "failed"}
    assert (count, server.count, first.ret) == (13, 13, again.ret)


@pytest.mark.parametrize(
    "url", ["https://no-such-host.invalid/v1", "http://[::1]:9/v1"], ids=["name", "ipv6"]
)
def test_an_address_that_leads_nowhere_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that no server knows, an IPv6 address without a route: unreachable (F18)."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with pytest.raises(TransientError, match="no connection") as caught:
        ask(parse(f"openai:m@{url}", {}), asked())
    assert caught.value.kind == "unreachable"


@pytest.mark.slow
def test_locale_and_hash_seed_change_no_byte_of_a_verdict(project: Project) -> None:
    """The C locale without UTF-8, and any PYTHONHASHSEED, give the same records (F25)."""
    project.dataset("capital", {"bg": ["Sofia", "София, здравей", "Ő Żółć", None] * 3}, YAML)

    def records(**surroundings: str) -> bytes:
        environ = {**os.environ, **surroundings}
        words = [sys.executable, "-m", "pytest", "-q", "qa"]
        subprocess.run(words, cwd=project.path, env=environ, capture_output=True, check=False)
        return (project.path / "reports" / "out" / "records.jsonl").read_bytes()

    usual = records(PYTHONHASHSEED="1", LC_ALL="C.UTF-8")
    bare = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    assert "здравей".encode() in usual or rb"\u0437" in usual
    assert records(PYTHONHASHSEED="2", **bare) == usual


class Trap:
    """Runs code where it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return (os.mkdir, ("sprung",))


@pytest.mark.parametrize("place", ["ledger", "link"])
def test_no_code_comes_from_a_file_in_the_ledgers_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A pickle is no ledger, not even by way of a link; it is left as it was (F25)."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "ledger"
    file.write_bytes(pickle.dumps(Trap()) * 200)
    file.chmod(0o600)
    (tmp_path / "link").symlink_to(file)
    before = file.read_bytes()
    with pytest.raises(UsageError):
        Ledger(tmp_path / place)
    assert not (tmp_path / "sprung").exists()
    assert file.read_bytes() == before


@pytest.mark.parametrize("option", [b"--report-dir=b\xff", b"--ledger=l\xff", b"--models=m\xff"])
def test_a_path_that_is_not_utf8_is_one_line(project: Project, option: bytes) -> None:
    """It is named, with workers and without: they could not be told of it."""
    project.dataset("capital", {"en": ["Sofia"]})
    for words in (("-n", "2"), ()):
        assert "the name is not UTF-8" in project.refused(os.fsdecode(option), *words, "qa")
