"""How healthy a slice's answers are: which are cut, echoed, declined, and why that may be.

A model that is wired wrongly looks like a worse model: its answers are cut at a limit, repeat the
prompt, hold thoughts alone. Grades cannot show that. The reader of answers says of each reply what
it is (``Record.answer_state``); here the shares are counted, this run beside the baseline, each
symptom for itself, and the likely cause is put into words.

From ``WARNING_PERCENT`` on, a share is a warning. From ``SEVERE_PERCENT`` on, no run passes:
see ``gates/decide.py``. It never fails for it, as the fault may lie in the wiring.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from qagate.cases.dataset import Slice
from qagate.evaluators.finishes import FILTERED
from qagate.evaluators.kinds import UNANSWERABLE
from qagate.evaluators.languages.detection import is_in, known
from qagate.evaluators.text import first_of
from qagate.reports.run.evidence import (
    HealthLevel,
    SliceHealth,
    Symptom,
    SymptomCount,
)
from qagate.reports.run.record import Record

WARNING_PERCENT = 5
SEVERE_PERCENT = 20
FEWEST_SEVERE = 5
"""So many answers with a symptom there must be at least: fewer may be chance."""
SYMPTOMS: tuple[Symptom, ...] = (
    "cut",
    "thought_only",
    "empty",
    "echo",
    "repetition",
    "declined",
    "other_language",
)
EXAMPLES = 3
"""Answers named for each symptom."""
READ_FOR_LANGUAGE = 2_000
"""Characters of an answer by which its language is told."""
CODE_STARTS = ("{", "[", "<", "```")
"""What begins with these is data or code, and in no language."""


def health_of(
    slice_: Slice,
    records: Sequence[Record],
    old_records: Sequence[Record] | None,
    *,
    is_waived: bool = False,
) -> SliceHealth:
    """Return the symptoms of a slice's answers; without a baseline ``old_records`` is None."""
    answers = _answered(records)
    found = _by_symptom(slice_, answers)
    old_answers = None
    found_then: dict[Symptom, list[Record]] = {}
    if old_records is not None:
        old_answers = _answered(old_records)
        found_then = _by_symptom(slice_, old_answers)
    counts = []
    for symptom in SYMPTOMS:
        having = found.get(symptom, [])
        having_then = found_then.get(symptom, [])
        if having or having_then:
            count = SymptomCount(
                symptom=symptom,
                count=len(having),
                old_count=None if old_answers is None else len(having_then),
                level=_level(symptom, having, len(answers)),
                cause=_cause(symptom, having) if having else "",
                examples=tuple(record.key for record in having[:EXAMPLES]),
            )
            counts.append(count)
    return SliceHealth(
        dataset=slice_.dataset,
        language=slice_.language,
        answers=len(answers),
        old_answers=None if old_answers is None else len(old_answers),
        symptoms=tuple(counts),
        is_waived=is_waived,
    )


def _level(symptom: Symptom, having: Sequence[Record], answers: int) -> HealthLevel:
    """Return how much it is that so many answers have a symptom.

    A model that says what it does not know is honest, and its metric is ``not_attempted``:
    declining in words is a warning at most. Where a filter or the provider refused, the wiring
    may be wrong.
    """
    level = level_of(len(having), answers)
    if symptom != "declined" or level != "severe":
        return level
    refused = [record for record in having if record.finish == FILTERED]
    if level_of(len(refused), answers) == "severe":
        return "severe"
    return "warning"


def level_of(count: int, answers: int) -> HealthLevel:
    """Return how much ``count`` of so many answers is."""
    hundredfold = 100 * count  # so that whole numbers are compared
    if not count or hundredfold < WARNING_PERCENT * answers:
        return "few"
    if count < FEWEST_SEVERE or hundredfold < SEVERE_PERCENT * answers:
        return "warning"
    return "severe"


def _answered(records: Iterable[Record]) -> list[Record]:
    """Return the records of items to which an answer came, however it is read."""
    return [
        record
        for record in records
        if record.answer is not None and record.answer_state
    ]


def _by_symptom(
    slice_: Slice, records: Iterable[Record]
) -> dict[Symptom, list[Record]]:
    found: dict[Symptom, list[Record]] = defaultdict(list)
    for record in records:
        for symptom in symptoms_of(slice_, record):
            found[symptom].append(record)
    return found


def symptoms_of(slice_: Slice, record: Record) -> Iterator[Symptom]:
    """Yield what is wrong with an answer: an echo, for instance, may be cut as well."""
    state = record.answer_state
    if state == "thought_only":
        yield "thought_only"  # and if it is cut, it is so within its thoughts
        return
    if state == "cut" or record.finish == "length":
        yield "cut"
    if state == "empty" or state == "echo" or state == "repetition":  # noqa: PLR1714  # for mypy
        yield state
    elif state == "declined":
        if not _may_decline(record):
            yield "declined"
    elif _is_in_another_language(slice_, record):
        yield "other_language"


def _may_decline(record: Record) -> bool:
    """Return whether the gold is met by declining."""
    return any(
        gold.startswith(UNANSWERABLE) for gold in (record.expected, *record.golds)
    )


def _is_in_another_language(slice_: Slice, record: Record) -> bool:
    """Return whether an answer in prose is in another language than its slice.

    What code checks may be of any form.
    """
    text = _prose_of(record)
    if slice_.kind.by_checks or not text:
        return False
    if is_in(record.expected, slice_.language) is False:  # a translation, for instance
        return False
    return is_in(text, slice_.language) is False


def _prose_of(record: Record) -> str:
    """Return the beginning of an answer; empty where it is data or code."""
    text = (record.answer or "")[:READ_FOR_LANGUAGE].lstrip()
    return "" if text.startswith(CODE_STARTS) else text


# Causes


def _cause(symptom: Symptom, records: Sequence[Record]) -> str:
    """Return what is said of these answers, to stand behind how many they are of how many."""
    if symptom == "cut":
        return f"were cut {_where_cut(records)}: raise max_tokens in the models file"
    if symptom == "thought_only":
        return _cause_of_thoughts(records)
    if symptom == "empty":
        return "hold nothing: look at the stop words, the chat template and the server's log"
    if symptom == "echo":
        return (
            "begin with the prompt's own words: the chat template is missing, "
            "or this is a base model"
        )
    if symptom == "repetition":
        return (
            "say one line or phrase over and over: the model finds no end; look at the chat "
            "template and its stop token, or take a larger model"
        )
    if symptom == "declined":
        return (
            "decline to answer: a content filter or the system prompt may refuse, or the "
            "model says what it does not know"
        )
    return f"are in another language{_languages_of(records)}: name the language in the prompt"


def _where_cut(records: Sequence[Record]) -> str:
    """Return after how many tokens these answers end, as far as servers said."""
    lengths = Counter(
        record.answer_tokens_out for record in records if record.answer_tokens_out
    )
    if not lengths:
        return "at the token limit"
    usual, times = lengths.most_common(1)[0]
    if 2 * times >= len(records):
        return f"at {usual:,} tokens"
    return f"after {min(lengths):,} to {max(lengths):,} tokens"


def _cause_of_thoughts(records: Sequence[Record]) -> str:
    cut = [record for record in records if record.finish == "length"]
    if 2 * len(cut) >= len(records):
        return (
            f"end within their thoughts, {_where_cut(cut)}: raise max_tokens in the models "
            "file, or let the model think less"
        )
    return (
        "hold thoughts and no answer: look at how the server parts the two "
        "(its reasoning parser)"
    )


def _languages_of(records: Sequence[Record]) -> str:
    """Return in which languages texts are that are surely in one of the known ones."""
    languages = Counter(
        code
        for record in records
        for code in sorted(known())
        if is_in(_prose_of(record), code)
    )
    if not languages:
        return ""
    return f" ({', '.join(sorted(languages))})"


# Sentences


def severe_sentences(health: Iterable[SliceHealth]) -> list[str]:
    """Return what keeps a run from passing, in words; nothing of what is waived."""
    deciding = [part for part in health if not part.is_waived]
    return sentences(deciding, "severe")


def sentences(health: Iterable[SliceHealth], level: HealthLevel) -> list[str]:
    """Return a sentence for each cause at a level: which slices have it, and what to do."""
    slices_of: dict[str, list[str]] = defaultdict(list)
    for part in health:
        for count in part.symptoms:
            if count.level == level and count.cause:
                slices_of[count.cause].append(_numbers(part, count))
    return [f"{first_of(numbers)} {cause}" for cause, numbers in slices_of.items()]


def _numbers(part: SliceHealth, count: SymptomCount) -> str:
    """Return how many answers of a slice have a symptom, and had it in the baseline."""
    numbers = f"{count.count:,} of {part.answers:,} answers of {part.name}"
    if count.old_count is None or part.old_answers is None:
        return numbers
    return f"{numbers} ({count.old_count:,} of {part.old_answers:,} before)"
