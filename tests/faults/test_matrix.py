"""Which test shows each row of the fault matrix, and each fault of an independent trial.

F1 to F29, R1 to R12: the test is there, names its row, and can fail.
"""

import ast
import re
from pathlib import Path

import yaml


def can_fail(test: ast.FunctionDef) -> bool:
    """Return whether a test asserts something, itself or by a helper that says so in its name."""
    calls = (node.func for node in ast.walk(test) if isinstance(node, ast.Call))
    names = (ast.unparse(call).rpartition(".")[2] for call in calls)
    helped = any(
        name.startswith(("assert", "check", "raises", "fnmatch")) for name in names
    )
    return helped or any(isinstance(node, ast.Assert) for node in ast.walk(test))


def test_every_row_has_its_tests() -> None:
    """Each test named in the table exists, says in its docstring which row it shows, can fail."""
    here = Path(__file__)
    matrix: dict[str, list[str]] = yaml.safe_load(
        here.with_name("matrix.yaml").read_text()
    )
    assert matrix.keys() == {f"F{n}" for n in range(1, 30)} | {
        f"R{n}" for n in range(1, 13)
    }
    for row, node_ids in matrix.items():
        for node_id in node_ids:
            path, _, name = node_id.partition("::")
            tree = ast.parse((here.parents[1] / path).read_text(encoding="utf-8"))
            tests = {
                one.name: one
                for one in ast.walk(tree)
                if isinstance(one, ast.FunctionDef)
            }
            said = re.findall(r"\w+", ast.get_docstring(tests[name]) or "")
            assert row in said and can_fail(tests[name]), f"{row}: {node_id}"
