"""The walls of the house: who may import whom, what a worker loads, and how large things get."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("evaluators", "cases", "reports")
FORBIDDEN = {"evaluators": {"cases", "reports"}, "cases": {"reports"}, "reports": set[str]()}
HEAVY = ("anthropic", "deepeval", "numpy", "openai", "pandas", "scipy", "statsmodels")


def modules(package: str) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((ROOT / package).rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> set[str]:
    """Return the top-level packages that a module imports anywhere."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_point_one_way(package: str) -> None:
    """evaluators know nothing of cases, and neither knows reports."""
    wrong = {
        name: found
        for name, tree in modules(package)
        if (found := imported(tree) & FORBIDDEN[package])
    }
    assert wrong == {}


def test_only_the_plugin_and_the_test_modules_know_pytest() -> None:
    """Everything else can be used, and tested, without pytest."""
    users = {
        name
        for package in PACKAGES
        for name, tree in modules(package)
        if imported(tree) & {"pytest", "_pytest", "xdist"}
    }
    allowed = {
        name
        for name in users
        if name.startswith("reports/plugin/") or Path(name).name.startswith("test_")
    }
    assert users == allowed


def test_deepeval_has_one_door() -> None:
    """deepeval is imported in one module at most, because its import has side effects."""
    users = [
        name
        for package in PACKAGES
        for name, tree in modules(package)
        if "deepeval" in imported(tree)
    ]
    assert set(users) <= {"evaluators/judges/metric.py"}


def test_no_product_file_is_longer_than_300_lines() -> None:
    """A file that grows past 300 lines holds more than one thought."""
    long = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if path.read_text(encoding="utf-8").count("\n") > 300
    }
    assert long == set()


def test_loading_the_plugin_loads_nothing_heavy() -> None:
    """A session without datasets pays for no SDK and no statistics."""
    code = "import reports.plugin, sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert set(json.loads(done.stdout)).isdisjoint(HEAVY)
