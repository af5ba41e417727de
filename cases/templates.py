"""Which prompt and rubric a slice uses: bundled ones by name, the user's own by path."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from evaluators.core import Kind
from evaluators.rubric import (
    Prompt,
    Protocol,
    Rubric,
    check_language,
    load_prompt,
    load_rubric,
    load_template,
)
from evaluators.settings import Settings

SUFFIXES = (".yaml", ".yml", ".txt")
PLACE = "{lang}"


def find_rubric(settings: Settings, rubrics: Path, language: str, kind: Kind) -> Rubric | None:
    """Return the rubric that ``rubric:`` names in this language, None where the key is absent.

    A bare name is ``<name>.<language>.yaml`` beside the settings file, or a bundled one; anything
    else is a path relative to the settings file, and may hold ``{lang}``. Raises UsageError where
    there is none, where it is of another language, or where its protocol does not give what this
    kind of dataset needs.
    """
    name = settings.text("rubric").replace(PLACE, language)
    if not name:
        return None
    if _is_path(name):
        protocol: Protocol = "rate" if kind == "rated" else "letter"
        own = load_template(settings.path.parent / name, language, protocol)
        return _fitting(settings, own, kind)
    file = f"{name}.{language}.yaml"
    folders = (settings.path.parent, rubrics)
    path = next((folder / file for folder in folders if (folder / file).is_file()), None)
    if path is None:
        what = f"no rubric {name!r} in language {language!r} ({_there(rubrics, name)})"
        raise settings.problem(key="rubric", what=f"{what}; add {file} or set rubric_language")
    rubric = load_rubric(path)
    check_language(rubric, language, f"{path}")
    return _fitting(settings, rubric, kind)


def _fitting(settings: Settings, rubric: Rubric, kind: Kind) -> Rubric:
    rates = rubric.protocol == "rate"
    if (kind == "rated" and not rates) or (kind == "graded" and rates):
        what = (
            f"{rubric.name!r} has protocol {rubric.protocol!r}, which a {kind} dataset cannot use"
        )
        raise settings.problem(key="rubric", what=f"{what}; name another rubric")
    return rubric


def find_prompt(settings: Settings, rubrics: Path, languages: Sequence[str]) -> Prompt | None:
    """Return the answer prompt that ``prompt:`` names, in the first of the languages that has it.

    A bare name is ``<name>.<language>.yaml``, a path may hold ``{lang}``; both are looked for
    beside the settings file and then among the bundled ones. Without the key it is
    ``answer.<language>.yaml`` beside the file, None where that is not there. Raises UsageError
    where a named one is missing or of none of these languages.
    """
    name = settings.text("prompt")
    folders = (settings.path.parent, rubrics) if name else (settings.path.parent,)
    paths = _candidates(folders, name or "answer", languages)
    path = next((path for path in paths if path.is_file()), None)
    if path is None and not name:
        return None
    if path is None:
        what = f"no prompt {name!r} in language {languages[0]!r}; looked beside this file and among"
        raise settings.problem(key="prompt", what=f"{what} the bundled ones")
    prompt = load_prompt(path)
    if prompt.language not in languages:
        check_language(prompt, languages[0], f"{path}")
    return prompt


def _candidates(folders: Sequence[Path], name: str, languages: Sequence[str]) -> Iterator[Path]:
    for language in languages:
        file = name.replace(PLACE, language) if _is_path(name) else f"{name}.{language}.yaml"
        yield from (folder / file for folder in folders)


def _is_path(name: str) -> bool:
    return "/" in name or name.endswith(SUFFIXES)


def _there(rubrics: Path, name: str) -> str:
    stems = sorted(path.stem for path in rubrics.glob("*.*.yaml"))
    found = [stem.removeprefix(f"{name}.") for stem in stems if stem.startswith(f"{name}.")]
    return f"there is {', '.join(found)}" if found else f"rubrics: {', '.join(stems)}"
