"""The nouns of the suite: cases, requests, replies, verdicts, outcomes, and the error tree."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from evaluators.messages import AskedCase, Message, Tool
from evaluators.usage import Usage

CORRECT, INCORRECT, NOT_ATTEMPTED = "CORRECT", "INCORRECT", "NOT_ATTEMPTED"
GRADES = (CORRECT, INCORRECT, NOT_ATTEMPTED)
YES, NO, UNANSWERED = "YES", "NO", "UNANSWERED"

State = Literal["passed", "failed", "error", "missing", "stopped"]
"""How an item ended; ``stopped``: not asked, as the gates it is for were settled without it."""


class QAError(Exception):
    """Anything this suite raises on purpose; its text is one line for the user."""


class UsageError(QAError):
    """The user's input is wrong: an option, a file, a key. Ends the run with exit code 4."""


class CallError(QAError):
    """A call to a model brought no reply. ``kind`` is a short word for reports and counts."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class TransientError(CallError):
    """The same call may succeed later: overload, time-out, a broken body."""

    def __init__(self, kind: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(kind, message)
        self.retry_after = retry_after  # seconds from now, as the server announced it


class RefusedError(CallError):
    """This one request was refused (too long, malformed); others may succeed."""


class FatalError(CallError):
    """No call to this model can succeed: wrong key, unknown model, quota used up."""


class StoppedError(CallError):
    """The run asks nothing more: its budget or its time is used up. ``kind`` says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One item to be put to a model.

    ``golds`` are the accepted forms, the main one first, exactly as they stand in the file.
    ``label`` is what the verdict must be: YES or NO for yes/no items, a grade or a rating in digits
    for items of kind ``judged``, else None. ``digest`` is a hash of all that may change its result.
    """

    id: str
    dataset: str
    language: str
    row: int
    question: str
    golds: tuple[str, ...]
    context: str = ""
    recorded: str | None = None
    label: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    digest: str = ""

    @property
    def expected(self) -> str:
        """The main gold form."""
        return self.golds[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of a model, before the provider's wire format.

    ``version`` names the prompt or rubric that wrote the messages. ``repeat`` counts from 1,
    ``attempt`` from 0 (it rises when a judge's reply could not be read). ``case`` is for models
    that take the case itself (``Limits.takes_case``).
    """

    messages: tuple[Message, ...]
    tool: Tool | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)
    version: str = ""
    repeat: int = 1
    attempt: int = 0
    case: AskedCase | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One function call in a reply. ``arguments`` is the JSON text exactly as received."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model sent back.

    ``finish`` is ``stop``, ``tool_calls``, ``length``, ``content_filter`` or the provider's own
    word. ``model`` is the name that the provider returned. ``seconds`` is the time of the call, 0
    where nobody measured it, as in a ``batch``, which has a price of its own. ``cost`` is in USD
    where the reply itself says it, and wins over prices of tokens. Of the ``input_tokens`` the
    provider read ``cache_read_tokens`` from its cache of prompts, and wrote ``cache_write_tokens``.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: str = "stop"
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    cost: float | None = None
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    batch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """What one judge of several, named by its SPEC, said; ``error`` says why it said nothing."""

    judge: str
    grade: str | None = None
    rating: int | None = None
    reason: str = ""
    error: str = ""

    @property
    def label(self) -> str:
        """The grade, or the rating in digits; empty where there is neither."""
        return self.grade or "" if self.rating is None else str(self.rating)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A judge's reading of one answer: a ``grade`` (or yes/no label) or a ``rating`` of 1 to 10.

    ``sure`` says that a rule settled it beyond doubt; only the lexical judge sets it. ``votes``
    holds what each judge said where several judged. ``adjudicated_by`` names the person whose
    verdict this is. ``parts`` are the scores that a rating was made of, by the names of the parts;
    ``scores`` are those of checks by code, 0 to 1, by the names of their measures.
    """

    grade: str | None = None
    rating: int | None = None
    reason: str = ""
    sure: bool = False
    votes: tuple[Vote, ...] = ()
    adjudicated_by: str = ""
    parts: Mapping[str, int] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The grade, or the rating in digits; empty where there is neither."""
        return self.grade or "" if self.rating is None else str(self.rating)


class JudgeError(QAError):
    """The judge gave no verdict. ``kind`` is a short word for reports and counts.

    ``votes`` holds what each judge of a panel said that came to no verdict together.
    """

    def __init__(
        self, message: str, *, kind: str = "judge_unreadable", votes: tuple[Vote, ...] = ()
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.votes = votes


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How a model may be asked, in seconds and per minute. None means no limit of its own.

    Models of the same ``host``, a server, share its pauses. ``item_deadline`` counts from the first
    call for an item; ``max_tokens`` is the longest reply if a request does not say so itself.
    ``takes_case`` says that it answers a case itself, beside or without a prompt.
    """

    host: str = ""
    deadline: float = 120.0
    item_deadline: float = 900.0
    concurrency: int | None = None
    rpm: int | None = None
    tpm: int | None = None
    max_tokens: int | None = None
    takes_case: bool = False


class Model(Protocol):
    """A model behind an API."""

    @property
    def spec(self) -> str:
        """The SPEC that names it, without any key."""

    @property
    def identity(self) -> Mapping[str, object]:
        """What tells it from every other model: provider, base URL, name, fixed parameters."""

    @property
    def limits(self) -> Limits:
        """How it may be asked."""

    async def complete(self, request: Request) -> Reply:
        """One attempt, without retries. Raises a CallError."""

    async def close(self) -> None:
        """Give its connections back."""


Ask = Callable[[Model, Request], Awaitable[Reply]]
"""Put a request to a model through the engine: ledger first, then the network, with retries."""


class Judge(Protocol):
    """Whatever turns an answer into a verdict."""

    @property
    def spec(self) -> str:
        """The SPEC that names it."""

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return the verdict on one answer. Raises JudgeError when no reply could be read."""


class Answerer(Protocol):
    """Whatever answers a case: a model with its prompt, or the recorded answer."""

    @property
    def spec(self) -> str:
        """The SPEC that names it."""

    async def answer(self, case: Case, repeat: int, ask: Ask) -> str:
        """Return the answer's exact text. Raises a CallError when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one planned item ended: a verdict, an ERROR or MISSING of a kind, or STOPPED.

    ``usage`` is of all its replies, ``answering`` of those alone that its answer was made of.
    ``unmeasured`` says why one of ``measures`` (0 to 1) is None; ``calls`` are its ledger keys.
    """

    key: str
    state: State
    answer: str | None = None
    verdict: Verdict | None = None
    kind: str = ""
    message: str = ""
    model: str = ""
    judge: str = ""
    usage: Usage = field(default_factory=Usage)
    answering: Usage = field(default_factory=Usage)
    measures: Mapping[str, float | None] = field(default_factory=dict)
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    calls: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the answer is right, as its slice has it."""
        return self.state == "passed"

    @property
    def reason(self) -> str:
        """What the judge gave as its reason; empty where there is no verdict."""
        return self.verdict.reason if self.verdict else ""
