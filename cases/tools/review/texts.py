"""What the form says, in each language: one YAML file a language."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from cases.settings import Settings, load_settings

FALLBACK = "en"


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """The form's words in one language: its own, titles of fields, verdicts and reasons."""

    language: str
    form: Mapping[str, str]
    titles: Mapping[str, str]
    verdicts: Mapping[str, str]
    reasons: Mapping[str, str]

    def why(self, reasons: Iterable[str]) -> str:
        """Return why an item is on the sheet; a reason that has no text here as it stands."""
        return "; ".join(self.reasons.get(reason, reason) for reason in reasons)


def texts_in(language: str) -> Texts:
    """Return the texts of a language; of English where there is no file for it."""
    path = _path(language)
    if path is None:
        return texts_in(FALLBACK)
    settings = load_settings(path)
    return Texts(
        language=language,
        form=_texts(settings, "form"),
        titles=_texts(settings, "titles"),
        verdicts=_texts(settings, "verdicts"),
        reasons=_texts(settings, "reasons"),
    )


def known_languages() -> tuple[str, ...]:
    """Return the languages that have a file."""
    folder = Path(str(files("cases.tools.review").joinpath("texts")))
    return tuple(sorted(path.stem for path in folder.glob("*.yaml")))


def _path(language: str) -> Path | None:
    """Look the name up and never build a path of it: a language comes from the user's files."""
    known = {name: f"{name}.yaml" for name in known_languages()}
    name = known.get(language)
    return Path(str(files("cases.tools.review").joinpath("texts", name))) if name else None


def _texts(settings: Settings, name: str) -> dict[str, str]:
    part = settings.part(name)
    return {key: part.text(key) for key in part.values}
