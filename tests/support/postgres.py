"""A real PostgreSQL server for tests: a private cluster on a loopback port, a database a test.

Each pytest process that needs one starts its own, so a test may also stop it. If the tests run as
root, which the server refuses, it runs as nobody. ``SETTINGS`` write nothing through to the disk:
what a client was promised survives the server's death, but not the machine's.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.places import in_memory

USER = "qa"
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "8MB",
    "unix_socket_directories": "",
    "listen_addresses": "127.0.0.1",
}
START_TIMEOUT_S = 60.0
HOW = "no PostgreSQL server on this machine: apt-get install postgresql runs this test"


def binaries() -> Path | None:
    """Return the folder of the server's programs, None where there is no server."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return debian[-1].parent if debian else None


class Cluster:
    """A cluster in a folder of its own: one superuser, ``qa``, trusted without a password."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.data = folder / "data"
        self._log = folder / "log"
        self._programs = programs
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
        words = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.data, "-p", str(self._port), *words],
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
            self._process.wait(START_TIMEOUT_S)
            self._process = None

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + START_TIMEOUT_S
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
def running() -> Iterator[Cluster]:
    """Run a cluster for a block, without a trace afterwards. Skips if there is no server."""
    programs = binaries()
    if programs is None:
        pytest.skip(HOW)
    with tempfile.TemporaryDirectory(prefix="qa-pg-", dir=in_memory()) as folder:
        cluster = Cluster(Path(folder), programs)
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop(signal.SIGQUIT)  # its data go with it: nothing has to reach the disk


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The server of this pytest process; a test may stop it."""
    with running() as made:
        yield made


@pytest.fixture
def database(cluster: Cluster) -> str:
    """The address of a new, empty database."""
    cluster.start()
    return cluster.new_database()


def _connect(url: str) -> Any:
    """Return a connection that commits each statement. Raises OSError while nobody answers."""
    import psycopg  # noqa: PLC0415

    try:
        return psycopg.connect(url, autocommit=True, connect_timeout=5)
    except psycopg.OperationalError as error:
        raise OSError(str(error)) from None


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port
