"""Maps this project's functions to the names that a robustness kit calls."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# The kit loads this file by its path, from any folder.
sys.path.insert(0, str(Path(__file__).parents[1]))

from qagate.evaluators.core import Case, Reply, ToolCall
from qagate.evaluators.judges.rubric_judge import judge_messages
from qagate.evaluators.replies.choices import read_choice, yes_or_no
from qagate.evaluators.replies.readers import (
    Invalid,
    read_grade,
    read_rating,
    unfinished,
)
from qagate.evaluators.rubric import load_rubric
from tests.support.robustness_load import load

__all__ = [
    "build_judge_prompt", "load", "parse_grade", "parse_rating", "parse_yesno", "write_reports",
]  # fmt: skip

RUBRICS = Path(__file__).parents[1] / "evaluators" / "rubrics"
YES_NO = {
    "be": ("Так", "Не"),
    "bg": ("Да", "Не"),
    "en": ("Yes", "No"),
    "hu": ("Igen", "Nem"),
    "pl": ("Tak", "Nie"),
}


def write_reports(cases: Sequence[Mapping[str, str]], outdir: str) -> None:
    """Write all report files of these cases into a folder."""
    from tests.support.robustness_reports import write_reports as write  # noqa: PLC0415  # pytest, numpy

    write(cases, outdir)


def parse_grade(reply: Mapping[str, object], lang: str) -> str:
    """Return the judge's grade, or INVALID."""
    grade = read_grade(reply_of(reply))
    return "INVALID" if isinstance(grade, Invalid) else grade


def parse_rating(reply: Mapping[str, object], lang: str) -> int | str:
    """Return the judge's rating, or INVALID."""
    rating = read_rating(reply_of(reply))
    return "INVALID" if isinstance(rating, Invalid) else rating


def parse_yesno(reply: Mapping[str, object], lang: str) -> str:
    """Return YES or NO, or INVALID where the model did not answer."""
    answer = reply_of(reply)
    if unfinished(answer.finish):
        return "INVALID"
    verdict = read_choice(answer.text, yes_or_no(*YES_NO[lang]))
    return "INVALID" if isinstance(verdict, Invalid) else verdict


def build_judge_prompt(
    question: str, gold: str, predicted: str, lang: str
) -> list[dict[str, str]]:
    """Return the chat messages that the three-label judge of this language is sent."""
    path = RUBRICS / f"simpleqa.{lang}.yaml"
    rubric = load_rubric(path if path.exists() else RUBRICS / "simpleqa.en.yaml")
    case = Case(
        id="kit",
        dataset="simpleqa",
        language=lang,
        row=1,
        question=question,
        golds=(gold,),
    )
    messages = judge_messages(rubric, case, predicted)
    return [{"role": message.role, "content": message.content} for message in messages]


def reply_of(raw: Mapping[str, object]) -> Reply:
    """Return a provider's message, in either wire format, as a Reply."""
    text, calls = raw.get("content"), []
    for call in _dicts(raw.get("tool_calls")):
        function = call.get("function")
        calls += [_call(function, "arguments")] if isinstance(function, dict) else []
    for block in _dicts(raw.get("anthropic_content")):
        if block.get("type") == "tool_use":
            calls.append(_call(block, "input"))
        elif block.get("type") == "text":
            text = f"{text or ''}{block.get('text')}"
    finish = raw.get("finish_reason", "stop")
    return Reply(
        text=text if isinstance(text, str) else "",
        calls=tuple(calls),
        finish=finish if isinstance(finish, str) else "",
    )


def _dicts(value: object) -> list[dict[str, object]]:
    return (
        [entry for entry in value if isinstance(entry, dict)]
        if isinstance(value, list)
        else []
    )


def _call(function: dict[str, object], key: str) -> ToolCall:
    given = function.get(key)
    arguments = given if isinstance(given, str) else json.dumps(given)
    return ToolCall(name=str(function.get("name")), arguments=arguments)
