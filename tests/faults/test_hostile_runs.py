"""A run folder that somebody else made is read by type and name, or not at all."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluators.text import harmless
from reports.__main__ import main
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of, written

FORGED = "x\n::error file=a.py,line=1::forged\n##[error]forged\x1b]0;PWNED\x07\x1b[2J\u202e"
Change = Callable[[Any], object]


def altered(folder: Path, *, run: Change | None = None, record: Change | None = None) -> Path:
    """Return the folder of a run in which somebody changed values, with its checksum made anew."""
    path = written(run_of(answered("ci"), facts_dataset(graded_slice("en"))), folder)
    items, whole = path / "records.jsonl", path / "run.json"
    lines = [json.loads(line) for line in items.read_text(encoding="utf-8").splitlines()]
    if record:
        record(lines[0])
    text = "".join(json.dumps(line) + "\n" for line in lines)
    items.write_text(text, encoding="utf-8")
    value = json.loads(whole.read_text(encoding="utf-8"))
    if run:
        run(value)
    value["records"]["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    whole.write_text(json.dumps(value), encoding="utf-8")
    return path


RUNS: dict[str, Change] = {
    "language": lambda run: run["slices"][0].update(language=FORGED),
    "dataset": lambda run: run["slices"][0].update(dataset=FORGED),
    "measure": lambda run: run["slices"][0]["measures"].update({FORGED: {}}),
    "declared": lambda run: run["datasets"][0]["slices"][0].update(language=FORGED),
}
RECORDS: dict[str, Change] = {
    "language": lambda one: one.update(language=FORGED),
    "cost": lambda one: one.update(cost="x"),
    "question": lambda one: one.update(question=5),
    "votes": lambda one: one.update(votes=[1]),
    "key": lambda one: one.update(key=["a"]),
    "row": lambda one: one.update(row=None),
    "row text": lambda one: one.update(row="/merge\n# PWNED"),
    "tokens": lambda one: one.update(tokens="x"),
    "many tokens": lambda one: one.update(tokens=10**20),
    "no number": lambda one: one.update(seconds=float("nan")),
    "outcome": lambda one: one.update(outcome=FORGED),
}


@pytest.mark.parametrize("command", ["render", "gate", "merge"])
@pytest.mark.parametrize("name", [*(f"run {n}" for n in RUNS), *(f"record {n}" for n in RECORDS)])
def test_a_wrong_value_ends_every_command_with_one_line(
    command: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 4, the file named, nothing of the value in the log but what is harmless there."""
    where, _, which = name.partition(" ")
    change = {"run": RUNS, "record": RECORDS}[where][which]
    folder = altered(tmp_path / "run", **{where: change})
    assert main([command, str(folder), "--to", str(tmp_path / "out")]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "json" in err
    assert err.strip() == harmless(err.strip())
    assert "\n::" not in err


def test_free_texts_of_a_run_cannot_command_a_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What may be any text, a model's name or a note, stands on one line and moves no cursor.

    Row F22 of the fault matrix.
    """

    def change(run: dict[str, Any]) -> None:
        run.update(model=FORGED, judge=FORGED, baseline=FORGED)
        run["notes"].append(FORGED)
        run["decision"]["line"] = FORGED

    folder = altered(tmp_path / "run", run=change)
    for command in ("render", "gate", "merge"):
        main([command, str(folder), "--to", str(tmp_path / command)])
    out, err = capsys.readouterr()
    for line in (out + err).splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line
        assert "\x1b" not in line
    for path in tmp_path.glob("*/summary.md"):
        text = path.read_text(encoding="utf-8")
        assert "\n::" not in text
        assert "\x1b" not in text
