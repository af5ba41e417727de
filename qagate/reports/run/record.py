"""The record of one item: question, answer, grade, and how it ended.

Metrics, gates, comparisons and every report file are made from records alone. A record is
one line of ``records.jsonl`` and a row of ``results.csv``, so its fields are a format: they
keep their names and their order. ``make_record`` makes it from what the plan and the engine
know of the item.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Literal

from msgspec import Meta

from qagate.cases.dataset import PlannedItem
from qagate.evaluators.core import (
    AnswerState,
    ItemView,
    Outcome,
    State,
    Verdict,
    Vote,
)
from qagate.evaluators.kinds import DatasetName, LanguageName, MetricName
from qagate.evaluators.text import flat, may_hold_key
from qagate.evaluators.typed_data import (
    MOST_OF_A_RUN,
    Count,
    Seconds,
    Share,
    Timestamp,
    Usd,
)
from qagate.reports.run.clean import masked

Rating = Annotated[int, Meta(ge=1, le=10)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(ItemView):
    """The end state of one planned item, in exact text but for masked keys."""

    key: str
    """Unique in a run: ``dataset-language-id``, with ``~r2`` for a second repeat."""
    id: str
    """Pairs the item, with ``digest``, with the same item of another run."""
    repeat: Annotated[int, Meta(ge=1, le=MOST_OF_A_RUN)]
    row: Annotated[int, Meta(ge=1, le=MOST_OF_A_RUN)]
    dataset: DatasetName
    language: LanguageName
    question: str
    context: str
    expected: str
    answer: str | None
    outcome: State
    grade: str | None
    """CORRECT, INCORRECT or NOT_ATTEMPTED; of yes/no items YES, NO or UNANSWERED; the letter of a
    chosen option."""
    rating: Rating | None
    """1 to 10."""
    score: float | None
    """The rubric's ``scores:`` value of the grade, where it has one."""
    reason: str
    """The judge's."""
    error: str
    """Empty where there is a grade, else ``kind: message``."""
    label: str | None
    """What the grade must be: the gold of a yes/no item, the letter of the right option, a judged
    one's given label or rating."""
    model: str
    judge: str
    tokens: Count
    """Tokens of the replies used; ``cost`` (USD) and ``seconds`` are of the same replies."""
    cost: Usd | None
    seconds: Seconds
    digest: str
    metadata: Mapping[str, object] = field(default_factory=dict)
    votes: tuple[Vote, ...] = ()
    """What each judge said: the members of a panel; of a cascade the one who decided."""
    adjudicated_by: str = ""
    """The person who gave the verdict; empty where a judge did."""
    measures: Mapping[MetricName, Share | None] = field(default_factory=dict)
    """Extra metrics by name, 0 to 1; None where one could not be measured."""
    parts: Mapping[str, int] = field(default_factory=dict)
    """The scores that a rating was made of, where its rubric asks for parts."""
    calls: tuple[str, ...] = ()
    """The keys, in ledger and transcripts, of all that was asked for the item."""
    cached_tokens: Count = 0
    """Read from a provider's cache."""
    answer_seconds: Seconds | None = None
    """Of the answer's replies, when they were first made; None if unknown, as the fields below."""
    answer_tokens_in: Count | None = None
    answer_tokens_out: Count | None = None
    answer_cost: Usd | None = None
    golds: tuple[str, ...] = ()
    """All accepted forms, the main one first."""
    asked_at: Timestamp | None = None
    """When the reply with the answer came, in seconds since 1970; None if no model was asked."""
    asked_by: str = ""
    """The id of the run that asked for it; empty if no model was asked."""
    graded_at: Timestamp | None = None
    """When the judge's replies came; None if no model was asked."""
    graded_by: str = ""
    """The id of the run that asked the judge; empty if no model was asked."""
    judge_grade: str | None = None
    """The judge's own grade, where a person's stands."""
    judge_rating: Rating | None = None
    """The judge's own rating, where a person's stands."""
    answer_state: AnswerState | Literal[""] = "answered"
    """What the model's reply is; empty where none came."""
    finish: str = ""
    """How the reply ended: ``stop``, ``length`` or another word; empty if nobody said."""
    reply: str | None = None
    """The reply as it came, where it differs from the answer; a later run reads it anew."""
    options: tuple[str, ...] = ()
    """What could be chosen, in the order shown."""

    @property
    def as_it_came(self) -> str | None:
        """The model's reply as it came; None where none came."""
        return self.answer if self.reply is None else self.reply

    @property
    def is_graded(self) -> bool:
        """Whether the item has a grade, rather than ERROR, MISSING or STOPPED."""
        return self.outcome in ("passed", "failed")

    @property
    def is_disputed(self) -> bool:
        """Whether its judges differ: a panel's members."""
        return len({vote.label for vote in self.votes if vote.label}) > 1

    @property
    def result(self) -> str:
        """The grade, or the rating in digits; empty where there is neither."""
        return str(self.rating) if self.rating is not None else self.grade or ""

    @property
    def error_kind(self) -> str:
        """A short word for why it has no grade, such as ``model: timeout``; empty if it has one.

        Before the colon stands whose error it was. Items that ended otherwise have the word alone.
        """
        kind = self.error.partition(":")[0]
        if self.outcome != "error":
            return kind
        if self.answer is None:
            return f"model: {kind}"
        return f"judge: {kind}"

    def is_in_state(self, name: str) -> bool | None:
        """Return whether the reply is in this state; None where no reply came.

        A decline that meets its gold is none.
        """
        if not self.answer_state:
            return None
        if name == "declined" and self.outcome == "passed":
            return False
        return self.answer_state == name

    def passes(self, bar: int | None = None) -> bool | None:
        """Return whether the item passed, a rating by ``bar`` if given; None if ungraded."""
        if not self.is_graded:
            return None
        if bar is not None and self.rating is not None:
            return self.rating >= bar
        return self.outcome == "passed"


COLUMNS = tuple(column.name for column in fields(Record))


def in_order(records: Iterable[Record]) -> list[Record]:
    """Return records in the order of every report file."""

    def place(record: Record) -> tuple[str, str, int, int, str]:
        return (
            record.dataset,
            record.language,
            record.row,
            record.repeat,
            record.key,
        )

    return sorted(records, key=place)


def by_slice(records: Iterable[Record]) -> dict[str, tuple[Record, ...]]:
    """Return the records of each slice by its name, such as ``simpleqa:bg``."""
    slices: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        slices[f"{record.dataset}:{record.language}"].append(record)
    return {name: tuple(slice_records) for name, slice_records in slices.items()}


def total_cost(costs: Iterable[float | None]) -> float | None:
    """Return the sum in USD, None where one of the costs is not known."""
    known_costs = []
    for cost in costs:
        if cost is None:
            return None
        known_costs.append(cost)
    return sum(known_costs)


def make_record(item: PlannedItem, outcome: Outcome) -> Record:
    """Return the record of a planned item that ended in this outcome."""
    case = item.case
    verdict = outcome.verdict or Verdict()
    usage = outcome.usage
    answering = outcome.answering
    # If no server counts tokens, no cost is known either.
    is_counted = bool(answering.input_tokens or answering.output_tokens)
    answer_tokens_out = answering.output_tokens or None
    if answer_tokens_out is None and is_counted and not outcome.answer:
        answer_tokens_out = 0
    scores = item.slice.rubric.scores if item.slice.rubric else {}
    record = Record(
        key=item.key,
        id=case.id,
        repeat=item.repeat,
        row=case.row,
        dataset=case.dataset,
        language=case.language,
        question=case.question,
        context=case.context,
        expected=case.expected,
        answer=outcome.answer,
        outcome=outcome.state,
        grade=verdict.grade,
        rating=verdict.rating,
        score=scores.get(verdict.grade) if verdict.grade else None,
        reason=verdict.reason,
        error=f"{outcome.kind}: {outcome.message}" if outcome.kind else "",
        label=case.label,
        model=outcome.model,
        judge=outcome.judge,
        tokens=usage.input_tokens + usage.output_tokens,
        cost=usage.cost,
        seconds=round(usage.seconds, 3),
        digest=case.digest,
        metadata=case.metadata,
        votes=verdict.votes,
        adjudicated_by=verdict.adjudicated_by,
        measures=outcome.measures,
        parts=verdict.parts,
        calls=outcome.calls,
        cached_tokens=usage.cache_read_tokens,
        answer_seconds=round(answering.seconds, 6) if answering.seconds else None,
        answer_tokens_in=answering.input_tokens or None,
        answer_tokens_out=answer_tokens_out,
        answer_cost=answering.cost if is_counted or answering.cost else None,
        golds=case.golds,
        asked_at=outcome.asked.at,
        asked_by=outcome.asked.run,
        graded_at=outcome.graded.at,
        graded_by=outcome.graded.run,
        judge_grade=verdict.judge_grade,
        judge_rating=verdict.judge_rating,
        options=case.options,
        answer_state=outcome.answer_state,
        finish=outcome.finish,
        reply=outcome.reply,
    )
    return safe(record)


def safe(record: Record) -> Record:
    """Return the record with keys masked in all its texts: every writer may show these."""
    # Only the values: with its name before it, the field ``key`` would look like a key. And
    # not the outcome, a word of ours: ``passed`` begins like a password.
    values = flat(record)
    del values["outcome"]
    return masked(record) if may_hold_key(repr(values.values())) else record
