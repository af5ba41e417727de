"""The place of a ledger: a file, or a PostgreSQL database that many machines share."""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from evaluators.core import UsageError

_URL = re.compile(r"postgres(ql)?://", re.IGNORECASE)
_SECRETS = frozenset({"password", "sslpassword"})
_HOW = "PGPASSWORD, a password file (PGPASSFILE) or a service file (postgresql://?service=NAME)"


@dataclass(frozen=True, slots=True)
class PostgresUrl:
    """The address of a PostgreSQL database, without a password."""

    url: str

    def __str__(self) -> str:
        """Return what messages and reports may show: the service, or host and database."""
        parts = urlsplit(self.url)
        service = parse_qs(parts.query).get("service", [""])[0]
        hosts = parts.netloc.rpartition("@")[2]
        return f"postgresql://{hosts}{parts.path}" + (f"?service={service}" if service else "")


Place = Path | PostgresUrl


def read_place(text: str, here: Path = Path()) -> Place:
    """Return the place that ``--ledger`` names; a relative path starts at ``here``.

    Raises UsageError, without the value, for an address that holds a password.
    """
    if not _URL.match(text):
        return here / text
    try:
        parts = urlsplit(text)
        has_secret = parts.password is not None or _SECRETS & parse_qs(parts.query).keys()
    except ValueError:
        raise UsageError(
            "--ledger: not the address of a database; write postgresql://USER@HOST:PORT/DATABASE"
        ) from None
    if has_secret:
        raise UsageError(
            f"--ledger: others can see a password in the address; remove it and use {_HOW}"
        )
    return PostgresUrl(text)
