"""The datasheet of a frozen dataset, as Markdown: its origin, and what was left out."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from cases.builder.closed_book import KNOWN
from cases.builder.validation import is_contested
from cases.builder.work_folder import Item, Values
from cases.review.reviews import Agreement
from evaluators.core import NO, YES
from evaluators.statistics.estimate import Estimate

Row = tuple[str, ...]
TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a datasheet tells. ``options`` holds what each step was made with, ``report`` counts.

    ``files`` maps the data files of the dataset to their SHA-256.
    """

    name: str
    language: str
    labels: Mapping[str, str]
    items: Sequence[Item]
    options: Mapping[str, Values]
    report: Values
    agreement: Sequence[Agreement]
    files: Mapping[str, str]


def filled_template(template: str, **values: object) -> str:
    """Return a file of a dataset folder, made from its template."""
    environment = Environment(  # plain text, no HTML
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(values)


def datasheet(facts: Facts) -> str:
    """Return the datasheet. The same facts give the same text."""
    items, alone = facts.items, facts.report.get("question_only", {})
    sample = facts.options.get("sample", {})
    recipes = {step: made["recipe"] for step, made in facts.options.items() if made.get("recipe")}
    return filled_template(
        "datasheet.md.j2",
        facts=facts,
        yes=facts.labels[YES],
        no=facts.labels[NO],
        total=len(items),
        balance=_balance(items),
        sources=_sources(items, sample.get("files", {})),
        seed=sample.get("seed"),
        funnel=_funnel(facts.report),
        models=_models(facts),
        validate=facts.options.get("validate", {}),
        contested=sum(map(is_contested, items)),
        known=_known(facts),
        recipes=[(step, _code(version)) for step, version in recipes.items()],
        seen=sum(bool(item.review.get("said")) for item in items),
        answers=sum("answer_before" in item.review for item in items),
        questions=sum("question_before" in item.review for item in items),
        agreement=[_agreement(one) for one in facts.agreement],
        alone=alone,
        guesses=[(name, f"{share:.3f}") for name, share in alone.get("shares", {}).items()],
        files=[(f"`{name}`", f"`{sha}`") for name, sha in facts.files.items()],
    )


def _known(facts: Facts) -> int | None:
    """Return how many items models knew without the passage; None where none was asked."""
    if not facts.options.get("probe", {}).get("probe"):
        return None
    dropped: Values = facts.report["steps"]["probe"].get("dropped_why", {})
    return int(dropped.get(KNOWN, 0))


def _balance(items: Sequence[Item]) -> list[Row]:
    counts = Counter((item.origin.group, item.split, item.answer) for item in items)
    rows: list[Row] = [
        (_cell(group), split or "–", *(f"{counts[group, split, one]:,}" for one in (YES, NO)))
        for group, split in sorted({(group, split) for group, split, _ in counts})
    ]
    whole = Counter(item.answer for item in items)
    return [*rows, ("all", "all", f"{whole[YES]:,}", f"{whole[NO]:,}")]


def _sources(items: Sequence[Item], hashes: Mapping[str, str]) -> list[Row]:
    counts = Counter(
        (item.origin.group, _place(item.origin.source), item.origin.licence) for item in items
    )
    known = {_place(path): sha for path, sha in hashes.items()}
    return [
        (_cell(group), _cell(where), _cell(licence), f"{count:,}", _code(known.get(where)))
        for (group, where, licence), count in sorted(counts.items())
    ]


def _place(source: str) -> str:
    """Return an address as it is, and a file's name without its folders."""
    return source if "://" in source else source.rstrip("/\\").replace("\\", "/").rpartition("/")[2]


def _funnel(report: Values) -> list[Row]:
    rows: list[Row] = []
    for step, counts in report.get("steps", {}).items():
        why = counts.get("dropped_why", {})
        reasons = _cell(", ".join(f"{reason} {count}" for reason, count in why.items()))
        rows.append((step, *(str(counts[state]) for state in ("in", "kept", "dropped")), reasons))
    return rows


def _models(facts: Facts) -> list[Row]:
    rows: list[Row] = []
    for step, role, said in (
        ("generate", "generator", [item.generator for item in facts.items]),
        ("validate", "validator", [item.validator for item in facts.items]),
    ):
        requested = public(facts.options.get(step, {}).get(role))
        returned = {public(one.get("returned") or one.get("model")) for one in said}
        prompts = {f"{one.get('prompt')}" for one in said}
        rows.append((role, _code(requested), _codes(returned), _codes(prompts)))
    return rows


def _agreement(one: Agreement) -> Row:
    """Return a row of the table; people are numbered, for their names are not the dataset's."""
    names = sorted({name for pair in one.pairs for name in (pair.first, pair.second)})
    number = {name: place for place, name in enumerate(names, 1)}
    kappas = "; ".join(
        f"{number[pair.first]} and {number[pair.second]}: {interval_text(pair.kappa)}"
        for pair in one.pairs
    )
    figures = (interval_text(one.raw), interval_text(one.alpha))
    return one.group or "all", f"{one.items:,}", *figures, kappas or "–"


def interval_text(one: Estimate) -> str:
    """Return a figure with its interval."""
    return one.text("{value} ({low} to {high})")


def public(model: object) -> str:
    """Return the name of a model as asked for, without the address of the server."""
    return str(model or "").partition("@")[0]


def _cell(value: str) -> str:
    """Return a text of somebody else's for a cell of a table."""
    flat = " ".join(value.split())
    return "".join(f"\\{char}" if char in "\\`*_[]<>|&~" else char for char in flat)


def _code(value: str | None) -> str:
    return f"`{value.replace('`', '')}`" if value else "–"


def _codes(values: Iterable[str]) -> str:
    return ", ".join(map(_code, sorted(values)))
