"""A second model's verdict on each item; it sees text, question and answer, and nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from cases.builder.build_options import DATASET
from cases.builder.build_step import ModelCalls, Step, StepCalls, parse_model
from cases.builder.own_templates import VALIDATE, filled_message, version_of
from cases.builder.recipe import Recipe
from cases.builder.work_folder import Item, Values
from evaluators import rubric
from evaluators.answerers import answer_messages
from evaluators.core import (
    CORRECT,
    NO,
    NOT_ATTEMPTED,
    YES,
    Ask,
    Case,
    JudgeError,
    Model,
    Reply,
    Request,
    UsageError,
)
from evaluators.judges.llm import PARAMETERS, ask_until_read, judge_messages
from evaluators.models.spec import Spec
from evaluators.replies import Invalid, read_grade, read_reason, read_yes_no
from evaluators.rubric import Prompt, Rubric, load_prompt, load_rubric

NOT_CONFIRMED = "not_confirmed"
"""The reason of an item of which no opinion was for the proposed answer."""
CONTESTED = "contested"
"""The field of ``Item.validator`` that says that some opinions were, and some were not."""
RUBRICS = Path(rubric.__file__).parent / "rubrics"
DATASETS = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Validator:
    """A model that confirms items by a rubric; with ``blind`` it first answers by itself.

    It sees text, question and answer, and nothing else. Where its own answer and its verdict on
    the proposed one differ, the item is kept as ``contested``, for people to decide.
    """

    model: Model
    recipe: Recipe
    rubric: Rubric
    blind: Prompt | None = None

    async def validate(self, items: Sequence[Item], calls: StepCalls) -> list[Item]:
        """Return the items: kept if confirmed, dropped if not, pending where a call failed."""
        jobs = [partial(self._one, item) for item in items]
        return await calls.ask_items("validate", items, jobs)

    async def _one(self, item: Item, ask: Ask) -> Item:
        """Return an item with what was said of it. Raises CallError."""
        template, version = self.recipe.validation, self.rubric.version
        version = version_of(template) if template else version
        said: dict[str, object] = {"model": self.model.spec, "prompt": version}
        labels = self.recipe.labels
        case = Case(
            id=item.id,
            dataset=DATASET,
            language=item.language,
            row=0,
            question=item.question,
            golds=(labels[YES], labels[NO]),
            context=item.paragraph,
        )
        try:
            if self.blind is not None:
                said["blind"] = await self._blind_answer(case, self.blind, ask)
            texts = (item.paragraph, item.question, labels[item.answer])
            own = filled_message(template, dict(zip(VALIDATE, texts, strict=True)))
            messages = own if template else judge_messages(self.rubric, case, labels[item.answer])
            request = Request(messages=messages, parameters=PARAMETERS, version=version)
            grade, reply = await ask_until_read(self.model, request, ask, _read_verdict)
        except JudgeError as error:
            return item.dropped("unreadable", f"{error}", validator=said)
        reason = read_reason(reply)
        said |= {"returned": reply.model, "verdict": grade, "explanation": reason}
        opinions = [grade == CORRECT]
        opinions += [said["blind"] == item.answer] if self.blind is not None else []
        if not any(opinions):
            return item.dropped(NOT_CONFIRMED, reason, validator=said)
        return replace(item, validator=said if all(opinions) else {**said, CONTESTED: True})

    async def _blind_answer(self, case: Case, prompt: Prompt, ask: Ask) -> str:
        """Return the validator's own YES or NO, reached without the proposed one."""
        messages = answer_messages(prompt, case)
        request = Request(messages=messages, parameters=PARAMETERS, version=prompt.version)
        yes, no = self.recipe.labels[YES], self.recipe.labels[NO]

        def read(reply: Reply) -> str | Invalid:
            return read_yes_no(reply.text, reply.finish, (yes,), (no,))

        answer, _ = await ask_until_read(self.model, request, ask, read)
        return answer


def _read_verdict(reply: Reply) -> str | Invalid:
    grade = read_grade(reply)
    return Invalid("NOT_ATTEMPTED is not on offer") if grade == NOT_ATTEMPTED else grade


def is_contested(item: Item) -> bool:
    """Return whether validators differ about an item, so that people are to decide."""
    return bool(item.validator.get(CONTESTED))


def with_second(items: Sequence[Item], seconds: Mapping[str, Item]) -> list[Item]:
    """Return the items with those that the second validator confirms kept as contested.

    ``seconds`` maps the ids of the items that the first did not confirm to what the second made
    of them; one that it could not be asked about is pending.
    """
    found = []
    for item in items:
        second = seconds.get(item.id, item)
        said = {**item.validator, "second": second.validator}
        if second is item:
            found.append(item)
        elif second.state == "pending":
            found.append(second)
        elif second.state == "kept":
            found.append(replace(second, validator={**said, CONTESTED: True}))
        else:
            found.append(replace(item, validator=said))
    return found


def check_pair(generator: Spec, validator: Spec, *, same_provider: bool) -> None:
    """Raise UsageError where the validator is the generator, or of its provider.

    A gateway's prefix does not make another model of a name. ``same_provider`` allows another model
    of one provider, never the same.
    """
    names = {spec.name.casefold().rpartition("/")[2] for spec in (generator, validator)}
    if len(names) == 1:
        raise UsageError(
            f"--validator {validator.text} is the generator; name a model of another provider"
        )
    if generator.base_url == validator.base_url and not same_provider:
        raise UsageError(
            f"--validator {validator.text} is of the generator's provider; name a model of another "
            "one, or give --same-provider"
        )


class ValidateStep(Step):
    """Lets a second model confirm the answers."""

    name = "validate"
    help = "let a model of another provider confirm the answers"
    after = "check"
    models = ("validator", "second_validator")

    def settle(self) -> Values:
        """Return the validator, the form of its requests, and the versions of rubric and prompt."""
        options, folder = self.build.options, self.build.folder
        values = self.remembered(
            validator=None, second_validator=None, blind=True, same_provider=False
        )
        own = self.build.recipe.validation
        version = version_of(own) if own else self._rubric.version
        values = self.fixed({**values, "rubric": version})
        self.need(
            "validator", values, "name a model of another provider: --validator provider:NAME"
        )
        named = [option for option in self.models if values[option]]
        validators = [parse_model(option, values[option], options.models) for option in named]
        if writer := options.generator or folder.options("generate").get("generator"):
            generator = parse_model("generator", writer, options.models)
            for validator in validators:
                check_pair(generator, validator, same_provider=values["same_provider"])
        if len({validator.text for validator in validators}) < len(validators):
            raise UsageError(
                f"--second-validator {validators[0].text} is the first one; name another model"
            )
        return {**values, "prompt": self._prompt.version} if values["blind"] else values

    def work(self, items: Sequence[Item], calls: ModelCalls) -> list[Item]:
        """Return the items, dropped where no validator confirms them."""
        first = self._validated("validator", items, calls)
        doubted = [item.id for item in first if item.reason == NOT_CONFIRMED]
        if not self.values["second_validator"] or not doubted:
            return first
        asked = [item for item in items if item.id in set(doubted)]
        seconds = self._validated("second_validator", asked, calls)
        return with_second(first, {item.id: item for item in seconds})

    def _validated(self, option: str, items: Sequence[Item], calls: ModelCalls) -> list[Item]:
        async def validate(model: Model, calls: StepCalls) -> list[Item]:
            blind = self._prompt if self.values["blind"] else None
            validator = Validator(
                model=model, recipe=self.build.recipe, rubric=self._rubric, blind=blind
            )
            return await validator.validate(items, calls)

        return calls.run(self.name, self.spec(option), validate)

    @property
    def _rubric(self) -> Rubric:
        return load_rubric(RUBRICS / f"validate.{self.build.recipe.language}.yaml")

    @property
    def _prompt(self) -> Prompt:
        return load_prompt(DATASETS / DATASET / f"answer.{self.build.recipe.language}.yaml")
