"""A rendered page as tests read it: its tags, its text, and the items of its data block."""

import json
import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser


class Page(HTMLParser):
    """The tags, attributes and text of a page, and the items of its data block."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def named(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        wanted = attributes.items()
        return [
            found
            for name, found in self.tags
            if name == tag and wanted <= found.items()
        ]


def items(text: str) -> list[dict[str, object]]:
    (block,) = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>', text
    )
    data = json.loads(block)
    columns: Sequence[str] = data["columns"]
    known: Mapping[str, Sequence[str]] = data["words"]
    return [
        {
            name: known[name][value] if name in known else value
            for name, value in zip(columns, row, strict=True)
        }
        for row in data["rows"]
    ]
