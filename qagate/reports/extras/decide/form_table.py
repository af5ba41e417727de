"""The table of forms: what is data about the result of a tool.

``forms.yaml`` has an entry for each form and says what its keys mean. A tool that is not there
needs no entry: ``--column`` names the same paths for any table.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from qagate.evaluators.reading import Map, load_settings
from qagate.reports.extras.decide.containers import Json, ResultFile
from qagate.reports.extras.decide.paths import FieldPath, field_path

FORMS_FILE = Path(__file__).with_name("forms.yaml")
ANY_TABLE = "table"
"""The last entry: what every table is that is nothing else."""
OF_ROW = "^"
"""Before a path of ``measured`` that leads into each row, and not into the head."""
ROLES: Mapping[str, str] = {
    "id": "which item it is, the same in both files",
    "score": "a number, or a word: correct, incorrect, not_attempted, pass, fail, true, false",
    "task": "a data set of its own (default: the whole file is one)",
    "repeat": "which time the item was asked",
    "question": "what was asked; where it changed, the pair is left out",
    "expected": "the expected answer, likewise",
    "answer": "what the model said",
    "error": "why there is no score; a row with one is ungraded, never 0",
    "reason": "why it has this score",
}
"""What ``--column ROLE=PATH`` may name in the rows of any form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedScores:
    """Scores whose names stand in the file."""

    path: FieldPath
    more_is_better: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultForm:
    """How the results of one tool are written."""

    name: str
    tool: str = ""
    head_signs: tuple[FieldPath, ...] = ()
    row_signs: tuple[FieldPath, ...] = ()
    rows: tuple[FieldPath, ...] = ()
    head: Mapping[str, FieldPath] = field(default_factory=dict)
    row: Mapping[str, tuple[FieldPath, ...]] = field(default_factory=dict)
    """The paths of each role."""
    scores: Mapping[str, FieldPath] = field(default_factory=dict)
    named: tuple[NamedScores, ...] = ()
    not_scores: tuple[str, ...] = ()
    faults: FieldPath | None = None
    reasons: FieldPath | None = None
    no_grade: str = ""
    """How the reason of a scorer begins that could not grade."""
    dead: tuple[FieldPath, ...] = ()
    sure: Mapping[FieldPath, tuple[str, ...]] = field(default_factory=dict)
    main: str = ""
    measured: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    less: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    several: bool = False
    functions: str = ""
    instead: str = ""

    def fits(self, document: ResultFile) -> bool:
        """Return whether a document shows all signs of this form."""
        if not self.head_signs and not self.row_signs:
            return False
        in_head = all(_is_there(document.head, path) for path in self.head_signs)
        return in_head and all(
            _is_there(document.first_row, path) for path in self.row_signs
        )


def _is_there(row: Json, path: FieldPath) -> bool:
    return bool(path.find(row)) or path.text in row


@cache
def forms() -> Mapping[str, ResultForm]:
    """Return the forms by name, in the order in which they are tried."""
    settings = load_settings(FORMS_FILE)
    return {name: _form(name, settings.part(name).values) for name in settings.values}


def _form(name: str, entry: Map) -> ResultForm:
    signs = _map(entry.get("signs"))
    no_grade = _map(entry.get("no_grade"))
    row = {role: _paths(paths) for role, paths in _map(entry.get("row")).items()}
    sure = {
        field_path(path): _texts(values)
        for path, values in _map(entry.get("sure")).items()
    }
    measured = {
        name: _texts(paths) for name, paths in _map(entry.get("measured")).items()
    }
    return ResultForm(
        name=name,
        tool=str(entry.get("tool", "")),
        head_signs=_paths(signs.get("head")),
        row_signs=_paths(signs.get("row")),
        rows=_paths(entry.get("rows")),
        head=_path_of_each(entry.get("head")),
        row=row,
        scores=_path_of_each(entry.get("scores")),
        named=tuple(map(_named, _list(entry.get("named")))),
        not_scores=_texts(entry.get("not_scores")),
        faults=_path(entry.get("faults")),
        reasons=_path(no_grade.get("path")),
        no_grade=str(no_grade.get("begins", "")),
        dead=_paths(entry.get("dead")),
        sure=sure,
        main=str(entry.get("main", "")),
        measured=measured,
        less=_texts(entry.get("less")),
        more=_texts(entry.get("more")),
        several="several" in entry,
        functions=str(entry.get("functions", "")),
        instead=str(entry.get("instead", "")),
    )


def _named(entry: object) -> NamedScores:
    values = _map(entry)
    return NamedScores(
        path=field_path(str(values["path"])),
        more_is_better=values.get("better") == "more",
    )


def _map(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else []


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(str(text) for text in _list(value))


def _path(value: object) -> FieldPath | None:
    return field_path(str(value)) if value else None


def _paths(value: object) -> tuple[FieldPath, ...]:
    return tuple(field_path(text) for text in _texts(value))


def _path_of_each(value: object) -> Mapping[str, FieldPath]:
    return {name: field_path(str(path)) for name, path in _map(value).items()}
