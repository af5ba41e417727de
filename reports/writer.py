"""The one writer: every report file whole or not at all, and ``run.json`` last."""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from evaluators.core import QAError
from reports.render import render_all
from reports.render.tables import GRADED_HEADER, GRADED_NAME
from reports.report import Report


class WriteError(QAError):
    """The report could not be written. ``needed`` is its size in bytes."""

    def __init__(self, path: Path, needed: int, error: OSError) -> None:
        reason = error.strerror or type(error).__name__
        super().__init__(
            f"{path}: the report cannot be written ({reason}); it needs {needed:,} bytes: "
            "free the space, or choose another folder with --report-dir"
        )
        self.path = path
        self.needed = needed


def write(report: Report, folder: Path, summary_to: Path | None = None) -> tuple[Path, ...]:
    """Write every report file into ``folder`` and return their paths, ``run.json`` last.

    ``summary_to`` names a file that ``summary.md`` is appended to ($GITHUB_STEP_SUMMARY). All
    files are complete on disk before the first takes its place, so a full disk leaves the report
    of an earlier run as it was. Raises WriteError.
    """
    files = {name: text.encode() for name, text in render_all(report).items()}
    needed = sum(map(len, files.values()))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _place(folder, files)
    except OSError as error:
        raise WriteError(folder, needed, error) from error
    if summary_to is not None:
        _append(summary_to, files["summary.md"])
    return tuple(folder / name for name in files)


def _place(folder: Path, files: Mapping[str, bytes]) -> None:
    parts = {name: folder / f".{name}.part" for name in files}
    try:
        for name, content in files.items():
            _store(parts[name], content)
        *others, last = files
        for name in others:
            parts[name].replace(folder / name)
        _remove_stale(folder, files)
        parts[last].replace(folder / last)
    finally:
        for part in parts.values():
            with suppress(OSError):
                part.unlink(missing_ok=True)


def _store(path: Path, content: bytes) -> None:
    """Made anew and exclusively: a link that waits under the name is not followed."""
    path.unlink(missing_ok=True)
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _remove_stale(folder: Path, files: Iterable[str]) -> None:
    """Take away letters that another run left for a slice that did not run this time."""
    kept = {name.casefold() for name in files}
    for path in folder.glob("*-graded.csv"):
        if path.name.casefold() not in kept and _is_ours(path):
            path.unlink()


def _is_ours(path: Path) -> bool:
    if not GRADED_NAME.fullmatch(path.name) or path.is_symlink() or not path.is_file():
        return False
    header = ",".join(GRADED_HEADER).encode()
    with path.open("rb") as file:
        return file.readline(len(header) + 2).rstrip(b"\r\n") == header


def _append(path: Path, summary: bytes) -> None:
    try:
        with path.open("ab") as file:
            file.write(summary + b"\n")
    except OSError as error:
        raise WriteError(path, len(summary) + 1, error) from error
