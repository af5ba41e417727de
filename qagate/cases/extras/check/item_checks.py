"""What checks find; checks of items: repeats, leaks, ids, letters, language."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cache, partial
from itertools import pairwise, product
from pathlib import Path
from typing import Literal

from qagate.bundled import CASES
from qagate.cases.config import load_dataset
from qagate.cases.dataset import DATASET_FILE, Slice
from qagate.cases.loading import GOOD_ID, load_cases, load_rows
from qagate.cases.options import FILE_ORDER, has_options
from qagate.cases.rows import id_of
from qagate.evaluators.core import CORRECT, Case
from qagate.evaluators.extras.lexical.analysis import Answer
from qagate.evaluators.extras.lexical.judge import grade
from qagate.evaluators.extras.lexical.match import find_matches
from qagate.evaluators.kinds import MARKS
from qagate.evaluators.languages.detection import has, language_of, words
from qagate.evaluators.languages.look_alikes import look_like_others, mixed_words
from qagate.evaluators.replies.choices import points_at_others
from qagate.evaluators.text import INVISIBLE, first_of, hint, listed, shown

LOOKED_AT = 10_000  # characters of each text that are checked: what is odd in a text shows by then
FEWEST_LETTERS = 4  # a gold of fewer letters stands in many questions by chance
STEM = 5  # letters by which two forms of a word are taken for one
SHARED = 0.4
"""The share of the shorter question's stems that make a second question about a gold the same."""
FEWEST_STEMS = 2  # stems that two questions about one fact share at least
ALIKE = 0.8
"""The likeness from which a gold may be taken for another one, 0 to 1 as ``difflib`` counts it."""
FEWEST_INDEXES = 4
"""Golds like an option's name, before a file is taken for a test whose options are missing.

A few of many answers are a number or a letter in any set."""
MOST_INDEXES = 0.9
"""The share of a file's golds from which it is taken for one."""
FEWEST_WORDS = 6  # the language of a text with fewer words is not guessed
CLEAR = 4  # how many frequent words of another language settle it where there is none of the own
AROUND = 12  # characters shown on either side of an invisible one

_SUPERSEDED = re.compile(
    r"\b(?:before|prior to)\s+(?:(?:its|their|the)\s+(?:\w+\s+)?amendments?\b"
    r"|(?:it|they)\s+(?:was|were|had been)\s+(?:\w+\s+)?amended\b|being\s+amended\b)",
    re.IGNORECASE,
)

_TIME_STAMP = "is a time stamp; write the date as an answer would: '4 March 2021'"
_EXPORTED = (
    (
        re.compile(r"\[.*\]", re.DOTALL),
        "looks like a list; give its texts as ['one', 'another'], or one alone",
    ),
    (
        re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*"),
        _TIME_STAMP,
    ),
    (  # a spreadsheet's, which has midnight where only the day was meant
        re.compile(
            r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4},? (?:0?0:00(?::00)?|12:00(?::00)? ?AM)",
            re.IGNORECASE,
        ),
        _TIME_STAMP,
    ),
    (
        re.compile(r"[^/;]*\w(?: / |; )\w[^/;]*"),
        "looks like two answers; give each as a form: 'one | another' in a column 'Aliases'",
    ),
)
"""How golds look that a program exported, and what to do."""

_INDEX = re.compile(r"[A-Ea-eА-Да-д0-5][.)]?")
"""A gold that may be the letter or the number of an option."""
_OUTER = ".,;:!?\"'`“”„«»()[]"
_TOKEN = re.compile(r"\w+")
_QUOTED = re.compile('[„“«»"(][^„“”«»"()]{0,200}[“”«»")]')


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to look at."""

    severity: Literal["error", "warning"]
    row: int
    """Which record of the file, from 1; 0 is the file as a whole."""
    message: str
    check: str = ""
    file: Path = Path()

    @property
    def line(self) -> str:
        """The finding as one line of text."""
        where = f"{self.file}: row {self.row}" if self.row else f"{self.file}"
        return f"{where}: {self.check}: {self.severity}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A slice with its items, their texts cut after ``LOOKED_AT`` characters."""

    slice_: Slice
    cases: tuple[Case, ...]
    ids: Mapping[int, str | None] = field(default_factory=dict)
    """The id that the file gives each row, None where it gives none."""


def read_subject(slice_: Slice) -> Subject:
    """Return a slice with its items. Raises UsageError where the file cannot be loaded."""
    cases, ids = [], {}
    for row, case in load_rows(slice_):
        ids[case.row] = id_of(row)
        question, context = case.question[:LOOKED_AT], case.context[:LOOKED_AT]
        golds = tuple(gold[:LOOKED_AT] for gold in case.golds)
        recorded = case.recorded and case.recorded[:LOOKED_AT]
        cut = replace(
            case, question=question, context=context, golds=golds, recorded=recorded
        )
        cases.append(cut)
    return Subject(slice_=slice_, cases=tuple(cases), ids=ids)


error = partial(Finding, "error")
"""Makes a finding about something surely wrong, of row and message; ``warning`` one that may be."""
warning = partial(Finding, "warning")


def asked(subject: Subject) -> Iterator[tuple[int, str, str]]:
    """Yield row, name and text of each question, and of each context that is not empty."""
    for case in subject.cases:
        yield case.row, "question", case.question
        if case.context:
            yield case.row, "context", case.context


def written(subject: Subject) -> Iterator[tuple[int, str, str]]:
    """Yield row, name and text of all that people wrote: questions, contexts and golds."""
    yield from asked(subject)
    yield from (
        (case.row, "gold", gold) for case in subject.cases for gold in case.golds
    )


def repeats(subject: Subject, *, contradicting: bool) -> Iterator[Finding]:
    """Find the items that ask the same as one before, and expect the same or something else.

    The same is asked of a judge where answer and golds are the same, too.
    """
    kind = subject.slice_.kind
    first: dict[tuple[str, ...], Case] = {}
    for case in subject.cases:
        key: tuple[str, ...] = (_flat(case.question), _flat(case.context))
        if not kind.answered:
            key = (*key, _flat(case.recorded or ""), *sorted(map(_flat, case.golds)))
        before = first.setdefault(key, case)
        if kind.has_labels:
            differs = before.label != case.label
        else:
            differs = {*map(_flat, before.golds)}.isdisjoint(map(_flat, case.golds))
        if before is case or differs != contradicting:
            continue
        what = f"the same item as row {before.row}: {shown(case.question)}; keep one"
        if contradicting:
            mine, other = (shown(one.label or one.expected) for one in (case, before))
            what = f"the same question as row {before.row} has gold {mine} here and {other} there; "
            what += "correct one or word the question more exactly"
        yield error(case.row, what)


def _flat(text: str) -> str:
    """Return a text without case and outer marks of its words; ``C++`` stays another than ``C``."""
    found = (word.strip(_OUTER) for word in _folded(text).split())
    return " ".join(filter(None, found)) or text


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def leaks(subject: Subject) -> Iterator[Finding]:
    """Find questions that hold a gold of four letters or more in whole words, but no choice."""
    if subject.slice_.kind.closed:
        return
    language = language_of(subject.slice_.language)
    either = language.either if language else frozenset()
    for case in subject.cases:
        found = _TOKEN.findall(_folded(case.question))
        if either & set(found[1:]):  # as a first word it may only ask
            continue
        question = f" {' '.join(found)} "
        for gold in case.golds:
            form = _TOKEN.findall(_folded(gold))
            enough = sum(len(word) for word in form if word.isalpha()) >= FEWEST_LETTERS
            if enough and f" {' '.join(form)} " in question:
                what = (
                    f"gold {shown(gold)} stands in the question {shown(case.question)}"
                )
                yield warning(
                    case.row, f"{what}; reword the question or drop this form"
                )
                break


def ids(subject: Subject) -> Iterator[Finding]:
    """Find the ids that change when a text is corrected, or that reports will not show."""
    given = subject.ids
    bare = [number for number, id_ in given.items() if id_ is None]
    if 0 < len(bare) < len(given):
        rows = first_of([str(row) for row in bare], 5)
        what = f"{len(bare)} of {len(given)} rows have no id ({rows}): theirs comes "
        yield warning(
            bare[0], f"{what}from the content and changes with it; give every row one"
        )
    odd = {row: id_ for row, id_ in given.items() if id_ and not GOOD_ID.fullmatch(id_)}
    if odd:
        what = f"{len(odd)} of {len(given)} ids are replaced by hashes, such as "
        advice = "use at most 64 of A-Z, a-z, 0-9, '.', '_' and '-'"
        yield warning(min(odd), f"{what}{listed(list(odd.values())[:3])}; {advice}")


def loose_golds(subject: Subject) -> Iterator[Finding]:
    """Find the forms that a sentence without an answer meets, or that lack another form's unit."""
    slice_, language = subject.slice_, language_of(subject.slice_.language)
    if (
        not language
        or not slice_.kind.by_rubric
        or slice_.kind.rated
        or not slice_.kind.answered
    ):
        return
    for case in subject.cases:
        forms = [gold for gold in case.golds if not gold.startswith(MARKS)]
        text = Answer(replace(case, golds=tuple(forms)), " | ".join(language.empty))
        gold = text.forms[0].quantity if text.forms else None
        known = (gold.values[0], *(gold.limits or ())) if gold and gold.unit else ()
        for number in known and {one.bare_number for one in text.forms}.intersection(
            known
        ):
            message = f"form {number:.15g} lacks the gold's unit, so that any unit passes; drop it"
            yield error(case.row, message)
        if not any(next(find_matches(form, text), None) for form in text.forms):
            continue
        for form, said in product(forms, language.empty):
            if grade(replace(case, golds=(form,)), said).grade == CORRECT:
                message = f"gold {shown(form)} is met by {shown(said)}; drop or reword this form"
                yield error(case.row, message)
                break


def exported_golds(subject: Subject) -> Iterator[Finding]:
    """Find golds that look as a program wrote them: a list, a time stamp, several in one text."""
    if not subject.slice_.kind.by_rubric or subject.slice_.kind.rated:
        return
    for case in subject.cases:
        for gold in case.golds:
            if gold.startswith(MARKS):
                continue
            for pattern, advice in _EXPORTED:
                if pattern.fullmatch(gold.strip()):
                    yield warning(case.row, f"gold {shown(gold)} {advice}")
                    break


def index_golds(subject: Subject) -> Iterator[Finding]:
    """Find that a file's golds name options, as in a multiple-choice test that lost them."""
    kind = subject.slice_.kind
    if not kind.by_rubric or kind.rated or not kind.answered:
        return
    rows = [case.row for case in subject.cases if _INDEX.fullmatch(case.expected)]
    if len(rows) < max(FEWEST_INDEXES, MOST_INDEXES * len(subject.cases)):
        return
    yield warning(
        rows[0],
        f"{len(rows)} of {len(subject.cases)} golds are a letter or a number, as of options that "
        "the model is not shown; give the options and say 'kind: choice', or give the texts",
    )


def without_expected(subject: Subject) -> Iterator[Finding]:
    """Find that items to be rated have no expected answer: nothing but a model can rate them."""
    kind = subject.slice_.kind
    if not kind.rated or not kind.answered:
        return
    rows = [case.row for case in subject.cases if not case.expected.strip()]
    if rows:
        yield warning(
            rows[0],
            f"{len(rows)} of {len(subject.cases)} items have no expected answer; a model rates "
            "them by question and context alone, and no rules or shared wording can",
        )


def unshown_options(subject: Subject) -> Iterator[Finding]:
    """Find the options of a file whose kind does not show them to the model."""
    kind = subject.slice_.kind
    if kind.closed or not kind.answered:
        return
    rows = [case.row for case in subject.cases if has_options(case.metadata)]
    if rows:
        yield warning(
            rows[0],
            f"{len(rows)} items have options that the model is not shown; "
            "say 'kind: choice', or drop the columns",
        )


def moved_options(subject: Subject) -> Iterator[Finding]:
    """Find options that speak of others, and are shown in another order than the file's."""
    if subject.slice_.shuffle == FILE_ORDER:
        return
    for case in subject.cases:
        for option in case.options:
            if points_at_others(option):
                yield warning(
                    case.row,
                    f"option {shown(option)} speaks of others, but options are shown in a "
                    "drawn order; say 'shuffle: 0' in dataset.yaml",
                )
                break


def alike_golds(subject: Subject) -> Iterator[Finding]:
    """Find golds of two items that the offline judge takes for one answer, slips of the pen aside.

    Only neighbours in the order of the alphabet are compared: what differs in an ending or a
    number is next to each other there.
    """
    kind = subject.slice_.kind
    if not kind.by_rubric or kind.rated or not kind.answered:
        return
    by_gold: dict[str, Case] = {}
    for case in subject.cases:
        if not case.expected.startswith(MARKS):
            by_gold.setdefault(_flat(case.expected), case)
    for first, second in pairwise(sorted(by_gold)):
        case, other = by_gold[first], by_gold[second]
        if SequenceMatcher(None, first, second, autojunk=False).ratio() < ALIKE:
            continue
        if grade(case, other.expected).grade == CORRECT:
            yield warning(
                case.row,
                f"rules take {shown(other.expected)} (row {other.row}) for this item's gold "
                f"{shown(case.expected)}; let a model judge them",
            )


def superseded(subject: Subject) -> Iterator[Finding]:
    """Find English texts about an act before an amendment; "as amended by …" is right."""
    for row, where, text in asked(subject):
        if found := _SUPERSEDED.search(text):
            said = shown(" ".join(text[: found.end()].split()[-AROUND:]))
            message = f"the {where} asks about superseded law: {said}; ask about the text in force"
            yield warning(row, message)


def overlap(subject: Subject) -> Iterator[Finding]:
    """Find items that also measure judges: the same question, or much the same words and gold."""
    if not subject.slice_.kind.by_rubric:
        return
    for case in subject.cases:
        question, golds, stems = _compared(case)
        found = []
        for name, (asked_of_judges, others, their_stems) in _labelled(
            subject.slice_.language
        ):
            enough = max(FEWEST_STEMS, SHARED * min(len(stems), len(their_stems)))
            alike = golds & others and len(stems & their_stems) >= enough
            found += [name] if alike or question == asked_of_judges else []
        if found:
            what = f"{shown(case.question)} is also asked of judges, in {', '.join(found[:3])}; "
            advice = (
                "keep it in one of the two, or the judge is measured where it decides"
            )
            yield warning(case.row, what + advice)


_Compared = tuple[str, frozenset[str], frozenset[str]]
"""An item's question, its golds, and the first letters of its words, without frequent ones."""


@cache
def _labelled(language: str) -> tuple[tuple[str, _Compared], ...]:
    """Return the bundled items of a language that measure judges, with their places.

    Attacks are none of them: how a judge answers attacks decides on no other grade.
    """
    places: list[tuple[str, _Compared]] = []
    for path in sorted(CASES.rglob(DATASET_FILE)):
        dataset = load_dataset(path)
        slice_ = dataset.slices.get(language)
        if dataset.kind.answered or slice_ is None or slice_.attacks:
            continue
        for case in load_cases(slice_):
            places.append((f"{slice_.name} row {case.row}", _compared(case)))
    return tuple(places)


def _compared(case: Case) -> _Compared:
    language = language_of(case.language)
    found = set(_TOKEN.findall(_folded(case.question))) - (
        language.stops if language else set()
    )
    golds = frozenset(map(_flat, case.golds))
    return _flat(case.question), golds, frozenset(word[:STEM] for word in found)


def mixed_scripts(subject: Subject) -> Iterator[Finding]:
    """Find words that mix Latin, Cyrillic and Greek letters; an error where they look alike."""
    language = language_of(subject.slice_.language)
    home = language.script if language else "Latin"
    for row, where, text in written(subject):
        for mixed in mixed_words(text, home):
            first = mixed.odd[0]
            letter = f"U+{ord(first):04X} ({unicodedata.name(first, 'no name')})"
            say = error if look_like_others(mixed.odd) else warning
            yield say(
                row,
                f"word {shown(mixed.word)} in the {where} mixes scripts: {letter}; "
                "retype the word on one keyboard",
            )


def invisible(subject: Subject) -> Iterator[Finding]:
    """Find texts with characters that draw nothing; errors where the language needs none."""
    say = error if language_of(subject.slice_.language) else warning
    for row, where, text in written(subject):
        marks = INVISIBLE.finditer(text)
        found = next(
            (mark for mark in marks if not _is_emoji(text, mark.start())), None
        )
        if found:
            near = shown(text[max(0, found.start() - AROUND) : found.end() + AROUND])
            name = unicodedata.name(found[0], "a control character")
            what = f"the invisible U+{ord(found[0]):04X} ({name}) near {near}"
            yield say(row, f"the {where} holds {what}; delete it")


def _is_emoji(text: str, index: int) -> bool:
    """Return whether this is what makes the symbol before it a picture."""
    before = unicodedata.category(text[index - 1]) if index else ""
    return text[index] in "\ufe0e\ufe0f\u200d" and before in ("So", "Sk", "Po", "Sm")


def other_language(subject: Subject) -> Iterator[Finding]:
    """Find the texts that seem to be in another language, by script and by frequent words."""
    own = language_of(subject.slice_.language)
    if own is None:
        return
    for row, where, text in asked(subject):
        ascii_latin = own.script == "Latin" and text.isascii()
        if not (ascii_latin or has(own.script, text) or len(words(text)) < 3):
            what = f"no {own.script} letter: {shown(text)}; is it in {own.code!r}?"
            yield error(row, f"the {where} has {what}")
            continue
        bare = words(_QUOTED.sub(" ", text))  # without what it quotes
        small = {
            word for word in bare if not word[0].isupper()
        }  # titles may be left as they are
        small |= {word.casefold() for word in bare[:1]}
        best, mine, theirs = (
            own.rival(small) if len(bare) >= FEWEST_WORDS else ("", 0, 0)
        )
        if theirs >= max(3, mine + 2):
            what = f"the {where} looks like {best!r}: {theirs} frequent words of that language "
            what += f"alone against {mine} of {own.code!r} in {shown(text)}; "
            say = error if mine == 0 and theirs >= CLEAR else warning
            yield say(row, f"{what}put it in the right file")


def unknown_retired(subject: Subject) -> Iterator[Finding]:
    """Find ids to retire that no item has: a slip there would retire nothing, or the wrong item."""
    ids = {case.id for case in subject.cases}
    for id_ in subject.slice_.retired.ids:
        if id_ not in ids:
            what = f"retired: no item has the id {shown(id_)}"
            yield error(0, f"{what}; {hint(id_, ids)}")
