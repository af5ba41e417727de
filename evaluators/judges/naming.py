"""Names of judges: what ``--judge`` calls one, and what the providers called the models asked."""

from collections.abc import Container, Mapping

BEFORE = "+"
"""Between the rules that settle what they are sure of and the model that judges the rest."""


def split(name: str, rules: Container[str]) -> tuple[str, str]:
    """Return the rules that a judge has before its model, if any, and that model's SPEC.

    ``rules`` are the names that rules have: a plus sign may as well belong to a model's own name.
    """
    head, plus, rest = name.partition(BEFORE)
    return (head, rest) if plus and head in rules else ("", name)


def joined(specs: tuple[str, ...]) -> str:
    """Return the name of a panel: its members' SPECs; no SPEC holds a space."""
    return " ".join(specs)


def returned_names(spec: str, models: Mapping[str, str]) -> str:
    """Return a judge's SPEC with every model in it as its provider named it.

    ``models`` maps the SPECs of the models that were asked to those names; one that was not asked
    keeps its SPEC.
    """
    return joined(tuple(_returned(member, models) for member in spec.split(" ")))


def known_names(name: str, spec: str) -> frozenset[str]:
    """Return those members of a judge that were asked, as their providers named them.

    ``name`` is what ``returned_names`` made of ``spec``: where the two agree nobody was asked.
    """
    members, asked = name.split(" "), spec.split(" ")
    if len(members) != len(asked):
        return frozenset({name})
    return frozenset(one for one, two in zip(members, asked, strict=True) if one != two)


def _returned(member: str, models: Mapping[str, str]) -> str:
    rules, plus, model = member.partition(BEFORE)
    if member in models or not plus or model not in models:
        return models.get(member, member)
    return f"{rules}{plus}{models[model]}"
