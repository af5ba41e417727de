"""What one row of a result says, by the paths of its form and of ``--column``.

A path of the user replaces that of the form. In a plain table a column may be spelt in any case,
with ``_`` for spaces.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import MappingProxyType

from qagate.cases.tables import normal
from qagate.evaluators.text import digest
from qagate.reports.extras.decide.containers import Json
from qagate.reports.extras.decide.foreign_run import Choice
from qagate.reports.extras.decide.form_functions import (
    FormFunctions,
    Part,
    functions_of,
    measured_text,
)
from qagate.reports.extras.decide.form_table import ANY_TABLE, OF_ROW, ResultForm
from qagate.reports.extras.decide.paths import FieldPath, field_path
from qagate.reports.extras.decide.scores import FLAGS, fits, is_missing, text_of

MAX_METADATA_CHARACTERS = 1_000
"""Longer texts of a row are kept nowhere unless a path leads to them."""
ID_DIGITS = 16
"""Of a hash that stands for an id."""
MAX_ID_CHARACTERS = 60

Given = Mapping[str, object]
"""What a function of the form says of roles, in place of their paths."""
NOTHING_GIVEN: Given = MappingProxyType({})


@dataclass(kw_only=True)
class RowReader:
    """Reads the rows of one result."""

    form: ResultForm
    choice: Choice
    score_name: str = ""
    """What the score of ``--column`` is called; empty for what its path or its row calls it."""
    seen_roles: set[str] = field(default_factory=set)
    """The roles of ``--column`` that any row had."""
    more_is_better: set[str] = field(default_factory=set)
    """The scores that were found by a path of which more is better."""

    @property
    def functions(self) -> FormFunctions:
        """What the form needs beyond data."""
        return functions_of(self.form.functions)

    def given(self, part: Part, row: Json) -> Given:
        """Return what a function of the form says of the roles of a row."""
        if self.functions.values is None:
            return NOTHING_GIVEN
        return self.functions.values(part, row)

    # Paths

    def paths(self, role: str) -> tuple[FieldPath, ...]:
        """Return the paths of a role: the user's, or those of the form."""
        if role in self.choice.columns:
            return (field_path(self.choice.columns[role]),)
        return self.form.row.get(role, ())

    def score_paths(self) -> tuple[FieldPath, ...]:
        """Return the paths of all scores."""
        if "score" in self.choice.columns:
            return self.paths("score")
        return (*self.form.scores.values(), *(named.path for named in self.form.named))

    def find(self, row: Json, path: FieldPath) -> list[tuple[str, object]]:
        """Return what a path finds, also what is there and empty."""
        found = path.find(row)
        if found or self.form.name != ANY_TABLE:
            return found
        for name in path.text.split("|"):
            for key, value in row.items():
                if normal(key) == normal(name):
                    return [("", value)]
        return []

    def value(self, row: Json, role: str) -> object:
        """Return what stands in a role; None for nothing."""
        is_plain = role not in self.choice.columns and self.form.name != ANY_TABLE
        for path in self.paths(role):
            if is_plain:
                value = path.value(row)
                if value is not None:
                    return value
                continue
            found = self.find(row, path)
            if found:
                self.seen_roles.add(role)
            for _, value in found:
                if value is not None:
                    return value
        return None

    def text(self, row: Json, role: str, given: Given = NOTHING_GIVEN) -> str:
        """Return what stands in a role as text; empty for nothing."""
        value = given[role] if role in given else self.value(row, role)
        return text_of(value).strip()

    # Which item it is

    def id_of(self, row: Json, given: Given) -> str:
        """Return the id of a row, several parts of one as a hash; empty for none."""
        if "id" in given:
            return text_of(given["id"])
        values = []
        for path in self.paths("id"):
            for _, value in self.find(row, path)[:1]:
                if value != "" and not is_missing(value):
                    values.append(value)
        if not values:
            return ""
        self.seen_roles.add("id")
        if len(values) == 1 and isinstance(values[0], str | int | float):
            text = str(values[0]).strip()
            if len(text) <= MAX_ID_CHARACTERS:
                return text
        return digest(values)[:ID_DIGITS]

    def content_of(self, row: Json, given: Given) -> str:
        """Return a hash of all that was asked and expected, earlier messages of a chat too."""
        if "content" in given:
            return str(given["content"])
        paths = self.form.row.get("content")
        if paths:
            return digest([path.value(row) for path in paths])
        parts = []
        for role in ("question", "expected"):
            parts.append(given[role] if role in given else self.value(row, role))
        return digest([_comparable(part) for part in parts])

    def metadata(self, row: Json) -> dict[str, object]:
        """Return the short values of a row that slices and people may ask for."""
        values: object = row
        if self.functions.slices is not None:
            values = self.functions.slices(row)
        elif "slices" in self.form.row:
            values = self.value(row, "slices")
        if not isinstance(values, Mapping):
            values = dict(field_path("opened.*").find({"opened": values}))
        used = {path.text for role in self.choice.columns for path in self.paths(role)}
        metadata = {}
        for key, value in values.items():
            is_scalar = isinstance(value, str | int | float | bool)
            is_short = is_scalar and len(str(value)) <= MAX_METADATA_CHARACTERS
            if is_short and key not in used:
                metadata[str(key)] = value
        return metadata

    def at(self, text: str, row: Json, metadata: Json) -> object:
        """Return what ``--slice`` or ``--cluster`` names: a field of the metadata, or a path."""
        if not text:
            return None
        if text in metadata:
            return metadata[text]
        path = field_path(text)
        if "slices" in self.form.row:
            value = path.value(self.value(row, "slices"))
            if value is not None:
                return value
        for _, value in self.find(row, path):
            return value
        return None

    # Scores

    def raw_scores(self, row: Json, not_graded: Set[str]) -> dict[str, object]:
        """Return the scores of a row by name, as they stand there; None for those not graded."""
        scores: dict[str, object] = {}
        for name, value in self._named_scores(row):
            if not isinstance(name, str):
                raise TypeError(f"the name of a score is no text: {name!r:.40}")
            if isinstance(value, Mapping):
                for key, inner in value.items():
                    scores[f"{name}/{key}"] = None if name in not_graded else inner
            else:
                scores[name] = None if name in not_graded else value
        return scores

    def _named_scores(self, row: Json) -> Iterator[tuple[str, object]]:
        if "score" in self.choice.columns:
            (path,) = self.paths("score")
            for name, value in self.find(row, path):
                self.seen_roles.add("score")
                yield self.score_name or name or path.text, value
            return
        if self.functions.scores is not None:
            yield from self.functions.scores(row).items()
            return
        for name, path in self.form.scores.items():
            for _, value in self.find(row, path)[:1]:
                yield name, value
        for named in self.form.named:
            for name, value in named.path.find(row):
                if fits(name, self.form.not_scores):
                    continue
                if named.more_is_better:
                    self.more_is_better.add(name)
                yield name, value

    def not_graded(self, row: Json) -> set[str]:
        """Return the scores whose scorer says that it could not grade."""
        if self.form.reasons is None:
            return set()
        names = set()
        for name, reason in self.form.reasons.find(row):
            if isinstance(reason, str) and reason.lstrip().startswith(
                self.form.no_grade
            ):
                names.add(name)
        return names

    def faults(self, row: Json, not_graded: Set[str]) -> dict[str, str]:
        """Return why scores are missing, by name, where the tool says it."""
        faults = dict.fromkeys(not_graded, self.form.no_grade)
        if self.functions.faults is not None:
            faults.update(self.functions.faults(row))
        if self.form.faults is not None:
            for name, fault in self.form.faults.find(row):
                if not is_missing(fault):
                    faults[name] = text_of(fault)
        return faults

    def error(self, row: Json) -> str:
        """Return why no score of a row counts; empty where they do."""
        dead: Sequence[FieldPath] = self.form.dead
        if "error" in self.choice.columns:
            dead = self.paths("error")
        for path in dead:
            for _, value in self.find(row, path):
                self.seen_roles.add("error")
                if _says_something(value):
                    return text_of(value)
        for path, wanted in self.form.sure.items():
            state = text_of(path.value(row))
            if state not in wanted:
                return f"{path.text} is {state or 'missing'}, not {wanted[0]}"
        if self.functions.fault is not None:
            return self.functions.fault(row)
        return ""

    def measured(self, row: Json) -> Iterator[tuple[str, str]]:
        """Yield what a row says of how it was measured, by field."""
        for name, texts in self.form.measured.items():
            for text in texts:
                if not text.startswith(OF_ROW):
                    continue
                path = field_path(text.removeprefix(OF_ROW))
                for score, value in path.find(row):
                    said = measured_text(value)
                    if said:
                        yield name, f"{score}: {said}" if score else said


def _says_something(value: object) -> bool:
    """Return whether an error stands there: not nothing, and not a flag that is down."""
    if isinstance(value, str):
        word = value.strip().casefold()
        if word == "error":
            return True
        return not is_missing(word) and word != "0" and FLAGS.get(word) != 0.0
    return not is_missing(value) and bool(value)


def _comparable(value: object) -> object:
    """Return a question or gold in the same way, whether its file has types or only text."""
    if isinstance(value, Mapping | list):
        return value
    return (
        text_of(value)
        if isinstance(value, str)
        else str("" if value is None else value)
    )
