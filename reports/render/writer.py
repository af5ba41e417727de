"""The one writer: every report file whole or not at all, and ``run.json`` last."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from evaluators.output import PRIVATE_FOLDER, UnwrittenError, write_part
from reports.render import exports, html, markdown
from reports.run import run_json
from reports.run.report import Report
from reports.run.report_folder import RECORDS, RUN, TRANSCRIPTS, graded_files
from reports.run.transcripts import Source, keys_of, packed

OF_ITEMS: Mapping[str, Callable[["Files"], Iterable[str]]] = {
    RECORDS: lambda files: run_json.records(files.report),
    "results.csv": lambda files: exports.results(files.report),
    "report.html": lambda files: (html.render(files.report, files.transcripts),),
}
"""The files that hold every item, as pieces of text."""

OF_FIGURES: Mapping[str, Callable[[Report], str]] = {
    "summary.md": markdown.render,
    "gates.xml": exports.junit,
}
FORMATS: Mapping[str, tuple[str, ...]] = {
    "html": ("report.html",),
    "md": ("summary.md",),
    "junit": ("gates.xml",),
    "csv": ("results.csv",),
    "json": (RECORDS, TRANSCRIPTS, RUN),
}
"""The files behind each word for a format; ``csv`` has one more for each graded slice."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a report in these formats. Each pass over it renders them anew.

    A pass yields each name and its text in pieces, to be read before the next: 50,000 items are
    never held whole. Records come first, and last ``run.json``, which vouches for them.
    """

    report: Report
    formats: Iterable[str] = tuple(FORMATS)
    transcripts: Source | None = None

    def __iter__(self) -> Iterator[tuple[str, Iterable[str | bytes]]]:
        report = self.report
        wanted = frozenset(name for word in self.formats for name in FORMATS[word])
        vouched = sha256()

        def digested(piece: str) -> str:
            vouched.update(piece.encode())
            return piece

        for name in (name for name in OF_ITEMS if name in wanted):
            pieces = OF_ITEMS[name](self)
            yield name, map(digested, pieces) if name == RECORDS else pieces
        if TRANSCRIPTS in wanted and self.transcripts and (keys := keys_of(report.records)):
            yield TRANSCRIPTS, packed(self.transcripts(keys))
        yield from ((name, (f(report),)) for name, f in OF_FIGURES.items() if name in wanted)
        if "results.csv" in wanted:
            yield from ((name, (text,)) for name, text in exports.graded(report).items())
        if RUN in wanted:
            yield RUN, (run_json.render(report, vouched.hexdigest()),)


class WriteError(UnwrittenError):
    """The report could not be written. ``needed`` is its size in bytes."""

    def __init__(self, path: Path, needed: int, error: OSError) -> None:
        reason = error.strerror or type(error).__name__
        super().__init__(
            f"{path}: the report cannot be written ({reason}); it needs {needed:,} bytes: "
            "free the space, or choose another folder (--report-dir, --to)"
        )
        self.path = path
        self.needed = needed


def write(report: Report, folder: Path, transcripts: Source | None = None) -> tuple[Path, ...]:
    """Write every report file into ``folder`` and return their paths, ``run.json`` last.

    Each file is complete before the first takes its place: a full disk harms none. WriteError.
    """
    return write_files(Files(report, transcripts=transcripts), folder, whole=True)


def write_files(
    files: Iterable[tuple[str, Iterable[str | bytes]]], folder: Path, *, whole: bool = False
) -> tuple[Path, ...]:
    """Write these files as ``write`` does, as a ``whole`` report or a part. Raises WriteError."""
    parts: dict[str, Path] = {}
    try:
        folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        for name, pieces in files:
            parts[name] = write_part(folder / name, map(_raw, pieces))
        *others, last = parts
        for name in others:
            parts[name].replace(folder / name)
        if whole:  # take away what another run left: transcripts, letters of slices not run now
            kept = {name.casefold() for name in parts}
            for path in (*filter(Path.is_file, [folder / TRANSCRIPTS]), *graded_files(folder)):
                if path.name.casefold() not in kept:
                    path.unlink()
        parts[last].replace(folder / last)
    except OSError as error:
        needed = sum(len(_raw(piece)) for _, pieces in files for piece in pieces)
        raise WriteError(folder, needed, error) from error
    finally:
        for part in parts.values():
            with suppress(OSError):
                part.unlink(missing_ok=True)
    return tuple(folder / name for name in parts)


def _raw(piece: str | bytes) -> bytes:
    return piece if isinstance(piece, bytes) else piece.encode()


def append_summary(report: Report, path: Path) -> str:
    """Append ``summary.md`` to CI's page; return why that failed, which changes no exit code."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(markdown.render(report) + "\n")
    except OSError as error:
        return f"{path}: the summary cannot be appended ({error.strerror}); the report is complete"
    return ""
