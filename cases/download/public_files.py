"""Public files: what each must be, the benchmarks among them, and fetching one over HTTPS."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, cast

import httpx2

from cases.tables import MAX_BYTES
from evaluators.core import QAError, UsageError
from evaluators.models.spec import is_loopback, normalise_url
from evaluators.output import PRIVATE_FOLDER, write_whole
from evaluators.reading import ARCHIVES, load_yaml
from evaluators.text import listed, mask, one_line

BENCHMARKS = Path(__file__).with_name("benchmarks.yaml")
DATA_FOLDER = Path(".qa/data")
HEAD = 1024 * 1024
"""Bytes of the beginning in which the names of columns must stand."""
BEGINNINGS: Mapping[bytes, str] = {
    b"version https://git-lfs": "a Git LFS pointer, not the data "
    "(GitHub has that at https://media.githubusercontent.com/media/OWNER/REPO/…)",
    b"<": "a web page or an XML message",
    **ARCHIVES,
}
CONNECT_S = 10.0
READ_S = 30.0
"""Seconds without a single byte after which a server is given up."""
MAX_REDIRECTS = 5
ADVICE: Mapping[int, str] = {
    403: "access is refused",
    404: "there is no such file",
    407: "the proxy wants a login; set it in HTTPS_PROXY",
    429: "too many requests; try again later",
}
"""What a status means, where it is none of the server's own troubles."""


class DownloadError(QAError):
    """A file could not be fetched, or is not what it must be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicFile:
    """One official file."""

    name: str
    """What it is called in messages."""
    url: str
    file: str
    """The name it gets in the folder."""
    licence: str
    hint: str
    """What to do where the address does not serve it."""
    columns: Sequence[str]
    """Names that stand in its first line or, for a JSON list, near its beginning."""
    sha256: str = ""
    """Empty where none is pinned."""

    def obtain(self, folder: Path, url: str = "", sha256: str = "") -> str:
        """Make sure that the right file is in a folder, and return how it came there.

        ``url`` and ``sha256`` replace its own. Raises DownloadError where it cannot be had, is
        not the right one, or another file is in its place. No wrong file is ever put there.
        """
        target, url, sha256 = folder / self.file, url or self.url, sha256 or self.sha256
        with file_errors(target):
            there, source = target.exists(), without_query(url)
            body = target.read_bytes() if there else fetch(url, self.hint)
            if wrong := self.fault_of(body, sha256):
                own = f"{target}: {wrong}; delete it, or choose another --to"
                raise DownloadError(
                    own if there else f"{source}: what came is {wrong}; {self.hint}"
                )
            if not there:
                target.parent.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
                write_whole(target, [body])
        how = "already there" if there else f"fetched from {source}"
        found = "" if sha256 else f", SHA-256 {_hash(body)} (pinned nowhere)"
        return f"{target}: {how}, {len(body):,} bytes{found}, licence {self.licence}"

    def fault_of(self, body: bytes, sha256: str) -> str:
        """Return what a file is instead of the data, empty where it is the data."""
        start = body[:HEAD].removeprefix(b"\xef\xbb\xbf").lstrip()
        if not start:
            return "empty"
        if known := next((what for mark, what in BEGINNINGS.items() if start.startswith(mark)), ""):
            return known
        is_list = start.startswith(b"[")
        head = start if is_list else start.splitlines()[0]
        if missing := [name for name in self.columns if name.encode() not in head]:
            where = "beginning" if is_list else "first line"
            return f"something else: its {where} lacks {listed(missing)}"
        if sha256 and _hash(body) != sha256:
            new = "if the publisher changed the file, give the new hash with --sha256"
            return f"another file: its SHA-256 is {_hash(body)}, not {sha256}; {new}"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark(PublicFile):
    """The official file of a benchmark, and the slice that takes it."""

    dataset: str
    language: str
    run: str
    """Options to run it with."""


def load_benchmarks() -> Mapping[str, Benchmark]:
    """Return the bundled benchmarks by name."""
    entries = cast("Mapping[str, Mapping[str, Any]]", load_yaml(BENCHMARKS))
    return {name: Benchmark(name=name, **entry) for name, entry in entries.items()}


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def without_query(url: str) -> str:
    """Return a URL for a message: no query, which may hold a secret, and no password."""
    return one_line(mask(_path_of(url)))


def check_address(url: str) -> None:
    """Raise UsageError for anything but https, or http to this machine, and for credentials."""
    normalise_url(_path_of(url))


def _path_of(url: str) -> str:
    return re.split(r"[?#]", url, maxsplit=1)[0]


@contextmanager
def file_errors(target: Path) -> Iterator[None]:
    """Turn an OSError about a file into a DownloadError that says what to do."""
    try:
        yield
    except OSError as error:
        where, reason = error.filename or target, error.strerror or type(error).__name__
        raise DownloadError(
            f"{where}: cannot be written or read ({reason}); mend that, or choose another --to"
        ) from None


def fetch(url: str, hint: str, read_s: float = READ_S, limit: int = MAX_BYTES) -> bytes:
    """Return a file of at most ``limit`` bytes; ``read_s`` seconds without one end it."""

    def refuse(what: str) -> NoReturn:
        raise DownloadError(f"{without_query(url)}: {what}") from None

    client = httpx2.Client(
        timeout=httpx2.Timeout(read_s, connect=min(CONNECT_S, read_s)),
        headers={"accept-encoding": "identity"},  # so that the bytes are the file's
        trust_env=not is_loopback(url),
    )
    try:
        with client, closing(_open(client, url)) as response:
            if response.status_code != 200:
                status = response.status_code
                trouble = "the server is in trouble; try again later"
                advice = trouble if status >= 500 else ADVICE.get(status, "not a file")
                refuse(f"status {status}: {advice}; {hint}")
            if response.headers.get("content-encoding", "identity") != "identity":
                refuse(f"sent compressed although asked not to; {hint}")
            body = bytearray()
            for chunk in response.iter_raw():
                body += chunk
                if len(body) > limit:
                    refuse(f"larger than {limit:,} bytes; {hint}")
            return bytes(body)
    except httpx2.InvalidURL as error:
        refuse(f"not an address ({error}); {hint}")
    except (httpx2.ConnectTimeout, httpx2.ConnectError, httpx2.ProxyError) as error:
        reason = one_line(mask(str(error))) or "no answer"
        refuse(f"cannot be reached ({reason}); check the network and HTTPS_PROXY, then try again")
    except httpx2.HTTPError as error:
        silent = isinstance(error, httpx2.TimeoutException)
        refuse(f"{'no data in time' if silent else 'the line broke'}; try again")


def _open(client: httpx2.Client, url: str) -> httpx2.Response:
    """Return the open response after redirects, which may not leave https. Raises DownloadError."""
    request = client.build_request("GET", url)
    for _ in range(MAX_REDIRECTS + 1):
        response = client.send(request, stream=True)
        if not response.has_redirect_location:
            return response
        response.close()
        if response.next_request is None:
            raise DownloadError(f"{without_query(url)}: redirects to no address")
        request = response.next_request
        check_redirect(url, str(request.url))
    raise DownloadError(f"{without_query(url)}: more than {MAX_REDIRECTS} redirects")


def check_redirect(source: str, target: str) -> None:
    """Raise DownloadError for a redirect that leaves https, or turns to this machine."""
    try:
        check_address(target)
    except UsageError as problem:
        what = f"{problem}"
    else:
        what = f"{without_query(target)} is this machine"
        if is_loopback(source) or not is_loopback(target):
            return
    raise DownloadError(f"{without_query(source)}: redirect refused: {what}")
