"""``adjudications.yaml``: what people decided, item by item, kept with the data."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import yaml

from cases.labels import grade_or_rating
from evaluators.core import NO, UNANSWERED, YES, UsageError
from evaluators.judges.ensemble import FILE, Adjudication, Adjudications
from evaluators.output import write_texts
from evaluators.reading import Map, Seq, Settings, load_yaml, problem, read_text
from evaluators.text import shown

_KEYS = ("item", "digest", "verdict", "name", "reason", "date")
_AUDIT = ("picked", "probability", "pair")
DIGEST = re.compile(r"[0-9a-f]{32}", re.ASCII)
_HEAD = """\
# Verdicts by people. Each holds for one answer to one item, named by the digest of both; it takes
# the judge's place wherever that answer is judged again. Written by `qagate review`.

"""
ABOUT = ("question", "answer")
_ABOUT = re.compile(rf"# ((?:{'|'.join(ABOUT)}): .*)")


def load_adjudications(path: Path) -> dict[str, Adjudication]:
    """Return the verdicts of a file by digest. Raises UsageError naming file and line."""
    document = load_yaml(path)
    if document == "":
        return {}
    if not isinstance(document, Seq):
        raise problem(path, 1, "a YAML list of verdicts is needed: each begins with '- '")
    found: dict[str, Adjudication] = {}
    text = read_text(path).split("\n")
    for entry, line in zip(document, document.lines, strict=True):
        if not isinstance(entry, Map):
            raise problem(path, line, f"a mapping of {', '.join(_KEYS)} is needed")
        one = _read(Settings(path, "", entry))
        if one.digest in found:
            raise problem(path, line, f"digest {one.digest} stands twice; keep one verdict")
        above = takewhile(bool, map(_ABOUT.fullmatch, reversed(text[: line - 1])))
        about = tuple(match[1] for match in above if match)[::-1]
        found[one.digest] = replace(one, about=about)
    return found


def _read(settings: Settings) -> Adjudication:
    settings.check_keys((*_KEYS, *_AUDIT), ("item", "digest", "verdict", "name"))
    digest = settings.text("digest")
    if not DIGEST.fullmatch(digest):
        what = f"32 hexadecimal digits are needed, not {shown(digest)}"
        raise problem(settings.path, settings.values.lines["digest"], f"digest: {what}")
    given = settings.text("verdict")
    label = given.strip().upper()
    try:
        label = label if label in (YES, NO, UNANSWERED) else grade_or_rating(given)
    except ValueError as error:
        line = settings.values.lines["verdict"]
        raise problem(settings.path, line, f"verdict: {error}") from None
    names = ("reason", "date", "picked", "pair")
    optional: dict[str, Any] = {key: settings.values.get(key) or "" for key in names}
    for key, value in optional.items():
        if not isinstance(value, str):
            raise settings.problem(key, f"text is needed, not {shown(value)}")
    return Adjudication(
        item=settings.text("item"),
        digest=digest,
        label=label,
        name=settings.text("name"),
        probability=settings.number("probability", 0, 1) or 0.0,
        **optional,
    )


def merged(
    old: Adjudications, new: Iterable[Adjudication]
) -> tuple[dict[str, Adjudication], tuple[str, ...]]:
    """Return old and new verdicts, and a line for each new one that contradicts an old one."""
    found = dict(old)
    refused = []
    for one in new:
        before = found.setdefault(one.digest, one)
        if before.label != one.label:
            refused.append(
                f"{one.item}: {one.name} says {one.label}, but {before.name} decided "
                f"{before.label}; take that entry out to decide anew"
            )
    return found, tuple(refused)


def save_adjudications(adjudications: Mapping[str, Adjudication], path: Path) -> None:
    """Write the file, ordered by item. Raises QAError if it cannot be written."""
    ordered = sorted(adjudications.values(), key=lambda one: (one.item, one.digest))
    text = _HEAD if ordered else f"{_HEAD}[]\n"
    for one in ordered:
        values = (one.item, one.digest, one.label, one.name, one.reason, one.date)
        entry: dict[str, str | float] = dict(zip(_KEYS, values, strict=True))
        if one.pair:
            entry |= zip(_AUDIT, (one.picked, one.probability, one.pair), strict=True)
        text += "".join(f"# {line}\n" for line in one.about)
        text += yaml.safe_dump([entry], allow_unicode=True, sort_keys=False, width=100)
    write_texts([(path, text)])


def load_folders(folders: Iterable[Path]) -> dict[str, Adjudication]:
    """Return the verdicts of these folders. Raises UsageError if two contradict each other."""
    found: dict[str, Adjudication] = {}
    for folder in folders:
        path = folder / FILE
        if path.is_file():
            found, refused = merged(found, load_adjudications(path).values())
            if refused:
                raise UsageError(f"{path}: {refused[0]}")
    return found
