"""From a judge's verdicts on labelled answers to the content of its card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial

from cases.labelled_file import LabelledAnswer, LabelledFile, agreed
from cases.labels import CONSTRUCTED, Label
from evaluators.core import Outcome, Verdict
from evaluators.output import markdown_table
from evaluators.rubric import PASS_BAR
from evaluators.secrets import mask, one_line
from evaluators.statistics.intervals import Estimate
from reports.judge.judge_agreement import (
    Pair,
    confusion,
    graded_figures,
    rated_figures,
    rater_figures,
    self_agreement,
)

ALL = "all"
UNIT_TESTS = "; unit tests of the judge, no sample of real answers"
padded_table = partial(markdown_table, padded=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Estimates over some of the items, by name; ``confusion`` counts (label, grade) pairs."""

    title: str
    figures: Mapping[str, Estimate]
    confusion: Mapping[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was found.

    ``items`` have a verdict and a label to hold it against, on ``questions`` different questions.
    ``errors`` counts, by kind, answers on which the judge gave no verdict, of ``judgements`` in
    all; ``unlabelled`` items, on which the raters tie, are in no figure. ``cost`` is that of the
    replies used, in USD, None where a price is unknown.
    """

    items: int
    questions: int
    judgements: int
    unlabelled: int
    errors: Mapping[str, int]
    sections: tuple[Section, ...]
    people: Mapping[str, Estimate]
    repeats: Estimate
    labels: tuple[str, ...]
    judges: tuple[str, ...]
    tokens: int
    cost: float | None


def job_key(item: LabelledAnswer, repeat: int) -> str:
    """Return the name of one judging of an item."""
    return f"{item.case.id}~{repeat}"


def measured(
    labelled: LabelledFile,
    items: Sequence[LabelledAnswer],
    outcomes: Mapping[str, Outcome],
    repeats: int,
    pass_bar: int = PASS_BAR,
) -> Measured:
    """Return all figures over these items; each item's first verdict is held against its label.

    ``pass_bar`` is the lowest rating that passes.
    """
    ended = {item.case.id: [outcomes[job_key(item, r)] for r in range(1, repeats + 1)]
             for item in items}  # fmt: skip
    every = [outcome for some in ended.values() for outcome in some]
    firsts = ((item, _given(ended[item.case.id][0], labelled)) for item in items)
    judged = [(item, given) for item, given in firsts if given is not None]
    known = [item for item, _ in judged if item.label is not None]
    costs = [outcome.usage.cost for outcome in every]
    verdicts = [[v.label for one in some if (v := _verdict(one))] for some in ended.values()]
    return Measured(
        items=len(known),
        questions=len({item.cluster for item in known}),
        judgements=len(every),
        unlabelled=sum(item.label is None for item in items),
        errors=Counter(one.kind or one.state for one in every if not _verdict(one)),
        sections=tuple(_sections(labelled, judged, pass_bar)),
        people=_people(labelled, items),
        repeats=self_agreement(verdicts),
        labels=labelled.labels,
        judges=tuple(sorted({one.judge for one in every if one.judge})),
        tokens=sum(one.usage.input_tokens + one.usage.output_tokens for one in every),
        cost=None if None in costs else sum(cost or 0.0 for cost in costs),
    )


def _verdict(outcome: Outcome) -> Verdict | None:
    return outcome.verdict if outcome.state in ("passed", "failed") else None


def _given(outcome: Outcome, labelled: LabelledFile) -> Label | None:
    verdict = _verdict(outcome)
    if verdict is None:
        return None
    if labelled.style == "rated":
        return None if verdict.rating is None else float(verdict.rating)
    return labelled.collapse(verdict.grade)


def _sections(
    labelled: LabelledFile, judged: Sequence[tuple[LabelledAnswer, Label]], pass_bar: int
) -> Iterable[Section]:
    """Yield the figures over all items, by language, and against the raters together."""

    def section(title: str, labels: Iterable[Label | None], language: str = "") -> Section:
        pairs = [
            Pair(
                label=labelled.collapse(label) or label,
                given=given,
                cluster=item.cluster,
                length=len(item.answer),
            )
            for (item, given), label in zip(judged, labels, strict=True)
            if label is not None and language in ("", item.case.language)
        ]
        if labelled.style == "rated":
            return Section(title=title, figures=rated_figures(pairs, pass_bar))
        return Section(title=title, figures=graded_figures(pairs), confusion=confusion(pairs))

    own = [item.label for item, _ in judged]
    yield section(ALL, own)
    languages = dict.fromkeys(item.case.language for item, _ in judged)
    for language in languages if len(languages) > 1 else ():
        yield section(language, own, language)
    if labelled.own_label and len(labelled.raters) > 1:
        together = [agreed(list(item.raters.values())) for item, _ in judged]
        yield section("against the raters' majority or mean", together)


def _people(labelled: LabelledFile, items: Sequence[LabelledAnswer]) -> dict[str, Estimate]:
    if len(labelled.raters) < 2:
        return {}
    units = [
        {name: labelled.collapse(label) or "" for name, label in item.raters.items()}
        if labelled.style == "graded"
        else dict(item.raters)
        for item in items
    ]
    clusters = [item.cluster for item in items]
    return rater_figures(units, clusters, numbers=labelled.style == "rated")


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
        *(line for section in found.sections for line in _section_lines(section, found.labels)),
        *_people_lines(found.people),
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
    counts = ("items", "questions", "judgements", "unlabelled")
    for key in (*counts, "errors", "judges", "tokens", "cost"):
        value[key] = getattr(found, key)
    value["sections"] = [
        {
            "title": section.title,
            "figures": {name: figure_json(figure) for name, figure in section.figures.items()},
            "confusion": [[*pair, count] for pair, count in sorted(section.confusion.items())],
        }
        for section in found.sections
    ]
    value["people"] = {name: figure_json(figure) for name, figure in found.people.items()}
    value["self_agreement"] = figure_json(found.repeats)
    return value


def figure_text(figure: Estimate) -> str:
    """Return value, interval and number of items."""
    return figure.text(
        full="{value} [{low}, {high}] (n = {n})",
        bare="{value} [no interval: nothing varies] (n = {n})",
        undefined="undefined (n = {n})",
    )


def figure_json(figure: Estimate) -> dict[str, object]:
    """Return value, interval and number of items as a value for JSON."""
    return {"value": figure.value, "interval": figure.interval, "n": figure.n}


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
        ("labels", f"{about.style}; source: {_safe(about.source) or 'not said in the file'}"
                   f"{UNIT_TESTS if CONSTRUCTED in about.source else ''}"),
        ("items measured", f"{found.items}, on {found.questions} questions"),
        ("items without one label", f"{found.unlabelled}"),
        ("errors, counted apart", f"{sum(found.errors.values())} of {found.judgements}"
                                  f"{f' ({_safe(errors)})' if errors else ''}"),
        ("cost of the replies", f"{money}, {found.tokens:,} tokens"),
        ("requests sent for this card", f"{about.requests}"),
        ("date", about.date),
    ]  # fmt: skip
    return ["", *padded_table(("", "what"), rows)]


def _section_lines(section: Section, labels: Sequence[str]) -> list[str]:
    rows = [(name, figure_text(figure)) for name, figure in section.figures.items()]
    lines = [
        "",
        f"## {_safe(section.title)}",
        "",
        *padded_table(("measure", "value [interval]"), rows),
    ]
    if section.confusion:
        lines += ["", *_confusion(section.confusion, labels)]
    return lines


def _confusion(counts: Mapping[tuple[str, str], int], labels: Sequence[str]) -> list[str]:
    def row(label: str) -> list[str]:
        return [label, *(str(counts.get((label, said), 0)) for said in labels)]

    return padded_table(("label \\ judge", *labels), [row(label) for label in labels])


def _people_lines(people: Mapping[str, Estimate]) -> list[str]:
    if not people:
        return []
    rows = [(_safe(name), figure_text(figure)) for name, figure in people.items()]
    return [
        "",
        "## The people among themselves",
        "",
        *padded_table(("measure", "value [interval]"), rows),
    ]


def _repeats(found: Measured) -> list[str]:
    if not found.repeats.n:
        return []
    return ["", "## The judge with itself", "",
            f"Same verdict every time: {figure_text(found.repeats)}"]  # fmt: skip
