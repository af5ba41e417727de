"""The one writer: every report file whole or not at all, and ``run.json`` last."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from evaluators.output import PRIVATE_FOLDER, UnwrittenError, write_part
from reports.render.csv_files import GRADED_HEADER, GRADED_NAME
from reports.render.markdown import render as render_summary
from reports.render.report_files import Files
from reports.report import Report


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


def write(report: Report, folder: Path) -> tuple[Path, ...]:
    """Write every report file into ``folder`` and return their paths, ``run.json`` last.

    All files are complete on disk before the first takes its place, so a full disk leaves the
    report of an earlier run as it was. Raises WriteError.
    """
    return write_files(Files(report), folder, whole=True)


def write_files(
    files: Iterable[tuple[str, Iterable[str]]], folder: Path, *, whole: bool = False
) -> tuple[Path, ...]:
    """Write these files as ``write`` does; ``whole`` says that they are all there are of a report.

    ``files`` is passed over again where they cannot be written, to say what they need. Raises
    WriteError.
    """
    parts: dict[str, Path] = {}
    try:
        folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        for name, pieces in files:
            parts[name] = write_part(folder / name, (piece.encode() for piece in pieces))
        *others, last = parts
        for name in others:
            parts[name].replace(folder / name)
        if whole:
            _remove_stale(folder, parts)
        parts[last].replace(folder / last)
    except OSError as error:
        needed = sum(len(piece.encode()) for _, pieces in files for piece in pieces)
        raise WriteError(folder, needed, error) from error
    finally:
        for part in parts.values():
            with suppress(OSError):
                part.unlink(missing_ok=True)
    return tuple(folder / name for name in parts)


def _remove_stale(folder: Path, files: Iterable[str]) -> None:
    """Take away letters that another run left for a slice that did not run this time."""
    kept = {name.casefold() for name in files}
    header = ",".join(GRADED_HEADER).encode()
    for path in folder.glob("*-graded.csv"):
        named = GRADED_NAME.fullmatch(path.name) and path.name.casefold() not in kept
        if named and path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                ours = file.readline(len(header) + 2).rstrip(b"\r\n") == header
            if ours:
                path.unlink()


def append_summary(report: Report, path: Path) -> str:
    """Append ``summary.md`` to a page of the CI system; return why that failed, or nothing.

    The report itself stands by then, so a failure here is said and changes no exit code.
    """
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(render_summary(report) + "\n")
    except OSError as error:
        return f"{path}: the summary cannot be appended ({error.strerror}); the report is complete"
    return ""
