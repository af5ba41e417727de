"""Rules without a model: a text's language, a question's form, what the question gives away."""

from collections.abc import Sequence
from typing import cast

import pytest

from cases.builder.recipe import SpellingRules
from cases.builder.rules import (
    check_questions,
    known_language,
    language_fault,
    question_only,
    sentences,
)
from cases.builder.work_folder import DraftItem
from evaluators.core import NO, YES, UsageError
from tests.support.building import make_item, recipe
from tests.support.building_texts import paragraph
from tests.support.tables import tabled

RUSSIAN = (
    "Снег лежал в поле до самой весны, и дети катались на санках. Появились первые проталины, но "
    "люди ещё носили тёплую одежду, потому что было холодно."
)


def reason(text: str, language: str = "be") -> str:
    return (language_fault(text, known_language(language), recipe(language).spelling) or ("", ""))[
        0
    ]


@tabled("text", "language", "expected")
def test_a_language_is_told_from_its_neighbours(text: str, language: str, expected: str) -> None:
    """Only наркамаўка passes: not Russian, Ukrainian, Latin letters or тарашкевіца.

    The same code passes English as English, and not Polish.
    """
    assert reason(text, language) == expected


OTHER_SPELLING = (
    "сьнег зьява песьня насеньне цьвік клюб плян ня эўропа газэта безь Ўладзімір бясьпека "
    "разьмеркаваць кілямэтар дакумэнт біялёгія каталёг міністар пэдагог сытуацыя энэргія Швэцыя"
)
STANDARD_WORDS = (
    "пісьменнік сядзьба просьба восьмы цьмяны барацьба пляцоўка расе дзве шэўрон метр палёг "
    "музыка сэрца пэўны возьмеш ЎСЮДЫ Сэрвач"
)


def test_one_word_in_the_other_spelling_is_noticed() -> None:
    """In a short text; a soft sign that the standard keeps is no mark of the other spelling."""
    assert reason(paragraph(3)) == ""
    for words, expected in ((OTHER_SPELLING, "spelling"), (STANDARD_WORDS, "")):
        for word in words.split():
            assert reason(f"У горадзе быў {word}, і людзі яго ведалі.") == expected, word


def test_what_a_language_is_told_by() -> None:
    """Frequent words of another language where no letter betrays it; without any, an error."""
    loose = SpellingRules()
    found, detail = language_fault(RUSSIAN, known_language("be"), loose) or ("", "")
    assert (found, "'ru'" in detail) == ("language", True)
    with pytest.raises(UsageError, match="'xx'"):
        known_language("xx")


def test_sentences_end_where_they_end() -> None:
    """Initials and short abbreviations end no sentence; a closing quotation mark belongs to one."""
    text = "Я. Колас нарадзіўся ў 1882 г. Вёска была малая. «Добра!» Потым ён паехаў."
    assert sentences(text) == [
        "Я. Колас нарадзіўся ў 1882 г. Вёска была малая.",
        "«Добра!»",
        "Потым ён паехаў.",
    ]


PARAGRAPH = (
    "Вёска Лугавіны стаіць на рацэ Вуша. Школу тут адчынілі ў 1907 годзе, а праз дзесяць гадоў яна "
    "згарэла. Новы будынак паставілі толькі ў 1924 годзе побач з бібліятэкай."
)
ENGLISH = (
    "The village of Oakmere lies on the river Wend. Its school was opened in 1907 and burnt down "
    "ten years later. A new building was put up in 1924, next to the library."
)


def checked(*questions: str, language: str = "be", **changes: object) -> list[DraftItem]:
    text = PARAGRAPH if language == "be" else ENGLISH
    items = [
        make_item(number, question=asked, paragraph=text, answer=YES, **changes)
        for number, asked in enumerate(questions)
    ]
    return check(items, language)


def check(items: Sequence[DraftItem], language: str = "be") -> list[DraftItem]:
    return check_questions(items, recipe(language))


@tabled("asked", "reason")
def test_a_question_is_checked(asked: str, reason: str) -> None:
    """Each fault has its reason, and a good question has none; English is another YAML file."""
    english = asked.startswith("en: ")
    (item,) = checked(asked.removeprefix("en: "), language="en" if english else "be")
    assert item.reason == reason, item.detail
    assert (item.state == "dropped") == bool(reason)


def test_a_repeated_question_is_dropped_once() -> None:
    """The first of two nearly equal questions stays; what was dropped before is left alone."""
    before = make_item(1, state="dropped", reason="unreadable")
    assert check([before]) == [before]
    found = checked(
        "Ці было ў Лугавінах некалькі гадоў без школы?",
        "Ці было ў Лугавінах некалькі год без школы?",
        "Ці мог вучань скончыць першую школу ў 1923 годзе?",
    )
    assert [item.reason for item in found] == ["", "repeated", ""]
    assert found[1].detail.startswith("nearly: ці было")
    assert checked(f"Ці {'вельмі ' * 42}доўга?")[0].reason == "length"


def test_a_question_about_another_text_is_noticed() -> None:
    """Swapped items are told by the words that they share with the wrong text."""
    other = "Станцыя згарэла, і Лугавіны засталіся без чыгункі."
    batch = ("be-0001", "be-0002")
    found = check(
        [
            make_item(1, question="Ці праўда, што станцыя Лугавіны згарэла?", batch=batch),
            make_item(2, paragraph=other, question="Ці ёсць там мора?", batch=batch),
        ]
    )
    assert [item.reason for item in found] == ["swapped", ""]
    assert found[0].detail.startswith("fits the text of be-0002")


@pytest.mark.parametrize(("theirs", "reason"), [("Станцыя згарэла зімой", "swapped"), ("Дом", "")])
def test_one_word_in_common_does_not_hide_a_swap(theirs: str, reason: str) -> None:
    """A question that has a word of its own text, and four of another's, is of the other text."""
    own = "Музей у Лугавінах адчынілі пазней."
    batch = ("be-0001", "be-0002")
    found = check(
        [
            make_item(1, paragraph=own, question="Ці згарэла зімой станцыя Лугавіны?", batch=batch),
            make_item(2, paragraph=f"{theirs}, а Лугавіны — не.", batch=batch, state="dropped"),
        ]
    )
    assert found[0].reason == reason


def test_a_dataset_that_its_words_give_away_is_found_out() -> None:
    """Where every yes begins in one way, or every no is negated, that rule is always right."""

    def shares(question: str, yes: str, no: str) -> dict[str, float]:
        items = [
            make_item(n, question=question.format((no, yes)[n % 2], n), answer=(NO, YES)[n % 2])
            for n in range(200)
        ]
        found = question_only(items, frozenset({"не"}))
        assert found["shares"][found["best"]] == 1.0
        return cast("dict[str, float]", found["shares"])

    first = shares("{}, што тут {} хат?", "Ці праўда", "Няўжо")
    assert (first["first word"], first["majority"]) == (1.0, 0.5)
    assert shares("Ці {}маглі там жыць {} чалавек?", "", "не ")["word of denial"] == 1.0
