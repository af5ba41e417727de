"""Which test shows each row of the fault matrix, and each fault of an independent trial.

F1 to F29, R1 to R12: the test is there, names its row, and can fail.
"""

import ast
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
MATRIX: dict[str, list[str]] = yaml.safe_load(
    Path(__file__).with_name("matrix.yaml").read_text(encoding="utf-8")
)


def function(node_id: str) -> ast.FunctionDef:
    """Return a test. Raises KeyError where there is none."""
    path, _, name = node_id.partition("::")
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    tests = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return tests[name]


def can_fail(test: ast.FunctionDef) -> bool:
    """Return whether a test asserts something, itself or by a helper that says so in its name."""
    calls = (node.func for node in ast.walk(test) if isinstance(node, ast.Call))
    names = (ast.unparse(call).rpartition(".")[2] for call in calls)
    helped = any(name.startswith(("assert", "check", "raises", "fnmatch")) for name in names)
    return helped or any(isinstance(node, ast.Assert) for node in ast.walk(test))


def test_every_row_is_in_the_table_once() -> None:
    """Each row is shown by a test."""
    assert MATRIX.keys() == {f"F{n}" for n in range(1, 30)} | {f"R{n}" for n in range(1, 13)}


@pytest.mark.parametrize("row", MATRIX)
def test_a_row_has_its_tests(row: str) -> None:
    """Each test named here exists and says in its docstring which row it shows."""
    for node_id in MATRIX[row]:
        test = function(node_id)
        said = (ast.get_docstring(test) or "").replace("(", " ").replace(")", " ").replace(",", " ")
        assert row in said.replace(".", " ").replace(":", " ").split(), node_id
        assert can_fail(test), node_id
