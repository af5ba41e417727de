"""``report.html`` as text: complete, escaped, self-contained (in a browser: ``test_page``)."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest

from qagate.evaluators.core import State, Vote
from qagate.evaluators.output import visible
from qagate.reports.render import html
from qagate.reports.render.html import listed
from qagate.reports.run import clean
from qagate.reports.run.evidence import (
    Change,
    Comparison,
    ConfusionCell,
    Judging,
    RulesCheck,
)
from qagate.reports.run.record import Record
from qagate.reports.run.report import Cause, Decision, Report
from tests.reports.test_votes import judged_dataset, labelled
from tests.support.hostile import HOSTILE
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of
from tests.support.pages import Page, items
from tests.support.samples import ended, full, gate, hostile, record, report

ACTIVE = {
    "script",
    "style",
    "iframe",
    "img",
    "object",
    "embed",
    "base",
    "form",
    "link",
    "meta",
}


def active(text: str) -> list[str]:
    """Return the tags of a page that can run, load or restyle something."""
    return [tag for tag, _ in Page(text).tags if tag in ACTIVE]


def test_hostile_text_adds_no_active_tag() -> None:
    """All tags are ours, for any old answers, reasons, names of facts or votes."""
    plain = active(html.render(report()))
    assert active(html.render(report(hostile()))) == plain
    for tag, attributes in Page(html.render(full(3))).tags:
        odd = [
            name
            for name in attributes
            if name.startswith("on") or name in ("style", "src")
        ]
        assert not odd, tag
        assert (attributes.get("href") or "#").startswith("#")
    old = [
        replace(one, answer=text, reason=text, question=text)
        for one, text in zip(answered("c" * len(HOSTILE)), HOSTILE, strict=True)
    ]
    new = [replace(one, grade="INCORRECT", outcome="failed") for one in old]
    away = [
        replace(
            one, language="bg", key=f"bg{one.key}", metadata={"fact_id": text or "f"}
        )
        for one, text in zip(new, HOSTILE, strict=True)
    ]
    home = [
        replace(one, metadata=other.metadata)
        for one, other in zip(old, away, strict=True)
    ]
    paired = run_of(new, baseline=run_of(old))
    languages = run_of(
        [*home, *away], facts_dataset(graded_slice(), graded_slice("bg"))
    )
    assert paired.comparison is not None
    assert paired.comparison.changes
    assert languages.parity[0].lapses
    for made in (paired, languages):
        assert active(html.render(made)) == plain


def test_the_policy_lets_in_only_our_script_and_style() -> None:
    """By hash, nothing else; a partial report, and one without gates, say so."""
    text = html.render(full(3))
    policy = next(a["content"] or "" for t, a in Page(text).tags if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    text = html.render(report(complete=False))
    assert "This is a partial report: 0 of 1 planned item are missing." in text
    assert "<title>Cannot be decided: the run was cut short" in text
    decision = Decision(gates=(), code=6, cause=Cause.NO_GATES, line="-")
    page = Page(html.render(report(decision=decision, notes=("a",))))
    assert "No gate was declared" in page.text
    assert "1 note on this run" in page.text
    assert "1 items" not in page.text


def test_everything_is_on_the_page() -> None:
    """All there is to know, and the order of records and provenance leaves no trace."""
    made = full(5)
    text = Page(html.render(made)).text
    for word in (
        "FAIL", "exit code 1", made.decision.line, "openai:judge",
        "last-release", "at most 3% of the questions", "kappa is undefined", "mean rating",
        "correct given attempted", "gold ↓ answer →", "By topic", "| <b>Science</b>", "partial",
        "a placeholder judge", "The judge was not measured for hu.", "$1.2345", "1,234,567",
        '"workers": 8', '"python"', "timeout: 4", "pytest -n 8 cases/",
    ):  # fmt: skip
        assert word in text, word
    one = {
        "rubric": "r@1#d",
        "file": "en.csv",
        "data_sha256": "ab" * 32,
        "extra": "x",
        "more": 1,
    }
    origin: dict[str, object] = {"seed": 0, "slices": {"s:en": one}}
    made = replace(full(3), provenance=origin)
    other = replace(
        made,
        records=made.records[::-1],
        run=dict(reversed(list(made.run.items()))),
        provenance={"slices": {"s:en": dict(reversed(one.items()))}, "seed": 0},
    )
    assert html.render(made) == html.render(other)


@pytest.mark.parametrize("text", [text for text in HOSTILE if text.strip()])
def test_hostile_text_is_shown_as_text(text: str) -> None:
    """The reader sees what the model said, hidden characters by number and keys masked."""
    made = html.render(report((record(answer=text),)))
    (item,) = items(made)
    assert str(item["answer"])[:3000] == visible(clean.mask(text))[:3000]
    (block,) = [word for word in Page(made).words if word.startswith('{"columns"')]
    assert not set("<>&") & set(block)


def test_an_item_carries_all_that_is_known_of_it() -> None:
    """Votes, metadata, extra measures, the person who decided, and what the baseline had."""
    votes = (
        Vote(judge="a", grade="CORRECT", reason="yes"),
        Vote(judge="b", error="timeout"),
    )
    made = record(
        votes=votes, metadata={"topic": "Art", "tags": ["x", 1]}, adjudicated_by="Ana",
        measures={"faith": 0.5, "none": None}, score=float("nan"), cost=float("inf"),
    )  # fmt: skip
    (item,) = items(html.render(report((made,))))
    assert item["votes"] == [["a", "CORRECT", "yes"], ["b", "", "timeout"]]
    assert item["metadata"] == [["tags", '["x", 1]'], ["topic", "Art"]]
    assert item["measures"] == [["faith", 0.5], ["none", None]]
    assert (item["person"], item["flip"], item["before"]) == ("Ana", "", None)
    assert (item["score"], item["cost"]) == (None, None)


def test_provenance_has_a_table_of_slices() -> None:
    """Every hash, no column that says nothing; long texts are cut."""
    one = {"data_sha256": "ab" * 32, "prompt": "p@1#c", "rubric": "", "metrics": []}
    slices = {"s:en": one, "s:hu": {**one, "rubric": "r@1#d"}}
    text = Page(
        html.render(report(provenance={"python": "3.11", "slices": slices}))
    ).text
    assert "ab" * 32 in text
    assert "data sha256" in text
    assert "p@1#c –" in text
    assert "p@1#c r@1#d" in text
    assert (
        "metrics"
        not in text.partition("Where this comes from")[2].partition("Versions")[0]
    )
    text = html.render(report((record(answer="я" * 100_000),)))
    assert "100,000 characters in all; the exact text is in records.jsonl" in text
    assert len(text) < 70_000


@pytest.mark.slow
def test_texts_are_cut_shorter_where_they_are_many() -> None:
    many = html.render(
        report(tuple(record(n, answer="z" * 1700) for n in range(10_000)))
    )
    assert "z" * 1601 not in many


@pytest.mark.parametrize("item", [record(answer=None, outcome="error", error="x: y", grade=None),
                                  record(answer=" "), record(cost=None, score=1.0, label="YES"),
                                  record(repeat=2, reason="", model="", judge="")])  # fmt: skip
def test_odd_records_have_a_row(item: Record) -> None:
    """Every end state can be shown."""
    (found,) = items(html.render(report((item,))))
    assert (found["answer"], found["repeat"]) == (item.answer, item.repeat)
    assert found["kind"] == ("model: x" if item.error else "")


def compared(new: str, old: str) -> Report:
    """Return the report of a run against a baseline; both are given by letters of grades."""
    return run_of(answered(new), baseline=run_of(answered(old)))


def test_an_item_beside_the_baseline_says_what_became_of_it() -> None:
    """Its flip, and what the baseline had where it differs; every link leads somewhere."""
    found = items(html.render(compared("cic", "cc")))
    assert [item["flip"] for item in found] == ["same", "broke", "new"]
    then = ["c: 1", "CORRECT", "It is CORRECT."]
    assert [item["before"] for item in found] == [None, then, None]
    assert "No item passes now that failed then" in html.render(compared("ci", "ci"))
    assert "the comparison decides nothing" in html.render(report(baseline="last/"))
    page = Page(html.render(compared("ic", "ci")))
    ids = [found["id"] for _, found in page.tags if "id" in found]
    assert len(ids) == len(set(ids))
    anchors = {
        (found["href"] or "")[1:] for found in page.named("a") if found.get("href")
    }
    assert {one for one in anchors if not one.startswith(("item-", "items?"))} <= set(
        ids
    )


def test_changed_items_stand_side_by_side() -> None:
    """Those that broke first, the others to unfold; difference, interval, p, odds, counts."""
    text = html.render(compared("i" * 10 + "c" * 6, "c" * 10 + "i" * 6))
    page = Page(text)
    assert "Right then, wrong now: 10" in page.text
    assert "Wrong then, right now: 6" in page.text
    assert text.index("Right then") < text.index("Wrong then")
    assert page.text.count("more side by side") == 2
    assert page.named("a", href="#item-facts-en-i0")
    assert "c: 0" in page.text
    assert "i: 0" in page.text
    text = Page(html.render(compared("i" * 8 + "c" * 12, "c" * 20))).text
    for word in (
        "-0.400 [",
        "▲ 0",
        "▼ 8",
        "0.008",
        "0.00 [",
        "12 right in both",
        "20 pairs",
    ):
        assert word in text, word


def test_another_judge_is_no_alarm() -> None:
    """This run's judge has read both sides."""
    old = run_of([replace(one, judge="judge-2025") for one in answered("cc")])
    text = html.render(run_of(answered("ci"), baseline=old))
    assert 'class="alarm"' not in text


def test_a_gap_of_languages_is_shown() -> None:
    """With the facts that one language alone misses."""
    records = [*answered("ccc"), *answered("cii", "bg")]
    made = run_of(records, facts_dataset(graded_slice(), graded_slice("bg")))
    text = Page(html.render(made)).text
    for word in ("facts: bg − en -0.667 [", "2 right in en, wrong in bg", "F1"):
        assert word in text, word


def test_the_judge_is_described() -> None:
    """Its panel, rules, splits and corrected rates; agreement with the floor, trust, slices."""
    votes = (
        Vote(judge="a", grade="CORRECT"),
        Vote(judge="b", grade="INCORRECT", reason="no"),
    )
    split = [replace(one, votes=votes, judge="a b") for one in answered("ccc")]
    made = run_of(split, judge="a b")
    text = Page(html.render(made)).text
    for word in (
        "Krippendorff's alpha",
        "Items over which the panel split: 3",
        "b : INCORRECT no",
    ):
        assert word in text, word
    key = made.records[0].key
    rules = RulesCheck(
        judged=20,
        settled=12,
        difference=gate("PASS").estimate,
        differing=(key,),
        silent=1,
        grades={key: "INCORRECT"},
    )
    checked = replace(made, judging=Judging(graded=20, settled=12, rules=rules))
    text = Page(html.render(checked)).text
    assert "Items that rules settled and the model grades otherwise: 1" in text
    assert "model : INCORRECT" in text
    assert "Rules settled 12 of 20 items without a call" in text
    assert "1 brought no grade" in text
    assert "12 (60 %)" in text
    made = full(2)
    cell = ConfusionCell(label="CORRECT", grade="INCORRECT", count=4)
    found = run_of(
        [*answered("ci"), *labelled("cci")], facts_dataset(), judged_dataset()
    )
    (one,) = found.judging.calibrations
    both = {"agreement": 0.6, "mean_difference": 0.5}
    known = replace(
        one, confusion=(cell,), trusted=False, reason="agreement 0.5 < 0.6", floor=both
    )
    limit = {"agreement": 0.55}
    known = replace(
        known, stand_in="the placeholder judge", floor_limit=limit, constructed=3
    )
    judging = replace(found.judging, calibrations=(known,), unmeasured=("simpleqa:hu",))
    text = Page(html.render(replace(made, judging=judging))).text
    for word in ("not trusted", "agreement 0.5 < 0.6", "agreement ≥ 0.6", "facts:en",
                 "mean difference within ±0.5", "the placeholder judge",
                 "agreement, all of its interval ≥ 0.55", "3 unit tests of the judge, from the",
                 "no sample of real answers",
                 "No labelled answers measure the judge of simpleqa:hu"):  # fmt: skip
        assert word in text, word
    reached = replace(judging, calibrations=(replace(known, trusted=True),))
    page = Page(html.render(replace(made, judging=reached)))
    badges = [
        one.get("class")
        for name, one in page.tags
        if "badge" in (one.get("class") or "")
    ]
    assert "placeholder judge" in page.text
    assert "trusted" not in page.text.replace("not trusted", "").replace(
        "untrusted", ""
    )
    assert "badge INCONCLUSIVE" in badges


STATES: tuple[State, ...] = ("passed", "failed", "error")


def many(count: int) -> tuple[Record, ...]:
    return tuple(
        ended(number, "en", STATES[number % 3]) for number in range(1, count + 1)
    )


def test_a_page_lists_what_matters_of_a_large_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Up to a limit all; above it flips, ungraded, misses and others, so many of each."""
    monkeypatch.setattr(html, "MAX_LISTED", 30)
    monkeypatch.setattr(html, "DRAWN", 4)
    made = report(many(30))
    assert len(listed(made)) == 30
    assert "Answers that matter" not in html.render(made)
    records = many(33)
    flips = tuple(
        Change(key=one.key, flip="broke", grade="CORRECT") for one in records[1:9:3]
    )
    compared = Comparison(model="old", judge="judge", sha256="ab", changes=flips)
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
