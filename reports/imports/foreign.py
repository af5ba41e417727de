"""What every form of result is read into: answers with the scores that another tool gave them."""

import json
import math
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cases.labels import Scale
from evaluators.core import UsageError
from evaluators.reading import MAX_BYTES, read_text
from evaluators.text import hint

Json = Mapping[str, Any]
DECLINED = frozenset({"n", "noanswer", "not_attempted"})
LABELS: Mapping[str, float] = {
    **dict.fromkeys(("c", "correct", "pass", "passed", "true", "yes"), 1.0),
    **dict.fromkeys(("i", "incorrect", "fail", "failed", "false", "no"), 0.0),
    **dict.fromkeys(DECLINED, 0.0),
    "p": 0.5,
}
"""The words that tools write in place of a score; of inspect_ai C, I, P (partial) and N."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the command line says about how to read a result."""

    metric: str = ""
    """The scorer that decides; empty for the tool's own first."""
    slice: str = ""
    """The metadata field whose values are slices."""
    cluster: str = ""
    """The metadata field that dependent samples share."""
    scale: Scale | None = None
    """The scale of a score outside 0 to 1."""
    provider: str = ""
    """The provider or model to read, where a file holds several."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The columns of a table, by what they hold."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """One way in which a tool scored a task."""

    name: str
    version: str = ""
    """Everything that may change its scores: options, threshold, the version of the task."""
    lower_is_better: bool = False
    two_way: bool = False
    """Whether every score in both runs is 0 or 1: then gates are on the share of right answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredSample:
    """One answer. Where ``error`` says why, it has no score."""

    task: str
    id: str
    scores: Mapping[str, float | None]
    """By the name of the scorer."""
    repeat: int = 1
    """Which time the item was asked, from 1."""
    question: str = ""
    expected: str = ""
    answer: str | None = None
    content: str = ""
    """A hash by the tool of what was asked and expected; empty where the texts themselves count."""
    declined: bool = False
    """Whether the tool says that it holds no answer: a score of 0 all the same."""
    error: str = ""
    reason: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)
    seconds: float = 0.0
    cost: float | None = None
    """In USD."""
    tokens: tuple[int, int] | None = None
    """Sent and received."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRun:
    """A result of another tool."""

    tool: str
    model: str
    samples: Sequence[ScoredSample]
    scorers: Mapping[str, Sequence[Scorer]]
    """By task; the tool's main one first."""
    planned: Mapping[str, int] = field(default_factory=dict)
    """How many answers of a task were to be scored, where the tool says so."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResultFile:
    """One file: a JSON value, a list of rows, or an open archive."""

    path: Path
    data: Any

    @property
    def keys(self) -> frozenset[str]:
        """The top-level keys of a JSON object, or of the first row."""
        first = self.data[0] if isinstance(self.data, list) and self.data else self.data
        return frozenset(first) if isinstance(first, Mapping) else frozenset()


def problem(path: Path, what: str) -> UsageError:
    """Return the error about a file, to be raised."""
    return UsageError(f"{path}: {what}")


def parse(path: Path, text: str | bytes) -> Any:
    """Return the value of a JSON text; NaN and infinities, which tools do write, become None."""
    try:
        return json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise problem(path, f"not JSON ({str(error)[:80]}); give the file as written") from None


def document(path: Path) -> ResultFile:
    """Return the content of a file by what it is. Raises UsageError."""
    try:
        if zipfile.is_zipfile(path):
            return ResultFile(path, zipfile.ZipFile(path))
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile) as error:
        raise problem(path, f"a damaged archive ({error}); give a whole log") from None
    text = read_text(path)
    if path.suffix == ".jsonl":
        return ResultFile(path, [parse(path, line) for line in text.split("\n") if line.strip()])
    return ResultFile(path, parse(path, text) if text.lstrip()[:1] in ("{", "[") else None)


def member(archive: ResultFile, name: str) -> Any:
    """Return one JSON file of an archive. Raises UsageError."""
    try:
        if archive.data.getinfo(name).file_size > MAX_BYTES:
            raise ValueError(f"larger than {MAX_BYTES:,} bytes")
        text = archive.data.read(name)
    except Exception as error:  # noqa: BLE001  # each way to compress has errors of its own
        how = "give a whole log; one by zstd needs: pip install 'zipfile-zstd>=0.0.4'"
        raise problem(archive.path, f"{name} cannot be read ({error}); {how}") from None
    return parse(archive.path, text)


def number(value: object) -> float | None:
    """Return a score as a number; None for what is none."""
    word = str(value).strip().casefold()
    try:
        found = LABELS[word] if word in LABELS else float(word)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def text_of(value: object) -> str:
    """Return a question or answer as text: a text itself, the last message of a chat, or JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    last = value[-1] if isinstance(value, list) and value else None
    if isinstance(last, Mapping) and isinstance(last.get("content"), str):
        return str(last["content"])
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def part(row: Json, key: str) -> Json:
    """Return the mapping under a key; an empty one where there is none."""
    found = row.get(key)
    return found if isinstance(found, Mapping) else {}


def only(path: Path, found: Iterable[str], what: str, choice: Choice) -> str:
    """Return the one value, or the chosen one. Raises UsageError where it must be said which."""
    known, given = sorted(set(found)), choice.provider
    if given and given not in known:
        raise problem(path, f"no {what} {given!r}; {hint(given, known)}")
    if not given and len(known) > 1:
        several = f"results of several {what}s, {', '.join(known)}"
        raise problem(path, f"{several}; say which with --new or --old {what.upper()}")
    return given or "".join(known)
