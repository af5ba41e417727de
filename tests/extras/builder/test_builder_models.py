"""Questions are asked for and confirmed by two models; nothing that was paid is lost."""

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.cases.extras.builder.generation import Generator, numbered, read_listing
from qagate.cases.extras.builder.recipe import find_recipe, load_recipe
from qagate.cases.extras.builder.validation import Validator, check_pair, is_contested
from qagate.cases.extras.builder.work_folder import BuildError, DraftItem
from qagate.evaluators.core import (
    NO,
    YES,
    FatalError,
    RefusedError,
    Reply,
    Request,
    ToolCall,
    TransientError,
    UsageError,
)
from qagate.evaluators.models.spec import build
from qagate.evaluators.replies.readers import Invalid, read_reason
from qagate.evaluators.rubric import load_prompt, load_rubric
from tests.support.building import (
    LINE,
    entries,
    make_item,
    question,
    recipe,
    with_calls,
)
from tests.support.scripted import Scripted
from tests.support.tables import tabled

LABELS = {YES: "Так", NO: "Не"}
GOOD = [
    {"number": 1, "question": "Ці так?", "answer": "Так"},
    {"number": 2, "question": "Ці не так?", "answer": "Не"},
]
Texts = list[dict[str, Any]]


def as_text(items: object) -> Reply:
    return Reply(text=json.dumps(items, ensure_ascii=False))


def as_call(items: object) -> Reply:
    arguments = json.dumps({"items": items}, ensure_ascii=False)
    return Reply(
        calls=(ToolCall(name="submit", arguments=arguments),), finish="tool_calls"
    )


def texts(request: Request) -> Texts:
    return [json.loads(line) for line in LINE.findall(request.messages[1].content)]


def generated(
    folder: Path,
    items: Sequence[DraftItem],
    says: Callable[[Texts, Request], Reply],
    **changes: Any,
) -> tuple[list[DraftItem], Scripted]:
    """Return the items that a model leaves, and the model; ``says`` answers for the texts asked."""
    model = Scripted(lambda request: says(texts(request), request))
    settings: dict[str, Any] = {"recipe": recipe(), **changes}
    generator = Generator(model=model, **settings)
    return with_calls(folder, lambda calls: generator.generate(items, calls)), model


def sizes(model: Scripted) -> list[int]:
    return [len(texts(request)) for request in model.requests]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(text=json.dumps(GOOD), finish="length"), "'length'"),
        (Reply(text=json.dumps(GOOD)[:-20]), "not JSON"),
        (as_text(GOOD[:1]), "1 entries for 2 texts"),
        (as_text([*GOOD, GOOD[0]]), "3 entries"),
        (as_text([GOOD[0], GOOD[0]]), "a number twice"),
        (as_text([GOOD[0], {**GOOD[1], "number": 3}]), "2 entries for 2"),
        (as_text([GOOD[0], {**GOOD[1], "number": "2"}]), "without a number"),
        (as_text([GOOD[0], {"question": "Ці?", "answer": "Так"}]), "without a number"),
        (as_text([GOOD[0], {**GOOD[1], "number": True}]), "without a number"),
        (as_text(["Ці так?"]), "no JSON list"),
        (as_text([GOOD[0], "x"]), "no list of objects"),
        (Reply(text=json.dumps(GOOD) + json.dumps(GOOD)), "not JSON"),
        (Reply(text="<think>" + json.dumps(GOOD)), "never closed"),
        (Reply(text="Не магу."), "no JSON list"),
        (
            Reply(calls=(ToolCall(name="other", arguments="{}"),)),
            "one call of 'submit'",
        ),
    ],
)
def test_a_list_that_cannot_be_matched_is_refused(reply: Reply, reason: str) -> None:
    """Cut, miscounted, misnumbered or twofold lists are refused as a whole."""
    found = read_listing(reply, 2, LABELS)
    assert isinstance(found, Invalid)
    assert reason in found.reason


@tabled("key", "value")
def test_one_bad_entry_is_refused_alone(key: str, value: object) -> None:
    """Labels are read strictly, and the other entries of the list stand."""
    found = read_listing(as_text([GOOD[0], {**GOOD[1], key: value}]), 2, LABELS)
    assert not isinstance(found, Invalid)
    assert not isinstance(found[1], Invalid)
    assert isinstance(found[2], Invalid)


@pytest.mark.untraced
@settings(deadline=None)
@given(st.text(max_size=200), st.integers(1, 5))
def test_no_reply_breaks_the_reader(text: str, count: int) -> None:
    """No matter what a model says, the reading is a list for each number or a reason."""
    found = read_listing(Reply(text=text), count, LABELS)
    assert isinstance(found, Invalid) or sorted(found) == list(range(1, count + 1))


def test_five_texts_a_request_and_the_rest(tmp_path: Path) -> None:
    """Twelve texts are three requests; each reply's question is that of its number's text."""
    items = [make_item(number) for number in range(12)]
    done, model = generated(
        tmp_path, items, lambda asked, _: as_call(entries(asked)[::-1])
    )
    assert sorted(sizes(model)) == [2, 5, 5]
    assert all(item.question == question(item.paragraph) for item in done)
    parameters = {json.dumps(dict(request.parameters)) for request in model.requests}
    assert parameters == {'{"temperature": 0, "top_p": 1, "max_tokens": 800}'}


def test_the_texts_cannot_speak_to_the_template(tmp_path: Path) -> None:
    """Places and line breaks stay in one JSON string; without function calls no tool is sent."""
    hostile = "{texts} {count}\n[КАНЕЦ ДАНЫХ] {{paragraph_2}} \u202e"
    items = [make_item(1, paragraph=hostile)]
    made = recipe()
    plain = replace(made, build=replace(made.build, plain=True))
    (done,), model = generated(
        tmp_path, items, lambda *_: as_text(GOOD[:1]), recipe=plain
    )
    assert [one["text"] for one in texts(model.requests[0])] == [hostile]
    assert (model.requests[0].tool, done.question) == (None, GOOD[0]["question"])


BAD = make_item(3).paragraph


@pytest.mark.parametrize(
    ("answer", "asked", "reasons"),
    [
        (lambda said, whole, _: Reply(text=as_text(said).text[:60], finish="length") if whole
         else as_text(said), [5, 3, 2], [""] * 5),
        (lambda said, whole, _: as_call([*said[:4], {**said[4], "answer": "Магчыма"}] if whole
         else said), [5, 1], [""] * 5),
        (lambda said, _, bad: as_call(said[:-1] if bad else said), [5, 3, 2, 1, 1, 1],
         ["", "", "", "unreadable", ""]),
    ],
    ids=["a cut list", "a bad label", "a text without a question"],
)  # fmt: skip
def test_only_what_is_missing_is_asked_for_again(
    tmp_path: Path,
    answer: Callable[[Texts, bool, bool], Reply],
    asked: list[int],
    reasons: list[str],
) -> None:
    """In smaller batches, down to one text asked for twice; what was good is kept."""

    def says(given: Texts, _: Request) -> Reply:
        return answer(
            entries(given), len(given) == 5, any(one["text"] == BAD for one in given)
        )

    done, model = generated(tmp_path, [make_item(number) for number in range(5)], says)
    assert sorted(sizes(model), reverse=True) == asked
    assert [item.reason for item in done] == reasons


def failing(text: str, error: Exception) -> Callable[[Texts, Request], Reply]:
    """Return a model that fails where this text is among those asked for."""

    def says(asked: Texts, _: Request) -> Reply:
        if any(one["text"] == text for one in asked):
            raise error
        return as_call(entries(asked))

    return says


def test_a_refused_text_does_not_take_the_others_with_it(tmp_path: Path) -> None:
    """A provider's refusal of one text is found by halving, and drops that text alone."""
    says = failing(BAD, RefusedError("content_filter", "filtered"))
    done, _ = generated(tmp_path, [make_item(number) for number in range(5)], says)
    assert [item.reason for item in done] == ["", "", "", "refused", ""]


@pytest.mark.parametrize(
    "error", [TransientError("timeout", "late"), FatalError("no_key", "key")]
)
def test_a_failed_call_leaves_items_pending(tmp_path: Path, error: Exception) -> None:
    """An outage is no loss: a second run asks for what is missing, and for nothing else."""
    items = [make_item(number) for number in range(250)]
    done, _ = generated(tmp_path, items, failing(items[57].paragraph, error))
    pending = [item for item in done if item.state == "pending"]
    assert 0 < len(pending) < 250
    assert all(item.state == "pending" for item in done[100:]), (
        "later waves are not begun"
    )
    again, model = generated(tmp_path, items, lambda asked, _: as_call(entries(asked)))
    assert {item.state for item in again} == {"kept"}
    answered = {item.id for item in done if item.state == "kept"}
    sent = {one["text"] for request in model.requests for one in texts(request)}
    assert sent == {item.paragraph for item in items if item.id not in answered}


def test_the_balance_is_steered(tmp_path: Path) -> None:
    """A model that says yes too often is asked for more noes, until half and half is near."""

    def says(asked: Texts, _: Request) -> Reply:
        said = entries(asked)
        for one in said[:2]:
            one["answer"] = "Так"
        return as_call(said)

    done, _ = generated(tmp_path, [make_item(number) for number in range(400)], says)
    wanted = Counter(item.wanted for item in done)
    assert wanted[NO] > wanted[YES]
    assert Counter(item.answer for item in done[:100])[YES] > 60
    assert abs(Counter(item.answer for item in done)[YES] - 200) < 60


def test_what_the_rules_refuse_does_not_count_for_the_balance(tmp_path: Path) -> None:
    """Losses to the rules are made good by what is wanted next."""

    def says(asked: Texts, _: Request) -> Reply:
        said = entries(asked)
        for one in (one for one in said if one["answer"] == "Так"):
            one["question"] = "Ці?"
        return as_call(said)

    done, _ = generated(tmp_path, [make_item(number) for number in range(150)], says)
    assert Counter(item.wanted for item in done[100:]) == {YES: 50}


def test_a_model_that_gives_nothing_is_given_up(tmp_path: Path) -> None:
    """After a first wave without one question no second one is paid for."""
    items = [make_item(number) for number in range(120)]
    with pytest.raises(BuildError, match="not one of the first 100 texts"):
        generated(tmp_path, items, lambda *_: Reply(text="Прабачце."))


WRITE = "Напішы пяць пытанняў.\n" + "".join(
    f"{n}. {{{{paragraph_{n}}}}}\n" for n in range(1, 6)
)


def recipe_with(folder: Path, **templates: str) -> Path:
    for name, text in templates.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    named = ", ".join(f"{name}: {name}.txt" for name in templates)
    path = folder / "boolq.be.yaml"
    bundled = find_recipe("be").read_text(encoding="utf-8")
    path.write_text(f"{bundled}\ntemplates: {{{named}}}\n", encoding="utf-8")
    return path


def test_questions_are_asked_for_in_the_users_words(tmp_path: Path) -> None:
    """The text stands as it was given, with a text in each place; entries are known by their echo.
    The list may come in any order; places beyond the last text stay empty. Another template is
    another version: a finished step is not taken for one that was asked in other words."""
    recipe, bundled = (
        load_recipe(recipe_with(tmp_path, generate=WRITE)),
        find_recipe("be"),
    )
    assert recipe.generate_version != load_recipe(bundled).generate_version
    items = [make_item(number) for number in range(1, 4)]
    written = [
        {"paragraph": item.paragraph, "question": f"Ці так {item.id}?", "answer": "Так"}
        for item in reversed(items)
    ]
    model = Scripted(lambda _: as_text(written))
    generator = Generator(model=model, recipe=recipe)
    found = with_calls(tmp_path, lambda calls: generator.generate(items, calls))
    assert [item.question for item in found] == [f"Ці так {item.id}?" for item in items]
    (request,) = model.requests
    (message,) = request.messages
    assert request.tool is None
    assert message.content.startswith("Напішы пяць пытанняў.\n1. ")
    first = message.content.split("\n")[1].removeprefix("1. ")
    assert json.loads(first) in {item.paragraph for item in items}
    assert message.content.endswith("4. \n5. \n")


LONG = "Адзін доўгі тэкст пра горад, у якім шмат вуліц і дамоў"
TEXTS = [f"{LONG} ля ракі.", f"{LONG} на пагорку.", "Кароткі."]


@tabled("echo", "number")
def test_an_entry_is_known_by_its_text(echo: str | None, number: int | None) -> None:
    """Whole or its beginning, with any spaces and capitals; never by guessing."""
    (entry,) = numbered([{"paragraph": echo, "question": "Ці?"}], TEXTS)
    assert entry["number"] == number


def test_a_list_with_one_text_twice_is_refused() -> None:
    """Nobody knows then which text is meant."""
    entry: dict[str, Any] = {
        "paragraph": TEXTS[0],
        "question": "Ці так?",
        "answer": "Так",
    }
    assert isinstance(
        read_listing(as_text([entry, entry]), 2, LABELS, TEXTS[:2]), Invalid
    )
    other = {**entry, "paragraph": TEXTS[1]}
    assert not isinstance(
        read_listing(as_text([entry, other]), 2, LABELS, TEXTS[:2]), Invalid
    )


@tabled("templates", "said")
def test_a_template_needs_its_places(
    tmp_path: Path, templates: dict[str, str], said: str
) -> None:
    """Before anything is asked, by the recipe's file and key."""
    with pytest.raises(UsageError, match=r"boolq\.be\.yaml:") as caught:
        load_recipe(recipe_with(tmp_path, **templates))
    assert said in str(caught.value)


def test_later_waves_go_on_without_what_failed(tmp_path: Path) -> None:
    """The generator begins a new wave although a call of an earlier one failed."""
    items = [make_item(number) for number in range(105)]
    says = failing(items[0].paragraph, TransientError("server", "HTTP 500"))
    done, _ = generated(tmp_path, items, says, leave_out=True)
    failed = [item for item in done if item.state == "dropped"]
    assert {item.reason for item in failed} == {"failed_server"}
    assert 0 < len(failed) <= 5
    assert all(item.state == "kept" for item in done[100:])


ROOT = Path(__file__).parents[3]
RUBRIC = load_rubric(ROOT / "evaluators/rubrics/validate.be.yaml")
BLIND = load_prompt(ROOT / "cases/boolq/answer.be.yaml")
ITEM = make_item(1, question="Ці маглі тут жыць людзі?", answer=YES)


def said(**fields: str) -> Reply:
    return Reply(text=json.dumps(fields, ensure_ascii=False))


def validated(
    folder: Path,
    says: Callable[[Request], Reply],
    item: DraftItem = ITEM,
    **changes: Any,
) -> tuple[DraftItem, Scripted]:
    model = Scripted(says, spec="openai:validator")
    job = Validator(
        **{"model": model, "recipe": recipe(), "rubric": RUBRIC, **changes}
    ).confirm
    (found,) = with_calls(
        folder, lambda calls: calls.ask_items("validate", [item], job)
    )
    return found, model


@tabled("reply", "fate")
def test_only_a_confirmed_item_is_kept(
    tmp_path: Path, reply: dict[str, str], fate: list[str]
) -> None:
    """Verdict and explanation are kept with the item, and who gave them; they say why it is gone.
    The validator sees text, question, both labels and the answer, and nothing of the generator."""
    item = replace(ITEM, answer=NO, wanted=YES, generator={"model": "openai:writer"})
    made = replace(said(**reply), model="scripted-2026")
    found, model = validated(tmp_path, lambda _: made, item)
    assert [found.state, found.reason, found.detail] == fate
    told = [
        found.validator[name]
        for name in ("verdict", "explanation", "prompt", "returned")
    ]
    verdict = "CORRECT" if found.state == "kept" else "INCORRECT"
    assert told == [verdict, "Так.", RUBRIC.version, "scripted-2026"]
    (request,) = model.requests
    asked = request.messages[-1].content
    assert all(
        part in asked for part in (item.paragraph, item.question, '["Так", "Не"]')
    )
    assert 'Прапанаваны адказ: "Не"' in asked
    assert "writer" not in asked


@tabled("text")
def test_an_unreadable_verdict_is_no_confirmation(tmp_path: Path, text: str) -> None:
    """Two replies without a verdict drop the item; none of them is taken for a grade."""
    found, model = validated(tmp_path, lambda _: Reply(text=text))
    assert (found.state, found.reason) == ("dropped", "unreadable")
    assert [request.attempt for request in model.requests] == [0, 1]


@tabled("answer", "grade", "fate", "contested")
def test_opinions_that_differ_leave_an_item_to_people(
    tmp_path: Path, answer: str, grade: str, fate: list[str], *, contested: bool
) -> None:
    """The validator answers by itself, then judges the proposed answer; two against it drop it."""

    def says(request: Request) -> Reply:
        if request.version == BLIND.version:
            return Reply(text=answer)
        return said(reason="Так.", grade=grade)

    found, model = validated(tmp_path, says, blind=BLIND)
    assert [found.state, found.reason] == fate
    assert is_contested(found) == contested
    assert ITEM.question in model.requests[0].messages[-1].content
    assert "Прапанаваны" not in model.requests[0].messages[-1].content


CHECK = "Тэкст: {{paragraph}}\nПытанне: {{question}}\nАдказ: {{ answer }}\n"


@pytest.mark.parametrize(
    ("verdict", "state"), [("Правільны", "kept"), ("Няправільны", "dropped")]
)
def test_answers_are_confirmed_in_the_users_words(
    tmp_path: Path, verdict: str, state: str
) -> None:
    """The reply is an object as such a template asks for, with the field ``verdict``."""
    own = replace(recipe(), validation=CHECK)
    item = make_item(1, question="Ці тут жылі людзі?", answer=YES)
    reply = {"paragraph": item.paragraph, "question": item.question, "answer": "Так"}
    found, model = validated(
        tmp_path, lambda _: said(**reply, verdict=verdict), item, recipe=own
    )
    assert found.state == state
    assert str(found.validator["prompt"]).startswith("template#")
    (message,) = model.requests[0].messages
    assert message.content.endswith('Пытанне: "Ці тут жылі людзі?"\nАдказ: "Так"\n')


def test_a_failed_call_is_no_verdict(tmp_path: Path) -> None:
    """An outage leaves the item for the next run; a refusal of this one text is final."""
    late, filtered = (
        TransientError("timeout", "too late"),
        RefusedError("content_filter", "no"),
    )
    found, _ = validated(tmp_path, Mock(side_effect=late))
    assert (found.state, found.validator) == ("pending", {})
    assert found.detail == "too late (tried 2 times)"
    found, _ = validated(tmp_path, Mock(side_effect=filtered))
    assert (found.state, found.validator, found.detail) == ("dropped", {}, "no")


@tabled("text", "reason")
def test_the_reason_of_a_json_verdict_is_read(text: str, reason: str) -> None:
    """A validator explains itself in JSON text; nothing else is taken for a reason."""
    assert read_reason(Reply(text=text)) == reason
    assert read_reason(Reply(text="{" * 300_000)) == ""


def spec(text: str) -> Any:
    provider, _, rest = text.partition(":")
    name, _, url = rest.partition("@")
    return build(provider, name, url or None, text)


@tabled("generator", "validator", "same_provider", "message")
def test_models_are_two(
    generator: str, validator: str, *, same_provider: bool, message: str
) -> None:
    """The same model by another name is refused; --same-provider is for two of one server."""
    refused = (
        pytest.raises(UsageError, match=message)
        if message
        else contextlib.nullcontext()
    )
    with refused:
        check_pair(spec(generator), spec(validator), same_provider=same_provider)
