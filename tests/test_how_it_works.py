"""The page on how qagate works names files, functions and rooms that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/how-it-works.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(qagate/[\w/]+\.py)(?::(\w+))?`", PAGE)))


def test_the_page_names_the_way_from_row_to_exit_code() -> None:
    assert len([name for _, name in NAMED if name]) >= 15


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_what_the_page_names_exists(path: str, name: str) -> None:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    defined = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    assert not name or name in defined


def test_every_noun_is_defined_in_one_of_the_files_of_its_row() -> None:
    rows = re.findall(r"^\| ([A-Z][\w, ]+) \| .* \| (.*) \|$", PAGE, re.MULTILINE)
    assert len(rows) >= 10
    for nouns, places in rows:
        sources = [
            (ROOT / path).read_text(encoding="utf-8")
            for path in re.findall(r"`([^`]+)`", places)
        ]
        for noun in nouns.split(", "):
            pattern = re.compile(rf"^class {noun}\b", re.MULTILINE)
            assert any(pattern.search(source) for source in sources), noun


def test_the_page_names_every_room() -> None:
    rooms = {
        folder.relative_to(ROOT / "qagate").as_posix()
        for folder in ROOT.glob("qagate/*/extras/*")
        if (folder / "__init__.py").is_file()
    }
    named = set(re.findall(r"`((?:evaluators|cases|reports)/extras/\w+)`", PAGE))
    assert named == rooms
