"""Public benchmarks: which there are, and the slice that takes the file of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cases.download.public_files import FILE_KEYS, TEXTS, PublicFile
from evaluators.settings import load_settings

FILE = Path(__file__).with_name("benchmarks.yaml")
PLACES = ("dataset", "language", "run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """The official file of a benchmark, the slice that takes it, and options to run it with."""

    source: PublicFile
    dataset: str
    language: str
    run: str


def load_benchmarks(path: Path = FILE) -> Mapping[str, Benchmark]:
    """Return the benchmarks of a YAML file by name.

    Raises UsageError naming file, line and key for whatever is missing or not as it must be.
    """
    found = {}
    top = load_settings(path)
    for name in top.values:
        settings = top.part(name)
        settings.check_keys((*FILE_KEYS, *PLACES), (*TEXTS, *PLACES))
        found[name] = Benchmark(
            source=PublicFile.of(settings),
            dataset=settings.text("dataset"),
            language=settings.text("language"),
            run=settings.text("run"),
        )
    return found
