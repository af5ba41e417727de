"""The reasons of the lexical judge, in the language of the item where its words are there."""

import ast
from pathlib import Path

import pytest
import yaml

from evaluators.judges.lexical import language_tables
from evaluators.judges.lexical.language_tables import reason_in
from evaluators.judges.lexical.lexical_judge import grade
from tests.support.scripted import make_case

FOLDER = Path(language_tables.__file__).parent
TEXTS = yaml.safe_load((FOLDER / "reasons.yaml").read_text(encoding="utf-8"))
SUBJECTS = ("the ", "every ", "all but ", "another ", "fewer ", "given and ")


def reasons_in_code() -> set[str]:
    """Return every text of the rules that reads like a reason."""
    found: set[str] = set()
    for path in FOLDER.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        found |= {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.startswith(SUBJECTS)
            and id(node) not in docstrings
        }
    return found


def test_every_reason_has_its_words_in_each_language() -> None:
    """None is forgotten, and none stands there that no rule gives."""
    assert reasons_in_code() == set(TEXTS)
    for reason, texts in TEXTS.items():
        assert set(texts) == {"bg", "pl", "hu", "be"}, reason
        assert all(texts.values()), reason


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "the answer says nothing"),
        ("bg", "отговорът не казва нищо"),
        ("be", "адказ нічога не кажа"),
        ("de", "the answer says nothing"),
    ],
)
def test_a_verdict_says_why_in_the_items_language(language: str, said: str) -> None:
    """English where there are no words of the language; what is no reason of ours stays."""
    assert grade(make_case(language=language), "").reason == said
    assert reason_in(language, "something else") == "something else"
