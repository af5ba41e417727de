"""The nouns of the suite: what every other module takes, makes or raises.

They follow the way of one item. A ``Case`` is asked of a ``Model`` as a ``Request``, which brings
a ``Reply``. A ``Judge`` turns the answer into a ``Verdict``. The ``Outcome`` holds how the item
ended and what it took. Whatever goes wrong on purpose is a ``QAError``.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, Self, runtime_checkable


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One chat message."""

    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function that the model is forced to call."""

    name: str
    description: str
    schema: Mapping[str, object]
    """JSON Schema of its arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCase:
    """The part of a case that a tested application gets: no golds, label or id.

    The ledger key has all of it.
    """

    question: str = ""
    context: str = ""
    language: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)
    """The columns of its row that this suite does not use."""
    messages: tuple[Message, ...] = ()
    """The filled answer prompt; none if the data set has no prompt."""


def sum_if_known(first: float | None, second: float | None) -> float | None:
    """Return the sum of two amounts, or None if one of them is not known."""
    if first is None or second is None:
        return None
    return first + second


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What some replies took, and which run paid for them."""

    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    """The sum over the calls, when they were made."""
    cost: float | None = 0.0
    """USD; None if a price is unknown."""
    known: float = 0.0
    """USD of the replies whose price is known."""
    requests: int = 0
    """Those that this run sent."""
    spent: float = 0.0
    """USD that this run paid."""
    earlier: int = 0
    """Replies that an earlier run paid for."""
    imported: int = 0
    """Of these, replies that came by ``ledger import``."""
    cache_read_tokens: int = 0
    """Of the input tokens, those in the provider's cache."""

    def __add__(self, other: "Usage") -> "Usage":
        """Return what the replies of both took."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            seconds=self.seconds + other.seconds,
            cost=sum_if_known(self.cost, other.cost),
            known=self.known + other.known,
            requests=self.requests + other.requests,
            spent=self.spent + other.spent,
            earlier=self.earlier + other.earlier,
            imported=self.imported + other.imported,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
        )


RECORDED = "recorded"
"""Names the answers in the data file, where a model's SPEC may stand."""

CORRECT = "CORRECT"
INCORRECT = "INCORRECT"
NOT_ATTEMPTED = "NOT_ATTEMPTED"
GRADES = (CORRECT, INCORRECT, NOT_ATTEMPTED)
"""The grades of an answer, unless a rubric has labels of its own."""

YES = "YES"
NO = "NO"
UNANSWERED = "UNANSWERED"

State = Literal["passed", "failed", "error", "missing", "stopped"]
"""How an item ended; ``stopped``: not asked, because its gates were decided without it."""

AnswerState = Literal[
    "answered", "declined", "cut", "thought_only", "echo", "repetition", "empty"
]
"""What the reply of a tested model is; ``qagate.evaluators.answers`` finds it out."""


class QAError(Exception):
    """An error that this suite raises on purpose; its text is one line for the user."""


class UsageError(QAError):
    """The user's input is wrong: an option, a file, a key. Ends the run with exit code 4."""


class CallError(QAError):
    """A call to a model brought no reply."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        """A short word for reports and counts."""


class TransientError(CallError):
    """The same call may succeed later: overload, time-out, a broken body."""

    def __init__(
        self, kind: str, message: str, retry_after: float | None = None
    ) -> None:
        super().__init__(kind, message)
        self.retry_after = retry_after
        """Seconds from now, as the server announced; None if it did not."""


class RefusedError(CallError):
    """This one request was refused (too long, malformed); others may succeed."""


class FatalError(CallError):
    """No call to this model can succeed: wrong key, unknown model, quota used up."""


class StoppedError(CallError):
    """The run asks nothing more: its budget or its time is used up, as ``kind`` says."""


class ItemView:
    """What a case and its record have in common."""

    __slots__ = ()
    dataset: str
    id: str
    language: str
    question: str
    context: str
    digest: str
    label: str | None
    metadata: Mapping[str, object]
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(ItemView):
    """One item to be put to a model."""

    id: str
    """Unique within its data set and language; ASCII."""
    dataset: str
    language: str
    row: int
    """The record of the data file, counted from 1."""
    question: str
    golds: tuple[str, ...]
    """The accepted forms, the main one first, exactly as they stand in the file."""
    context: str = ""
    recorded: str | None = None
    """The answer that stands in the data file."""
    label: str | None = None
    """What the verdict must be: YES or NO, the letter of an option; for ``judged`` items a grade,
    or a rating in digits."""
    metadata: Mapping[str, object] = field(default_factory=dict)
    digest: str = ""
    """A hash of everything that may change the item's result."""
    options: tuple[str, ...] = ()
    """What may be chosen, in the order in which the question shows it with letters."""

    @property
    def expected(self) -> str:
        """The main gold form."""
        return self.golds[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of a model, before the provider's wire format."""

    messages: tuple[Message, ...]
    tool: Tool | None = None
    """The function that the model must call."""
    as_json: bool = False
    """Whether the function's arguments are wanted as JSON by its schema, in place of a call."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    version: str = ""
    """The prompt or rubric that wrote the messages."""
    repeat: int = 1
    """Which repeat of ``--repeats`` this is, from 1."""
    attempt: int = 0
    """Rises when a judge's reply could not be read; 0 to 2, or to 1 at temperature 0."""
    case: AskedCase | None = None
    """For models that take the case itself (``Limits.takes_case``)."""
    own_limit: int | None = None
    """The most tokens of the reply, where neither the user nor the prompt says so. It becomes the
    parameter ``max_tokens``, unless the model cannot do with it (``negotiation.formed``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One function call in a reply."""

    name: str
    arguments: str
    """The JSON text exactly as received."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model sent back."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: str = "stop"
    """``stop``, ``tool_calls``, ``length``, ``content_filter``, ``incomplete``, or the server's
    own word where nobody knows it; empty where it gave none."""
    model: str = ""
    """The name that the provider returned."""
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    """Seconds that the call took; 0 if not measured, as in a batch."""
    cost: float | None = None
    """USD, if the reply itself states it; it takes precedence over prices of tokens."""
    cache_read_tokens: int = 0
    """Of the input tokens, those read from the provider's prompt cache."""
    cache_write_tokens: int = 0
    batch: bool = False
    """Whether it came from a batch, which has prices of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAnswer:
    """A reply of a tested model as the reader of answers gives it to all who read it."""

    text: str
    """The answer: without thoughts and without tokens of the chat template."""
    state: AnswerState = "answered"
    finish: str = ""
    """How the reply ended, as in ``Reply``; empty for a recorded answer."""
    reply: str | None = None
    """The reply as it came, where it differs from the text."""


def _label_of(grade: str | None, rating: int | None) -> str:
    if rating is not None:
        return str(rating)
    return grade or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """What one of several judges said."""

    judge: str
    """Its SPEC."""
    grade: str | None = None
    rating: int | None = None
    reason: str = ""
    error: str = ""
    """Why it said nothing."""

    @property
    def label(self) -> str:
        """The grade, or the rating in digits; empty if there is neither."""
        return _label_of(self.grade, self.rating)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A judge's reading of one answer."""

    grade: str | None = None
    """A label of the rubric; YES, NO or an option's letter; or UNANSWERED."""
    rating: int | None = None
    """From 1 to 10."""
    reason: str = ""
    sure: bool = False
    """Whether a rule settled it beyond doubt; only rules set it."""
    votes: tuple[Vote, ...] = ()
    """What each judge of a panel said; of a cascade the one who decided."""
    adjudicated_by: str = ""
    """The person whose verdict this is."""
    parts: Mapping[str, int] = field(default_factory=dict)
    """The scores that a rating was made of, by part."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """The scores of checks by code, 0 to 1, by metric."""
    unscored: Mapping[str, str] = field(default_factory=dict)
    """Why a check by code has no score of the item, by metric."""
    judge_grade: str | None = None
    """The judge's own grade, where a person's stands."""
    judge_rating: int | None = None
    """The judge's own rating, where a person's stands."""

    @property
    def label(self) -> str:
        """The grade, or the rating in digits; empty if there is neither."""
        return _label_of(self.grade, self.rating)


class JudgeError(QAError):
    """The judge gave no verdict."""

    def __init__(
        self,
        message: str,
        *,
        kind: str = "judge_unreadable",
        votes: tuple[Vote, ...] = (),
    ) -> None:
        super().__init__(message)
        self.kind = kind
        """A short word for reports and counts."""
        self.votes = votes
        """What each judge of a panel said that could not agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How a model may be asked. None means no limit of its own."""

    host: str = ""
    """The server; models of one server share its pauses."""
    deadline: float = 120.0
    """Seconds for one call."""
    item_deadline: float = 900.0
    """Seconds for one item from its first call on, retries and waits included."""
    concurrency: int | None = None
    """The most calls in flight."""
    rpm: int | None = None
    """Requests a minute."""
    tpm: int | None = None
    """Tokens a minute."""
    max_tokens: int | None = None
    """The longest reply, unless a request says so itself."""
    is_random: bool = False
    """Whether its replies are drawn at random even if a request asks for temperature 0."""
    takes_case: bool = False
    """Whether it answers a case itself, with or without a prompt."""
    advice: str = "check the API key, the model's name and the URL"
    """What to do where it refuses every call."""


class Model(Protocol):
    """A model behind an API."""

    @property
    def spec(self) -> str:
        """The SPEC that names it, without any key."""

    @property
    def identity(self) -> Mapping[str, object]:
        """What sets it apart from other models: provider, base URL, name, fixed parameters."""

    @property
    def limits(self) -> Limits:
        """How it may be asked."""

    async def complete(self, request: Request) -> Reply:
        """One attempt, without retries. Raises a CallError."""

    async def close(self) -> None:
        """Close its connections."""


Ask = Callable[[Model, Request], Awaitable[Reply]]
"""Put a request to a model through the engine: ledger first, then the network, with retries."""

Price = Callable[[str, Reply], float | None]
"""What a reply of the model with this SPEC cost in USD; None if no price is known."""


LEXICAL = "lexical"
"""The SPEC of the offline judge."""

PYTHON = "python:"
"""Begins the SPEC of the user's own judge: ``python:MODULE:CLASS``."""

CASCADE_SIGN = "+"
"""Separates rules from the model that judges what they do not settle: ``lexical+openai:NAME``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSpec:
    """One judge: ``rules`` that ask no model, a ``model``'s SPEC, or rules before a model."""

    rules: str = ""
    model: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the judge of a SPEC; a plus sign may also be part of a model's name."""
        first, sign, model = text.partition(CASCADE_SIGN)
        if first != LEXICAL and not first.startswith(PYTHON):
            return cls(model=text)
        if not sign:
            return cls(rules=text)
        if not model:
            return cls(model=text)  # "lexical+": refused later, as an unknown model
        return cls(rules=first, model=model)

    @property
    def name(self) -> str:
        """The SPEC."""
        if self.is_cascade:
            return f"{self.rules}{CASCADE_SIGN}{self.model}"
        return self.rules or self.model

    @property
    def is_cascade(self) -> bool:
        """Whether its rules settle what they are sure of before its model is asked."""
        return bool(self.rules and self.model)


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelSpec:
    """One judge, or several that vote: in a record their SPECs, separated by spaces."""

    members: tuple[JudgeSpec, ...]

    @property
    def is_panel(self) -> bool:
        """Whether several judges vote."""
        return len(self.members) > 1

    @property
    def is_cascade(self) -> bool:
        """Whether the only judge is rules before a model."""
        return not self.is_panel and self.members[0].is_cascade

    @property
    def is_offline(self) -> bool:
        """Whether no member ever asks a model."""
        return not self.models()

    def models(self) -> tuple[str, ...]:
        """Return the SPECs of all models that may be asked, each once, in order."""
        models = [member.model for member in self.members if member.model]
        return tuple(dict.fromkeys(models))


def parse_judges(texts: Sequence[str]) -> PanelSpec:
    """Return the judges of ``--judge``, given once or more often."""
    return PanelSpec(members=tuple(JudgeSpec.parse(text) for text in texts))


class Judge(Protocol):
    """Turns an answer into a verdict."""

    @property
    def spec(self) -> str:
        """The SPEC that names it."""

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return the verdict on one answer. Raises JudgeError when no reply could be read."""


@runtime_checkable
class CombinedJudge(Judge, Protocol):
    """A judge that lets others judge."""

    @property
    def asks(self) -> tuple[Judge, ...]:
        """The judges that it may ask, and whose calls may cost something."""


class Answerer(Protocol):
    """Answers a case: a model with its prompt, or the recorded answer."""

    @property
    def spec(self) -> str:
        """The SPEC that names it."""

    async def answer(self, case: Case, repeat: int, ask: Ask) -> ReadAnswer:
        """Return the answer as the reader gives it. Raises a CallError if no reply came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyOrigin:
    """When a reply came, and which run asked for it."""

    at: float | None = None
    """Seconds since 1970; of several replies the oldest. None if no model was asked."""
    run: str = ""
    """The id of that run; empty if no model was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one planned item ended."""

    key: str
    state: State
    answer: str | None = None
    verdict: Verdict | None = None
    kind: str = ""
    """Why it is an ERROR or MISSING: a short word for reports and counts."""
    message: str = ""
    model: str = ""
    judge: str = ""
    usage: Usage = field(default_factory=Usage)
    """What all its replies took."""
    answering: Usage = field(default_factory=Usage)
    """What the replies that made its answer took."""
    measures: Mapping[str, float | None] = field(default_factory=dict)
    """Extra metrics, 0 to 1; ``unmeasured`` says why one is None."""
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    calls: tuple[str, ...] = ()
    """The ledger keys of its replies."""
    asked: ReplyOrigin = field(default_factory=ReplyOrigin)
    """Where the reply with its answer comes from."""
    graded: ReplyOrigin = field(default_factory=ReplyOrigin)
    """Where the judge's replies come from."""
    readings: Mapping[str, "Outcome"] = field(default_factory=dict)
    """How the same judge reads further answers to the item, by the name of the reading."""
    answer_state: AnswerState | Literal[""] = ""
    """What the reply is; empty where none came."""
    finish: str = ""
    """How the reply ended, as in ``Reply``."""
    reply: str | None = None
    """The reply as it came, where it differs from the answer."""

    @property
    def passed(self) -> bool:
        """Whether the answer is right by its slice's rule."""
        return self.state == "passed"

    @property
    def reason(self) -> str:
        """The judge's reason; empty if there is no verdict."""
        return self.verdict.reason if self.verdict else ""
