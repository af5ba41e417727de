"""The ledger: every reply that was paid for, kept before it is used.

A reply has one row, found by the hash of its whole request. The row never changes: the first
reply is kept. Values are JSON text with a checksum; nothing is unpickled or evaluated.

``place`` reads where a ledger is, and ``reply_store`` is what calls use. ``rows`` seals and
signs what is stored, ``store`` says what a database has to do, and ``sqlite`` is the one in
a file. ``upkeep`` counts rows, carries them elsewhere and removes them.
"""

from qagate.evaluators.ledger.reply_store import Ledger
from qagate.evaluators.ledger.rows import SCHEMA, LedgerError, PaidReply

__all__ = ["SCHEMA", "Ledger", "LedgerError", "PaidReply"]
