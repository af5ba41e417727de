"""The reader of answers: what it takes out of a reply, and what it says the reply is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.evaluators.answers.reader import Asked, read_reply, read_text
from qagate.evaluators.answers.refusals import is_bare_refusal
from qagate.evaluators.answers.states import BREAK, is_echo, is_empty, is_repetition
from qagate.evaluators.core import Reply, ToolCall
from qagate.evaluators.finishes import FILTERED, INCOMPLETE, LENGTH, THOUGHT
from qagate.evaluators.replies.chat_tokens import without_chat_tokens
from qagate.evaluators.replies.thoughts import outside_thoughts
from tests.support.tables import tabled

QUESTION = "In which year did the painter of the large blue altar in Varna die?"
PROMPT = f"Question: {QUESTION}\nAnswer in English, in one short sentence."
ASKED = Asked(question=QUESTION, texts=(QUESTION, PROMPT), golds=("1911", "in 1911"))

HOSTILE = st.lists(
    st.sampled_from(
        [
            "<think>",
            "</think>",
            "<THINKING>",
            "</thinking ",
            "<thi",
            "nk>",
            ">",
            "<",
            "[THINK]",
            "[/THINK]",
            "◁think▷",
            "◁/think▷",
            "<|channel|>analysis<|message|>",
            "<|channel|>final<|message|>",
            "<|begin_of_thought|>",
            "<|end_of_thought|>",
            "<|START_THINKING|>",
            "<|END_THINKING|>",
            "<|inner_prefix|>",
            "<|im_start|>assistant",
            "<|im_start|>user",
            "<|im_end|>",
            "<|im_",
            "end|>",
            "<end_of_turn>",
            "<start_of_turn>model",
            "<｜Assistant｜>",
            "</s>",
            "<s>",
            "[INST]",
            "Sofia",
            "no ",
            " ",
            "\n",
            "\u200b",
        ]
    ),
    max_size=14,
).map("".join)
"""Texts of whole and broken marks."""


# Thoughts


@pytest.mark.parametrize(
    "reply",
    [
        "<think>Rome?</think>Sofia",
        "<think>\nRome?\n</think>\n\nSofia",
        "<THINKING>Rome?</THINKING>Sofia",
        '<think budget="3">Rome?</think>Sofia',
        "<thought>Rome <thought>or</thought> Oslo?</thought>Sofia",
        "<reasoning>Rome?</reasoning> Sofia",
        "<seed:think>Rome?</seed:think>Sofia",
        "Rome?</think>Sofia",
        "[THINK]Rome?[/THINK]Sofia",
        "◁think▷Rome?◁/think▷Sofia",
        "<|begin_of_thought|>Rome?<|end_of_thought|>Sofia",
        "<|START_THINKING|>Rome?<|END_THINKING|><|START_RESPONSE|>Sofia<|END_RESPONSE|>",
        "<|inner_prefix|>Rome?<|inner_suffix|>Sofia",
        "<think>Rome?<think>Oslo?</think>Sofia",
        "<think>Rome?\n<think>Oslo?</think>\n</think>Sofia",
        "<|channel|>analysis<|message|>Rome?<|end|><|start|>assistant"
        "<|channel|>final<|message|>Sofia<|return|>",
        "<|channel|>analysis<|message|>Rome?<|end|><|start|>assistant<|channel|>analysis"
        "<|message|>Oslo?<|end|><|start|>assistant<|channel|>final<|message|>Sofia",
    ],
)
def test_a_thought_is_no_part_of_the_answer(reply: str) -> None:
    answer = read_text(reply)
    assert (answer.text, answer.state, answer.reply) == ("Sofia", "answered", reply)


@pytest.mark.parametrize(
    ("reply", "finish"),
    [
        ("<think>The capital is Sofia", "length"),
        ("<think>It is Sofia.</think>", "stop"),
        ("<think></think>\n", "stop"),
        ("Sofia <think>or is it", "stop"),
        ("[THINK]Sofia", "length"),
        ("<|START_THINKING|>It is Sofia", "stop"),
        ("<|inner_prefix|>It is Sofia", "stop"),
        ("<think>It is Sofia.</think>Sofia <think>or", "stop"),
        ("<|channel|>analysis<|message|>It is Sofia", "stop"),
        ("", LENGTH),
        ("", INCOMPLETE),
        ("", THOUGHT),
    ],
)
def test_a_reply_without_an_answer_behind_its_thought_has_none(
    reply: str, finish: str
) -> None:
    """Tokens that nobody sees have used up the limit where an empty text was cut."""
    answer = read_text(reply, finish)
    assert (answer.text, answer.state) == ("", "thought_only")


def test_a_thought_of_any_length_does_not_push_the_answer_out() -> None:
    reply = f"<think>{'It may be Rome. ' * 40_000}</think>Sofia"
    answer = read_text(reply)
    assert answer.text == "Sofia"
    assert answer.reply is not None
    assert answer.reply.endswith("</think>Sofia")


# Chat tokens


@pytest.mark.parametrize(
    "reply",
    [
        "Sofia<|im_end|>",
        "<|im_start|>assistant\nSofia<|im_end|>",
        "Sofia<end_of_turn>\n<eos>",
        "<start_of_turn>model\nSofia<end_of_turn>",
        "Sofia</s>",
        "<s> Sofia</s></s>",
        "Sofia \n</s> \n</s>\n",
        "[INST] Sofia [/INST]",
        "Sofia<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAnd Rome?",
        "<|im_start|>user\nWhich?<|im_end|>\n<|im_start|>assistant\nSofia<|im_end|>",
        "Sofia<|im_end|>\n<|im_start|>user\nAnd of Italy?<|im_end|>\n"
        "<|im_start|>assistant\nRome",
        "<｜Assistant｜>Sofia<｜end▁of▁sentence｜>",
    ],
)
def test_tokens_of_a_chat_template_are_no_part_of_the_answer(reply: str) -> None:
    """Nor is what the model writes in the user's name, and what it answers to that."""
    assert read_text(reply).text == "Sofia"


@pytest.mark.parametrize(
    "text",
    ["<s>Rome</s> Sofia", "Sofia <s>Rome</s>", "a <b> c", "if x <|> y", " Sofia\n"],
)
def test_other_marks_and_the_space_around_an_answer_stay(text: str) -> None:
    """What is struck out in HTML is the answer's own."""
    answer = read_text(text)
    assert (answer.text, answer.reply) == (text, None)


# What holds for every text


@given(HOSTILE)
def test_to_read_an_answer_again_changes_nothing(reply: str) -> None:
    text = read_text(reply).text
    assert read_text(text).text == text


@given(HOSTILE)
def test_the_reader_invents_no_text(reply: str) -> None:
    """What is left stands in the reply, sign by sign and in this order."""
    signs = iter("".join(reply.split()))
    left = "".join(read_text(reply).text.split())
    assert all(sign in signs for sign in left)


@given(HOSTILE)
def test_no_mark_of_a_thought_is_left(reply: str) -> None:
    text = read_text(reply).text
    assert not outside_thoughts(text).has_thoughts


@pytest.mark.parametrize(
    "unit",
    [
        "<think>",
        "</think>",
        "<think ",
        "</think ",
        "<|im_start|>user",
        "<|im_start|>",
        "</s> ",
        "</s>",
        "<s> ",
        " ",
        "\n",
        "a a b ",
        "ab",
        f"{QUESTION} ",
        "but I do not know ",
    ],
)
def test_hostile_texts_are_read_in_linear_steps(unit: str) -> None:
    """A text of 200,000 characters would take hours if its length were squared."""
    reply = unit * (200_000 // len(unit))
    assert len(read_text(reply, asked=ASKED).text) <= len(reply) + 200


@pytest.mark.parametrize("unit", [" ", "\n", "</s>", "</s> ", "<s>"])
def test_hostile_texts_before_a_word_are_read_in_linear_steps(unit: str) -> None:
    reply = "Rome" + unit * (200_000 // len(unit)) + "Sofia"
    assert read_text(reply).text.endswith("Sofia")


def test_a_reply_of_tool_calls_alone_is_their_json() -> None:
    reply = Reply(calls=(ToolCall(name="look", arguments='{"at": 1}'),))
    assert read_reply(reply).text == '[{"name": "look", "arguments": {"at": 1}}]'


# Cut


@pytest.mark.parametrize(
    ("finish", "tokens", "state"),
    [
        ("length", 3, "cut"),
        ("incomplete", 3, "cut"),
        ("stop", 80, "cut"),
        ("", 81, "cut"),
        ("stop", 79, "answered"),
        ("some word", 3, "answered"),
    ],
)
def test_a_reply_is_cut_by_its_finish_or_by_its_length(
    finish: str, tokens: int, state: str
) -> None:
    """Some servers call a reply that used up its limit a whole one."""
    reply = Reply(text="He died in", finish=finish, output_tokens=tokens)
    assert read_reply(reply, ASKED, limit=80).state == state


def test_without_a_limit_no_length_is_too_long() -> None:
    reply = Reply(text="In 1911.", output_tokens=5_000)
    assert read_reply(reply, ASKED).state == "answered"


# Declined


def test_a_filter_declines_whatever_text_came() -> None:
    assert read_text("In 1911, of", FILTERED, ASKED).state == "declined"
    assert read_text("", FILTERED, ASKED).state == "declined"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "I don't know."),
        ("en", "I'm sorry, but I can't help with that."),
        ("en", "I'm not able to answer that question."),
        ("en", "I don't have enough information to answer this question."),
        ("bg", "Съжалявам, но не мога да отговоря на този въпрос."),
        ("pl", "Niestety nie znam odpowiedzi."),
        ("hu", "Sajnálom, de nem tudok válaszolni erre a kérdésre."),
        ("be", "Прабачце, але я не магу адказаць на гэтае пытанне."),
        ("cs", "Omlouvám se, ale na tuto otázku nemohu odpovědět."),
    ],
)
def test_a_bare_refusal_declines_in_words(language: str, text: str) -> None:
    assert is_bare_refusal(text, language=language, question="Who painted it?")
    assert read_text(text, asked=Asked(language=language)).state == "declined"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "I don't know, but Mrkvička."),
        ("en", "Ivan, but I don't know his age."),
        ("en", "I don't know, perhaps in 1911."),
        ("en", "I can't say for sure; 1911."),
        ("en", "I don't know Paris."),
        ("en", "I don't know. " * 30),
        ("en", "mrkvička, but i do not know"),
        ("en", "I don't know: blue"),
        ("hu", "nem tudom, de szerintem mrkvička"),
        ("en", "No."),
        ("en", "In 1911."),
    ],
)
def test_whoever_offers_something_does_not_decline(language: str, text: str) -> None:
    """A name, a number, a guess, a word of a gold; and a long text is for the judge."""
    assert not is_bare_refusal(text, language=language, golds=("blue",))


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("pl", "Niestety nie."),
        ("pl", "Nie da się."),
        ("hu", "Sajnos nem."),
        ("hu", "Nem lehetséges."),
        ("be", "На жаль, не."),
        ("be", "Немагчыма."),
        ("bg", "Съжалявам, не."),
        ("en", "I'm sorry, no."),
        ("en", "We do not provide refunds."),
        ("en", "I don't know. Yes."),
        ("cs", "Bohužel ne."),
        ("cs", "Není možné."),
    ],
)
def test_a_denial_is_an_answer(language: str, text: str) -> None:
    """An apology before it makes it none the less one."""
    question = "Do you provide refunds?"
    assert not is_bare_refusal(text, language=language, question=question)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("pl", "Przepraszam, to miedź."),
        ("hu", "Sajnálom, ez réz."),
        ("en", "I don't know. copper"),
        ("en", "sorry, copper"),
        ("en", "I don't know who painted it"),
    ],
)
def test_any_word_of_its_own_makes_an_answer(language: str, text: str) -> None:
    """It may be a name in small letters, and a word of the question may be the answer."""
    question = "Is it copper, or who painted it?"
    assert not is_bare_refusal(text, language=language, question=question)


@pytest.mark.parametrize(
    "text",
    ["The contract does not mention it.", "No information.", "It is not known."],
)
def test_what_a_text_lacks_is_an_answer(text: str) -> None:
    assert not is_bare_refusal(text, language="en")


def test_a_refusal_that_the_question_quotes_is_an_answer() -> None:
    question = "What does she say first, „I don't know“ or „Go“?"
    assert not is_bare_refusal("I don't know.", language="en", question=question)


def test_a_gold_that_only_describes_an_answer_has_no_words_of_it() -> None:
    golds = ["UNANSWERABLE: I do not say that"]
    assert is_bare_refusal("I do not know that.", language="en", golds=golds)


def test_an_option_that_the_question_names_is_an_answer() -> None:
    question = "Which is larger: varna or sofia?"
    assert not is_bare_refusal("i don't know, varna", language="en", question=question)


# Echo


@pytest.mark.parametrize(
    "text",
    [QUESTION, PROMPT, f"Question: {QUESTION}", PROMPT.upper(), f"**{QUESTION}**"],
)
def test_the_words_of_the_prompt_are_an_echo(text: str) -> None:
    assert read_text(text, asked=ASKED).state == "echo"


@pytest.mark.parametrize(
    "text",
    [
        f"{QUESTION} 1911",
        f"{QUESTION} Yesterday",
        "The painter of the large blue altar in Varna died in 1911.",
        "the large blue altar in Varna",
        f"{QUESTION} {QUESTION}",
    ],
)
def test_words_of_ones_own_make_it_an_answer(text: str) -> None:
    """So do the question's words in another order, and fewer than eight of them."""
    assert read_text(text, asked=ASKED).state == "answered"


def test_the_words_of_context_and_options_are_no_echo() -> None:
    """``BREAK`` stands where they were: they may be the answer itself."""
    asked = [
        f"Read this: {BREAK} Now say which of the four towns is the largest{BREAK}?"
    ]
    said = "Varna, Burgas, Ruse and Sofia are the four towns"
    assert not is_echo(said, asked)
    assert not is_echo("Now say which of the four towns is the largest Varna", asked)
    assert is_echo("Now say which of the four towns is the largest", asked)


def test_a_gold_beside_the_run_is_an_answer() -> None:
    """It may be a word that the prompt has as well."""
    asked = "Which colour has the altar of the church by the sea, blue or red? Say"
    assert is_echo(f"Say {asked}", [asked])
    assert not is_echo(f"{asked} blue", [asked], ["blue"])


@pytest.mark.parametrize(
    "gold",
    ["a b c d e f g h i j", "b c d e f g h i j", "a b c d e f g h i j k"],
)
def test_a_gold_that_the_question_quotes_is_an_answer(gold: str) -> None:
    asked = "Who wrote a b c d e f g h i j k"
    answer = "a b c d e f g h i j"
    assert is_echo(answer, [asked], ["a b c"])
    assert not is_echo(answer, [asked], [gold])


def test_the_longest_of_several_places_counts() -> None:
    twice = "b c d e f g h i x b c d e f g h i j k"
    assert is_echo("b c d e f g h i j k", [twice])


# Repetition


@pytest.mark.parametrize(
    "text",
    [
        "Ponjé,\n\n" * 20,
        "Question,\n\n" + "Ponjé,\n\n" * 20,
        "It is the capital of the land.\n" * 4 + "It is the",
        "ha" * 40,
        "哈" * 80,
    ],
)
def test_a_phrase_over_and_over_is_a_repetition(text: str) -> None:
    assert read_text(text, LENGTH).state == "repetition"


@pytest.mark.parametrize(
    "text",
    [
        "No, no, no, no.",
        "It is 10, and 10, and 10.",
        "He was born, he lived, he wrote, he painted, and he died in Varna in 1911.",
        "7" * 20,
        "one two three four five six seven eight nine ten eleven twelve thirteen",
    ],
)
def test_a_few_equal_words_are_none(text: str) -> None:
    assert not is_repetition(text)


def test_a_gold_before_the_loop_or_one_that_loops_is_an_answer() -> None:
    loop = "again " * 40
    assert is_repetition(f"Sofia {loop}", ["Varna"])
    assert not is_repetition(f"Sofia {loop}", ["Sofia"])
    assert not is_repetition(loop, [loop])
    assert not is_repetition("0" * 100, ["0" * 100])


# Empty


@tabled("answer")
def test_announcements_and_punctuation_are_empty(answer: str) -> None:
    """In every language; but a gold of that kind leaves the decision to the judge."""
    assert is_empty(answer, ["Jupiter"])
    assert not is_empty(answer, ["Jupiter", "Solution"])


@pytest.mark.parametrize(
    "answer",
    [
        "C",
        "-7",
        "<p>",
        "π",
        "∞",
        "Answer: 42",
        "Solution of salt",
        "0",
        "👍",
        ". " * 400 + "x",
    ],
)
def test_anything_else_is_content(answer: str) -> None:
    """A letter, a number, a sign with a meaning."""
    assert not is_empty(answer, ["Jupiter"])


@pytest.mark.parametrize("answer", ["", " \n", "\u200b\ufeff", "\x00", "\u2800"])
def test_a_blank_answer_is_empty_whatever_the_gold(answer: str) -> None:
    assert is_empty(answer, ["#"])
    assert read_text(answer).state == "empty"


def test_tokens_alone_are_an_empty_answer() -> None:
    assert without_chat_tokens("<|im_start|>assistant\n<|im_end|>") == ""
    assert read_text("<|im_end|>").state == "empty"
