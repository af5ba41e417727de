"""The offline page on which people give verdicts: one file, for reviews and for labels alike.

Its script (``form.js``), style and frame lie beside this module. It needs no server: what is said
is kept in the browser's storage and saved as a file, which the page can read again. A sheet
with goals (``goals.py``) says as one goes how many verdicts are lacking, and shows spare answers
until there are enough.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from qagate.cases.extras.review.goals import Goal
from qagate.cases.extras.review.sheet import (
    FOLDER,
    Sheet,
    SheetItem,
    csv_twin,
    filled_template,
    texts_in,
    visible,
)
from qagate.evaluators import output


def write_sheet(sheet: Sheet, folder: Path) -> tuple[Path, Path]:
    """Write ``<name>.html`` and ``<name>.csv`` into a folder, return both paths. Raises QAError."""
    page, twin = folder / f"{sheet.name}.html", folder / f"{sheet.name}.csv"
    output.write_texts([(page, form_page(sheet)), (twin, csv_twin(sheet))])
    return page, twin


def form_page(sheet: Sheet) -> str:
    """Return the form. Texts of items are in one JSON block, which nothing in them can end."""
    script = (FOLDER / "form.js").read_text("utf-8")
    style = (FOLDER / "form.css").read_text("utf-8")
    rubrics = list(
        dict.fromkeys(visible(item.rubric) for item in sheet.items if item.rubric)
    )
    texts = {item.language: texts_in(item.language)["form"] for item in sheet.items}
    screens = [
        _screen(list(items), rubrics)
        for _, items in groupby(sheet.items, lambda item: item.pair or item.id)
    ]
    data = {
        "rubrics": rubrics,
        "sheet": sheet.digest,
        "name": sheet.name,
        "reviewer": visible(sheet.reviewer),
        "texts": texts,
        "goals": _goals(sheet),
        "command": sheet.command,
        "items": screens,
    }
    return filled_template(
        FOLDER / "form.html.j2",
        html=True,
        data=data,
        script=script,
        style=style,
        policy=output.content_policy(script, style),
    )


def _goals(sheet: Sheet) -> dict[str, list[dict[str, object]]]:
    """Return the goals of each slice, with the words of its language, as the script takes them."""
    language_of = {item.drawn.part: item.language for item in sheet.items if item.drawn}
    goals = {}
    for part, goals_of_part in sheet.goals.items():
        words = texts_in(language_of[part])["verdicts"]
        goals[part] = [_goal(goal, words) for goal in goals_of_part]
    return goals


def _goal(goal: Goal, words: Mapping[str, str]) -> dict[str, object]:
    return {
        "label": words.get(goal.name, goal.name),
        "verdicts": goal.verdicts,
        "wanted": goal.wanted,
        "have": goal.have,
    }


def _screen(items: Sequence[SheetItem], rubrics: list[str]) -> dict[str, object]:
    """Return an item, or both answers of a pair, as the form's script takes them."""
    item = items[0]
    texts = texts_in(item.language)
    fields = [
        (texts["titles"].get(title, visible(title)), text)
        for title, text in item.fields.items()
    ]
    asked = [(id_, visible(question.text), question) for id_, question in item.asked]
    if len(items) > 1:  # the last field is the answer, the others are alike
        title, _ = fields.pop()
        names = [f"{title} {number}" for number, _ in enumerate(items, start=1)]
        answers = [[*member.fields.values()][-1] for member in items]
        fields += zip(names, answers, strict=True)
        asked = [
            (member.id, name, member.questions[0])
            for name, member in zip(names, items, strict=True)
        ]
    screen: dict[str, object] = {
        "id": asked[0][0],  # text and comment are kept with the first question
        "language": item.language,
        "note": visible(
            "; ".join(texts["reasons"].get(reason, reason) for reason in item.reasons)
        ),
        "rules": "\n".join(
            texts["rules"][question.kind]
            for question in item.questions
            if question.kind
        ),
        "edit": None if item.edit is None else visible(item.edit),
        "fields": [{"title": title, "text": visible(text)} for title, text in fields],
        "rubric": rubrics.index(visible(item.rubric)) if item.rubric else None,
        "questions": [
            {
                "id": id_,
                "text": text,
                "choices": [
                    {
                        "value": value,
                        "key": key,
                        "label": texts["verdicts"].get(value, value),
                    }
                    for value, key in question.keys.items()
                ],
            }
            for id_, text, question in asked
        ],
    }
    if item.drawn:
        screen["part"] = item.drawn.part
        screen["stratum"] = item.drawn.stratum
        screen["spare"] = item.drawn.is_spare
    return screen
