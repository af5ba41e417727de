"""The JUnit schema that Jenkins, GitLab and most others share, as tables to check a file by."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping

from tests.support.tables import kept

NUMBER = re.compile(r"\d+")
SECONDS = re.compile(r"\d+(?:\.\d+)?")
TEXT = re.compile(r"[\s\S]*")

# Per element: its children in their order, each once ("?") or often ("*"), and its attributes,
# required ones marked "!".
CHILDREN: Mapping[str, tuple[str, ...]] = kept(__file__, "children")
_NAMES = kept(__file__, "names")
_SHAPES = {
    "time": SECONDS,
    **dict.fromkeys(["tests", "tests!", "failures", "errors"], NUMBER),
}
_SHAPES |= dict.fromkeys(["disabled", "skipped", "assertions"], NUMBER)
ATTRIBUTES: Mapping[str, Mapping[str, re.Pattern[str]]] = {
    element: {name: _SHAPES.get(name, TEXT) for name in names.split()}
    for element, names in _NAMES.items()
}
HOLD_TEXT = ("error", "failure", "system-out")


def violations(text: str) -> list[str]:
    """Return what the schema does not allow in a file, nothing where it is valid."""
    root = ET.fromstring(text.encode())
    return [
        *([] if root.tag == "testsuites" else [f"the root is {root.tag}"]),
        *_element(root),
    ]


def _element(element: ET.Element) -> Iterator[str]:
    if element.tag not in CHILDREN:
        yield f"<{element.tag}> is not known"
        return
    known = {name.rstrip("!"): shape for name, shape in ATTRIBUTES[element.tag].items()}
    for name, value in element.attrib.items():
        if name not in known or not known[name].fullmatch(value):
            yield f"<{element.tag} {name}={value!r}>"
    for name in ATTRIBUTES[element.tag]:
        if name.endswith("!") and name[:-1] not in element.attrib:
            yield f"<{element.tag}> lacks {name[:-1]}"
    letters = " ".join(child.tag for child in element) + (" " if len(element) else "")
    shape = "".join(f"(?:{one[:-1]} ){one[-1]}" for one in CHILDREN[element.tag])
    if not re.fullmatch(shape, letters):
        yield f"<{element.tag}> holds {letters}"
    if element.tag not in HOLD_TEXT and (element.text or "").strip():
        yield f"<{element.tag}> holds text"
    for child in element:
        yield from _element(child)
