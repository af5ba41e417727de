"""The columns of each kind of data file, and names that only look like them."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property

from cases.tables import Table
from evaluators.kinds import CHECKED, GRADED, JUDGED, RATED, YES_NO, Kind
from evaluators.reading import problem
from evaluators.text import encodable, hint, listed, shown


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The normal column names of each field of an item; the first name is the usual one.

    All of ``gold``'s columns that a file has are accepted forms, the main one first.
    """

    required: tuple[str, ...]
    gold: tuple[str, ...] = ("answer", "answers")
    context: tuple[str, ...] = ("context", "paragraph", "passage")
    question: tuple[str, ...] = ("question", "problem")
    recorded: tuple[str, ...] = ("predicted_answer", "predicted_answers")
    aliases: tuple[str, ...] = ("aliases",)
    tolerance: tuple[str, ...] = ("tolerance",)
    label: tuple[str, ...] = ()
    id: tuple[str, ...] = ("id", "qid")
    metadata: tuple[str, ...] = ("metadata",)

    def names(self, field: str) -> tuple[str, ...]:
        """Return the names of one field."""
        found: tuple[str, ...] = getattr(self, field)
        return found

    @cached_property
    def used(self) -> frozenset[str]:
        """Every name that is not metadata of an item; a second id is."""
        return frozenset(name for field in FIELDS for name in self.names(field)) - set(self.id[1:])


FIELDS = tuple(one.name for one in fields(Layout) if one.name != "required")

LAYOUTS: Mapping[Kind, Layout] = {
    GRADED: Layout(required=("question", "gold")),
    RATED: Layout(
        gold=("expected",),
        context=("context",),
        tolerance=(),
        required=("question",),
    ),
    YES_NO: Layout(
        gold=("answer",),
        context=("paragraph", "passage", "context"),
        aliases=(),
        tolerance=(),
        required=("context", "question", "gold"),
    ),
    CHECKED: Layout(required=("question",)),
    JUDGED: Layout(label=("label",), required=("question", "gold", "recorded", "label")),
}

# Spellings to name in messages, beside the normal ones.
SPELLINGS: Mapping[str, str] = {
    "question": "Question",
    "answer": "Answer",
    "answers": "Answers",
    "predicted_answers": "Predicted answers",
}

# Letters that look like Latin ones, of the scripts that stand on the users' keyboards.
LOOK_ALIKES = str.maketrans(
    "АВЕЅІЈКМНОРСТХУаеѕіјкмнорстхуԁԛԝɡıΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορτυχ",
    "ABESIJKMHOPCTXYaesijkmhopctxydqwgiABEZHIKMNOPTYXaiknoptux",
)


def check_columns(table: Table, layout: Layout) -> None:
    """Raise UsageError where a column is missing or its name only looks like a known one."""
    for column, name in table.names.items():
        if not encodable(name):
            what = f"column name {name!a} holds a lone surrogate, half a character; retype it"
            raise problem(table.path, 1, what)
        if column not in layout.used:
            _check_script(table, column, name, layout)
    if table.has_header:
        for field in layout.required:
            if not any(name in table.names for name in layout.names(field)):
                raise problem(table.path, 1, _missing(table, layout.names(field)))


def _missing(table: Table, names: tuple[str, ...]) -> str:
    """Return what to say of a header without this field, with the column that may be meant."""
    found = table.names.values()
    guesses = (hint(name, found) for name in names)
    close = next((guess for guess in guesses if guess.startswith("did you mean")), "")
    advice = close.replace("did you mean", "is it", 1) or "rename the column or add it"
    return f"no column {names[0]!r}{spellings(names)}; found {listed(found)}; {advice}"


def spellings(names: tuple[str, ...]) -> str:
    """Return the other names that a column may have, for a message; empty where there is none."""
    others = [SPELLINGS.get(names[0], ""), *(SPELLINGS.get(name, name) for name in names[1:])]
    quoted = ", ".join(repr(name) for name in others if name)
    return f" (or {quoted})" if quoted else ""


def _check_script(table: Table, column: str, name: str, layout: Layout) -> None:
    """Raise UsageError for a name that is only drawn like the one of a known column."""
    visible = "".join(char for char in name if unicodedata.category(char) != "Cf")
    latin = unicodedata.normalize("NFKC", visible).translate(LOOK_ALIKES)
    meant = "_".join(latin.casefold().split())
    if meant not in layout.used:
        return
    odd = next(char for char in name if not char.isascii())
    what = (
        f"column {shown(name)} is not {SPELLINGS.get(meant, meant)!r}: it holds U+{ord(odd):04X} "
        f"({unicodedata.name(odd, 'no name')}); retype the name in Latin letters"
    )
    if table.has_header:
        raise problem(table.path, 1, what)
    raise table.problem(next(r for r in table.records if column in r.values), column, what)
