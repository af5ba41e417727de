"""Another model confirms each item; what it does not confirm is dropped with its reason."""

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cases.builder.validation import Validator, check_pair, is_contested
from cases.builder.work_folder import DraftItem
from evaluators.core import NO, YES, RefusedError, Reply, Request, TransientError, UsageError
from evaluators.models.spec import build
from evaluators.replies.readers import read_reason
from evaluators.rubric import load_prompt, load_rubric
from tests.support.building import make_item, recipe, with_calls
from tests.support.scripted import Scripted
from tests.support.tables import tabled

ROOT = Path(__file__).parents[2]
RUBRIC = load_rubric(ROOT / "evaluators/rubrics/validate.be.yaml")
BLIND = load_prompt(ROOT / "cases/boolq/answer.be.yaml")
ITEM = make_item(1, question="Ці маглі тут жыць людзі?", answer=YES)


def said(**fields: str) -> Reply:
    return Reply(text=json.dumps(fields, ensure_ascii=False))


def validated(
    folder: Path, says: Callable[[Request], Reply], *, blind: bool = False, item: DraftItem = ITEM
) -> tuple[DraftItem, Scripted]:
    """Return an item as a validator leaves it, and the validator."""
    model = Scripted(says, spec="openai:validator")
    validator = Validator(
        model=model, recipe=recipe(), rubric=RUBRIC, blind=BLIND if blind else None
    )
    (found,) = with_calls(folder, lambda calls: validator.validate([item], calls))
    return found, model


@pytest.mark.parametrize(
    ("names", "grade", "fate"),
    [
        (("reason", "grade"), "CORRECT", ("kept", "", "")),
        (("reason", "grade"), "Правільны", ("kept", "", "")),
        (("reason", "grade"), "INCORRECT", ("dropped", "not_confirmed", "Так.")),
        (("explanation", "verdict"), "Няправільны", ("dropped", "not_confirmed", "Так.")),
    ],
)
def test_only_a_confirmed_item_is_kept(
    tmp_path: Path, names: tuple[str, str], grade: str, fate: tuple[str, str, str]
) -> None:
    """Verdict and explanation are kept with the item, and who gave them; they say why it is gone.

    The validator sees text, question, both labels and the answer, and nothing of the generator.
    """
    item = replace(ITEM, answer=NO, wanted=YES, generator={"model": "openai:writer"})
    reply = replace(said(**dict(zip(names, ("Так.", grade), strict=True))), model="scripted-2026")
    found, model = validated(tmp_path, lambda _: reply, item=item)
    assert (found.state, found.reason, found.detail) == fate
    told = [found.validator[name] for name in ("verdict", "explanation", "prompt", "returned")]
    verdict = "CORRECT" if found.state == "kept" else "INCORRECT"
    assert told == [verdict, "Так.", RUBRIC.version, "scripted-2026"]
    (request,) = model.requests
    asked = request.messages[-1].content
    assert all(part in asked for part in (item.paragraph, item.question, '["Так", "Не"]'))
    assert 'Прапанаваны адказ: "Не"' in asked
    assert "writer" not in asked


@pytest.mark.parametrize(
    "text",
    ["", "Думаю, правільна або не.", '{"grade": "NOT_ATTEMPTED"}', '{"grade": "CORRECT"', "7"],
)
def test_an_unreadable_verdict_is_no_confirmation(tmp_path: Path, text: str) -> None:
    """Three replies without a verdict drop the item; none of them is taken for a grade."""
    found, model = validated(tmp_path, lambda _: Reply(text=text))
    assert (found.state, found.reason) == ("dropped", "unreadable")
    assert [request.attempt for request in model.requests] == [0, 1, 2]


@tabled("answer", "grade", "fate", "contested")
def test_opinions_that_differ_leave_an_item_to_people(
    tmp_path: Path, answer: str, grade: str, fate: list[str], *, contested: bool
) -> None:
    """The validator answers by itself, then judges the proposed answer; two against it drop it."""

    def says(request: Request) -> Reply:
        if request.version == BLIND.version:
            return Reply(text=answer)
        return said(reason="Так.", grade=grade)

    found, model = validated(tmp_path, says, blind=True)
    assert [found.state, found.reason] == fate
    assert is_contested(found) == contested
    assert ITEM.question in model.requests[0].messages[-1].content
    assert "Прапанаваны" not in model.requests[0].messages[-1].content


CHECK = "Тэкст: {{paragraph}}\nПытанне: {{question}}\nАдказ: {{ answer }}\n"


@pytest.mark.parametrize(("verdict", "state"), [("Правільны", "kept"), ("Няправільны", "dropped")])
def test_answers_are_confirmed_in_the_users_words(tmp_path: Path, verdict: str, state: str) -> None:
    """The reply is an object as such a template asks for, with the field ``verdict``."""
    own = replace(recipe(), validation=CHECK)
    item = make_item(1, question="Ці тут жылі людзі?", answer=YES)
    reply = {"paragraph": item.paragraph, "question": item.question, "answer": "Так"}
    model = Scripted(lambda _: said(**reply, verdict=verdict), spec="openai:validator")
    validator = Validator(model=model, recipe=own, rubric=RUBRIC)
    (found,) = with_calls(tmp_path, lambda calls: validator.validate([item], calls))
    assert found.state == state
    assert str(found.validator["prompt"]).startswith("template#")
    (message,) = model.requests[0].messages
    assert message.content.endswith('Пытанне: "Ці тут жылі людзі?"\nАдказ: "Так"\n')


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (TransientError("timeout", "too late"), "pending"),
        (RefusedError("content_filter", "filtered"), "dropped"),
    ],
)
def test_a_failed_call_is_no_verdict(tmp_path: Path, error: Exception, state: str) -> None:
    """An outage leaves the item for the next run; a refusal of this one text is final."""

    def says(_: Request) -> Reply:
        raise error

    found, _ = validated(tmp_path, says)
    assert (found.state, found.validator) == (state, {})
    assert found.detail.removesuffix(" (tried 2 times)") in ("too late", "filtered")


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
def test_generator_and_validator_are_two(
    generator: str, validator: str, *, same_provider: bool, message: str
) -> None:
    """The same model by another name is refused, and so is one of the same provider.

    --same-provider is for two models of one server, never for the same model.
    """
    refused = pytest.raises(UsageError, match=message) if message else contextlib.nullcontext()
    with refused:
        check_pair(spec(generator), spec(validator), same_provider=same_provider)
