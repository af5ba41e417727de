"""Documents beside the replies: texts by kind and key, sealed and signed as rows are.

What is stored is the checksum, with its signature behind it, a space, and the text as JSON in
ASCII: any text comes back exactly, and none that somebody else wrote is believed.
"""

import json
from typing import NamedTuple

from evaluators.ledger.database import SCHEMA, SIGNED, StoredRow
from evaluators.ledger.signing import Signer
from evaluators.sent import REQUEST, TEXT
from evaluators.text import canonical, digest

KEEP = (
    "INSERT INTO documents (kind, key, text) VALUES (?, ?, ?) "
    "ON CONFLICT (kind, key) DO UPDATE SET text = excluded.text"
)
ADD = "INSERT INTO documents (kind, key, text) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
FORGET = "DELETE FROM documents WHERE kind = ? AND key = ?"
FIND = "SELECT kind, key, text FROM documents WHERE kind = ? AND key = ?"
SOME = "SELECT kind, key, text FROM documents WHERE kind = ? AND key IN"
ALL_OF_KIND = "SELECT kind, key, text FROM documents WHERE kind = ? ORDER BY key"
ALL = "SELECT kind, key, text FROM documents ORDER BY kind, key"


class StoredDocument(NamedTuple):
    """A document as it is in the table: ``text`` is sealed."""

    kind: str
    key: str
    text: str

    def opened(self, signer: Signer) -> str | None:
        """Return the text; None where it is damaged or lacks the signature it should have.

        What was sent needs neither: its key is the hash of what it says.
        """
        if self.kind in (REQUEST, TEXT):
            return self.text
        given, _, quoted = self.text.partition(" ")
        row = _row(self.kind, self.key, quoted)
        if given.partition(SIGNED)[0] != row.checksum:
            return None
        return json.loads(quoted) if signer.accepts(row._replace(checksum=given)) else None


def seal_document(kind: str, key: str, text: str, signer: Signer) -> StoredDocument:
    """Return a document as it is stored; what was sent without a seal."""
    if kind in (REQUEST, TEXT):
        return StoredDocument(kind, key, text)
    row = signer.signed(_row(kind, key, canonical(text)))
    return StoredDocument(kind, key, f"{row.checksum} {row.reply}")


def _row(kind: str, key: str, quoted: str) -> StoredRow:
    """Return what is signed of a document. No reply is a JSON string, so none is mistaken for one.

    A time of 0 stands for none: a document may be replaced.
    """
    return StoredRow(key, SCHEMA, 0.0, kind, quoted, digest([kind, key, quoted]))
