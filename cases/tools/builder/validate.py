"""A second model's verdict on each item; it sees text, question and answer, and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from cases.tools.builder.asking import Desk
from cases.tools.builder.items import Item
from cases.tools.builder.recipe import Recipe
from evaluators.answerers import answer_messages
from evaluators.core import (
    CORRECT,
    NO,
    NOT_ATTEMPTED,
    YES,
    Ask,
    CallError,
    Case,
    JudgeError,
    Model,
    RefusedError,
    Reply,
    Request,
    UsageError,
)
from evaluators.judges.llm import PARAMETERS, ask_until_read, judge_messages
from evaluators.models.spec import Spec
from evaluators.replies import Invalid, read_grade, read_reason, read_yes_no
from evaluators.rubric import Prompt, Rubric


@dataclass(frozen=True, slots=True, kw_only=True)
class Validator:
    """A model that confirms items by a rubric; with ``blind`` it answers first, unprompted."""

    model: Model
    recipe: Recipe
    rubric: Rubric
    blind: Prompt | None = None

    async def validate(self, items: Sequence[Item], desk: Desk) -> list[Item]:
        """Return the items: kept if confirmed, dropped if not, pending where a call failed."""
        jobs = [partial(self._one, item) for item in items]
        results = await desk.work("validate", jobs)
        return [
            _failed(item, result) if isinstance(result, CallError) else result
            for item, result in zip(items, results, strict=True)
        ]

    async def _one(self, item: Item, ask: Ask) -> Item:
        """Return an item with what was said of it. Raises CallError."""
        said: dict[str, object] = {"model": self.model.spec, "prompt": self.rubric.version}
        try:
            if self.blind is not None:
                said["blind"] = await self._answer(item, self.blind, ask)
                if said["blind"] != item.answer:
                    return _dropped(item, "blind", f"answered {said['blind']}", said)
            grade, reply = await self._verdict(item, ask)
        except JudgeError as error:
            return _dropped(item, "unreadable", f"{error}", said)
        reason = read_reason(reply)
        said |= {"returned": reply.model, "verdict": grade, "explanation": reason}
        if grade == CORRECT:
            return replace(item, validator=said)
        return _dropped(item, "not_confirmed", reason, said)

    async def _verdict(self, item: Item, ask: Ask) -> tuple[str, Reply]:
        case = self._case(item)
        request = Request(
            messages=judge_messages(self.rubric, case, self.recipe.labels[item.answer]),
            parameters=PARAMETERS,
            version=self.rubric.version,
        )
        return await ask_until_read(self.model, request, ask, _read)

    async def _answer(self, item: Item, prompt: Prompt, ask: Ask) -> str:
        """Return the validator's own YES or NO, reached without the proposed one."""
        labels = self.recipe.labels
        request = Request(
            messages=answer_messages(prompt, self._case(item)),
            parameters=PARAMETERS,
            version=prompt.version,
        )

        def read(reply: Reply) -> str | Invalid:
            return read_yes_no(reply.text, reply.finish, (labels[YES],), (labels[NO],))

        answer, _ = await ask_until_read(self.model, request, ask, read)
        return answer

    def _case(self, item: Item) -> Case:
        labels = self.recipe.labels
        return Case(
            id=item.id,
            dataset="boolq",
            language=item.language,
            row=0,
            question=item.question,
            golds=(labels[YES], labels[NO]),
            context=item.paragraph,
        )


def check_pair(generator: Spec, validator: Spec, *, same_provider: bool) -> None:
    """Raise UsageError where the validator is the generator, or of its provider.

    A name that another server gives is the same model; ``same_provider`` allows another model of
    one provider, never the same.
    """
    if _name(generator) == _name(validator):
        msg = f"--validator {validator.text} is the generator; name a model of another provider"
        raise UsageError(msg)
    if generator.base_url == validator.base_url and not same_provider:
        msg = (
            f"--validator {validator.text} is of the generator's provider; name a model of another "
            "one, or give --same-provider"
        )
        raise UsageError(msg)


def _name(spec: Spec) -> str:
    """Return a model's name without what gateways put before it."""
    return spec.name.casefold().rpartition("/")[2]


def _read(reply: Reply) -> str | Invalid:
    grade = read_grade(reply)
    return Invalid("NOT_ATTEMPTED is not on offer") if grade == NOT_ATTEMPTED else grade


def _dropped(item: Item, reason: str, detail: str, said: dict[str, object]) -> Item:
    return replace(item, state="dropped", reason=reason, detail=detail, validator=said)


def _failed(item: Item, error: CallError) -> Item:
    state: Literal["dropped", "pending"] = "pending"
    if isinstance(error, RefusedError):
        state = "dropped"
    return replace(item, state=state, reason=error.kind, detail=f"{error}")
