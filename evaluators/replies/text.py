"""A reply's text: without thoughts, markup and invisible marks; and what says nothing at all."""

import re
import unicodedata
from dataclasses import dataclass

from evaluators.text import without_invisible

COMPLETE = frozenset(
    ("stop", "tool_calls", "tool_use", "function_call", "end_turn", "stop_sequence", "eos")
)
"""The finish words of a reply that nobody cut; any other word leaves doubt."""
_THOUGHTS = "think|thinking|thought|thoughts|reasoning|analysis|reflection|scratchpad"
_THOUGHT_TAG = re.compile(rf"(</?(?:{_THOUGHTS})>)", re.IGNORECASE)
_WIDE = re.compile("[\uff01-\uff5e\U0001d400-\U0001d7ff]+")
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[\w+-]*[ \t]*$", re.MULTILINE)
_CHAT_TOKEN = re.compile(r"<\|\w{1,30}\|>|</?s>")
_LATEX = re.compile(r"\\(?:boxed|text|textbf|mathrm|mathbf)\b")
_TAGS = "grade|verdict|evaluation|final|answer|output|label|result|b|i|em|strong|p|br|code|span|div"
_TAG = re.compile(rf"</?(?:{_TAGS}) ?/?>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Invalid:
    """A reply without a single reading."""

    reason: str
    """Why, in a few words."""


def unfinished(finish: str) -> Invalid | None:
    """Return why a reply may be cut or filtered; None for a complete one."""
    return None if finish in COMPLETE else Invalid(f"the reply ended with {finish[:40]!r}")


def spoken(text: str) -> str | None:
    """Return what is outside ``<think>`` blocks; None if a block is never closed.

    A closing tag without an opening one ends thoughts that began in the chat template.
    """
    depth = 0
    parts: list[str] = []
    for index, part in enumerate(_THOUGHT_TAG.split(text)):
        if index % 2 == 0:  # between the tags
            parts += [part] if depth == 0 else []
        elif not part.startswith("</"):
            depth += 1
        elif depth == 0:
            parts = []
        else:
            depth -= 1
    return None if depth else "".join(parts)


def plain(text: str) -> str:
    """Return a text composed, in plain width, without invisible marks, its line ends alike."""
    text = without_invisible(text)
    text = _WIDE.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    return _LINE_END.sub("\n", unicodedata.normalize("NFC", text))


def without_markup(text: str) -> str:
    """Return a text without code fences, tags, chat tokens and LaTeX frames.

    Emphasis and quotes stay, as they may stand around a label.
    """
    text = _FENCE.sub("", _CHAT_TOKEN.sub("", text))
    return _TAG.sub(" ", _LATEX.sub("", text)).strip()
