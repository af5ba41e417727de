"""Public benchmarks and sets of labelled answers: what each must be, fetched over HTTPS."""

import hashlib
import io
import json
import re
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import httpx2

from qagate.cases.labels import Scale, read_grade
from qagate.cases.tables import MAX_BYTES, Table, TableRow, normal, read_csv, read_json
from qagate.evaluators.bounded_reading import (
    PARQUET_MARK,
    ReadingBudget,
    read_parquet,
)
from qagate.evaluators.core import QAError, UsageError
from qagate.evaluators.models.urls import is_loopback, normalise_url
from qagate.evaluators.output import SHARED, write_whole
from qagate.evaluators.reading import (
    ARCHIVES,
    Settings,
    load_settings,
    problem,
    read_text,
)
from qagate.evaluators.text import listed, mask, one_line, shown, without_invisible

BENCHMARKS = Path(__file__).with_name("benchmarks.yaml")
LABELLED_SETS = Path(__file__).with_name("labelled_sets.yaml")
NO_LABEL = ("", "nan")
Cells = Mapping[str, str | None]
DATA_FOLDER = Path(".qa/data")
HEAD = (
    1024 * 1024
)  # bytes of the beginning, or end, in which names of columns must stand
BEGINNINGS: Mapping[bytes, str] = {
    b"version https://git-lfs": "a Git LFS pointer, not the data "
    "(GitHub has that at https://media.githubusercontent.com/media/OWNER/REPO/…)",
    b"<": "a web page or an XML message",
    **ARCHIVES,
}
GZIP = b"\x1f\x8b"
CONNECT_S = 10.0
READ_S = 30.0  # seconds without a single byte after which a server is given up
MAX_REDIRECTS = 5
REDIRECTS: Mapping[str, str] = {
    "location header": "redirects to no address",
    "maximum allowed redirects": f"more than {MAX_REDIRECTS} redirects",
}
"""What the client's messages about redirects mean."""
ADVICE: Mapping[int, str] = {
    403: "access is refused",
    404: "there is no such file",
    407: "the proxy wants a login; set it in HTTPS_PROXY",
    429: "too many requests; try again later",
}
"""What a status means, where it is none of the server's own troubles."""


class DownloadError(QAError):
    """A file could not be fetched, or is not what it must be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicFile:
    """One official file."""

    name: str
    """What it is called in messages."""
    url: str
    file: str
    """The name it gets in the folder."""
    licence: str
    hint: str
    """What to do where the address does not serve it."""
    columns: Sequence[str]
    """Names that stand in its first line, near the beginning of a JSON list, or in the end of a
    Parquet file."""
    sha256: str = ""
    """Empty where none is pinned."""
    member: str = ""
    """The file's name in the ``.tar.gz`` that the address serves; empty if it serves no archive."""

    def obtain(self, folder: Path, url: str = "", sha256: str = "") -> str:
        """Put the right file, no other, into a folder; return how it came. Raises DownloadError."""
        target, url, sha256 = folder / self.file, url or self.url, sha256 or self.sha256
        with file_errors(target):
            there, source = target.exists(), without_query(url)
            body = target.read_bytes() if there else self._fetched(url)
            if wrong := self.fault_of(body, sha256):
                came = f"{source}: what came is {wrong}; {self.hint}"
                own = f"{target}: {wrong}; delete it, or choose another --to"
                raise DownloadError(own if there else came)
            if not there:
                target.parent.mkdir(parents=True, exist_ok=True)
                write_whole(target, [body], SHARED)
        how = "already there" if there else f"fetched from {source}"
        found = (
            ""
            if sha256
            else f", SHA-256 {hashlib.sha256(body).hexdigest()} (pinned nowhere)"
        )
        return f"{target}: {how}, {len(body):,} bytes{found}, licence {self.licence}"

    def _fetched(self, url: str) -> bytes:
        """Return what an address serves, out of its archive. Raises DownloadError."""
        body = fetch(url, self.hint)
        if not self.member or not body.startswith(GZIP):
            return body
        try:
            return unpacked(body, self.member)
        except (tarfile.TarError, EOFError, OSError, KeyError, ValueError) as error:
            source = without_query(url)
            reason = one_line(f"{error}")
            raise DownloadError(
                f"{source}: no archive with {self.member} ({reason}); {self.hint}"
            ) from None

    def fault_of(self, body: bytes, sha256: str) -> str:
        """Return what a file is instead of the data, empty where it is the data."""
        start = body[:HEAD].removeprefix(b"\xef\xbb\xbf").lstrip()
        if not start:
            return "empty"
        if known := next(
            (what for mark, what in BEGINNINGS.items() if start.startswith(mark)), ""
        ):
            return known
        is_parquet = start.startswith(PARQUET_MARK)
        if is_parquet and not body.endswith(PARQUET_MARK):
            return "a Parquet file that is cut"
        where, names = _place_of_names(start, body)
        if missing := [name for name in self.columns if name.encode() not in names]:
            return f"something else: its {where} lacks {listed(missing)}"
        found = hashlib.sha256(body).hexdigest()
        new = "if the publisher changed the file, give the new hash with --sha256"
        wrong = f"another file: its SHA-256 is {found}, not {sha256}; {new}"
        return wrong if sha256 and found != sha256 else ""


def _place_of_names(start: bytes, body: bytes) -> tuple[str, bytes]:
    """Return where a file has the names of its columns, and what stands there."""
    if start.startswith(PARQUET_MARK):
        return "end", body[-HEAD:]
    if start.startswith(b"["):
        return "beginning", start
    return "first line", start.splitlines()[0]


def unpacked(body: bytes, member: str, limit: int = MAX_BYTES) -> bytes:
    """Return one file of a ``.tar.gz``, of ``limit`` bytes at most, without writing any.

    Raises ValueError for a larger one, KeyError where there is none, and TarError or OSError for
    what is no such archive.
    """
    with tarfile.open(fileobj=io.BytesIO(body), mode="r:gz") as archive:
        entry = archive.getmember(member)
        content = archive.extractfile(entry)
        if content is None:
            raise ValueError("no file")
        if entry.size > limit:
            raise ValueError(f"larger than {limit:,} bytes")
        return content.read()


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark(PublicFile):
    """The official file of a benchmark, and the slice that takes it."""

    dataset: str
    """A bundled data set, or for a ``kind`` the one that ``qagate new`` is to write."""
    language: str
    kind: str = ""
    """The kind of a data set that is not bundled."""
    run: str
    """Options to run it with."""
    rename: Mapping[str, str]
    """Columns of a Parquet file that are written under another name."""

    @property
    def is_parquet(self) -> bool:
        """Whether the official file is Parquet, which no data set reads itself."""
        return self.file.endswith(".parquet")

    def items(self, folder: Path) -> Path:
        """Return the file that ``--items`` takes: the official one, or JSON lines for Parquet."""
        path = folder / self.file
        if self.is_parquet:
            return path.with_suffix(".jsonl")
        return path


def load_benchmarks() -> Mapping[str, Benchmark]:
    """Return the bundled benchmarks by name."""
    entries = load_settings(BENCHMARKS)
    return {name: _benchmark(name, entries.part(name)) for name in entries.values}


def _benchmark(name: str, entry: Settings) -> Benchmark:
    renamed = entry.part("rename")
    return Benchmark(
        name=name,
        url=entry.text("url"),
        file=entry.text("file"),
        licence=entry.text("licence"),
        hint=entry.text("hint"),
        columns=entry.words("columns"),
        sha256=entry.text("sha256"),
        member=entry.text("member"),
        dataset=entry.text("dataset"),
        language=entry.text("language"),
        kind=entry.text("kind"),
        run=entry.text("run"),
        rename={column: renamed.text(column) for column in renamed.values},
    )


def write_items(benchmark: Benchmark, folder: Path) -> int:
    """Write the rows of a benchmark's Parquet file as JSON lines, and return how many there are.

    Values stay as they are, and so do names but for those in ``rename``. Raises UsageError for a
    damaged file, and OSError.
    """
    path = folder / benchmark.file
    rows = read_parquet(path, path.read_bytes(), ReadingBudget())
    lines = [_json_line(benchmark, row) for row in rows]
    write_whole(benchmark.items(folder), lines, SHARED)
    return len(lines)


def _json_line(benchmark: Benchmark, row: Mapping[str, object]) -> bytes:
    renamed = {benchmark.rename.get(name, name): value for name, value in row.items()}
    text = json.dumps(renamed, ensure_ascii=False, default=str)
    return f"{text}\n".encode()


def without_query(url: str) -> str:
    """Return a URL for a message: no query, which may hold a secret, and no password."""
    return one_line(mask(re.split(r"[?#]", url, maxsplit=1)[0]))


def check_address(url: str) -> None:
    """Raise UsageError for anything but https, or http to this machine, and for credentials."""
    normalise_url(re.split(r"[?#]", url, maxsplit=1)[0])


@contextmanager
def file_errors(target: Path) -> Iterator[None]:
    """Turn an OSError about a file into a DownloadError that says what to do."""
    try:
        yield
    except OSError as error:
        where, reason = error.filename or target, error.strerror or type(error).__name__
        what = f"{where}: cannot be written or read ({reason}); mend that, or choose another --to"
        raise DownloadError(what) from None


def fetch(url: str, hint: str, read_s: float = READ_S, limit: int = MAX_BYTES) -> bytes:
    """Return a file of ``limit`` bytes at most. Raises DownloadError, also for a silent server."""

    def refuse(what: str) -> NoReturn:
        raise DownloadError(f"{without_query(url)}: {what}") from None

    client = httpx2.Client(
        timeout=httpx2.Timeout(read_s, connect=min(CONNECT_S, read_s)),
        headers={"accept-encoding": "identity"},  # so that the bytes are the file's
        trust_env=not is_loopback(url),
        follow_redirects=True,
        max_redirects=MAX_REDIRECTS,
        event_hooks={
            "request": [lambda request: check_redirect(url, f"{request.url}")]
        },
    )
    try:
        with client, client.stream("GET", url) as response:
            if response.status_code != 200:
                status = response.status_code
                trouble = "the server is in trouble; try again later"
                advice = trouble if status >= 500 else ADVICE.get(status, "not a file")
                refuse(f"status {status}: {advice}; {hint}")
            if response.headers.get("content-encoding", "identity") != "identity":
                refuse(f"sent compressed although asked not to; {hint}")
            body = bytearray()
            for chunk in response.iter_raw():
                body += chunk
                if len(body) > limit:
                    refuse(f"larger than {limit:,} bytes; {hint}")
            return bytes(body)
    except httpx2.InvalidURL as error:
        refuse(f"not an address ({error}); {hint}")
    except (httpx2.ConnectTimeout, httpx2.ConnectError, httpx2.ProxyError) as error:
        reason = one_line(mask(str(error))) or "no answer"
        refuse(
            f"cannot be reached ({reason}); check the network and HTTPS_PROXY, then try again"
        )
    except httpx2.HTTPError as error:
        silent = isinstance(error, httpx2.TimeoutException)
        lost = f"{'no data in time' if silent else 'the line broke'}; try again"
        refuse(
            next((what for part, what in REDIRECTS.items() if part in str(error)), lost)
        )


def check_redirect(source: str, target: str) -> None:
    """Raise DownloadError for a redirect that leaves https, or turns to this machine."""
    try:
        check_address(target)
    except UsageError as refused:
        what = f"{refused}"
    else:
        what = f"{without_query(target)} is this machine"
        if is_loopback(source) or not is_loopback(target):
            return
    raise DownloadError(f"{without_query(source)}: redirect refused: {what}")


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
    literal_quotes: bool = False
    """A quote in the table is text, not the beginning of a cell."""

    def path(self, folder: Path = DATA_FOLDER) -> Path:
        """Return where the one form of this set is, next to its official files."""
        return folder / f"{self.name}.labelled.jsonl"


LabelledRows = tuple[list[Mapping[str, object]], Mapping[str, int]]
"""Labelled answers in the one form, and how many were not used, by the reason."""


def load_labelled_sets() -> Mapping[str, LabelledSet]:
    """Return the bundled labelled sets by name."""
    entries = load_settings(LABELLED_SETS)
    return {name: _labelled_set(name, entries.part(name)) for name in entries.values}


def _labelled_set(name: str, entry: Settings) -> LabelledSet:
    answers = entry.part("answers")
    leave_out = entry.part("leave_out")
    return LabelledSet(
        name=name,
        url=entry.text("url"),
        file=entry.text("file"),
        licence=entry.text("licence"),
        hint=entry.text("hint"),
        columns=entry.words("columns"),
        sha256=entry.text("sha256"),
        citation=entry.text("citation"),
        language=entry.text("language"),
        question=entry.text("question"),
        gold=entry.text("gold"),
        golds=_golds_file(name, entry.part("golds")),
        separator=entry.text("separator"),
        answers={column: answers.text(column) for column in answers.values},
        raters=entry.words("raters"),
        scale=entry.text("scale"),
        leave_out={column: leave_out.words(column) for column in leave_out.values},
        literal_quotes=entry.flag("literal_quotes"),
    )


def _golds_file(name: str, entry: Settings) -> PublicFile | None:
    """Return the file with a set's golds; None where they stand with the answers."""
    if not entry.values:
        return None
    return PublicFile(
        name=f"{name} golds",
        url=entry.text("url"),
        file=entry.text("file"),
        licence=entry.text("licence"),
        hint=entry.text("hint"),
        columns=entry.words("columns"),
        sha256=entry.text("sha256"),
    )


def bring_to_form(labelled_set: LabelledSet, folder: Path) -> LabelledRows:
    """Write a set's one form from its files, and return it. Raises UsageError, OSError."""
    table = _read_table(
        folder / labelled_set.file, literal_quotes=labelled_set.literal_quotes
    )
    golds = None
    if labelled_set.golds:
        golds = _read_table(folder / labelled_set.golds.file)
    rows, left_out = labelled_rows(labelled_set, table, golds)
    lines = (f"{json.dumps(row)}\n".encode() for row in rows)
    write_whole(labelled_set.path(folder), lines, SHARED)
    return rows, left_out


def _read_table(path: Path, *, literal_quotes: bool = False) -> Table:
    text = read_text(path)
    if path.suffix in (".json", ".jsonl"):
        return read_json(path, text)
    separator = "\t" if path.suffix == ".tsv" else ","
    return read_csv(path, text, separator, literal=literal_quotes)


def labelled_rows(
    one: LabelledSet, table: Table, golds: Table | None = None
) -> LabelledRows:
    """Return a table's answers as a judged data set has them. Raises UsageError with the row."""
    columns = (
        one.question,
        *one.answers,
        *one.answers.values(),
        *one.raters,
        *one.leave_out,
    )
    elsewhere = {
        cells[one.question] or "": _forms(one, cells)
        for _, cells in (_cells(golds, (one.question, one.gold)) if golds else ())
    }
    rows, left_out = list[Mapping[str, object]](), Counter[str]()
    for row, cells in _cells(table, columns if golds else (*columns, one.gold)):
        question = cells[one.question] or ""
        forms = elsewhere.get(question, []) if golds else _forms(one, cells)
        gone = [name for name, some in one.leave_out.items() if cells[name] in some]
        out = f"{gone[0]} {cells[gone[0]]}" if gone else ""
        for column, label_column in one.answers.items():
            answer = cells[column]
            label = (
                ""
                if out or answer is None
                else _label(one, table, row, cells, label_column)
            )
            lacking = {
                out: bool(out),
                "no answer": answer is None,
                "no label": not label,
                "no question": not without_invisible(question).strip(),
                "no gold": not forms,
            }
            if why := next((what for what, lacks in lacking.items() if lacks), ""):
                left_out[why] += 1
                continue
            made = {
                "question": question,
                "gold": forms,
                "predicted_answer": answer,
                "label": label,
            }
            for number, rater in enumerate(one.raters, 1):
                made[f"label_{number}"] = _label(one, table, row, cells, rater)
            made |= {"language": one.language, "label_source": f"people ({one.name})"}
            rows.append(made)
    if not rows:
        raise UsageError(
            f"{table.path}: no labelled answer in it; left out: {dict(left_out)}"
        )
    return rows, left_out


def _cells(table: Table, columns: Iterable[str]) -> Iterator[tuple[TableRow, Cells]]:
    """Yield the rows with their texts in these columns. Raises UsageError where there is none."""
    if missing := [name for name in columns if normal(name) not in table.names]:
        found = listed(table.names.values())
        what = f"no column {listed(missing)}; found {found}; fetch the file again"
        raise problem(table.path, 1, what)
    for row in table.records:
        cells: dict[str, str | None] = {}
        for column in columns:
            value = row.values.get(normal(column))
            text = str(value).lower() if isinstance(value, bool) else value
            if text is not None and not isinstance(text, str):
                raise table.problem(
                    row, normal(column), f"want text, got {shown(value)}"
                )
            cells[column] = text if text is None else str(text)
        yield row, cells


def _label(
    one: LabelledSet, table: Table, row: TableRow, cells: Cells, column: str
) -> str:
    text = (cells[column] or "").strip()
    if text.casefold() in NO_LABEL:
        return ""
    try:
        if one.scale:
            Scale.parse(one.scale).to_judges_scale(text)
        else:
            read_grade(text)
    except ValueError as error:
        raise table.problem(row, normal(column), str(error)) from None
    return text


def _forms(one: LabelledSet, cells: Cells) -> list[str]:
    text = cells[one.gold] or ""
    forms = text.split(one.separator) if one.separator else [text]
    return list(dict.fromkeys(form.strip() for form in forms if form.strip()))
