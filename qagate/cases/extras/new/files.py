"""The files of a new data set: settings, data, answer prompts and the test.

``qagate new`` fills them with an example, ``qagate start`` with the rows of a spreadsheet. What the
files hold and what differs by kind stands in ``new.yaml``.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

from qagate.cases.config import LANGUAGE
from qagate.cases.dataset import DATASET_FILE
from qagate.cases.extras.new.schema import dataset_schema, editor_line, schema_text
from qagate.evaluators.core import UsageError
from qagate.evaluators.reading import load_yaml
from qagate.evaluators.rubric import RUBRICS
from qagate.evaluators.text import shown
from qagate.evaluators.typed_data import decode

TEXTS = Path(__file__).with_name("new.yaml")
SCHEMA_FILE = "dataset.schema.json"
"""By which an editor completes and checks ``dataset.yaml``."""
ENGLISH = "en"
"""The language of the example, and of the rubric, where there is none in the set's own."""
UNMEASURED = (
    "judge: unmeasured    # no labels say how often it errs; each last line says so\n"
)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTexts:
    """What the files of all kinds have in common."""

    module: str
    prompt: str
    changes: str
    """The gate on changes to a baseline, where a model answers."""
    slots_with_context: str
    """What the answer prompt shows where rows have a context that their kind does not need."""


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

    def example(self, language: str) -> Example:
        """Return the example in a language, or else in English."""
        if language in self.languages:
            return self.languages[language]
        return self.languages[ENGLISH]


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """What may be lost beside a baseline."""

    size: float
    """A share of the answers, 0 to 1."""
    advice: str
    """What is said of it in ``dataset.yaml``."""


USUAL_MARGIN = Margin(size=0.2, advice="60 rows can show so much, 340 can show 0.10")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDataset:
    """A data set before it is written."""

    name: str
    kind: str
    """By its name in ``new.yaml``."""
    data: Mapping[str, str]
    """The text of the data file of each language."""
    suffix: str
    """The ending of the data files, without a dot."""
    headings: Mapping[str, str] = field(default_factory=dict)
    """The headings of the data files in place of our names of columns, by our name."""
    margin: Margin = USUAL_MARGIN
    has_context: bool = False
    """Whether rows have a context although their kind does not need one."""
    judge_unmeasured: bool = False
    """Whether grades decide although no labels measure the judge."""

    def texts(self, texts: NewTexts) -> dict[str, str]:
        """Return the text of each file, by its name within the folder."""
        kind = texts.kinds[self.kind]
        files = {
            DATASET_FILE: self._declaration(texts),
            SCHEMA_FILE: schema_text(dataset_schema()),
        }
        for language, text in self.data.items():
            files[self._data_file(language)] = text
        if kind.slots:
            for language in self.data:
                files[f"answer.{language}.yaml"] = self._prompt(texts, language)
        module = texts.files.module.format(name=self.name, claim=kind.claim)
        files[f"test_{self.name}.py"] = module
        return files

    def _data_file(self, language: str) -> str:
        return f"{language}.{self.suffix}"

    def _declaration(self, texts: NewTexts) -> str:
        kind = texts.kinds[self.kind]
        text = f"{editor_line(SCHEMA_FILE)}\n{kind.settings}"
        if self.headings:
            text += f"columns: {_flow_mapping(self.headings)}\n"
        if self.judge_unmeasured:
            text += UNMEASURED
        text += f"gates:\n  {kind.gate}\n"
        if kind.rise:
            text += f"  rise: {{{self._with_margin(kind.rise)}}}\n"
        if kind.slots:
            text += self._with_margin(texts.files.changes)
        text += "languages:\n"
        for language in self.data:
            entry = f"file: {self._data_file(language)}"
            if is_judged_in_english(kind, language):
                entry += f", rubric_language: {ENGLISH}"
            entry += kind.extra.format_map(asdict(texts.example(language)))
            text += f"  {language}: {{{entry}}}\n"
        return text

    def _with_margin(self, text: str) -> str:
        with_size = text.replace("{margin}", f"{self.margin.size:.2f}")
        return with_size.replace("{advice}", self.margin.advice)

    def _prompt(self, texts: NewTexts, language: str) -> str:
        slots = texts.kinds[self.kind].slots
        if self.has_context:
            slots = texts.files.slots_with_context
        slots = slots.replace("{choose}", texts.example(language).choose)
        return texts.files.prompt.format(language=language, slots=slots)


@cache
def load_texts() -> NewTexts:
    """Return what ``new.yaml`` holds."""
    texts: NewTexts = decode(NewTexts, load_yaml(TEXTS))
    return texts


def rubric_file(kind: KindTexts, language: str) -> str:
    """Return the name of the bundled rubric of a kind in a language, which may not exist."""
    return f"{kind.rubric}.{language}.yaml"


def is_judged_in_english(kind: KindTexts, language: str) -> bool:
    """Return whether the judge reads English rules, as there are none in the language."""
    return bool(kind.rubric) and not (RUBRICS / rubric_file(kind, language)).is_file()


def check_name(name: str) -> None:
    """Raise UsageError for what cannot name a data set: its folder, and part of a function."""
    if not _NAME.fullmatch(name):
        like = re.sub(r"[^a-z0-9]+", "_", name.lower(), flags=re.ASCII).strip("_")
        example = f", such as {like}" if _NAME.fullmatch(like) else ""
        raise UsageError(
            f"{shown(name)}: a name of small letters, digits and '_' is needed, "
            f"a letter first{example}"
        )


def check_language(language: str, option: str) -> None:
    """Raise UsageError for what is no language code; ``option`` says where it stood."""
    if not LANGUAGE.fullmatch(language):
        raise UsageError(
            f"{option}: a language code such as de is needed, got {shown(language)}"
        )


def _flow_mapping(mapping: Mapping[str, str]) -> str:
    """Return a mapping in one line of YAML, whose texts JSON's quotes hold."""
    entries = [
        f"{key}: {json.dumps(text, ensure_ascii=False)}"
        for key, text in mapping.items()
    ]
    return f"{{{', '.join(entries)}}}"
