"""The judge card: what was measured, on which data, and how to measure it again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from evaluators.calibration.figures import Figure
from evaluators.calibration.measuring import Measured, Section
from evaluators.models.secrets import mask, one_line
from evaluators.output import markdown_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Who was measured, on what, when, and how.

    ``judge`` is the SPEC and ``version`` a hash of what it stands for; ``rubrics`` maps languages
    to rubric versions; ``sha256`` is that of the data file; ``source`` is what the file says of
    its labels; ``requests`` were sent for this card, the rest came from the ledger.
    """

    judge: str
    version: str
    rubrics: Mapping[str, str]
    data: str
    sha256: str
    style: str
    source: str
    date: str
    command: str
    requests: int


def card_text(about: Provenance, found: Measured) -> str:
    """Return the card as Markdown that reads well as plain text."""
    parts = [
        f"# Judge card: {_safe(about.judge)}",
        *_head(about, found),
        *(line for section in found.sections for line in _section(section, found.labels)),
        *_people(found.people),
        *_repeats(found),
        "",
        "All intervals are at 95 %: Wilson for shares, Student for means and slopes, bootstrap",
        "for the rest. Verdicts on answers to one question count together. Errors are in no",
        "figure: they are neither right nor wrong.",
        "",
        f"Again: `{_safe(about.command)}`",
    ]
    return "\n".join(parts) + "\n"


def card_json(about: Provenance, found: Measured) -> dict[str, object]:
    """Return the card as a value for JSON."""
    value: dict[str, object] = asdict(about)
    for key in (
        "items",
        "questions",
        "judgements",
        "unlabelled",
        "errors",
        "judges",
        "tokens",
        "cost",
    ):
        value[key] = getattr(found, key)
    value["sections"] = [
        {
            "title": section.title,
            "figures": {name: asdict(figure) for name, figure in section.figures.items()},
            "confusion": [[*pair, count] for pair, count in sorted(section.confusion.items())],
        }
        for section in found.sections
    ]
    value["people"] = {name: asdict(figure) for name, figure in found.people.items()}
    value["self_agreement"] = asdict(found.repeats)
    return value


def figure_text(figure: Figure) -> str:
    """Return value, interval and number of items."""
    if figure.value is None:
        return f"undefined (n = {figure.n})"
    if figure.interval is None:
        return f"{figure.value:.3f} [no interval: nothing varies] (n = {figure.n})"
    low, high = figure.interval
    return f"{figure.value:.3f} [{low:.3f}, {high:.3f}] (n = {figure.n})"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a Markdown table whose columns line up as plain text."""
    return markdown_table(header, rows, padded=True)


def _safe(text: str) -> str:
    return one_line(mask(text), 1000).replace("`", "'").replace("|", "/")


def _head(about: Provenance, found: Measured) -> list[str]:
    errors = ", ".join(f"{kind} {count}" for kind, count in sorted(found.errors.items()))
    money = "unknown (no price in models.yaml)" if found.cost is None else f"${found.cost:.4f}"
    rubrics = ", ".join(f"{language}: {_safe(v)}" for language, v in about.rubrics.items())
    rows = [
        ("judge", f"{_safe(about.judge)} ({about.version})"),
        ("as the provider names it", _safe(", ".join(found.judges)) or "-"),
        ("rubric", rubrics or "none: rules"),
        ("data", f"{_safe(about.data)}, SHA-256 {about.sha256[:16]}"),
        ("labels", f"{about.style}; source: {_safe(about.source) or 'not said in the file'}"),
        ("items measured", f"{found.items}, on {found.questions} questions"),
        ("items without one label", f"{found.unlabelled}"),
        ("errors, counted apart", f"{sum(found.errors.values())} of {found.judgements}"
                                  f"{f' ({_safe(errors)})' if errors else ''}"),
        ("cost of the replies", f"{money}, {found.tokens:,} tokens"),
        ("requests sent for this card", f"{about.requests}"),
        ("date", about.date),
    ]  # fmt: skip
    return ["", *table(("", "what"), rows)]


def _section(section: Section, labels: Sequence[str]) -> list[str]:
    rows = [(name, figure_text(figure)) for name, figure in section.figures.items()]
    lines = ["", f"## {_safe(section.title)}", "", *table(("measure", "value [interval]"), rows)]
    if section.confusion:
        lines += ["", *_confusion(section.confusion, labels)]
    return lines


def _confusion(counts: Mapping[tuple[str, str], int], labels: Sequence[str]) -> list[str]:
    def row(label: str) -> list[str]:
        return [label, *(str(counts.get((label, said), 0)) for said in labels)]

    return table(("label \\ judge", *labels), [row(label) for label in labels])


def _people(people: Mapping[str, Figure]) -> list[str]:
    if not people:
        return []
    rows = [(_safe(name), figure_text(figure)) for name, figure in people.items()]
    return ["", "## The people among themselves", "", *table(("measure", "value [interval]"), rows)]


def _repeats(found: Measured) -> list[str]:
    if not found.repeats.n:
        return []
    return ["", "## The judge with itself", "",
            f"Same verdict every time: {figure_text(found.repeats)}"]  # fmt: skip
