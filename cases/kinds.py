"""The columns of each kind of data file."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

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
