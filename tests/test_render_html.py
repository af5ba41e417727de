"""``report.html`` as text: complete, escaped, self-contained (in a browser: ``test_page``)."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from cases.slices import Rule
from reports.render import clean, html, words
from reports.render.plot import plot
from reports.report import Decision, Estimate
from tests.hostile import HOSTILE
from tests.samples import full, gate, hostile, record, report

ACTIVE = {"script", "style", "iframe", "img", "object", "embed", "base", "form", "link", "meta"}


class Page(HTMLParser):
    """The tags, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def active(text: str) -> list[str]:
    """Return the tags of a page that can run, load or restyle something."""
    return [tag for tag, _ in Page(text).tags if tag in ACTIVE]


def test_hostile_text_adds_no_active_tag() -> None:
    """A page with hostile texts has the same active tags as one without; all are ours."""
    assert active(html.render(report(hostile()))) == active(html.render(report()))
    for tag, attributes in Page(html.render(full(3))).tags:
        assert not any(
            name.startswith("on") or name in ("style", "src", "href") for name in attributes
        ), tag


def test_the_policy_lets_in_only_our_script_and_style() -> None:
    """Both by hash; nothing from a network, no inline event, no form, no base."""
    text = html.render(full(3))
    policy = next(a["content"] or "" for t, a in Page(text).tags if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_everything_is_on_the_page() -> None:
    """Verdict, decision, gates, measures, labels, notes, provenance and the run block."""
    made = full(5)
    text = " ".join(Page(html.render(made)).text.split())
    for word in (
        "FAIL", "exit code 1", made.decision.line, "openai:judge", "last-release/run.json",
        "not below -0.03", "kappa is undefined", "correct given attempted", "mean rating",
        "given ↓ graded →", "by topic", "| <b>Science</b>", "partial", "an offline stand-in",
        "The judge was not measured for hu.", "$1.2345", "1,234,567", '"workers": 8', '"python"',
        "timeout: no reply in 60 s",
    ):  # fmt: skip
        assert word in text, word


@pytest.mark.parametrize("text", [text for text in HOSTILE if text.strip()])
def test_hostile_text_is_shown_as_text(text: str) -> None:
    """The reader sees what the model said, hidden characters by number and keys masked."""
    shown = " ".join(clean.visible(text).split())[:3000]
    page = Page(html.render(report((record(answer=text),))))
    assert shown in " ".join(page.text.split())


def test_rows_carry_their_language_and_what_filters_need() -> None:
    """Screen readers and hyphenation need ``lang``; the script needs the data attributes."""
    page = Page(html.render(report((record(language="bg", outcome="failed", rating=3),))))
    (row,) = [attributes for tag, attributes in page.tags if tag == "li"]
    assert row["data-grade"] == "rating 3"
    assert (row["data-language"], row["data-outcome"]) == ("bg", "failed")
    assert any(tag == "dd" and attributes.get("lang") == "bg" for tag, attributes in page.tags)


def test_long_texts_are_cut_with_a_mark() -> None:
    """Shorter where there are many, so that the page of a large run still opens."""
    text = html.render(report((record(answer="я" * 100_000),)))
    assert "100,000 characters in all; the exact text is in records.jsonl" in text
    assert len(text) < 40_000
    many = html.render(report(tuple(record(n, answer="z" * 1700) for n in range(10_000))))
    assert "z" * 1601 not in many


@pytest.mark.parametrize("item", [record(answer=None, outcome="error", error="x: y", grade=None),
                                  record(answer=" "), record(cost=None, score=1.0, label="YES"),
                                  record(repeat=2, reason="", model="", judge="")])  # fmt: skip
def test_odd_records_have_a_row(item: object) -> None:
    """Every end state can be shown."""
    assert '<li class="item' in html.render(report((item,)))  # type: ignore[arg-type]


def test_a_partial_report_says_so_at_the_top() -> None:
    """INCOMPLETE is the verdict, with the number of missing items."""
    text = html.render(report(complete=False))
    assert "INCOMPLETE: this is a partial report. 0 of 1 planned items are missing." in text
    assert "<title>INCOMPLETE" in text


def test_without_gates_the_page_says_that_nothing_is_decided() -> None:
    """No thresholds, no verdict."""
    text = html.render(report(decision=Decision(gates=(), code=0, line="-"), baseline="last/"))
    assert "No gate was declared" in text
    assert "the comparison decides nothing" in text
    assert words.verdict(report()) == "PASS"


def test_equal_reports_give_equal_pages() -> None:
    """The order of records and provenance leaves no trace."""
    made = full(3)
    other = replace(made, records=made.records[::-1], run=dict(reversed(list(made.run.items()))))
    assert html.render(made) == html.render(other)


def test_a_rate_is_drawn_from_0_to_1() -> None:
    """Value, interval, bounds and bar at their share of the line."""
    drawn = plot(gate("FAIL", rule=Rule(measure="correct", min=0.35, max=0.9)))
    assert (drawn.start, drawn.end, drawn.value, drawn.bars) == (0, 1, 21, (35, 90))
    assert (drawn.low, drawn.high, drawn.worst, drawn.best) == (10, 32, 15, 25)


def test_ratings_drops_and_negative_measures_have_their_own_axis() -> None:
    """A rating from 1 to 10; a difference around zero, with the margin below it."""
    rated = plot(gate("PASS", rule=Rule(measure="mean_rating", min=5.5), worst=None, best=11.0))
    assert (rated.start, rated.end, rated.bars, rated.worst, rated.best) == (
        1,
        10,
        (50,),
        None,
        100,
    )
    drop = gate("FAIL", rule=Rule(measure="drop", max=0.1), worst=-0.2, best=0.0,
                estimate=Estimate(value=-0.1, low=-0.2, high=0.0, n=9))  # fmt: skip
    drawn = plot(drop)
    assert drawn.start == -drawn.end
    assert drawn.bars == (drawn.value,)
    assert drawn.best == 50


def test_an_undefined_gate_is_an_empty_line() -> None:
    """Nothing is drawn where nothing is known."""
    nothing = Estimate(value=None, low=None, high=float("nan"), n=0)
    drawn = plot(gate("INCONCLUSIVE", rule=Rule(measure="drop"), estimate=nothing,
                      worst=None, best=None))  # fmt: skip
    assert (drawn.value, drawn.low, drawn.high, drawn.bars) == (None, None, None, ())
    zero = gate("PASS", rule=Rule(measure="drop", max=0.0), worst=0.0, best=0.0,
                estimate=Estimate(value=0.0, low=0.0, high=0.0, n=1))  # fmt: skip
    assert plot(zero).value == 50
