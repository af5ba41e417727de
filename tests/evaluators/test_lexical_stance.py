"""The lexical judge on what an answer stands by: refusals, changes of mind, lists, candidates."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, Case
from evaluators.judges.lexical.answer_analysis import analyse, last_word, refusals
from evaluators.judges.lexical.folding import read
from evaluators.judges.lexical.language_tables import tables
from evaluators.judges.lexical.lexical_judge import grade

LANGUAGES = ("en", "bg", "pl", "hu", "be", "cs")


def graded(*golds: str, answer: str, language: str = "en", question: str = "What is it?") -> str:
    item = Case(id="x", dataset="d", language=language, row=1, question=question, golds=golds)
    return str(grade(item, answer).grade)


REFUSALS: Mapping[str, tuple[str, ...]] = {
    "en": ("I'm not able to give a name.", "Sorry, it escapes me.", "I can't recall the year.",
           "I really couldn't say.", "I am not sure."),
    "bg": ("Затруднявам се да отговоря.", "Не мога да кажа със сигурност.", "Вече не помня.",
           "Нямам сигурни данни.", "Не съм сигурна."),
    "pl": ("Nie potrafię odpowiedzieć.", "Nie pamiętam dokładnej daty.", "Trudno mi zgadnąć.",
           "Nie mam pewnych informacji.", "Waham się między dwoma."),
    "hu": ("Sajnos nem jut eszembe.", "Ezt nem tudom megmondani.", "Nem emlékszem rá.",
           "Nincs pontos adatom.", "Nem vagyok biztos benne."),
    "be": ("Не магу прыгадаць.", "Дакладнай даты не памятаю.", "Цяжка сказаць.",
           "Не маю пэўных звестак.", "Я не ўпэўнены."),
    "cs": ("Nevzpomínám si.", "Nemám o tom žádné údaje.", "Těžko říct.",
           "Není mi to známo.", "Nejsem si jistá."),
}  # fmt: skip


@pytest.mark.parametrize(
    ("language", "answer"),
    [(language, answer) for language, answers in REFUSALS.items() for answer in answers],
)
def test_refusals_are_no_attempt(language: str, answer: str) -> None:
    """Denied ability, knowledge or memory, and mere doubt, are NOT_ATTEMPTED in every language."""
    assert graded("Paris", answer=answer, language=language) == NOT_ATTEMPTED


def test_a_denial_about_others_is_no_refusal() -> None:
    """ "He could not recall" tells of somebody else; the answer beside it is an attempt."""
    text = read("He could not at that time recall it")
    assert refusals(text, tables("en")) == []
    assert refusals(read("I do not. Recall it"), tables("en")) == []


OFFERED: Mapping[str, tuple[str, str, str]] = {
    "en": ("Paris", "I'm not sure, but I think it's London.", "Not sure; London."),
    "bg": ("Варна", "Не съм сигурен, но мисля, че е Пловдив.", "Пловдив, но не съм сигурен."),
    "pl": ("Kraków", "Nie jestem pewien, ale chyba Gdynia.", "Nie wiem, ale myślę, że Gdynia."),
    "hu": ("Pécs", "Nem vagyok biztos, de szerintem Eger.", "Nem tudom, de talán Eger."),
    "be": ("Мінск", "Не ўпэўнены, але думаю, што Гомель.", "Не ведаю, але, здаецца, Гомель."),
    "cs": ("Praha", "Nejsem si jistý, ale asi Brno.", "Nevím, ale myslím Brno."),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_doubtful_wrong_answer_is_wrong(language: str) -> None:
    """What is offered in spite of doubt or ignorance is graded."""
    gold, *answers = OFFERED[language]
    for answer in answers:
        assert graded(gold, answer=answer, language=language) == INCORRECT, answer


@pytest.mark.parametrize(
    ("gold", "answer", "wanted"),
    [
        ("1889", "Not sure, maybe 1890.", INCORRECT),
        ("1889", "Not sure, it was perhaps long ago.", NOT_ATTEMPTED),
        ("nitrogen", "Not sure, maybe oxygen", INCORRECT),
        ("Paris", "I don't know. Perhaps it stands in a good book somewhere.", NOT_ATTEMPTED),
    ],
)
def test_an_offer_is_of_the_gold_s_kind(gold: str, answer: str, wanted: str) -> None:
    """A figure is offered for a figure, a name for a name; other words beside doubt are talk."""
    assert graded(gold, answer=answer) == wanted


TURNS: Mapping[str, tuple[str, str, str]] = {
    "en": ("{}. On second thoughts, no: it is {}.", "Saturn", "Jupiter"),
    "bg": ("{}. Не, всъщност е {}.", "Пловдив", "Варна"),
    "pl": ("{}, a właściwie nie, to {}", "Adam Nowak", "Jan Kowalski"),
    "hu": ("{}, pontosabban mégsem ő, hanem {}.", "Kiss János", "Nagy Péter"),
    "be": ("{}, не, насамрэч гэта {}", "Янка Купала", "Якуб Колас"),
    "cs": ("{}, vlastně ne, je to {}", "Brno", "Praha"),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_last_position_counts(language: str) -> None:
    """Of two candidates with a change of mind between them, only the second is the answer."""
    text, first, second = TURNS[language]
    answer = text.format(first, second)
    assert graded(first, answer=answer, language=language) == INCORRECT
    assert graded(second, answer=answer, language=language) == CORRECT


@pytest.mark.parametrize(
    ("gold", "answer", "wanted"),
    [
        ("Vienna", "My teacher always said Salzburg, but I'm going with Vienna.", CORRECT),
        ("Salzburg", "My teacher always said Salzburg, but I'm going with Vienna.", INCORRECT),
        ("Vienna", "Vienna. I'll go with that.", CORRECT),
        ("No", "In short, no, it does not.", CORRECT),
        ("Paris", "Paris. Scrap that, I cannot tell.", NOT_ATTEMPTED),
        ("Paris", "Scrap that: Paris", CORRECT),
        ("Paris", "Paris, no. 2 is London", CORRECT),
    ],
)
def test_choices_and_withdrawals(gold: str, answer: str, wanted: str) -> None:
    """A chosen candidate is the answer, a withdrawn one is not; a gold "no" withdraws nothing."""
    assert graded(gold, answer=answer) == wanted


@given(st.text(max_size=60), st.sampled_from(LANGUAGES))
def test_the_last_word_is_an_end_of_the_text(text: str, language: str) -> None:
    """Whatever the text, what is kept is its end, and never nothing of something."""
    said = read(text)
    kept = last_word(said, tables(language), frozenset())
    assert said.words[len(said.words) - len(kept.words) :] == kept.words
    assert bool(kept.words) is bool(said.words)


LISTS: Mapping[str, tuple[str, str]] = {
    "en": ("Spain", "Portugal, Spain and France"),
    "bg": ("Испания", "Испания и Франция"),
    "pl": ("Hiszpania", "Francja oraz Hiszpania"),
    "hu": ("Spanyolország", "Spanyolország és Franciaország"),
    "be": ("Іспанія", "Іспанія і Францыя"),
    "cs": ("Španělsko", "Španělsko a Francie"),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_wrong_item_beside_the_gold(language: str) -> None:
    """A second name, joined to the gold by "and", makes the answer wrong in every language."""
    gold, answer = LISTS[language]
    assert graded(gold, answer=answer, language=language) == INCORRECT


@pytest.mark.parametrize(
    ("golds", "answer", "wanted"),
    [
        (("Malia and Sasha",), "Malia, Sasha and Tom", INCORRECT),
        (("carbon",), "carbon and oxygen", INCORRECT),
        (("carbon",), "carbon and all other things alike", CORRECT),
        (("Paris",), "Paris, the capital of France", CORRECT),
        (("Paris",), "Paris (France)", CORRECT),
        (("Paris",), "Paris and its suburbs", CORRECT),
        (("Marie Curie",), "Marie Curie, a Polish and French physicist", CORRECT),
        (("Spain",), "The country is Spain and the capital is Madrid.", CORRECT),
        (("Lodi", "Ripon"), "Lodi and Tracy", CORRECT),
        (("Paris",), "Rather London, though it could also be Paris", INCORRECT),
        (("Paris",), "It could also be Paris", CORRECT),
    ],
)
def test_side_information_is_no_second_answer(
    golds: tuple[str, ...], answer: str, wanted: str
) -> None:
    """Only what stands on the gold's own level counts against it; golds may be a set themselves."""
    assert graded(*golds, answer=answer) == wanted


CANDIDATES: Mapping[str, tuple[str, str]] = {
    "en": ("Paris", "{} or London"),
    "bg": ("Париж", "{} или Лондон"),
    "pl": ("Paryż", "{} albo Londyn"),
    "hu": ("Párizs", "{} vagy London"),
    "be": ("Парыж", "{} або Лондан"),
    "cs": ("Paříž", "{} nebo Londýn"),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_two_candidates_without_a_choice(language: str) -> None:
    """The answer settles on nothing, whether or not one of its candidates is right."""
    gold, text = CANDIDATES[language]
    other = {"bg": "Рим", "be": "Рым"}.get(language, "Madrid")
    assert graded(gold, answer=text.format(gold), language=language) == NOT_ATTEMPTED
    assert graded(gold, answer=text.format(other), language=language) == NOT_ATTEMPTED


@pytest.mark.parametrize(
    ("gold", "answer", "wanted"),
    [
        ("Jupiter", "Mercury, Venus, Earth, Mars, Jupiter, Saturn or Uranus", NOT_ATTEMPTED),
        ("hydrogen", "hydrogen or helium, I don't know which", NOT_ATTEMPTED),
        ("hydrogen", "hydrogen or protium", CORRECT),
        ("Paris", "London or so I heard it told", INCORRECT),
    ],
)
def test_candidates_of_other_shapes(gold: str, answer: str, wanted: str) -> None:
    """Common nouns may be synonyms, unless the answer says that it cannot choose."""
    assert graded(gold, answer=answer) == wanted


@pytest.mark.parametrize(
    ("gold", "answer", "question", "language", "wanted"),
    [
        ("Jan Nowak", "Ale to chyba Nowak.", "Kto to?", "pl", CORRECT),
        ("Hyde Park", "Park", "Whose name?", "en", INCORRECT),
        ("RMS Titanic", "SS Titanic", "What is the full name of the Titanic?", "en", INCORRECT),
        ("Richard Nixon", "I think Nixon", "Which president?", "en", CORRECT),
        ("Arany János", "szerintem Arany", "Ki írta?", "hu", CORRECT),
        ("Arany János", "János", "Ki írta?", "hu", INCORRECT),
        ("Nemes Jeles László", "László Nemes", "Ki rendezte?", "hu", CORRECT),
        ("the ARPANET project", "ARPANET", "What was it?", "en", CORRECT),
        ("India and Pakistan Border", "India-Pakistan border: the Radcliffe Line",
         "What is the name of the India Pakistan border?", "en", INCORRECT),
    ],
)  # fmt: skip
def test_a_family_name_is_no_common_word(
    gold: str, answer: str, question: str, language: str, wanted: str
) -> None:
    """A family name alone is enough, in the language's order; a word like "park" is none."""
    assert graded(gold, answer=answer, question=question, language=language) == wanted


@pytest.mark.parametrize("answer", ["1878 márciusában", "1878. március", "1878"])
def test_a_month_is_no_day(answer: str) -> None:
    """An inflected month with a year is a date, and coarser than a day."""
    assert graded("1878. március 3.", answer=answer, language="hu") == INCORRECT


def test_capitals_of_later_sentences_do_not_make_names() -> None:
    """A word counts as a name where it has a capital of its own, not that of a sentence."""
    item = Case(id="x", dataset="d", language="en", row=1, question="?", golds=("x",))
    assert analyse(item, "Paris is it. Later «London» was.").capitals == {"paris", "london"}
