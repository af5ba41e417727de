"""The ledger: every reply that was paid for, kept before it is used.

A reply has one row, found by the hash of its whole request and the run that asked. The row
never changes: the first reply of a run is kept, beside those of other runs. Values are JSON
text with a checksum; nothing is unpickled or evaluated.

``place`` reads where a ledger is. ``reply_store`` is what calls use, and ``kept`` says which
replies count. ``rows`` seals and signs what is stored, ``store`` says what a database has to
do, and ``sqlite`` is the one in a file. ``upkeep`` counts rows, carries them elsewhere and
removes them.
"""

from qagate.evaluators.ledger.reply_store import Ledger
from qagate.evaluators.ledger.rows import SCHEMA, KeptReply, LedgerError, PaidReply

__all__ = ["SCHEMA", "KeptReply", "Ledger", "LedgerError", "PaidReply"]
