"""Pages that a wiki's API has drawn, kept as they come: no page is fetched twice."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import cast

from cases.tools.builder.items import Article, Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One whole batch: its articles, and with what to ask for the next one."""

    articles: tuple[Article, ...]
    onward: Mapping[str, str]


class PageCache:
    """The batches of one source, one JSON line each, appended and forced to the disk."""

    def __init__(self, folder: Path, where: str) -> None:
        name = sha256(where.encode()).hexdigest()[:12]
        self._path = folder / f"pages-{name}.jsonl"

    def read(self) -> list[Draw]:
        """Return the batches so far; a last line that was cut by a kill is taken off."""
        if not self._path.is_file():
            return []
        whole, _, rest = self._path.read_bytes().rpartition(b"\n")
        if rest:
            with self._path.open("r+b") as file:
                file.truncate(len(whole) + 1 if whole else 0)
        return [_draw(json.loads(line)) for line in whole.splitlines() if line]

    def append(self, draw: Draw) -> None:
        """Return once a batch is on the disk."""
        line = json.dumps(asdict(draw)) + "\n"
        with self._path.open("ab") as file:
            file.write(line.encode("ascii"))
            file.flush()
            os.fsync(file.fileno())


def _draw(row: Mapping[str, object]) -> Draw:
    articles = cast("Sequence[dict[str, object]]", row["articles"])
    return Draw(
        articles=tuple(_article(values) for values in articles),
        onward=cast("Mapping[str, str]", row["onward"]),
    )


def _article(values: dict[str, object]) -> Article:
    origin = Origin(**cast("dict[str, str]", values["origin"]))
    return Article(origin=origin, text=str(values["text"]), markup="wiki")
