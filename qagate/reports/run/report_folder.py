"""The folder of a report: which files are the report's, which run writes them, what was before."""

import gzip
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from qagate.evaluators.core import UsageError
from qagate.evaluators.output import PRIVATE, PRIVATE_FOLDER, write_part, write_whole
from qagate.evaluators.reading import parse_json, read_text

RUN_FILE = "run.json"  # written last: it vouches for the records
RECORDS = "records.jsonl"
PACKED = "records.jsonl.gz"  # the records of a promoted run; ``run.json`` vouches for what is in it
TRANSCRIPTS = "transcripts.jsonl.gz"
PAGE, SUMMARY, GATES = "report.html", "summary.md", "gates.xml"
OTHERS = (RECORDS, PACKED, "results.csv", PAGE, TRANSCRIPTS, SUMMARY, GATES)
GRADED_HEADER = ("Question number", "Classification")
GRADED_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*-graded\.csv")
PREVIOUS = ".previous"
"""What the name of the folder ends with that keeps the last report that decided."""
NO_VERDICT = "NO VERDICT"  # the verdict in the folder of a run that has not ended, or was refused
_LOCK = ".lock"


def previous(folder: Path) -> Path:
    """Return where the last report that decided is kept once another takes its place."""
    whole = Path(os.path.abspath(folder))  # noqa: PTH100  # a link to a folder stays a link
    return whole.parent / f"{whole.name}{PREVIOUS}"


class InputInFolderError(UsageError):
    """A run to compare with lies where the report is to be written."""


def check_apart(
    earlier: Path, folder: Path, role: str, option: str = "--report-dir"
) -> None:
    """Refuse a run to compare with that lies where this report would replace it."""
    if _lies_in(earlier, folder):
        raise InputInFolderError(
            f"--{role}: {earlier} lies in {option}, {folder}, and this report would replace "
            "it; name another folder, or keep that run with `qagate promote`"
        )


def _lies_in(run: Path, folder: Path) -> bool:
    """Return whether a run lies, by links too, in a report folder or its ``previous``."""
    files = [run / RUN_FILE, run / RECORDS] if run.is_dir() else [run]
    homes = [one for one in (folder, previous(folder)) if one.exists()]
    above = (path for file in files for path in file.resolve().parents if path.exists())
    return any(path.samefile(home) for path in above for home in homes)


@contextmanager
def claim(folder: Path) -> Iterator[None]:
    """Take a folder for a run: no other run writes there, and no earlier verdict stays there.

    An earlier report that decided is kept as ``previous``; a UsageError leaves "refused" there.
    Raises UsageError where the folder cannot be written, or another run has it.
    """
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        file = os.open(folder / _LOCK, flags, PRIVATE)
    except OSError as error:
        raise _unwritable(folder, error) from None
    try:
        if not _lock(file):
            raise UsageError(
                f"--report-dir: another run is writing to {folder}; wait for it, or name another"
            )
        started = (
            f"the run that started at {datetime.now(UTC).isoformat(' ', 'seconds')}"
        )
        try:
            _withdraw(folder, f"{started} has written no report")
            yield
        except UsageError:
            _withdraw(folder, f"{started} was refused: exit 4")
            raise
        finally:
            with suppress(OSError):
                (folder / _LOCK).unlink()
                for path in made:
                    path.rmdir()  # OSError where it holds a file
    finally:
        os.close(file)


@contextmanager
def refusing(folder: Path | None, *inputs: Path) -> Iterator[None]:
    """Leave "refused" in place of an earlier verdict if a UsageError ends a command that writes.

    A folder that holds an input stays as it is.
    """
    try:
        yield
    except UsageError as error:
        own = isinstance(error, InputInFolderError)
        if folder and not (own or any(_lies_in(one, folder) for one in inputs)):
            _withdraw(
                folder, "the last command that was to write here was refused: exit 4"
            )
        raise


def _unwritable(folder: Path, error: OSError) -> UsageError:
    return UsageError(
        f"--report-dir: {folder} cannot be written ({error.strerror}); name another"
    )


def _lock(file: int) -> bool:
    """Lock a file for this process, not a forked engine; True on a system without locks."""
    with suppress(ImportError, OSError):
        import fcntl  # noqa: PLC0415  # Windows has none

        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
    return True


def _withdraw(folder: Path, why: str) -> None:
    """Put "no verdict" in place of an earlier report's verdict, wherever people or CI look."""
    if not any((folder / name).exists() for name in (RUN_FILE, PAGE, SUMMARY, GATES)):
        return
    if problem := keep_decided(folder):
        raise UsageError(
            f"--report-dir: {problem}; move it away, or name another folder"
        )
    line = f"{NO_VERDICT}: {why}"
    texts = {
        GATES: (
            '<?xml version="1.0" encoding="utf-8"?>\n<testsuites name="qagate" tests="1" '
            'failures="0" errors="1" time="0"><testsuite name="run" tests="1" failures="0" '
            'errors="1" skipped="0" time="0"><testcase classname="run" name="the run ends with '
            f'exit code 0" time="0"><error message="{line}" type="{NO_VERDICT}">{line}</error>'
            "</testcase></testsuite></testsuites>\n"
        ),
        SUMMARY: f"**{line}.**\n",
        PAGE: f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{NO_VERDICT}</title>'
        f"<p>{line}.</p></html>\n",
        RUN_FILE: json.dumps(
            {"verdict": NO_VERDICT, "decision": {"code": None, "line": line}}
        )
        + "\n",
    }
    try:
        for name, text in texts.items():
            write_part(folder / name, [text.encode()]).replace(folder / name)
    except OSError as error:
        raise _unwritable(folder, error) from None


def keep_decided(folder: Path) -> str:
    """Keep a report that decided as ``previous``; return why it could not be, or nothing."""
    to = previous(folder)
    try:
        run: Any = parse_json(read_text(folder / RUN_FILE))
        if (
            isinstance(run, dict)
            and run.get("verdict") in ("PASS", "FAIL")
            and run.get("gates")
        ):
            keep(folder, to)
    except OSError as error:
        return f"{to}: the report before cannot be kept there ({error.strerror})"
    except (UsageError, ValueError, RecursionError):
        return ""
    return ""


def keep(folder: Path, to: Path, *, packed: bool = False) -> None:
    """Keep the report in ``to`` as well; ``packed``: what a comparison needs. Raises OSError."""
    to.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
    if to.samefile(folder):
        return
    for path in (to / RUN_FILE, *report_files(to)):
        path.unlink(missing_ok=True)
    files = report_files(folder)
    if packed and folder / RECORDS in files:
        write_whole(
            to / PACKED, [gzip.compress((folder / RECORDS).read_bytes(), mtime=0)]
        )
        files = []
    for path in (*files, folder / RUN_FILE):
        if not packed or path.name in (PACKED, RUN_FILE):
            try:  # the same file, which a later report replaces but never writes into
                (to / path.name).hardlink_to(path)
            except OSError:  # a file system without links
                shutil.copy2(path, to / path.name)


def report_files(folder: Path) -> list[Path]:
    """Return the files of the report that is there, all but ``run.json``."""
    return [*filter(Path.is_file, map(folder.joinpath, OTHERS)), *graded_files(folder)]


def graded_files(folder: Path) -> Iterator[Path]:
    """Yield the files of letters that are ours, as their first line says."""
    header = ",".join(GRADED_HEADER)
    for path in folder.glob("*-graded.csv"):
        if (
            GRADED_NAME.fullmatch(path.name)
            and path.is_file()
            and not path.is_symlink()
        ):
            with path.open("rb") as file:
                line = file.readline(len(header) + 6).decode("ascii", "replace")
            if line.replace('"', "").rstrip("\r\n") == header:
                yield path
