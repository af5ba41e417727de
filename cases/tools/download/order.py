"""Having one benchmark's file in its place: there already, or fetched and verified."""

from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from cases.tools.download.benchmarks import Benchmark
from cases.tools.download.checksum import record, record_path, sha256_of
from cases.tools.download.content import wrong_content
from cases.tools.download.fetch import fetch
from cases.tools.download.partial import Partial
from cases.tools.download.source import DownloadError, Source, without_query
from cases.tools.download.terminal import watching
from evaluators.output import say


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One file to be had. ``expected`` is its hash, ``""`` where nobody has vouched for one."""

    benchmark: Benchmark
    url: str
    target: Path
    expected: str


def obtain(order: Order, stream: TextIO) -> str:
    """Make sure that the right file stands at its place, and return how it came there.

    Progress and warnings go to ``stream``. Raises DownloadError, and OSError where a file cannot
    be read or written; nothing that is not right is ever put in the place.
    """
    return "already there" if _is_there(order, stream) else _fetched(order, stream)


def _is_there(order: Order, stream: TextIO) -> bool:
    """Return whether the right file is there; one without a known hash is recorded as it is."""
    if not order.target.exists():
        return False
    found = sha256_of(order.target)
    wrong = wrong_content(order.target, order.benchmark.columns)
    if order.expected and order.expected != found:
        wrong = f"another file: its SHA-256 is {found}, not {order.expected}"
    if wrong:
        _warn(stream, f"{order.target}: {wrong}; fetching it anew")
        return False
    _keep_record(order, found, stream)
    return True


def _fetched(order: Order, stream: TextIO) -> str:
    """Fetch, verify and only then put the file in its place; returns where it came from."""
    order.target.parent.mkdir(parents=True, exist_ok=True)
    part = Partial.of(order.target)
    with watching(order.benchmark.name, stream) as watch:
        fetch(Source(url=order.url, hint=order.benchmark.hint), part, watch)
    found = _verified(order, part)
    if order.target.exists():
        aside = _set_aside(order.target, order.target, sha256_of(order.target))
        _warn(stream, f"the file that was there is now {aside}")
    part.finish(order.target)
    _keep_record(order, found, stream)
    return f"fetched from {without_query(order.url)}"


def _verified(order: Order, part: Partial) -> str:
    """Return the hash of what came. Raises DownloadError where it is not the file expected."""
    wrong = wrong_content(part.path, order.benchmark.columns)
    if wrong:
        part.drop()
        msg = f"{without_query(order.url)}: what came is {wrong}; {order.benchmark.hint}"
        raise DownloadError(msg)
    found = sha256_of(part.path)
    if order.expected in ("", found):
        return found
    aside = _set_aside(part.path, order.target, found)
    part.drop()
    msg = (
        f"{without_query(order.url)}: SHA-256 is {found}, not {order.expected}; set aside as "
        f"{aside} and not used; if the publisher changed the file, give the new hash with --sha256"
    )
    raise DownloadError(msg)


def _set_aside(path: Path, target: Path, found: str) -> Path:
    """Rename a wrong file after its content, so that none that was set aside is overwritten."""
    return path.replace(target.with_name(f"{target.name}.wrong-{found[:12]}"))


def _keep_record(order: Order, found: str, stream: TextIO) -> None:
    """Record the hash of a file whose benchmark pins none; warn where nobody vouched for it."""
    if order.benchmark.sha256:
        return
    record(order.target, found)
    if not order.expected:
        where = record_path(order.target)
        _warn(
            stream,
            f"no SHA-256 is known for {order.benchmark.name}: {found} is now recorded in {where} "
            "and compared from now on; confirm it with someone who has the file",
        )


def _warn(stream: TextIO, text: str) -> None:
    say(stream, f"warning: {text}")
