"""Every reply that was paid for: one row a request, committed before it is used.

A row is found by the hash of its whole request and never changes: the first reply is kept. Values
are JSON text with a checksum; nothing is unpickled or evaluated.
"""

from qagate.evaluators.ledger.reply_store import Ledger
from qagate.evaluators.ledger.rows import SCHEMA, LedgerError, PaidReply

__all__ = ["SCHEMA", "Ledger", "LedgerError", "PaidReply"]
