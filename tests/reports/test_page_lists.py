"""Which items ``report.html`` lists where a run has more than a page can show."""

import pytest

from evaluators.core import State
from reports.render import html
from reports.render.html import listed
from reports.run.evidence import Change, Comparison
from reports.run.record import Record
from tests.support.samples import ended, report

STATES: tuple[State, ...] = ("passed", "failed", "error")


def many(count: int) -> tuple[Record, ...]:
    """Return so many records, by turns right, missed and without a grade."""
    return tuple(ended(number, "en", STATES[number % 3]) for number in range(1, count + 1))


def test_a_page_lists_all_items_that_it_can_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the limit nothing is left out, and the page says nothing of it."""
    monkeypatch.setattr(html, "LISTED", 30)
    made = report(many(30))
    assert len(listed(made)) == 30
    assert "Items that matter" not in html.render(made)


def test_above_it_those_that_matter_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flips, ungraded, misses and others, so many of each; the same ones for the same run."""
    monkeypatch.setattr(html, "LISTED", 30)
    monkeypatch.setattr(html, "DRAWN", 4)
    records = many(33)
    flips = [Change(key=one.key, flip="broke", grade="CORRECT") for one in records[1:9:3]]
    compared = Comparison(
        model="old", judge="judge", sha256="ab", slices=(), changes=tuple(flips), warnings=()
    )
    made = report(records, comparison=compared)
    found = listed(made)
    assert {one.key for one in flips} <= {one.key for one in found}
    states = [one.outcome for one in found]
    assert (states.count("passed"), states.count("error"), len(found)) == (4, 7, 15)
    assert found == listed(report(tuple(reversed(records)), comparison=compared))
    page = html.render(made)
    assert "15 of 33 items" in page
    assert all(one.key in page for one in found)
    unlisted = next(one for one in records if one not in found)
    assert f'"{unlisted.key}"' not in page
