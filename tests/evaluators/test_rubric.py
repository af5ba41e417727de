"""Prompts and rubrics: what a file must hold, and what is made of it."""

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qagate.cases.config import load_dataset
from qagate.cases.loading import load_cases
from qagate.cases.tasks import answer_messages
from qagate.evaluators import rubric as rubrics
from qagate.evaluators.core import GRADES, Message, UsageError
from qagate.evaluators.judges.rubric_judge import judge_messages
from qagate.evaluators.text import INVISIBLE, UNSAFE, escaped, sendable
from tests.support.hostile import HOSTILE
from tests.support.made_runs import answered, run_of
from tests.support.samples import rendered
from tests.support.scripted import make_case, make_rubric
from tests.support.tables import kept, tabled

RUBRIC = kept(__file__, "rubric")
PROMPT = 'name: answer\nlanguage: be\nversion: "1"\nuser: "{passage} {question} {a}"\n'


Writer = Callable[..., Path]
"""Writes a text to the file of this name, and returns its path."""


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    def write(text: str, name: str = "short.bg.yaml") -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


def test_a_rubric_is_read_with_its_examples_in_place(write: Writer) -> None:
    """Examples are rendered once, as data; a place inside of an example is never filled."""
    rubric = rubrics.load_rubric(write(RUBRIC))
    assert (rubric.name, rubric.language, rubric.protocol) == ("short", "bg", "tool")
    assert re.fullmatch(r"short\.bg@3#[0-9a-f]{12}", rubric.version)
    assert rubric.scores == {"CORRECT": 1.0, "INCORRECT": 0.0, "NOT_ATTEMPTED": 0.5}
    asked, reply = rubric.system.removeprefix("Сравни. ").splitlines()
    shown = {"question": "Кой?", "target": "{target}", "predicted_answer": "той\nтя"}
    assert json.loads(asked) == shown
    assert json.loads(reply) == {"reason": "Друго име.", "grade": "INCORRECT"}
    assert rubrics.places(rubric.system) == []


@tabled("protocol", "label", "reply")
def test_examples_follow_the_protocol(
    write: Writer, protocol: str, label: str, reply: str
) -> None:
    """A worked example shows the very reply that is wanted."""
    text = RUBRIC.replace("protocol: tool", f"protocol: {protocol}")
    text = text.replace("grade: INCORRECT", label).replace("Друго име.", "so")
    text = re.sub("scores: .*\n", "", text)
    assert rubrics.load_rubric(write(text)).system.endswith(reply)


def test_what_a_rubric_file_may_be(write: Writer) -> None:
    """Its version follows what is sent; it is a mapping; one that rates has no scores."""
    first = rubrics.load_rubric(write(RUBRIC)).version
    assert rubrics.load_rubric(write(f"# note\n{RUBRIC}")).version == first
    assert (
        rubrics.load_rubric(write(RUBRIC.replace("Reply", "Answer"))).version != first
    )
    with pytest.raises(UsageError, match="1: a mapping of keys to values is needed"):
        rubrics.load_rubric(write("- a"))
    rated = RUBRIC.replace("tool", "rate").replace("grade: INCORRECT", "rating: 2")
    with pytest.raises(UsageError, match=r"'scores'.*no protocol 'rate'"):
        rubrics.load_rubric(write(rated))


@tabled("old", "new", "message")
def test_a_wrong_rubric_names_its_line(
    write: Writer, old: str, new: str, message: str
) -> None:
    """Every fault is reported before any call, in one line."""
    assert old in RUBRIC
    with pytest.raises(UsageError, match=rf"short\.bg\.yaml:.*(?:{message})") as caught:
        rubrics.load_rubric(write(RUBRIC.replace(old, new)))
    assert len(str(caught.value).splitlines()) == 1


def test_a_prompt_is_filled_with_the_text_as_it_is(write: Writer) -> None:
    """Values are not encoded and never filled again; a system text stands first, by itself."""
    prompt = rubrics.load_prompt(write(PROMPT))
    assert prompt.version.startswith("answer.be@1#")
    case = make_case(question="{context}\ud800?", context='Ён "тут".')
    (message,) = answer_messages(prompt, case)
    assert (message.role, message.content) == ("user", 'Ён "тут". {context}\ufffd? {a}')
    messages = answer_messages(
        rubrics.load_prompt(write(PROMPT + "system: Коратка.\n")), make_case()
    )
    assert [message.role for message in messages] == ["system", "user"]


@tabled("old", "new", "message")
def test_a_wrong_prompt_is_refused(
    write: Writer, old: str, new: str, message: str
) -> None:
    """The gold answer never reaches the model under test."""
    with pytest.raises(UsageError, match=message):
        rubrics.load_prompt(write(PROMPT.replace(old, new)))


def test_a_template_in_plain_text_declares_its_language_in_its_name(
    write: Writer,
) -> None:
    """Published names of places are known, and literal JSON does no harm."""
    text = 'Q {{input}} T {expected} P {{ output }}\n{"evaluation": "A"}'
    rubric = rubrics.load_template(write(text, "mine.bg.txt"), "bg")
    assert (
        rubric.user
        == 'Q {question} T {target} P {predicted_answer}\n{"evaluation": "A"}'
    )
    assert (rubric.name, rubric.protocol) == ("mine", "letter")
    assert rubric.version.startswith("mine.bg@template#")
    assert (
        rubrics.load_template(write(text, "mine.bg.txt"), "bg", "rate").protocol
        == "rate"
    )
    assert rubrics.load_template(write(RUBRIC), "bg") == rubrics.load_rubric(
        write(RUBRIC)
    )


@tabled("name", "protocol", "bare")
def test_a_template_says_how_to_answer(
    write: Writer, name: str, protocol: str, bare: bool
) -> None:
    """Its name's last word is the protocol; the version tells it from the same text without."""
    text = "{question} {target} {predicted_answer}"
    rubric = rubrics.load_template(write(text, name), "bg")
    assert (rubric.protocol, rubric.bare) == (protocol, bare)
    assert (
        rubric.version
        != rubrics.load_template(write(text, "mine.bg.txt"), "bg").version
    )


def test_an_answer_prompt_may_be_plain_text(write: Writer) -> None:
    """It is the user message as it stands, of its slice's language; places are checked as ever."""
    prompt = rubrics.load_prompt(
        write("Context:\n{context}\n\n{question}\n", "own.txt"), "hu"
    )
    assert (prompt.system, prompt.user) == ("", "Context:\n{context}\n\n{question}\n")
    assert (prompt.name, prompt.language) == ("own", "hu")
    assert prompt.version.startswith("own.hu@text#")
    with pytest.raises(UsageError, match=r"own\.txt:1: .*no place {question}"):
        rubrics.load_prompt(write("{context}", "own.txt"), "hu")


def test_a_template_of_another_language_or_without_a_place_is_refused(
    write: Writer,
) -> None:
    """A Bulgarian file is never graded by a Polish template; a language is never guessed."""
    for name in ("mine.txt", "mine.BG.txt", "bg.txt", "mine.bg.md"):
        with pytest.raises(UsageError, match="language not declared"):
            rubrics.load_template(
                write("{question}{target}{predicted_answer}", name), "bg"
            )
    path = write("{question} {answer} {prediction}", "mine.pl.txt")
    with pytest.raises(UsageError, match=r"mine\.pl\.txt: 'mine' is .*'pl'.*'bg'"):
        rubrics.load_template(path, "bg")
    with pytest.raises(UsageError, match="simpleqa:hu"):
        rubrics.check_language(rubrics.load_rubric(write(RUBRIC)), "hu", "simpleqa:hu")
    with pytest.raises(UsageError, match=r"mine\.bg\.txt:1: .*{predicted_answer}"):
        rubrics.load_template(write("{question}{target}", "mine.bg.txt"), "bg")


def judged(answer: str, **changes: Any) -> str:
    user = "[BEGIN]\nQ: {question} {context}\nT: {target}\nP: {predicted_answer}\n[END]"
    (message,) = judge_messages(
        make_rubric(system="", user=user), make_case(**changes), answer
    )
    return message.content


def test_values_are_data() -> None:
    """Letters stay, hidden signs are escaped, places never filled; several golds are a list."""
    assert rubrics.encode('Дали "5 > 6" -7 #') == '"Дали \\"5 > 6\\" -7 #"'
    hidden = "\u202e\u2028\xa0\x85\ud800\U000e0041\x00\ufeff\u200b"
    escapes = r"\u202e\u2028\u00a0\u0085\ud800\udb40\udc41\u0000\ufeff\u200b"
    assert rubrics.encode(hidden) == f'"{escapes}"'
    text = judged("{target}", question="{predicted_answer}", golds=("а", "б"))
    assert 'Q: "{predicted_answer}" ""\nT: ["а", "б"]\nP: "{target}"' in text
    assert (
        rubrics.fill("{question}{target}", {"question": "{target}", "target": "x"})
        == "{target}x"
    )
    assert rubrics.fill("{question}", {}) == "{question}"
    assert rubrics.canonical_places("{foo} {{bar}} {}") == "{foo} {{bar}} {}"


TOKENS: str = kept(__file__, "tokens")


@pytest.mark.parametrize("token", TOKENS.split())
def test_a_chat_templates_tokens_cannot_act(token: str) -> None:
    """A server that reads control tokens anywhere finds none; the value is the same JSON text."""
    slot = rubrics.encode(f"Paris{token} 5 < 6 [1]")
    assert "<" not in slot
    assert not re.search(r"\[/?[A-Z]|\[gMASK", slot)
    assert json.loads(slot) == f"Paris{token} 5 < 6 [1]"


@pytest.mark.untraced
@given(st.text(st.characters(codec="utf-8", exclude_characters="<["), max_size=40))
def test_a_text_without_such_tokens_is_sent_as_before(text: str) -> None:
    """Not a byte changes for it, so ledgers from before still answer; ``[1]``, ``[a]`` neither."""
    assert rubrics.encode(f"{text}[1] [a]") == UNSAFE.sub(
        escaped, json.dumps(f"{text}[1] [a]", ensure_ascii=False)
    )


@pytest.mark.parametrize("unit", ["a", "ы", "漢", "🙂", "\ud800"])
def test_a_long_answer_is_cut_with_a_mark(unit: str) -> None:
    """The cut never halves a character, and the size is counted in bytes of UTF-8."""
    size = len(unit.encode("utf-8", "surrogatepass"))
    assert rubrics.shortened(unit * (rubrics.ANSWER_BYTES // size)) == unit * (
        rubrics.ANSWER_BYTES // size
    )
    cut = rubrics.shortened(unit * (rubrics.ANSWER_BYTES + 1))
    mark = f" [... cut: {(rubrics.ANSWER_BYTES + 1) * size:,} bytes in all ...] "
    half = unit * (rubrics.ANSWER_BYTES // 2 // size)
    assert cut == half + mark + half
    sendable(cut).encode("utf-8")


LANGUAGES = ["en", "bg", "pl", "hu", "be"]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["simpleqa", "simpleqa_strict"])
def test_a_bundled_rubric_shows_every_grade(name: str, language: str) -> None:
    """Both rubrics exist in every language, and their examples cover all three grades. A false
    premise is shown corrected, accepted and declined; an unanswerable question declined."""
    rubric = rubrics.load_rubric(RUBRICS / f"{name}.{language}.yaml")
    assert (rubric.name, rubric.language) == (name, language)
    replies = [
        json.loads(line) for line in rubric.system.splitlines() if line[:1] == "{"
    ]
    shown = Counter(reply["grade"] for reply in replies if "grade" in reply)
    assert set(shown) == set(GRADES)
    assert min(shown.values()) >= 3
    assert len(replies) == 2 * shown.total()
    system = rubric.system
    assert [
        system.count(f'"{mark}: ') for mark in ("FALSE PREMISE", "UNANSWERABLE")
    ] == [3, 1]
    assert system.count("FALSE PREMISE") == 3 + 2


RUBRICS = Path(__file__).parents[2] / "evaluators" / "rubrics"
FILES = sorted(
    path.name for path in RUBRICS.glob("*.yaml") if "validate" not in path.name
)
NEUTRAL = "XNEUTRALX"
CASE = replace(make_case(), context="Контекст.")
ATTACKS = load_dataset(
    Path(__file__).parents[2] / "cases" / "attacks" / "dataset.yaml"
).slices
ATTACKING = [
    case.recorded or "" for one in ATTACKS.values() for case in load_cases(one)
]
PIECES = st.sampled_from([*HOSTILE, *ATTACKING])
SAID = st.one_of(
    st.text(max_size=80), PIECES, st.lists(PIECES, max_size=3).map("\n".join)
)


@cache
def bundled(name: str) -> rubrics.Rubric:
    return rubrics.load_rubric(RUBRICS / name)


def flat(messages: tuple[Message, ...]) -> str:
    return "\x1e".join(f"{message.role}\x1f{message.content}" for message in messages)


@pytest.mark.parametrize("name", FILES)
def test_every_bundled_rubric_has_one_slot_for_the_answer(name: str) -> None:
    """The answer stands once, in the last message, between the two marks of the data."""
    text = flat(judge_messages(bundled(name), CASE, NEUTRAL))
    assert text.count(NEUTRAL) == 1
    before, after = text.split(NEUTRAL)
    assert before.endswith('"')
    assert after.startswith('"\n[')


@given(st.sampled_from(FILES), SAID)
@example(FILES[0], "\ud83d\x00\u202e\U000e0041")
def test_no_answer_changes_a_byte_around_its_slot(name: str, answer: str) -> None:
    """For every bundled bundled: the frame is identical, the slot one line of JSON, nothing hid."""
    before, after = flat(judge_messages(bundled(name), CASE, NEUTRAL)).split(NEUTRAL)
    got = flat(judge_messages(bundled(name), CASE, answer))
    assert got.startswith(before)
    assert got.endswith(after)
    slot = got[len(before) - 1 : len(got) - len(after) + 1]
    assert isinstance(json.loads(slot), str)
    assert len(slot.splitlines()) == 1
    assert not INVISIBLE.search(slot)
    got.encode()


@given(st.sampled_from([name for name in FILES if "plain" not in name]), SAID, SAID)
def test_all_that_a_provider_can_cache_comes_first(
    name: str, question: str, answer: str
) -> None:
    """Rubric and instructions come first, the same bytes for every item, for a prompt cache."""
    first, *_ = judge_messages(bundled(name), CASE, NEUTRAL)
    other = replace(
        CASE, question=question, golds=(answer,), context=question, language="xx"
    )
    system, user = judge_messages(bundled(name), other, answer)
    assert system == first
    assert system.role == "system"
    assert len(system.content) > 4 * user.content.index(
        '"'
    )  # the rest comes with the item


def test_a_long_answer_is_cut_for_the_judge_and_kept_in_the_record() -> None:
    """The judge sees both ends, 32 kB, and a mark; ``records.jsonl`` has every character."""
    answer = "ж" * rubrics.ANSWER_BYTES
    seen = flat(judge_messages(bundled("simpleqa.en.yaml"), CASE, answer))
    half = "ж" * (rubrics.ANSWER_BYTES // 4)
    cut = f"{half} [... cut: {2 * rubrics.ANSWER_BYTES:,} bytes in all ...] {half}"
    assert f'"{cut}"' in seen
    (line,) = rendered(run_of(answered("c", answer=answer)))[
        "records.jsonl"
    ].splitlines()
    assert json.loads(line)["answer"] == answer
