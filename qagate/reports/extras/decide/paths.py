"""The place of a value in a row of any table or JSON: ``output.choices.text``.

Dots go down, and the longest key that fits is taken first, as keys may hold dots themselves:
``outputs.judge.score`` is one key of azure-ai-evaluation, and three levels elsewhere.
``*`` stands for any key, or for a part of one (``*/score``). ``[field]`` goes through the elements
of a list. Both give a name to what they find: the key, or the element's value of that field.
``[0]`` and ``[-1]`` are one element. ``a|b`` is the first of the two that is there.

A text that holds JSON, or a dictionary as Python prints it, is opened where a path goes on into it.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

NAME_JOINT = "."
"""Between the parts of a name, where a path has several ``*`` or ``[field]``."""
MAX_OPENED_CHARACTERS = 1_000_000
"""Of a text that is read as JSON because a path goes on into it."""
MAX_OPENED_BRACKETS = 100_000

_STEP = re.compile(r"\.?(?:\[(?P<field>[^\]]*)\]|(?P<key>[^.\[\]]+))")


@dataclass(frozen=True, slots=True)
class _Step:
    """One step down: by keys, or into a list."""

    keys: tuple[str, ...] = ()
    """The keys between two brackets, from the top; some may be joined by dots in one key."""
    field: str = ""
    """What names an element of a list; a number for one element."""


@dataclass(frozen=True, slots=True)
class FieldPath:
    """The place of a value, or of several values with names."""

    text: str
    alternatives: tuple[tuple[_Step, ...], ...]
    plain: tuple[tuple[str, ...] | None, ...]
    """The keys of each alternative that is nothing but keys; None for another one."""

    def find(self, row: object) -> list[tuple[str, Any]]:
        """Return what is there, each with its name; the first alternative that has anything."""
        whole_key = self._whole_key(row)
        if whole_key is not None:
            return [("", whole_key)]
        for steps, keys in zip(self.alternatives, self.plain, strict=True):
            if keys is not None:
                value = _value_below(row, keys)
                if value is not None:
                    return [("", value)]
                continue
            found = list(_walk(row, steps))
            if any(value is not None for _, value in found):
                return found
        return []

    def value(self, row: object) -> Any:
        """Return the first value that is there; None where there is none."""
        whole_key = self._whole_key(row)
        if whole_key is not None:
            return whole_key
        for steps, keys in zip(self.alternatives, self.plain, strict=True):
            if keys is not None:
                value = _value_below(row, keys)
                if value is not None:
                    return value
                continue
            for _, value in _walk(row, steps):
                if value is not None:
                    return value
        return None

    def _whole_key(self, row: object) -> Any:
        """Return what stands under a key that is spelt like this path."""
        if isinstance(row, Mapping):
            return row.get(self.text)
        return None


@cache
def field_path(text: str) -> FieldPath:
    """Return the path of a text. Raises ValueError for one that is none."""
    alternatives = []
    for alternative in text.split("|"):
        alternatives.append(tuple(_steps(alternative.strip())))
    return FieldPath(
        text=text,
        alternatives=tuple(alternatives),
        plain=tuple(map(_plain_keys, alternatives)),
    )


def _plain_keys(steps: Sequence[_Step]) -> tuple[str, ...] | None:
    if len(steps) != 1 or not steps[0].keys or any("*" in key for key in steps[0].keys):
        return None
    return steps[0].keys


def _steps(text: str) -> Iterator[_Step]:
    keys: list[str] = []
    end = 0
    for match in _STEP.finditer(text):
        if match.start() != end:
            break
        end = match.end()
        if match["key"] is not None:
            keys.append(match["key"])
            continue
        if keys:
            yield _Step(keys=tuple(keys))
            keys = []
        yield _Step(field=match["field"])
    if end != len(text) or not text:
        raise ValueError(
            f"{text!r} is no path; want names with dots, such as output.text, "
            "* for any key, [field] for the elements of a list"
        )
    if keys:
        yield _Step(keys=tuple(keys))


def _value_below(value: object, keys: tuple[str, ...]) -> Any:
    """Return what stands under these keys; None for nothing. The fast way for plain paths."""
    for count in range(len(keys), 0, -1):
        if not isinstance(value, Mapping):
            value = _opened(value)
            if not isinstance(value, Mapping):
                return None
        key = keys[0] if count == 1 else ".".join(keys[:count])
        if key in value:
            inner = value[key]
            return inner if count == len(keys) else _value_below(inner, keys[count:])
    return None


def _walk(value: object, steps: Sequence[_Step]) -> Iterator[tuple[str, Any]]:
    if not steps:
        yield "", value
        return
    step, *others = steps
    opened = _opened(value)
    if step.keys:
        found = _below(opened, step.keys)
    else:
        found = _elements(opened, step.field)
    for name, inner in found:
        for inner_name, leaf in _walk(inner, others):
            parts = [part for part in (name, inner_name) if part]
            yield NAME_JOINT.join(parts), leaf


def _below(value: object, keys: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield what stands under these keys, by the longest key of the value that fits them."""
    if not keys:
        yield "", value
        return
    if not isinstance(value, Mapping):
        return
    longest = len(keys)
    if longest > 1 and not any(isinstance(key, str) and "." in key for key in value):
        longest = 1  # most keys have no dot, and need not be tried joined
    for count in range(longest, 0, -1):
        matches = list(_matches(value, ".".join(keys[:count])))
        for name, key in matches:
            for inner_name, leaf in _below(
                _opened_for(value[key], keys[count:]), keys[count:]
            ):
                parts = [part for part in (name, inner_name) if part]
                yield NAME_JOINT.join(parts), leaf
        if matches:
            return


def _matches(value: Mapping[str, Any], pattern: str) -> Iterator[tuple[str, str]]:
    """Yield each key that a pattern fits, after what its ``*`` stand for."""
    if "*" not in pattern:
        if pattern in value:
            yield "", pattern
        return
    for key in value:
        name = _name_in(pattern, key)
        if name is not None:
            yield name, key


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    literals = [re.escape(part) for part in pattern.split("*")]
    return re.compile("(.+)".join(literals), re.DOTALL)


def _name_in(pattern: str, key: str) -> str | None:
    """Return what the ``*`` of a pattern stand for in a key; None where it does not fit."""
    if pattern == "*":
        return key
    match = _expression(pattern).fullmatch(key)
    return None if match is None else NAME_JOINT.join(match.groups())


def _elements(value: object, field: str) -> Iterator[tuple[str, Any]]:
    """Yield the elements of a list, each with the name that its field gives it."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return
    if re.fullmatch(r"-?\d+", field):
        if -len(value) <= int(field) < len(value):
            yield "", value[int(field)]
        return
    for element in value:
        name = field_path(field).value(element) if field else None
        yield "" if name is None else str(name), element


def _opened_for(value: object, keys: Sequence[str]) -> object:
    """Return a value as a path goes on into it; as it is where the path ends."""
    return _opened(value) if keys else value


def _opened(value: object) -> object:
    """Return the list or mapping that a text holds; any other value as it is."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    brackets = value.count("[") + value.count("{")
    if len(value) > MAX_OPENED_CHARACTERS or brackets > MAX_OPENED_BRACKETS:
        return value
    for read in (json.loads, ast.literal_eval):
        try:
            return read(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return value
