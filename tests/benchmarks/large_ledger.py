"""How long a large ledger takes to open: ``python -m tests.benchmarks.large_ledger [ROWS]``.

Two ledgers are made, an empty one and one of ROWS replies (1.7 million by default, 1.4 GB), and the
same short run is made with each in turn: a process that opens the ledger, writes to it, looks up
forty replies and closes it. Before each run the file is dropped from the system's cache, as far as
the system allows. Printed are the medians of ROUNDS runs, then how long the whole file takes by
``qagate ledger check``.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from qagate.evaluators.ledger.rows import Signer, Sql, StoredRow, seal
from qagate.evaluators.ledger.sqlite import open_store
from qagate.evaluators.output import say
from tests.support.recorded import key_of, row_of

ROWS = 1_700_000
ROUNDS = 5
REPLY_NUMBERS = 60
"""So many words a reply: with them a row takes 1.4 kB."""
GROUP = 5_000

SHORT_RUN = """
import sys
from pathlib import Path
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.output import say
from tests.support.recorded import key_of

with Ledger(Path(sys.argv[1])) as ledger:
    ledger.try_writing(100_000)
    ledger.begin_search()
    for number in range(40):
        ledger.get(key_of(number))
"""


def made_rows(count: int) -> Iterator[StoredRow]:
    """Yield so many rows, signed and sealed, in the order of their keys: that is quick."""
    signer = Signer()
    for number in sorted(range(count), key=key_of):
        yield signer.signed(seal(row_of(number, REPLY_NUMBERS), 1.0))


def make(path: Path, count: int) -> None:
    rows = made_rows(count)
    with closing(open_store(path)) as store:
        while group := list(islice(rows, GROUP)):
            store.change([(Sql.INSERT, group)])


def drop_from_cache(path: Path) -> None:
    """Let the next reader take the file from the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def seconds_of_a_short_run(path: Path) -> float:
    drop_from_cache(path)
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", SHORT_RUN, str(path)], check=True)
    return time.monotonic() - began


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory(prefix="qa-ledger-") as name:
        empty, large = Path(name, "empty"), Path(name, "large")
        make(empty, 0)
        make(large, rows)
        say(sys.stdout, f"{rows:,} rows: {large.stat().st_size / 1e9:.2f} GB")
        seconds: dict[Path, list[float]] = {empty: [], large: []}
        for _ in range(ROUNDS):
            for path in (empty, large):
                seconds[path].append(seconds_of_a_short_run(path))
        for path, taken in seconds.items():
            each = " ".join(f"{value:.2f}" for value in taken)
            say(
                sys.stdout,
                f"{path.name}: median {statistics.median(taken):.2f} s ({each})",
            )
        began = time.monotonic()
        check = (sys.executable, "-m", "qagate", "ledger", "check", "--ledger")
        subprocess.run([*check, str(large)], check=True)
        say(sys.stdout, f"ledger check: {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
