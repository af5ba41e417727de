"""Every reply that was paid for, kept: SQLite in WAL mode, one row a request, committed first.

A row is found by the hash of its whole request and is never changed: the first reply stands.
Values are JSON text with a checksum; nothing is unpickled or evaluated.
"""

from evaluators.ledger.rows import SCHEMA, LedgerError, Row
from evaluators.ledger.store import Ledger

__all__ = ["SCHEMA", "Ledger", "LedgerError", "Row"]
