"""Public sets of answers that people labelled: which there are, and one form for all of them."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from cases.download.public_files import DATA_FOLDER, PublicFile
from cases.labels import Scale, read_grade
from cases.tables import Table, TableRow, normal, read_csv, read_json, read_jsonl
from evaluators.core import UsageError
from evaluators.output import plural, write_whole
from evaluators.reading import load_yaml, problem, read_text
from evaluators.text import listed, shown, without_invisible

FILE = Path(__file__).with_name("labelled_sets.yaml")
NO_LABEL = ("", "nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSet(PublicFile):
    """A public file of answers that people labelled, and what its columns hold."""

    citation: str
    language: str
    question: str
    gold: str
    golds: PublicFile | None = None
    """The file with the golds, where they do not stand in the same one."""
    separator: str = ""
    """What stands between the forms of a gold."""
    answers: Mapping[str, str]
    """Each column with an answer, and the column with its label."""
    raters: Sequence[str] = ()
    """Columns with the labels of one person each."""
    scale: str = ""
    """``WORST:BEST`` of ratings, empty for grades."""
    leave_out: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Rows with one of these values in a column are not used."""
    literal_quotes: str = ""
    """Not empty: a quote in the table is text, not the beginning of a cell."""

    def path(self, folder: Path = DATA_FOLDER) -> Path:
        """Return where the one form of this set is, next to its official files."""
        return folder / f"{self.name}.labelled.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledRows:
    """The labelled answers of a set in the one form."""

    rows: tuple[Mapping[str, object], ...]
    left_out: Mapping[str, int]
    """How many were not used, by the reason."""

    @property
    def summary(self) -> str:
        """How many answers there are, to how many questions, and what was left out and why."""
        questions = len({row["question"] for row in self.rows})
        left_out = ", ".join(f"{count:,} for {why}" for why, count in self.left_out.items())
        used = f"{plural(len(self.rows), 'answer')} to {plural(questions, 'question')}"
        return f"{used}; left out: {left_out or 'none'}"


def load_labelled_sets() -> Mapping[str, LabelledSet]:
    """Return the bundled labelled sets by name."""
    found = {}
    for name, entry in cast("Mapping[str, dict[str, Any]]", load_yaml(FILE)).items():
        golds = entry.pop("golds", None)
        own = PublicFile(name=f"{name} golds", **golds) if golds else None
        found[name] = LabelledSet(name=name, golds=own, **entry)
    return found


def bring_to_form(one: LabelledSet, folder: Path) -> LabelledRows:
    """Write a set's one form from its files, and return its rows. Raises UsageError, OSError."""
    table = _read(folder / one.file, literal=bool(one.literal_quotes))
    golds = _read(folder / one.golds.file) if one.golds else None
    found = labelled_rows(one, table, golds)
    write_whole(one.path(folder), (f"{json.dumps(row)}\n".encode() for row in found.rows))
    return found


def _read(path: Path, *, literal: bool = False) -> Table:
    text = read_text(path)
    if path.suffix in (".json", ".jsonl"):
        return (read_json if path.suffix == ".json" else read_jsonl)(path, text)
    return read_csv(path, text, "\t" if path.suffix == ".tsv" else ",", literal=literal)


def labelled_rows(one: LabelledSet, table: Table, golds: Table | None = None) -> LabelledRows:
    """Return a table's answers as a judged data set has them. Raises UsageError with the row."""
    own = (one.question, *one.answers, *one.answers.values(), *one.raters, *one.leave_out)
    _check_columns(table, own if golds else (*own, one.gold))
    elsewhere: dict[str, list[str]] = {}
    if golds:
        _check_columns(golds, (one.question, one.gold))
        for row in golds.records:
            elsewhere[_cell(golds, row, one.question) or ""] = _forms(one, golds, row)
    rows, left_out = list[Mapping[str, object]](), Counter[str]()
    for row in table.records:
        question = _cell(table, row, one.question) or ""
        forms = elsewhere.get(question, []) if golds else _forms(one, table, row)
        values = ((column, _cell(table, row, column)) for column in one.leave_out)
        out = next((f"{name} {text}" for name, text in values if text in one.leave_out[name]), "")
        for column, label_column in one.answers.items():
            answer = _cell(table, row, column)
            label = "" if out or answer is None else _label(one, table, row, label_column)
            lacking = {
                "answer": answer is None,
                "label": not label,
                "question": not without_invisible(question).strip(),
                "gold": not forms,
            }
            why = out or next((f"no {what}" for what, lacks in lacking.items() if lacks), "")
            if why:
                left_out[why] += 1
                continue
            made = {"question": question, "gold": forms, "predicted_answer": answer, "label": label}
            for number, rater in enumerate(one.raters, 1):
                made[f"label_{number}"] = _label(one, table, row, rater)
            made |= {"language": one.language, "label_source": f"people ({one.name})"}
            rows.append(made)
    if not rows:
        raise UsageError(f"{table.path}: no labelled answer in it; left out: {dict(left_out)}")
    return LabelledRows(rows=tuple(rows), left_out=left_out)


def _label(one: LabelledSet, table: Table, row: TableRow, column: str) -> str:
    """Return a label as it stands there, empty for none. Raises UsageError for what is none."""
    text = (_cell(table, row, column) or "").strip()
    if text.casefold() in NO_LABEL:
        return ""
    try:
        if one.scale:
            Scale.parse(one.scale).place(text)
        else:
            read_grade(text)
    except ValueError as error:
        raise table.problem(row, normal(column), str(error)) from None
    return text


def _forms(one: LabelledSet, table: Table, row: TableRow) -> list[str]:
    text = _cell(table, row, one.gold) or ""
    forms = text.split(one.separator) if one.separator else [text]
    return list(dict.fromkeys(form.strip() for form in forms if form.strip()))


def _check_columns(table: Table, names: Iterable[str]) -> None:
    if missing := [name for name in names if normal(name) not in table.names]:
        found = listed(table.names.values())
        what = f"no column {listed(missing)}; found {found}; fetch the file again"
        raise problem(table.path, 1, what)


def _cell(table: Table, row: TableRow, column: str) -> str | None:
    """Return the text of a cell, ``true`` or ``false`` for a JSON boolean, None for none."""
    value = row.values.get(normal(column))
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or isinstance(value, str):
        return None if value is None else str(value)
    raise table.problem(row, normal(column), f"want text, got {shown(value)}")
