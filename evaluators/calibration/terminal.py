"""What a person sees while answers are judged: one line that changes, or a few plain ones."""

from collections.abc import Mapping
from typing import TextIO

from evaluators.core import Outcome

STEPS = 10  # plain lines for the whole work


def say(stream: TextIO, text: str) -> None:
    """Write a line or more; what the stream's encoding lacks is written as escapes."""
    encoding = stream.encoding or "utf-8"
    stream.write(f"{text}\n".encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


class Progress:
    """Shows how many answers are judged, how many calls failed, and what it cost so far."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = ""
        self._step = 0

    def watch(self, outcomes: Mapping[str, Outcome], planned: int) -> None:
        """Show what is new, if it is worth a line."""
        line = _line(outcomes, planned)
        if self._stream.isatty():
            if line != self._shown:
                self._stream.write(f"\r{line.ljust(len(self._shown))}")
                self._stream.flush()
        elif STEPS * len(outcomes) // max(1, planned) > self._step:
            self._step = STEPS * len(outcomes) // planned
            say(self._stream, line)
        self._shown = line

    def close(self) -> None:
        """End the line that changes."""
        if self._shown and self._stream.isatty():
            say(self._stream, "")
        self._shown = ""


def _line(outcomes: Mapping[str, Outcome], planned: int) -> str:
    ended = outcomes.values()
    errors = sum(one.state in ("error", "missing") for one in ended)
    unknown = any(one.usage.cost is None for one in ended)
    spent = "an unknown sum" if unknown else f"${sum(one.usage.spent for one in ended):.4f}"
    return f"judged {len(outcomes)} of {planned}, errors {errors}, spent {spent}"
