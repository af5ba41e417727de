"""What the first screen of a report shows beside the sentence: values, without markup.

The five worst lost answers of the slices that explain the verdict, each with its English twin
where the data set has one, and what the run took.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qagate.evaluators.output import plural
from qagate.reports.render import words, worst_first
from qagate.reports.render.difference_marks import Difference, Piece, difference
from qagate.reports.render.judge_words import judge_sentence
from qagate.reports.render.language_rows import (
    LanguageRow,
    LanguageRows,
    language_rows,
)
from qagate.reports.render.names import Names, listed, number_word
from qagate.reports.render.pictures import Axis, Picture, Tick, draw
from qagate.reports.render.sentence import Sentence, sentence_of
from qagate.reports.render.worst_first import LostAnswer
from qagate.reports.run.record import Record
from qagate.reports.run.report import Report

MAX_ROWS = 8
"""Languages in the figure; the section on gates has all."""
ENGLISH = "en"
SECONDS_A_MINUTE = 60
MINUTES_AN_HOUR = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class LostRow:
    """A lost answer as a table shows it."""

    key: str
    language: str
    question: str
    twin: str
    """The question in English; empty where it is English, or not known in it."""
    expected: str
    difference: Difference


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstScreen:
    """All that the first screen shows."""

    sentence: Sentence
    languages: LanguageRows | None
    drawn: Sequence[tuple[LanguageRow, Picture]]
    """The first of these rows with their pictures."""
    more_rows: int
    """How many more there are."""
    ticks: Sequence[Tick]
    lost: Sequence[LostRow]
    has_twins: bool
    """Whether any lost question stands in English too."""
    lost_title: str
    lost_count: int
    """The lost answers of the slices that explain the verdict."""
    lost_filter: str
    """The address of the list with these answers; that of all lost ones where there are many."""
    judge: str
    """Empty where no model answered."""
    gates_text: str
    """How many gates fail, or cannot be decided, in a sentence."""
    model: str
    old_model: str
    spent: str
    """How many answers came, how long it took, and what it cost."""
    date: str


def first_screen(report: Report) -> FirstScreen:
    """Return what the first screen of a report shows."""
    telling = worst_first.telling_slices(report)
    lost = worst_first.lost_answers(report)
    of_telling = [answer for answer in lost if answer.slice in telling]
    names = Names.of(report)
    twins = _english_questions(report.records)
    compared = report.comparison
    languages = language_rows(report)
    rows = languages.rows[:MAX_ROWS] if languages else []
    axis = Axis.of(rows) if rows else None
    lost_rows = [lost_row(answer, twins) for answer in worst_first.five_lost(report)]
    return FirstScreen(
        sentence=sentence_of(report),
        languages=languages,
        drawn=[(row, draw(row, axis)) for row in rows] if axis else [],
        more_rows=len(languages.rows) - len(rows) if languages else 0,
        ticks=axis.ticks(rows) if axis else [],
        lost=lost_rows,
        has_twins=any(row.twin for row in lost_rows),
        lost_title=_lost_title(report, telling, names),
        lost_count=len(of_telling),
        lost_filter=_lost_filter(of_telling),
        judge=judge_sentence(report, telling) if telling else "",
        gates_text=gates_text(report),
        model=plain_model(words.model(report)),
        old_model=plain_model(compared.model) if compared else "",
        spent=spent_of(report),
        date=words.date(report.run.get("started")),
    )


def gates_text(report: Report) -> str:
    """Return how many gates fail, or cannot be decided: ``2 of 17 gates fail``."""
    gates = report.decision.gates
    counts = Counter(gate.state for gate in gates)
    if not gates:
        return "There are no gates."
    parts = []
    if counts["FAIL"]:
        verb = "fails" if counts["FAIL"] == 1 else "fail"
        parts.append(f"{counts['FAIL']:,} of {plural(len(gates), 'gate')} {verb}.")
    if counts["INCONCLUSIVE"]:
        of = "" if parts else f" of {plural(len(gates), 'gate')}"
        parts.append(f"{counts['INCONCLUSIVE']:,}{of} cannot be decided.")
    if not parts:
        hold = "holds" if len(gates) == 1 else "hold"
        return f"{plural(len(gates), 'gate')} {hold}."
    return " ".join(parts)


def plain_model(name: str) -> str:
    """Return a model's name without its provider: ``openai:gpt-4.1`` is ``gpt-4.1``."""
    provider, colon, rest = name.partition(":")
    if colon and provider.isalnum() and rest and not rest.startswith(("/", "\\")):
        return rest
    return name


def lost_row(answer: LostAnswer, twins: Mapping[str, str] | None = None) -> LostRow:
    """Return a lost answer with what differs; ``twins`` are the English questions, by fact."""
    record = answer.record
    twin = ""
    if record.language != ENGLISH and twins:
        twin = twins.get(_fact(record), "")
    return LostRow(
        key=record.key,
        language=record.language,
        question=record.question,
        twin=twin,
        expected=record.expected,
        difference=lost_difference(answer),
    )


def lost_difference(answer: LostAnswer) -> Difference:
    """Return what differs; of a new answer that says nothing, nothing is marked."""
    record = answer.record
    new = record.answer or ""
    marked = difference(
        record.question, record.expected, answer.change.answer or "", new
    )
    if worst_first.is_plainly_wrong(record):
        return marked
    return Difference(old=marked.old, new=[Piece(text=new)])


def _english_questions(records: Sequence[Record]) -> Mapping[str, str]:
    """Return the English question of each fact that is asked in English."""
    questions = {}
    for record in records:
        if record.language == ENGLISH and _fact(record):
            questions[_fact(record)] = record.question
    return questions


def _fact(record: Record) -> str:
    fact = record.metadata.get("fact_id")
    return f"{record.dataset}\n{fact}" if fact else ""


def _lost_title(report: Report, telling: Sequence[str], names: Names) -> str:
    count = min(worst_first.FIVE, len(worst_first.five_lost(report)))
    worst = "The worst lost answer" if count == 1 else f"The {number_word(count)} worst"
    if count != 1:
        worst += " lost answers"
    answered = [part.name for part in report.slices if part.kind.answered]
    if len(telling) == len(answered) and len(answered) > 1:
        return worst
    return f"{worst} in {listed([names.of_slice(name) for name in telling])}"


def _lost_filter(answers: Sequence[LostAnswer]) -> str:
    slices = {answer.slice for answer in answers}
    if len(slices) != 1:
        return "#items?flip=broke"
    dataset, _, language = slices.pop().partition(":")
    return f"#items?dataset={dataset}&language={language}&flip=broke"


def spent_of(report: Report) -> str:
    """Return what the run took: ``1,703 answers, 76 s, $12.83``."""
    counts = report.counts
    parts = [plural(counts.passed + counts.failed, "answer")]
    seconds = report.run.get("seconds")
    if isinstance(seconds, (int, float)) and math.isfinite(seconds):
        parts.append(duration(float(seconds)))
    parts.append(cost_of(report))
    return f"{', '.join(part for part in parts if part)}."


def duration(seconds: float) -> str:
    """Return a time as people say it: ``76 s``, ``4 min``, ``2 h 5 min``."""
    if seconds < 2 * SECONDS_A_MINUTE:
        return f"{seconds:.0f} s"
    minutes = round(seconds / SECONDS_A_MINUTE)
    if minutes < 2 * MINUTES_AN_HOUR:
        return f"{minutes} min"
    hours, rest = divmod(minutes, MINUTES_AN_HOUR)
    return f"{hours} h {rest} min"


def cost_of(report: Report) -> str:
    """Return the cost in dollars and cents; tokens where no price is known."""
    if report.cost is None or not math.isfinite(report.cost):
        return f"{report.tokens:,} tokens, {words.cost(report)}"
    return f"${report.cost:,.2f}"
