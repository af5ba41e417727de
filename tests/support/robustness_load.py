"""The robustness kit's ``load``: its file formats, read by the suite's own loaders."""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import cast

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the kit runs from a folder of its own

from qagate.cases.config import load_dataset  # noqa: E402
from qagate.cases.dataset import Slice  # noqa: E402
from qagate.cases.loading import load_cases  # noqa: E402
from qagate.cases.tables import read_table  # noqa: E402
from qagate.evaluators.core import UsageError  # noqa: E402
from qagate.evaluators.kinds import kind_of  # noqa: E402
from qagate.evaluators.models import catalogue, keys, spec, urls  # noqa: E402
from qagate.evaluators.reading import Map, Settings, load_settings  # noqa: E402
from qagate.evaluators.rubric import RUBRICS  # noqa: E402
from qagate.evaluators.statistics.metrics import METRICS  # noqa: E402
from qagate.evaluators.text import hint, shown  # noqa: E402
from tests.support.tables import kept  # noqa: E402

CASES = ROOT / "cases"
KINDS: Mapping[str, str] = kept(__file__, "kinds")
DAY = 86_400.0


def load(path: str, format: str, lang: str) -> list[dict[str, object]]:
    """Return a file's rows by its own columns, a configuration's as one; raises UsageError."""
    if format == "config_yaml":
        return [config(Path(path))]
    slice_ = Slice(
        dataset=format, language=lang, kind=kind_of(KINDS[format]), path=Path(path)
    )
    load_cases(slice_)
    table = read_table(slice_.path)
    return [
        {table.names[column]: value for column, value in record.values.items()}
        for record in table.records
    ]


def config(path: Path) -> dict[str, object]:
    """Check the kit's one-file configuration with the checks of ours, key by key."""
    settings = load_settings(path)
    settings.check_keys(KEYS)
    if not settings.values:
        raise UsageError(f"{path}:1: no key; known: {', '.join(KEYS)}")
    for key in settings.values:
        KEYS[key](settings, key)
    return cast("dict[str, object]", dict(settings.values))


def _model(settings: Settings, key: str) -> None:
    if not isinstance(settings.values[key], Map):
        _refused(settings, key, partial(_spec, settings.text(key)))
        return
    part = settings.part(key)
    part.check_keys((*catalogue.KNOWN, *MODEL_KEYS, *NUMBERS, *TIMES))
    for inner in part.values:
        if inner in MODEL_KEYS:
            _refused(part, inner, partial(MODEL_KEYS[inner], part.text(inner)))
        elif inner in NUMBERS:
            part.number(inner, *NUMBERS[inner])
        elif inner in TIMES:
            _seconds(part, inner)


def _provider(name: str) -> None:
    if name not in spec.PROVIDERS:
        raise UsageError(f"{shown(name)} is not known; {hint(name, spec.PROVIDERS)}")


def _variable(name: str) -> None:
    if not keys.VARIABLE.fullmatch(name):
        raise UsageError(
            "the name of an environment variable is needed (what stands here is not shown)"
        )


def _name(name: str) -> None:
    spec.check_name(name, "model")


def _spec(text: str) -> None:
    if ":" in text and text not in ("recorded", "lexical"):
        spec.parse(text, catalogue.load_catalogue())
    else:
        spec.check_name(text, "model")


def _refused(settings: Settings, key: str, check: Callable[[], object]) -> None:
    """Let a check of another part speak with file, line and key in front."""
    try:
        check()
    except UsageError as error:
        raise settings.problem(key, str(error)) from None


def _thresholds(settings: Settings, key: str) -> None:
    part = settings.part(key)
    for inner in part.values:
        known = {*languages(), *datasets(), *RANGES, "default", "min", "max"}
        if inner not in known:
            raise part.problem(inner, f"not known; {hint(inner, sorted(known))}")
        if isinstance(part.values[inner], Map):
            _thresholds(part, inner)
        else:
            part.number(inner, *RANGES.get(inner, (0.0, 1.0)))


def _timeouts(settings: Settings, key: str) -> None:
    if not isinstance(settings.values[key], Map):
        _seconds(settings, key)
        return
    part = settings.part(key)
    part.check_keys(TIMES)
    for inner in part.values:
        _seconds(part, inner)


def _seconds(settings: Settings, key: str) -> None:
    if settings.number(key, 0.0, DAY) == 0:
        raise settings.problem(key, "more than 0 seconds are needed")


def _datasets(settings: Settings, key: str) -> None:
    if not isinstance(settings.values[key], Map):
        _each_known(settings, key, datasets())
        return
    part = settings.part(key)
    for inner, value in part.values.items():
        if inner == "limit":
            part.whole(inner, 1, 10_000_000)
            continue
        if inner not in (*datasets(), *languages(), "file", "path"):
            raise part.problem(inner, f"not known; {hint(inner, datasets())}")
        if isinstance(value, Map):
            _datasets(part, inner)
        elif not (settings.path.parent / part.text(inner)).is_file():
            raise part.problem(
                inner, f"{shown(value)} is no file; give the path of a data file"
            )


def _languages(settings: Settings, key: str) -> None:
    _each_known(settings, key, languages())


def _each_known(settings: Settings, key: str, known: list[str]) -> None:
    words = settings.words(key)
    if not words:
        raise settings.problem(key, "the list is empty")
    for word in words:
        if word not in known:
            raise settings.problem(
                key, f"{shown(word)} is not known; {hint(word, known)}"
            )


def datasets() -> list[str]:
    return sorted(path.parent.name for path in CASES.glob("*/dataset.yaml"))


def languages() -> list[str]:
    files = sorted(CASES.glob("*/dataset.yaml"))
    return sorted(
        {language for file in files for language in load_dataset(file, RUBRICS).slices}
    )


MODEL_KEYS: Mapping[str, Callable[[str], object]] = {
    "base_url": urls.normalise_url,
    "provider": _provider,
    "name": _name,
    "model": _name,
    "api_key_env": _variable,
}
RANGES = {
    name: limits for kind in METRICS for name, limits in kind_of(kind).ranges().items()
}
TIMES = kept(__file__, "times")
NUMBERS = kept(__file__, "numbers")
KEYS: Mapping[str, Callable[[Settings, str], object]] = {
    "model": _model,
    "judge": _model,
    "thresholds": _thresholds,
    "timeouts": _timeouts,
    "datasets": _datasets,
    "languages": _languages,
    "timeout": _timeouts,
    "deadline": _seconds,
    "concurrency": lambda settings, key: settings.whole(key, 1, 10_000),
    "rpm": lambda settings, key: settings.whole(key, 1, 10_000_000),
    "repeats": lambda settings, key: settings.whole(key, 1, 1_000),
    "limit": lambda settings, key: settings.whole(key, 1, 10_000_000),
    "seed": lambda settings, key: settings.whole(key, 0, 2**63),
}
