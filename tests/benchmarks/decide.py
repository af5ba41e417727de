"""Measure ``qagate decide`` over two logs of inspect_ai with 4,326 samples each.

``python -m tests.benchmarks.decide`` prints wall time, processor time and memory.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from tests.benchmarks.server import ROOT

SAMPLES = 4326


def log(path: Path, model: str, every: int) -> None:
    """Write a log in which one sample in ``every`` is wrong."""
    about = {"task": "cities", "model": model, "dataset": {"samples": SAMPLES}}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("header.json", json.dumps({"status": "success", "eval": about}))
        for number in range(SAMPLES):
            sample = {
                "id": number,
                "epoch": 1,
                "input": f"Which city comes at place {number} of the list?",
                "target": "Paris",
                "output": {"completion": f"{model} says Paris"},
                "scores": {"match": {"value": "I" if number % every == 0 else "C"}},
            }
            file.writestr(f"samples/{number}_epoch_1.json", json.dumps(sample))


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        new, old = (Path(folder) / f"{name}.eval" for name in ("new", "old"))
        log(new, "mock/new", 6)
        log(old, "mock/old", 7)
        words = ["decide", str(new), f"--baseline={old}", f"--to={Path(folder) / 'out'}"]
        start = time.monotonic()
        process = subprocess.Popen([sys.executable, "-m", "reports", *words], cwd=ROOT)
        _, _, used = os.wait4(process.pid, 0)
        wall, cpu = time.monotonic() - start, used.ru_utime + used.ru_stime
    memory = used.ru_maxrss / 1024
    sys.stdout.write(f"{wall:.1f} s, {cpu:.1f} s of processor, {memory:.0f} MB\n")


if __name__ == "__main__":
    main()
