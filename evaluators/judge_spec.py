"""What ``--judge`` names: rules, a model, rules before a model, or several judges.

Its text form is in options, ``run.json`` and records: ``lexical``, a model's SPEC,
``lexical+SPEC``, or the members of a panel separated by spaces.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

LEXICAL = "lexical"
PYTHON = "python:"
"""Begins the SPEC of the user's own judge: ``python:MODULE:CLASS``."""

BEFORE = "+"
"""Separates rules from the model that judges what they do not settle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSpec:
    """One judge: ``rules`` that ask no model, a ``model``'s SPEC, or rules before a model."""

    rules: str = ""
    model: str = ""

    @classmethod
    def parse(cls, text: str) -> "JudgeSpec":
        """Return the judge of a SPEC; a plus sign may also be part of a model's name."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelSpec:
    """One judge, or several that vote."""

    members: tuple[JudgeSpec, ...]

    @classmethod
    def parse(cls, text: str) -> "PanelSpec":
        """Return the judges that a run or a record names, without any check."""
        return parse_judges(text.split(" "))

    @property
    def name(self) -> str:
        """The members' SPECs, separated by spaces; no SPEC contains one."""
        return " ".join(self.names)

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
        """Whether no member ever asks a model."""
        return all(one.is_offline for one in self.members)

    def models(self) -> tuple[str, ...]:
        """Return the SPECs of all models that may be asked, each once."""
        return tuple(dict.fromkeys(one.model for one in self.members if one.model))


def returned_names(spec: str, models: Mapping[str, str]) -> str:
    """Return a judge's SPEC with its models' names by their providers, by SPEC where asked."""
    return " ".join(
        replace(one, model=models[one.model]).name if one.model in models else one.name
        for one in PanelSpec.parse(spec).members
    )


def known_names(name: str, spec: str) -> frozenset[str]:
    """Return the members of a judge that were asked, by their providers' names.

    ``name`` comes from ``returned_names(spec)``: a member that is the same in both was not asked.
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
