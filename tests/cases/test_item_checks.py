"""``check`` finds repeats, leaks, unstable ids, wrong letters, and texts in another language."""

from pathlib import Path

import pytest

from cases.check.findings import rows_listed
from cases.check.item_checks import (
    conflicts,
    duplicates,
    ids,
    invisible,
    leaks,
    loose_golds,
    mixed_scripts,
    other_language,
    overlap,
    superseded,
)
from evaluators.languages import known, language_of
from tests.support.linting import asked, found, from_file, item, said, subject
from tests.support.tables import tabled

CAPITAL = "What is the capital of Bulgaria?"
CYRILLIC_A, CYRILLIC_O, LATIN_E = "\u0430", "\u043e", "e"
BELARUSIAN = "Ці маглі сяляне ў той вёсцы вырошчваць бульбу?"


def test_the_same_question_twice_is_an_error() -> None:
    """Case, outer marks and spaces make no other question; the first row stays unmarked."""
    twice = subject(item(1, CAPITAL, "Sofia"), item(2, "what is the capital of  Bulgaria", "Sofia"))
    assert found(duplicates, twice) == [("error", 2)]
    assert found(conflicts, twice) == []
    assert "the same item as row 1" in said(duplicates, twice)


@pytest.mark.parametrize(
    ("first", "second", "context"),
    [("What is C?", "What is C++?", ""), ("?", "!", ""), ("Is it so?", "Is it so?", "Passage 2.")],
)
def test_signs_and_passages_count(first: str, second: str, context: str) -> None:
    """C++ is not C, and the same words about another passage are no repeat."""
    assert not found(duplicates, subject(item(1, first), item(2, second, context=context)))


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [("Sofia", "Plovdiv", True), ("Sofia", "sofia.", False), ("+", "-", True), ("+", "+", False)],
)
def test_one_question_with_two_golds_is_a_conflict(first: str, second: str, *, told: bool) -> None:
    """Golds that share no form contradict each other; signs are compared as they stand.

    For yes/no items the labels are compared.
    """
    yes, no = item(1, "Is it?", label="YES"), item(2, "Is it?", label="NO")
    assert found(conflicts, subject(yes, no, kind="yes_no")) == [("error", 2)]
    both = subject(item(1, CAPITAL, first), item(2, CAPITAL, second))
    assert found(conflicts, both) == [("error", 2)] * told
    assert found(duplicates, both) == [("error", 2)] * (not told)
    if told:
        assert f"{second!r} here and {first!r} there" in said(conflicts, both)


@tabled("language", "gold", "told")
def test_golds_that_say_nothing_are_met_by_nothing(language: str, gold: str, *, told: bool) -> None:
    """A form that a sentence without an answer meets would let wrong answers pass."""
    rows = (("?", "Reykjavik"), ("!", gold))
    asked_ = [item(i, *row, language=language) for i, row in enumerate(rows, 1)]
    some = subject(*asked_, language=language)
    assert found(loose_golds, some) == [("error", 2)] * told
    assert not found(loose_golds, subject(*some.cases, kind="judged", language=language))


def test_judged_items_may_repeat_a_question() -> None:
    """Only the same answer to the same question is a repeat; another label is a conflict."""
    first = item(1, CAPITAL, "Sofia", recorded="Sofia", label="CORRECT")
    other = item(2, CAPITAL, "Sofia", recorded="Varna", label="INCORRECT")
    again = item(3, CAPITAL, "Sofia", recorded="sofia.", label="CORRECT")
    wrong = item(4, CAPITAL, "Sofia", recorded="Sofia", label="INCORRECT")
    assert found(duplicates, subject(first, other, again, kind="judged")) == [("error", 3)]
    assert found(conflicts, subject(first, other, wrong, kind="judged")) == [("error", 4)]


def test_a_gold_in_its_question_is_a_leak() -> None:
    """Whole words are looked for, whatever their case; yes and no leak nowhere."""
    leaky = subject(item(1, "Which river is the danube?", "a river", "The Danube"))
    assert found(leaks, leaky) == [("warning", 1)]
    assert "'The Danube' stands in the question" in said(leaks, leaky)
    assert not found(leaks, subject(item(1, "Is it true?", "true"), kind="yes_no"))


@tabled("question", "gold", "language")
def test_what_is_no_leak(question: str, gold: str, language: str) -> None:
    """A question that offers the answer, and one that shares a piece of a word, are fine."""
    assert not found(leaks, subject(item(1, question, gold), language=language))


def test_ids_that_change_with_the_content_are_told_where_others_do_not(tmp_path: Path) -> None:
    """A file without any id is a choice; one row without is a slip."""
    mixed = from_file(tmp_path, "id,question,answer\na,Who?,x\n,What?,y\n")
    assert found(ids, mixed) == [("warning", 2)]
    assert not found(ids, from_file(tmp_path, "question,answer\nWho?,x\nWhat?,y\n"))


def test_ids_that_reports_replace_are_told_once(tmp_path: Path) -> None:
    """Ids that are not plain ASCII become hashes; five rows at most are named."""
    odd = from_file(tmp_path, "id,question,answer\nok,Who?,x\nид-1,What?,y\na b,When?,z\n")
    assert found(ids, odd) == [("warning", 2)]
    assert "2 of 3 ids are replaced by hashes, such as 'ид-1', 'a b'" in said(ids, odd)
    assert rows_listed(range(1, 8)) == "1, 2, 3, 4, 5 and 2 more"


@tabled("text", "told")
def test_law_before_an_amendment_is_told(text: str, *, told: bool) -> None:
    """Whoever asks today is governed by the text in force, in a question as in a context."""
    for row in (item(1, text), item(1, "May we?", context=text)):
        assert found(superseded, subject(row)) == [("warning", 1)] * told
    if told:
        assert "the question asks about superseded law: '" in said(superseded, asked(text, "en"))


@tabled("language", "question", "gold", "told")
def test_overlap_with_judged_items(language: str, question: str, gold: str, *, told: bool) -> None:
    """The same words alone, or two words of the question and the gold; languages are apart."""
    row = item(3, question, gold, language=language)
    assert found(overlap, subject(row, language=language)) == [("warning", 3)] * told


def test_the_labelled_item_is_named() -> None:
    """Whoever reads it can look at both; only what a rubric judges is compared."""
    own = subject(item(1, "What is the capital of New Zealand?", "Wellington"))
    assert "judges:en row 2" in said(overlap, own)
    assert not found(overlap, subject(*own.cases, kind="judged"))
    assert not found(overlap, subject(*own.cases, kind="yes_no"))


@tabled("text", "language", "severity")
def test_a_look_alike_letter_is_an_error(text: str, language: str, severity: str) -> None:
    """One that nobody mistakes is a warning; Greek symbols and hyphens are fine."""
    assert found(mixed_scripts, asked(text, language)) == ([(severity, 1)] if severity else [])


@pytest.mark.parametrize(
    ("text", "language", "letter"),
    [
        (f"Is t{CYRILLIC_A} a word?", "en", "U+0430 (CYRILLIC SMALL LETTER A)"),
        ("Кафpri ли е?", "bg", "U+0070 (LATIN SMALL LETTER P)"),
        ("Това тa ли е?", "bg", "U+0061 (LATIN SMALL LETTER A)"),
    ],
)
def test_the_odd_letter_is_named(text: str, language: str, letter: str) -> None:
    """The message says which letter is out of place; a tie goes to the text's own script."""
    assert letter in said(mixed_scripts, asked(text, language))


def test_golds_are_looked_at_and_recorded_answers_are_not() -> None:
    """A gold no model can match is the file's fault, a model's answer is its own."""
    word = f"S{CYRILLIC_O}fia"
    assert found(mixed_scripts, subject(item(1, "Where?", "Sofia", word))) == [("error", 1)]
    assert not found(mixed_scripts, subject(item(1, "Where?", "Sofia", recorded=word)))


@pytest.mark.parametrize("mark", ["\u200b", "\ufeff", "\u00ad", "\u202e", "\x07"])
def test_what_draws_nothing_is_an_error(mark: str) -> None:
    """Zero width, soft hyphen, bidi and control characters."""
    assert found(invisible, asked(f"What is{mark} it?", "en")) == [("error", 1)]
    assert f"U+{ord(mark):04X}" in said(invisible, asked(f"What is{mark} it?", "en"))


def test_joiners_and_pictures_are_no_error() -> None:
    """Persian writes a zero width non-joiner, a selector makes a picture; others still show."""
    assert found(invisible, asked("می\u200cخواهم", "fa")) == [("warning", 1)]
    assert not found(invisible, asked("Is ❤\ufe0f a heart?", "en"))
    assert found(invisible, asked("Is ❤\ufe0f a\u200b heart?", "en"))
    assert found(invisible, asked("\ufe0fIs it?", "en"))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Where is the town?", "bg"),
        ("Kude se namira toi?", "bg"),
        ("Къде е този град?", "en"),
    ],
)
def test_a_text_without_one_letter_of_its_script_is_an_error(text: str, code: str) -> None:
    """An untranslated question or context, or one typed in the other script."""
    passage = "The town is on the river, and it was the capital of the country."
    assert "the context" in said(other_language, asked("Ki?", "hu", context=passage))
    assert found(other_language, asked(text, code)) == [("error", 1)]
    assert not found(other_language, asked(text.split(maxsplit=1)[0], code))


@tabled("text", "code", "guess")
def test_the_language_is_guessed_by_frequent_words(text: str, code: str, guess: str) -> None:
    """A question in another language is an error where none of its words is the own language's."""
    assert found(other_language, asked(text, code)) == [("error", 1)]
    assert f"looks like {guess!r}" in said(other_language, asked(text, code))


@tabled("text", "code", "told")
def test_doubtful_texts_are_a_warning_or_left_alone(text: str, code: str, *, told: bool) -> None:
    """Shared words, titles, quotations, short texts and unknown languages are no fault."""
    assert found(other_language, asked(text, code)) == [("warning", 1)] * told


def test_every_language_entry_is_whole() -> None:
    """Frequent words are written in the language's own letters, and none is given twice."""
    for code, entry in known().items():
        letters = set("".join(entry.stops)) - {"'"}
        assert letters <= (entry.letters or letters), code
        assert entry.expected <= entry.letters, code
        assert len(entry.stops) > 60, code


def test_regions_share_a_language_and_orthographies_do_not() -> None:
    """``en-GB`` is English; Belarusian in the other orthography has no entry."""
    assert language_of("en-GB") is language_of("en")
    assert language_of("be-tarask") is None
    assert language_of("xx") is None
