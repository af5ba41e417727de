"""The decisions that are known here: in report folders, among promoted runs and in the ledger."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from qagate.evaluators.core import QAError, UsageError
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.ledger.place import LedgerPlace
from qagate.evaluators.typed_data import encode
from qagate.reports.run.baselines import promoted
from qagate.reports.run.decisions import Known
from qagate.reports.run.json_data import dump
from qagate.reports.run.report import Decided
from qagate.reports.run.report_folder import RUN_FILE, previous
from qagate.reports.run.run_json import load_report

OUT = Path("reports", "out")
"""Where a run writes its report unless it is told otherwise."""
DECISION = "decision"
"""The kind of a ledger's document that says how a run ended."""


def decisions_in_folders(here: Path, report_dir: Path = OUT) -> tuple[Decided, ...]:
    """Return the decisions of the promoted runs and the last reports, oldest first."""
    known = Known()
    last = here / report_dir
    for folder in (*promoted(here), last, previous(last)):
        if (folder / RUN_FILE).is_file():
            with suppress(UsageError):  # no report of a run that ended
                known.add(load_report(folder, items=False).decided)
    return known.decisions


def decisions_in(ledger: Ledger) -> tuple[Decided, ...]:
    """Return the decisions that a ledger keeps, oldest first. Raises LedgerError."""
    known = Known()
    for decided in ledger.documents_as(DECISION, Decided).values():
        known.add(decided)
    return known.decisions


def known_here(
    here: Path, report_dir: Path, ledger: LedgerPlace
) -> tuple[Decided, ...]:
    """Return the decisions that folders and ledger know, oldest first."""
    in_folders = decisions_in_folders(here, report_dir)
    return together(in_folders, decisions_at(ledger))


def decisions_at(ledger: LedgerPlace) -> tuple[Decided, ...]:
    """Return the decisions of the ledger at a place, oldest first; none if it cannot be read."""
    with suppress(QAError), Ledger(ledger, read_only=True) as opened:
        return decisions_in(opened)
    return ()


def together(*parts: Iterable[Decided]) -> tuple[Decided, ...]:
    """Return the decisions of all these, each once, oldest first."""
    known = Known()
    for part in parts:
        for decided in part:
            known.add(decided)
    return known.decisions


def document_of(decided: Decided) -> str:
    """Return a decision as a ledger keeps it."""
    return dump(encode(decided))
