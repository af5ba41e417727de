"""Putting a sheet into a folder: the form and its CSV twin, each whole or not at all."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from cases.tools.review import form, table
from cases.tools.review.sheet import Sheet
from evaluators.core import QAError


def write_sheet(sheet: Sheet, folder: Path) -> tuple[Path, Path]:
    """Write ``<name>.html`` and ``<name>.csv`` into a folder and return their paths.

    Raises QAError where the folder cannot take them.
    """
    page, twin = folder / f"{sheet.name}.html", folder / f"{sheet.name}.csv"
    put([(page, form.render(sheet)), (twin, table.render(sheet))])
    return page, twin


def put(texts: Iterable[tuple[Path, str]]) -> None:
    """Write texts beside their places first, then rename. Raises QAError."""
    for path, text in texts:
        part = path.with_name(f".{path.name}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.unlink(missing_ok=True)
            with part.open("xb") as file:  # made anew: a link under the name is not followed
                file.write(text.encode("utf-8", "backslashreplace"))
            part.replace(path)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            msg = f"{path}: cannot be written ({error.strerror or error}); name another place"
            raise QAError(msg) from None
