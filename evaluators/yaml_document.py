"""A YAML file read with PyYAML into the values of ``strict_yaml``, which says what is refused."""

from pathlib import Path

import yaml

from evaluators.core import UsageError
from evaluators.files import read_text
from evaluators.strict_yaml import Map, Seq

MAX_DEPTH = 40
MAX_BYTES = 64 * 1024 * 1024
NULLS = frozenset({"~", "null", "Null", "NULL"})


def read(path: Path) -> object:
    """Return what ``strict_yaml.load`` promises."""
    text = read_text(path, MAX_BYTES)
    try:
        _refuse_surprises(path, text)
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        msg = f"{path}:{_line(error.problem_mark)}: not valid YAML: {error.problem}"
        raise UsageError(msg) from None
    except yaml.YAMLError as error:
        msg = f"{path}: not valid YAML: {str(error).splitlines()[0]}"
        raise UsageError(msg) from None
    return "" if node is None else _build(path, node)


def _line(mark: "yaml.error.Mark | yaml._yaml.Mark | None") -> int:
    return mark.line + 1 if mark else 1


def _refuse_surprises(path: Path, text: str) -> None:
    """Look at the events alone: nothing is built before aliases, tags and depth are known."""
    depth = 0
    documents = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        documents += isinstance(event, yaml.DocumentStartEvent)
        problem = _surprise(event)
        if depth > MAX_DEPTH:
            problem = f"nested deeper than {MAX_DEPTH} levels"
        elif documents > 1:
            problem = "a second document; one file holds one"
        if problem:
            msg = f"{path}:{_line(event.start_mark)}: {problem}"
            raise UsageError(msg)


def _surprise(event: yaml.Event) -> str:
    if isinstance(event, yaml.AliasEvent):
        return "aliases (*name) are not allowed; write the value out"
    tag = getattr(event, "tag", None)  # only events that begin a node have one
    return "" if tag in (None, "!") else f"tag {tag!r} is not allowed; write a plain value"


def _build(path: Path, node: yaml.Node) -> object:
    if isinstance(node, yaml.SequenceNode):
        items = Seq(_line(node.start_mark))
        for child in node.value:
            items.append(_build(path, child))
            items.lines.append(_line(child.start_mark))
        return items
    if isinstance(node, yaml.MappingNode):
        return _build_map(path, node)
    is_plain = isinstance(node, yaml.ScalarNode) and not node.style
    return "" if is_plain and node.value in NULLS else str(node.value)


def _build_map(path: Path, node: yaml.MappingNode) -> Map:
    mapping = Map(_line(node.start_mark))
    for key_node, value_node in node.value:
        line = _line(key_node.start_mark)
        if not isinstance(key_node, yaml.ScalarNode):
            msg = f"{path}:{line}: a key must be plain text"
            raise UsageError(msg)
        key = str(key_node.value)
        if key in mapping:
            msg = f"{path}:{line}: key {key!r} stands twice; keep one"
            raise UsageError(msg)
        mapping[key] = _build(path, value_node)
        mapping.lines[key] = line
    return mapping
