"""``qagate run --on ray``: each shard of a run is a task of Ray, and ``merge`` decides.

A task runs ``pytest … --shard K/N`` in a process and returns its report. What it needs comes as
arguments: a ``runtime_env`` would leave files on the nodes and show variables on a dashboard.
"""

import io
import logging
import os
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import qagate
from qagate.bundled import CASES, EVALUATORS
from qagate.evaluators import temporary
from qagate.evaluators.command_line import CommandParser
from qagate.evaluators.core import UsageError
from qagate.evaluators.ledger.place import PostgresUrl
from qagate.evaluators.ledger.reply_store import Ledger
from qagate.evaluators.ledger.runs import CI_RUN_VARIABLES, QA_RUN
from qagate.evaluators.ledger.upkeep import UNKEPT_FOLDER
from qagate.evaluators.models.keys import read_variable
from qagate.evaluators.optional import require
from qagate.evaluators.output import say
from qagate.evaluators.temporary import temporary_folder
from qagate.evaluators.text import listed, mask, one_line, shown
from qagate.reports.doors import load_command
from qagate.reports.plugin.first_seconds import stop_signals
from qagate.reports.plugin.option_values import read_whole
from qagate.reports.plugin.options import RunOptions, read_words, shard_header
from qagate.reports.plugin.run_models import connect_models
from qagate.reports.plugin.run_process import SPENDING
from qagate.reports.run.baselines import find_run
from qagate.reports.run.report_folder import check_apart, claim

RETRIES = 3  # of a shard, each on a node where it has not failed
SHARD_CPUS = 0.1
"""Of a processor, which a shard takes: it waits for a network most of the time."""
MOST_MB = 100  # of the working folder
LEFT_BEHIND = frozenset({"node_modules", "venv", "build", "dist"})
LEDGER = (
    "QA_LEDGER_KEY",
    "PGUSER",
    "PGPASSWORD",
    "PGSSLMODE",
    "PGSSLROOTCERT",
    "PGPASSFILE",
)

PROGRAM = """
import ctypes, sys  # PR_SET_PDEATHSIG, SIGTERM: without its task a shard would go on spending
sys.platform == "linux" and ctypes.CDLL(None).prctl(1, 15)
from qagate.command import main; sys.exit(main(["run", *sys.argv[1:]]))
"""


def run_shard(luggage: bytes, variables: Mapping[str, str], *words: str) -> bytes:
    """Return the packed report of one shard, run here; RuntimeError names the node and why."""
    try:
        with temporary_folder("qa-shard-") as home:
            report = home / "report"
            with tarfile.open(fileobj=io.BytesIO(luggage)) as tar:
                tar.extractall(home, filter="data")
            own = {"PYTHONPATH": f"{home}/product", "GITHUB_STEP_SUMMARY": ""}
            command = [
                sys.executable,
                "-P",
                "-c",
                PROGRAM,
                *words,
                f"--report-dir={report}",
            ]
            with (home / "said").open("w+", encoding="utf-8", errors="replace") as said:
                process = subprocess.Popen(
                    command,
                    stdout=said,
                    stderr=said,
                    cwd=home / "work",
                    env=os.environ | {**variables, **own},
                )
                try:
                    while process.poll() is None:
                        time.sleep(0.1)  # Ray cannot interrupt a wait
                except (
                    KeyboardInterrupt
                ):  # the task was cancelled: pytest still writes what it has
                    process.terminate()
                    process.wait()
                said.seek(0)
                lines = [line.strip() for line in said if line.strip()] or [""]
            if not (report / "run.json").is_file():
                why = next(
                    (line for line in lines if line.startswith("ERROR")), lines[-1]
                )
                raise OSError(f"exit {process.returncode}: {why}")
            for unkept in (home / "work" / UNKEPT_FOLDER).glob("unkept-*"):
                unkept.rename(report / unkept.name)
            return Path(
                shutil.make_archive(f"{home}/packed", "gztar", report)
            ).read_bytes()
    except (OSError, tarfile.TarError) as error:
        node = import_module("ray").get_runtime_context().get_node_id()
        raise RuntimeError(f"{node}: {error}") from None


def main(argv: Sequence[str]) -> int:
    """Run all shards, merge their reports and return the exit code of the whole."""
    given, words, here = *_parse(argv), Path.cwd()
    require("ray", "--on ray")
    to_merge = [f"--to={given.report_dir}"]
    for role, run in (("baseline", given.baseline), ("anchor", given.anchor)):
        if run:
            earlier = find_run(run, here)
            check_apart(earlier, here / given.report_dir, role)
            to_merge.append(f"--{role}={run}")
            words.append(f"--{role}={_carried(earlier, here, role)}")
    options, _ = read_words(
        [*words, f"--ledger={given.ledger}", "--shard=1/100000"], here
    )
    if "dry-run" in options.features:
        raise UsageError(
            "--on ray: a dry run asks nothing; leave --on and --shards out"
        )
    if any(UNKEPT_FOLDER.glob("unkept-*")) and not options.replay:
        Ledger(options.ledger).close()  # takes them in; shards do not see this folder
    ledger = options.ledger
    words.append(
        f"--ledger={ledger.url if isinstance(ledger, PostgresUrl) else ledger}"
    )
    variables, luggage = _variables(options, given.env), _luggage(here)
    command = mask(shlex.join(["qagate", "run", *argv]))
    with (
        claim(here / given.report_dir, command) as claimed,
        temporary_folder("qa-ray-") as folder,
    ):
        ray = _join(
            given.on.partition(":")[2] or os.environ.get("RAY_ADDRESS", ""), str(folder)
        )
        # Ray takes SIGTERM over when it starts, and would end this process with a trace.
        for number in stop_signals():
            signal.signal(number, signal.default_int_handler)
        try:
            nodes = ray.nodes()
            machines = len(
                {node["NodeManagerAddress"] for node in nodes if node["Alive"]}
            )
            if machines > 1 and isinstance(options.ledger, Path):
                raise UsageError(
                    f"--on ray: {machines} machines need a --ledger postgresql://…"
                )
            claimed.begin()
            of = given.shards or max(1, int(ray.cluster_resources().get("CPU", 1)))
            at_once = shards_at_once(nodes)
            if at_once < of:
                words.append(f"--shards-at-once={at_once}")
            for n in range(1, of + 1):
                say(
                    sys.stderr,
                    *shard_header(read_words([*words, f"--shard={n}/{of}"], here)[0]),
                )
            common = [ray.put(luggage), variables, *words]
            reports = [str(report) for report in _reports(ray, common, of, folder)]
        finally:
            ray.shutdown()
        if not reports:
            raise UsageError("--on ray: no shard has a report; see the lines above")
        return load_command("merge")([*reports, *to_merge])


def shards_at_once(nodes: Sequence[Mapping[str, Any]]) -> int:
    """Return how many shards the nodes of a cluster run at a time, at least 1."""
    places = 0
    for node in nodes:
        if node["Alive"]:
            processors = node["Resources"].get("CPU", 0.0)
            places += round(processors / SHARD_CPUS)
    return max(1, places)


def _parse(argv: Sequence[str]) -> tuple[Any, list[str]]:
    parser = CommandParser(
        prog="qagate run --on ray",
        description="Run the shards of a run as tasks of Ray, and merge their reports. The working "
        "folder, the product and the models' keys are carried. All other words go to pytest.",
        allow_abbrev=False,
    )
    add, count = parser.add_argument, partial(read_whole, "shards")
    add(
        "--on",
        metavar="ray[:ADDRESS]",
        help="the cluster of ADDRESS, RAY_ADDRESS or its own",
    )
    add("--shards", metavar="N", type=count, help="(default: processors)")
    add(
        "--env",
        metavar="NAME",
        action="append",
        default=[],
        help="one more variable to carry",
    )
    add("--report-dir", metavar="DIR", default="reports/out")
    add("--ledger", metavar="PATH", default=".qa/ledger.sqlite3")
    add("--baseline", metavar="RUN", help="given to merge")
    add("--anchor", metavar="RUN", help="given to merge")
    given, words = parser.parse_known_args(argv)
    if given.on.partition(":")[0] != "ray":
        raise UsageError(f"--on: ray or ray:ADDRESS is needed, got {given.on!r}")
    return given, words


def _variables(options: RunOptions, more: Sequence[str]) -> dict[str, str]:
    specs = connect_models(options, needs_key=not options.replay).specs.values()
    names = {
        name for spec in specs for name in (spec.api_key_env, *spec.headers.values())
    }
    names |= {*LEDGER, QA_RUN, *CI_RUN_VARIABLES, *more, *options.key_names.values()}
    found = {name: value for name in names if (value := read_variable(name).reveal())}
    return {
        SPENDING: secrets.token_hex(8),
        **found,
    }  # so that a repeated task goes on with its money


def _carried(run: Path, here: Path, role: str) -> Path:
    """Return where a run lies in what each shard carries along: it reads the run's answers.

    Raises UsageError for a run outside of the working folder, which is not carried.
    """
    path, folder = run.resolve(), here.resolve()
    if not path.is_relative_to(folder):
        raise UsageError(
            f"--{role}: {run} lies outside of {here}, and shards carry only this folder; "
            "promote the run, or start above it"
        )
    return path.relative_to(folder)


def _luggage(here: Path) -> bytes:
    behind, size = list[str](), 0

    def take(found: tarfile.TarInfo) -> tarfile.TarInfo | None:
        nonlocal size
        (root, _, inside), name = found.name.partition("/"), Path(found.name).name
        if name == "__pycache__" or root != "work":
            return None if name == "__pycache__" else found
        far = found.isdev() or (found.issym() and found.linkname.startswith("/"))
        if far or name[:1] == "." or name in LEFT_BEHIND or inside == "reports/out":
            behind.append(inside)  # .env holds keys
            return None
        size += found.size
        if size > MOST_MB * 1024**2:
            large = f"--on ray: {here} holds more than {MOST_MB} MB; start in a smaller folder"
            raise UsageError(f"{large}; left out already: {listed(behind)}")
        return found

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        tar.add(here, arcname="work", filter=take)
        tar.add(Path(qagate.__file__).parent, arcname="product/qagate", filter=take)
        for data in (CASES, EVALUATORS):  # in a checkout they lie beside the code
            if not data.is_relative_to(Path(qagate.__file__).parent):
                tar.add(data, arcname=f"product/{data.name}", filter=take)
    without = f", without {listed(behind)}" if behind else ""
    say(
        sys.stderr,
        f"carried: {here}, {size / 1024**2:,.1f} MB of at most {MOST_MB}{without}",
    )
    return packed.getvalue()


def _join(address: str, folder: str) -> Any:
    """Return Ray with its cluster: the one at the address, or its own that ends with the run."""
    # Ray reads these as it is loaded; the second keeps its own words about failures from stderr.
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS_SKIP_REGEX": "."}
    how = {
        "address": address or "local",
        "log_to_driver": False,
        "logging_level": logging.ERROR,
    }
    if not address:
        os.environ |= {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
        }
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        how |= {"include_dashboard": False, "_temp_dir": folder}
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        ray = import_module("ray")
        if host and port.isdigit():  # Ray itself would try for minutes
            socket.create_connection((host, int(port)), 5.0).close()
        ray.init(**how)
    except (OSError, OverflowError, ValueError, RuntimeError) as error:
        why = f"no cluster answers at {address or 'this machine'} ({shown(str(error))})"
        raise UsageError(f"--on ray: {why}; start it, or unset RAY_ADDRESS") from None
    return ray


def _reports(ray: Any, common: Sequence[Any], of: int, folder: Path) -> Iterator[Path]:
    for module in (sys.modules[__name__], temporary):  # nodes need no product
        ray.cloudpickle.register_pickle_by_value(module)

    def start(shard: str, failed: Sequence[str] = ()) -> Any:
        where = {"ray.io/node-id": f"!in({','.join(failed)})"} if any(failed) else {}
        how = {
            "scheduling_strategy": "SPREAD",
            "max_retries": 0,
            "num_cpus": SHARD_CPUS,
            "label_selector": where,
        }
        return ray.remote(**how)(run_shard).remote(*common, f"--shard={shard}")

    pending = {start(f"{n}/{of}"): (f"{n}/{of}", list[str]()) for n in range(1, of + 1)}
    patience: float | None = None
    while pending:
        try:
            done, _ = ray.wait(list(pending), timeout=patience)
            if not done:
                return
            shard, failed = pending.pop(done[0])
            to = folder / f"shard-{shard.partition('/')[0]}"
            with tarfile.open(fileobj=io.BytesIO(ray.get(done[0]))) as tar:
                tar.extractall(to, filter="data")
            for unkept in to.glob("unkept-*"):
                UNKEPT_FOLDER.mkdir(mode=0o700, exist_ok=True)
                shutil.move(unkept, UNKEPT_FOLDER / unkept.name)
            say(sys.stderr, f"shard {shard} has ended")
            yield to
        except ray.exceptions.RayError as error:
            if patience is None and _has_other_node(ray, error, shard, failed):
                pending[start(shard, failed)] = (shard, failed)
        except KeyboardInterrupt:
            for number in stop_signals():  # a second must not cost the reports
                signal.signal(number, signal.SIG_IGN)
            patience = (
                120.0  # for shards to write what they have; a busy node takes its time
            )
            for one in pending:
                ray.cancel(one, force=False)


def _has_other_node(ray: Any, error: Exception, shard: str, failed: list[str]) -> bool:
    """Say which shard failed, where and why; return whether it is to be tried on another node."""
    why = str(getattr(error, "cause", None) or error)
    known = {node["NodeID"]: node for node in ray.nodes()}
    failed.append(node := next((one for one in known if one in why), ""))
    again = len(failed) <= RETRIES and any(
        known[one]["Alive"] for one in known.keys() - failed
    )
    name = known.get(node, {"NodeName": "an unknown node"})["NodeName"]
    why = one_line(mask(why.removeprefix(f"{node}: "))) + (
        "; tried on another" if again else ""
    )
    say(sys.stderr, f"--on ray: shard {shard} failed on {name}: {why}")
    return again
