"""The CSV twin of the form: the same items for a spreadsheet, with columns to fill in."""

import csv
import io

from cases.tools.review.sheet import Sheet, SheetItem
from cases.tools.review.texts import texts_in
from cases.tools.review.visible import cell

BOM = "\ufeff"  # without it a spreadsheet takes UTF-8 for the local code page
BETWEEN = " | "
TO_EDIT = "to_edit"


def render(sheet: Sheet) -> str:
    """Return the CSV: item, language, its texts, why it is here, the verdicts, and empty columns.

    The columns to fill in are verdict, edited, comment and reviewer.
    """
    titles = list(dict.fromkeys(f"{one.title}" for item in sheet.items for one in item.fields))
    edits = [TO_EDIT] if any(item.edit is not None for item in sheet.items) else []
    words = {item.language: texts_in(item.language) for item in sheet.items}
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")
    header = ["item", "language", *(f"shown: {cell(title)}" for title in titles), "why", *edits]
    writer.writerow([*header, "choices", "verdict", "edited", "comment", "reviewer"])
    for item in sheet.items:
        texts = {one.title: one.text for one in item.fields}
        row = [item.id, item.language, *(texts.get(title, "") for title in titles)]
        row.append(words[item.language].why(item.reasons))
        row += [item.edit or ""] if edits else []
        row += [_choices(sheet, item), "", "", "", sheet.reviewer]
        writer.writerow(map(cell, row))
    return BOM + out.getvalue()


def _choices(sheet: Sheet, item: SheetItem) -> str:
    return BETWEEN.join(one.value for one in sheet.choices[item.choices])
