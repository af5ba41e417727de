"""Where articles come from: a dump, a wiki's API, a file of articles, or a folder of texts."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from cases.tools.builder.items import Article
from evaluators.core import UsageError

Say = Callable[[str], None]
"""Show the user a line."""

DUMPS = (".xml", ".xml.bz2", ".xml.gz")
TABLES = (".jsonl", ".csv", ".json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One source of a group as the user named it. ``licence`` is given where it names none.

    ``contact`` is how the operator of a wiki can reach the user.
    """

    group: str
    where: str
    licence: str = ""
    contact: str = ""

    @property
    def is_api(self) -> bool:
        """Whether it is a wiki's API, which draws its pages itself."""
        return self.where.startswith(("http://", "https://"))

    @property
    def path(self) -> Path:
        """The file or folder."""
        return Path(self.where)

    @property
    def size(self) -> int:
        """How many bytes the file has; 0 for a folder and an API."""
        return 0 if self.is_api or self.path.is_dir() else self.path.stat().st_size

    def check(self) -> None:
        """Raise UsageError for what no articles can come from."""
        from cases.tools.builder.wiki_api import check_address  # noqa: PLC0415  # httpx2 only for APIs

        if self.is_api:
            check_address(self.where, self.contact)
        elif not self.path.exists():
            msg = (
                f"--source {self.group}={self.where}: no such file; give a file, folder or address"
            )
            raise UsageError(msg)
        elif not self.path.is_dir() and not self.where.endswith((*DUMPS, *TABLES)):
            known = ", ".join((*DUMPS, *TABLES))
            msg = f"--source {self.group}={self.where}: want a folder of .txt or a file in {known}"
            raise UsageError(msg)


def articles(source: Source, folder: Path, say: Say) -> Iterable[Article]:
    """Return a source's articles one by one; a wiki's pages are kept in ``folder`` as they come.

    Raises UsageError where the source is not what its name says.
    """
    if source.is_api:
        from cases.tools.builder.wiki_api import draw  # noqa: PLC0415

        return draw(source, folder, say)
    if source.where.endswith(DUMPS):
        from cases.tools.builder.dump import read_dump  # noqa: PLC0415

        return read_dump(source, say)
    from cases.tools.builder.article_files import read_folder, read_rows  # noqa: PLC0415

    return read_folder(source) if source.path.is_dir() else read_rows(source)


def licence_of(source: Source, named: str) -> str:
    """Return an article's licence. Raises UsageError where nobody names one."""
    licence = named or source.licence
    if not licence:
        msg = f"{source.where}: names no licence; say --licence {source.group}=LICENCE"
        raise UsageError(msg)
    return licence
