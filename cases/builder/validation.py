"""Models check the items: the validator confirms answers, the probe finds what needs no text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from cases.builder.generation import own_message
from cases.builder.recipe import DATASET, PROPOSED, Recipe
from cases.builder.steps import BuildStep, ModelCalls, StepCalls
from cases.builder.work_folder import DraftItem, Values
from evaluators import core, rubric
from evaluators.answerers import answer_messages
from evaluators.core import Ask, Case, JudgeError, Model, Reply, Request, UsageError
from evaluators.judges.llm import PARAMETERS, ask_until_read, judge_messages
from evaluators.models.spec import Spec
from evaluators.replies.readers import Invalid, read_grade, read_reason, read_yes_no
from evaluators.rubric import Prompt, Rubric, load_prompt, load_rubric
from evaluators.text import digest

NOT_CONFIRMED = "not_confirmed"
"""The reason of an item whose answer no opinion supports."""
CONTESTED = "contested"
"""The field of ``DraftItem.validator`` that says that opinions differ."""
KNOWN = "closed_book"
"""The reason of an item that every model answered correctly without its text."""
RUBRICS = Path(rubric.__file__).parent / "rubrics"
PROMPTS = Path(__file__).parents[1] / DATASET


def version_of(template: str) -> str:
    """Return the name of a user's own template in the ledger's keys and in datasheets."""
    return f"template#{digest(template)[:12]}"


def is_contested(item: DraftItem) -> bool:
    """Return whether opinions on an item differ, so that people must decide."""
    return bool(item.validator.get(CONTESTED))


def _case(item: DraftItem, recipe: Recipe, context: str = "") -> Case:
    golds = (recipe.labels[core.YES], recipe.labels[core.NO])
    make = partial(Case, id=item.id, dataset=DATASET, language=item.language, row=0)
    return make(question=item.question, golds=golds, context=context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Validator:
    """A model that confirms items by a rubric; it sees text, question and answer, nothing else."""

    model: Model
    recipe: Recipe
    rubric: Rubric
    blind: Prompt | None = None
    """The prompt by which it first answers by itself."""

    async def validate(self, items: Sequence[DraftItem], calls: StepCalls) -> list[DraftItem]:
        """Return the items: kept (``contested`` where its opinions differ), dropped, or pending."""
        return await calls.ask_items("validate", items, self._one)

    async def _one(self, item: DraftItem, ask: Ask) -> DraftItem:
        template, labels = self.recipe.validation, self.recipe.labels
        version = version_of(template) if template else self.rubric.version
        said: dict[str, object] = {"model": self.model.spec, "prompt": version}
        case = _case(item, self.recipe, item.paragraph)

        def read(reply: Reply) -> str | Invalid:
            found = read_grade(reply)
            refused = Invalid("NOT_ATTEMPTED is not on offer")
            return refused if found == core.NOT_ATTEMPTED else found

        try:
            if self.blind is not None:
                words = labels[core.YES], labels[core.NO], ""
                said["blind"] = await _own_answer(self.model, self.blind, case, ask, words)
            texts = (item.paragraph, item.question, labels[item.answer])
            own = own_message(template, dict(zip(PROPOSED, texts, strict=True)))
            messages = own if template else judge_messages(self.rubric, case, labels[item.answer])
            request = Request(messages=messages, parameters=PARAMETERS, version=version)
            grade, reply = await ask_until_read(self.model, request, ask, read)
        except JudgeError as error:
            return item.dropped("unreadable", f"{error}", validator=said)
        reason = read_reason(reply)
        said |= {"returned": reply.model, "verdict": grade, "explanation": reason}
        opinions = [grade == core.CORRECT]
        opinions += [said["blind"] == item.answer] if self.blind is not None else []
        if not any(opinions):
            return item.dropped(NOT_CONFIRMED, reason, validator=said)
        return replace(item, validator=said if all(opinions) else {**said, CONTESTED: True})


async def _own_answer(
    model: Model, prompt: Prompt, case: Case, ask: Ask, words: tuple[str, str, str]
) -> str:
    """Return a model's YES, NO or UNANSWERED; ``words`` say these, the last is empty for never."""
    yes, no, unknown = words

    def read(reply: Reply) -> str | Invalid:
        if unknown and unknown.casefold() in reply.text.casefold():
            return core.UNANSWERED
        return read_yes_no(reply.text, reply.finish, (yes,), (no,))

    messages = answer_messages(prompt, case)
    request = Request(messages=messages, parameters=PARAMETERS, version=prompt.version)
    answer, _ = await ask_until_read(model, request, ask, read)
    return answer


def check_pair(generator: Spec, validator: Spec, *, same_provider: bool) -> None:
    """Raise UsageError if both are one model, or of one provider where that is not allowed."""
    names = {spec.name.casefold().rpartition("/")[2] for spec in (generator, validator)}
    if len(names) == 1:  # behind a gateway, too
        what = f"--validator {validator.text} is the generator; name a model of another provider"
        raise UsageError(what)
    if generator.base_url == validator.base_url and not same_provider:
        raise UsageError(
            f"--validator {validator.text} is of the generator's provider; name a model of another "
            "one, or say `same_provider: true` under the recipe's key 'build'"
        )


class ValidateStep(BuildStep):
    """Lets a second model confirm the answers."""

    name = "validate"
    help = "let a model of another provider confirm the answers"
    models = ("validator",)

    def settings(self) -> Values:
        """Return the validator, the form of its requests, and the versions of its prompts."""
        build, recipe = self.build, self.build.recipe
        own, named = recipe.validation, self.named("validator")
        validator, same_provider = build.model("validator", named), recipe.build.same_provider
        if writer := build.setting("generator", "generate"):
            generator = build.model("generator", writer)
            check_pair(generator, validator, same_provider=same_provider)
        return {
            "validator": named,
            "blind": recipe.build.blind,
            "same_provider": same_provider,
            "rubric": version_of(own) if own else self._rubric.version,
            **({"prompt": self._prompt.version} if recipe.build.blind else {}),
        }

    def work(self, items: Sequence[DraftItem], calls: ModelCalls) -> list[DraftItem]:
        """Return the items, dropped if the validator does not confirm them."""
        blind = self._prompt if self.values["blind"] else None
        make = partial(Validator, recipe=self.build.recipe, rubric=self._rubric, blind=blind)
        spec = self.spec("validator")
        return calls.run(self.name, spec, lambda model, own: make(model=model).validate(items, own))

    @property
    def _rubric(self) -> Rubric:
        return load_rubric(RUBRICS / f"validate.{self.build.recipe.language}.yaml")

    @property
    def _prompt(self) -> Prompt:
        return load_prompt(PROMPTS / f"answer.{self.build.recipe.language}.yaml")


class ProbeStep(BuildStep):
    """Drops what the generator and the validator both answer without the text."""

    name = "probe"
    help = "drop what both models answer without the text"
    models = ("generator", "validator")

    def settings(self) -> Values:
        """Return both models and the version of the prompt; only ``probe`` if it is off."""
        recipe = self.build.recipe
        if not recipe.build.probe:
            return {"probe": False}
        if not recipe.probe:
            what = f"{recipe.path}: no key 'probe', the prompt of that step; add it"
            raise UsageError(f"{what}, or say `probe: false` under the key 'build'")
        steps = zip(self.models, ("generate", "validate"), strict=True)
        models = {role: self.named(role, step) for role, step in steps}
        return {"probe": True, **models, "recipe": recipe.probe_version}

    def work(self, items: Sequence[DraftItem], calls: ModelCalls) -> list[DraftItem]:
        """Return the items, dropped if both know them; the second gets what the first knew."""
        found = {item.id: item for item in items}
        for role in self.models if self.values["probe"] else ():
            asked = [
                item
                for item in found.values()
                if item.state == "kept" and {item.answer, *item.probe.values()} == {item.answer}
            ]
            probe = partial(self._probed, asked)
            found |= {item.id: item for item in calls.run(self.name, self.spec(role), probe)}
        names = ", ".join(str(self.values.get(one)).partition("@")[0] for one in self.models)
        return [
            item.dropped(KNOWN, f"answered right without its text by {names}")
            if item.state == "kept" and {*item.probe.values()} == {item.answer}
            else item
            for item in found.values()
        ]

    async def _probed(
        self, items: Sequence[DraftItem], model: Model, calls: StepCalls
    ) -> list[DraftItem]:
        recipe, labels = self.build.recipe, self.build.recipe.labels
        language, version = recipe.language, f"probe#{recipe.probe_version[:12]}"
        prompt = Prompt(
            name="probe", language=language, system="", user=recipe.probe, version=version
        )
        words = labels[core.YES], labels[core.NO], recipe.unknown

        async def one(item: DraftItem, ask: Ask) -> DraftItem:
            try:
                said = await _own_answer(model, prompt, _case(item, recipe), ask, words)
            except JudgeError:
                said = core.UNANSWERED  # three replies that say nothing: it does not know
            return replace(item, probe={**item.probe, model.spec: said})

        return await calls.ask_items("probe", items, one)
