"""Public sets of answers that people labelled: which there are, and one form for all of them."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cases.download.public_files import DATA_FOLDER, FILE_KEYS, TEXTS, PublicFile
from cases.labels import parse_scale, read_grade, read_number
from cases.tables import Table, TableRow, normal, read_csv, read_json, read_jsonl
from evaluators.core import UsageError
from evaluators.output import plural, write_whole
from evaluators.reading import problem, read_text
from evaluators.settings import Settings, load_settings
from evaluators.text import listed, shown

FILE = Path(__file__).with_name("labelled_sets.yaml")
NEEDED = ("citation", "language", "question", "gold", "answers")
OTHERS = ("separator", "raters", "scale", "leave_out", "literal_quotes", "golds")
NO_LABEL = ("", "nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSet:
    """A public set of answers that people labelled, and what its columns hold.

    ``answers`` maps columns with an answer to those with its label, ``raters`` are columns with one
    person's labels each. ``leave_out`` maps columns to the values whose rows are not used.
    ``golds`` is the file with the golds, None where they stand beside the answers; ``separator``
    stands between the forms of one. ``scale`` is ``WORST:BEST`` of ratings, ``""`` for grades.
    """

    name: str
    source: PublicFile
    golds: PublicFile | None
    citation: str
    language: str
    question: str
    gold: str
    separator: str
    answers: Mapping[str, str]
    raters: tuple[str, ...]
    scale: str
    leave_out: Mapping[str, tuple[str, ...]]
    literal_quotes: bool

    @property
    def files(self) -> tuple[PublicFile, ...]:
        """The official files, the one with the answers first."""
        return (self.source, *((self.golds,) if self.golds else ()))

    def path(self, folder: Path = DATA_FOLDER) -> Path:
        """Return where the one form of this set is, beside its official files."""
        return folder / f"{self.name}.labelled.jsonl"

    def check_label(self, text: str) -> None:
        """Raise ValueError for what is neither a grade nor, where there is a scale, on it."""
        if self.scale:
            read_number(text, parse_scale(self.scale))
        else:
            read_grade(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledRows:
    """The labelled answers of a set in its one form, and how many were left out, by the reason."""

    rows: tuple[Mapping[str, object], ...]
    left_out: Mapping[str, int]

    @property
    def summary(self) -> str:
        """How many answers there are, to how many questions, and what was left out and why."""
        questions = len({row["question"] for row in self.rows})
        left_out = ", ".join(f"{count:,} for {why}" for why, count in self.left_out.items())
        used = f"{plural(len(self.rows), 'answer')} to {plural(questions, 'question')}"
        return f"{used}; left out: {left_out or 'none'}"


def load_labelled_sets(path: Path = FILE) -> Mapping[str, LabelledSet]:
    """Return the labelled sets of a YAML file by name.

    Raises UsageError naming file, line and key for whatever is missing or not as it must be.
    """
    top = load_settings(path)
    return {name: _labelled_set(name, top.part(name)) for name in top.values}


def _labelled_set(name: str, settings: Settings) -> LabelledSet:
    settings.check_keys((*FILE_KEYS, *NEEDED, *OTHERS), (*TEXTS, *NEEDED))
    answers, leave_out, golds = (settings.part(key) for key in ("answers", "leave_out", "golds"))
    if golds.values:
        golds.check_keys(FILE_KEYS, TEXTS)
    scale = settings.text("scale")
    try:
        parse_scale(scale or "0:1")
    except UsageError:
        raise settings.problem(key="scale", what="want WORST:BEST, such as 0:5") from None
    return LabelledSet(
        name=name,
        source=PublicFile.of(settings),
        golds=PublicFile.of(golds) if golds.values else None,
        citation=settings.text("citation"),
        language=settings.text("language"),
        question=settings.text("question"),
        gold=settings.text("gold"),
        separator=settings.text("separator"),
        answers={answer: answers.text(answer) for answer in answers.values},
        raters=settings.words("raters"),
        scale=scale,
        leave_out={column: leave_out.words(column) for column in leave_out.values},
        literal_quotes=settings.flag("literal_quotes"),
    )


def bring_to_form(one: LabelledSet, folder: Path) -> LabelledRows:
    """Write the one form of a set whose official files are in a folder, and return its rows.

    Raises UsageError naming file, row and column where a file is not as the set says, OSError.
    """
    table = _read(folder / one.source.file, literal=one.literal_quotes)
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
    """Return the labelled answers of a table in the columns that ``calibrate`` knows.

    ``golds`` is the table with the golds where they do not stand beside the answers. Raises
    UsageError naming file, row and column for a missing column or what is no label.
    """
    own = (one.question, *one.answers, *one.answers.values(), *one.raters, *one.leave_out)
    _check_columns(table, own if golds else (*own, one.gold))
    elsewhere = _golds_by_question(one, golds) if golds else None
    rows: list[Mapping[str, object]] = []
    left_out: Counter[str] = Counter()
    for record in table.records:
        item = _Item(one, table, record, elsewhere)
        for answer, label in one.answers.items():
            why = item.unfit(answer, label)
            if why:
                left_out[why] += 1
            else:
                rows.append(item.row(answer, label))
    if not rows:
        raise UsageError(f"{table.path}: no labelled answer in it; left out: {dict(left_out)}")
    return LabelledRows(rows=tuple(rows), left_out=left_out)


@dataclass(frozen=True, slots=True)
class _Item:
    """One record of a labelled set; ``elsewhere`` maps questions to golds of another file."""

    set: LabelledSet
    table: Table
    record: TableRow
    elsewhere: Mapping[str, list[str]] | None

    @property
    def question(self) -> str:
        return _cell(self.table, self.record, self.set.question) or ""

    @property
    def golds(self) -> list[str]:
        if self.elsewhere is None:
            return _forms(self.set, self.table, self.record)
        return self.elsewhere.get(self.question, [])

    def unfit(self, answer: str, label: str) -> str:
        """Return why one answer of the record is not used, ``""`` where it is."""
        for column, values in self.set.leave_out.items():
            value = _cell(self.table, self.record, column)
            if value in values:
                return f"{column} {value}"
        lacking = {
            "no answer": _cell(self.table, self.record, answer) is None,
            "no label": not self.label(label),
            "no question": not self.question.strip(),
            "no gold": not self.golds,
        }
        return next((why for why, lacks in lacking.items() if lacks), "")

    def label(self, column: str) -> str:
        """Return a label as it stands there, ``""`` for none. Raises UsageError for another."""
        text = (_cell(self.table, self.record, column) or "").strip()
        if text.casefold() in NO_LABEL:
            return ""
        try:
            self.set.check_label(text)
        except ValueError as error:
            raise self.table.problem(self.record, normal(column), str(error)) from None
        return text

    def row(self, answer: str, label: str) -> Mapping[str, object]:
        """Return one answer in the columns that ``calibrate`` knows."""
        raters = enumerate(self.set.raters, 1)
        return {
            "question": self.question,
            "gold": self.golds,
            "predicted_answer": _cell(self.table, self.record, answer),
            "label": self.label(label),
            **{f"label_{number}": self.label(column) for number, column in raters},
            "language": self.set.language,
            "label_source": f"people ({self.set.name})",
        }


def _golds_by_question(one: LabelledSet, table: Table) -> Mapping[str, list[str]]:
    _check_columns(table, (one.question, one.gold))
    return {
        _cell(table, record, one.question) or "": _forms(one, table, record)
        for record in table.records
    }


def _forms(one: LabelledSet, table: Table, record: TableRow) -> list[str]:
    text = _cell(table, record, one.gold) or ""
    forms = text.split(one.separator) if one.separator else [text]
    return list(dict.fromkeys(form.strip() for form in forms if form.strip()))


def _check_columns(table: Table, names: Iterable[str]) -> None:
    missing = [name for name in names if normal(name) not in table.names]
    if missing:
        found = listed(table.names.values())
        what = f"no column {listed(missing)}; found {found}; fetch the file again"
        raise problem(table.path, 1, what)


def _cell(table: Table, record: TableRow, column: str) -> str | None:
    """Return the text of a cell, ``true`` or ``false`` for a JSON boolean, None for none."""
    value = record.values.get(normal(column))
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or isinstance(value, str):
        return None if value is None else str(value)
    raise table.problem(record, normal(column), f"want text, got {shown(value)}")
