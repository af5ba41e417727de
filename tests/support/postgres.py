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
from tests.support.tables import kept

USER = "qa"
SETTINGS = kept(__file__, "settings")
START_TIMEOUT_S = 60.0
HOW = "no PostgreSQL server on this machine: apt-get install postgresql runs this test"
NO_POOLER = "no pgbouncer on this machine: apt-get install pgbouncer runs this test"
POOLER: str = kept(__file__, "pooler")


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
        self.port = _free_port()
        self._owner = _owner_of(folder)
        options = (
            "--auth=trust",
            f"--username={USER}",
            "--encoding=UTF8",
            "--no-locale",
        )
        done = subprocess.run(
            [programs / "initdb", *options, "--no-sync", f"--pgdata={self.data}"],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            **self._owner,
        )
        assert done.returncode == 0, f"initdb failed:\n{done.stderr}"

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def new_database(self, options: str = "") -> str:
        name = f"test_{next(self._numbers)}"
        with _connect(self.url()) as connection:
            connection.execute(f"CREATE DATABASE {name} {options}")
        return self.url(name)

    def encrypt(self) -> Path:
        """Make the server take TLS, from the next connection on; return its certificate."""
        names = {"-keyout": self.data / "server.key", "-out": self.data / "server.crt"}
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-subj",
                "/CN=qa",
            ]
            + ["-addext", "subjectAltName=IP:127.0.0.1"]
            + [str(word) for pair in names.items() for word in pair],
            capture_output=True,
            check=True,
            **self._owner,
        )
        names["-keyout"].chmod(0o600)
        with (self.data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write("ssl = on\n")
        with _connect(self.url()) as connection:
            connection.execute("SELECT pg_reload_conf()")
        return names["-out"]

    def start(self) -> None:
        """Start the server, unless it runs, and wait until it answers."""
        if self._process is not None:
            return
        words = [
            part
            for name, value in SETTINGS.items()
            for part in ("-c", f"{name}={value}")
        ]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    self._programs / "postgres",
                    "-D",
                    self.data,
                    "-p",
                    str(self.port),
                    *words,
                ],
                cwd="/",
                stdout=log,
                stderr=log,
                **self._owner,
            )
        if not _wait_for(self.url(), self._process):
            pytest.fail(
                f"PostgreSQL did not start:\n{self._log.read_text(encoding='utf-8')}"
            )

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT cuts its connections, SIGQUIT is as if it had crashed."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(START_TIMEOUT_S)
            self._process = None


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
            cluster.stop(
                signal.SIGQUIT
            )  # its data go with it: nothing has to reach the disk


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with running() as made:
        yield made


@pytest.fixture
def database(cluster: Cluster) -> str:
    cluster.start()
    return cluster.new_database()


class Pooler:
    """A pgbouncer that gives each transaction any of three sessions."""

    def __init__(self, folder: Path, program: str, cluster: Cluster) -> None:
        users = folder / "users"
        users.write_text('"qa" ""\n"runner" ""\n', "utf-8")
        self.port = _free_port()
        self._settings = folder / "ini"
        self._settings.write_text(
            POOLER.format(server=cluster.port, port=self.port, users=users), "utf-8"
        )
        self._program = program
        self._owner = _owner_of(folder)
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = subprocess.Popen(
            [self._program, "-q", self._settings],
            stderr=subprocess.DEVNULL,
            **self._owner,
        )
        _wait_for(f"postgresql://{USER}@127.0.0.1:{self.port}/postgres", self._process)

    def kill(self) -> None:
        """End it at once, with all its connections."""
        self._process.kill()
        self._process.wait()


@contextmanager
def pooled_by(cluster: Cluster) -> Iterator[Pooler]:
    """Put a pooler before a cluster for a block. Skips if there is none."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip(NO_POOLER)
    with tempfile.TemporaryDirectory(prefix="qa-pool-", dir=in_memory()) as folder:
        pooler = Pooler(Path(folder), program, cluster)
        try:
            yield pooler
        finally:
            pooler.kill()


@pytest.fixture(scope="session")
def pooler(cluster: Cluster) -> Iterator[int]:
    """The port of a pooler before the cluster."""
    with pooled_by(cluster) as made:
        yield made.port


@pytest.fixture
def pooled(database: str, cluster: Cluster, pooler: int) -> str:
    return database.replace(f":{cluster.port}/", f":{pooler}/")


def _owner_of(folder: Path) -> dict[str, Any]:
    """Return as whom to run a program that refuses to run as root; the folder is made theirs."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    for path in (folder, *folder.iterdir()):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _wait_for(url: str, process: "subprocess.Popen[bytes]") -> bool:
    """Return whether a server answers before its process ends."""
    end = time.monotonic() + START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < end:
        try:
            _connect(url).close()
        except OSError:
            time.sleep(0.05)
        else:
            return True
    return False


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
