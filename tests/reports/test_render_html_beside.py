"""``report.html`` beside a baseline, across languages, and on its judge, as text."""

from dataclasses import replace

from evaluators.core import Vote
from reports.render import html
from reports.run.evidence import ConfusionCell, Judging, RulesAudit
from reports.run.report import Report
from tests.reports.test_judging import judged_dataset, labelled
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of
from tests.support.pages import Page, items
from tests.support.samples import full, gate, report


def compared(new: str, old: str) -> Report:
    """Return the report of a run beside a baseline; both are given by letters of grades."""
    return run_of(answered(new), baseline=run_of(answered(old)))


def test_an_item_beside_the_baseline_says_what_became_of_it() -> None:
    """Its flip, and the baseline's answer, grade and reason where they differ."""
    made = compared("cic", "cc")
    found = items(html.render(made))
    assert [item["flip"] for item in found] == ["same", "broke", "new"]
    assert found[0]["before"] is None
    assert found[1]["before"] == ["c: an answer to 1", "CORRECT", "It is CORRECT."]
    assert found[2]["before"] is None


def test_changed_items_stand_side_by_side() -> None:
    """Those that broke first, a few at once, the others to unfold; each leads to its item."""
    text = html.render(compared("i" * 10 + "c" * 6, "c" * 10 + "i" * 6))
    page = Page(text)
    assert "Right then, wrong now: 10" in page.text
    assert "Wrong then, right now: 6" in page.text
    assert text.index("Right then") < text.index("Wrong then")
    assert page.text.count("more side by side") == 2
    assert page.named("a", href="#item-facts-en-i0")
    assert "c: an answer to 0" in page.text
    assert "i: an answer to 0" in page.text


def test_a_slice_beside_the_baseline_has_effect_sizes() -> None:
    """Difference with interval, McNemar's p, odds ratio and counts."""
    text = Page(html.render(compared("i" * 8 + "c" * 12, "c" * 20))).text
    for word in ("-0.400 [", "▲ 0", "▼ 8", "0.008", "0.00 [", "12 right in both", "20 pairs"):
        assert word in text, word


def test_another_judge_is_said_loudly_three_times() -> None:
    """Beside the verdict, in the comparison and where the judge is described."""
    old = run_of([replace(one, judge="judge-2025") for one in answered("cc")])
    text = html.render(run_of(answered("ci"), baseline=old))
    assert text.count('class="alarm"') == 3
    assert "the judge changed from judge-2025 to judge-2026" in Page(text).text


def test_nothing_that_flipped_is_said() -> None:
    """A comparison without a change says so, and one without known items too."""
    assert "No item passes now that failed then" in html.render(compared("ci", "ci"))
    assert "the comparison decides nothing" in html.render(report(baseline="last/"))


def test_parity_lists_what_is_right_in_one_language_alone() -> None:
    """The gap with its interval, and both answers beside each other."""
    records = [*answered("ccc"), *answered("cii", "bg")]
    made = run_of(records, facts_dataset(graded_slice(), graded_slice("bg")))
    text = Page(html.render(made)).text
    assert "facts: bg − en -0.667 [" in text
    assert "2 right in en, wrong in bg" in text
    assert "F1" in text


def test_the_judge_is_described() -> None:
    """Its panel, audit, splits and corrected rates stand in its section."""
    votes = (Vote(judge="a", grade="CORRECT"), Vote(judge="b", grade="INCORRECT", reason="no"))
    split = [replace(one, votes=votes, judge="a b") for one in answered("ccc")]
    made = run_of(split, judge="a b")
    text = Page(html.render(made)).text
    for word in ("Krippendorff's alpha", "Items over which the panel split: 3", "b : INCORRECT no"):
        assert word in text, word
    audit = RulesAudit(judged=20, settled=12, silent=1, disagreement=gate("PASS").estimate)
    audited = replace(made, judging=Judging(graded=20, settled=12, audit=audit))
    text = Page(html.render(audited)).text
    assert "Rules settled 12 of 20 items without a call" in text
    assert "1 brought no verdict" in text
    assert "12 (60 %)" in text


def test_calibration_stands_against_its_floor() -> None:
    """Agreement with the floor, trust, confusion and the slices that hang on it."""
    made = full(2)
    cell = ConfusionCell(label="CORRECT", grade="INCORRECT", count=4)
    found = run_of([*answered("ci"), *labelled("cci")], facts_dataset(), judged_dataset())
    (one,) = found.judging.calibrations
    both = {"agreement": 0.6, "mean_difference": 0.5}
    known = replace(one, confusion=(cell,), trusted=False, reason="agreement 0.5 < 0.6", floor=both)
    limit = {"agreement": 0.55}
    known = replace(known, stand_in="the offline judge stands in", floor_limit=limit, constructed=3)
    judging = replace(found.judging, calibrations=(known,), unmeasured=("simpleqa:hu",))
    text = Page(html.render(replace(made, judging=judging))).text
    for word in ("not trusted", "agreement 0.5 < 0.6", "agreement ≥ 0.6", "facts:en",
                 "mean difference within ±0.5", "the offline judge stands in",
                 "agreement, all of its interval ≥ 0.55", "3 unit tests of the judge, from the",
                 "no sample of real answers",
                 "No labelled answers measure the judge of simpleqa:hu"):  # fmt: skip
        assert word in text, word


def test_every_id_is_there_once() -> None:
    """Links and labels lead to one place."""
    page = Page(html.render(compared("ic", "ci")))
    ids = [found["id"] for _, found in page.tags if "id" in found]
    assert len(ids) == len(set(ids))
    anchors = {(found["href"] or "")[1:] for found in page.named("a") if found.get("href")}
    assert {one for one in anchors if not one.startswith(("item-", "items?"))} <= set(ids)
