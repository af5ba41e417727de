"""Every command of the README, in its order, in one copy of the repository."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.loopback import Answer, Seen, loopback, reply

README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    re.split(r"\s+# ", line)[0]
    for block in re.findall(r"^```sh\n(.*?)^```$", README, re.S | re.M)
    for line in block.splitlines()
]
QAGATE = "import sys\nsys.path.insert(0, {home!r})\nfrom qagate import main\nsys.exit(main())\n"
ROWS, LABELS = 400, 80


def answer(seen: Seen) -> Answer:
    """Answer with the question's number, and find an answer right that has that number."""
    if seen.tool is None:
        asked = re.findall(r"Frage (\d+)", seen.prompt)
        return reply(seen, text=f"Nummer {asked[-1]}" if asked else "I do not know.")
    grade = "INCORRECT" if "Falsch" in seen.prompt else "CORRECT"
    return reply(seen, arguments={"reason": "by its number", "grade": grade, "rating": 7})


def fill(folder: Path) -> None:
    """Put rows in place of those of `qagate new`, and labels for the judge."""
    rows = "".join(f"Frage {n}?,Nummer {n}\n" for n in range(ROWS))
    (folder / "folklore" / "de.csv").write_text(f"question,answer\n{rows}", encoding="utf-8")
    labels = "".join(
        f"Frage {n}?,Nummer {n},{text} {n},{label}\n"
        for n in range(LABELS)
        for text, label in (("Nummer", "CORRECT"), ("Falsch", "INCORRECT"))
    )
    head = "question,answer,predicted_answer,label\n"
    (folder / "folklore_labels" / "de.csv").write_text(head + labels, encoding="utf-8")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The repository as a fresh clone has it, and `qagate` as the install would put it."""
    names = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, tmp_path / name)
    home = tmp_path / ".venv" / "bin"
    home.mkdir(parents=True)
    shutil.copyfile(ROOT / "reports" / "plugin" / "qagate.py", home / "qagate.py")
    script = home / "qagate"
    script.write_text(f"#!{sys.executable}\n{QAGATE.format(home=str(home))}", encoding="utf-8")
    script.chmod(0o755)
    return tmp_path


@pytest.mark.slow
def test_every_command_of_the_readme_works(copy: Path) -> None:
    """No usage error and no crash; the user's own product passes, before and after the upgrade.

    Models are those of a loopback server, the bundled sets are the smallest, nothing is installed.
    """
    with loopback(handler=answer) as server:
        entries = {
            named(spec): {
                **dict(zip(("provider", "model"), spec.split(":"), strict=True)),
                "base_url": f"{server.url}/v1",
                "prices": {"input": 1, "output": 1},
            }
            for command in COMMANDS
            for spec in re.findall(r"--(?:model|judge) (\S+)", command)
        }
        (copy / "models.yaml").write_text(json.dumps(entries), encoding="utf-8")
        said = {command: run(copy, command) for command in COMMANDS}
    codes = {command: code for command, (code, _) in said.items()}
    assert {*codes.values()} <= {0, 6}, json.dumps(said, indent=1)
    own = [command for command in COMMANDS if "qagate" in command and "install" not in command]
    assert [codes[command] for command in own] == [0] * 6, json.dumps(said, indent=1)
    assert "(0 of" not in said[own[-1]][1] and "GATES PASS" in said[own[-1]][1]


def named(spec: str) -> str:
    """Return the name in the models file of what stands for a model of the README."""
    return re.sub(r"\W", "_", spec)


def run(folder: Path, command: str) -> tuple[int, str]:
    """Return the exit code and the end of the output of one line."""
    given = command.rpartition("&& ")[2].replace("cases/", "cases/smoke").replace("-n 8", "-n 2")
    given = given.replace("…", "k").replace(" tests/", " tests/test_architecture.py")
    given = re.sub(r"(--(?:model|judge)) (\S+)", lambda m: f"{m[1]} {named(m[2])}", given)
    if "--model" in given:
        given += " --models models.yaml"
    if given.endswith("--models models.yaml") and "folklore" in given:
        fill(folder)
    if "last-release" in given:
        given = f"qagate promote last-release --anyway && {given}"
    if given.startswith("export"):
        return 0, ""
    bin_ = folder / ".venv" / "bin"
    done = subprocess.run(
        ["sh", "-c", given],
        cwd=folder,
        env={
            "PATH": os.pathsep.join([str(bin_), str(Path(sys.executable).parent), os.defpath]),
            "PYTHONPATH": str(bin_),
            "HOME": str(folder),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr)[-1500:]
