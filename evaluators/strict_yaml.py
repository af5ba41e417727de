"""YAML without surprises: every scalar is text; no tags, no duplicate keys, no aliases.

PyYAML's safe loader turns ``No``, ``010`` and dates into other types, keeps the last of two equal
keys without a word, and shares aliased nodes that explode in the first copy. Here the text that
stands in the file is the value, and whoever needs a number converts it and can say what was wrong.
"""

from pathlib import Path


class Map(dict[str, object]):
    """A YAML mapping that knows its line and the line of each key (counted from 1)."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}


class Seq(list[object]):
    """A YAML sequence that knows its line and the line of each entry (counted from 1)."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: list[int] = []


def load(path: Path) -> object:
    """Return the one document of a YAML file as Map, Seq and str; ``""`` for an empty file.

    A null (``~`` or ``null`` without quotes) is no value and reads as ``""``. Raises UsageError
    naming file and line for anything that is not plain YAML.
    """
    from evaluators.yaml_document import read  # noqa: PLC0415  # PyYAML: workers read no file

    return read(path)
