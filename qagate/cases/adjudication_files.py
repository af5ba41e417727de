"""``adjudications.yaml``: people's verdicts, read, merged and written.

A file lies next to a data set or where ``--adjudications`` says. Comments above an entry tell a
reader which question and answer it is about; nothing is decided by them, but they are kept.
"""

import re
from collections.abc import Callable, Hashable, Iterable
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

import yaml

from qagate.cases.labels import grade_or_rating
from qagate.evaluators.adjudications import Adjudication, Adjudications
from qagate.evaluators.core import NO, UNANSWERED, YES, UsageError
from qagate.evaluators.output import write_texts
from qagate.evaluators.reading import Settings, load_entries, problem, read_text
from qagate.evaluators.text import shown

_REQUIRED_KEYS = ("item", "digest", "verdict", "name")
_KEYS = (*_REQUIRED_KEYS, "reason", "date", "picked", "probability", "pair")
_HEAD = """\
# Verdicts by people. Each holds for one answer to one item, named by the digest of both; it takes
# the judge's place wherever that answer is judged again. Written by `qagate review`.

"""
ABOUT = ("question", "answer")
"""What the comments above an entry tell."""
_COMMENT = re.compile(rf"# ((?:{'|'.join(ABOUT)}): .*)")
_DIGEST = re.compile(r"[0-9a-f]{32}")
T = TypeVar("T")


def load_adjudications(path: Path) -> dict[str, Adjudication]:
    """Return the verdicts of a file by digest. Raises UsageError naming file and line."""
    adjudications: dict[str, Adjudication] = {}
    lines = read_text(path).split("\n")
    for entry in load_entries(path, "verdicts", _KEYS, _REQUIRED_KEYS):
        line = entry.values.line
        adjudication = _adjudication(entry, lines[: line - 1])
        digest = adjudication.digest
        if digest in adjudications:
            raise problem(path, line, f"digest {digest} stands twice; keep one verdict")
        adjudications[digest] = adjudication
    return adjudications


def _adjudication(entry: Settings, lines_above: list[str]) -> Adjudication:
    digest = entry.text("digest")
    if not _DIGEST.fullmatch(digest):
        raise problem(
            entry.path,
            entry.values.lines["digest"],
            f"digest: 32 hexadecimal digits are needed, not {shown(digest)}",
        )
    return Adjudication(
        item=entry.text("item"),
        digest=digest,
        label=_label(entry),
        name=entry.text("name"),
        reason=_text_or_empty(entry, "reason"),
        date=_text_or_empty(entry, "date"),
        picked=_text_or_empty(entry, "picked"),
        probability=entry.number("probability", 0, 1) or 0.0,
        pair=_text_or_empty(entry, "pair"),
        about=_comments(lines_above),
    )


def _label(entry: Settings) -> str:
    """Return the label that an entry's verdict, in any spelling, stands for."""
    verdict = entry.text("verdict")
    label = verdict.strip().upper()
    if label in (YES, NO, UNANSWERED):
        return label
    try:
        return grade_or_rating(verdict)
    except ValueError as error:
        line = entry.values.lines["verdict"]
        raise problem(entry.path, line, f"verdict: {error}") from None


def _text_or_empty(entry: Settings, key: str) -> str:
    """Return a text that may be left out or empty."""
    if not entry.values.get(key):
        return ""
    return entry.text(key)


def _comments(lines_above: list[str]) -> tuple[str, ...]:
    """Return what the comments directly above an entry tell, without their ``#``."""
    comments = list[str]()
    for line in reversed(lines_above):
        match = _COMMENT.fullmatch(line)
        if match is None:
            break
        comments.insert(0, match[1])
    return tuple(comments)


def save_adjudications(adjudications: Adjudications, path: Path) -> None:
    """Write the file, ordered by item. Raises QAError if it cannot be written."""
    text = _HEAD
    if not adjudications:
        text += "[]\n"
    for adjudication in sorted(
        adjudications.values(),
        key=lambda adjudication: (adjudication.item, adjudication.digest),
    ):
        text += _entry_text(adjudication)
    write_texts([(path, text)], to_commit=True)


def _entry_text(adjudication: Adjudication) -> str:
    entry: dict[str, object] = {
        "item": adjudication.item,
        "digest": adjudication.digest,
        "verdict": adjudication.label,
        "name": adjudication.name,
        "reason": adjudication.reason,
        "date": adjudication.date,
    }
    if adjudication.pair:
        entry["picked"] = adjudication.picked
        entry["probability"] = adjudication.probability
        entry["pair"] = adjudication.pair
    comments = "".join(f"# {line}\n" for line in adjudication.about)
    return comments + yaml.safe_dump(
        [entry], allow_unicode=True, sort_keys=False, width=100
    )


def keep_first(
    verdicts: Iterable[T],
    key: Callable[[T], Hashable] = attrgetter("digest"),
    words: Callable[[T], tuple[object, object, object]] = attrgetter(
        "item", "name", "label"
    ),
) -> tuple[list[T], list[str]]:
    """Return the first verdict with each key, and a line for each later one that contradicts it.

    ``words`` returns what a verdict is about, who gave it, and what it says.
    """
    kept: dict[Hashable, T] = {}
    refused = []
    for verdict in verdicts:
        first = kept.setdefault(key(verdict), verdict)
        about, name, label = words(verdict)
        _, first_name, first_label = words(first)
        if label != first_label:
            refused.append(
                f"{about}: {name} says {label}, but {first_name} said {first_label}; "
                "take that entry out to decide anew"
            )
    return list(kept.values()), refused


def load_people(paths: Iterable[Path]) -> dict[str, Adjudication]:
    """Return the verdicts of several files. Raises UsageError if two contradict each other."""
    adjudications = list[Adjudication]()
    for path in paths:
        new = load_adjudications(path).values()
        adjudications, refused = keep_first([*adjudications, *new])
        if refused:
            raise UsageError(f"{path}: {refused[0]}")
    return {adjudication.digest: adjudication for adjudication in adjudications}
