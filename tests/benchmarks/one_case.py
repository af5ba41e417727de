"""Count the files and functions of the product that one case enters.

``python -m tests.benchmarks.one_case`` traces two runs against a local server, of 11 items and of
one, in every process. What ten further items add, divided by ten, is what one case enters; work
done once a run cancels out. Two workers, a model as judge, no measuring of the judge, no baseline.
"""

import atexit
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

from tests.benchmarks.common import ROOT
from tests.benchmarks.server import serving

FOLDER = "QA_TRACE_FOLDER"
ITEMS = 10
WRITE = sys.stdout.write

Function = tuple[str, str]
"""A file of the product, from the repository's root, and a function of it."""


def _trace(folder: Path) -> None:
    """Count calls in this process and its forks; each writes its counts when it ends."""
    root = f"{ROOT}{os.sep}"
    calls: Counter[Function] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(root):
            calls[path[len(root) :], frame.f_code.co_qualname] += 1

    def save() -> None:
        sys.setprofile(None)
        rows = [[*function, number] for function, number in calls.items()]
        (folder / f"{os.getpid()}.json").write_text(json.dumps(rows), encoding="utf-8")

    leave = os._exit

    def leave_counted(code: int) -> None:
        save()
        leave(code)

    os._exit = leave_counted  # type: ignore[assignment]  # how the forked engine ends
    os.register_at_fork(after_in_child=calls.clear)
    atexit.register(save)
    threading.setprofile(count)
    sys.setprofile(count)


def _counted(url: str, items: int) -> Counter[Function]:
    """Return the calls of a run over so many items, in all its processes."""
    spec = f"openai:model@{url}/v1"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = (
            f"{sys.executable} -m pytest -q -p tests.benchmarks.one_case -p no:cacheprovider -n 2 "
            f"cases/smoke --languages en --limit first:{items} --model {spec} --judge {spec}-judge "
            f"--gates off --ledger {folder}/l --report-dir {folder}/report"
        ).split()
        env = {**os.environ, "OPENAI_API_KEY": "none", FOLDER: name}
        done = subprocess.run(
            command, check=False, cwd=ROOT, env=env, capture_output=True, text=True
        )
        if done.returncode not in (0, 1):
            raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
        calls: Counter[Function] = Counter()
        for path in folder.glob("*.json"):
            for file, function, number in json.loads(path.read_text(encoding="utf-8")):
                if not file.startswith("tests/"):
                    calls[file, function] += number
    return calls


def main() -> None:
    """Print the files that a case enters with its calls to each, most calls first."""
    with serving(0.05) as server:
        few, many = _counted(server.url, 1), _counted(server.url, 1 + ITEMS)
    # A function that starts up or polls now and then is not entered for a case.
    entered = {
        one: (many[one] - few[one]) / ITEMS
        for one in many
        if many[one] - few[one] >= ITEMS
    }
    files: Counter[str] = Counter()
    for (file, _), calls in entered.items():
        files[file] += round(calls)
    for file, number in files.most_common():
        WRITE(f"{number:6}  {file}\n")
    everything = len({file for file, _ in many})
    WRITE(
        f"one case enters {len(files)} files and {len(entered)} functions with "
        f"{sum(files.values())} calls; the whole run {everything} files\n"
    )


if FOLDER in os.environ:
    _trace(Path(os.environ[FOLDER]))
elif __name__ == "__main__":
    main()
