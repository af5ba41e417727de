"""How our models answer deepeval's prompts; does not import deepeval."""

from functools import partial
from typing import TYPE_CHECKING

from evaluators.core import Ask, Message, Model, QAError, Reply, Request, UsageError
from evaluators.judges.llm import ask_until_read
from evaluators.reading import parse_json
from evaluators.replies.readers import Invalid, spoken, unfinished
from evaluators.secrets import mask, one_line
from evaluators.text import sendable

if TYPE_CHECKING:
    from pydantic import BaseModel

PARAMETERS = {"temperature": 0, "max_tokens": 4096}
"""The least random reply, with room for a list of statements."""

FENCE = "```"


async def ask_nobody(model: Model, request: Request) -> Reply:
    """Refuse to ask: the ``ask`` of judges that never ask."""
    raise UsageError(f"{model.spec}: nobody is asked here")


async def ask_model(
    model: Model, ask: Ask, prompt: str, schema: "type[BaseModel] | None"
) -> "str | BaseModel":
    """Return a model's reply to a prompt of deepeval: its text, or an instance of ``schema``.

    Raises CallError, or JudgeError after three replies that do not follow the schema.
    """
    request = Request(
        messages=(Message(role="user", content=sendable(prompt)),),
        parameters=PARAMETERS,
        version=f"deepeval {schema.__name__}" if schema else "deepeval",
    )
    text, _ = await ask_until_read(model, request, ask, partial(read_text, schema))
    return text if schema is None else schema.model_validate_json(text, strict=True)


def read_text(schema: "type[BaseModel] | None", reply: Reply) -> str | Invalid:
    """Return a reply's text; with a schema, the text as JSON that follows it exactly."""
    if cut := unfinished(reply.finish):
        return cut
    text = spoken(reply.text)
    if text is None:
        return Invalid("no answer outside of thoughts")
    if schema is None:
        return text
    text = _unfenced(text.strip())
    try:
        parse_json(text)
        schema.model_validate_json(text, strict=True)
    except ValueError as error:
        reason = str(error).partition(" [type=")[0]  # what follows repeats the reply
        return Invalid(f"not as {schema.__name__} asks: {one_line(mask(reason), 120)}")
    return text


def _unfenced(text: str) -> str:
    """Return the content of a Markdown fence around the whole text, else the text itself."""
    if len(text) < 2 * len(FENCE) or not (text.startswith(FENCE) and text.endswith(FENCE)):
        return text
    inner = text[len(FENCE) : -len(FENCE)]
    return (inner[4:] if inner[:4].casefold() == "json" else inner).strip()


def own_error(error: BaseException) -> QAError | None:
    """Return our own error that caused an error of deepeval, if there is one."""
    link: BaseException | None = error
    while link is not None and not isinstance(link, QAError):
        link = link.__cause__ or link.__context__
    return link
