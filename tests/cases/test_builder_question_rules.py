"""Rules on the question alone, and how much the question alone gives away."""

from collections.abc import Sequence

import pytest

from cases.builder.question_rules import check_questions, question_only
from cases.builder.work_folder import Item
from evaluators.core import NO, YES
from tests.support.building import make_item, question, recipe

PARAGRAPH = (
    "Вёска Лугавіны стаіць на рацэ Вуша. Школу тут адчынілі ў 1907 годзе, а праз дзесяць гадоў яна "
    "згарэла. Новы будынак паставілі толькі ў 1924 годзе побач з бібліятэкай."
)
ENGLISH = (
    "The village of Oakmere lies on the river Wend. Its school was opened in 1907 and burnt down "
    "ten years later. A new building was put up in 1924, next to the library."
)


def checked(*questions: str, language: str = "be", **changes: object) -> list[Item]:
    text = PARAGRAPH if language == "be" else ENGLISH
    items = [
        make_item(number, question=asked, paragraph=text, answer=YES, **changes)
        for number, asked in enumerate(questions)
    ]
    return check(items, language)


def check(items: Sequence[Item], language: str = "be") -> list[Item]:
    return check_questions(items, recipe(language))


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ("Ці было ў Лугавінах некалькі гадоў без школы?", ""),
        ("Хіба школа ў Лугавінах згарэла да 1910 года?", "negative"),
        ("Няўжо новую школу будавалі больш за год?", "negative"),
        ("Ці не згарэла школа ў Лугавінах да 1910 года?", "negative"),
        ("Ці немцы паставілі ў Лугавінах школу?", ""),
        ("Праўда, што Лугавіны маюць сваю бібліятэку?", ""),
        ("Калі вучань нарадзіўся ў 1919 годзе, ці мог ён вучыцца ў новай школе?", ""),
        ("Ці вядома, што ў Лугавінах ёсць дзве школы?", ""),
        ("Калі ў Лугавінах адчынілі першую школу?", "open"),
        ("Хто паставіў новы будынак школы?", "open"),
        ("У якім годзе згарэла школа ў Лугавінах?", "open"),
        ("Ці стаіць вёска на рацэ, ці каля возера?", "open"),
        ("Ці ведаеце вы, колькі гадоў працавала школа?", "open"),
        ("Ці ведаеце, колькі гадоў працавала школа?", "open"),
        ("Лугавіны стаяць на рацэ Вуша, так?", "form"),
        ("Ці было ў Лугавінах некалькі гадоў без школы", "mark"),
        ("Ці была школа? Ці згарэла яна потым?", "mark"),
        ("Ці так?", "length"),
        ("Ці " + "вельмі " * 40 + "доўга?", "length"),
        ("Ці вёска Лугавіны стаіць на рацэ Вуша?", "copied"),
        (
            "Ці праўда, што новы будынак паставілі толькі ў 1924 годзе побач з бібліятэкай?",
            "copied",
        ),
        ("Ці была в деревне школа и больница?", "letters"),
        ("Ці быў у Лугавінах зьезд настаўнікаў?", "spelling"),
        ("Is the village older than its school?", "form"),
    ],
)
def test_a_belarusian_question_is_checked(asked: str, reason: str) -> None:
    """Each fault has its reason, and a good question has none."""
    (item,) = checked(asked)
    assert item.reason == reason, item.detail
    assert (item.state == "dropped") == bool(reason)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ("Was Oakmere without a school for a few years?", ""),
        ("If a boy was born in 1919, could he attend the new school?", ""),
        ("Isn’t the library older than the new school?", "negative"),
        ("Can't the boys of Oakmere attend the new school?", "negative"),
        ("In 1919, didn't a boy attend the new school?", "negative"),
        ("Is it not so that Oakmere had no school?", "negative"),
        ("When was the first school of Oakmere opened?", "open"),
        ("In which year did the school burn down?", "open"),
        ("Can you tell how long the school stood there?", "open"),
        ("Is it a village or is it a town?", "open"),
        ("Oakmere has a library, right?", "form"),
        ("Was a new building put up in 1924, next to the library?", "copied"),
    ],
)
def test_an_english_question_is_checked_by_the_same_code(asked: str, reason: str) -> None:
    """The other language is another YAML file."""
    (item,) = checked(asked, language="en")
    assert item.reason == reason, item.detail


def test_a_repeated_question_is_dropped_once() -> None:
    """The first of two nearly equal questions stays."""
    found = checked(
        "Ці было ў Лугавінах некалькі гадоў без школы?",
        "Ці было ў Лугавінах некалькі год без школы?",
        "Ці мог вучань скончыць першую школу ў 1923 годзе?",
    )
    assert [item.reason for item in found] == ["", "repeated", ""]
    assert found[1].detail.startswith("nearly: ці было")


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


def test_items_that_were_dropped_before_are_left_alone() -> None:
    """Checking changes nothing of what an earlier step has settled."""
    item = make_item(1, state="dropped", reason="unreadable")
    assert check([item]) == [item]


def test_a_dataset_that_its_first_words_give_away_is_found_out() -> None:
    """Where every yes begins in one way, a rule that sees nothing else is nearly always right."""
    items = [
        make_item(
            number,
            question=f"{'Ці праўда' if number % 2 else 'Няўжо'}, што тут {number} хат?",
            answer=YES if number % 2 else NO,
        )
        for number in range(200)
    ]
    found = question_only(items, frozenset({"не"}))
    shares_ = found["shares"]
    assert isinstance(shares_, dict)
    assert shares_["first word"] == 1.0
    assert shares_["majority"] == 0.5
    assert found["best"] in ("first word", "first two words")


def test_a_word_of_denial_is_one_of_the_features() -> None:
    """Negated questions that are always answered no are found out."""
    items = [
        make_item(
            number,
            question=f"Ці {'не ' if number % 2 else ''}маглі там жыць {number} чалавек?",
            answer=NO if number % 2 else YES,
        )
        for number in range(100)
    ]
    assert question_only(items, frozenset({"не"}))["shares"]["word of denial"] == 1.0


def test_a_dataset_without_a_trace_is_near_its_majority() -> None:
    """Answers that have nothing to do with the question cannot be guessed from it."""
    items = [
        make_item(
            number, question=question(make_item(number).paragraph), answer=(YES, NO)[number % 2]
        )
        for number in range(300)
    ]
    assert max(question_only(items, frozenset())["shares"].values()) < 0.6
    assert question_only([], frozenset()) == {}
