"""Questions from a model: five texts a request, the answer wanted of each, losses made good.

The work goes in waves. Within a wave nothing depends on which reply comes first; between two waves
the wanted answers are chosen so that what has been obtained comes out half and half. A re-run puts
the same requests in the same order, and the ledger answers those that were paid for.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from cases.tools.builder.asking import Desk
from cases.tools.builder.items import BuildError, Item, left_out
from cases.tools.builder.listing import TOOL, Written, read_listing
from cases.tools.builder.recipe import Recipe, filled
from evaluators.characters import sendable
from evaluators.core import (
    NO,
    YES,
    Ask,
    CallError,
    Message,
    Model,
    RefusedError,
    Request,
    Tool,
)
from evaluators.replies import Invalid
from evaluators.template import encode

BATCH = 5
WAVE = 20 * BATCH  # texts between two looks at the balance
ALONE = 2  # how often one text is asked for by itself before it is left out
PARAMETERS: Mapping[str, object] = {"temperature": 0, "top_p": 1, "max_tokens": 800}

Passes = Callable[[Sequence[Item]], Sequence[Item]]
"""The items with those that the rules refuse marked as dropped; steering counts the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """A model that writes questions by a recipe. ``forced`` uses a function call for the list.

    ``leave_out`` drops what failed, so that the waves after it can be asked.
    """

    model: Model
    recipe: Recipe
    seed: int
    passes: Passes
    forced: bool = True
    leave_out: bool = False

    async def generate(self, items: Sequence[Item], desk: Desk) -> list[Item]:
        """Return the items with question and answer, or dropped, or pending where a call failed.

        After a wave with a failed call no further one is begun: what is wanted there depends on it.
        """
        done: list[Item] = []
        for start in range(0, len(items), WAVE):
            wave = items[start : start + WAVE]
            if any(item.state == "pending" for item in done):
                done += [_pending(item, "stopped", "an earlier call failed") for item in wave]
                continue
            asked = await self._wave(self._steered(done, wave), desk, start)
            done += left_out(asked) if self.leave_out else asked
            if start + WAVE < len(items) and all(item.state == "dropped" for item in done):
                raise _nothing(done[-1])
        return done

    def _steered(self, done: Sequence[Item], wave: Sequence[Item]) -> list[Item]:
        """Return the wave with an answer wanted of each item, shuffled by seed."""
        got = Counter(item.answer for item in self.passes(done) if item.state == "kept")
        due = round((got[YES] + got[NO] + len(wave)) / 2) - got[YES]
        order = sorted(wave, key=lambda item: sha256(f"{self.seed}:{item.id}".encode()).digest())
        yes = {item.id for item in order[: max(0, due)]}
        return [replace(item, wanted=YES if item.id in yes else NO) for item in wave]

    async def _wave(self, wave: Sequence[Item], desk: Desk, start: int) -> list[Item]:
        batches = [wave[at : at + BATCH] for at in range(0, len(wave), BATCH)]
        jobs = [Batch(generator=self, items=tuple(batch)).ask for batch in batches]
        results = await desk.work(f"generate: requests for texts from {start + 1} on", jobs)
        done = []
        for batch, result in zip(batches, results, strict=True):
            if isinstance(result, CallError):  # pragma: no cover - a batch catches its own
                done += [_pending(item, result.kind, f"{result}") for item in batch]
            else:
                done += result
        return done

    def request(self, items: Sequence[Item], attempt: int) -> Request:
        """Return what is asked for these items; they are numbered from 1."""
        recipe = self.recipe
        rows = [
            f'{{"number": {number}, "answer": {encode(recipe.labels[item.wanted])}, '
            f'"text": {encode(item.paragraph)}}}'
            for number, item in enumerate(items, 1)
        ]
        user = filled(recipe.user, {"{count}": str(len(items)), "{texts}": "\n".join(rows)})
        return Request(
            messages=(
                Message(role="system", content=recipe.system),
                Message(role="user", content=sendable(user)),
            ),
            tool=_tool(recipe.labels) if self.forced else None,
            parameters=PARAMETERS,
            version=f"generate#{recipe.generate_version[:12]}",
            attempt=attempt,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Items that are asked for together; ``attempt`` counts the times that one is asked alone."""

    generator: Generator
    items: tuple[Item, ...]
    attempt: int = 0

    async def ask(self, ask: Ask) -> list[Item]:
        """Return the items as they came out, in their order.

        Those whose list was cut or cannot be read are asked for again in batches of half the size.
        """
        done: dict[str, Item] = {}
        waiting = [self]
        while waiting:
            batch = waiting.pop(0)
            results = await batch._once(ask)
            done.update({item.id: item for item in results if item.reason != _UNREAD})
            unread = [item for item in results if item.reason == _UNREAD]
            waiting = [*batch._smaller(unread), *waiting]
            for item in unread if batch._given_up else ():
                done[item.id] = replace(item, reason="unreadable")
        return [done[item.id] for item in self.items]

    @property
    def _given_up(self) -> bool:
        return len(self.items) == 1 and self.attempt + 1 >= ALONE

    def _smaller(self, items: Sequence[Item]) -> Iterator["Batch"]:
        if self._given_up:
            return
        size = (len(self.items) + 1) // 2
        attempt = self.attempt + 1 if len(self.items) == 1 else 0
        anew = [replace(item, state="kept", reason="", detail="") for item in items]
        for at in range(0, len(anew), size):
            yield replace(self, items=tuple(anew[at : at + size]), attempt=attempt)

    async def _once(self, ask: Ask) -> list[Item]:
        maker = self.generator
        try:
            reply = await ask(maker.model, maker.request(self.items, self.attempt))
        except RefusedError as error:
            return [self._dropped(item, "refused", f"{error}") for item in self.items]
        except CallError as error:
            return [_pending(item, error.kind, f"{error}") for item in self.items]
        listing = read_listing(reply, len(self.items), maker.recipe.labels)
        if isinstance(listing, Invalid):
            return [self._dropped(item, _UNREAD, listing.reason) for item in self.items]
        named = {"model": maker.model.spec, "returned": reply.model}
        return [
            self._written(item, listing[number], named) for number, item in enumerate(self.items, 1)
        ]

    def _written(self, item: Item, written: Written | Invalid, named: Mapping[str, str]) -> Item:
        if isinstance(written, Invalid):
            return self._dropped(item, _UNREAD, written.reason)
        version = f"generate#{self.generator.recipe.generate_version[:12]}"
        return replace(
            item,
            question=written.question,
            answer=written.answer,
            batch=tuple(one.id for one in self.items),
            generator={**named, "prompt": version, "texts": len(self.items)},
        )

    def _dropped(self, item: Item, reason: str, detail: str) -> Item:
        # One text that a provider refuses must not take the others with it.
        reason = _UNREAD if len(self.items) > 1 else reason
        return replace(item, state="dropped", reason=reason, detail=detail)


_UNREAD = "unread"
"""The reason of an item that is asked for again."""


def _pending(item: Item, kind: str, message: str) -> Item:
    return replace(item, state="pending", reason=kind, detail=message)


def _nothing(item: Item) -> BuildError:
    return BuildError(
        f"generate: not one of the first {WAVE} texts got a question ({item.reason}: "
        f"{item.detail}); where the model has no function calls, give --plain"
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
