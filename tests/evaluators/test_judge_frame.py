"""What a judge is sent: the same frame for every answer, with every rubric."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cases.config import load_dataset
from cases.loading import load_cases
from evaluators.core import Message
from evaluators.judges.llm import judge_messages
from evaluators.rubric import Rubric, load_rubric
from evaluators.template import ANSWER_BYTES
from evaluators.text import INVISIBLE
from tests.support.hostile import HOSTILE
from tests.support.made_runs import answered, run_of
from tests.support.samples import rendered
from tests.support.scripted import make_case

RUBRICS = Path(__file__).parents[2] / "evaluators" / "rubrics"
FILES = sorted(path.name for path in RUBRICS.glob("*.yaml") if "validate" not in path.name)
NEUTRAL = "XNEUTRALX"
CASE = replace(make_case(), context="Контекст.")
ATTACKS = load_dataset(Path(__file__).parents[2] / "cases" / "attacks" / "dataset.yaml").slices
ATTACKING = [case.recorded or "" for one in ATTACKS.values() for case in load_cases(one)]
PIECES = st.sampled_from([*HOSTILE, *ATTACKING])
answers = st.one_of(st.text(max_size=80), PIECES, st.lists(PIECES, max_size=3).map("\n".join))


@cache
def rubric(name: str) -> Rubric:
    return load_rubric(RUBRICS / name)


def flat(messages: tuple[Message, ...]) -> str:
    return "\x1e".join(f"{message.role}\x1f{message.content}" for message in messages)


@pytest.mark.parametrize("name", FILES)
def test_every_bundled_rubric_has_one_slot_for_the_answer(name: str) -> None:
    """The answer stands once, in the last message, between the two marks of the data."""
    text = flat(judge_messages(rubric(name), CASE, NEUTRAL))
    assert text.count(NEUTRAL) == 1
    before, after = text.split(NEUTRAL)
    assert before.endswith('"')
    assert after.startswith('"\n[')


@given(st.sampled_from(FILES), answers)
@example(FILES[0], "\ud83d\x00\u202e\U000e0041")
def test_no_answer_changes_a_byte_around_its_slot(name: str, answer: str) -> None:
    """For every bundled rubric: the frame is identical, the slot one line of JSON, nothing hid."""
    before, after = flat(judge_messages(rubric(name), CASE, NEUTRAL)).split(NEUTRAL)
    got = flat(judge_messages(rubric(name), CASE, answer))
    assert got.startswith(before)
    assert got.endswith(after)
    slot = got[len(before) - 1 : len(got) - len(after) + 1]
    assert isinstance(json.loads(slot), str)
    assert len(slot.splitlines()) == 1
    assert not INVISIBLE.search(slot)
    got.encode()


@given(st.sampled_from([name for name in FILES if "plain" not in name]), answers, answers)
def test_all_that_a_provider_can_cache_comes_first(name: str, question: str, answer: str) -> None:
    """Rubric and instructions are the first message, byte by byte the same for every item.

    A provider's prompt cache holds prefixes only; this one has nothing of an item.
    """
    first, *_ = judge_messages(rubric(name), CASE, NEUTRAL)
    other = replace(CASE, question=question, golds=(answer,), context=question, language="xx")
    system, user = judge_messages(rubric(name), other, answer)
    assert system == first
    assert system.role == "system"
    assert len(system.content) > 4 * user.content.index('"')  # the rest comes with the item


def test_a_long_answer_is_cut_for_the_judge_and_kept_in_the_record() -> None:
    """The judge sees 32 kB and a mark; ``records.jsonl`` has every character."""
    answer = "ж" * ANSWER_BYTES
    seen = flat(judge_messages(rubric("simpleqa.en.yaml"), CASE, answer))
    cut = f"{'ж' * (ANSWER_BYTES // 2)} [... cut: {2 * ANSWER_BYTES:,} bytes in all]"
    assert f'"{cut}"' in seen
    (line,) = rendered(run_of(answered("c", answer=answer)))["records.jsonl"].splitlines()
    assert json.loads(line)["answer"] == answer
