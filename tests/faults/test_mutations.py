"""Input files that are damaged at random: read rightly, or refused in one line with exit 4."""

import hashlib
import json
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cases.config import load_dataset
from cases.gates_file import load_gates
from cases.loading import load_cases
from cases.review.adjudications import load_adjudications
from cases.review.reviews import load_issued, read_sheets
from cases.review.sheet import load_criteria
from evaluators.core import UsageError
from evaluators.models.catalogue import load_catalogue
from evaluators.rubric import load_prompt, load_rubric
from evaluators.text import harmless
from reports.__main__ import main
from reports.review.ratings import load_ratings
from tests.faults.test_hostile_runs import FORGED
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of, written

FEW, MANY = 25, 300
GATES_LINE = "x\nGATES PASS (9 of 9): exit 0"
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    10**30,
    0.5,
    "",
    FORGED,
    GATES_LINE,
    "x" * 9,
    [],
    {},
    [None],
    {"a": None},
    ["a"],
)
PIECES = ("\0", "\n", '"', "'", ",", ";", ": ", "- ", "{", "[", "]", "}", "\ud800", FORGED, "1e999")


def mutated_value(value: Any, random_: random.Random) -> Any:
    """Return JSON data with one place changed, taken out or doubled."""
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
        return [*value[:place], mutated_value(value[place], random_), *value[place + 1 :]]
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


RUN_COMMANDS: Mapping[str, tuple[str, ...]] = {
    "render": ("render", "RUN", "--to", "OUT"),
    "gate": ("gate", "RUN", "--to", "OUT"),
    "merge": ("merge", "RUN", "--to", "OUT"),
    "compare": ("compare", "OLD", "RUN"),
    "list": ("list",),
}


def check_run(folder: Path, seed: int, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Mutate a run by value, its checksum made anew, and let a command read it."""
    random_ = random.Random(seed)
    run, old = folder / "run", folder / "old"
    if not old.exists():
        shape = facts_dataset(graded_slice("en"))
        written(run_of(answered("cicn" * 3), shape), old)
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
    command = random_.choice(list(RUN_COMMANDS))
    places = {"RUN": run, "OLD": old, "OUT": folder / "out"}
    code = main([str(places.get(word, word)) for word in RUN_COMMANDS[command]])
    out, err = capsys.readouterr()
    assert code in (0, 1, 4, 6)
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
    "review.csv": (OWN, lambda path: read_sheets([path])),
    "review.json": (OWN, lambda path: read_sheets([path])),
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
        assert str(error)


def seeds(what: str) -> list[Any]:
    """Return the seeds of one kind of file: few in the fast tests, all in the slow ones."""
    few, rest = range(FEW), range(FEW, MANY)
    return [
        pytest.param(what, few, id=f"{what}-few"),
        pytest.param(what, rest, id=f"{what}-many", marks=pytest.mark.slow),
    ]


@pytest.mark.parametrize(
    ("what", "some"), [one for what in ("run.json", "records.jsonl") for one in seeds(what)]
)
def test_a_run_that_is_damaged_is_read_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str, some: range
) -> None:
    """Every command: an exit code of its own, one line for a 4, no line that steers a log (S5)."""
    for seed in some:
        check_run(tmp_path, seed, what, capsys)


@pytest.mark.parametrize(("name", "some"), [one for name in FILES for one in seeds(name)])
def test_a_file_that_is_damaged_is_read_or_refused(tmp_path: Path, name: str, some: range) -> None:
    """Nothing but a UsageError comes out of a loader, whatever the file holds."""
    for seed in some:
        check_file(tmp_path, seed, name)
