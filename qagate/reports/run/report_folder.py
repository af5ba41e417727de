"""The folder of a report: which files are the report's, which run writes them, what was before.

A run claims the folder before anything can fail: it locks it, and marks the report that is there
with its own command. A command that is refused leaves that report with the mark, so that nobody
takes its verdict for the later command's; in CI, where people look at nothing else, "no verdict"
takes its place. Once a run begins, "no verdict" stands there until its own report does. A report
that decided (PASS or FAIL) is kept beside the folder, as ``FOLDER.previous``.
"""

import gzip
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from qagate.evaluators.core import UsageError
from qagate.evaluators.output import PRIVATE, PRIVATE_FOLDER, write_part, write_whole
from qagate.evaluators.reading import parse_json, read_text
from qagate.evaluators.text import mask

RUN_FILE = "run.json"
"""Written last: it vouches for the records."""
RECORDS = "records.jsonl"
LABELS = "labels.jsonl"
READINGS = "readings.jsonl"
PACKED = {name: f"{name}.gz" for name in (RECORDS, LABELS, READINGS)}
"""The names of these files in a promoted run; ``run.json`` vouches for what is in them."""
JUDGE_REPLIES = "grades.jsonl.gz"
"""The judge's replies behind all grades: a later run pays for none of them twice."""
TRANSCRIPTS = "transcripts.jsonl.gz"
PAGE, SUMMARY, GATES = "report.html", "summary.md", "gates.xml"
OTHERS = (
    *PACKED,
    *PACKED.values(),
    JUDGE_REPLIES,
    "results.csv",
    PAGE,
    TRANSCRIPTS,
    SUMMARY,
    GATES,
)
"""The files of a report beside ``run.json``."""
GRADED_HEADER = ("Question number", "Classification")
GRADED_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*-graded\.csv")
PREVIOUS = ".previous"
"""What the name of the folder ends with that keeps the last report that decided."""
NO_VERDICT = "NO VERDICT"
"""The verdict in the folder of a run that has not ended, or was refused."""
MARK = "later-command.json"
"""Beside a report: a command that came after it, and wrote no report of its own."""
CI_VARIABLE = "CI"
_LOCK = ".lock"


def folder_of(run: Path) -> Path:
    """Return the folder of a run that is given by it or by its ``run.json``."""
    return run if run.is_dir() else run.parent


def previous(folder: Path) -> Path:
    """Return where the last report that decided is kept once another takes its place."""
    whole = Path(os.path.abspath(folder))  # noqa: PTH100  # a link to a folder stays a link
    return whole.parent / f"{whole.name}{PREVIOUS}"


# A run to compare with must not lie where the report is written


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
    files = [run]
    if run.is_dir():
        files = [run / RUN_FILE, run / RECORDS]
    for place in (folder, previous(folder)):
        if not place.exists():
            continue
        for file in files:
            for parent in file.resolve().parents:
                if parent.exists() and parent.samefile(place):
                    return True
    return False


# The claim


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedFolder:
    """A folder that no other run writes to."""

    path: Path
    started: str
    """When the claim began, as people read it."""

    def begin(self) -> None:
        """Put "no verdict" in place of the report that is there. Raises UsageError."""
        why = f"the run that started at {self.started} has written no report"
        _withdraw(self.path, why)


@contextmanager
def claim(folder: Path, command: str) -> Iterator[ClaimedFolder]:
    """Take a folder for a run: no other run writes there, and an earlier report is marked.

    An earlier report that decided is kept as ``previous`` once the run begins. Raises UsageError
    where the folder cannot be written, or another run has it.
    """
    try:
        new_folders = [path for path in (folder, *folder.parents) if not path.exists()]
    except OSError as error:  # one of them cannot be entered
        raise _unwritable(folder, error) from None
    lock_file = _open_lock(folder)
    try:
        if not _lock(lock_file):
            raise UsageError(
                f"--report-dir: another run is writing to {folder}; wait for it, or name another"
            )
        now = datetime.now(UTC).isoformat(" ", "seconds")
        claimed = ClaimedFolder(path=folder, started=now)
        try:
            mark(folder, command)
            yield claimed
        except UsageError:
            _leave_marked(folder, f"the run that started at {now} was refused: exit 4")
            raise
        except BaseException:
            claimed.begin()
            raise
        finally:
            with suppress(OSError):
                (folder / _LOCK).unlink()
                for path in new_folders:
                    path.rmdir()  # OSError where it holds a file
    finally:
        os.close(lock_file)


def mark(folder: Path, command: str) -> None:
    """Mark the report in a folder: a later command has written none. Raises UsageError."""
    if not (folder / RUN_FILE).is_file():
        return
    now = datetime.now(UTC).isoformat(" ", "seconds")
    content = json.dumps({"command": command, "at": now}, ensure_ascii=False)
    try:
        write_whole(folder / MARK, [content.encode("utf-8", "replace")])
    except OSError as error:
        raise _unwritable(folder, error) from None


def later_command(folder: Path) -> str:
    """Return the command that came after a report and wrote none; empty without one."""
    try:
        data: Any = parse_json(read_text(folder / MARK))
    except (UsageError, ValueError, RecursionError):
        return "a command" if (folder / MARK).exists() else ""
    command = data.get("command") if isinstance(data, dict) else None
    return mask(str(command)) if command else "a command"


def _leave_marked(folder: Path, why: str) -> None:
    """Leave an earlier report with its mark; in CI let "no verdict" take its place."""
    is_ci = os.environ.get(CI_VARIABLE, "").lower() not in ("", "0", "false")
    if is_ci:
        _withdraw(folder, why)


def _open_lock(folder: Path) -> int:
    """Make the folder and open its lock; return the file's descriptor. Raises UsageError."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    try:
        folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        return os.open(folder / _LOCK, flags, PRIVATE)
    except OSError as error:
        raise _unwritable(folder, error) from None


def _lock(file: int) -> bool:
    """Lock a file for this process, not a forked engine; True on a system without locks."""
    with suppress(ImportError, OSError):
        import fcntl  # noqa: PLC0415  # Windows has none

        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
    return True


@contextmanager
def refusing(folder: Path | None, *inputs: Path) -> Iterator[None]:
    """Mark an earlier report if a UsageError ends a command that was to write there.

    A folder that holds an input stays as it is.
    """
    try:
        yield
    except UsageError as error:
        if folder is not None and not isinstance(error, InputInFolderError):
            holds_input = any(_lies_in(path, folder) for path in inputs)
            if not holds_input:
                mark(folder, shlex.join(sys.argv))
                why = "the last command that was to write here was refused: exit 4"
                _leave_marked(folder, why)
        raise


def _unwritable(folder: Path, error: OSError) -> UsageError:
    return UsageError(
        f"--report-dir: {folder} cannot be written ({error.strerror}); name another"
    )


# No verdict


def _withdraw(folder: Path, why: str) -> None:
    """Put "no verdict" in place of an earlier report's verdict, wherever people or CI look.

    Raises UsageError where the files cannot be written, or a report cannot be kept.
    """
    if not any((folder / name).exists() for name in (RUN_FILE, PAGE, SUMMARY, GATES)):
        return
    problem = keep_decided(folder)
    if problem:
        raise UsageError(
            f"--report-dir: {problem}; move it away, or name another folder"
        )
    try:
        for name, text in _files_without_verdict(f"{NO_VERDICT}: {why}").items():
            write_part(folder / name, [text.encode()]).replace(folder / name)
        (folder / MARK).unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from None


def _files_without_verdict(line: str) -> Mapping[str, str]:
    """Return the texts of the files that say this line in place of a verdict, by name."""
    junit = (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<testsuites name="qagate" tests="1" failures="0" errors="1" time="0">'
        '<testsuite name="run" tests="1" failures="0" errors="1" skipped="0" time="0">'
        '<testcase classname="run" name="the run ends with exit code 0" time="0">'
        f'<error message="{line}" type="{NO_VERDICT}">{line}</error>'
        "</testcase></testsuite></testsuites>\n"
    )
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"<title>{NO_VERDICT}</title><p>{line}.</p></html>\n"
    )
    run = {"verdict": NO_VERDICT, "decision": {"code": None, "line": line}}
    return {
        GATES: junit,
        SUMMARY: f"**{line}.**\n",
        PAGE: page,
        RUN_FILE: json.dumps(run) + "\n",
    }


# What is kept


def keep_decided(folder: Path) -> str:
    """Keep a report that decided as ``previous``; return why it could not be, or nothing."""
    kept_folder = previous(folder)
    try:
        if _has_decided(folder):
            keep(folder, kept_folder)
    except OSError as error:
        return (
            f"{kept_folder}: the report before cannot be kept there ({error.strerror})"
        )
    except (UsageError, ValueError, RecursionError):
        return ""  # what lies there is no report
    return ""


def _has_decided(folder: Path) -> bool:
    """Return whether a folder's ``run.json`` says PASS or FAIL by gates. Raises as its readers."""
    run: Any = parse_json(read_text(folder / RUN_FILE))
    if not isinstance(run, dict):
        return False
    return run.get("verdict") in ("PASS", "FAIL") and bool(run.get("gates"))


def keep(folder: Path, to: Path, *, packed: bool = False) -> None:
    """Keep the report in ``to`` as well; ``packed``: what a comparison needs. Raises OSError."""
    to.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
    if to.samefile(folder):
        return
    for path in (to / RUN_FILE, *report_files(to)):
        path.unlink(missing_ok=True)
    files = report_files(folder)
    if packed:
        for name, packed_name in PACKED.items():
            if folder / name in files:
                content = (folder / name).read_bytes()
                write_whole(to / packed_name, [gzip.compress(content, mtime=0)])
                files.remove(folder / name)
        kept_names = {*PACKED.values(), JUDGE_REPLIES}
        files = [path for path in files if path.name in kept_names]
    for path in (*files, folder / RUN_FILE):
        _keep_file(path, to / path.name)


def _keep_file(path: Path, copy: Path) -> None:
    try:
        # The same file: a later report replaces it, but never writes into it.
        copy.hardlink_to(path)
    except OSError:  # a file system without links
        shutil.copy2(path, copy)


def report_files(folder: Path) -> list[Path]:
    """Return the files of the report that is there, all but ``run.json``."""
    files = []
    for name in OTHERS:
        path = folder / name
        if path.is_file():
            files.append(path)
    return [*files, *graded_files(folder)]


def graded_files(folder: Path) -> Iterator[Path]:
    """Yield the files of letters that are ours, as their first line says."""
    for path in folder.glob("*-graded.csv"):
        is_file = path.is_file() and not path.is_symlink()
        if GRADED_NAME.fullmatch(path.name) and is_file and _has_graded_header(path):
            yield path


def _has_graded_header(path: Path) -> bool:
    header = ",".join(GRADED_HEADER)
    room = len('""""\r\n')  # each of the two names may stand in quotes
    with path.open("rb") as file:
        line = file.readline(len(header) + room).decode("ascii", "replace")
    return line.replace('"', "").rstrip("\r\n") == header
