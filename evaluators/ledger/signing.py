"""Rows signed with the secret in QA_LEDGER_KEY: without it nobody can write a reply that is used.

A signature stands behind the row's checksum, after a colon. It is HMAC-SHA-256 (RFC 2104) over
everything in the row, so that no part of a row can be put into another.
"""

import hmac
import os
from typing import Self

from evaluators.core import UsageError
from evaluators.ledger.database import SIGNED, StoredRow
from evaluators.secrets import Key
from evaluators.text import canonical

VARIABLE = "QA_LEDGER_KEY"
SHORTEST = 32  # characters: what is shorter can be guessed from a row that it signed


class Signer:
    """Signs rows and knows its own signatures. Without a secret it signs none and accepts all.

    The secret is a local variable of no frame, so that no traceback can show it.
    """

    def __init__(self, key: Key | None = None) -> None:
        self._key = key

    @classmethod
    def of_environment(cls) -> Self:
        """Return the signer with this environment's secret, if it has one.

        Raises UsageError, without the value, for one that could be guessed.
        """
        if VARIABLE not in os.environ:
            return cls()
        if len(os.environ[VARIABLE]) < SHORTEST:
            raise UsageError(
                f"{VARIABLE}: empty or too short; at least {SHORTEST} characters are needed, such "
                "as `openssl rand -hex 32` makes; unset it to use a ledger without signatures"
            )
        return cls(Key(os.environ[VARIABLE]))

    def signed(self, row: StoredRow) -> StoredRow:
        """Return the row with its signature; as it is where there is no secret."""
        if self._key is None:
            return row
        return row._replace(checksum=f"{row.checksum}{SIGNED}{self._signature(row, self._key)}")

    def accepts(self, row: StoredRow) -> bool:
        """Return whether this secret signed the row as it stands; True where there is none."""
        if self._key is None:
            return True
        given = row.checksum.partition(SIGNED)[2].encode("utf-8", "replace")
        return hmac.compare_digest(given, self._signature(row, self._key).encode("ascii"))

    def _signature(self, row: StoredRow, key: Key) -> str:
        text = canonical([row.key, row.schema, row.at, row.spec, row.reply])
        raw = text.encode("ascii")
        return hmac.digest(key.reveal().encode("utf-8", "surrogateescape"), raw, "sha256").hex()
