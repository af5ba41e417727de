"""Which columns a kind of data file has, under which names, and names that only look right."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from cases.problems import encodable, hint, listed, shown
from cases.tables import Table, problem
from evaluators.core import Kind


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Under which normal names the fields of a kind stand; the first name is the usual one.

    All of ``gold``'s columns that a file has are accepted forms, the main one first.
    """

    gold: tuple[str, ...]
    context: tuple[str, ...]
    required: tuple[str, ...]
    question: tuple[str, ...] = ("question", "problem")
    recorded: tuple[str, ...] = ("predicted_answer", "predicted_answers")
    aliases: tuple[str, ...] = ("aliases",)
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


FIELDS = ("question", "gold", "context", "recorded", "aliases", "label", "id", "metadata")
PASSAGE = ("context", "paragraph", "passage")
GOLD = ("answer", "answers")

LAYOUTS: Mapping[Kind, Layout] = {
    "graded": Layout(gold=GOLD, context=PASSAGE, required=("question", "gold")),
    "rated": Layout(
        gold=("expected",), context=("context",), required=("question", "context", "gold")
    ),
    "yes_no": Layout(
        gold=("answer",),
        context=("paragraph", "passage", "context"),
        aliases=(),
        required=("context", "question", "gold"),
    ),
    "judged": Layout(
        gold=GOLD,
        context=PASSAGE,
        label=("label",),
        required=("question", "gold", "recorded", "label"),
    ),
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


def missing(table: Table, names: tuple[str, ...]) -> str:
    """Return what to say where one record lacks a field."""
    return f"missing{_also(names)}; the file has {listed(table.names.values())}"


def _missing(table: Table, names: tuple[str, ...]) -> str:
    found = listed(table.names.values())
    return f"no column {names[0]!r}{_also(names)}; found {found}; {_guess(table, names)}"


def _also(names: tuple[str, ...]) -> str:
    others = [SPELLINGS.get(names[0], ""), *(SPELLINGS.get(name, name) for name in names[1:])]
    others = [repr(name) for name in others if name]
    return f" (or {', '.join(others)})" if others else ""


def _guess(table: Table, names: tuple[str, ...]) -> str:
    for name in names:
        guess = hint(name, table.names.values())
        if guess.startswith("did you mean"):
            return f"is it {guess.removeprefix('did you mean ')}"
    return "rename the column or add it"


def _check_script(table: Table, column: str, name: str, layout: Layout) -> None:
    meant = _folded(name)
    if meant not in layout.used:
        return
    odd = next(char for char in name if not char.isascii())
    word = SPELLINGS.get(meant, meant)
    what = (
        f"column {shown(name)} is not {word!r}: it holds U+{ord(odd):04X} "
        f"({unicodedata.name(odd, 'no name')}); retype the name in Latin letters"
    )
    if table.has_header:
        raise problem(table.path, 1, what)
    raise table.problem(next(r for r in table.records if column in r.values), column, what)


def _folded(name: str) -> str:
    """Return the normal Latin name that a name looks like."""
    visible = "".join(char for char in name if unicodedata.category(char) != "Cf")
    latin = unicodedata.normalize("NFKC", visible).translate(LOOK_ALIKES)
    return "_".join(latin.casefold().split())
