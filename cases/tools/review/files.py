"""Putting a sheet into a folder: the form and its CSV twin, each whole or not at all."""

from pathlib import Path

from cases.tools.review import form, table
from cases.tools.review.sheet import Sheet
from evaluators.output import write_texts


def write_sheet(sheet: Sheet, folder: Path) -> tuple[Path, Path]:
    """Write ``<name>.html`` and ``<name>.csv`` into a folder and return their paths.

    Raises QAError where the folder cannot take them.
    """
    page, twin = folder / f"{sheet.name}.html", folder / f"{sheet.name}.csv"
    write_texts([(page, form.render(sheet)), (twin, table.render(sheet))])
    return page, twin
