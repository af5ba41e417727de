"""Wrong answers that come as near to being right as they can, made by rule in five languages."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from evaluators.core import Case
from evaluators.reading import load_yaml

_FILE = Path(__file__).parents[1] / "evaluators" / "near_misses.yaml"
LANGUAGES = ("en", "bg", "pl", "hu", "be")

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer to a case: the gold in other words, or a near miss."""

    case: Case
    text: str
    right: bool


def answers(language: str) -> Iterator[Answer]:
    """Yield the near misses of a language, and the right answers that go with them."""
    data = cast("Mapping[str, Any]", load_yaml(_FILE))
    own = data[language]
    for frame in own["frames"]:
        for a, b in [*data["pools"].get(frame["pool"], []), *own.get(frame["pool"], [])]:
            case = _case(language, frame["question"].format(b=b), frame["gold"].format(a=a))
            for key, right in (("right", True), ("wrong", False)):
                for text in frame[key]:
                    yield Answer(case=case, text=text.format(a=a, b=b), right=right)
    yield from _dated(language, own, data["pools"]["days"])


def premises() -> list[Mapping[str, Any]]:
    """Return the questions on a false premise or without an answer, with answers by grade."""
    return list(cast("Mapping[str, Any]", load_yaml(_FILE))["premises"])


def _dated(language: str, own: Mapping[str, Any], days: list[Pair]) -> Iterator[Answer]:
    """Yield neighbour dates and wrong parts of dates to questions for a day and for a month."""
    for one, other in days:
        day, month, year = (_spell(own, key, one) for key in ("day", "month", "year"))
        rivals = [_spell(own, "day", other), month, year]
        for question in own["day_questions"]:
            yield from _options(_case(language, question, day), own, day, rivals)
        elsewhere = _spell(own, "month", _next_month(one))
        for question in own["month_questions"]:
            yield from _options(_case(language, question, month), own, month, [elsewhere, year])


def _options(case: Case, own: Mapping[str, Any], gold: str, wrong: list[str]) -> Iterator[Answer]:
    for sentence in own["dated"]:
        yield Answer(case=case, text=sentence.format(x=gold), right=True)
        for text in wrong:
            yield Answer(case=case, text=sentence.format(x=text), right=False)


def _spell(own: Mapping[str, Any], key: str, date: str) -> str:
    day, month, year = date.split()
    pattern = str(own.get(key, "{y}"))
    return pattern.format(d=day, m=own["months"][int(month) - 1], y=year)


def _next_month(date: str) -> str:
    day, month, year = date.split()
    return f"{day} {int(month) % 12 + 1} {year}"


def _case(language: str, question: str, gold: str) -> Case:
    return Case(id="x", dataset="x", language=language, row=1, question=question, golds=(gold,))
