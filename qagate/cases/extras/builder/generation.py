"""Questions from a model: five texts a request, a wanted answer for each, losses made good.

Between waves the wanted answers are set so that yes and no come out half and half; within one
nothing depends on which reply comes first. So a re-run makes the same requests in the same order.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any

from qagate.cases.extras.builder.recipe import OWN_PLACE, PARAGRAPHS, Recipe
from qagate.cases.extras.builder.rules import check_questions
from qagate.cases.extras.builder.steps import BuildStep, ModelCalls, StepCalls
from qagate.cases.extras.builder.work_folder import (
    BuildError,
    DraftItem,
    Items,
    Values,
    drop_failed,
    kept,
)
from qagate.evaluators import core
from qagate.evaluators.core import (
    Ask,
    CallError,
    Message,
    Model,
    RefusedError,
    Reply,
    Request,
    Tool,
)
from qagate.evaluators.reading import parse_json
from qagate.evaluators.replies.readers import (
    Invalid,
    plain,
    unfinished,
    without_markup,
)
from qagate.evaluators.replies.said import said_in
from qagate.evaluators.rubric import encode
from qagate.evaluators.text import encodable, sendable

BATCH = 5  # texts a request
WAVE = 20 * BATCH  # texts between two looks at the balance
MAX_ALONE = 2  # how often one text is asked for by itself before it is left out
MAX_CHARS = 100_000  # of a reply that are read
ECHO = 40  # characters by which a text is known if a model repeats only its beginning
PARAMETERS: Mapping[str, object] = {"temperature": 0, "top_p": 1, "max_tokens": 800}
TOOL = "submit"
UNREAD = "unread"  # the reason of an item that is asked for again
_START = re.compile(r"\[\s*\{|\{\s*\"")


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """A model that writes questions by a recipe."""

    model: Model
    recipe: Recipe
    leave_out: bool = False
    """Drop what failed, so that later waves can be asked."""

    async def generate(self, items: Items, calls: StepCalls) -> list[DraftItem]:
        """Return the items with question and answer; a wave with a failed call is the last.

        What the rules of the step ``check`` refuse does not count for the balance.
        """
        done, seed = list[DraftItem](), self.recipe.build.seed
        for start in range(0, len(items), WAVE):
            wave = items[start : start + WAVE]
            if any(item.state == "pending" for item in done):
                done += [
                    item.pending("stopped", "an earlier call failed") for item in wave
                ]
                continue
            got = Counter(
                item.answer for item in kept(check_questions(done, self.recipe))
            )
            due = round((got[core.YES] + got[core.NO] + len(wave)) / 2) - got[core.YES]
            order = sorted(
                wave, key=lambda one: sha256(f"{seed}:{one.id}".encode()).digest()
            )
            yes = {item.id for item in order[: max(0, due)]}
            wave = [
                replace(one, wanted=core.YES if one.id in yes else core.NO)
                for one in wave
            ]
            parts = (wave[at : at + BATCH] for at in range(0, len(wave), BATCH))
            name = f"generate: requests for texts from {start + 1} on"
            for result in await calls.ask_all(
                name, [partial(self._batch, one) for one in parts]
            ):
                if isinstance(
                    result, CallError
                ):  # pragma: no cover - a batch catches its own
                    raise result
                done += result
            done = (
                [*done[:start], *drop_failed(done[start:])] if self.leave_out else done
            )
            if start + WAVE < len(items) and all(
                item.state == "dropped" for item in done
            ):
                why = f"not one of the first {WAVE} texts got a question ({done[-1].reason}: "
                advice = "if the model has no function calls, say `plain: true` under the recipe's"
                raise BuildError(
                    f"generate: {why}{done[-1].detail}); {advice} key 'build'"
                )
        return done

    async def _batch(self, items: Items, ask: Ask, attempt: int = 0) -> list[DraftItem]:
        """Request these items together; unread ones by halves, one alone ``MAX_ALONE`` times."""
        results = {item.id: item for item in await self._once(items, ask, attempt)}
        unread = [item for item in items if results[item.id].reason == UNREAD]
        if unread and len(items) == 1 and attempt + 1 >= MAX_ALONE:
            return [replace(results[items[0].id], reason="unreadable")]
        size = (len(items) + 1) // 2
        for at in range(0, len(unread), size):
            next_attempt = attempt + 1 if len(items) == 1 else 0
            again = await self._batch(unread[at : at + size], ask, next_attempt)
            results |= {item.id: item for item in again}
        return [results[item.id] for item in items]

    async def _once(self, items: Items, ask: Ask, attempt: int) -> list[DraftItem]:
        request = self.request(items, attempt)
        try:
            reply = await ask(self.model, request)
        except RefusedError as error:
            reason = (
                UNREAD if len(items) > 1 else "refused"
            )  # perhaps for one text alone
            return [item.dropped(reason, f"{error}") for item in items]
        except CallError as error:
            return [item.pending(error.kind, f"{error}") for item in items]
        texts = [item.paragraph for item in items] if self.recipe.generation else ()
        listing = read_listing(reply, len(items), self.recipe.labels, texts)
        if isinstance(listing, Invalid):
            return [item.dropped(UNREAD, listing.reason) for item in items]
        batch = tuple(item.id for item in items)
        generator = {
            "model": self.model.spec,
            "returned": reply.model,
            "prompt": request.version,
            "texts": len(items),
        }
        results = []
        for number, item in enumerate(items, start=1):
            written = listing[number]
            if isinstance(written, Invalid):
                results.append(item.dropped(UNREAD, written.reason))
                continue
            results.append(
                replace(
                    item,
                    question=written.question,
                    answer=written.answer,
                    batch=batch,
                    generator=generator,
                )
            )
        return results

    def request(self, items: Items, attempt: int) -> Request:
        """Return the request for these items, numbered from 1; a user's own template as it is."""
        tool, labels = None, self.recipe.labels
        if self.recipe.generation:
            texts = dict(
                zip(PARAGRAPHS, (item.paragraph for item in items), strict=False)
            )
            messages = own_message(self.recipe.generation, texts)
        else:
            rows = [
                f'{{"number": {number}, "answer": {encode(labels[item.wanted])}, '
                f'"text": {encode(item.paragraph)}}}'
                for number, item in enumerate(items, 1)
            ]
            before, after = self.recipe.user.split(
                "{texts}"
            )  # texts are not searched for places
            parts = [one.replace("{count}", str(len(items))) for one in (before, after)]
            user = sendable("\n".join(rows).join(parts))
            system = Message(role="system", content=self.recipe.system)
            messages = (system, Message(role="user", content=user))
            tool = None if self.recipe.build.plain else _tool(labels)
        return Request(
            messages=messages,
            tool=tool,
            parameters=PARAMETERS,
            version=f"generate#{self.recipe.generate_version[:12]}",
            attempt=attempt,
        )


def own_message(template: str, values: Mapping[str, str]) -> tuple[Message, ...]:
    """Return a user's own template with each value as JSON, so that none looks like the prompt."""
    shown = {name: encode(text) for name, text in values.items()}
    text = OWN_PLACE.sub(lambda match: shown.get(match[1], ""), template)
    return (Message(role="user", content=sendable(text)),)


def _tool(labels: Mapping[str, str]) -> Tool:
    fields = {
        "number": {"type": "integer", "description": "The number of the text."},
        "question": {"type": "string", "description": "The yes/no question about it."},
        "answer": {"type": "string", "enum": [labels[core.YES], labels[core.NO]]},
    }
    exact = {"type": "object", "properties": fields, "required": [*fields]}
    items = {
        "items": {"type": "array", "items": {**exact, "additionalProperties": False}}
    }
    schema = {
        **exact,
        "properties": items,
        "required": [*items],
        "additionalProperties": False,
    }
    return Tool(
        name=TOOL, description="Hand in one question for each text.", schema=schema
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenQuestion:
    """What a model wrote about one text."""

    question: str
    answer: str
    """YES or NO."""


def read_listing(
    reply: Reply, count: int, labels: Mapping[str, str], texts: Sequence[str] = ()
) -> Mapping[int, WrittenQuestion | Invalid] | Invalid:
    """Return what a reply gives for the numbers 1 to ``count``.

    The list is the field ``items`` of the forced call, or the one JSON list of the text; with
    ``texts`` its entries repeat these, not numbers. It is refused as a whole unless each number is
    there exactly once. An entry with a wrong label or no question is refused alone.
    """
    if cut := unfinished(reply.finish):
        return cut
    try:
        entries = parse_json(_json_text(reply))
    except ValueError as error:
        return Invalid(f"{error}")
    if isinstance(entries, dict):
        entries = (
            [entries] if count == 1 and "question" in entries else entries.get("items")
        )
    if not isinstance(entries, list) or not all(
        isinstance(entry, dict) for entry in entries
    ):
        return Invalid("no list of objects with number, question and answer")
    entries = numbered(entries, texts) if texts else entries
    if any(type(entry.get("number")) is not int for entry in entries):
        return Invalid("an entry without a number")
    if sorted(entry["number"] for entry in entries) != list(range(1, count + 1)):
        return Invalid(f"{len(entries)} entries for {count} texts, or a number twice")
    meanings = {word.casefold(): meaning for meaning, word in labels.items()}
    return {entry["number"]: _written(entry, meanings) for entry in entries}


def _json_text(reply: Reply) -> str:
    """Return the JSON of a reply. Raises ValueError if there is none, or more than one."""
    if reply.calls:
        if len(reply.calls) != 1 or reply.calls[0].name != TOOL:
            raise ValueError(f"want one call of {TOOL!r}")
        return reply.calls[0].arguments
    said = said_in(reply.text[:MAX_CHARS])
    if said is None:
        raise ValueError("thoughts that are never closed")
    said = without_markup(plain(said))
    if (start := _START.search(said)) is None:
        raise ValueError("no JSON list")
    return said[start.start() : said.rfind("]" if start[0][0] == "[" else "}") + 1]


def numbered(
    entries: Sequence[Mapping[str, Any]], texts: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the entries with the number of the text that each repeats, from 1; None if unclear."""

    def key(text: str) -> str:
        return " ".join(text.split()).casefold().rstrip(".… ")

    keys, found = [key(text) for text in texts], list[dict[str, Any]]()
    for entry in entries:
        echo = key(str(entry.get("paragraph", "")))
        same = [at for at, key in enumerate(keys, 1) if key == echo]
        if not same and len(echo) >= ECHO:
            same = [at for at, key in enumerate(keys, 1) if key.startswith(echo)]
        found.append({**entry, "number": same[0] if len(same) == 1 else None})
    return found


def _written(entry: Values, meanings: Mapping[str, str]) -> WrittenQuestion | Invalid:
    question, answer = entry.get("question"), entry.get("answer")
    if not isinstance(question, str) or not question.strip() or not encodable(question):
        return Invalid("no question")
    meaning = (
        meanings.get(answer.strip().casefold()) if isinstance(answer, str) else None
    )
    if meaning is None:
        return Invalid(f"answer {answer!r:.40} is no label")
    return WrittenQuestion(question=" ".join(question.split()), answer=meaning)


class GenerateStep(BuildStep):
    """Lets a model write a question on each paragraph."""

    name = "generate"
    help = "let a model write a yes/no question on each"
    models = ("generator",)

    def settings(self) -> Values:
        """Return the generator, the form of its requests, and the versions of recipe and rules."""
        recipe, generator = self.build.recipe, self.named("generator")
        self.build.model("generator", generator)
        return {
            "generator": generator,
            "plain": recipe.build.plain,
            "seed": recipe.build.seed,
            "recipe": recipe.generate_version,
            "rules": recipe.check_version,
        }

    def work(self, items: Items, calls: ModelCalls) -> list[DraftItem]:
        """Return the items with their questions."""
        recipe, leave_out = self.build.recipe, self.build.options.leave_out_failed
        make = partial(Generator, recipe=recipe, leave_out=leave_out)
        spec = self.spec("generator")
        return calls.run(
            self.name, spec, lambda model, own: make(model=model).generate(items, own)
        )


class CheckStep(BuildStep):
    """Drops questions by rule."""

    name = "check"
    help = "drop by rule what is no such question, a copy or a repetition"

    def settings(self) -> Values:
        """Return the version of the rules."""
        return {"recipe": self.build.recipe.check_version}

    def work(self, items: Items, _: ModelCalls) -> list[DraftItem]:
        """Return the items, dropped if a rule refuses them."""
        return check_questions(items, self.build.recipe)
