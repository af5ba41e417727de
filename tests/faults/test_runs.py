"""Whole runs among faults: dead workers, ledgers and terminals, clocks, locales, links."""

import os
import pickle
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from qagate import command
from qagate.evaluators.core import QAError, TransientError, UsageError
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.models.spec import parse
from qagate.reports.plugin.lost_output import LossyStream, discard
from qagate.reports.render.writer import WriteError
from tests.benchmarks.soak import Soak
from tests.support.fixtures import Captured, Patch
from tests.support.loopback import Answer, Seen, loopback, plausible
from tests.support.model_calls import ask, asked, error_body
from tests.support.projects import BAR, ROOT, Project, graded
from tests.support.recorded import fill
from tests.support.tables import kept

YAML = graded({"bg": BAR})
PROMPT = 'name: answer\nlanguage: bg\nversion: "1"\nuser: "{question}"\n'


@pytest.mark.slow
def test_a_clock_that_jumps_changes_nothing(
    project: Project, monkeypatch: Patch
) -> None:
    """An hour forth and back: nothing waits, ends early, is lost or paid twice (F18)."""
    project.dataset("capital", {"bg": [None] * 12}, YAML)
    project.write("qa/capital/answer.bg.yaml", PROMPT)
    left = [
        Answer(status=429, headers={"retry-after": "0.05"}, body=error_body("later"))
    ]

    def handle(seen: Seen) -> Answer:
        return left.pop() if left else plausible()(seen)

    with loopback(handler=handle) as server:
        real, chance = time.time, random.Random(1)
        monkeypatch.setattr(
            time, "time", lambda: real() + chance.choice((0, 3600, -3600))
        )
        model = (f"--model=openai:m@{server.url}/v1", "--judge=lexical")
        options = (*model, "--deadline=60", "qa")
        first = project.run_in_process(*options)
        count = server.count
        again = project.run_in_process(*options)
    assert project.outcomes().keys() <= {"passed", "failed"}
    assert (count, server.count, first.ret) == (13, 13, again.ret)


@pytest.mark.parametrize(
    "url",
    ["https://no-such-host.invalid/v1", "http://[::1]:9/v1"],
    ids=["name", "ipv6"],
)
def test_an_address_that_leads_nowhere_is_named(url: str, monkeypatch: Patch) -> None:
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
    project.dataset(
        "capital", {"bg": ["Sofia", "София, здравей", "Ő Żółć", None] * 3}, YAML
    )

    def records(**surroundings: str) -> bytes:
        environ = {**os.environ, **surroundings}
        words = [sys.executable, "-m", "pytest", "-q", "qa"]
        subprocess.run(
            words, cwd=project.path, env=environ, capture_output=True, check=False
        )
        return (project.out / "records.jsonl").read_bytes()

    usual = records(PYTHONHASHSEED="1", LC_ALL="C.UTF-8")
    bare = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    assert "здравей".encode() in usual or rb"\u0437" in usual
    assert records(PYTHONHASHSEED="2", **bare) == usual


class Trap:
    def __reduce__(self) -> tuple[object, ...]:
        return (os.mkdir, ("sprung",))


@pytest.mark.parametrize("place", ["ledger", "link"])
def test_no_code_comes_from_a_ledgers_place(
    tmp_path: Path, monkeypatch: Patch, place: str
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


@pytest.mark.parametrize(
    "option", [b"--report-dir=b\xff", b"--ledger=l\xff", b"--models=m\xff"]
)
def test_a_path_that_is_not_utf8_is_one_line(project: Project, option: bytes) -> None:
    """It is named, with workers and without: they could not be told of it."""
    project.dataset("capital", {"en": ["Sofia"]})
    for words in (("-n", "2"), ()):
        assert "the name is not UTF-8" in project.refused(
            os.fsdecode(option), *words, "qa"
        )


MANY_ITEMS = 60
DEADLY: str = kept(__file__, "deadly")


@pytest.mark.slow
def test_workers_that_die_without_end(project: Project) -> None:
    """xdist gives up after so many deaths: every item has its verdict (R8, F8)."""
    yaml = graded({"en": "correct: {min: 0.9}"})
    project.dataset("capital", {"en": ["Sofia"] * MANY_ITEMS}, yaml)
    project.write("qa/conftest.py", DEADLY)
    project.run("-n", "2", "--max-worker-restart", "3", "qa")
    states = project.outcomes()
    assert states["passed"] + states["error"] == MANY_ITEMS
    assert states["passed"] > MANY_ITEMS - 10
    assert "graded without a test: the workers died" in project.notes()


ITEMS = 40
SERVED = 30  # requests before the table is gone


def drop_tables(path: Path) -> None:
    with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
        found = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        )
        for (name,) in found.fetchall():
            if not name.startswith("sqlite_"):
                connection.execute(f"DROP TABLE {name}")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_a_table_that_is_dropped_ends_the_run(project: Project, workers: int) -> None:
    """Outcomes received before stay, nothing more is asked, and the report says why (R4)."""
    project.asked(ITEMS, "correct: {min: 1.0}")
    ledger = project.path / "ledger.sqlite3"
    seen: list[Seen] = []

    def handler(one: Seen) -> Answer:
        seen.append(one)
        if len(seen) == SERVED:
            drop_tables(ledger)
        return plausible(lambda asked, name, schema: "Varna")(one)

    with loopback(handler=handler) as server:
        model = ("--model", f"openai:m@{server.url}/v1", "--judge", "lexical")
        options = (*model, "--ledger", str(ledger), "--concurrency", "2")
        result = project.run_with(workers, *options, "qa")
    states = project.outcomes()
    assert len(seen) <= SERVED + 4
    assert states["failed"] >= SERVED - 10
    assert states["failed"] + states["missing"] == ITEMS
    assert result.ret == 1
    assert project.report()["complete"] is False
    assert "no such table" in result.stdout.str()


@pytest.mark.slow
def test_a_run_among_faults_ends_as_one_without(tmp_path: Path) -> None:
    """F29: one state an item, no wrong grade or verdict; a second run asks for what lacks alone."""
    one = Soak(tmp_path, items=100, workers=2).run(1)
    assert one.problems == []
    assert one.injected.total() >= 5


LINES = 120  # under -v more lines than a pipe or a buffer holds back


@pytest.fixture
def capitals(project: Project) -> Project:
    project.dataset("capital", {"en": ["Sofia"] * LINES}, graded({"en": BAR}))
    return project


def closed_pipe() -> int:
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def full_disk() -> int:
    return os.open("/dev/full", os.O_WRONLY)


def run(
    project: Project, out: int, *arguments: str, err: int = subprocess.PIPE
) -> tuple[int, str]:
    """Return the exit code and the lines on stderr of pytest with this standard output."""
    command = [sys.executable, "-m", "pytest", *arguments, "qa"]
    done = subprocess.run(
        command, cwd=project.path, stdout=out, stderr=err, text=True, check=False
    )
    os.close(out)
    return done.returncode, done.stderr or ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "words"), [(closed_pipe, ("-n", "2")), (closed_pipe, ()), (full_disk, ())]
)
def test_terminal_gone(
    capitals: Project, make: Callable[[], int], words: tuple[str, ...]
) -> None:
    """`| head -1` and `> /dev/full`: the report stands, the gates give the code (R5)."""
    code, said = run(capitals, make(), "-v", *words)
    assert (code, said.count("\n"), len(capitals.records())) == (0, 1, LINES)
    assert said.startswith("the terminal's output was cut off (")


@pytest.mark.slow
def test_neither_stream_can_be_written(capitals: Project) -> None:
    """`> /dev/full 2>&1`: nobody can be told; report and code are right all the same."""
    out = full_disk()
    code, _ = run(capitals, out, "-n", "2", err=os.dup(out))
    assert (code, len(capitals.records())) == (0, LINES)


def test_a_stream_is_given_up_at_the_first_loss() -> None:
    """What is held back by then ends nothing later; a stream without a file is left alone."""
    with os.fdopen(full_disk(), "w") as file:
        stream = LossyStream(file)
        assert (stream.write("one"), stream.loss) == (3, "")
        stream.flush()
        assert stream.loss == "No space left on device"
        stream.write("two")
        stream.flush()
    with os.fdopen(full_disk(), "w") as file:
        pass
    discard(file)
    assert file.closed


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (QAError("it failed"), 1),
        (UsageError("a wrong option"), 4),
        (WriteError(Path("out"), 9, OSError(28, "No space left on device")), 3),
        (OSError(30, "Read-only file system", "out/x"), 3),
    ],
)
def test_command_codes(
    error: Exception, code: int, monkeypatch: Patch, capsys: Captured
) -> None:
    """One line; a full disk under `reports merge` is no FAIL of a gate (R12)."""

    def fail(words: object) -> int:
        raise error

    monkeypatch.setattr(command, "load_command", lambda name: fail)
    assert command.main(["list"]) == code
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("make", "words", "said"),
    [
        (closed_pipe, "reports list", ""),
        (closed_pipe, "evaluators ledger export --ledger l", ""),
        (full_disk, "reports list", "output: cannot be"),
    ],
)
def test_a_command_without_a_reader(
    make: Callable[[], int], words: str, said: str, tmp_path: Path
) -> None:
    """`qagate list | head -1` is silent; `> /dev/full` is one line."""
    fill(tmp_path / "l", 60)
    out = make()
    command = [sys.executable, "-m", *words.split()]
    known = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command,
        cwd=tmp_path,
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
        env=known,
        check=False,
    )
    os.close(out)
    assert done.returncode == 3
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == bool(said)
