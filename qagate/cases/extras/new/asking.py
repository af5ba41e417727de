"""Questions to a person at a terminal, each with what is said where nobody can be asked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from qagate.evaluators.core import UsageError
from qagate.evaluators.output import say


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Asks a person; where there is nobody, a default answers or the command ends."""

    answers: TextIO | None
    """Where a person types; None where there is nobody."""
    out: TextIO

    def tell(self, *lines: str) -> None:
        """Show lines."""
        say(self.out, *lines)

    def ask(
        self,
        question: str,
        *,
        otherwise: str,
        check: Callable[[str], object],
        default: str | None = None,
    ) -> str:
        """Return an answer that passes ``check``, which raises UsageError for a wrong one.

        An empty line stands for the default. Where there is nobody the default is the answer.
        Raises UsageError with ``otherwise`` where there is neither, and at the end of the input.
        """
        if self.answers is None:
            if default is None:
                raise UsageError(otherwise)
            check(default)
            return default
        while True:
            shown_default = f" [{default}]" if default else ""
            self.tell(f"{question}{shown_default}")
            line = self.answers.readline()
            if not line:
                raise UsageError(f"no answer to {question!r}; nothing is written")
            answer = line.strip()
            if not answer and default is not None:
                answer = default
            if not answer:
                continue
            try:
                check(answer)
            except UsageError as error:
                self.tell(f"  {error}")
                continue
            return answer

    def choose(
        self,
        question: str,
        choices: Mapping[str, str],
        *,
        otherwise: str,
        default: str | None = None,
    ) -> str:
        """Return one of the choices, given by its number or by itself.

        ``choices`` has what is shown beside each of them.
        """

        def check(answer: str) -> None:
            _chosen(answer, list(choices))

        if self.answers is not None:
            for number, (choice, meaning) in enumerate(choices.items(), start=1):
                self.tell(f"  {number}  {choice}: {meaning}")
        answer = self.ask(question, otherwise=otherwise, check=check, default=default)
        return _chosen(answer, list(choices))

    def agree(
        self, question: str, *, otherwise: str, default: bool | None = None
    ) -> bool:
        """Return whether a person says yes."""
        words = {None: None, True: "yes", False: "no"}
        answer = self.ask(
            f"{question} (yes or no)",
            otherwise=otherwise,
            check=_is_yes,
            default=words[default],
        )
        return _is_yes(answer)


def _chosen(answer: str, choices: Sequence[str]) -> str:
    """Return the choice with a number or text. Raises UsageError."""
    if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= len(choices):
        return choices[int(answer) - 1]
    for choice in choices:
        if choice.casefold() == answer.casefold():
            return choice
    raise UsageError(f"type a number from 1 to {len(choices)}")


def _is_yes(answer: str) -> bool:
    """Return whether an answer is yes; raises UsageError unless it is yes or no."""
    word = answer.casefold()
    if word in ("y", "yes"):
        return True
    if word in ("n", "no"):
        return False
    raise UsageError("type yes or no")
