"""The two files of a sheet: a form that works without a network, and its twin in CSV.

What the form says is in ``texts/``, one YAML file a language.
"""

import csv
import io
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from cases.review.sheet import Sheet, SheetItem
from evaluators.output import content_policy, write_texts
from evaluators.secrets import mask
from evaluators.settings import load_settings
from evaluators.text import INVISIBLE, escaped

FOLDER = Path(__file__).parent
FALLBACK = "en"
CELL = 32_000
"""Characters: a spreadsheet's cell holds 32,767."""

BOM = "\ufeff"  # without it a spreadsheet takes UTF-8 for the local code page
BETWEEN = " | "
TO_EDIT = "to_edit"
_INERT = {ord(char): f"\\u{ord(char):04x}" for char in "<>&'\u2028\u2029"}
_HIDDEN = re.compile(
    f"{INVISIBLE.pattern}|[\x0b-\x0d\x1c-\x1f\x85\u2028\u2029\ud800-\udfff\ufffe\uffff]"
)


def write_sheet(sheet: Sheet, folder: Path) -> tuple[Path, Path]:
    """Write ``<name>.html`` and ``<name>.csv`` into a folder and return their paths.

    Raises QAError where the folder cannot take them.
    """
    page, twin = folder / f"{sheet.name}.html", folder / f"{sheet.name}.csv"
    write_texts([(page, form_page(sheet)), (twin, csv_twin(sheet))])
    return page, twin


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """The form's words in one language: its own, titles of fields, verdicts, reasons and rules.

    ``rules`` say, for each of the bundled choice sets, how its verdicts are to be given.
    """

    language: str
    form: Mapping[str, str]
    titles: Mapping[str, str]
    verdicts: Mapping[str, str]
    reasons: Mapping[str, str]
    rules: Mapping[str, str]

    def why(self, reasons: Iterable[str]) -> str:
        """Return why an item is on the sheet; a reason without a text here is its own text."""
        return "; ".join(self.reasons.get(reason, reason) for reason in reasons)


def known_languages() -> Mapping[str, Path]:
    """Return the languages that have a file of texts, in order, with these files."""
    return {path.stem: path for path in sorted((FOLDER / "texts").glob("*.yaml"))}


def texts_in(language: str) -> Texts:
    """Return the texts of a language; of English where there is no file for it."""
    known = known_languages()  # no path is made of the name: it comes from the user's files
    language = language if language in known else FALLBACK
    settings = load_settings(known[language])
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
            {
                **_item(item, texts[item.language]),
                "rubric": rubrics.index(visible(item.rubric)) if item.rubric else None,
                "questions": [_question(sheet, one, texts[item.language]) for one in (item, *more)],
            }
            for item, *more in pages_of(sheet)
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


def pages_of(sheet: Sheet) -> Iterator[list[SheetItem]]:
    """Yield the items of each page of the form."""
    for _, items in groupby(sheet.items, key=lambda item: item.page or item.id):
        yield list(items)


def _item(item: SheetItem, texts: Texts) -> dict[str, object]:
    return {
        "id": item.id,
        "language": item.language,
        "note": visible(texts.why(item.reasons)),
        "rules": "" if item.question else texts.rules.get(item.choices, ""),
        "edit": None if item.edit is None else visible(item.edit),
        "fields": [
            {"title": texts.titles.get(one.title, visible(one.title)), "text": visible(one.text)}
            for one in item.fields
        ],
    }


def _question(sheet: Sheet, item: SheetItem, texts: Texts) -> dict[str, object]:
    return {
        "id": item.id,
        "text": visible(item.question),
        "choices": [
            {
                "value": one.value,
                "key": one.key,
                "label": visible(one.label) or texts.verdicts.get(one.value, visible(one.value)),
            }
            for one in sheet.choices[item.choices]
        ],
    }


def csv_twin(sheet: Sheet) -> str:
    """Return the same items as CSV for a spreadsheet, with columns to fill in.

    The columns are item, language, its texts, why it is here, how to judge, the verdicts to choose
    from, and the empty ones: verdict, edited, comment and reviewer.
    """
    titles = list(dict.fromkeys(one.title for item in sheet.items for one in item.fields))
    edits = [TO_EDIT] if any(item.edit is not None for item in sheet.items) else []
    words = {item.language: texts_in(item.language) for item in sheet.items}
    header = ["item", "language", *(f"shown: {cell(title)}" for title in titles), "why", "rules"]
    rows = [[*header, *edits, "choices", "verdict", "edited", "comment", "reviewer"]]
    for item in sheet.items:
        texts = {one.title: one.text for one in item.fields}
        row = [item.id, item.language, *(texts.get(title, "") for title in titles)]
        own = words[item.language]
        row += [own.why(item.reasons), item.question or own.rules.get(item.choices, "")]
        row += [item.edit or ""] if edits else []
        row.append(BETWEEN.join(one.value for one in sheet.choices[item.choices]))
        rows.append([*row, "", "", "", sheet.reviewer])
    return spreadsheet_text(rows)


def spreadsheet_text(rows: Iterable[Iterable[str]]) -> str:
    """Return rows as CSV that a spreadsheet opens as UTF-8, every text made safe by ``cell``."""
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\r\n").writerows(map(cell, row) for row in rows)
    return BOM + out.getvalue()


def visible(text: str) -> str:
    r"""Return the text with hidden characters as ``\u202e`` and keys masked.

    Tabs and newlines stay.
    """
    return _HIDDEN.sub(escaped, mask(text.replace("\r\n", "\n")))


def cell(text: str) -> str:
    """Return a text for a spreadsheet's cell: visible, cut where too long, never a formula."""
    shown = visible(text)
    shown = shown if len(shown) <= CELL else f"{shown[:CELL]} […]"
    return f"'{shown}" if _is_risky(shown) else shown


def from_cell(text: str) -> str:
    """Return what ``cell`` was given, as far as its guard goes."""
    return text[1:] if text[:1] == "'" and _is_risky(text[1:]) else text


def _is_risky(text: str) -> bool:
    """Return whether a spreadsheet may take a text for a formula."""
    first = unicodedata.normalize("NFKC", text.lstrip()[:1])[:1]
    return first in frozenset("=+-@") or text[:1] in ("\t", "\n")
