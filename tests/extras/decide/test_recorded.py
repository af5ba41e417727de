"""The recordings of other tools are what their README says, and hold nothing of a machine."""

import gzip
import re
from pathlib import Path

import pytest

from tests.support.projects import ROOT

RECORDED = Path(__file__).parent / "recorded"
README = (RECORDED / "README.md").read_text(encoding="utf-8")
MOST_BYTES = 300_000
"""Of all recordings together: everybody who clones the repository gets them."""
OF_A_MACHINE = re.compile(
    r"/(?:home|root|tmp|work|usr|var|Users)/|\b(?:sk|hf|ghp)[-_]\w{16}"
)
"""Paths that a machine has, and keys."""


def tools() -> list[str]:
    folders = [path.name for path in RECORDED.iterdir() if path.is_dir()]
    return sorted(set(folders) - {"make", "__pycache__"})


def files(tool: str) -> list[Path]:
    paths = (RECORDED / tool).rglob("*")
    return sorted(path for path in paths if path.is_file())


TOOLS = tools()
FILES = [path for tool in TOOLS for path in files(tool)]


def table_of(heading: str) -> dict[str, str]:
    """Return the README's table with this second heading: its second cell by folder."""
    cells: dict[str, str] = {}
    (table,) = (
        table
        for table in README.split("\n\n")
        if table.startswith(f"| folder | {heading} |")
    )
    for line in table.splitlines()[2:]:
        _, folder, second, *_ = line.split("|")
        cells[folder.strip()] = second.strip()
    return cells


def text_of(path: Path) -> str:
    """Return what a file holds, unpacked, with slashes as a path has them."""
    if path.suffix == ".eval":
        text = text_of_members(path)
    elif path.suffix == ".parquet":
        text = path.read_bytes().decode("latin-1")
    elif path.suffix == ".gz":
        text = gzip.decompress(path.read_bytes()).decode("utf-8")
    else:
        text = path.read_text(encoding="utf-8")
    return text.replace("\\/", "/")


def text_of_members(path: Path) -> str:
    zipfile = pytest.importorskip("backports.zstd.zipfile")
    with zipfile.ZipFile(path) as archive:
        members = [archive.read(name) for name in archive.namelist()]
    return "\n".join(member.decode("utf-8") for member in members)


@pytest.mark.parametrize("heading", ["version", "a scorer failed"])
def test_the_readme_has_each_folder(heading: str) -> None:
    assert list(table_of(heading)) == TOOLS


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_wrote_the_same_files_of_both_sides(tool: str) -> None:
    old, new = (
        sorted(path.name for path in (RECORDED / tool / side).iterdir())
        for side in ("old", "new")
    )
    assert old == new


@pytest.mark.parametrize(
    "path", FILES, ids=lambda path: str(path.relative_to(RECORDED))
)
def test_a_recording_holds_no_path_and_no_key(path: Path) -> None:
    text = text_of(path)
    assert not OF_A_MACHINE.findall(text)
    assert str(ROOT) not in text


@pytest.mark.parametrize(
    "tool", sorted({"inspect_ai", "lm_eval", "promptfoo"} & set(TOOLS))
)
def test_a_recording_is_of_the_version_that_the_readme_says(tool: str) -> None:
    """These three write their version into their results."""
    key = r'"(?:inspect_ai|promptfooVersion|lm_eval_version)": ?"([\d.]+)"'
    written = {
        version for path in files(tool) for version in re.findall(key, text_of(path))
    }
    assert written == {table_of("version")[tool]}


def test_all_recordings_are_small() -> None:
    assert sum(path.stat().st_size for path in FILES) <= MOST_BYTES
