"""Files that are damaged, forged or giant: read rightly, or refused soon in one line."""

import csv
import hashlib
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from qagate.cases.adjudication_files import load_adjudications
from qagate.cases.config import load_dataset, load_gates
from qagate.cases.extras.check.item_checks import LOOKED_AT, read_subject
from qagate.cases.extras.review.reviews import check_rows, load_issued, read_rows
from qagate.cases.extras.review.sheet import load_criteria
from qagate.cases.loading import load_cases
from qagate.cases.tables import MAX_BYTES, MAX_YAML_BYTES, read_table
from qagate.command import main
from qagate.evaluators.answers.reader import read_text
from qagate.evaluators.core import Ask, Case, ReadAnswer, UsageError, Verdict
from qagate.evaluators.models.catalogue import load_catalogue
from qagate.evaluators.rubric import load_prompt, load_rubric
from qagate.evaluators.runtime.task import Task
from qagate.evaluators.text import MAX_ANSWER_BYTES, harmless, travelling
from qagate.reports.extras.sequential.human_review import load_ratings
from tests.support.declaring import made
from tests.support.engine_bench import Bench
from tests.support.fixtures import Captured
from tests.support.made_runs import (
    answered,
    facts_dataset,
    graded_slice,
    run_of,
    written,
)
from tests.support.scripted import make_case
from tests.support.tables import kept

FORGED = (
    "x\n::error file=a.py,line=1::forged\n##[error]forged\x1b]0;PWNED\x07\x1b[2J\u202e"
)
Change = Callable[[Any], object]


def altered(
    folder: Path, *, run: Change | None = None, record: Change | None = None
) -> Path:
    """Return the folder of a run in which somebody changed values, with its checksum made anew."""
    path = written(run_of(answered("ci"), facts_dataset(graded_slice("en"))), folder)
    items, whole = path / "records.jsonl", path / "run.json"
    lines = [
        json.loads(line) for line in items.read_text(encoding="utf-8").splitlines()
    ]
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
@pytest.mark.parametrize(
    "name", [*(f"run {n}" for n in RUNS), *(f"record {n}" for n in RECORDS)]
)
def test_wrong_values_are_a_line(
    command: str, name: str, tmp_path: Path, capsys: Captured
) -> None:
    """Exit 4, the file named, nothing of the value in the log but what is harmless there."""
    where, _, which = name.partition(" ")
    folder = altered(
        tmp_path / "run", **{where: {"run": RUNS, "record": RECORDS}[where][which]}
    )
    assert main([command, str(folder), "--to", str(tmp_path / "out")]) == 4
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert "json" in err
    assert err.strip() == harmless(err.strip())


def test_free_texts_of_a_run_cannot_command_a_log(
    tmp_path: Path, capsys: Captured
) -> None:
    """What may be any text, as a model's name, stands on one line and moves no cursor (F22)."""

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


FEW, MANY = 25, 150
GATES_LINE = "x\nGATES PASS (9 of 9): exit 0"
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 10**30, 0.5, "", FORGED, GATES_LINE, "x" * 9),
    *([], {}, [None], {"a": None}, ["a"]),
)
PIECES = (
    "\0",
    "\n",
    '"',
    "'",
    ",",
    ";",
    ": ",
    "- ",
    "{",
    "[",
    "]",
    "}",
    "\ud800",
    FORGED,
    "1e999",
)


def mutated_value(value: Any, random_: random.Random) -> Any:
    if isinstance(value, dict) and value and random_.random() < 0.9:
        name = random_.choice(list(value))
        fate = random_.random()
        if fate < 0.08:
            return {key: one for key, one in value.items() if key != name}
        if fate < 0.12:
            return {**value, random_.choice(("new", FORGED, "")): value[name]}
        return {**value, name: mutated_value(value[name], random_)}
    if isinstance(value, list) and value and random_.random() < 0.9:
        place = random_.randrange(len(value))
        if random_.random() < 0.1:
            return value + value[place:]
        return [
            *value[:place],
            mutated_value(value[place], random_),
            *value[place + 1 :],
        ]
    return random_.choice(VALUES)


def mutated_text(text: str, random_: random.Random) -> bytes:
    """Return a text with a piece cut out, put in, doubled, or a byte changed."""
    at = random_.randrange(len(text) + 1)
    end = min(len(text), at + random_.choice((1, 1, 5, 40)))
    fate = random_.randrange(5)
    if fate == 0:
        text = text[:at] + text[end:]
    elif fate == 1:
        text = text[:at] + random_.choice(PIECES) + text[at:]
    elif fate == 2:
        text = text[:at] + random_.choice(PIECES) + text[end:]
    elif fate == 3:
        text = text[:end] + text[at:]
    raw = bytearray(text.encode("utf-8", "surrogatepass"))
    if fate == 4 and raw:
        raw[at % len(raw)] ^= 1 << random_.randrange(8)
    return bytes(raw)


COMMANDS = (
    *(f"{one} RUN --to OUT" for one in ("render", "gate", "merge")),
    "compare OLD RUN",
    "list",
)


def check_run(folder: Path, seed: int, what: str, capsys: Captured) -> None:
    """Mutate a run by value, its checksum made anew, and let a command read it."""
    random_ = random.Random(seed)
    run, old = folder / "run", folder / "old"
    if not old.exists():
        written(run_of(answered("cicn" * 3), facts_dataset(graded_slice("en"))), old)
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(old, run)
    value = json.loads((run / "run.json").read_text(encoding="utf-8"))
    lines = (run / "records.jsonl").read_text(encoding="utf-8").splitlines()
    if what == "run.json":
        value = mutated_value(value, random_)
    else:
        place = random_.randrange(len(lines))
        lines[place] = json.dumps(mutated_value(json.loads(lines[place]), random_))
    text = "".join(f"{line}\n" for line in lines)
    (run / "records.jsonl").write_text(text, encoding="utf-8")
    if isinstance(value, dict) and isinstance(value.get("records"), dict):
        value["records"]["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    (run / "run.json").write_text(json.dumps(value), encoding="utf-8")
    places = {"RUN": run, "OLD": old, "OUT": folder / "out"}
    code = main(
        [str(places.get(word, word)) for word in random_.choice(COMMANDS).split()]
    )
    out, err = capsys.readouterr()
    assert code in (0, 1, 2, 4, 6)
    if code == 4:
        assert len(err.splitlines()) == 1 or "NOTHING GRADED" in out + err
    assert "GATES PASS (9 of 9): exit 0" not in (out + err).splitlines()
    for line in (out + err).splitlines():
        assert line == harmless(line)


Load = Callable[[Path], object]
HERE = Path(__file__).parents[2] / "cases"


def every_case(path: Path) -> object:
    slices = load_dataset(path.with_name("dataset.yaml")).slices.values()
    return [load_cases(one) for one in slices if one.path.name == path.name]


OWN = Path(__file__).with_name("files")
FILES: Mapping[str, tuple[Path, Load]] = {
    "gates.yaml": (OWN, load_gates),
    "criteria.yaml": (OWN, load_criteria),
    "models.yaml": (OWN, lambda path: load_catalogue(own=path)),
    "ratings.jsonl": (OWN, load_ratings),
    "adjudications.yaml": (OWN, load_adjudications),
    "sheet.json": (OWN, load_issued),
    "review.csv": (OWN, lambda path: check_rows(read_rows([path]), {"a": ("YES",)})),
    "review.json": (OWN, lambda path: check_rows(read_rows([path]), {"a": ("YES",)})),
    "answer.en.yaml": (HERE / "smoke", load_prompt),
    "simpleqa.en.yaml": (HERE.parent / "evaluators" / "rubrics", load_rubric),
    "dataset.yaml": (HERE / "smoke", load_dataset),
    "en.csv": (HERE / "smoke", every_case),
    "be.json": (HERE / "boolq", every_case),
}
"""The folder in which each file stands, and its loader."""


def check_file(folder: Path, seed: int, name: str) -> None:
    """Mutate a file and load it: right, or a UsageError of one line that names it."""
    random_ = random.Random(f"{name}{seed}")
    source, load = FILES[name]
    here = folder / name.partition(".")[0]
    if not here.exists():
        shutil.copytree(source, here)
    raw = mutated_text((source / name).read_text(encoding="utf-8"), random_)
    for _ in range(random_.randrange(2)):
        raw = mutated_text(raw.decode("utf-8", "replace"), random_)
    (here / name).write_bytes(raw)
    try:
        load(here / name)
    except UsageError as error:
        assert len(str(error).splitlines()) == 1
        assert str(error) == harmless(str(error))


def seeds(what: str) -> list[Any]:
    """Return the seeds of one kind of file: few in the fast tests, all in the slow ones."""
    few, rest = range(FEW), range(FEW, MANY)
    return [
        pytest.param(what, few, id=f"{what}-few"),
        pytest.param(what, rest, id=f"{what}-many", marks=pytest.mark.slow),
    ]


@pytest.mark.parametrize(
    ("what", "some"),
    [one for what in ("run.json", "records.jsonl") for one in seeds(what)],
)
def test_a_run_is_read_or_refused(
    tmp_path: Path, capsys: Captured, what: str, some: range
) -> None:
    """Every command: an exit code of its own, one line for a 4, no line that steers a log (S5)."""
    for seed in some:
        check_run(tmp_path, seed, what, capsys)


@pytest.mark.parametrize(
    ("name", "some"), [one for name in FILES for one in seeds(name)]
)
def test_a_file_that_is_damaged_is_read_or_refused(
    tmp_path: Path, name: str, some: range
) -> None:
    """Nothing but a UsageError comes out of a loader, for any file."""
    for seed in some:
        check_file(tmp_path, seed, name)


MB = 1024 * 1024
SECONDS = 5.0
MEMORY = 400 * MB
SPLIT = "; split the file, or leave out what is not asked"
LONG = "a value may have 1,048,576 characters; shorten it or drop the row"
MEASURED: str = kept(__file__, "measured")


def cell(size: int) -> str:
    return "Question,Answers\nq?," + "x" * size + "\n"


def rows(count: int) -> str:
    return "Question,Answers\n" + "q?,a\n" * count


def items(count: int) -> str:
    return "[" + ",".join(['{"question": "q", "answer": "a"}'] * count) + "]"


def lines(count: int) -> str:
    return '{"question": "q", "answer": "a"}\n' * count


def yaml(size: int) -> str:
    return "- {question: q, context: c, expected: e}\n" * (size // 41)


@pytest.mark.parametrize(
    ("name", "most"), [("a.csv", MAX_BYTES), ("a.yaml", MAX_YAML_BYTES)]
)
def test_a_file_of_too_many_bytes_is_not_opened(
    tmp_path: Path, name: str, most: int
) -> None:
    """The line says how large it is, how large it may be, and what to do."""
    path = tmp_path / name
    with path.open("wb") as file:
        file.truncate(most + 1)
    with pytest.raises(
        UsageError, match=f"{most + 1:,} bytes; at most {most:,} are read{SPLIT}"
    ):
        read_table(path)


def test_the_csv_limit_of_the_process_is_put_back(tmp_path: Path) -> None:
    """Another library of the process may have set its own."""
    path = tmp_path / "a.csv"
    path.write_text(cell(MB + 2), encoding="utf-8")
    before = csv.field_size_limit(100 * MB)
    try:
        with pytest.raises(UsageError, match="a value may have"):
            read_table(path)
        assert csv.field_size_limit() == 100 * MB
    finally:
        csv.field_size_limit(before)


def test_checks_look_at_the_beginning_of_a_text(tmp_path: Path) -> None:
    """A check is given 10,000 characters of each text."""
    path = tmp_path / "a.csv"
    path.write_text(cell(3 * LOOKED_AT), encoding="utf-8")
    subject = read_subject(made(path))
    assert {len(gold) for case in subject.cases for gold in case.golds} == {LOOKED_AT}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("cell.csv", lambda: cell(60 * MB)),
        ("file.csv", lambda: cell(100 * MB)),
        ("rows.csv", lambda: rows(2_000_000)),
        ("items.json", lambda: items(400_000)),
        ("lines.jsonl", lambda: lines(400_000)),
        ("items.yaml", lambda: yaml(6 * MB)),
    ],
    ids=["cell", "file", "rows", "json", "jsonl", "yaml"],  # workers must agree on them
)
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="memory is read from Linux's /proc"
)
def test_a_bound_is_reached_soon(
    tmp_path: Path, name: str, make: Callable[[], str]
) -> None:
    """One line within 5 CPU seconds and 400 MB, however large the file is (S13, F20)."""
    path = tmp_path / name
    path.write_text(make(), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    said, seconds, memory = done.stdout.splitlines()
    assert SPLIT in said or LONG in said
    assert "more than 200,000 rows" in said or "rows" not in name
    assert float(seconds) < SECONDS
    assert int(memory) < MEMORY


class Giant:
    spec = "recorded"

    async def answer(self, case: Case, repeat: int, ask: Ask) -> ReadAnswer:
        return read_text("x" * 5_000_000 + "😀")


class Measuring:
    spec = "rule:length"

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        return Verdict(grade="CORRECT", reason=str(len(answer)))


def test_a_giant_travels_cut(tmp_path: Path) -> None:
    """Judge and outcome have the same cut text, with the length and the hash of all (S14)."""
    task = Task(
        key="k", case=make_case(1), repeat=1, answerer=Giant(), judge=Measuring(),
        passes=lambda case, verdict: True,
    )  # fmt: skip
    outcome = Bench(tmp_path, [task]).run()["k"]
    assert outcome.answer is not None
    assert outcome.verdict is not None
    assert len(outcome.answer) < MAX_ANSWER_BYTES // 4 + 200
    assert outcome.verdict.reason == str(len(outcome.answer))
    whole = ("x" * 5_000_000 + "😀").encode()
    mark = f"[cut: 5,000,001 characters, SHA-256 {hashlib.sha256(whole).hexdigest()}]"
    assert mark in outcome.answer
    assert outcome.answer.endswith("x😀")


@pytest.mark.parametrize("unit", ["x", "я", "😀", "\ud800"])
def test_the_bound_counts_bytes(unit: str) -> None:
    """256 kB travel whole in any script, a byte more does not."""
    fits = unit * (MAX_ANSWER_BYTES // len(unit.encode("utf-8", "surrogatepass")))
    assert travelling(fits) == fits
    assert travelling(fits + unit) != fits + unit
