"""A real PostgreSQL server for tests: a private cluster on a loopback port, a database a test.

Each pytest process that needs one starts its own, so that a test may also stop it. The server
runs as nobody where the tests run as root, which it refuses. ``TEST`` writes nothing through to the
disk: what a client was promised then survives the server's death, but not the machine's.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

USER = "qa"
TEST = {"fsync": "off", "full_page_writes": "off"}
START_SECONDS = 60.0


def binaries() -> Path | None:
    """Return the folder of the server's programs, None where there is no server."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return debian[-1].parent if debian else None


class Cluster:
    """A cluster in a folder of its own: one superuser, ``qa``, trusted without a password."""

    def __init__(self, folder: Path, programs: Path, settings: Mapping[str, str]) -> None:
        self.data = folder / "data"
        self._log = folder / "log"
        self._programs = programs
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)
        self._port = _free_port()
        # The server refuses to run as root.
        self._owner: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self._owner = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        options = ("--auth=trust", f"--username={USER}", "--encoding=UTF8", "--no-locale")
        self._run("initdb", *options, "--no-sync", f"--pgdata={self.data}")

    def url(self, database: str = "postgres") -> str:
        """Return the address of a database."""
        return f"postgresql://{USER}@127.0.0.1:{self._port}/{database}"

    def new_database(self) -> str:
        """Return the address of a new, empty database."""
        name = f"test_{next(self._numbers)}"
        with _connect(self.url()) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def start(self) -> None:
        """Start the server, unless it runs, and wait until it answers."""
        if self._process is not None:
            return
        given = {
            "listen_addresses": "127.0.0.1",
            "port": str(self._port),
            "unix_socket_directories": "",
            **self._settings,
        }
        words = [part for name, value in given.items() for part in ("-c", f"{name}={value}")]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.data, *words],
                cwd="/",
                stdout=log,
                stderr=log,
                **self._owner,
            )
        self._wait(self._process)

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT cuts its connections, SIGQUIT is as if it had crashed."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(START_SECONDS)
            self._process = None

    def cpu_seconds(self) -> float:
        """Return the processor time of the server, its connections' processes included."""
        assert self._process is not None
        pid = self._process.pid
        ticks = sum(_ticks(pid))
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split():
            with suppress(OSError):  # it has just ended, and is the server's own time now
                ticks += sum(_ticks(int(child))[:2])
        return ticks / os.sysconf("SC_CLK_TCK")

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + START_SECONDS
        while process.poll() is None and time.monotonic() < end:
            try:
                _connect(self.url()).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        pytest.fail(f"PostgreSQL did not start:\n{self._log.read_text(encoding='utf-8')}")

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, *arguments],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            **self._owner,
        )
        assert done.returncode == 0, f"{program} failed:\n{done.stderr}"


@contextmanager
def running(settings: Mapping[str, str] = TEST) -> Iterator[Cluster]:
    """Run a cluster for a block, without a trace afterwards. Skips where there is no server."""
    programs = binaries()
    if programs is None:
        pytest.skip("no PostgreSQL server on this machine (apt-get install postgresql)")
    with tempfile.TemporaryDirectory(prefix="qa-pg-") as folder:
        cluster = Cluster(Path(folder), programs, settings)
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The server of this pytest process; a test that stops it starts it again."""
    with running() as made:
        yield made


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    """A server that the tests of one module alone stop."""
    with running() as made:
        yield made


@pytest.fixture
def database(cluster: Cluster) -> str:
    """The address of a new, empty database."""
    return cluster.new_database()


def _connect(url: str) -> Any:
    """Return a connection that commits each statement. Raises OSError while nobody answers."""
    import psycopg  # noqa: PLC0415

    try:
        return psycopg.connect(url, autocommit=True, connect_timeout=5)
    except psycopg.OperationalError as error:
        raise OSError(str(error)) from None


def _ticks(pid: int) -> list[int]:
    """Return a process's own user and system time, then those of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return [int(field) for field in fields[11:15]]


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port
