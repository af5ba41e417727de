"""Any data file as a table: the format is known by the file's suffix."""

from collections.abc import Callable, Mapping
from pathlib import Path

from cases.csv_reader import read_csv
from cases.json_reader import read_json, read_jsonl
from cases.problems import shown
from cases.tables import Record, Table, normal, problem
from evaluators import strict_yaml
from evaluators.core import UsageError
from evaluators.files import read_text

Parse = Callable[[Path, str], Table]

PARSERS: Mapping[str, Parse] = {".csv": read_csv, ".jsonl": read_jsonl, ".json": read_json}
YAML = (".yaml", ".yml")


def read_table(path: Path) -> Table:
    """Return all records of a CSV, JSON, JSONL or YAML file, with values as they stand there.

    Raises UsageError naming file, row and line for whatever cannot be read.
    """
    suffix = path.suffix.lower()
    if suffix in YAML:
        return _read_yaml(path)
    if suffix in PARSERS:
        return PARSERS[suffix](path, read_text(path))
    known = ", ".join((*PARSERS, *YAML))
    msg = f"{path}: files ending in {shown(path.suffix)} are not read; give one of {known}"
    raise UsageError(msg)


def _read_yaml(path: Path) -> Table:
    document = strict_yaml.load(path)
    if not isinstance(document, strict_yaml.Seq):
        raise problem(path, 1, "a YAML list of items is needed: each begins with '- '")
    names: dict[str, str] = {}
    records = []
    for row, (item, line) in enumerate(zip(document, document.lines, strict=True), 1):
        if not isinstance(item, strict_yaml.Map):
            raise problem(path, line, f"row {row}: a mapping is needed, such as 'question: …'")
        for key in item:
            first = names.setdefault(normal(key), key)
            if first != key and first in item:
                raise problem(path, item.lines[key], f"row {row}: key {shown(key)} stands twice")
        records.append(Record(row, line, {normal(key): value for key, value in item.items()}))
    if not records:
        msg = f"{path}: no rows"
        raise UsageError(msg)
    return Table(path=path, names=names, records=records)
