"""The builder asks in the user's own words where a recipe names them, and reads what comes back."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cases.builder.generation import Generator, read_listing
from cases.builder.own_templates import numbered
from cases.builder.recipe import find_recipe, load_recipe
from cases.builder.validation import Validator
from evaluators.core import NO, YES, Reply, Request, UsageError
from evaluators.replies import Invalid
from evaluators.rubric import load_rubric
from tests.support.building import make_item, with_calls
from tests.support.scripted import Scripted

RUBRIC = load_rubric(Path(__file__).parents[2] / "evaluators/rubrics/validate.be.yaml")
LABELS = {YES: "Так", NO: "Не"}
WRITE = "Напішы пяць пытанняў.\n" + "".join(f"{n}. {{{{paragraph_{n}}}}}\n" for n in range(1, 6))
CHECK = "Тэкст: {{paragraph}}\nПытанне: {{question}}\nАдказ: {{ answer }}\n"


def recipe_with(folder: Path, **templates: str) -> Path:
    """Return a recipe like the bundled one that names files with these texts."""
    for name, text in templates.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    named = ", ".join(f"{name}: {name}.txt" for name in templates)
    path = folder / "boolq.be.yaml"
    bundled = find_recipe("boolq", "be").read_text(encoding="utf-8")
    path.write_text(f"{bundled}\ntemplates: {{{named}}}\n", encoding="utf-8")
    return path


def as_text(value: object) -> Reply:
    return Reply(text=json.dumps(value, ensure_ascii=False))


def test_questions_are_asked_for_in_the_users_words(tmp_path: Path) -> None:
    """The text stands as it was given, with a text in each place; entries are known by their echo.

    The list may come in any order; places beyond the last text stay empty.
    """
    recipe = load_recipe(recipe_with(tmp_path, generate=WRITE))
    items = [make_item(number) for number in range(1, 4)]

    def says(request: Request) -> Reply:
        written = [
            {"paragraph": item.paragraph, "question": f"Ці так {item.id}?", "answer": "Так"}
            for item in reversed(items)
        ]
        return as_text(written)

    model = Scripted(says)
    generator = Generator(model=model, recipe=recipe, seed=1, passes=lambda done: done)
    found = with_calls(tmp_path, lambda calls: generator.generate(items, calls))
    assert [item.question for item in found] == [f"Ці так {item.id}?" for item in items]
    (request,) = model.requests
    (message,) = request.messages
    assert request.tool is None
    assert message.content.startswith("Напішы пяць пытанняў.\n1. ")
    first = message.content.split("\n")[1].removeprefix("1. ")
    assert json.loads(first) in {item.paragraph for item in items}
    assert message.content.endswith("4. \n5. \n")


def test_another_template_is_another_version(tmp_path: Path) -> None:
    """A finished step is not taken for one that was asked in other words."""
    bundled = load_recipe(find_recipe("boolq", "be"))
    own = load_recipe(recipe_with(tmp_path, generate=WRITE))
    assert own.generate_version != bundled.generate_version
    assert load_recipe(recipe_with(tmp_path)).generate_version == bundled.generate_version


LONG = "Адзін доўгі тэкст пра горад, у якім шмат вуліц і дамоў"
TEXTS = [f"{LONG} ля ракі.", f"{LONG} на пагорку.", "Кароткі."]


@pytest.mark.parametrize(
    ("echo", "number"),
    [
        (TEXTS[1], 2),
        (f"  {TEXTS[0].upper()}\n", 1),
        (f"{LONG} ля…", 1),
        (LONG, None),  # both begin so
        ("Карот", None),  # too short to be known by
        ("Іншы тэкст.", None),
        (None, None),
    ],
)
def test_an_entry_is_known_by_the_text_that_it_repeats(
    echo: str | None, number: int | None
) -> None:
    """Whole or its beginning, whatever the spaces and capitals; never by guessing."""
    (entry,) = numbered([{"paragraph": echo, "question": "Ці?"}], TEXTS)
    assert entry["number"] == number


def test_a_list_with_one_text_twice_is_refused() -> None:
    """Nobody knows then which text is meant."""
    entry: dict[str, Any] = {"paragraph": TEXTS[0], "question": "Ці так?", "answer": "Так"}
    assert isinstance(read_listing(as_text([entry, entry]), 2, LABELS, TEXTS[:2]), Invalid)
    other = {**entry, "paragraph": TEXTS[1]}
    assert not isinstance(read_listing(as_text([entry, other]), 2, LABELS, TEXTS[:2]), Invalid)


@pytest.mark.parametrize(("verdict", "state"), [("Правільны", "kept"), ("Няправільны", "dropped")])
def test_answers_are_confirmed_in_the_users_words(tmp_path: Path, verdict: str, state: str) -> None:
    """The reply is an object as such a template asks for, with the field ``verdict``."""
    recipe = load_recipe(recipe_with(tmp_path, validate=CHECK))
    item = make_item(1, question="Ці тут жылі людзі?", answer=YES)
    reply = {"paragraph": item.paragraph, "question": item.question, "answer": "Так"}
    model = Scripted(lambda _: as_text({**reply, "verdict": verdict}), spec="openai:validator")
    validator = Validator(model=model, recipe=recipe, rubric=RUBRIC)
    (found,) = with_calls(tmp_path, lambda calls: validator.validate([item], calls))
    assert found.state == state
    assert str(found.validator["prompt"]).startswith("template#")
    (message,) = model.requests[0].messages
    assert message.content.endswith('Пытанне: "Ці тут жылі людзі?"\nАдказ: "Так"\n')


@pytest.mark.parametrize(
    ("templates", "said"),
    [
        ({"generate": WRITE.replace("{{paragraph_5}}", "")}, "no place {{paragraph_5}}"),
        ({"validate": CHECK.replace("{{question}}", "")}, "no place {{question}}"),
        ({"other": "x"}, "other"),
    ],
)
def test_a_template_without_a_place_is_refused(
    tmp_path: Path, templates: dict[str, str], said: str
) -> None:
    """Before anything is asked, by the recipe's file and key."""
    with pytest.raises(UsageError, match=r"boolq\.be\.yaml:") as caught:
        load_recipe(recipe_with(tmp_path, **templates))
    assert said in str(caught.value)


def test_a_recipe_without_templates_has_none() -> None:
    """The bundled ones ask in their own words."""
    recipe = load_recipe(find_recipe("boolq", "be"))
    assert (recipe.generation, recipe.validation) == ("", "")
    assert replace(recipe, generation="x") != recipe
