"""``summary.md`` and the terminal: verdict, figures and comparison, whatever the texts hold."""

import re
from dataclasses import replace

import pytest

from evaluators.statistics.intervals import UNDEFINED, Estimate, number
from reports.render import console, markdown, words
from reports.run import clean
from reports.run.evidence import Change, Comparison
from reports.run.report import Decision, Report
from tests.support.hostile import HOSTILE
from tests.support.made_records import make_record
from tests.support.made_runs import answered, run_of
from tests.support.samples import ended, full, gate, part, record, report
from tests.support.tables import tabled


def test_the_verdict_comes_first() -> None:
    """One glance says whether the model may ship; no gates is not a pass.

    FAIL, then INCONCLUSIVE, then PASS; what limits the verdict is said beside it.
    """
    text = markdown.render(full())
    assert text.startswith("## FAIL (exit code 1)\n\nGATES FAIL")
    assert "compared with ` last-release `" in text
    states = re.findall(r"\| (FAIL|INCONCLUSIVE|PASS) \|", text)
    assert states == ["FAIL"] * 2 + ["INCONCLUSIVE"] * 2 + ["PASS"] * 3
    for word in ("boolq:be (partial)", "- 23 error: ` model: timeout `",
                 "- The judge was not measured for hu.",
                 "- eba:en: overlap: an offline stand-in"):  # fmt: skip
        assert word in text
    made = report(decision=Decision(gates=(), code=0, line="no gates"))
    assert markdown.render(made).startswith("## NO GATES")


def test_no_measure_stands_without_its_interval() -> None:
    """The measures that sum a slice up, the F-score among them, and one item is an item."""
    span = Estimate(value=0.5, low=0.25, high=0.75, n=1)
    one = replace(part("graded", (record(1),), {}), measures={"correct": span, "f_score": span})
    text = markdown.render(replace(report(), slices=(one,)))
    assert r"correct 0.500 \[0.250, 0.750\], f\_score 0.500 \[0.250, 0.750\]" in text
    assert "1 item planned" in text


@pytest.mark.parametrize(
    ("files", "shown"),
    [(("a.csv", "a.csv"), "` recorded (a.csv) `"), (("a.csv", "b.csv"), "` recorded `"),
     (("",), "` recorded `"), ((), "` recorded `")],
)  # fmt: skip
def test_recorded_answers_are_named_by_their_file(files: tuple[str, ...], shown: str) -> None:
    """Two models' recorded answers can be told apart, where a run reads one file."""
    slices = {f"s:{number}": {"file": file} for number, file in enumerate(files)}
    made = report(model="recorded", provenance={"slices": slices} if files else {})
    assert f"Model {shown}," in markdown.render(made)
    live = report(model="openai:new", provenance={"slices": slices})
    assert "Model ` openai:new `," in markdown.render(live)


def test_every_table_row_has_the_columns_of_its_header() -> None:
    """Also where names and reasons hold pipes and line ends."""
    odd = gate("FAIL", dataset="a|b\nc", reason="x | y\n| z |")
    text = markdown.render(report(decision=Decision(gates=(odd,), code=1, line="")))
    table = text.partition("<summary>Gates (")[2].partition("</details>")[0].splitlines()
    lines = [line for line in table if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {8}


def test_misses_are_few_and_wrong_ones_come_first() -> None:
    """At most three a slice and ten in all; a wrong answer before an unanswered question."""
    misses = (
        ended(1, "bg", "failed", grade="NOT_ATTEMPTED", answer="Не зная."),
        *(ended(n, "bg", "failed") for n in range(2, 5)),
        record(9, outcome="failed", grade=None, rating=2, answer=""),
    )
    text = markdown.render(report(misses))
    shown = [line for line in text.splitlines() if " row " in line]
    assert len(shown) == 4
    assert "NOT\\_ATTEMPTED" not in text
    assert "row 9, rating 2" in text
    assert text.count("got *(empty)*") == 1


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_stays_in_its_span(hostile: str) -> None:
    """With the code spans taken out, nothing of a model's text is left."""
    items = (record(1, outcome="failed", grade="INCORRECT", question=hostile, answer=hostile),)
    text = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", markdown.render(report(items)))
    for word in ("<script", "<img", "@everyone", "Fixes", "x.invalid", "CNRY", "owned", "long"):
        assert word not in text
    assert len(text.splitlines()) < 40


def test_the_summary_fits_a_comment_however_large_the_run() -> None:
    """Below 60,000 bytes, cut at a line end, and said; however long answers are."""
    gates = tuple(gate("FAIL", reason="я" * 5000) for _ in range(300))
    wide = tuple(
        record(n, dataset=f"d{n}", outcome="failed", question="😀" * 300, answer="`" * 300)
        for n in range(200)
    )
    slices = tuple(part("graded", (item,), {"correct": 0.5}) for item in wide)
    made = report(wide, decision=Decision(gates=gates, code=1, line="x"), slices=slices)
    text = markdown.render(made)
    assert len(text.encode()) <= markdown.MAX_BYTES
    assert "240 more in the report." in text
    assert text.rstrip().endswith("have it all.*")
    old = run_of(answered("c" * 400, answer="x" * 5000))
    text = markdown.render(run_of(answered("i" * 400, answer="щ" * 5000), baseline=old))
    assert len(text) < 65_536
    assert len(text.encode()) <= markdown.MAX_BYTES


@pytest.mark.parametrize(
    ("code", "complete", "word"),
    [(0, True, "PASS"), (1, True, "FAIL"), (2, True, "INCOMPLETE"), (3, True, "ERROR"),
     (6, True, "INCONCLUSIVE"), (0, False, "INCOMPLETE"), (1, False, "INCOMPLETE")],
)  # fmt: skip
def test_the_word_for_each_code(code: int, complete: bool, word: str) -> None:
    """A run that was cut short is never shown as passed."""
    decision = replace(report().decision, code=code)
    assert report(decision=decision, complete=complete).verdict == word


def test_what_decides_stands_before_the_first_fold() -> None:
    """Verdict, gates that did not pass, losses and regressions in 2,500 characters."""
    gates = tuple(gate("FAIL", dataset=f"data{n}", reason="x" * 900) for n in range(30))
    base = report()
    made = replace(base, decision=Decision(gates=gates, code=1, line="GATES FAIL (30 of 30)"))
    above, _, below = markdown.render(made).partition("<details>")
    assert len(above) <= 2500
    assert "### Gates that did not pass" in above
    assert "more below" in above
    assert below.count("<details>") + 1 == below.count("</details>")


def test_an_address_can_be_copied() -> None:
    """It stands in a code span, as it is; so nothing links to it."""
    said = "openai:m@http://127.0.0.1:4111/v1, see https://example.org/a_b."
    assert clean.prose(said) == (
        "`openai:m@http://127.0.0.1:4111/v1`, see `https://example.org/a_b`."
    )


def test_numbers_in_words() -> None:
    """Undefined is said, minus zero is zero, an unknown price is unknown."""
    assert number(None) == number(float("nan")) == "undefined"
    assert number(-0.0) == number(-1e-12) == "0.000"
    assert [number(one) for one in (0.005, 0.00412, 0.0000731)] == ["0.005", "0.00412", "0.0000731"]
    assert words.interval(Estimate(value=1.0, low=None, high=1.0, n=1)) == "–"
    assert words.money(None) == "unknown"
    assert words.money(1234.5) == "$1,234.5000"
    assert words.bounds(gate("FAIL", worst=None, best=None)) == "undefined"


def regressed() -> Report:
    """A run of seven regressions beside its baseline, with hostile text in answers and reasons."""
    new = answered("nniiiiicc", answer=HOSTILE[0], reason=HOSTILE[1])
    old = run_of(answered("cccccccci", answer=HOSTILE[2]))
    return run_of(new, baseline=old)


def test_the_worst_regressions_come_first_and_are_few() -> None:
    """Wrong answers before silent ones, five at most, each with both answers; no other misses.

    Pairs, fixed, broke, difference with interval, p-value and odds ratio, a row a slice.
    """
    text = markdown.render(regressed())
    part = text.partition("### Worst regressions")[2].partition("<details>")[0]
    lines = [line for line in part.splitlines() if line.startswith("- ")]
    assert len(lines) == 5
    assert all("CORRECT → INCORRECT" in line for line in lines)
    assert "2 more in the report." in part
    assert "Some of the misses" not in text
    assert "| facts:en | 9 | 1 | 7 | -0.667 \\[-0.907, -0.053\\] | 0.070 | 0.14" in text
    assert "Compared with the baseline" not in markdown.render(report())


def test_a_changed_judge_is_said_loudly() -> None:
    """In bold, above the comparison; on the terminal in capitals, before the items."""
    made = run_of(answered("cce"), baseline=run_of(answered("cc", judge="judge-2025")))
    text = markdown.render(made)
    assert "- **facts:en: the judge changed from judge-2025 to judge-2026; " in text
    assert text.index("Another judge") < text.index("Compared with the baseline")
    lines = list(console.comparison(made))
    assert any(line.startswith("WARNING: facts:en: the judge changed") for line in lines)
    assert any("1 new" in line for line in lines)
    assert list(console.comparison(report())) == []


@tabled("figures", "odds", "signed")
def test_effect_sizes_have_words(figures: list[float | None], odds: str, signed: str) -> None:
    """An end without bound is infinite, and undefined is neither 0 nor NaN."""
    value, low, high = figures
    estimate = Estimate(value=value, low=low, high=high, n=4)
    if odds == "–":
        estimate = UNDEFINED
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
