"""``qagate run --on ray``: each shard of a run is a task of Ray, and ``merge`` decides.

A task runs the ordinary ``pytest … --shard K/N`` in a process of its own and returns the report
folder packed. Ray carries the working folder and the product, so that machines share neither.
"""

import argparse
import io
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from evaluators.command_line import CommandParser
from evaluators.core import UsageError
from evaluators.models.keys import read_variable
from evaluators.output import say
from evaluators.text import shown
from reports.plugin.options import RunOptions, read_words
from reports.plugin.qagate import HOME, PACKAGES
from reports.plugin.run import RUN, connect_models
from reports.run.report_folder import check_apart, claim
from reports.verdict.promoted import find_run

RETRIES = 3  # of a shard without a report, on another machine if there is one
MOST_MB = 100  # of the working folder
ANSWER_S = 5.0
POLL_S = 0.1
GRACE_S = 30.0  # for shards to write what they have, after an interrupt
LEFT_BEHIND = frozenset({"__pycache__", "node_modules", "venv", "build", "dist"})
LEDGER = ("QA_LEDGER_KEY", "PGUSER", "PGPASSWORD", "PGSSLMODE", "PGSSLROOTCERT", "PGPASSFILE")
OWN_CLUSTER = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_MODE": "token"}
"""What keeps a cluster of this run's own on the loopback address, and to those with its token."""

PROGRAM = """
import ctypes, sys
if sys.platform == "linux":  # end with the task: a process without it would go on spending
    ctypes.CDLL(None).prctl(1, 15)  # PR_SET_PDEATHSIG, SIGTERM
from reports.plugin.qagate import main
sys.exit(main(["run", *sys.argv[1:]]))
"""


class ShardError(Exception):
    """A shard ended without a report."""


def run_shard(luggage: bytes, words: Sequence[str], variables: Mapping[str, str]) -> bytes:
    """Run one shard where this is called; return its report folder, packed.

    Raises ShardError where it ended without a report.
    """
    with tempfile.TemporaryDirectory(prefix="qa-shard-") as folder:
        with tarfile.open(fileobj=io.BytesIO(luggage), mode="r:gz") as tar:
            tar.extractall(folder, filter="data")
        known = {key: value for key, value in os.environ.items() if key != "GITHUB_STEP_SUMMARY"}
        with Path(folder, "said").open("w+", encoding="utf-8") as said:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", PROGRAM, *words, f"--report-dir={folder}/report"],
                cwd=f"{folder}/work",
                env={**known, **variables, "PYTHONPATH": f"{folder}/product"},
                stdout=said,
                stderr=said,
            )
            try:
                while process.poll() is None:
                    time.sleep(POLL_S)  # Ray cannot interrupt a wait
            except KeyboardInterrupt:  # the task was cancelled: pytest still writes what it has
                process.terminate()
                process.wait()
            said.seek(0)
            lines = [line.strip() for line in said if line.strip()] or ["it said nothing"]
        if not Path(folder, "report", "run.json").is_file():
            why = next((line for line in lines if line.startswith("ERROR")), lines[-1])
            raise ShardError(f"{socket.gethostname()}, exit {process.returncode}: {why}")
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            tar.add(f"{folder}/report", arcname=".")
        return packed.getvalue()


def main(argv: Sequence[str]) -> int:
    """Run all shards, merge their reports and return the exit code of the whole."""
    given, words, here = *_parse(argv), Path.cwd()
    for role, run in given.earlier.items():
        if run:
            check_apart(find_run(run, here), here / given.report_dir, role)
    with claim(here / given.report_dir):
        return _run_all(given, words, here)


def _run_all(given: argparse.Namespace, words: list[str], here: Path) -> int:
    address = given.on.partition(":")[2] or os.environ.get("RAY_ADDRESS", "")
    options, _ = read_words([*words, f"--ledger={given.ledger}", "--shard=1/100000"], here)
    place = given.ledger if "://" in given.ledger else here / given.ledger
    words.append(f"--ledger={place}")
    variables, luggage = _variables(options, given.env), _luggage(here)
    former = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory(prefix="qa-ray-") as folder:
            ray = _join(address, folder)
            try:
                machines = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
                if len(machines) > 1 and isinstance(place, Path):
                    raise UsageError(
                        f"--on {given.on}: {len(machines)} machines cannot share {place}; name a "
                        "--ledger postgresql://…"
                    )
                of = given.shards or max(1, int(ray.cluster_resources().get("CPU", 1)))
                say(sys.stderr, f"{of} shards; machines: {len(machines)}")
                tasks = _tasks(ray, [words, variables, luggage], of)
                reports = [*_reports(ray, tasks, Path(folder))]
            finally:
                ray.shutdown()
            if not reports:
                raise UsageError("--on ray: no shard has a report; see the lines above")
            earlier = [f"--{name}={run}" for name, run in given.earlier.items() if run]
            merge = import_module("reports.commands.recorded_runs").merge
            code: int = merge([*map(str, reports), f"--to={given.report_dir}", *earlier])
            return code
    finally:
        signal.signal(signal.SIGTERM, former)


def _parse(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the options that are read here, and the words that go to every shard."""
    parser = CommandParser(
        prog="qagate run --on ray",
        description="Run the shards of a run as tasks of Ray, and merge their reports. All other "
        "words go to pytest, in each shard. The working folder, the product and the models' keys "
        "are carried along.",
        allow_abbrev=False,
    )
    text = "ray: the cluster of RAY_ADDRESS, or one on this machine; ray:ADDRESS: that one"
    parser.add_argument("--on", metavar="ray[:ADDRESS]", required=True, help=text)
    parser.add_argument("--shards", metavar="N", type=int, default=0, help="(default: processors)")
    text = "a variable of this environment that shards need next to the models' keys; repeatable"
    parser.add_argument("--env", metavar="NAME", action="append", default=[], help=text)
    parser.add_argument("--report-dir", metavar="DIR", default="reports/out")
    parser.add_argument("--ledger", metavar="PATH", default=".qa/ledger.sqlite3")
    for name in ("baseline", "anchor"):
        parser.add_argument(f"--{name}", metavar="RUN", default="", help="given to merge")
    given, words = parser.parse_known_args(argv)
    if given.on.partition(":")[0] != "ray":
        raise UsageError(f"--on: ray or ray:ADDRESS is needed, got {given.on!r}")
    if not 0 <= given.shards <= 100_000:
        raise UsageError(f"--shards: a number from 1 to 100,000 is needed, got {given.shards}")
    given.earlier = {"baseline": given.baseline, "anchor": given.anchor}
    return given, words


def _variables(options: RunOptions, more: Sequence[str]) -> dict[str, str]:
    """Return the variables that a shard needs: keys, the ledger's, and those that are named."""
    specs = connect_models(options, needs_key=not options.replay).specs.values()
    names = {name for spec in specs for name in (spec.api_key_env, *spec.headers.values())}
    names |= {*LEDGER, *more, *options.key_names.values()}
    found = {name: read_variable(name).reveal() for name in names}
    own_run = {RUN: secrets.token_hex(8)}  # so that a repeated task goes on with its money
    return own_run | {name: value for name, value in found.items() if value}


def _luggage(here: Path) -> bytes:
    """Return the working folder and the product, packed; say what is left behind.

    Raises UsageError where the folder is too large.
    """
    behind, carried = [], []
    for folder, names, files in os.walk(here):
        at = Path(folder)
        left = {name for name in (*names, *files) if name[0] == "."}  # .env holds keys
        left |= LEFT_BEHIND.intersection(names) | ({"out"} if at == here / "reports" else set())
        names[:] = [name for name in names if name not in left]
        behind += sorted((at / name).relative_to(here).as_posix() for name in left)
        carried += [at / name for name in files if name not in left]
    size = sum(path.lstat().st_size for path in carried) / 1024**2
    if size > MOST_MB:
        raise UsageError(
            f"--on ray: {here} holds {size:,.0f} MB, and {MOST_MB} MB at most are carried; start "
            "in a folder with the data sets alone"
        )
    say(sys.stderr, f"carried: {here}, {size:,.1f} MB, without {', '.join(behind) or 'exception'}")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for path in carried:
            tar.add(path, arcname=f"work/{path.relative_to(here)}")
        for name in PACKAGES:
            tar.add(
                HOME / name,
                arcname=f"product/{name}",
                filter=lambda found: None if found.name.endswith("__pycache__") else found,
            )
    return packed.getvalue()


def _join(address: str, folder: str) -> Any:
    """Return Ray with its cluster: the one at the address, or its own that ends with the run.

    Raises UsageError where it is not installed, or no cluster answers.
    """
    where: dict[str, Any] = {"address": address}
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # Ray reads these as it is loaded
    if not address:
        os.environ |= {**OWN_CLUSTER, "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        where = {"address": "local", "include_dashboard": False, "_temp_dir": folder}
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        ray = import_module("ray")
        if host and port.isdigit():  # Ray itself would try for minutes
            socket.create_connection((host, int(port)), ANSWER_S).close()
        ray.init(**where, logging_level=logging.ERROR, log_to_driver=False)
    except ImportError:
        raise UsageError("--on ray: Ray is not installed; pip install 'ray>=2.55'") from None
    except (OSError, OverflowError, ValueError, RuntimeError) as error:
        raise UsageError(
            f"--on ray: no cluster answers at {address or 'this machine'} ({shown(str(error))}); "
            "start it, or unset RAY_ADDRESS for one on this machine"
        ) from None
    return ray


def _tasks(ray: Any, common: Sequence[Any], of: int) -> dict[Any, str]:
    """Start a task for each shard; return their names."""
    words, variables, luggage = common
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # nodes need no product
    again = {"max_retries": RETRIES, "retry_exceptions": [ShardError]}
    task = ray.remote(scheduling_strategy="SPREAD", **again)(run_shard)
    carried = ray.put(luggage)
    names = [f"{number}/{of}" for number in range(1, of + 1)]
    # Variables are an argument: a dashboard shows those of a runtime_env.
    return {task.remote(carried, [*words, f"--shard={one}"], variables): one for one in names}


def _reports(ray: Any, pending: dict[Any, str], folder: Path) -> Iterator[Path]:
    """Yield the shards' report folders as they come; say which shard has none, where and why."""
    patience: float | None = None
    while pending:
        try:
            done, _ = ray.wait(list(pending), timeout=patience)
            if not done:
                return
            shard = pending.pop(done[0])
            to = folder / f"shard-{shard.partition('/')[0]}"
            with tarfile.open(fileobj=io.BytesIO(ray.get(done[0])), mode="r:gz") as tar:
                tar.extractall(to, filter="data")
            say(sys.stderr, f"shard {shard} has ended")
            yield to
        except ray.exceptions.RayError as error:
            why = shown(str(getattr(error, "cause", None) or error))
            say(sys.stderr, f"--on ray: shard {shard} failed {RETRIES + 1} times: {why}")
        except KeyboardInterrupt:
            patience = GRACE_S
            for one in pending:
                ray.cancel(one, force=False)
