"""Every reply that was paid for: SQLite in WAL mode, one row a request, committed at once.

A row is found by the hash of its whole request and is never changed: the first reply is kept.
Values are JSON text with a checksum; nothing is unpickled or evaluated.
"""

from evaluators.ledger.database import SCHEMA, LedgerError, PaidReply
from evaluators.ledger.reply_store import Ledger

__all__ = ["SCHEMA", "Ledger", "LedgerError", "PaidReply"]
