"""The table of models as Markdown, CSV and JSON, and the sheet for the analysis of errors."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from cases.evaluation.answers import Data, Entrant
from cases.evaluation.misses import Facet, misses
from cases.evaluation.scores import NAMES, Estimate
from cases.evaluation.standing import ModelScores
from cases.tools.review.sheet_files import cell, visible
from evaluators.output import markdown_table

BOM = "\ufeff"  # without it a spreadsheet takes UTF-8 for the local code page
TITLES: Mapping[str, str] = {
    "accuracy": "Accuracy",
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "macro_f1": "Macro-F1",
    "unanswered": "Unanswered",
    "majority_baseline": "Majority baseline",
}


def markdown(data: Data, table: Sequence[ModelScores]) -> str:
    """Return the measures of every model, and its accuracy on each kind of item."""
    header = ("Model", *(TITLES[name] for name in NAMES), "Items", "Not graded")
    rows = [
        (_safe(one.name), *(_shown(one.measures[name]) for name in NAMES), *_counts(one))
        for one in table
    ]
    parts = [
        f"# Models on `{data.path.name}` ({data.language})\n",
        f"{len(data.cases):,} items. Each figure stands with its 95 % interval. The positive class "
        f"is {data.words['YES']}; an unanswered item is wrong. Items whose call failed are not "
        "graded and in no figure.\n",
        _table(header, rows),
    ]
    for facet in table[0].kinds if table else ():
        parts += [f"\n## Accuracy by {facet.replace('_', ' ')}\n", _by(table, facet)]
    return "\n".join(parts)


def _counts(one: ModelScores) -> tuple[str, str]:
    return f"{one.measures['accuracy'].n:,}", f"{one.ungraded:,}"


def _by(table: Sequence[ModelScores], facet: str) -> str:
    values = list(table[0].kinds[facet])
    rows = [
        (_safe(value), *(_counted(one.kinds[facet][value]) for one in table)) for value in values
    ]
    header = (facet.replace("_", " ").capitalize(), *(_safe(one.name) for one in table))
    return _table(header, rows)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"{line}\n" for line in markdown_table(header, rows))


def _shown(one: Estimate) -> str:
    if one.value is None or one.low is None or one.high is None:
        return "undefined"
    return f"{one.value:.3f} ({one.low:.3f} to {one.high:.3f})"


def _counted(one: Estimate) -> str:
    return f"{_shown(one)}, n = {one.n:,}"


def _safe(text: str) -> str:
    """Return a text for a cell of a Markdown table."""
    shown = visible(text).replace("\n", " ").replace("\t", " ")
    return "".join(f"\\{char}" if char in "\\`*_[]<>|&~" else char for char in shown)


def csv_table(table: Sequence[ModelScores]) -> str:
    """Return one row a model and measure, with interval and number of items."""
    rows = [
        (one.name, name, *map(_number, (figure.value, figure.low, figure.high)), str(figure.n))
        for one in table
        for name, figure in one.measures.items()
    ]
    rows += [
        (f"{one.name}", "not_graded", str(one.ungraded), "", "", str(one.ungraded)) for one in table
    ]
    return _csv(("model", "measure", "value", "low", "high", "n"), rows)


def json_table(data: Data, table: Sequence[ModelScores]) -> str:
    """Return everything that the other tables show, in full precision."""
    value = {
        "data": data.path.name,
        "language": data.language,
        "items": len(data.cases),
        "positive": data.words["YES"],
        "models": [asdict(one) for one in table],
    }
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def sheet(data: Data, models: Sequence[Entrant], facets: Mapping[str, Facet]) -> str:
    """Return the items that at least half of the models miss, with what each answered."""
    header = ["id", "missed_by", "of_models", *facets, "question", "passage", "gold"]
    rows = []
    for one in misses(data, models):
        case = one.case
        rows.append(
            [
                *(case.id, str(one.missed), str(one.models)),
                *(facet(case) for facet in facets.values()),
                *(case.question, case.context, data.words[str(case.label)]),
                *(_word(data, model.answers[case.id]) for model in models),
            ]
        )
    return _csv([*header, *(f"answer: {model.name}" for model in models)], rows)


def _word(data: Data, answer: str | None) -> str:
    return "" if answer is None else data.words.get(answer, answer)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"


def _csv(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")
    for row in (header, *rows):
        writer.writerow(map(cell, row))
    return BOM + out.getvalue()
