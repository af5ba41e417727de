"""Every reader of a user's file tells what is wrong with it, and where, in one line."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from cases.config import load_dataset
from cases.gates_file import load_gates, with_gates
from cases.loading import load_cases
from evaluators.core import UsageError
from tests.support.declaring import GRADED
from tests.support.loading import made

MB = 1024 * 1024
LONG = "a value may have 1,048,576 characters; shorten it or drop the row"
TABLE = Path(__file__).with_name("wrong_files.yaml")
MADE = [  # longer than a table holds
    ("graded.csv", 'metadata,problem,answer\n"' + "[" * 9000 + '",q,a\n', "not a Python literal"),
    ("graded.csv", 'metadata,problem,answer\n"' + "-" * 9000 + '1",q,a\n', "not a Python literal"),
    (
        "graded.csv",
        "metadata,problem,answer\n\"{'a': '" + "x" * 200_000 + "'}\",q,a\n",
        "200,009 characters; at most 200,000 are read",
    ),
    ("graded.jsonl", '{"q": ' + "[" * 60 + "]" * 60 + "}", "nested deeper than 40 levels"),
    ("graded.jsonl", '{"q": ' + "[" * 100_000, "row 1: not valid JSON: nested deeper than 40"),
    ("graded.json", "[" * 100_000, "row 1: not valid JSON: nested deeper"),
    ("graded.csv", "question,answer\nq?," + "x" * (MB + 2), f"row 1: not valid CSV: {LONG}"),
    ("graded.json", '[{"question": "' + "x" * (MB + 1) + '"}]', f"1: 1,048,577 characters; {LONG}"),
    ("graded.jsonl", '{"answers": ["' + "x" * MB + '", "' + "y" * MB + '"]}', "2,097,152 charac"),
]


def wrong_files() -> Iterator[Any]:
    """Yield group, text and part of the line of each wrong file."""
    table = cast("dict[str, Any]", yaml.safe_load(TABLE.read_text(encoding="utf-8")))
    texts = table.pop("texts")
    listed = [(group, *row) for group, rows in table.items() for row in rows]
    for number, (group, text, said) in enumerate([*listed, *MADE]):
        whole = re.sub("<([A-Z]+)>", lambda name: texts[name[1]], text)
        yield pytest.param(group, whole, said, id=f"{group}-{number}")


def read_gates(path: Path) -> None:
    gates = load_gates(path)
    dataset = path.with_name("dataset.yaml")
    dataset.write_text(GRADED, encoding="utf-8")
    with_gates(load_dataset(dataset), gates)


READERS: dict[str, Callable[[Path], object]] = {
    "dataset.yaml": load_dataset,
    "gates.yaml": read_gates,
}


@pytest.mark.parametrize(("group", "text", "said"), list(wrong_files()))
def test_a_wrong_file_is_one_line(tmp_path: Path, group: str, text: str, said: str) -> None:
    """The line names the file, says what is wrong, and shows no secret; nothing is executed.

    Values of every format are bounded (S13).
    """
    path = tmp_path / "facts" / group
    path.parent.mkdir()
    path.write_bytes(text.encode())
    kind = group.partition(".")[0]
    read = READERS.get(group) or (lambda file: load_cases(made(file, kind)))
    with pytest.raises(UsageError) as caught:
        read(path)
    message = str(caught.value)
    assert f"{path}" in message
    assert said in message
    assert "\n" not in message
    assert "sk-test" not in message
