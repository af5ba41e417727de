"""Review by people: a sheet of items goes out as a form and as CSV, and verdicts come back.

``write_sheet`` writes both files, ``assign`` says who is to see which items, ``read_sheets`` reads
what came back, ``agreement`` measures how far the reviewers agree, ``settle`` makes one outcome an
item of it. Reports and the dataset builder both use it.
"""

from cases.tools.review.agreement import Agreement, Figure, PairAgreement, agreement
from cases.tools.review.assign import Duty, assign, draw, sheets_for
from cases.tools.review.files import write_sheet
from cases.tools.review.reading import Review, read_sheets
from cases.tools.review.settle import AGREED, CONFLICT, UNREVIEWED, Settled, settle
from cases.tools.review.sheet import UNCLEAR, Choice, Field, Sheet, SheetItem, choice_set

__all__ = [
    "AGREED",
    "CONFLICT",
    "UNCLEAR",
    "UNREVIEWED",
    "Agreement",
    "Choice",
    "Duty",
    "Field",
    "Figure",
    "PairAgreement",
    "Review",
    "Settled",
    "Sheet",
    "SheetItem",
    "agreement",
    "assign",
    "choice_set",
    "draw",
    "read_sheets",
    "settle",
    "sheets_for",
    "write_sheet",
]
