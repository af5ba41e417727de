"""Where a file is fetched from, which addresses are allowed, and how refusals are worded."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from evaluators.core import QAError, UsageError
from evaluators.files import MAX_BYTES
from evaluators.models.secrets import mask, one_line
from evaluators.models.url import is_loopback, normalised

AFTER_PATH = re.compile(r"[?#]")
STATUSES: Mapping[int, str] = {
    401: "access is refused",
    403: "access is refused",
    404: "there is no such file",
    407: "the proxy wants a login; set it in HTTPS_PROXY",
    410: "the file is gone",
    429: "too many requests; try again later",
}
TROUBLE = "the server is in trouble; try again later"


class DownloadError(QAError):
    """A file could not be fetched, or is not what it must be."""


class TooLargeError(DownloadError):
    """A file is larger than what is fetched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a file is. ``hint`` says what to do where it is not served; ``limit`` is in bytes."""

    url: str
    hint: str
    limit: int = MAX_BYTES

    def refuse(self, what: str) -> NoReturn:
        """Raise a DownloadError about this address."""
        msg = f"{without_query(self.url)}: {what}"
        raise DownloadError(msg) from None

    def refuse_status(self, status: int) -> NoReturn:
        """Raise the DownloadError of a response that brings no file."""
        what = TROUBLE if status >= 500 else STATUSES.get(status, "not a file")
        self.refuse(f"status {status}: {what}; {self.hint}")

    def check_redirect(self, url: str) -> None:
        """Raise DownloadError for a redirect that leaves https or turns to this machine."""
        try:
            check_address(url)
        except UsageError as problem:
            self.refuse(f"redirect refused: {problem}")
        if is_loopback(url) and not is_loopback(self.url):
            self.refuse(f"redirect refused: {without_query(url)} is this machine")

    def check_size(self, size: int) -> None:
        """Raise TooLargeError for a file of so many bytes, or of more to come."""
        if size > self.limit:
            msg = f"{without_query(self.url)}: larger than {self.limit:,} bytes; {self.hint}"
            raise TooLargeError(msg)


def without_query(url: str) -> str:
    """Return a URL for a message: no query, which may hold a secret, and no password."""
    return one_line(mask(AFTER_PATH.split(url, maxsplit=1)[0]))


def check_address(url: str) -> None:
    """Raise UsageError for anything but https, or http to this machine, and for credentials."""
    normalised(AFTER_PATH.split(url, maxsplit=1)[0])
