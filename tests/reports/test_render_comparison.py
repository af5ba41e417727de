"""Claims about how a comparison reads: in a pull request and on a terminal."""

import pytest

from evaluators.statistics.intervals import Estimate
from reports.render import console, markdown, words
from reports.run.evidence import Change, Comparison
from reports.run.report import Report
from tests.support.hostile import HOSTILE
from tests.support.made_records import make_record
from tests.support.made_runs import answered, run_of
from tests.support.samples import full, report


def regressed() -> Report:
    """A run of seven regressions beside its baseline, with hostile text in answers and reasons."""
    new = answered("nniiiiicc", answer=HOSTILE[0], reason=HOSTILE[1])
    old = run_of(answered("cccccccci", answer=HOSTILE[2]))
    return run_of(new, baseline=old)


def test_the_worst_regressions_come_first_and_are_few() -> None:
    """Wrong answers before silent ones, five at most, each with both answers; no other misses."""
    text = markdown.render(regressed())
    part = text.partition("### Worst regressions")[2].partition("<details>")[0]
    lines = [line for line in part.splitlines() if line.startswith("- ")]
    assert len(lines) == 5
    assert all("CORRECT → INCORRECT" in line for line in lines)
    assert "2 more in the report." in part
    assert "Some of the misses" not in text


def test_the_comparison_stands_in_the_summary() -> None:
    """Pairs, fixed, broke, difference with interval, p-value and odds ratio, a row a slice."""
    text = markdown.render(regressed())
    assert "| facts:en | 9 | 1 | 7 | -0.667 \\[-0.907, -0.053\\] | 0.070 | 0.14" in text
    assert "Compared with the baseline" not in markdown.render(report())


def test_a_changed_judge_is_said_loudly() -> None:
    """In bold, above the comparison."""
    made = run_of(answered("cc"), baseline=run_of(answered("cc", judge="judge-2025")))
    text = markdown.render(made)
    assert "- **facts:en: the judge changed from judge-2025 to judge-2026; " in text
    assert text.index("Another judge") < text.index("Compared with the baseline")


def test_the_summary_stays_below_githubs_limit() -> None:
    """However long the answers of the regressions are."""
    old = run_of(answered("c" * 400, answer="x" * 5000))
    text = markdown.render(run_of(answered("i" * 400, answer="щ" * 5000), baseline=old))
    assert len(text) < 65_536
    assert len(text.encode()) <= markdown.MAX_BYTES


@pytest.mark.parametrize(
    ("estimate", "odds", "signed"),
    [
        (Estimate(value=None, low=None, high=None, n=0), "–", "undefined"),
        (Estimate(value=None, low=1.5, high=None, n=4), "∞ [1.50, ∞]", "undefined"),
        (
            Estimate(value=0.5, low=0.25, high=2.0, n=4),
            "0.50 [0.25, 2.00]",
            "+0.500 [+0.250, +2.000]",
        ),
        (Estimate(value=-0.5, low=None, high=None, n=4), "-0.50 [∞, ∞]", "-0.500"),
    ],
)
def test_effect_sizes_have_words(estimate: Estimate, odds: str, signed: str) -> None:
    """An end without bound is infinite, and undefined is neither 0 nor NaN."""
    assert (words.odds(estimate), words.signed(estimate)) == (odds, signed)
    assert [words.p_value(p) for p in (None, 0.0004, 0.04)] == ["–", "< 0.001", "0.040"]


def test_ratings_that_fell_furthest_are_the_worst() -> None:
    """By how far they fell."""
    new = [make_record(n, rating=r, outcome="failed") for n, r in enumerate((5, 2, 4))]
    changes = tuple(Change(key=one.key, flip="broke", rating=7 + n) for n, one in enumerate(new))
    made = report(tuple(new), comparison=Comparison(model="m", judge="j", changes=changes))
    assert [record.rating for record, _ in words.broke(made)] == [2, 4, 5]
    assert [words.mark(None, 7), words.mark(None, None)] == ["rating 7", "no grade"]


def test_the_terminal_shows_comparison_and_gates_within_100_columns() -> None:
    """Whatever model and judge wrote: one line a line, and hidden characters written out."""
    for made in (regressed(), full()):
        lines = [*console.comparison(made), *console.gates(made)]
        assert max(map(len, lines)) <= console.WIDTH
        assert not any("\x1b" in line or "\u202e" in line or "\n" in line for line in lines)


def test_a_changed_judge_is_said_on_the_terminal() -> None:
    """Before the items, in capitals; ungraded and new items are counted."""
    made = run_of(answered("cce"), baseline=run_of(answered("cc", judge="judge-2025")))
    lines = list(console.comparison(made))
    assert any(line.startswith("WARNING: facts:en: the judge changed") for line in lines)
    assert any("1 new" in line for line in lines)
    assert list(console.comparison(report())) == []
