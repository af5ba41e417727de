"""YAML is text, mappings and lists with their lines, and nothing else."""

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluators.core import UsageError
from evaluators.strict_yaml import Map, Seq, load


def loaded(folder: Path, text: str) -> object:
    path = folder / "a.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path)


@pytest.mark.parametrize(
    "scalar", ["No", "off", "010", "1_000", "12:30", "2024-12-31", "1e5", "None"]
)
def test_scalars_are_the_text_of_the_file(tmp_path: Path, scalar: str) -> None:
    """YAML 1.1 would change the type of each of these."""
    assert loaded(tmp_path, f"a: {scalar}") == {"a": scalar}


@pytest.mark.parametrize("scalar", ["", "~", "null", "Null", "NULL"])
def test_null_is_no_value(tmp_path: Path, scalar: str) -> None:
    """A null reads as empty; in quotes it is text."""
    assert loaded(tmp_path, f"a: {scalar}") == {"a": ""}
    assert loaded(tmp_path, f"a: '{scalar}'") == {"a": scalar}


def test_lines_are_known(tmp_path: Path) -> None:
    """Mappings and lists tell the lines of their entries."""
    top = loaded(tmp_path, "a: x\nb:\n  - 1\n\n  - {c: 2}\n")
    assert isinstance(top, Map)
    assert top.lines == {"a": 1, "b": 2}
    items = top["b"]
    assert isinstance(items, Seq)
    assert (items.line, items.lines) == (3, [3, 5])


def test_empty_file_is_empty_text(tmp_path: Path) -> None:
    """A file of comments holds no document."""
    assert loaded(tmp_path, "# nothing\n") == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\na: 2\n", "a.yaml:2: key 'a' stands twice"),
        ("a: &x 1\nb: *x\n", "a.yaml:2: aliases"),
        ("a: 1\nb: !!python/object/apply:os.getcwd []\n", "a.yaml:2: tag "),
        ("a: !!binary aGk=\n", "a.yaml:1: tag "),
        ("a: 1\n---\nb: 2\n", "a.yaml:2: a second document"),
        ("? [a, b]\n: 1\n", "a.yaml:1: a key must be plain text"),
        ("a: [1\nb: 2\n", "not valid YAML"),
        ("a:\n\t- b\n", "a.yaml:2: not valid YAML"),
        ("a: \x07\n", "not valid YAML: unacceptable character"),
        ("[" * 5000, "a.yaml:1: nested deeper than 40 levels"),
        ("- " * 5000 + "a", "nested deeper than 40 levels"),
        ('a: "\\ud800"', "not valid YAML"),
    ],
)
def test_surprises_are_refused_with_their_line(tmp_path: Path, text: str, said: str) -> None:
    """Nothing is constructed, run or silently dropped."""
    with pytest.raises(UsageError) as caught:
        loaded(tmp_path, text)
    assert said in str(caught.value)


TREES = st.recursive(
    st.text("ab 0.~:'\"#-\n", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab1", min_size=1), inner),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=TREES)
def test_quoted_text_round_trips(tmp_path: Path, tree: object) -> None:
    """What is written with every scalar in quotes is read back unchanged."""
    assert loaded(tmp_path, yaml.safe_dump(tree, default_style='"', allow_unicode=True)) == tree


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text("ab:-[]{}&*!|>?,#'\"% \n\t~", max_size=40))
def test_any_text_is_read_or_refused(tmp_path: Path, text: str) -> None:
    """No text makes the loader raise anything but a UsageError."""
    try:
        loaded(tmp_path, text)
    except UsageError as problem:
        assert "a.yaml" in str(problem)
