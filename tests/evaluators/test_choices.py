"""Reading which option an answer chooses: one option, or Invalid."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from qagate.evaluators.core import NO, YES
from qagate.evaluators.option_letters import letters_of, place_of
from qagate.evaluators.replies.choices import (
    AnswerOption,
    lettered,
    read_choice,
    read_order,
    yes_or_no,
)
from qagate.evaluators.replies.readers import Invalid
from tests.support.tables import grown, tabled

CITIES = ("Plovdiv", "Sofia", "Varna", "Sofia and Varna")
ENGLISH = lettered(CITIES, "en")
BULGARIAN = lettered(("Пловдив", "София", "Варна", "Русе"), "bg")
NUMBERED = tuple(
    AnswerOption(label=str(number), text=text, letter=str(number))
    for number, text in enumerate(("Eger", "Vác", "Pécs", "Győr"), start=1)
)
TEXTS = st.lists(
    st.text(alphabet="abcdeЖ -1,", min_size=1, max_size=6).filter(
        lambda text: any(sign.isalnum() for sign in text)
    ),
    min_size=2,
    max_size=5,
    unique_by=lambda text: " ".join(text.casefold().split()).strip(".,;:!? "),
)
LETTERS_ALONE = st.sampled_from("ABCDE")


def label_or_none(label: str | Invalid) -> str | None:
    return None if isinstance(label, Invalid) else label


@tabled("text", "label")
def test_a_statement_that_is_one_option_is_the_choice(text: str, label: str) -> None:
    assert read_choice(text, ENGLISH) == label


@tabled("text")
def test_no_or_several_options_are_no_choice(text: str) -> None:
    assert isinstance(read_choice(text, ENGLISH), Invalid)


@tabled("text", "label")
def test_cyrillic_options_are_chosen_by_their_letters(
    text: str, label: str | None
) -> None:
    """A letter of another script counts if its look and its place name no two options."""
    assert label_or_none(read_choice(text, BULGARIAN)) == label


@tabled("text", "label")
def test_an_announcement_is_known_in_every_language(text: str, label: str) -> None:
    assert read_choice(text, ENGLISH) == label


@tabled("text", "label")
def test_an_approval_may_follow_the_choice(text: str, label: str) -> None:
    assert read_choice(text, ENGLISH) == label


@tabled("text")
def test_what_only_sounds_like_an_approval_is_no_choice(text: str) -> None:
    assert isinstance(read_choice(text, ENGLISH), Invalid)


def test_words_without_letters_are_not_approved() -> None:
    """Here the approval is of the question: "No that is right" means yes, or no."""
    options = yes_or_no("Yes", "No")
    assert isinstance(read_choice("No that is right", options), Invalid)


def test_a_minus_and_decimals_belong_to_an_option() -> None:
    options = lettered(("5", "-5", "5.5"), "en")
    assert read_choice("-5", options) == "B"
    assert read_choice("5.5", options) == "C"
    assert read_choice("5", options) == "A"
    assert isinstance(read_choice("50", options), Invalid)


def test_an_option_that_looks_like_a_letter_leaves_doubt() -> None:
    options = lettered(("B", "A", "0"), "en")
    assert isinstance(read_choice("B", options), Invalid)
    assert read_choice("0", options) == "C"


@tabled("text", "order")
def test_an_order_names_every_option_once(text: str, order: str | None) -> None:
    assert label_or_none(read_order(text, NUMBERED)) == order


def test_an_order_of_letters_and_texts_is_read() -> None:
    assert read_order("The order is C, A, D and B.", ENGLISH) == "CADB"
    assert read_order("C) Varna > A > D > B", ENGLISH) == "CADB"
    assert isinstance(read_order("CADB\nBDAC", ENGLISH), Invalid)


@tabled("text", "answer")
def test_yes_or_no_is_the_label_alone_or_before_a_sign(
    text: str, answer: str | None
) -> None:
    """Words that only begin like a label, look-alikes and both labels are no answer."""
    assert label_or_none(read_choice(grown(text), yes_or_no("Так", "Не"))) == answer


@tabled("text", "yes", "no", "answer")
def test_yes_and_no_in_every_language(
    text: str, yes: str, no: str, answer: str | None
) -> None:
    """The slice gives the words; ``Answer: Yes`` is a yes (R11), nothing else of a sentence is."""
    assert label_or_none(read_choice(text, yes_or_no(yes, no))) == answer


@given(
    st.text(max_size=80) | st.text(alphabet="ABCАВС yesno \"'()[]:.,\n>`-", max_size=60)
)
def test_no_text_raises(text: str) -> None:
    assert label_or_none(read_choice(text, ENGLISH)) in (None, *"ABCD")
    assert label_or_none(read_choice(text, yes_or_no("Yes", "No"))) in (None, YES, NO)
    order = label_or_none(read_order(text, ENGLISH))
    assert order is None or sorted(order) == list("ABCD")


@given(TEXTS, st.data())
def test_the_order_of_options_never_changes_which_one_a_text_chooses(
    texts: list[str], data: st.DataObject
) -> None:
    """What an answer chooses depends on the texts, not on the letters they happen to have."""
    chosen = data.draw(st.sampled_from(texts))
    shuffled = data.draw(st.permutations(texts))
    answer = data.draw(st.sampled_from(["{}", "{}.", "**{}**", "The answer is: {}"]))
    texts_chosen = set()
    for order in (texts, shuffled):
        label = label_or_none(read_choice(answer.format(chosen), lettered(order, "en")))
        texts_chosen.add(None if label is None else order["ABCDE".index(label)])
    assert texts_chosen in ({chosen}, {None}, {chosen, None})


@given(
    st.permutations(CITIES[:3]),
    st.sampled_from(["{} {}", "{}. {}", "{}\n{}", "Not {}. {}", "{} or {}", "{}, {}"]),
    st.sampled_from(
        ["{}", "Answer: {}", "{}!", "**{}**", "({})", "I choose {}, because"]
    ),
    st.booleans(),
    st.booleans(),
)
def test_no_reply_that_names_two_options_is_a_choice(
    order: list[str], joint: str, form: str, first_by_letter: bool, last_by_letter: bool
) -> None:
    # "A Answer: B" cannot be told from Hungarian, in which A is the article.
    assume(not (joint == "{} {}" and form == "Answer: {}" and first_by_letter))
    options = lettered(order, "en")
    first = options[0].letter if first_by_letter else options[0].text
    last = options[1].letter if last_by_letter else options[1].text
    reply = joint.format(first, form.format(last))
    assert isinstance(read_choice(reply, options), Invalid)


@given(st.sampled_from(["en", "bg", "be", "pl", "hu"]), st.integers(2, 10))
def test_every_letter_that_is_shown_is_read(language: str, count: int) -> None:
    options = lettered([f"town {number:02}" for number in range(count)], language)
    for option in options:
        for reply in (
            option.letter,
            f"({option.letter})",
            f"{option.letter}. {option.text}",
        ):
            assert read_choice(reply, options) == option.label


def test_letters_have_their_places() -> None:
    assert [place_of(letter) for letter in "AJАБГ"] == [0, 9, 0, 1, 3]
    assert place_of("a") is None
    assert place_of("CADB") is None
    assert letters_of("pl") == letters_of("en") != letters_of("bg")


@pytest.mark.parametrize("language", ["bg", "be", "en"])
def test_an_alphabet_names_no_letter_twice(language: str) -> None:
    assert len(set(letters_of(language))) == 10


@given(LETTERS_ALONE, LETTERS_ALONE)
def test_a_letter_is_read_whatever_the_place(first: str, second: str) -> None:
    """No letter is easier to read than another: position bias would be the reader's."""
    assume(first != second)
    options = lettered([f"town {letter}{letter}" for letter in "ABCDE"], "en")
    for form in (
        "{}",
        "{})",
        "Answer: {}",
        "{} because it lies south",
        "The answer is {}.",
    ):
        assert read_choice(form.format(first), options) == first
        assert read_choice(form.format(second), options) == second
