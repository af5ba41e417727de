"""The two files of a sheet: a form that works offline, worded by ``texts/``, and its CSV twin."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from cases.review.sheet import Sheet, SheetItem
from evaluators.output import BOM, content_policy, guarded, sheet_lines, write_texts
from evaluators.reading import load_settings
from evaluators.text import INVISIBLE, escaped, mask

FOLDER = Path(__file__).parent
FALLBACK = "en"
CELL = 32_000
"""Characters; a spreadsheet's cell holds 32,767."""
BETWEEN = " | "
TO_EDIT = "to_edit"
RATE = "rate: "
"""What the column of a criterion begins with, before its name."""
_INERT = {ord(char): f"\\u{ord(char):04x}" for char in "<>&'\u2028\u2029"}
_HIDDEN = re.compile(
    f"{INVISIBLE.pattern}|[\x0b-\x0d\x1c-\x1f\x85\u2028\u2029\ud800-\udfff\ufffe\uffff]"
)


def write_sheet(sheet: Sheet, folder: Path) -> tuple[Path, Path]:
    """Write ``<name>.html`` and ``<name>.csv`` into a folder, return both paths. Raises QAError."""
    page, twin = folder / f"{sheet.name}.html", folder / f"{sheet.name}.csv"
    write_texts([(page, form_page(sheet)), (twin, csv_twin(sheet))])
    return page, twin


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """The form's words in one language."""

    language: str
    form: Mapping[str, str]
    titles: Mapping[str, str]
    """Titles of fields; likewise verdicts, and reasons why an item is on the sheet."""
    verdicts: Mapping[str, str]
    reasons: Mapping[str, str]
    rules: Mapping[str, str]
    """How verdicts are to be given, by choice set."""

    def why(self, item: SheetItem) -> str:
        """Return why an item is on the sheet; an unknown reason is its own text."""
        return "; ".join(self.reasons.get(reason, reason) for reason in item.reasons)


def texts_in(language: str) -> Texts:
    """Return the texts of a language, or of English if it has no file."""
    known = {path.stem for path in (FOLDER / "texts").glob("*.yaml")}
    language = language if language in known else FALLBACK
    settings = load_settings(FOLDER / "texts" / f"{language}.yaml")
    names = ("form", "titles", "verdicts", "reasons", "rules")
    parts = {name: settings.part(name) for name in names}
    words = {name: {key: one.text(key) for key in one.values} for name, one in parts.items()}
    return Texts(language=language, **words)


def form_page(sheet: Sheet) -> str:
    """Return the form. Texts of items are in one JSON block, which nothing in them can end."""
    texts = {item.language: texts_in(item.language) for item in sheet.items}
    first = next(iter(texts.values()), texts_in(""))
    template, script, style = (
        (FOLDER / name).read_text(encoding="utf-8")
        for name in ("form.html.j2", "form.js", "form.css")
    )
    environment = Environment(
        loader=DictLoader({"form": template}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    rubrics = list(dict.fromkeys(visible(item.rubric) for item in sheet.items if item.rubric))
    data = {
        "rubrics": rubrics,
        "sheet": sheet.digest,
        "name": sheet.name,
        "reviewer": visible(sheet.reviewer),
        "texts": {name: {"lang": one.language, **one.form} for name, one in texts.items()},
        "items": [
            _screen(list(items), texts, rubrics)
            for _, items in groupby(sheet.items, key=lambda one: one.pair or one.id)
        ],
    }
    return environment.get_template("form").render(
        language=first.language,
        words=first.form,
        policy=Markup(content_policy(script, style)),  # base64 and fixed words
        script=Markup(script),  # our own file, no data in it
        style=Markup(style),
        data=Markup(json.dumps(data, ensure_ascii=False).translate(_INERT)),
    )


def _screen(
    items: Sequence[SheetItem], languages: Mapping[str, Texts], rubrics: list[str]
) -> dict[str, object]:
    """Return an item, or both answers of a pair, as the form's script takes them."""
    item, *others = items
    texts = languages[item.language]
    fields = [(texts.titles.get(one, visible(one)), text) for one, text in item.fields.items()]
    asked = [(id_, visible(one.text), one) for id_, one in item.asked]
    if others:  # the last field is the answer, the others are alike
        title = fields.pop()[0]
        names = [f"{title} {number}" for number, _ in enumerate(items, start=1)]
        fields += zip(names, ([*one.fields.values()][-1] for one in items), strict=True)
        asked = [(one.id, name, one.questions[0]) for name, one in zip(names, items, strict=True)]
    return {
        "id": asked[0][0],  # text and comment are kept with the first question
        "language": item.language,
        "note": visible(texts.why(item)),
        "rules": "\n".join(texts.rules[one.kind] for one in item.questions if one.kind),
        "edit": None if item.edit is None else visible(item.edit),
        "fields": [{"title": title, "text": visible(text)} for title, text in fields],
        "rubric": rubrics.index(visible(item.rubric)) if item.rubric else None,
        "questions": [
            {
                "id": id_,
                "text": text,
                "choices": [
                    {"value": value, "key": key, "label": texts.verdicts.get(value, value)}
                    for value, key in one.keys.items()
                ],
            }
            for id_, text, one in asked
        ],
    }


def csv_twin(sheet: Sheet) -> str:
    """Return the items as CSV, a row each, with empty columns for what reviewers fill in."""
    titles = list(dict.fromkeys(title for item in sheet.items for title in item.fields))
    names = list(dict.fromkeys(one.name for item in sheet.items for one in item.questions))
    edits = [TO_EDIT] if any(item.edit is not None for item in sheet.items) else []
    words = {item.language: texts_in(item.language) for item in sheet.items}
    asked = [f"{RATE}{name}" if name else "verdict" for name in names or [""]]
    header = ["item", "language", *(f"shown: {title}" for title in titles), "why", "rules"]
    rows = [[*header, *edits, "choices", *asked, "edited", "comment", "reviewer"]]
    for item in sheet.items:
        own = words[item.language]
        rules = "\n".join(
            f"{one.name} ({one.values[0]} to {one.values[-1]}): {one.text}"
            if one.name
            else own.rules[one.kind]
            for one in item.questions
        )
        row = [item.id, item.language, *(item.fields.get(title, "") for title in titles)]
        row += [own.why(item), rules, *([item.edit or ""] if edits else [])]
        verdicts = (BETWEEN.join(one.values) for one in item.questions if not one.name)
        rows.append([*row, next(verdicts, ""), *[""] * len(asked), "", "", sheet.reviewer])
    return spreadsheet_text(rows)


def spreadsheet_text(rows: Iterable[Iterable[str | float]]) -> str:
    """Return rows as the text of a CSV file for a spreadsheet, every text made safe by ``cell``."""
    safe = ([cell(one) if isinstance(one, str) else str(one) for one in row] for row in rows)
    return BOM + "".join(sheet_lines(safe))


def visible(text: str) -> str:
    r"""Return the text with hidden characters as ``\u202e`` (no tab, no newline), keys masked."""
    return _HIDDEN.sub(escaped, mask(text.replace("\r\n", "\n")))


def cell(text: str) -> str:
    """Return a text for a spreadsheet's cell: visible, cut if it is too long, never a formula."""
    shown = visible(text)
    return guarded(shown if len(shown) <= CELL else f"{shown[:CELL]} […]")
