"""Questions from a model: five texts a request, the answer wanted of each, losses made good.

The work goes in waves. Within a wave nothing depends on which reply comes first; between two waves
the wanted answers are set so that what has been obtained comes out half and half. A re-run puts
the same requests in the same order, and the ledger answers those that were paid for.

A list of questions is trusted only where each number that was asked for is in it exactly once.
Otherwise nobody knows which text a question belongs to, and the whole list is refused. Where the
numbers are right, an entry with a wrong label or no question is refused alone.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256

from cases.builder.build_step import ModelCalls, Step, StepCalls, parse_model
from cases.builder.own_templates import GENERATE, filled_message, numbered
from cases.builder.question_rules import check_questions
from cases.builder.recipe import Recipe, filled
from cases.builder.work_folder import BuildError, Item, Values, drop_failed, kept
from evaluators.core import NO, YES, Ask, CallError, Model, RefusedError, Reply, Request
from evaluators.messages import Message, Tool
from evaluators.reading import parse_json
from evaluators.replies import Invalid
from evaluators.replies.text import plain, spoken, unfinished, without_markup
from evaluators.template import encode
from evaluators.text import encodable, sendable

BATCH = 5
WAVE = 20 * BATCH  # texts between two looks at the balance
ALONE = 2  # how often one text is asked for by itself before it is left out
MAX_CHARS = 100_000  # of a reply that are looked at
PARAMETERS: Mapping[str, object] = {"temperature": 0, "top_p": 1, "max_tokens": 800}
TOOL = "submit"
UNREAD = "unread"
"""The reason of an item that is asked for again."""
_START = re.compile(r"\[\s*\{|\{\s*\"")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One question with its answer, YES or NO."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """A model that writes questions by a recipe. ``forced`` uses a function call for the list.

    ``passes`` returns the items with those that the rules refuse marked as dropped; the balance is
    that of the rest. ``leave_out`` drops what failed, so that the waves after it can be asked.
    """

    model: Model
    recipe: Recipe
    seed: int
    passes: Callable[[Sequence[Item]], Sequence[Item]]
    forced: bool = True
    leave_out: bool = False

    async def generate(self, items: Sequence[Item], calls: StepCalls) -> list[Item]:
        """Return the items with question and answer, or dropped, or pending where a call failed.

        After a wave with a failed call no further one is begun: what is wanted there depends on it.
        """
        done: list[Item] = []
        for start in range(0, len(items), WAVE):
            wave = items[start : start + WAVE]
            if any(item.state == "pending" for item in done):
                done += [item.pending("stopped", "an earlier call failed") for item in wave]
                continue
            steered = self._steered(done, wave)
            batches = [steered[at : at + BATCH] for at in range(0, len(wave), BATCH)]
            jobs = [partial(self._batch, batch) for batch in batches]
            name = f"generate: requests for texts from {start + 1} on"
            for result in await calls.ask_all(name, jobs):
                if isinstance(result, CallError):  # pragma: no cover - a batch catches its own
                    raise result
                done += result
            done = [*done[:start], *drop_failed(done[start:])] if self.leave_out else done
            if start + WAVE < len(items) and all(item.state == "dropped" for item in done):
                raise BuildError(
                    f"generate: not one of the first {WAVE} texts got a question "
                    f"({done[-1].reason}: {done[-1].detail}); "
                    "where the model has no function calls, give --plain"
                )
        return done

    def _steered(self, done: Sequence[Item], wave: Sequence[Item]) -> list[Item]:
        """Return the wave with an answer wanted of each item, shuffled by seed."""
        got = Counter(item.answer for item in kept(self.passes(done)))
        due = round((got[YES] + got[NO] + len(wave)) / 2) - got[YES]
        order = sorted(wave, key=lambda item: sha256(f"{self.seed}:{item.id}".encode()).digest())
        yes = {item.id for item in order[: max(0, due)]}
        return [replace(item, wanted=YES if item.id in yes else NO) for item in wave]

    async def _batch(self, items: Sequence[Item], ask: Ask, attempt: int = 0) -> list[Item]:
        """Request these items together and return how each ended, in their order.

        Those whose list was cut or cannot be read are asked for again in batches of half the size.
        ``attempt`` counts the times that one is asked alone.
        """
        results = {item.id: item for item in await self._once(items, ask, attempt)}
        unread = [item for item in items if results[item.id].reason == UNREAD]
        if unread and len(items) == 1 and attempt + 1 >= ALONE:
            return [replace(results[items[0].id], reason="unreadable")]
        size = (len(items) + 1) // 2
        for at in range(0, len(unread), size):
            next_attempt = attempt + 1 if len(items) == 1 else 0
            again = await self._batch(unread[at : at + size], ask, next_attempt)
            results |= {item.id: item for item in again}
        return [results[item.id] for item in items]

    async def _once(self, items: Sequence[Item], ask: Ask, attempt: int) -> list[Item]:
        try:
            reply = await ask(self.model, self.request(items, attempt))
        except RefusedError as error:
            # One text that a provider refuses must not take the others with it.
            reason = UNREAD if len(items) > 1 else "refused"
            return [item.dropped(reason, f"{error}") for item in items]
        except CallError as error:
            return [item.pending(error.kind, f"{error}") for item in items]
        texts = [item.paragraph for item in items] if self.recipe.generation else ()
        listing = read_listing(reply, len(items), self.recipe.labels, texts)
        if isinstance(listing, Invalid):
            return [item.dropped(UNREAD, listing.reason) for item in items]
        by: Values = {
            "model": self.model.spec,
            "returned": reply.model,
            "prompt": self._version,
            "texts": len(items),
        }
        batch = tuple(item.id for item in items)
        done = []
        for number, item in enumerate(items, 1):
            match listing[number]:
                case Invalid(reason):
                    done.append(item.dropped(UNREAD, reason))
                case Written(question=question, answer=answer):
                    done.append(
                        replace(item, question=question, answer=answer, batch=batch, generator=by)
                    )
        return done

    @property
    def _version(self) -> str:
        return f"generate#{self.recipe.generate_version[:12]}"

    def request(self, items: Sequence[Item], attempt: int) -> Request:
        """Return the request for these items; they are numbered from 1."""
        labels = self.recipe.labels
        if self.recipe.generation:
            texts = dict(zip(GENERATE, (item.paragraph for item in items), strict=False))
            messages = filled_message(self.recipe.generation, texts)
            version = self._version
            return Request(
                messages=messages, parameters=PARAMETERS, version=version, attempt=attempt
            )
        rows = [
            f'{{"number": {number}, "answer": {encode(labels[item.wanted])}, '
            f'"text": {encode(item.paragraph)}}}'
            for number, item in enumerate(items, 1)
        ]
        user = filled(self.recipe.user, {"{count}": str(len(items)), "{texts}": "\n".join(rows)})
        return Request(
            messages=(
                Message(role="system", content=self.recipe.system),
                Message(role="user", content=sendable(user)),
            ),
            tool=_tool(labels) if self.forced else None,
            parameters=PARAMETERS,
            version=self._version,
            attempt=attempt,
        )


def _tool(labels: Mapping[str, str]) -> Tool:
    entry = {
        "type": "object",
        "properties": {
            "number": {"type": "integer", "description": "The number of the text."},
            "question": {"type": "string", "description": "The yes/no question about it."},
            "answer": {"type": "string", "enum": [labels[YES], labels[NO]]},
        },
        "required": ["number", "question", "answer"],
        "additionalProperties": False,
    }
    return Tool(
        name=TOOL,
        description="Hand in one question for each text.",
        schema={
            "type": "object",
            "properties": {"items": {"type": "array", "items": entry}},
            "required": ["items"],
            "additionalProperties": False,
        },
    )


def read_listing(
    reply: Reply, count: int, labels: Mapping[str, str], texts: Sequence[str] = ()
) -> Mapping[int, Written | Invalid] | Invalid:
    """Return the question that a reply gives for each of the numbers 1 to ``count``.

    ``labels`` maps YES and NO to their words. The list is the field ``items`` of the forced call,
    or the one JSON list of the text, whatever prose stands around it. Where ``texts`` are given
    its entries have no numbers, and repeat the texts instead.
    """
    if cut := unfinished(reply.finish):
        return cut
    try:
        entries = parse_json(_json_text(reply))
    except ValueError as error:
        return Invalid(f"{error}")
    if isinstance(entries, dict):
        entries = [entries] if count == 1 and "question" in entries else entries.get("items")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return Invalid("no list of objects with number, question and answer")
    entries = numbered(entries, texts) if texts else entries
    given = [entry.get("number") for entry in entries]
    numbers = [one for one in given if type(one) is int]
    if numbers != given:
        return Invalid("an entry without a number")
    if sorted(numbers) != list(range(1, count + 1)):
        return Invalid(f"{len(entries)} entries for {count} texts, or a number twice")
    meanings = {word.casefold(): meaning for meaning, word in labels.items()}
    return {entry["number"]: _written(entry, meanings) for entry in entries}


def _json_text(reply: Reply) -> str:
    """Return the JSON of a reply. Raises ValueError where there is none, or more than one."""
    if reply.calls:
        if len(reply.calls) != 1 or reply.calls[0].name != TOOL:
            raise ValueError(f"want one call of {TOOL!r}")
        return reply.calls[0].arguments
    said = spoken(reply.text[:MAX_CHARS])
    if said is None:
        raise ValueError("thoughts that are never closed")
    said = without_markup(plain(said))
    start = _START.search(said)
    if start is None:
        raise ValueError("no JSON list")
    end = said.rfind("]" if said[start.start()] == "[" else "}") + 1
    return said[start.start() : end]


def _written(entry: Values, meanings: Mapping[str, str]) -> Written | Invalid:
    question, answer = entry.get("question"), entry.get("answer")
    if not isinstance(question, str) or not question.strip() or not encodable(question):
        return Invalid("no question")
    meaning = meanings.get(answer.strip().casefold()) if isinstance(answer, str) else None
    if meaning is None:
        return Invalid(f"answer {answer!r:.40} is no label")
    return Written(question=" ".join(question.split()), answer=meaning)


class GenerateStep(Step):
    """Lets a model write a question on each paragraph."""

    name = "generate"
    help = "let a model write a yes/no question on each"
    after = "sample"
    models = ("generator",)

    def settle(self) -> Values:
        """Return the generator, the form of its requests, and the versions of recipe and rules."""
        recipe = self.build.recipe
        values = self.remembered(generator=None, plain=False, seed=self.sample_seed)
        versions = {"recipe": recipe.generate_version, "rules": recipe.check_version}
        values = self.fixed({**values, **versions})
        self.need("generator", values, "name the model that writes: --generator provider:NAME")
        parse_model("generator", values["generator"], self.build.options.models)
        return values

    def work(self, items: Sequence[Item], calls: ModelCalls) -> list[Item]:
        """Return the items with their questions."""

        async def generate(model: Model, calls: StepCalls) -> list[Item]:
            generator = Generator(
                model=model,
                recipe=self.build.recipe,
                seed=self.values["seed"],
                passes=lambda items: check_questions(items, self.build.recipe),
                forced=not self.values["plain"],
                leave_out=self.build.options.leave_out_failed,
            )
            return await generator.generate(items, calls)

        return calls.run(self.name, self.spec("generator"), generate)
