"""The linter tells what nobody can look up, what is old, and what cites old law."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from cases.check.findings import CheckSettings
from cases.check.upkeep_checks import (
    BUNDLED,
    amended_acts,
    amendments,
    missing_sources,
    stale_items,
)
from evaluators.core import Case
from tests.support.linting import found, item, said, subject

TODAY = date(2026, 3, 31)


def dated(*days: str) -> list[Case]:
    return [item(row, f"{row}?", metadata={"as_of": day}) for row, day in enumerate(days, 1)]


def test_rows_without_a_source_are_an_error_where_others_have_one() -> None:
    """A web address will do; a file without any is told once, and the suite's own may not be."""
    rows = [
        item(1, "1?", metadata={"source": "a book"}),
        item(2, "2?", metadata={"urls": ["https://example.org"]}),
        item(3, "3?", metadata={"source": " "}),
        item(4, "4?"),
    ]
    own = subject(*rows)
    assert found(missing_sources, own) == [("error", 3)]
    assert "2 of 4 rows have no source (3, 4)" in said(missing_sources, own)
    assert found(missing_sources, subject(*rows[3:])) == [("warning", 0)]
    bundled = replace(own.slice_, path=BUNDLED / "mine" / "en.csv")
    ours = replace(own, slice_=bundled, cases=(rows[3],))
    assert found(missing_sources, ours) == [("error", 0)]
    assert not found(missing_sources, subject(*rows[:2]))
    assert not found(missing_sources, subject(*rows[3:], kind="judged"))


@pytest.mark.parametrize(
    ("months", "day", "expected"),
    [
        (24, "2024-03-31", [("warning", 0)]),
        (24, "2024-04-01", []),
        (25, "2024-03-31", []),
        (1, "2026-02-28", [("warning", 0)]),
        (24, "", []),
        (24, "2026-04-01", [("error", 1)]),
        (24, "March 2026", [("error", 1)]),
        (24, "20260331", [("error", 1)]),
        (24, "2026-02-30", [("error", 1)]),
    ],
)
def test_an_old_date_is_told_and_a_wrong_one_is_an_error(
    months: int, day: str, expected: list[tuple[str, int]]
) -> None:
    """Whole months are counted; what is to come cannot have been looked up."""
    settings = CheckSettings(stale_after=months)
    own = replace(subject(*dated(day)), settings=settings, today=TODAY)
    assert found(stale_items, own) == expected


def test_old_rows_are_told_together_with_the_oldest_day() -> None:
    """One line a file says which and how many."""
    own = replace(subject(*dated("2020-01-01", "2026-01-01", "2019-05-05")), today=TODAY)
    message = said(stale_items, own)
    assert message.startswith("2 of 3 rows were last looked up 2019-05-05 or later, 24 months")
    assert "(1, 3)" in message


@pytest.mark.parametrize(
    ("context", "day", "told"),
    [
        ("See EBA/GL/2016/07, paragraph 71.", "2026-05-06", 1),
        ("See EBA/GL/2016/07, paragraph 71.", "", 0),
        ("See EBA/GL/2016/07, paragraph 71.", "2026-05-07", 0),
        ("See EBA/GL/2016/07 as amended by EBA/GL/2026/05.", "2026-05-06", 0),
        ("Regulation (EU) No 575/2013", "2024-12-31", 1),
        ("Regulation (EU) No 575/2013 and EBA/GL/2016/07", "2024-12-31", 2),
        ("Regulation (EU) 2022/2554", "", 0),
    ],
)
def test_a_changed_act_is_told_until_the_item_is_looked_up_again(
    context: str, day: str, told: int
) -> None:
    """One note an act; an item that names the act that changed it knows of it."""
    row = item(1, "?", context=context, metadata={"as_of": day})
    assert found(amended_acts, subject(row, kind="rated")) == [("warning", 1)] * told
    assert not found(amended_acts, subject(row))


def test_the_list_of_acts_can_be_read() -> None:
    """Every entry names an act, how it is cited, what changed it, and a day."""
    assert all(Path(one.act).name and one.cited and one.by for one in amendments())
    assert max(one.since for one in amendments()) > date(2026, 1, 1)
