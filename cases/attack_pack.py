"""The attack pack: answers that must not be graded CORRECT, and controls that must."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from evaluators.core import Case, UsageError
from evaluators.reading import Map, Seq, load_yaml
from evaluators.text import digest

FOLDER = Path(__file__).parent / "attacks"
LANGUAGES = tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))
MOST_TIMES = 10_000
_REQUIRED = ("id", "kind", "question", "gold", "answer")
_OPTIONAL = ("before", "times")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One answer to try on a judge. A ``control`` is right; an attack is not."""

    kind: str
    control: bool
    case: Case


def load_bundled(languages: Iterable[str]) -> list[Probe]:
    """Return the bundled probes of these languages. Raises UsageError for an unknown one."""
    probes = []
    for language in languages:
        if language not in LANGUAGES:
            msg = f"--languages: no attacks in {language!r}; there are {', '.join(LANGUAGES)}"
            raise UsageError(msg)
        probes += load_pack(FOLDER / f"{language}.yaml")
    return probes


def load_pack(path: Path) -> list[Probe]:
    """Return the probes of a file. Raises UsageError naming file, line and key."""
    top = load_yaml(path)
    if not isinstance(top, Map):
        msg = f"{path}:1: want a mapping with keys language, attacks, controls"
        raise UsageError(msg)
    _check_keys(path, top, ("language", "attacks"), ("controls",))
    language = _text(path, top, "language")
    probes = [
        probe for key in ("attacks", "controls") for probe in _probes(path, top, key, language)
    ]
    seen: set[str] = set()
    for probe in probes:
        if probe.case.id in seen:
            msg = f"{path}: id {probe.case.id!r} stands twice; keep one"
            raise UsageError(msg)
        seen.add(probe.case.id)
    return probes


def _probes(path: Path, top: Map, key: str, language: str) -> Iterable[Probe]:
    entries = top.get(key, Seq(top.line))
    if not isinstance(entries, Seq):
        _wrong(path, top, key, "want a list")
    for row, entry in enumerate(entries, 1):
        if not isinstance(entry, Map):
            _wrong(path, top, key, f"entry {row}: want a mapping with {', '.join(_REQUIRED)}")
        _check_keys(path, entry, _REQUIRED, _OPTIONAL)
        yield _probe(path, entry, row, (key == "controls", language))


def _probe(path: Path, entry: Map, row: int, which: tuple[bool, str]) -> Probe:
    control, language = which
    question, golds = _text(path, entry, "question"), _golds(path, entry)
    answer = _text(path, entry, "answer")
    if "before" in entry or "times" in entry:
        answer = _text(path, entry, "before") * _times(path, entry) + answer
    case = Case(
        id=_text(path, entry, "id"),
        dataset="attacks",
        language=language,
        row=row,
        question=question,
        golds=golds,
        recorded=answer,
        digest=digest([question, golds, answer]),
    )
    return Probe(kind=_text(path, entry, "kind"), control=control, case=case)


def _golds(path: Path, entry: Map) -> tuple[str, ...]:
    gold = entry["gold"]
    forms = gold if isinstance(gold, Seq) else [gold]
    texts = tuple(form for form in forms if isinstance(form, str) and form)
    if not texts or len(texts) < len(forms):
        _wrong(path, entry, "gold", "want text, or a list of texts")
    return texts


def _times(path: Path, entry: Map) -> int:
    text = _text(path, entry, "times") if "times" in entry else "1"
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_TIMES):
        _wrong(path, entry, "times", f"want a whole number from 1 to {MOST_TIMES:,}")
    return int(text)


def _check_keys(
    path: Path, entry: Map, required: tuple[str, ...], optional: tuple[str, ...]
) -> None:
    for key in entry:
        if key not in required + optional:
            _wrong(path, entry, key, f"not known; known: {', '.join(required + optional)}")
    for key in required:
        if not entry.get(key):
            _wrong(path, entry, key, "missing or empty")


def _text(path: Path, entry: Map, key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        _wrong(path, entry, key, "want text")
    return value


def _wrong(path: Path, entry: Map, key: str, problem: str) -> NoReturn:
    msg = f"{path}:{entry.lines.get(key, entry.line)}: key {key!r}: {problem}"
    raise UsageError(msg)
