"""The page on the verdict names a test beside each way to exit 0 that is closed: it exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "verdict.md"
HEADING = "### What may not move a run to 0"


def rows() -> list[str]:
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(HEADING)
    section, _, _ = rest.partition("\n## ")
    table = [line for line in section.splitlines() if line.startswith("| ")]
    return table[2:]


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(
        node.name for node in tree.body if isinstance(node, ast.FunctionDef)
    )


def named_tests(row: str) -> list[tuple[str, str]]:
    return re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", row)


def test_the_table_has_rows() -> None:
    assert len(rows()) >= 20


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.split("|")[1].strip()[:50])
def test_each_guarantee_names_tests_that_exist(row: str) -> None:
    named = named_tests(row)
    assert named
    for path, test in named:
        assert test in names_in(path), f"{path} has no {test}"
