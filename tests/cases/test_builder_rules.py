"""Rules without a model: a text's language, a question's form, what the question gives away."""

from collections.abc import Sequence

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
from tests.support.building import make_item, question, recipe
from tests.support.building_texts import listed, paragraph

STANDARD = (
    "Снег ляжаў у полі да самай вясны, і дзеці каталіся на санках. З’явіліся першыя праталіны, "
    "але людзі яшчэ насілі цёплае адзенне. У класе план заняткаў вісеў каля дзвярэй."
)
TARASHKIEVICA = (
    "Сьнег ляжаў у полі да самай вясны, і дзеці каталіся на санках. Зьявіліся першыя праталіны, "
    "але людзі яшчэ насілі цёплае адзеньне. У клясе плян заняткаў вісеў каля дзьвярэй."
)
RUSSIAN = (
    "Снег лежал в поле до самой весны, и дети катались на санках. Появились первые проталины, но "
    "люди ещё носили тёплую одежду, потому что было холодно."
)
UKRAINIAN = (
    "Сніг лежав у полі до самої весни, і діти каталися на санчатах. З’явилися перші проталини, але "
    "люди ще носили теплий одяг, бо було холодно, і його не ховали."
)
LATIN = (
    "Śnieh lažaŭ u poli da samaj viasny, i dzieci katalisia na sankach. Pieršyja pratalini "
    "zjavilisia tolki ŭ krasaviku, ale ludzi jašče nasili ciopłaje adzieńnie."
)


def reason(text: str, language: str = "be") -> str:
    return (language_fault(text, known_language(language), recipe(language).spelling) or ("", ""))[
        0
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (STANDARD, ""),
        (TARASHKIEVICA, "spelling"),
        (RUSSIAN, "letters"),
        (UKRAINIAN, "letters"),
        (LATIN, "script"),
        ("2026, 17 — 45!", "script"),
        (paragraph(3), ""),
    ],
)
def test_belarusian_is_told_from_its_neighbours(text: str, expected: str) -> None:
    """Only наркамаўка passes: not Russian, Ukrainian, Latin letters or тарашкевіца."""
    assert reason(text) == expected


@pytest.mark.parametrize(
    "word",
    listed(
        "сьнег зьява песьня насеньне цьвік клюб плян ня эўропа газэта безь Ўладзімір бясьпека "
        "разьмеркаваць кілямэтар дакумэнт біялёгія каталёг міністар пэдагог сытуацыя энэргія "
        "Швэцыя"
    ),
)
def test_each_mark_of_the_other_spelling_is_noticed(word: str) -> None:
    """One respelt word in a short text is enough."""
    assert reason(f"У горадзе быў {word}, і людзі яго ведалі.") == "spelling"


@pytest.mark.parametrize(
    "word",
    listed(
        "пісьменнік сядзьба просьба восьмы цьмяны барацьба пляцоўка расе дзве шэўрон метр "
        "палёг музыка сэрца пэўны возьмеш ЎСЮДЫ Сэрвач"
    ),
)
def test_standard_words_that_look_alike_pass(word: str) -> None:
    """A soft sign that the standard keeps is no mark of the other spelling."""
    assert reason(f"У горадзе быў {word}, і людзі яго ведалі.") == ""


def test_russian_without_its_own_letters_is_told_by_its_words() -> None:
    """Where no letter betrays it, frequent words of the other language do."""
    loose = SpellingRules()
    found, detail = language_fault(RUSSIAN, known_language("be"), loose) or ("", "")
    assert (found, "'ru'" in detail) == ("language", True)


def test_english_is_checked_by_the_same_code() -> None:
    """English passes as English, and Polish does not."""
    assert (
        reason("The bridge was built in 1910 and it is still used by the people of the town.", "en")
        == ""
    )
    polish = (
        "Most został zbudowany w 1910 roku i nadal jest używany przez mieszkańców, ale nie tylko."
    )
    assert reason(polish, "en") == "language"


def test_a_language_that_nothing_is_known_of_is_refused() -> None:
    """Without an alphabet and words no text could be judged."""
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
