"""Grades that a judge gave before it changed count no more, in no later run."""

import asyncio
from pathlib import Path

import pytest

from qagate.command import main
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.ledger.place import LedgerPlace
from qagate.evaluators.ledger.voids import JudgedPart, void, voided_since

JUDGE = {"name": "j", "base_url": "http://localhost:8000/v1"}
ALL = JudgedPart(judge=JUDGE)
POLISH = JudgedPart(judge=JUDGE, language="pl", rubric="grade@1")
GERMAN = JudgedPart(judge=JUDGE, language="de", rubric="grade@1")


def make_void(place: LedgerPlace, *parts: tuple[JudgedPart, float]) -> None:
    with Ledger(place) as ledger:
        for part, since in parts:
            asyncio.run(void(ledger, part, since))


def since_of(place: LedgerPlace, part: JudgedPart) -> float:
    with Ledger(place, read_only=True) as ledger:
        return voided_since(ledger, part)


def test_without_a_void_all_grades_count(place: LedgerPlace) -> None:
    Ledger(place).close()
    assert since_of(place, POLISH) == 0.0


def test_a_void_of_one_language_leaves_the_others(place: LedgerPlace) -> None:
    make_void(place, (POLISH, 5.0))
    assert since_of(place, POLISH) == 5.0
    assert since_of(place, GERMAN) == 0.0


def test_a_void_of_a_judge_is_one_of_each_language(place: LedgerPlace) -> None:
    make_void(place, (POLISH, 5.0), (ALL, 7.0))
    assert since_of(place, POLISH) == since_of(place, GERMAN) == 7.0


def test_an_earlier_void_takes_nothing_back(place: LedgerPlace) -> None:
    make_void(place, (POLISH, 5.0), (POLISH, 3.0))
    assert since_of(place, POLISH) == 5.0


def test_an_import_loses_no_void(tmp_path: Path) -> None:
    """Of two ledgers the later void counts, whichever was imported into the other."""
    places = [tmp_path / "early", tmp_path / "late"]
    for place, since in zip(places, (3.0, 5.0), strict=True):
        make_void(place, (POLISH, since))
    for from_, to in (places, places[::-1]):
        file = tmp_path / "out.jsonl"
        assert main(["ledger", "export", str(file), "--ledger", str(from_)]) == 0
        assert main(["ledger", "import", str(file), "--ledger", str(to)]) == 0
        assert since_of(to, POLISH) == 5.0


@pytest.mark.parametrize(
    ("other", "since"),
    [
        ({**JUDGE, "base_url": "http://localhost:9000/v1"}, 5.0),
        ({**JUDGE, "name": "other"}, 0.0),
    ],
)
def test_a_judge_is_known_by_all_but_a_port_of_this_machine(
    place: LedgerPlace, other: dict[str, object], since: float
) -> None:
    make_void(place, (ALL, 5.0))
    assert since_of(place, JudgedPart(judge=other)) == since
