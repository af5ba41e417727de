"""The form: one self-contained page that works without a network and runs only its own script."""

import json
from importlib.resources import files

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from cases.policy import content_policy
from cases.tools.review.sheet import Sheet, SheetItem
from cases.tools.review.texts import Texts, texts_in
from cases.tools.review.visible import visible

_INERT = {ord(char): f"\\u{ord(char):04x}" for char in "<>&'\u2028\u2029"}


def render(sheet: Sheet) -> str:
    """Return the page. Texts of items stand in one JSON block, which nothing in them can end."""
    texts = {item.language: texts_in(item.language) for item in sheet.items}
    first = next(iter(texts.values()), texts_in(""))
    script, style = _asset("form.js"), _asset("form.css")
    environment = Environment(
        loader=DictLoader({"form": _asset("form.html.j2")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("form").render(
        language=first.language,
        words=first.form,
        policy=content_policy(script, style),
        script=Markup(script),  # our own file, no data in it
        style=Markup(style),
        data=Markup(_data(sheet, texts)),  # escaped below
    )


def _data(sheet: Sheet, texts: dict[str, Texts]) -> str:
    value = {
        "sheet": sheet.digest,
        "name": sheet.name,
        "reviewer": visible(sheet.reviewer),
        "texts": {name: {"lang": one.language, **one.form} for name, one in texts.items()},
        "items": [_item(sheet, item, texts[item.language]) for item in sheet.items],
    }
    return json.dumps(value, ensure_ascii=False).translate(_INERT)


def _item(sheet: Sheet, item: SheetItem, texts: Texts) -> dict[str, object]:
    return {
        "id": item.id,
        "language": item.language,
        "note": visible(texts.why(item.reasons)),
        "edit": None if item.edit is None else visible(item.edit),
        "fields": [
            {"title": texts.titles.get(one.title, visible(one.title)), "text": visible(one.text)}
            for one in item.fields
        ],
        "choices": [
            {
                "value": one.value,
                "key": one.key,
                "label": visible(one.label) or texts.verdicts.get(one.value, visible(one.value)),
            }
            for one in sheet.choices[item.choices]
        ],
    }


def _asset(name: str) -> str:
    return files("cases.tools.review").joinpath(name).read_text(encoding="utf-8")
