"""Labels by single keys in a terminal, with the words and the goals of the page."""

import sys
from collections.abc import Callable, Iterator, MutableMapping
from typing import TextIO

from qagate.cases.extras.review.goals import GoalProgress, best_stratum, progress_of
from qagate.cases.extras.review.sheet import Sheet, SheetItem, texts_in, visible
from qagate.evaluators.output import say

STOP = ("q", "", "\x04")
"""``q``, the end of the input, or Ctrl-D."""
BACK = ("b", "\x7f", "\x08")
"""``b``, or a key that deletes."""
RULES = "?"
RULE = "─" * 60

Verdicts = MutableMapping[str, str]
"""What a person said, by the id of the item."""


def read_key(stream: TextIO) -> str:
    """Return the next key: of a terminal at once, else the next character, empty at the end."""
    if not stream.isatty():
        return stream.read(1)
    try:
        import termios  # noqa: PLC0415  # not on Windows
        import tty  # noqa: PLC0415
    except ImportError:
        return stream.readline()[:1]
    before = termios.tcgetattr(stream)
    try:
        tty.setcbreak(stream, termios.TCSANOW)  # keeps what was typed ahead
        return stream.read(1)
    finally:
        termios.tcsetattr(stream, termios.TCSADRAIN, before)


class TerminalLabels:
    """A person who labels the items of a sheet."""

    def __init__(self, sheet: Sheet, verdicts: Verdicts) -> None:
        """Begin where these verdicts, which are added to, leave off."""
        self.sheet = sheet
        self.verdicts = verdicts
        self._trail: list[str] = []
        """The items that got a verdict here, the last one last."""

    def run(
        self, keys: Callable[[], str], out: TextIO, save: Callable[[], None]
    ) -> None:
        """Ask for verdicts until there are enough or the person stops; ``save`` after each one."""
        while (item := self.next_item()) is not None:
            say(out, *self._screen(item))
            key = self._answer(item, keys, out)
            if key in STOP:
                return
            save()
        say(out, "", self._words_of(self.sheet.items[-1])["labels_finished"])

    def next_item(self) -> SheetItem | None:
        """Return the item to label next; None where every goal is reached, or nothing is left."""
        spare: list[SheetItem] = []
        for item in self.sheet.items:
            if item.id in self.verdicts:
                continue
            if item.drawn is None or not item.drawn.is_spare:
                return item
            spare.append(item)
        for part, goals in self.sheet.goals.items():
            items = [item for item in spare if item.drawn and item.drawn.part == part]
            strata = dict.fromkeys(item.drawn.stratum for item in items if item.drawn)
            stratum = best_stratum(goals, self._labelled(part), list(strata))
            for item in items:
                if item.drawn and item.drawn.stratum == stratum:
                    return item
        return None

    def progress(self, part: str) -> GoalProgress:
        """Return how far the goals of a slice are reached."""
        verdicts = [verdict for _, verdict in self._labelled(part)]
        return progress_of(self.sheet.goals[part], verdicts)

    def _labelled(self, part: str) -> list[tuple[int, str]]:
        return [
            (item.drawn.stratum, self.verdicts[item.id])
            for item in self.sheet.items
            if item.drawn and item.drawn.part == part and item.id in self.verdicts
        ]

    def _answer(self, item: SheetItem, keys: Callable[[], str], out: TextIO) -> str:
        """Read keys until one gives a verdict, takes the last one back, or stops; return it."""
        (question,) = item.questions
        verdict_of = {key: verdict for verdict, key in question.keys.items()}
        while True:
            key = keys().lower()
            if key in STOP:
                return key
            if key in BACK and self._trail:
                del self.verdicts[self._trail.pop()]
                return key
            if key == RULES:
                rules = texts_in(item.language)["rules"].get(question.kind, "")
                say(out, "", *visible(rules or item.rubric).split("\n"))
            if key in verdict_of:
                self.verdicts[item.id] = verdict_of[key]
                self._trail.append(item.id)
                return key

    def _screen(self, item: SheetItem) -> Iterator[str]:
        """Yield the lines of an item: how far one is, its texts, the keys."""
        texts = texts_in(item.language)
        yield ""
        yield RULE
        if item.drawn:
            yield from self._progress_lines(item)
        for title, text in item.fields.items():
            yield ""
            yield texts["titles"].get(title, visible(title))
            for line in visible(text).split("\n"):
                yield f"  {line}"
        (question,) = item.questions
        choices = [
            f"[{key}] {texts['verdicts'].get(verdict, verdict)}"
            for verdict, key in question.keys.items()
        ]
        yield ""
        yield "  ".join(choices)
        yield texts["form"]["terminal_keys"]

    def _progress_lines(self, item: SheetItem) -> Iterator[str]:
        assert item.drawn
        words = self._words_of(item)
        labels = texts_in(item.language)["verdicts"]
        progress = self.progress(item.drawn.part)
        missing = [
            f"{count} × {labels.get(name, name)}"
            for name, count in progress.lacking.items()
        ]
        text = words["labels"] if missing else words["labels_enough"]
        yield text.format(
            done=progress.done, wanted=progress.wanted, missing=", ".join(missing)
        )

    def _words_of(self, item: SheetItem) -> dict[str, str]:
        return dict(texts_in(item.language)["form"])


def keys_of(stream: TextIO | None = None) -> Callable[[], str]:
    """Return what reads the next key of a stream, by default of this process's input."""
    source = stream or sys.stdin
    return lambda: read_key(source)
