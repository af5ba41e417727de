"""A text that says one thing over and over costs no more than its length: every reader is linear.

CPU seconds of this process, so that a busy machine changes nothing; a quadratic reader of these
texts needs ten to a hundred times the bound.
"""

import ast
import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from pydantic import BaseModel

import cases
import evaluators
import reports
from cases.builder.sampling import clean
from evaluators.core import Case, Reply
from evaluators.judges.lexical.judge import grade
from evaluators.judges.metric import read_text
from evaluators.judges.offline import rate
from evaluators.rubric import encode
from evaluators.text import mask, one_line
from tests.support.tables import tabled

LENGTH = 16_000  # characters
SECONDS = 1.0  # a rule that takes quadratic time needs half a minute
UNITS = (
    " ", "\n", "\t ", ".", ". ", " ,", "(", "( ", "()", "[1]", "[a ", "```", "```\n", "`", "\\",
    '"', "{", "[", "a", "a ", "no. ", "no, ", "I choose, ", "I think ", "not ", "Paris ", "1 ",
    "1,", "1-", "0.", "и ", "но ", "не ", "nie ", "ale ", "nem ", "de ", "Так ", "Ці ", "ﷺ",
    "\u0301", "\u200b", "e\u0301", "A1 ", "sk-", "://", "@", "eyJ",
    "Избирам, ", "Wybieram, ", "Választom, ", "Выбіраю, ", "Sofia. ", "12 May 1921 ",
)  # fmt: skip
QUESTIONS = {
    "en": "What is the capital of Bulgaria?",
    "bg": "Коя е столицата на България?",
    "pl": "Jaka jest stolica Bułgarii?",
    "hu": "Mi Bulgária fővárosa?",
    "be": "Якая сталіца Балгарыі?",
    "cs": "Jaké je hlavní město Bulharska?",
}
GOLDS = {"name": ("Sofia",), "date": ("12 May 1921", "1921"), "many": ("Paris", *"ABCDEFGHIJKLM")}


class Scored(BaseModel):
    """What one of deepeval's metrics asks for."""

    score: float


READERS: dict[str, Callable[[str], object]] = {
    "paragraphs": clean,
    "deepeval": lambda text: read_text(Scored, Reply(text=text)),
    "fence": lambda text: read_text(Scored, Reply(text=f"```{text}x")),
    "mask": mask,
    "line": one_line,
    "slot": encode,
}


@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_time_in_proportion(name: str) -> None:
    """No repeated unit makes 16,000 characters cost a second."""
    assert slow_units(READERS[name]) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "golds"), [*((one, "many") for one in QUESTIONS), ("en", "name"), ("be", "date")]
)
def test_rules_take_time_in_proportion(language: str, golds: str) -> None:
    """Neither the lexical judge nor its rater needs a second for 16,000 characters (S3)."""
    question = QUESTIONS[language]
    case = Case(
        id="q", dataset="d", language=language, row=1, question=question, golds=GOLDS[golds]
    )
    assert slow_units(lambda answer: grade(case, answer)) == {}
    assert slow_units(lambda answer: rate(case, answer)) == {}


def test_the_limit_holds_for_what_is_read() -> None:
    """One character may be eighteen once it is in its compatible form: they are what counts."""
    case = Case(id="q", dataset="d", language="en", row=1, question="Who?", golds=("Sofia",))
    start = time.process_time()
    verdict = grade(case, "Sofia. " + "ﷺ" * LENGTH)
    assert time.process_time() - start < SECONDS
    assert not verdict.sure


def slow_units(read: Callable[[str], object]) -> dict[str, float]:
    """Return the CPU seconds that texts of one repeated unit took, where they are too many."""
    read("warm")
    slow = {}
    for unit in UNITS:
        text = (unit * (LENGTH // len(unit) + 1))[:LENGTH]
        start = time.process_time()
        read(text)
        slow[unit] = time.process_time() - start
    return {unit: spent for unit, spent in slow.items() if spent > SECONDS}


# Patterns


def modules() -> Iterator[Any]:
    """Yield every module of the product."""
    for package in (cases, evaluators, reports):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith(".__main__") and ".test_" not in found.name:
                yield importlib.import_module(found.name)


def written_patterns(module: Any) -> Iterator[str]:
    """Yield the patterns that a module's functions give to ``re`` as they stand."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and ast.unparse(called.value) == "re":
            first = node.args[0]  # type: ignore[attr-defined]
            if isinstance(first, ast.Constant):
                yield str(first.value)


REPEATS = {"MAX_REPEAT", "MIN_REPEAT"}
PARTS: dict[str, Callable[[Any], list[Any]]] = {
    **dict.fromkeys([*REPEATS, "POSSESSIVE_REPEAT"], lambda value: [value[2]]),
    **dict.fromkeys(["ASSERT", "ASSERT_NOT"], lambda value: [value[1]]),
    "SUBPATTERN": lambda value: [value[3]],
    "BRANCH": lambda value: value[1],
    "ATOMIC_GROUP": lambda value: [value],
}


def is_nested(parsed: Any, *, inside: bool = False) -> bool:
    """Say whether something repeated without bound holds what is repeated without bound.

    What is atomic or possessive is never tried again, and a look-around is a pattern of its own.
    """
    for name, value in parsed:
        kind = str(name)
        repeated = kind in REPEATS and value[1] is _parser.MAXREPEAT
        if repeated and inside:
            return True
        kept = kind in REPEATS or kind in {"SUBPATTERN", "BRANCH"}
        parts = PARTS[kind](value) if kind in PARTS else []
        if any(is_nested(part, inside=kept and (inside or repeated)) for part in parts):
            return True
    return False


@tabled("pattern", "nested")
def test_a_nested_repetition_is_seen(pattern: str, nested: bool) -> None:
    """The check knows what it is to find."""
    assert is_nested(_parser.parse(pattern)) is nested


@pytest.mark.slow
def test_no_pattern_repeats_a_repetition() -> None:
    """No regular expression of the product can be made to try exponentially many ways (C5)."""
    patterns = {}
    for module in modules():
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                patterns[f"{module.__name__}.{name}"] = value.pattern
        for number, text in enumerate(written_patterns(module)):
            patterns[f"{module.__name__} {number}"] = text
    assert len(patterns) > 100
    assert {name for name, text in patterns.items() if is_nested(_parser.parse(text))} == set()
