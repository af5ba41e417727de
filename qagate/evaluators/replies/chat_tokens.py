"""Takes tokens of a chat template out of replies, and the turns that a model writes for others.

A server whose template or stop token is wrong lets them through: ``Sofia<|im_end|>``, or a next
question that the model asks itself in the user's name. The answer is the first turn of the
assistant that says something.
"""

import re

from qagate.evaluators.replies.thoughts import joined

_ROLES = "assistant|model|user|human|system|developer|tool|ipython"
_ANSWERING = frozenset(("assistant", "model"))
_TURN = re.compile(
    r"(?:<\|(?:im_start|start_header_id|start|start_of_role)\|>|<start_of_turn>)"
    rf"[ \t]{{0,3}}(?P<role>{_ROLES})\b"
    rf"|<[|｜](?P<marked_role>{_ROLES})[|｜]>",
    re.IGNORECASE,
)
"""Opens a turn and says whose it is."""
_TOKEN = re.compile(
    r"<[|｜][\w▁-]{1,40}[|｜]>|</?(?:start_of_turn|end_of_turn|bos|eos|pad)>|\[/?INST\]"
)
_END_OF_SEQUENCE = "</s>"
_START = re.compile(r"\A(?=\s*<s>)(?:<s>|\s)+")


def without_chat_tokens(text: str) -> str:
    """Return what the assistant says in a reply; unchanged where no token stands in it."""
    answer = _first_answer(text)
    parts = _TOKEN.split(answer)
    if len(parts) > 1 or answer is not text:
        answer = joined(parts)
    return _without_sequence_marks(answer)


def _first_answer(text: str) -> str:
    """Return the assistant's first turn that is not blank, with those that follow directly."""
    turns = [*_TURN.finditer(text)]
    if not turns:
        return text
    parts = [text[: turns[0].start()]]
    ends = [turn.start() for turn in turns[1:]] + [len(text)]
    for turn, end in zip(turns, ends, strict=True):
        role = (turn["role"] or turn["marked_role"]).casefold()
        if role in _ANSWERING:
            parts.append(text[turn.end() : end])
        elif any(_TOKEN.sub("", part).strip() for part in parts):
            break
    return "\n".join(parts)


def _without_sequence_marks(text: str) -> str:
    """Return a text without ``<s>`` before and ``</s>`` behind it.

    Inside a text they are HTML for what is struck out, and stay.
    """
    inner = _START.sub("", text[: _end_of_sequence(text)])
    if "<s>" in inner or _END_OF_SEQUENCE in inner:
        return text
    return inner


def _end_of_sequence(text: str) -> int:
    """Return where the marks at a text's end begin, with the space before them.

    It is the text's length if there are none. Each step leaves one sign or mark behind, where a
    pattern would try every run of spaces from each of its places.
    """
    end = len(text)
    has_marks = False
    while end > 0:
        if text.endswith(_END_OF_SEQUENCE, 0, end):
            end -= len(_END_OF_SEQUENCE)
            has_marks = True
        elif text[end - 1].isspace():
            end -= 1
        else:
            break
    return end if has_marks else len(text)
