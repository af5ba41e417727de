"""The closed-book probe: what models answer without the text asks nothing of a reader."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from cases.builder.build_options import DATASET
from cases.builder.build_step import ModelCalls, Step, StepCalls
from cases.builder.recipe import Recipe
from cases.builder.work_folder import Item, Values
from evaluators.answerers import answer_messages
from evaluators.core import (
    NO,
    UNANSWERED,
    YES,
    Ask,
    Case,
    JudgeError,
    Model,
    Reply,
    Request,
    UsageError,
)
from evaluators.judges.llm import PARAMETERS, ask_until_read
from evaluators.replies import Invalid, read_yes_no
from evaluators.rubric import Prompt

KNOWN = "closed_book"
"""The reason of an item that every model answered right without its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prober:
    """A model that is asked questions without their texts, and may say that it cannot know."""

    model: Model
    recipe: Recipe

    async def probe(self, items: Sequence[Item], calls: StepCalls) -> list[Item]:
        """Return the items with what the model said of each; pending where a call failed."""
        jobs = [partial(self._one, item) for item in items]
        return await calls.ask_items("probe", items, jobs)

    async def _one(self, item: Item, ask: Ask) -> Item:
        """Return an item with YES, NO or UNANSWERED under the model's name. Raises CallError."""
        prompt = self._prompt
        case = Case(
            id=item.id,
            dataset=DATASET,
            language=item.language,
            row=0,
            question=item.question,
            golds=tuple(self.recipe.labels.values()),
        )
        request = Request(
            messages=answer_messages(prompt, case), parameters=PARAMETERS, version=prompt.version
        )
        try:
            said, _ = await ask_until_read(self.model, request, ask, self._read)
        except JudgeError:
            said = UNANSWERED  # three replies that say nothing: it does not know
        return replace(item, probe={**item.probe, self.model.spec: said})

    def _read(self, reply: Reply) -> str | Invalid:
        """Return what a reply says; the word for not knowing is UNANSWERED."""
        labels, unknown = self.recipe.labels, self.recipe.unknown
        if unknown.casefold() in reply.text.casefold():
            return UNANSWERED
        return read_yes_no(reply.text, reply.finish, (labels[YES],), (labels[NO],))

    @property
    def _prompt(self) -> Prompt:
        language, version = self.recipe.language, self.recipe.probe_version[:12]
        return Prompt(
            name="probe",
            language=language,
            system="",
            user=self.recipe.probe,
            version=f"probe#{version}",
        )


def known_without(item: Item) -> bool:
    """Return whether every model that was asked gave the right answer without the text."""
    return bool(item.probe) and all(said == item.answer for said in item.probe.values())


class ProbeStep(Step):
    """Drops what the generator and the validator both answer without the text."""

    name = "probe"
    help = "drop what both models answer right without the text (--no-probe: nothing)"
    after = "validate"
    models = ("generator", "validator")

    def settle(self) -> Values:
        """Return both models and the version of the prompt; only ``probe`` where it is off."""
        values = self.remembered(probe=True)
        if not values["probe"]:
            return self.fixed(values)
        recipe, folder, options = self.build.recipe, self.build.folder, self.build.options
        if not recipe.probe:
            raise UsageError(
                f"{recipe.path}: no key 'probe', the prompt of that step; add it or --no-probe"
            )
        for option, step in zip(self.models, ("generate", "validate"), strict=True):
            values[option] = getattr(options, option) or folder.options(step).get(option)
            self.need(option, values, f"probe: name the models again: --{option} provider:NAME")
        return self.fixed({**values, "recipe": recipe.probe_version})

    def work(self, items: Sequence[Item], calls: ModelCalls) -> list[Item]:
        """Return the items, dropped where both models knew the answer; the second saves calls.

        It is asked only of what the first answered right.
        """
        if not self.values["probe"]:
            return list(items)
        found = list(items)
        for option in self.models:
            asked = [item for item in found if item.state == "kept" and not _missed(item)]
            said = {item.id: item for item in self._probed(option, asked, calls)}
            found = [said.get(item.id, item) for item in found]
        names = ", ".join(str(self.values[option]).partition("@")[0] for option in self.models)
        return [
            item.dropped(KNOWN, f"answered right without its text by {names}")
            if item.state == "kept" and known_without(item)
            else item
            for item in found
        ]

    def _probed(self, option: str, items: Sequence[Item], calls: ModelCalls) -> list[Item]:
        async def probe(model: Model, calls: StepCalls) -> list[Item]:
            return await Prober(model=model, recipe=self.build.recipe).probe(items, calls)

        return calls.run(self.name, self.spec(option), probe)


def _missed(item: Item) -> bool:
    """Return whether a model was asked and did not know."""
    return any(said != item.answer for said in item.probe.values())
