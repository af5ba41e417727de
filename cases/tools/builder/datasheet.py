"""The datasheet of a frozen dataset, as Markdown: its origin, and what was left out."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from cases.tools.builder.folder import Values
from cases.tools.builder.items import Item
from cases.tools.builder.people import is_reviewed
from cases.tools.review.reviews import Agreement
from evaluators.core import NO, YES
from evaluators.output import markdown_table
from evaluators.statistics.estimate import Estimate


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
    report: Mapping[str, object]
    agreement: Sequence[Agreement]
    files: Mapping[str, str]


def datasheet(facts: Facts) -> str:
    """Return the datasheet. The same facts give the same text."""
    parts = (
        f"# {facts.name} ({facts.language}): datasheet\n",
        _what(facts),
        "## Balance\n",
        _balance(facts),
        "## Sources and licences\n",
        _sources(facts),
        "## From sampled to frozen\n",
        _funnel(facts),
        "## Models and prompts\n",
        _models(facts),
        "## Review by native speakers\n",
        _people(facts),
        "## What the question alone gives away\n",
        _question_only(facts),
        "## Files\n",
        table(
            ("File", "SHA-256"), [(f"`{name}`", f"`{sha}`") for name, sha in facts.files.items()]
        ),
        "## Limits\n",
        _limits(facts),
    )
    return "\n".join(parts)


def _what(facts: Facts) -> str:
    yes, no = facts.labels[YES], facts.labels[NO]
    return (
        f"{len(facts.items):,} items. Each is a passage, a question that is answered {yes} or {no} "
        "by what the passage says, and that answer. A model wrote the questions on paragraphs of "
        "published texts; they were checked by rule and confirmed by another model. What people "
        "saw of them is told below. No article stands in two splits.\n"
    )


def _balance(facts: Facts) -> str:
    counts = Counter((item.origin.group, item.split, item.answer) for item in facts.items)
    places = sorted({(group, split) for group, split, _ in counts})
    rows = [
        (text(group), split or "–", *(f"{counts[group, split, one]:,}" for one in (YES, NO)))
        for group, split in places
    ]
    whole = Counter(item.answer for item in facts.items)
    rows.append(("all", "all", f"{whole[YES]:,}", f"{whole[NO]:,}"))
    return table(("Source", "Split", facts.labels[YES], facts.labels[NO]), rows)


def _sources(facts: Facts) -> str:
    counts = Counter(
        (item.origin.group, _place(item.origin.source), item.origin.licence) for item in facts.items
    )
    hashes = {
        _place(path): str(sha)
        for path, sha in _mapping(facts.options.get("sample", {}), "files").items()
    }
    rows = [
        (text(group), text(where), text(licence), f"{count:,}", _code(hashes.get(where)))
        for (group, where, licence), count in sorted(counts.items())
    ]
    made = facts.options.get("sample", {})
    return (
        table(("Source", "File or address", "Licence", "Items", "SHA-256 of the file"), rows)
        + f"\nSampled with seed {made.get('seed')}. Title, address and revision of the article "
        "stand with every item.\n"
    )


def _place(source: str) -> str:
    """Return an address as it is, and a file's name without its folders."""
    return source if "://" in source else source.rstrip("/\\").replace("\\", "/").rpartition("/")[2]


def _funnel(facts: Facts) -> str:
    rows = []
    for step, counts in _mapping(facts.report, "steps").items():
        told = cast("Mapping[str, object]", counts)
        why = _mapping(told, "dropped_why") if "dropped_why" in told else {}
        reasons = ", ".join(f"{reason} {count}" for reason, count in why.items())
        rows.append((step, f"{told['in']}", f"{told['kept']}", f"{told['dropped']}", text(reasons)))
    return table(("Step", "In", "Kept", "Dropped", "Why"), rows)


def _models(facts: Facts) -> str:
    made = {step: facts.options.get(step, {}) for step in ("generate", "validate")}
    returned = {
        step: sorted({public(value.get("returned") or value.get("model")) for value in values})
        for step, values in (
            ("generate", [item.generator for item in facts.items]),
            ("validate", [item.validator for item in facts.items]),
        )
    }
    prompts = sorted({f"{item.generator.get('prompt')}" for item in facts.items})
    rubrics = sorted({f"{item.validator.get('prompt')}" for item in facts.items})
    blind = f"{made['validate'].get('prompt', '–')}"
    writer = _code(public(made["generate"].get("generator")))
    checker = _code(public(made["validate"].get("validator")))
    rows = [
        ("generator", writer, *_codes(returned["generate"], prompts)),
        ("validator", checker, *_codes(returned["validate"], rubrics)),
    ]
    said = table(("Role", "Model as asked for", "Model as returned", "Prompt"), rows)
    steps = [(step, _code(values.get("recipe"))) for step, values in facts.options.items()]
    rules = [row for row in steps if row[1] != _code(None)]
    return f"{said}\nThe validator {_blind(made['validate'], blind)}\n\n" + table(
        ("Step", "Hash of its part of the language's recipe"), rules
    )


def _blind(values: Values, prompt: str) -> str:
    if values.get("blind"):
        return f"first answered by itself, with prompt `{prompt}`, and had to agree."
    return "was shown the proposed answer; it did not answer by itself first."


def _codes(*lists: Sequence[str]) -> list[str]:
    return [", ".join(map(_code, some)) for some in lists]


def _people(facts: Facts) -> str:
    seen = sum(map(is_reviewed, facts.items))
    if not seen:
        return "No person has looked at these items.\n"
    answers = sum("answer_before" in item.review for item in facts.items)
    questions = sum("question_before" in item.review for item in facts.items)
    head = (
        f"{seen:,} of {len(facts.items):,} items were seen by a native speaker, who did not see "
        f"the proposed answer. Reviewers changed the answer of {answers:,} and the wording of "
        f"{questions:,} of them. Agreement is over all items reviewed, those dropped "
        "included, and without the verdicts of those who were only asked to decide disputes.\n\n"
    )
    rows = [
        (one.group or "all", f"{one.items:,}", figure(one.raw), figure(one.alpha), _kappas(one))
        for one in facts.agreement
    ]
    header = (
        "Type of question",
        "Items seen by several",
        "Equal verdicts",
        "Alpha",
        "Cohen's kappa",
    )
    return head + table(header, rows)


def _kappas(one: Agreement) -> str:
    """Return kappa of each pair; people are numbered, for their names are not the dataset's."""
    names = sorted({name for pair in one.pairs for name in (pair.first, pair.second)})
    number = {name: place for place, name in enumerate(names, 1)}
    said = (
        f"{number[pair.first]} and {number[pair.second]}: {figure(pair.kappa)}"
        for pair in one.pairs
    )
    return "; ".join(said) or "–"


def figure(one: Estimate) -> str:
    """Return a figure with its interval."""
    if one.value is None:
        return "undefined"
    if one.low is None or one.high is None:
        return f"{one.value:.3f}"
    return f"{one.value:.3f} ({one.low:.3f} to {one.high:.3f})"


def _question_only(facts: Facts) -> str:
    alone = _mapping(facts.report, "question_only")
    if not alone:
        return "Not known: there are no items.\n"
    shares = cast("Mapping[str, float]", alone["shares"])
    low, high = cast("tuple[float, float]", alone["interval"])
    best = str(alone["best"])
    rows = [(name, f"{share:.3f}") for name, share in shares.items()]
    return (
        "Rules that never see the passage, learnt on four fifths of the items and tried on the "
        f"rest. The best is {best}: {shares[best]:.3f} ({low:.3f} to {high:.3f}); chosen after the "
        "fact, so a little too high.\n\n" + table(("Rule", "Right"), rows)
    )


def _limits(facts: Facts) -> str:
    seen = sum(map(is_reviewed, facts.items))
    limits = [
        "Questions come from one model: its habits of wording and its blind spots are in them, and "
        "a model of its family may find them easier.",
        "Items that the validator did not confirm are left out: what both models get wrong may "
        "remain, and what is hard for either is rarer than in real reading.",
        "The answer of an item follows from its passage, which may be out of date or wrong.",
        "Passages are short paragraphs of the sources named; other kinds of text may be harder.",
    ]
    if seen < len(facts.items):
        unseen = len(facts.items) - seen
        limits.append(f"{unseen:,} of {len(facts.items):,} items were seen by no person.")
    return "".join(f"- {limit}\n" for limit in limits)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    return "".join(f"{line}\n" for line in markdown_table(header, rows))


def text(value: str) -> str:
    """Return a text of somebody else's for a cell of a table."""
    flat = " ".join(value.split())
    return "".join(f"\\{char}" if char in "\\`*_[]<>|&~" else char for char in flat)


def public(model: object) -> str:
    """Return the name of a model as asked for, without the address of the server."""
    return str(model or "").partition("@")[0]


def _code(value: object) -> str:
    return f"`{str(value).replace('`', '')}`" if value else "–"


def _mapping(values: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = values.get(key, {})
    return value if isinstance(value, Mapping) else {}
