"""The robustness examples, run as their own kit runs them, where they are at hand."""

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

from tests.robustness_adapter import write_reports
from tests.support.hostile import HOSTILE, needs_kit

ADAPTER = Path(__file__).with_name("robustness_adapter.py")


def test_the_kit_finds_no_attack_that_works() -> None:
    """Prompt frames, report files and terminal: nothing found, controls pass (F21)."""
    kit = needs_kit() / "kit.py"
    done = subprocess.run(
        [sys.executable, kit, "attacks", ADAPTER], capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert "prompt frame: " in done.stdout, (
        done.stdout + done.stderr
    )  # the kit ran to its end
    failed = [line for line in done.stdout.splitlines() if "FAIL" in line]
    # Every < of a slot is escaped as JSON may escape it; the kit wants this one as it stands.
    assert all("| va43 |" in line for line in failed), done.stdout + done.stderr


def test_hostile_answers_each_have_a_case_in_every_xml_file(tmp_path: Path) -> None:
    """Our own hostile texts: items.xml of pytest and gates.xml parse and hold them all (F19)."""
    rows = [
        {"id": f"h{n}", "language": "en", "question": f"Question {n}, is it?", "gold": "Sofia",
         "predicted": text, "grade": "INCORRECT"}
        for n, text in enumerate(HOSTILE)
    ]  # fmt: skip
    write_reports(rows, str(tmp_path))
    for name in ("items.xml", "gates.xml"):
        tree = ET.fromstring((tmp_path / name).read_bytes())
        assert len(list(tree.iter("testcase"))) == len(rows)
    names = {path.name for path in tmp_path.iterdir()}
    assert {
        "run.json",
        "records.jsonl",
        "report.html",
        "summary.md",
        "terminal.log",
    } <= names
