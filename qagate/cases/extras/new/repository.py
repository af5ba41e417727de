"""The git repository that a new data set is in: its top, and what it ignores."""

from pathlib import Path

from qagate.evaluators.text import listed

IGNORED = (
    ".env",
    ".qa/",
    "**/reports/out/",
    "**/reports/out.previous/",
    "**/reports/rejudged/",
    "**/reports/rejudged.previous/",
)
"""Keys, and what runs write, as ``.gitignore`` names them; promoted runs are to be committed."""


def top_of_repository(folder: Path) -> Path:
    """Return the top of the git repository that a folder is in, or else the folder itself."""
    whole = folder.resolve()
    for place in (whole, *whole.parents):
        if (place / ".git").exists():
            return place
    return whole


def ignore_in_git(folder: Path) -> str:
    """Add what runs write to the ``.gitignore`` of a folder's repository.

    Outside a repository the folder gets one of its own. Returns a line about what was added, empty
    if nothing was missing. A pattern counts with or without the ``**/`` before it.
    """
    file = top_of_repository(folder) / ".gitignore"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    patterns = {line.strip().removeprefix("**/") for line in text.splitlines()}
    missing = [line for line in IGNORED if line.removeprefix("**/") not in patterns]
    if not missing:
        return ""
    if text and not text.endswith("\n"):
        text += "\n"
    file.write_text(text + "".join(f"{line}\n" for line in missing), encoding="utf-8")
    return f"{file}: ignores {listed(missing)}"
