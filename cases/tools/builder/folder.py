"""The work folder: one JSONL a step, and the settings that each was made with.

A step's file appears as a whole or not at all. It is written beside its place first, then its hash
is put into ``settings.json``, then it is renamed; a kill between any two of these is mended when
the folder is opened again.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from cases.problems import shown
from cases.tools.builder.items import BuildError, Item, from_row, to_row
from evaluators import strict_json
from evaluators.core import UsageError
from evaluators.files import file_hash, read_text
from evaluators.output import write_part, write_whole

SETTINGS = "settings.json"
REPORT = "report.json"
Values = Mapping[str, object]


class Folder:
    """A work folder at a path. Raises UsageError for files that are not as they were written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _writing(path):
            path.mkdir(parents=True, exist_ok=True)
        self._records = self._read_settings()
        self._recover()

    def file(self, step: str) -> Path:
        """Return where a step's rows stand."""
        return self.path / f"{step}.jsonl"

    def options(self, step: str) -> Values:
        """Return what a step was made with; empty where it was not made."""
        options = self._record(step).get("options", {})
        return options if isinstance(options, dict) else {}

    def input(self, step: str) -> str:
        """Return the hash of what a step was made from; empty where it was not made."""
        return str(self._record(step).get("input", ""))

    def output(self, step: str) -> str:
        """Return the hash of what a step made; empty where it was not made."""
        return str(self._record(step).get("output", ""))

    def made(self, step: str) -> bool:
        """Return whether a step's file is there. Raises UsageError where somebody changed it."""
        path = self.file(step)
        if not path.is_file():
            return False
        if file_hash(path) != self.output(step):
            msg = f"{path}: changed since it was made; delete it to make it again, or put it back"
            raise UsageError(msg)
        return True

    def read(self, step: str) -> list[Item]:
        """Return a step's rows in their order."""
        path = self.file(step)
        items = []
        for line, text in enumerate(read_text(path).split("\n"), 1):
            if text:
                items.append(_item(path, line, text))
        return items

    def publish(self, step: str, items: Sequence[Item], options: Values, source: str) -> None:
        """Put a step's rows in place with what they were made with and from."""
        rows = "".join(f"{json.dumps(to_row(item), ensure_ascii=False)}\n" for item in items)
        content = rows.encode("utf-8", "surrogatepass")
        with _writing(self.file(step)):
            part = write_part(self.file(step), [content])
            record = {
                "options": dict(options),
                "input": source,
                "output": hashlib.sha256(content).hexdigest(),
            }
            self._records = {**self._records, step: record}
            self.write_json(SETTINGS, self._records)
            part.replace(self.file(step))

    def write_json(self, name: str, value: object) -> None:
        """Put a JSON file in place, whole."""
        text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
        with _writing(self.path / name):
            write_whole(self.path / name, [text.encode("utf-8", "surrogatepass")])

    def _record(self, step: str) -> Values:
        record = self._records.get(step, {}) if self.file(step).is_file() else {}
        return record if isinstance(record, dict) else {}

    def _read_settings(self) -> dict[str, object]:
        path = self.path / SETTINGS
        if not path.is_file():
            return {}
        try:
            value = strict_json.loads(read_text(path))
        except ValueError as error:
            msg = f"{path}: {error}; take another --folder"
            raise UsageError(msg) from None
        if not isinstance(value, dict):
            msg = f"{path}: a mapping of steps is needed; take another --folder"
            raise UsageError(msg)
        return value

    def _recover(self) -> None:
        for part in self.path.glob(".*.jsonl.part"):
            step = part.name.removeprefix(".").removesuffix(".jsonl.part")
            record = self._records.get(step)
            announced = record.get("output") if isinstance(record, dict) else None
            with _writing(part):
                if announced == file_hash(part):
                    part.replace(self.file(step))
                else:
                    part.unlink()


def _item(path: Path, line: int, text: str) -> Item:
    try:
        return from_row(strict_json.loads(text))
    except ValueError as error:
        msg = f"{path}:{line}: {error}; got {shown(text)}; delete the file to make it again"
        raise UsageError(msg) from None


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or path
        msg = f"{where}: cannot be written ({error.strerror}); mend that and run again"
        raise BuildError(msg) from None
