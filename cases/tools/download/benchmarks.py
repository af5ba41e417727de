"""Which public benchmarks can be fetched, from where, and how their files begin."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cases.settings import Settings, load_settings
from cases.tools.download.checksum import well_formed

FILE = Path(__file__).with_name("benchmarks.yaml")
TEXTS = ("dataset", "language", "url", "file", "licence", "hint")


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """One official file, and the slice that takes it.

    ``sha256`` is empty where none is pinned. ``columns`` are names that the file's first line
    holds, be it a CSV header or a JSON object. ``hint`` says what to do where it is not served.
    """

    name: str
    dataset: str
    language: str
    url: str
    file: str
    licence: str
    hint: str
    columns: tuple[str, ...]
    sha256: str = ""


def load_benchmarks(path: Path = FILE) -> Mapping[str, Benchmark]:
    """Return the benchmarks of a YAML file by name.

    Raises UsageError naming file, line and key for whatever is missing or not as it must be.
    """
    settings = load_settings(path)
    return {name: _benchmark(name, settings.part(name)) for name in settings.values}


def _benchmark(name: str, own: Settings) -> Benchmark:
    own.check_keys((*TEXTS, "sha256", "columns"))
    texts = {key: own.text(key) for key in TEXTS}
    for key, text in texts.items():
        _require(own, key, text != "", "missing; give it")
    sha256 = own.text("sha256")
    _require(own, "sha256", not sha256 or well_formed(sha256), "64 hexadecimal digits are needed")
    is_name = Path(texts["file"]).name == texts["file"]
    _require(own, "file", is_name, "a file name without folders is needed")
    return Benchmark(name=name, **texts, columns=own.words("columns"), sha256=sha256)


def _require(own: Settings, key: str, met: bool, what: str) -> None:
    if not met:
        raise own.problem(key, what)
