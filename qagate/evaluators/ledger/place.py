"""Where a ledger is: a file of this machine, or a PostgreSQL database that machines share.

``read_place`` turns the text of ``--ledger`` into one or the other. An address never holds
a password: options stand in process lists, and places in messages and reports.
"""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from qagate.evaluators.core import UsageError


@dataclass(frozen=True, slots=True)
class PostgresUrl:
    """The address of a PostgreSQL database, without a password."""

    url: str

    def __str__(self) -> str:
        """Return what messages and reports may show: the service, or host and database."""
        parts = urlsplit(self.url)
        _, _, hosts = parts.netloc.rpartition("@")
        address = f"postgresql://{hosts}{parts.path}"
        services = parse_qs(parts.query).get("service")
        if services:
            return f"{address}?service={services[0]}"
        return address


LedgerPlace = Path | PostgresUrl
"""Where a ledger is: a file, or a PostgreSQL database that many machines share."""


def read_place(text: str, here: Path = Path()) -> LedgerPlace:
    """Return the place that ``--ledger`` names; a path is relative to ``here``.

    Raises UsageError for a malformed address, or one with a password, without showing it.
    """
    if not text.lower().startswith(("postgres://", "postgresql://")):
        return here / text
    try:
        has_secret = _has_password(text)
    except ValueError:
        raise UsageError(
            "--ledger: not the address of a database; write postgresql://USER@HOST:PORT/DATABASE"
        ) from None
    if has_secret:
        raise UsageError(
            "--ledger: others can see a password in the address; remove it and use PGPASSWORD, "
            "a password file (PGPASSFILE) or a service file (postgresql://?service=NAME)"
        )
    return PostgresUrl(text)


def _has_password(url: str) -> bool:
    """Return whether a database's URL holds a password. Raises ValueError if it is malformed."""
    parts = urlsplit(url)
    parameters = parse_qs(parts.query)
    if "password" in parameters or "sslpassword" in parameters:
        return True
    # A password with a slash ends the host too early: its rest stands in the path.
    return parts.password is not None or "@" in parts.path
