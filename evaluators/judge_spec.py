"""What ``--judge`` names, as values: rules, a model, rules before a model, or several judges.

The text form is what the user writes and what ``run.json`` and the records keep: ``lexical``, a
model's SPEC, ``lexical+SPEC``, and of a panel its members with a space between them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from evaluators.core import UsageError

LEXICAL = "lexical"
PYTHON = "python:"
"""What the SPEC of a judge of one's own begins with: ``python:MODULE:CLASS``."""

BEFORE = "+"
"""Between the rules that settle what they are sure of and the model that judges the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSpec:
    """One judge: ``rules`` that ask no model, a ``model``'s SPEC, or rules before a model."""

    rules: str = ""
    model: str = ""

    @classmethod
    def parse(cls, text: str) -> "JudgeSpec":
        """Return the judge of a SPEC; a plus sign may as well belong to a model's own name."""
        head, plus, rest = text.partition(BEFORE)
        if _are_rules(text) and not plus:
            return cls(rules=text)
        return cls(rules=head, model=rest) if rest and _are_rules(head) else cls(model=text)

    @property
    def name(self) -> str:
        """The SPEC."""
        return BEFORE.join(part for part in (self.rules, self.model) if part)

    @property
    def is_offline(self) -> bool:
        """Whether it never asks a model."""
        return not self.model

    @property
    def is_cascade(self) -> bool:
        """Whether its rules settle what they are sure of before its model is asked."""
        return bool(self.rules and self.model)

    def returned(self, models: Mapping[str, str]) -> str:
        """Return the SPEC with the model as its provider named it in ``models``, by its SPEC."""
        if self.model not in models:
            return models.get(self.name, self.name)
        return BEFORE.join(part for part in (self.rules, models[self.model]) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelSpec:
    """One judge, or several that vote."""

    members: tuple[JudgeSpec, ...]

    @classmethod
    def parse(cls, text: str) -> "PanelSpec":
        """Return the judges that a run or a record names, without any check."""
        return cls(members=tuple(map(JudgeSpec.parse, text.split(" "))))

    @property
    def name(self) -> str:
        """The members' SPECs with a space between them; no SPEC holds one."""
        return " ".join(member.name for member in self.members)

    @property
    def names(self) -> tuple[str, ...]:
        """The members' SPECs."""
        return tuple(member.name for member in self.members)

    @property
    def is_panel(self) -> bool:
        """Whether several judges vote."""
        return len(self.members) > 1

    @property
    def is_cascade(self) -> bool:
        """Whether the only judge is rules before a model."""
        return not self.is_panel and self.members[0].is_cascade

    @property
    def is_offline(self) -> bool:
        """Whether no judge of it ever asks a model."""
        return all(one.is_offline for one in self.members)

    def models(self) -> tuple[str, ...]:
        """Return the SPECs of all models that may be asked, each once."""
        return tuple(dict.fromkeys(one.model for one in self.members if one.model))

    def check_panel(self, who: Mapping[str, object]) -> None:
        """Raise UsageError for a panel that cannot vote.

        ``who`` says which models are the same by another SPEC: equal values are one model.
        """
        if not self.is_panel:
            return
        for one in self.members:
            if one.is_cascade:
                raise UsageError(
                    f"--judge {one.name}: rules before a model are no member of a panel; name "
                    f"{one.model} alone, or the rules as a judge of their own"
                )
        for one, two in combinations(self.members, 2):
            if who.get(one.model, one.name) == who.get(two.model, two.name):
                raise UsageError(
                    f"--judge {two.name}: the same judge as --judge {one.name}; name it once"
                )


def returned_names(spec: str, models: Mapping[str, str]) -> str:
    """Return a judge's SPEC with every model in it as its provider named it.

    ``models`` maps the SPECs of the models that were asked to those names; one that was not asked
    keeps its SPEC.
    """
    return " ".join(member.returned(models) for member in PanelSpec.parse(spec).members)


def known_names(name: str, spec: str) -> frozenset[str]:
    """Return those members of a judge that were asked, as their providers named them.

    ``name`` is what ``returned_names`` made of ``spec``: where the two agree nobody was asked.
    """
    members, asked = name.split(" "), spec.split(" ")
    if len(members) != len(asked):
        return frozenset({name})
    return frozenset(one for one, two in zip(members, asked, strict=True) if one != two)


def parse_judges(texts: Sequence[str]) -> PanelSpec:
    """Return the judges of ``--judge``, given once or more often."""
    return PanelSpec(members=tuple(map(JudgeSpec.parse, texts)))


def _are_rules(text: str) -> bool:
    return text == LEXICAL or text.startswith(PYTHON)
