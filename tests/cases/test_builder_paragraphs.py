"""Articles become clean paragraphs of bounded length in the right language and spelling."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases.builder.paragraphs import (
    bounded,
    known_language,
    language_fault,
    plain_paragraphs,
    sentences,
    wiki_paragraphs,
)
from cases.builder.recipe import ParagraphRules, SpellingRules
from evaluators.core import UsageError
from tests.support.building import recipe
from tests.support.building_texts import paragraph
from tests.support.building_texts import wikitext as markup

BOUNDS = ParagraphRules(shortest=20, longest=60, sentences=2, media=())
MEDIA = ("файл", "катэгорыя")
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
    [
        *(
            "сьнег",
            "зьява",
            "песьня",
            "насеньне",
            "цьвік",
            "клюб",
            "плян",
            "ня",
            "эўропа",
            "газэта",
        ),
        *("безь", "Ўладзімір", "бясьпека", "разьмеркаваць", "кілямэтар", "дакумэнт"),
        *("біялёгія", "каталёг", "міністар", "пэдагог", "сытуацыя", "энэргія", "Швэцыя"),
    ],
)
def test_each_mark_of_the_other_spelling_is_noticed(word: str) -> None:
    """One respelt word in a short text is enough."""
    assert reason(f"У горадзе быў {word}, і людзі яго ведалі.") == "spelling"


@pytest.mark.parametrize(
    "word",
    [
        "пісьменнік",
        "сядзьба",
        "просьба",
        "восьмы",
        "цьмяны",
        "барацьба",
        "пляцоўка",
        "расе",
        "дзве",
        *("шэўрон", "метр", "палёг", "музыка", "сэрца", "пэўны", "возьмеш", "ЎСЮДЫ", "Сэрвач"),
    ],
)
def test_standard_words_that_look_alike_pass(word: str) -> None:
    """A soft sign that the standard keeps is no mark of the other spelling."""
    assert reason(f"У горадзе быў {word}, і людзі яго ведалі.") == ""


def test_russian_without_its_own_letters_is_told_by_its_words() -> None:
    """Where no letter betrays it, frequent words of the other language do."""
    loose = SpellingRules(foreign=1.0, other_script=1.0, expected=0.0, respelt=1.0, also=None)
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


def test_markup_becomes_running_text() -> None:
    """Templates, notes, pictures, lists, tables, headings and categories leave nothing behind."""
    found = list(wiki_paragraphs(markup(7), MEDIA))
    assert found == [paragraph(7)]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("'''Мі́нск''' ({{lang|en}}) — [[горад|сталіца]].", ["Мінск — сталіца."]),
        ("Адзін.\n\n* спіс\n: водступ\n\nДва.", ["Адзін.", "Два."]),
        ("Радок.\nІншы радок.", ["Радок. Іншы радок."]),
        ("Пачатак {{ не закрыты", []),
        (
            "Тэкст ''з <ref>{{кніга}}</ref>'' [[Файл:a.jpg|thumb|[[x]] подпіс]] канец.",
            ["Тэкст з канец."],
        ),
        ("<!-- схавана --><math>x^2</math>Відаць.", ["Відаць."]),
        ("__NOTOC__", []),
    ],
)
def test_markup_case_by_case(code: str, expected: list[str]) -> None:
    """Each kind of markup is read as a reader sees it, or the paragraph is left out."""
    assert list(wiki_paragraphs(code, MEDIA)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Адзін.\n\nДва.\nі яшчэ", ["Адзін.", "Два. і яшчэ"]),
        ("Адзін.\r\nДва.", ["Адзін.", "Два."]),
        ("  \n\n ", []),
        ("Гэта [1] праўда [заўв. 2] , так ( , ) .", ["Гэта праўда, так."]),
        ("не\u00adбачны\u200b знак", ["небачны знак"]),
    ],
)
def test_plain_text_is_cut_and_cleaned(text: str, expected: list[str]) -> None:
    """Empty lines part paragraphs; without any, each line is one."""
    assert list(plain_paragraphs(text)) == expected


def test_sentences_end_where_they_end() -> None:
    """Initials and short abbreviations end no sentence; a closing quotation mark belongs to one."""
    text = "Я. Колас нарадзіўся ў 1882 г. Вёска была малая. «Добра!» Потым ён паехаў."
    assert sentences(text) == [
        "Я. Колас нарадзіўся ў 1882 г. Вёска была малая.",
        "«Добра!»",
        "Потым ён паехаў.",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Кароткі. Тэкст.", None),
        (
            "Першы сказ тут ёсць. Другі сказ таксама тут.",
            "Першы сказ тут ёсць. Другі сказ таксама тут.",
        ),
        ("Адзін даўжэйшы сказ без другога.", None),
        ("Першы сказ тут ёсць. Другі сказ абрываецца", None),
        (
            "Першы сказ тут ёсць. Другі сказ таксама тут. Трэці ўжо не змяшчаецца ў мяжу.",
            "Першы сказ тут ёсць. Другі сказ таксама тут.",
        ),
    ],
)
def test_paragraphs_are_bounded(text: str, expected: str | None) -> None:
    """Too short is left out, too long is cut after a whole sentence."""
    assert bounded(text, BOUNDS) == expected


@settings(deadline=None)
@given(st.text(alphabet=st.characters(), max_size=300))
def test_a_bounded_paragraph_is_within_its_bounds(text: str) -> None:
    """Whatever a text holds, what is taken of it has the length asked for and is in UTF-8."""
    for one in plain_paragraphs(text):
        one.encode("utf-8")
        cut = bounded(one, BOUNDS)
        assert cut is None or (20 <= len(cut) <= 60 and one.startswith(cut))
