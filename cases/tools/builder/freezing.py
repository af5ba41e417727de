"""The files of a frozen dataset: items in the suite's format, and what makes them run."""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from cases.config import FILE, NAME, load_dataset
from cases.problems import shown
from cases.slices import Slice
from cases.tools.builder.datasheet import public
from cases.tools.builder.items import Item
from cases.tools.builder.people import said_of
from evaluators.core import NO, YES, UsageError
from evaluators.output import write_texts

README = "README.md"
BUNDLED = Path(__file__).parents[2] / "boolq"
_MODULE = '''"""The answer is the right yes or no."""

import pytest

from evaluators.core import Case, Outcome


@pytest.mark.qa("{name}")
def test_{name}(case: Case, verdict: Outcome) -> None:
    """The answer is the right yes or no."""
    assert verdict.passed, verdict.reason
'''
Files = Mapping[Path, str]


def rows_of(items: Iterable[Item], labels: Mapping[str, str]) -> list[dict[str, object]]:
    """Return the items as rows of a data file, by id; what is empty is left out."""
    rows = []
    for item in sorted(items, key=lambda one: one.id):
        origin = item.origin
        row: dict[str, object] = {
            "id": item.id,
            "passage": item.paragraph,
            "question": item.question,
            "answer": labels[item.answer],
            "split": item.split,
            "source": origin.group,
            "title": origin.title,
            "url": origin.url,
            "licence": origin.licence,
            "revision": origin.revision,
            "generator": public(item.generator.get("model", "")),
            "validator": public(item.validator.get("model", "")),
            "reviewers": len(said_of(item)),
            "corrected": "answer_before" in item.review,
        }
        rows.append({key: value for key, value in row.items() if value not in ("", None)})
    return rows


def data_files(folder: Path, language: str, rows: Sequence[Mapping[str, object]]) -> Files:
    """Return the data file, and one for each split, with their texts.

    The name of the first is the one that the folder's dataset.yaml gives for the language, else
    ``<language>.jsonl``. Raises UsageError where that is a format of another kind.
    """
    main = data_file(folder, language)
    files = {main: _text(main, rows)}
    for split in sorted({str(row["split"]) for row in rows if "split" in row}):
        path = folder / f"{language}.{split}.jsonl"
        files[path] = _text(path, [row for row in rows if row.get("split") == split])
    return files


def data_file(folder: Path, language: str) -> Path:
    """Return where the whole set stands. Raises UsageError for a format that is not written."""
    settings, slices = folder / FILE, declared(folder)
    if language not in slices:
        return folder / f"{language}.jsonl"
    path = slices[language].path
    if slices[language].kind != "yes_no" or path.suffix not in (".json", ".jsonl"):
        msg = f"{settings}: {path.name} cannot be frozen into: want .json or .jsonl of kind yes_no"
        raise UsageError(msg)
    return path


def declared(folder: Path) -> Mapping[str, Slice]:
    """Return the languages that a folder's dataset.yaml declares; none without that file."""
    settings = folder / FILE
    return load_dataset(settings).slices if settings.is_file() else {}


def _text(path: Path, rows: Sequence[Mapping[str, object]]) -> str:
    if path.suffix == ".json":
        return json.dumps(list(rows), ensure_ascii=False, indent=2) + "\n"
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def hashes(files: Files) -> dict[str, str]:
    """Return the SHA-256 of each file by its name."""
    return {path.name: sha256(text.encode()).hexdigest() for path, text in files.items()}


def readme(folder: Path, text: str, language: str) -> Path:
    """Return where a datasheet goes: README.md, unless that is there and is not one of this set."""
    path = folder / README
    title = text.split("\n", 1)[0]
    theirs = path.is_file() and path.read_text("utf-8", "replace").split("\n", 1)[0] != title
    return folder / f"README.{language}.md" if theirs else path


def helpers(folder: Path, language: str, labels: Mapping[str, str], bar: float) -> Files:
    """Return what a dataset folder still needs beside its data: prompt, test module, settings.

    ``bar`` is the accuracy that the question alone reaches. What is there stays as it is.
    """
    prompt = f"answer.{language}.yaml"
    bundled = BUNDLED / prompt
    has_prompt = bundled.is_file() or (folder / prompt).is_file()
    files = {folder / prompt: bundled.read_text("utf-8")} if bundled.is_file() else {}
    name = dataset_name(folder)
    files[folder / f"test_{name}.py"] = _MODULE.format(name=name)
    files[folder / FILE] = _settings(  # last: it makes the folder a dataset
        language, labels, bar, f"    prompt: {prompt}\n" if has_prompt else ""
    )
    return {path: text for path, text in files.items() if not path.exists()}


def _settings(language: str, labels: Mapping[str, str], bar: float, prompt: str) -> str:
    return (
        "# A passage and a yes/no question about it; README.md is the datasheet.\n"
        "# The bar is what the question alone reaches, without the passage; set your own.\n"
        "kind: yes_no\n"
        "languages:\n"
        f"  {language}:\n"
        f"    file: {language}.jsonl\n"
        f"{prompt}"
        f"    yes: {json.dumps(labels[YES], ensure_ascii=False)}\n"
        f"    no: {json.dumps(labels[NO], ensure_ascii=False)}\n"
        "    gates:\n"
        f"      accuracy: {{min: {bar:.2f}}}\n"
        "      unanswered: {max: 0.10}\n"
    )


def dataset_name(folder: Path) -> str:
    """Return the name of the dataset in a folder. Raises UsageError where it cannot be one."""
    name = folder.resolve().name
    if not NAME.fullmatch(name):
        msg = f"build: --to {shown(str(folder))}: names the dataset: letters, digits and _ only"
        raise UsageError(msg)
    return name


def changed(files: Files, *, force: bool) -> Files:
    """Return the files that are not yet as they shall be.

    Raises UsageError where one is there with other content, unless ``force`` allows to write
    over it.
    """
    found = {path: text for path, text in files.items() if not _is(path, text)}
    for path in found:
        if path.exists() and not force:
            msg = (
                f"{path}: is there already, with other content; name another --to, or give --force"
            )
            raise UsageError(msg)
    return found


def write_files(files: Files, *, force: bool) -> None:
    """Put files in place, each whole. Raises UsageError as ``changed`` does, before any."""
    write_texts(changed(files, force=force).items())


def _is(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()
