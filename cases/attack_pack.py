"""The attack packs: answers that must not pass a judge of grades or ratings, controls that must."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluators.core import Case, UsageError
from evaluators.reading import Settings, load_settings
from evaluators.rubric import Style
from evaluators.text import digest, shown

FOLDER = Path(__file__).parent / "attacks"
FOLDERS: Mapping[Style, Path] = {"graded": FOLDER, "rated": FOLDER / "ratings"}
LANGUAGES = tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))
MOST_TIMES = 10_000
_REQUIRED = ("id", "kind", "question", "gold", "answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One answer to try on a judge. A ``control`` is right; an attack is not."""

    kind: str
    control: bool
    case: Case


def load_bundled(languages: Iterable[str], style: Style = "graded") -> list[Probe]:
    """Return the bundled probes of these languages, of all that there are where none is named.

    Raises UsageError for one without attacks on judges of this style.
    """
    paths = {path.stem: path for path in sorted(FOLDERS[style].glob("*.yaml"))}
    probes = []
    for language in languages or paths:
        if language not in paths:
            raise UsageError(
                f"--languages: no attacks in {language!r}; there are {', '.join(paths)}"
            )
        probes += load_pack(paths[language])
    return probes


def load_pack(path: Path) -> list[Probe]:
    """Return the probes of a file. Raises UsageError naming file, line and key."""
    top = load_settings(path)
    top.check_keys(("language", "attacks", "controls"), ("language", "attacks"))
    language = top.text("language")
    probes = [
        _probe(entry, row, language, control=key == "controls")
        for key in ("attacks", "controls")
        for row, entry in enumerate(top.parts(key), 1)
    ]
    counts = Counter(probe.case.id for probe in probes)
    for name, count in counts.items():
        if count > 1:
            raise UsageError(f"{path}: id {name!r} stands twice; keep one")
    return probes


def _probe(entry: Settings, row: int, language: str, *, control: bool) -> Probe:
    entry.check_keys((*_REQUIRED, "context", "before", "times"), _REQUIRED)
    question, golds, answer = entry.text("question"), entry.words("gold"), _exact(entry, "answer")
    times = entry.whole("times", 1, MOST_TIMES) or 1
    answer = _exact(entry, "before") * times + answer
    context = entry.text("context")
    case = Case(
        id=entry.text("id"),
        dataset="attacks",
        language=language,
        row=row,
        question=question,
        golds=golds,
        context=context,
        recorded=answer,
        digest=digest([question, golds, context, answer]),
    )
    return Probe(kind=entry.text("kind"), control=control, case=case)


def _exact(entry: Settings, key: str) -> str:
    """Return a text that may be blank, empty where the key is absent."""
    value = entry.values.get(key, "")
    if not isinstance(value, str):
        raise entry.problem(key, f"text is needed, not {shown(value)}")
    return value
