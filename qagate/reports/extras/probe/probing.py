"""Finds out what a model's server takes, by three short calls that are kept like any other.

The first asks for one word: does the reply end by itself, who gave it, are tokens counted?
The second wants a function call, the third JSON by a schema. All have a system message,
temperature 0 and a limit of tokens; what the server refuses of these, the caller negotiates
as it does in a run, and keeps for later runs.
"""

from dataclasses import dataclass

from qagate.evaluators.core import Message, Model, RefusedError, Reply, Request, Tool
from qagate.evaluators.finishes import CUT
from qagate.evaluators.negotiation import Negotiated
from qagate.evaluators.runtime.caller import Caller, Meter

VERSION = "probe@1"
SYSTEM = "You grade answers, and say no more than you are asked for."
QUESTION = "Reply with the single word OK."
TASK = (
    "The question was how much 2 + 2 is, and the answer is 4. Call the function grade."
)
MAX_TOKENS = 512
"""Room for the thoughts of a reasoning model."""
TOOL = Tool(
    name="grade",
    description="Give the grade of the answer.",
    schema={
        "type": "object",
        "properties": {"grade": {"type": "string", "enum": ["CORRECT", "INCORRECT"]}},
        "required": ["grade"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What three calls have shown of a model."""

    reply: Reply
    """To the question for one word."""
    negotiated: Negotiated
    refusal: str = ""
    """Why the server refused what a judge needs, where nothing could be negotiated."""

    @property
    def stops(self) -> bool:
        """Whether the reply ended by itself."""
        return self.reply.finish not in CUT


async def probe(caller: Caller, model: Model) -> Probed:
    """Return what a model's server takes. Raises CallError if it answers nothing."""
    ask = caller.metered(Meter(price=caller.price))
    reply = await ask(model, _request(QUESTION))
    refusal = ""
    try:
        await ask(model, _request(TASK, tool=TOOL))
        await ask(model, _request(TASK, tool=TOOL, as_json=True))
    except RefusedError as error:
        refusal = str(error)
    return Probed(
        reply=reply, negotiated=caller.negotiations.of(model), refusal=refusal
    )


def _request(text: str, *, tool: Tool | None = None, as_json: bool = False) -> Request:
    return Request(
        messages=(
            Message(role="system", content=SYSTEM),
            Message(role="user", content=text),
        ),
        tool=tool,
        as_json=as_json,
        parameters={"temperature": 0, "max_tokens": MAX_TOKENS},
        version=VERSION,
    )
