"""``qagate new``: write the files of a data set, with an example row to be replaced.

The texts stand in ``new.yaml``: what the files hold, what differs by kind, and the example in each
language that has one. In any other language the example is English, and the command names the
lines to translate.
"""

import re
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from qagate.cases.config import LANGUAGE
from qagate.cases.dataset import DATASET_FILE
from qagate.cases.extras.new.schema import dataset_schema, editor_line, schema_text
from qagate.evaluators.command_line import CommandParser
from qagate.evaluators.core import UsageError
from qagate.evaluators.output import say, write_texts
from qagate.evaluators.reading import load_yaml
from qagate.evaluators.rubric import RUBRICS
from qagate.evaluators.statistics.paired import shown_by
from qagate.evaluators.text import listed, shown
from qagate.evaluators.typed_data import decode

DONE = 0
TEXTS = Path(__file__).with_name("new.yaml")
ROWS_OF_ADVICE = (40, 200)
"""Numbers of rows of which the smallest drop is told."""
IGNORED = (
    ".qa/",
    "**/reports/out/",
    "**/reports/out.previous/",
    "**/reports/rejudged/",
    "**/reports/rejudged.previous/",
)
"""What runs write, as ``.gitignore`` names it; promoted runs are to be committed."""
SCHEMA_FILE = "dataset.schema.json"
"""By which an editor completes and checks ``dataset.yaml``."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTexts:
    """What the files of all kinds have in common."""

    module: str
    prompt: str
    changes: str
    """The gate on changes to a baseline, where a model answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindTexts:
    """What the files of one kind of data set hold, with slots for the words of an example."""

    claim: str
    """The docstring of the test."""
    settings: str
    """The first lines of ``dataset.yaml``."""
    rubric: str
    """By name; empty if nothing is judged."""
    data: str
    """The ending of the data file."""
    rows: str
    gate: str
    rise: str
    """What may not become more beside a baseline; empty for nothing."""
    slots: str
    """What the answer prompt shows of a row; empty if no model answers."""
    extra: str
    """What ``dataset.yaml`` says of the language besides its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """The words of the example in one language, by the slots that they fill."""

    question: str
    context: str
    expected: str
    wrong: str
    unknown: str
    claim: str
    """A question whose answer is yes."""
    choose: str
    """Asks for the letter of an option."""
    yes: str
    no: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTexts:
    """What ``new.yaml`` holds."""

    files: FileTexts
    kinds: Mapping[str, KindTexts]
    languages: Mapping[str, Example]


def main(argv: Sequence[str]) -> int:
    """Write the files of a data set, print their paths and return the exit code."""
    texts: NewTexts = decode(NewTexts, load_yaml(TEXTS))
    options = _read_options(argv, list(texts.kinds))
    folder = options.to / options.name
    if folder.exists():
        raise UsageError(
            f"{folder}: is there already; choose another name, or write into it by hand"
        )
    kind = texts.kinds[options.kind]
    is_translated = options.lang in texts.languages
    example = texts.languages[options.lang if is_translated else "en"]
    rubric_file = RUBRICS / f"{kind.rubric}.{options.lang}.yaml"
    judged_in_english = bool(kind.rubric) and not rubric_file.is_file()

    data_file = f"{options.lang}.{kind.data}"
    entry = f"file: {data_file}"
    if judged_in_english:
        entry += ", rubric_language: en"
    entry += kind.extra.format_map(asdict(example))
    files = {
        DATASET_FILE: _declaration(texts.files, kind, f"{options.lang}: {{{entry}}}"),
        SCHEMA_FILE: schema_text(dataset_schema()),
        data_file: kind.rows.format_map(asdict(example)),
    }
    if kind.slots:
        slots = kind.slots.replace("{choose}", example.choose)
        prompt = texts.files.prompt.format(language=options.lang, slots=slots)
        files[f"answer.{options.lang}.yaml"] = prompt
    module = texts.files.module.format(name=options.name, claim=kind.claim)
    files[f"test_{options.name}.py"] = module
    texts_by_path = {folder / name: text for name, text in files.items()}
    write_texts(texts_by_path.items(), to_commit=True)

    for name, text in files.items():
        advice = "" if is_translated else _translation_advice(text, example)
        say(sys.stdout, f"{folder / name}{advice}")
    if judged_in_english:
        say(
            sys.stdout,
            f"the judge reads English rules: there is no {rubric_file.name}",
        )
    ignored = _ignore_in_git(options.to)
    if ignored:
        say(sys.stdout, ignored)
    if kind.rubric and kind.slots:
        say(sys.stdout, _judge_advice())
    if kind.slots:
        say(sys.stdout, _drops_advice())
    say(sys.stdout, f"put your rows in place of these, then: qagate run {folder}")
    return DONE


def _drops_advice() -> str:
    """Return how many rows show which drop."""
    by_rows = [f"{rows} rows can show {shown_by(rows)}" for rows in ROWS_OF_ADVICE]
    return "; ".join(by_rows)


def _judge_advice() -> str:
    """Return what it takes before a judge decides over the new rows."""
    return (
        "rules decide nothing here: let a model judge (--judge SPEC), then label answers of that "
        "run to measure it: qagate label"
    )


def _read_options(argv: Sequence[str], kinds: Sequence[str]) -> Namespace:
    parser = CommandParser(
        prog="qagate new",
        description="Write the files of a data set of your own: settings, data with a row to be "
        "replaced, an answer prompt, and the test module; with --kind judged, labelled answers "
        "that measure a judge. They run as they are, and decide nothing without your rows.",
        epilog="exit codes: 0 written, 4 wrong arguments or a folder that is there",
        allow_abbrev=False,
    )
    parser.add_argument(
        "name", metavar="NAME", help="of the data set; also its folder's"
    )
    parser.add_argument(
        "--lang", metavar="LANG", default="en", help="its language (default: en)"
    )
    parser.add_argument("--kind", choices=kinds, default="graded", help="(%(default)s)")
    parser.add_argument(
        "--to", metavar="DIR", type=Path, default=Path(), help="where (default: .)"
    )
    options = parser.parse_args(argv)
    if not _NAME.fullmatch(options.name):
        raise UsageError(
            f"{shown(options.name)}: a name of small letters, digits and '_' is needed, "
            "a letter first"
        )
    if not LANGUAGE.fullmatch(options.lang):
        raise UsageError(
            f"--lang: a language code such as de is needed, got {shown(options.lang)}"
        )
    return options


def _declaration(files: FileTexts, kind: KindTexts, language: str) -> str:
    """Return the text of ``dataset.yaml`` with the line of its one language."""
    text = f"{editor_line(SCHEMA_FILE)}\n{kind.settings}gates:\n  {kind.gate}\n"
    if kind.rise:
        text += f"  rise: {{{kind.rise}}}\n"
    if kind.slots:
        text += files.changes
    return f"{text}languages:\n  {language}\n"


def _translation_advice(text: str, english: Example) -> str:
    """Return which lines of a file hold texts of the English example; empty where none does."""
    phrases = [
        english.question,
        english.context,
        english.expected,
        english.wrong,
        english.claim,
        english.choose,
        "yes: ",
    ]
    numbers = []
    for number, line in enumerate(text.splitlines(), start=1):
        if any(phrase in line for phrase in phrases):
            numbers.append(str(number))
    if not numbers:
        return ""
    noun = "lines" if len(numbers) > 1 else "line"
    return f": translate {noun} {', '.join(numbers)}"


def _ignore_in_git(folder: Path) -> str:
    """Add what runs write to the ``.gitignore`` of a folder's repository.

    Outside a repository the folder gets one of its own. Returns a line about what was added, empty
    if nothing was missing. A pattern counts with or without the ``**/`` before it.
    """
    file = _repository(folder) / ".gitignore"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    patterns = {line.strip().removeprefix("**/") for line in text.splitlines()}
    missing = [line for line in IGNORED if line.removeprefix("**/") not in patterns]
    if not missing:
        return ""
    if text and not text.endswith("\n"):
        text += "\n"
    file.write_text(text + "".join(f"{line}\n" for line in missing), encoding="utf-8")
    return f"{file}: ignores {listed(missing)}"


def _repository(folder: Path) -> Path:
    """Return the top of the git repository that a folder is in, or else the folder itself."""
    whole = folder.resolve()
    for place in (whole, *whole.parents):
        if (place / ".git").exists():
            return place
    return whole
