"""What lies between deepeval's metrics and our models, without deepeval itself."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from evaluators.core import (
    Ask,
    Case,
    JudgeError,
    Message,
    Model,
    QAError,
    Reply,
    Request,
    UsageError,
)
from evaluators.judges.llm import ask_until_read
from evaluators.reading import parse_json
from evaluators.replies import Invalid
from evaluators.replies.text import spoken, unfinished
from evaluators.secrets import mask, one_line
from evaluators.text import sendable

if TYPE_CHECKING:
    from pydantic import BaseModel

PARAMETERS = {"temperature": 0, "max_tokens": 4096}
"""The least random reply, with room for a list of statements."""

FENCE = "```"


class Shown(Protocol):
    """What is read of one of deepeval's test cases; the rest may be missing."""

    @property
    def input(self) -> str:
        """The question."""

    @property
    def expected_output(self) -> str | None:
        """The gold answer."""

    @property
    def context(self) -> Sequence[object] | None:
        """Texts, each a string or an object with one as its ``context``."""

    @property
    def retrieval_context(self) -> Sequence[object] | None:
        """What comes before ``context`` where there are both."""


async def ask_nobody(model: Model, request: Request) -> Reply:
    """Refuse to ask: for judges that never do."""
    raise UsageError(f"{model.spec}: nobody is asked here")


async def ask_model(
    model: Model, ask: Ask, prompt: str, schema: "type[BaseModel] | None"
) -> "str | BaseModel":
    """Return a model's reply to one of deepeval's prompts: its text, or what it says as a schema.

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
    """Return a reply's text; with a schema, the JSON that follows it to the letter."""
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
    """Return what stands in a Markdown fence that is all there is, otherwise the text itself."""
    if len(text) < 2 * len(FENCE) or not (text.startswith(FENCE) and text.endswith(FENCE)):
        return text
    inner = text[len(FENCE) : -len(FENCE)]
    return (inner[4:] if inner[:4].casefold() == "json" else inner).strip()


def own_error(error: BaseException) -> QAError | None:
    """Return our own error behind what deepeval raised, if there is one."""
    link: BaseException | None = error
    while link is not None and not isinstance(link, QAError):
        link = link.__cause__ or link.__context__
    return link


def foreign_error(name: str, error: Exception, kind: str) -> JudgeError:
    """Return an error of deepeval's own, by a metric of this name, in one line."""
    line = one_line(mask(f"{type(error).__name__}: {error}"))
    return JudgeError(f"{name}: {line}", kind=kind)


def checked_score(name: str, score: object) -> float:
    """Return a metric's score. Raises JudgeError where it is no number from 0 to 1."""
    if isinstance(score, int | float) and 0 <= score <= 1:
        return float(score)
    raise JudgeError(f"{name}: the score is {str(score)[:40]}, not a number from 0 to 1")


def missing_field(test_case: Shown) -> str:
    """Return which of deepeval's fields a judge lacks in a test case, empty where it lacks none."""
    names = ("input", "actual_output", "expected_output")
    return next((name for name in names if not isinstance(getattr(test_case, name), str)), "")


def case_of(test_case: Shown, language: str) -> Case:
    """Return a test case that lacks no field as one of ours."""
    shown = test_case.retrieval_context or test_case.context or []
    return Case(
        id="deepeval",
        dataset="deepeval",
        language=language,
        row=1,
        question=test_case.input,
        golds=(test_case.expected_output or "",),
        context="\n\n".join(str(getattr(part, "context", part)) for part in shown),
    )
