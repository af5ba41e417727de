"""Takes a model's thoughts out of its replies: they are no part of what it answers.

Servers without a parser for them leave thoughts in the text, between marks that differ by model:
``<think>`` tags and their kin, ``[THINK]``, ``◁think▷``, or the channels of gpt-oss. A chat
template may swallow the opening mark, so a closing one alone ends a thought too.
"""

import re
from dataclasses import dataclass

_NAMES = "think|thinking|thought|thoughts|reasoning|analysis|reflection|scratchpad|seed:think"
_MARK = re.compile(
    rf"(?P<close></(?:{_NAMES})[ \t]*>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>)"
    rf"|(?P<open><(?:{_NAMES})(?:[ \t][^<>\n]{{0,100}})?>|\[THINK\]|◁think▷"
    r"|<\|begin_of_thought\|>)"
    r"|<\|channel\|>[ \t]{0,3}(?P<channel>\w{1,20})",
    re.IGNORECASE,
)
_ANSWER_CHANNEL = "final"
"""The channel of gpt-oss that holds the answer; all others hold thoughts and tool calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What stands outside of the thoughts in a text."""

    text: str
    has_thoughts: bool
    """Whether there was a thought, be it an empty one."""
    is_open: bool
    """Whether a thought is never closed, so that nobody knows where it would have ended."""


def outside_thoughts(text: str) -> Outside:
    """Return what stands outside of a text's thoughts; unchanged where there is none."""
    parts: list[str] = []
    depth = 0
    end_of_mark = 0
    for mark in _MARK.finditer(text):
        if depth == 0:
            parts.append(text[end_of_mark : mark.start()])
        end_of_mark = mark.end()
        channel = mark["channel"]
        if mark["open"]:
            depth += 1
        elif mark["close"]:
            if depth == 0:  # the template swallowed the opening mark
                parts = []
            depth = max(0, depth - 1)
        else:
            depth = 0 if channel.casefold() == _ANSWER_CHANNEL else 1
    if end_of_mark == 0:
        return Outside(text=text, has_thoughts=False, is_open=False)
    if depth == 0:
        parts.append(text[end_of_mark:])
    return Outside(text=joined(parts), has_thoughts=True, is_open=depth > 0)


def joined(parts: list[str]) -> str:
    """Return what is left of a text, its parts on lines of their own.

    So no two parts make a mark that the text did not have.
    """
    return "\n".join(part for part in parts if part).strip()
