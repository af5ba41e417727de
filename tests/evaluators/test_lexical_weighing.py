"""The lexical judge on golds that an answer weighs against another candidate."""

from collections.abc import Mapping

import pytest

from evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, Case, Verdict
from evaluators.judges.lexical.lexical_judge import grade

TOWNS: Mapping[str, tuple[str, str]] = {
    "en": ("Sofia", "What is the capital of Bulgaria?"),
    "bg": ("София", "Коя е столицата на България?"),
    "pl": ("Warszawa", "Jaka jest stolica Polski?"),
    "hu": ("Budapest", "Mi Magyarország fővárosa?"),
    "be": ("Мінск", "Якая сталіца Беларусі?"),
    "cs": ("Praha", "Jaké je hlavní město Česka?"),
}


def judged(gold: str, answer: str, question: str, language: str) -> Verdict:
    item = Case(id="x", dataset="d", language=language, row=1, question=question, golds=(gold,))
    return grade(item, answer)


def town(language: str, answer: str) -> Verdict:
    gold, question = TOWNS[language]
    return judged(gold, answer, question, language)


SIDES = {
    "en": "Some people say that it is Sofia, others name Plovdiv, who knows",
    "bg": "Някои казват, че е София, други посочват Пловдив, кой знае",
    "pl": "Jedni mówią, że Kraków, inni, że Warszawa, kto wie.",
    "hu": "Egyesek szerint Budapest, mások szerint Debrecen, ki tudja.",
    "be": "Адны кажуць, што Мінск, другія — што Полацк, хто ведае.",
    "cs": "Někdo říká Praha, jiný Brno, kdo ví.",
}


@pytest.mark.parametrize("language", SIDES)
def test_what_some_say_and_others_deny_is_no_answer(language: str) -> None:
    """A gold that only one of two sides names is NOT_ATTEMPTED, whichever side it is."""
    found = town(language, SIDES[language])
    assert (found.grade, found.sure) == (NOT_ATTEMPTED, False)


def test_an_opinion_with_one_side_or_a_last_word_stands() -> None:
    """Sides count only where another candidate stands in one, and only up to the answer's own."""
    assert town("en", "Some say Varna, others Plovdiv. It is Sofia.").grade == CORRECT
    assert town("en", "Some say Varna, others Plovdiv, but it is Sofia.").grade == CORRECT
    assert town("en", "Others live there too, but some say Sofia.").grade == CORRECT
    assert town("en", "Sofia, although some people and others forget it.").grade == CORRECT


FORMER = {
    "en": "It was Sofia once, then it became Plovdiv.",
    "bg": "Някога беше София, а после стана Пловдив.",
    "pl": "Dawniej była to Warszawa, później stał się nią Kraków.",
    "hu": "Régen Budapest volt, aztán Debrecen lett.",
    "be": "Калісьці быў Мінск, потым стаў Полацк.",
    "cs": "Kdysi to byla Praha, pak se jím stalo Brno.",
}
LATER = {
    "en": "It was Plovdiv once, then it became Sofia.",
    "bg": "Някога беше Пловдив, а после стана София.",
    "pl": "Dawniej był to Kraków, później stała się nią Warszawa.",
    "hu": "Régen Pozsony volt, aztán Budapest lett.",
    "be": "Калісьці быў Полацк, потым стаў Мінск.",
    "cs": "Kdysi to bylo Brno, pak se jím stala Praha.",
}


@pytest.mark.parametrize("language", FORMER)
def test_what_was_once_is_not_what_is(language: str) -> None:
    """A gold that gives way to another is INCORRECT; one that takes over is right, not surely."""
    assert town(language, FORMER[language]).grade == INCORRECT
    found = town(language, LATER[language])
    assert (found.grade, found.sure) == (CORRECT, False)


MISTAKEN = {
    "en": "It is often wrongly said to be Sofia; it is Plovdiv.",
    "bg": "Погрешно се сочи София, но е Пловдив.",
    "pl": "Mylnie podaje się Warszawę, a jest to Kraków.",
    "hu": "Tévesen Budapest szokott szerepelni, pedig Debrecen az.",
    "be": "Памылкова называюць Мінск, але гэта Полацк.",
    "cs": "Mylně se uvádí Praha, ale je to Brno.",
}


@pytest.mark.parametrize("language", MISTAKEN)
def test_what_is_said_in_error_is_denied(language: str) -> None:
    """A gold that the answer calls an error, with another after it, is INCORRECT."""
    assert town(language, MISTAKEN[language]).grade == INCORRECT


THOUGHT = {
    "en": "Many people think that it is Sofia. In fact it is Plovdiv.",
    "bg": "Мнозина мислят, че е София, но всъщност е Пловдив.",
    "pl": "Wiele osób myśli, że to Warszawa, a w rzeczywistości jest to Kraków.",
    "hu": "Sokan azt hiszik, hogy Budapest, valójában azonban Debrecen.",
    "be": "Многія лічаць, што гэта Мінск, але насамрэч гэта Полацк.",
    "cs": "Mnoho lidí si myslí, že Praha, ve skutečnosti je to Brno.",
}


@pytest.mark.parametrize("language", THOUGHT)
def test_what_many_think_is_not_what_is(language: str) -> None:
    """A gold in a clause that tells what others think gives way to what the answer says."""
    assert town(language, THOUGHT[language]).grade == INCORRECT


def test_a_unit_may_be_a_word() -> None:
    """A currency's bare name is looked for as a word, without a figure."""
    asked = "What is the currency of Croatia?"
    assert judged("euro", "It used to be the kuna; today it is the euro.", asked, "en").grade == (
        CORRECT
    )


def test_a_question_about_the_past_may_have_the_past_as_its_answer() -> None:
    """What was once so is right where the question asks for it, or where nothing follows it."""
    answer = "It was formerly Bombay, today it is Mumbai."
    asked = "What was Mumbai formerly called?"
    assert judged("Bombay", answer, asked, "en").grade == CORRECT
    assert town("en", "It was Sofia once, and now it still is.").grade == CORRECT
    assert town("en", "It was once Sofia, the town of Saint Wisdom.").grade == CORRECT


def test_a_candidate_that_is_passed_over_is_denied() -> None:
    """ "Rather than" before the gold denies it; "not X but" before it does not."""
    assert town("en", "Plovdiv rather than Sofia.").grade == INCORRECT
    assert town("bg", "Пловдив вместо София.").grade == INCORRECT
    assert town("pl", "Zamiast pięknej Warszawy wskazuję Kraków.").grade == INCORRECT
    assert town("en", "Not Plovdiv but Sofia.").grade == CORRECT
    assert town("en", "Sofia rather than Plovdiv.").grade == CORRECT


UNSURE = {
    "an earlier answer": "Gallium. Sofia is a town.",
    "a comparison": "Varna is larger than Sofia.",
    "a predecessor": "Sofia, which was replaced by Varna in the end.",
    "no longer": "Sofia is no longer that; Plovdiv is.",
}


@pytest.mark.parametrize("answer", UNSURE.values(), ids=UNSURE)
def test_a_gold_weighed_against_another_is_never_surely_right(answer: str) -> None:
    """What the rules cannot weigh, they leave to a model."""
    assert not town("en", answer).sure


def test_a_full_name_in_a_brief_answer_is_surely_right() -> None:
    """Given and family name settle a brief answer; a long one is left to a model."""
    asked, gold = "Who wrote it?", "William Sydney Porter"
    assert judged(gold, "William Porter wrote it.", asked, "en").sure
    assert not judged(gold, "William Porter wrote it" + " zyxwv abcde" * 9, asked, "en").sure


DAYS: Mapping[str, tuple[str, str]] = {
    "en": ("21 March 1878", "on the twenty-first of March 1878"),
    "bg": ("3 март 1878 г.", "На трети март 1878 г."),
    "pl": ("21 sierpnia 1944", "Dwudziestego pierwszego sierpnia 1944 roku."),
    "be": ("15 ліпеня 1410 года", "Пятнаццатага ліпеня 1410 года"),
    "cs": ("28. října 1918", "dvacátého osmého října 1918"),
}


@pytest.mark.parametrize("language", DAYS)
def test_a_day_in_words_is_a_day(language: str) -> None:
    """Ordinals beside a month are its day, tens and ones put together; another day is wrong."""
    gold, answer = DAYS[language]
    assert judged(gold, answer, "?", language).grade == CORRECT
    assert judged(gold.replace("1", "2").replace("8", "9"), answer, "?", language).grade != CORRECT


def test_a_bulgarian_day_is_put_together_over_its_joiner() -> None:
    """ "Двадесет и първи" is 21, and "двадесети" alone is 20."""
    assert judged("21 май 1999", "двадесет и първи май 1999", "?", "bg").grade == CORRECT
    assert judged("21 май 1999", "двадесети май 1999", "?", "bg").grade != CORRECT


SPELT = {"Якуб Колас": "Jakub Kołas", "Янка Купала": "Janka Kupała", "Васіль Быкаў": "Vasil Bykaŭ"}


@pytest.mark.parametrize("name", SPELT)
def test_belarusian_names_may_stand_in_latin_letters(name: str) -> None:
    """Łacinka's j and ŭ are read as й and ў; another poet's name stays another."""
    assert judged(name, SPELT[name], "Хто напісаў?", "be").grade == CORRECT
    others = [latin for other, latin in SPELT.items() if other != name]
    assert all(judged(name, latin, "Хто напісаў?", "be").grade != CORRECT for latin in others)
