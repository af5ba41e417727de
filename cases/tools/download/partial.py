"""A file on its way: what has come so far, and which version of the file that is."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

VALIDATORS = ("etag", "last-modified")  # the headers that name a version, the surer one first


@dataclass(frozen=True, slots=True)
class Partial:
    """The file ``NAME.part`` and its note ``NAME.part.json`` of URL and version."""

    path: Path

    @classmethod
    def of(cls, target: Path) -> "Partial":
        """Return the partial file of a file that is to be fetched."""
        return cls(target.with_name(f"{target.name}.part"))

    @property
    def note(self) -> Path:
        """Where URL and version are kept."""
        return self.path.with_name(f"{self.path.name}.json")

    @property
    def size(self) -> int:
        """How many bytes have come; 0 where there is no file."""
        return self.path.stat().st_size if self.path.exists() else 0

    def begin(self, url: str, headers: Mapping[str, str]) -> None:
        """Note which version of the file comes now; without one there is no going on later."""
        version = version_of(headers)
        if version:
            text = json.dumps({"url": url, "version": version})
            self.note.write_text(text, encoding="utf-8")
        else:
            self.note.unlink(missing_ok=True)

    def version(self, url: str) -> str:
        """Return the version that has come from this URL so far, ``""`` where it is not known."""
        try:
            note = json.loads(self.note.read_bytes())
        except (OSError, ValueError):  # an unreadable note is no note
            return ""
        if not isinstance(note, dict) or note.get("url") != url or not self.size:
            return ""
        version = note.get("version")
        return version if isinstance(version, str) and version.isascii() else ""

    def drop(self) -> None:
        """Forget what has come so far."""
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)

    def finish(self, target: Path) -> None:
        """Put the file in its place."""
        self.path.replace(target)
        self.note.unlink(missing_ok=True)


def version_of(headers: Mapping[str, str]) -> str:
    """Return a response's strong ETag, or its date, for ``If-Range`` (RFC 9110, section 13.1.5)."""
    found = (headers.get(name, "") for name in VALIDATORS)
    return next((value for value in found if value and not value.startswith("W/")), "")
