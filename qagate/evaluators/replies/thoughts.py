"""Takes a model's thoughts out of its replies: they are no part of what it answers.

Servers without a parser for them leave thoughts in the text, between marks that differ by model:
``<think>`` tags and their kin, ``[THINK]``, ``◁think▷``, ``<|START_THINKING|>``, or the channels
of gpt-oss. A chat template may swallow the opening mark, so a closing one alone ends a thought
too. A model may open a thought twice and close it once, so the first closing mark ends it; if
more follow, the answer stands behind the last.
"""

import re
from dataclasses import dataclass

_NAMES = "think|thinking|thought|thoughts|reasoning|analysis|reflection|scratchpad|seed:think"
_MARK = re.compile(
    rf"(?P<close></(?:{_NAMES})[ \t]*>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>"
    r"|<\|END_THINKING\|>|<\|inner_suffix\|>)"
    rf"|(?P<open><(?:{_NAMES})(?:[ \t][^<>\n]{{0,100}})?>|\[THINK\]|◁think▷"
    r"|<\|begin_of_thought\|>|<\|START_THINKING\|>|<\|inner_prefix\|>)"
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
    is_open = False
    end_of_mark = 0
    for mark in _MARK.finditer(text):
        if not is_open:
            parts.append(text[end_of_mark : mark.start()])
        end_of_mark = mark.end()
        channel = mark["channel"]
        if mark["open"]:
            is_open = True
        elif mark["close"]:
            if not is_open:  # the template swallowed the opening mark
                parts = []
            is_open = False
        else:
            is_open = channel.casefold() != _ANSWER_CHANNEL
    if end_of_mark == 0:
        return Outside(text=text, has_thoughts=False, is_open=False)
    if not is_open:
        parts.append(text[end_of_mark:])
    return Outside(text=joined(parts), has_thoughts=True, is_open=is_open)


def joined(parts: list[str]) -> str:
    """Return what is left of a text, its parts on lines of their own.

    So no two parts make a mark that the text did not have.
    """
    return "\n".join(part for part in parts if part).strip()
