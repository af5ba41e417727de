"""A spreadsheet's file as rows: its encoding, its headings, and its languages.

Excel writes "CSV" in the code page of its country, and nothing in the file says which. So a file
that is not UTF-8 is never guessed at: a person sees three of its rows, or an option names it.
"""

import codecs
import csv
import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from qagate.cases.extras.new.asking import Asker
from qagate.cases.extras.new.files import ENGLISH, check_language
from qagate.cases.rows import LAYOUTS, Layout
from qagate.cases.tables import MAX_BYTES, SPLIT, Table, normal, read_csv
from qagate.evaluators.core import UsageError
from qagate.evaluators.kinds import Kind
from qagate.evaluators.reading import load_yaml, read_bytes
from qagate.evaluators.text import hint, one_line, shown
from qagate.evaluators.typed_data import decode

HEADINGS = Path(__file__).with_name("headings.yaml")
SUFFIXES = (".csv", ".tsv", ".txt")
"""What spreadsheets write: ``.txt`` is Excel's "Unicode text"."""
WORKBOOKS = (".xlsx", ".xls", ".ods", ".numbers")
SHOWN_ROWS = 3
MAX_SHOWN = 60
"""Characters of a cell or a row that is shown with a question."""
LANGUAGE_FIELD = "language"
LABEL_FIELD = "label"
MOST_LETTERS_OF_CODE = 3
"""A longer one has a region, whose letters are large."""
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadingWords:
    """What ``headings.yaml`` holds."""

    fields: Mapping[str, Mapping[str, Sequence[str]]]
    """The words of each field by language, as normal names of columns."""
    code_pages: Mapping[str, Sequence[str]]
    """The languages that each code page is for."""

    def words(self, field: str) -> list[str]:
        """Return the words of a field in all languages."""
        words: list[str] = []
        for of_language in self.fields[field].values():
            words += of_language
        return words

    def languages_of(self, field: str, heading: str) -> list[str]:
        """Return the languages in which a heading is a word of this field."""
        by_language = self.fields[field]
        return [language for language, words in by_language.items() if heading in words]


@cache
def load_heading_words() -> HeadingWords:
    """Return what ``headings.yaml`` holds."""
    words: HeadingWords = decode(HeadingWords, load_yaml(HEADINGS))
    return words


# How the file is written


def read_spreadsheet(
    path: Path, encoding: str | None, language: str | None, asker: Asker
) -> str:
    """Return a file's text. Raises UsageError for one that no spreadsheet writes as text."""
    suffix = path.suffix.lower()
    if suffix in WORKBOOKS:
        raise UsageError(
            f"{path}: a workbook; save the sheet as 'CSV UTF-8 (Comma delimited)' and give that"
        )
    if suffix not in SUFFIXES:
        raise UsageError(
            f"{path}: a spreadsheet is {', '.join(SUFFIXES)}; for {shown(path.suffix)} begin with "
            "qagate new, and put your file into its folder"
        )
    content = read_bytes(path, MAX_BYTES, SPLIT)
    if encoding is not None:
        return _decoded(path, content, encoding)
    if content.startswith(UTF_16):
        return _decoded(path, content, "utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return _decoded(path, content, _ask_code_page(path, content, language, asker))


def _decoded(path: Path, content: bytes, encoding: str) -> str:
    try:
        codec = codecs.lookup(encoding)
        text = codec.decode(content)[0]
    except LookupError:
        raise UsageError(
            f"--encoding {shown(encoding)}: not known; cp1250, cp1251 and cp1252 are Windows'"
        ) from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"{path}:{line}: byte 0x{content[error.start]:02x} is none of {encoding}; "
            "name another with --encoding"
        ) from None
    return str(text).removeprefix("\ufeff")


def _ask_code_page(
    path: Path, content: bytes, language: str | None, asker: Asker
) -> str:
    """Return the code page in which a person can read the file. Raises UsageError."""
    pages = load_heading_words().code_pages
    usual_first = sorted(pages, key=lambda page: language not in pages[page])
    rows_by_page = {}
    readings = set()
    for page in usual_first:
        try:
            reading = _decoded(path, content, page)
        except UsageError:
            continue
        if reading in readings:  # the same letters stand in several code pages
            continue
        readings.add(reading)
        rows_by_page[page] = "  /  ".join(_telling_rows(content, page))
    return asker.choose(
        f"{path} is not UTF-8. Which of these code pages reads right?",
        rows_by_page,
        otherwise=f"{path}: not UTF-8; save it in Excel as 'CSV UTF-8', or name its code page, for "
        f"example --encoding {usual_first[0]}",
    )


def _telling_rows(content: bytes, page: str) -> list[str]:
    """Return the first rows that tell one code page from another."""
    rows = [line for line in content.splitlines() if not line.isascii()]
    return [one_line(row.decode(page), MAX_SHOWN) for row in rows[:SHOWN_ROWS]]


# What its columns are


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguagePart:
    """The rows of a spreadsheet in one language."""

    text: str
    """As a CSV."""
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spreadsheet:
    """A file whose columns are known."""

    table: Table
    text: str
    columns: Mapping[str, str]
    """The normal heading of each field that the file has."""
    headings: Mapping[str, str]
    """What ``columns:`` has to say: the file's heading by our name, where they differ."""
    language: str | None
    """That of its headings, if they have one."""

    @property
    def has_labels(self) -> bool:
        """Whether its rows have an answer of a model and a label of it."""
        return {"recorded", LABEL_FIELD} <= set(self.columns)

    @property
    def has_languages(self) -> bool:
        """Whether a column says the language of each row."""
        return LANGUAGE_FIELD in self.columns

    def whole(self) -> LanguagePart:
        """Return all rows as one part, in the words of the file."""
        return LanguagePart(text=self.text, rows=len(self.table.records))

    def by_language(self) -> dict[str, LanguagePart]:
        """Return the rows of each language, by its code. Raises UsageError for what is no code."""
        column = self.columns[LANGUAGE_FIELD]
        rows_of: dict[str, list[list[str]]] = {}
        for record in self.table.records:
            code = str(record.values[column]).strip()
            if len(code) <= MOST_LETTERS_OF_CODE:
                code = code.lower()  # many write PL
            try:
                check_language(code, LANGUAGE_FIELD)
            except UsageError as error:
                raise self.table.problem(record, column, str(error)) from None
            cells = [str(cell) for cell in record.values.values()]
            rows_of.setdefault(code, []).append(cells)
        headings = list(self.table.names.values())
        parts = {}
        for code, rows in rows_of.items():
            parts[code] = LanguagePart(text=_csv_text(headings, rows), rows=len(rows))
        return parts


def _csv_text(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = io.StringIO(newline="")
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows(rows)
    return lines.getvalue()


def read_sheet(
    path: Path, text: str, kind: Kind, given: Mapping[str, str], asker: Asker
) -> Spreadsheet:
    """Return a file with its columns: those given by our name, those known by their heading.

    A person is asked for a column that the kind needs and that is neither. Raises UsageError.
    """
    table = read_csv(path, text)
    layout = LAYOUTS[kind]
    names = _our_names(layout)
    for name, heading in given.items():
        if name not in {*names.values(), *layout.used}:
            raise UsageError(f"--column {name}: {hint(name, names.values())}")
        if normal(heading) not in table.names:
            known = table.names.values()
            raise UsageError(f"--column {name}={heading}: {hint(heading, known)}")
    columns: dict[str, str] = {}
    headings = {name: table.names[normal(text)] for name, text in given.items()}
    headings.pop(LANGUAGE_FIELD, None)
    for field, name in names.items():
        column = _column_of(table, layout, field, given.get(name))
        if column is None and field in layout.required:
            column = _ask_column(table, name, columns.values(), asker)
        if column is None:
            continue
        columns[field] = column
        is_ours = column in layout.names.get(field, ())
        if not is_ours and field not in (LANGUAGE_FIELD, LABEL_FIELD):
            headings[name] = table.names[column]
    if LABEL_FIELD in columns:
        headings.pop(LABEL_FIELD, None)
    return Spreadsheet(
        table=table,
        text=text,
        columns=columns,
        headings=headings,
        language=_language_of(columns["question"]),
    )


def _our_names(layout: Layout) -> dict[str, str]:
    """Return the name of the column of each field that a spreadsheet may have."""
    fields = ("question", "gold", "context", "id", "recorded")
    names = {field: layout.names[field][0] for field in fields}
    return {**names, LABEL_FIELD: LABEL_FIELD, LANGUAGE_FIELD: LANGUAGE_FIELD}


def _column_of(
    table: Table, layout: Layout, field: str, given: str | None
) -> str | None:
    """Return the column of a field by what is given, by our names, or by its heading."""
    if given is not None:
        return normal(given)
    for name in layout.names.get(field, ()):
        if name in table.names:
            return name
    words = load_heading_words()
    key = {"gold": "answer", "recorded": "predicted_answer"}.get(field, field)
    for word in words.words(key):
        if word in table.names and (field != "id" or _are_ids(table, word)):
            return word
    return None


def _are_ids(table: Table, column: str) -> bool:
    """Return whether every row has a value of its own in a column."""
    values = [str(record.values[column]).strip() for record in table.records]
    return all(values) and len(set(values)) == len(values)


def _ask_column(table: Table, name: str, taken: Collection[str], asker: Asker) -> str:
    """Return the column that a person names for one of ours."""
    cells_of = {}
    for column, heading in table.names.items():
        if column not in taken:
            cells = [str(record.values[column]) for record in table.records]
            cells_of[heading] = one_line(" | ".join(cells[:SHOWN_ROWS]), MAX_SHOWN)
    headings = ", ".join(table.names.values())
    heading = asker.choose(
        f"Which column is the {name}?",
        cells_of,
        otherwise=f"{table.path}: which column is the {name}? Say --column {name}=HEADING: one of "
        f"{headings}",
    )
    return normal(heading)


def _language_of(heading: str) -> str | None:
    """Return the language of a heading of questions; None for one of several or of none.

    English headings stand over questions in any language.
    """
    languages = load_heading_words().languages_of("question", heading)
    if len(languages) != 1 or languages == [ENGLISH]:
        return None
    return languages[0]
