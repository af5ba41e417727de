"""Claims about what keeps a baseline from deciding, and about items that it does not have."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from qagate.cases.dataset import Dataset, EvidenceRule, Sampling, SliceSample, Threshold
from qagate.command import main
from qagate.reports.compare.sides import PairedSlice
from qagate.reports.compare.states import pair_records
from qagate.reports.gates.change import change_gates
from qagate.reports.render.console import gate_lines
from qagate.reports.run.record import Record
from qagate.reports.run.report import GateResult, Report
from qagate.reports.verdict.rebuild import rebuilt
from tests.support.figures import some
from tests.support.fixtures import Captured
from tests.support.labelled_answers import label_dataset, label_set, right
from tests.support.made_records import make_dataset, make_slice
from tests.support.made_runs import (
    answered,
    as_read,
    before,
    facts_dataset,
    graded_slice,
    run_of,
    written,
)
from tests.support.samples import rendered

DROP = Threshold(measure="drop", max=0.1, evidence="confident", fail="zero")
DROPS = facts_dataset(graded_slice("en", DROP))
LETTERS = "c" * 200
TEN = SliceSample(items=200, of=900, seed=3)


def gate_of(new: Sequence[Record], old: Report) -> GateResult:
    """Return the drop gate of a run against a baseline."""
    (gate,) = run_of(new, DROPS, baseline=before(old)).decision.gates
    return gate


def test_the_same_answers_pass_against_a_whole_run() -> None:
    gate = gate_of(answered(LETTERS), run_of(answered(LETTERS), DROPS))
    assert gate.state == "PASS"
    assert gate.reason.startswith("new - old is 0")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"complete": False}, "the baseline was cut short"),
        ({"slices": ()}, "the baseline knows no facts:en"),
    ],
)
def test_a_run_without_the_whole_slice_decides_nothing(
    changes: dict[str, Any], words: str
) -> None:
    old = replace(run_of(answered(LETTERS), DROPS), **changes)
    gate = gate_of(answered(LETTERS), old)
    assert gate.state == "INCONCLUSIVE"
    assert gate.reason.startswith(words)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"partial": True}, "only a part of the baseline's slice was run"),
    ],
)
def test_a_part_of_a_slice_decides_nothing(changes: dict[str, Any], words: str) -> None:
    old = run_of(answered(LETTERS), DROPS)
    part = replace(old.slices[0], **changes)
    gate = gate_of(answered(LETTERS), replace(old, slices=(part,)))
    assert gate.state == "INCONCLUSIVE"
    assert gate.reason.startswith(words)


@pytest.mark.parametrize("added", [1, 40, 150, 180])
def test_items_that_the_baseline_lacks_are_not_paired(added: int) -> None:
    """They keep no gate open, however many; the reason says how many there are."""
    gate = gate_of(answered(LETTERS), run_of(answered("c" * (200 - added)), DROPS))
    assert gate.state == ("PASS" if added < 180 else "INCONCLUSIVE")
    assert f"{200 - added} pairs; {added} item" in gate.reason
    assert f"that the baseline lacks left out, {added / 2:.0f}% of all" in gate.reason


def test_items_that_this_run_lacks_count_at_their_worst() -> None:
    """Nobody reads their old answers, so these may have been right, or wrong."""
    old = run_of(answered("c" * 150 + "i" * 50), DROPS)
    gate = gate_of(answered("c" * 150 + "i" * 50)[40:], old)
    assert gate.worst == pytest.approx(-0.2)
    assert gate.state == "INCONCLUSIVE"
    assert "40 missing items: at worst -0.2, at best 0.2" in gate.reason


def test_an_edited_question_counts_at_its_worst() -> None:
    """Its reason names the way that costs nothing."""
    old = answered(LETTERS)
    new = [replace(record, question="Easy?") for record in old[:30]] + old[30:]
    gate = gate_of(new, run_of(old, DROPS))
    assert (gate.state, gate.worst) == ("INCONCLUSIVE", -0.15)
    assert "30 edited items: at worst -0.15" in gate.reason
    assert "retire its id and add it under a new one" in gate.reason
    assert "170 of 200 pairs" in gate_lines(gate)[0]


def test_another_gold_is_no_edit() -> None:
    old = answered(LETTERS)
    new = [replace(record, expected="else", digest="other") for record in old]
    assert gate_of(new, run_of(old, DROPS)).state == "PASS"


def test_items_that_a_new_sample_leaves_out_are_absent() -> None:
    """A sample that is drawn after the fact may have been drawn until it passed."""
    pins = replace(DROPS, sampling=Sampling(limit=200, seed=3))
    old = run_of(answered("c" * 900), DROPS)
    samples = {"facts:en": TEN}
    made = run_of(answered(LETTERS), pins, baseline=old, samples=samples)
    (gate,) = made.decision.gates
    assert gate.state == "INCONCLUSIVE"
    assert "700 missing items" in gate.reason


def test_a_run_of_all_items_beside_a_sample_goes_by_the_sample() -> None:
    """What the sample left out is added: it is not paired, and named."""
    pins = replace(DROPS, sampling=Sampling(limit=200, seed=3))
    old = run_of(answered(LETTERS), pins, samples={"facts:en": TEN})
    (gate,) = run_of(answered("c" * 300), DROPS, baseline=old).decision.gates
    assert gate.state == "PASS"
    assert "200 pairs; 100 items that the baseline lacks left out" in gate.reason


def test_the_same_sample_again_decides() -> None:
    pins = replace(DROPS, sampling=Sampling(limit=200, seed=3))
    old = run_of(answered(LETTERS), pins, samples={"facts:en": TEN})
    made = run_of(answered(LETTERS), pins, baseline=old, samples={"facts:en": TEN})
    assert made.decision.gates[0].state == "PASS"


def test_repeats_that_this_run_lacks_are_missing() -> None:
    """Fewer repeats would choose which answers are compared."""
    once = answered(LETTERS)
    again = [replace(one, repeat=2, key=f"{one.key}~r2") for one in once]
    gate = gate_of(once, run_of([*once, *again], DROPS))
    assert gate.state == "INCONCLUSIVE"
    assert "200 missing items" in gate.reason


def test_further_repeats_are_not_paired() -> None:
    once = answered(LETTERS)
    again = [replace(one, repeat=2, key=f"{one.key}~r2") for one in once]
    made = run_of([*once, *again], DROPS, baseline=run_of(once, DROPS))
    assert made.decision.gates[0].state == "PASS"
    (compared,) = some(made.comparison).slices
    assert (compared.both_right, compared.added, compared.repeats) == (200, 0, 200)


BAR = Threshold(measure="correct", min=0.1)
POOL = replace(DROP, max=0.15, fail="margin", pool=True)
OLD = "c" * 300
WORSE = "c" * 225 + "i" * 75
"""A loss of 25 points: shown beyond a margin of 0.15 in a language, 5 points over five of them."""


def languages(
    letters: str, *gates: Threshold, **fields: object
) -> tuple[list[Record], Dataset]:
    """Return five languages with the same gates, of which Polish has other answers."""
    names = ("en", "bg", "pl", "hu", "be")
    dataset = facts_dataset(*(graded_slice(name, *gates) for name in names), **fields)
    found = [
        one
        for name in names
        for one in answered(letters if name == "pl" else OLD, name)
    ]
    return found, dataset


def last_line(
    letters: str, *gates: Threshold, alone: bool = False, **fields: object
) -> str:
    """Return the last line of the languages, compared with answers that were all right."""
    new, dataset = languages(letters, *gates, **fields)
    baseline = None if alone else before(run_of(languages(OLD)[0], dataset))
    return run_of(new, dataset, baseline=baseline).decision.line


@pytest.mark.parametrize("evidence", ["confident", "estimate"])
def test_a_pool_fails_by_the_name_of_one_language(evidence: EvidenceRule) -> None:
    """The sum is within the margin, and one language is shown to be beyond it."""
    pool = replace(POOL, evidence=evidence)
    new, dataset = languages(WORSE, BAR, pooled=(pool,))
    baseline = before(run_of(languages(OLD)[0], dataset))
    decision = run_of(new, dataset, baseline=baseline).decision
    (gate,) = [one for one in decision.gates if one.threshold.pool]
    assert (gate.state, decision.code) == ("FAIL", 1)
    said = "pl is shown to be beyond the margin: -0.250, 95 % interval -0.302 to -0.204; all lang"
    assert gate.reason.startswith(said)
    assert "facts:* drop; facts:pl lost 75 of 300 answers" in decision.line
    assert "GATES PASS" in last_line("c" * 299 + "i", BAR, pooled=(pool,))


@pytest.mark.slow
def test_a_pool_of_languages_at_the_margin_rarely_fails_by_name() -> None:
    """Five languages that each lose exactly the margin: Holm's adjustment is for all of them."""
    random, named = Random(7), 0
    for _ in range(100):
        sides = [
            PairedSlice(
                slice_=make_slice("graded", language=name),
                pairing=pair_records(
                    answered("".join(random.choices("ci", (0.85, 0.15), k=200)), name),
                    answered("c" * 200, name),
                ),
            )
            for name in ("en", "bg", "pl", "hu", "be")
        ]
        (gate,) = change_gates(
            make_dataset(*(one.slice_ for one in sides), pooled=[POOL]), sides
        )
        named += "is shown to be beyond the margin" in gate.reason
    assert named <= 6  # at most 2.5 %, and twice the standard error


def test_a_last_line_hides_nothing() -> None:
    """What a language lost although all gates pass, laxer gates, and a small pinned sample."""
    wide = replace(DROP, max=0.5, fail="margin")
    assert last_line(WORSE, BAR, wide).startswith(
        "GATES PASS (10 of 10): exit 0; 75 items missed, as the gates allow; but facts:pl lost "
        "75 of 300 answers; "
    )
    assert "lost" not in last_line(OLD[:-3] + "iii", BAR, wide)
    laxer = ("facts:en drop <= 0.9 in place of drop <= 0.05",)
    assert last_line(OLD, BAR, POOL, laxer=laxer).endswith(
        f"; the gates file is laxer: {laxer[0]}"
    )
    for items, is_said in ((3, True), (50, False)):
        sample = {"facts:en": SliceSample(items=items, of=300, seed=6)}
        pinned = facts_dataset(sampling=Sampling(limit=items, seed=6))
        line = run_of(answered("c" * items), pinned, samples=sample).decision.line
        assert line.startswith("GATES PASS (1 of 1): exit 0; ")
        assert ("; only 3 of 300 items of facts:en" in line) is is_said


def test_a_baseline_without_a_paired_gate_decides_nothing() -> None:
    """Bars alone leave room for a loss; paired gates that lack one are counted, or required."""
    said = "NO drop OR rise GATE for facts:en, facts:bg, facts:pl and 2 more: exit 6"
    assert last_line(OLD, BAR).startswith(said)
    assert "exit 0" in last_line(OLD, BAR, pooled=(POOL,))
    assert "exit 0" in last_line(OLD, BAR, alone=True)
    line = last_line(WORSE, BAR, DROP, alone=True, pooled=(POOL,))
    assert line.startswith("GATES PASS (5 of 5): exit 0")
    assert line.endswith("; 6 paired gates had no baseline")
    required = last_line(WORSE, BAR, DROP, alone=True, baseline_required=True)
    assert required.startswith("NO BASELINE: exit 6; baseline: required in facts")
    assert "exit 0" in last_line(OLD, BAR, DROP, baseline_required=True)


@pytest.mark.parametrize(
    ("letters", "labels", "needs", "remedy"),
    [
        ("c" * 300, 40, "needs above -0.099: judge J 0.88", ""),
        ("c" * 276 + "i" * 24, 400, "", "more pairs"),
    ],
)
def test_what_would_decide_is_said(
    letters: str, labels: int, needs: str, remedy: str
) -> None:
    """The end that the judge's errors leave of a margin, and which of pairs and labels to buy."""
    drop = replace(DROP, fail="margin")
    known = label_set(right(labels, labels, labels), floor_limit={})
    dataset = facts_dataset(graded_slice("en", BAR, drop))
    old = before(run_of(answered("c" * 300), dataset))
    made = run_of(
        answered(letters),
        dataset,
        baseline=old,
        labels=known.records,
        label_datasets=(label_dataset(known),),
    )
    (gate,) = [one for one in made.decision.gates if one.threshold.paired]
    assert gate.needs.startswith(needs)
    assert gate.remedy.endswith(remedy)
    assert (gate.state == "PASS") is (not remedy)
    if remedy:
        lost = f"facts:en lost {letters.count('i')} of 300 answers"
        assert made.decision.line.endswith(f"{remedy}); {lost}")
    assert gate_lines(gate)[0].endswith(gate.needs)


SMALL = Threshold(measure="drop", max=0.05, evidence="estimate", fail="zero")
BOTH = facts_dataset(
    graded_slice("en", SMALL),
    graded_slice("bg", SMALL),
    pooled=(replace(SMALL, pool=True),),
)
FIRST, SECOND, THIRD = ("c" * (200 - lost) + "i" * lost for lost in (0, 8, 16))


def run(letters: str) -> Report:
    return run_of([*answered(letters), *answered(letters, "bg")], BOTH)


def against(letters: str, baseline: Report | None, anchor: Report | None) -> Report:
    """Return such a run compared with a baseline, an anchor or both."""
    fixed = replace(before(anchor, "anchor"), role="anchor") if anchor else None
    return rebuilt(run(letters), before(baseline) if baseline else None, fixed)


def states(report: Report) -> list[tuple[str, str]]:
    return [(f"{gate.slice} {gate.name}", gate.state) for gate in report.decision.gates]


def test_an_erosion_that_each_release_passes_fails_against_the_anchor() -> None:
    """Two drops of 0.04 are beyond 0.05 together; an anchor alone decides, if it is whole."""
    assert against(SECOND, run(FIRST), None).decision.code == 0
    assert against(THIRD, run(SECOND), None).decision.code == 0
    made = against(THIRD, run(SECOND), run(FIRST))
    assert made.decision.code == 1
    scopes = ("facts:en", "facts:bg", "facts:*")
    ends = (("drop", "PASS"), ("drop (anchor)", "FAIL"))
    assert states(made) == [
        (f"{one} {name}", state) for name, state in ends for one in scopes
    ]
    assert made.comparison is not None
    assert made.since_anchor is not None
    assert [one.broke for one in made.comparison.slices] == [8, 8, 16]
    assert [one.broke for one in made.since_anchor.slices] == [16, 16, 32]
    assert sum(one.flip == "broke" for one in made.comparison.changes) == 16
    assert made.since_anchor.changes == ()
    (note,) = (note for note in made.notes if "anchor" in note)
    assert note.startswith("new - old since the anchor: facts:en -0.080 [")
    files = rendered(made)
    assert "<summary>Compared with the anchor (" in files["summary.md"]
    for name in ("summary.md", "gates.xml", "report.html", "run.json"):
        assert "drop (anchor)" in files[name] or '"anchored": true' in files[name], name
    made = against(THIRD, None, run(FIRST))
    scopes = ("facts:en", "facts:bg", "facts:*")
    assert [name for name, _ in states(made)] == [
        f"{one} drop (anchor)" for one in scopes
    ]
    assert (made.decision.code, made.comparison, made.baseline) == (1, None, "")
    assert not any("no baseline" in note for note in made.notes)
    gate = against(
        SECOND, run(FIRST), replace(run(FIRST), complete=False)
    ).decision.gates[-1]
    assert (gate.name, gate.state) == ("drop (anchor)", "INCONCLUSIVE")
    assert gate.reason == "the anchor was cut short; compare with a complete run"


def test_recorded_runs_are_held_against_an_anchor(
    capsys: Captured, tmp_path: Path
) -> None:
    """gate, merge and compare take --anchor, read from where the run has it; gone is an error."""
    made = {"first": FIRST, "second": SECOND, "third": THIRD}
    first, second = (
        f"{written(run(made[name]), tmp_path / name)}" for name in ("first", "second")
    )
    compared_run = rebuilt(
        run(THIRD),
        as_read(before(run(SECOND), second)),
        replace(as_read(before(run(FIRST), first)), role="anchor"),
    )
    third = f"{written(compared_run, tmp_path / 'third')}"
    both = [f"--baseline={second}", f"--anchor={first}"]
    to, merged = str(tmp_path / "anchored"), str(tmp_path / "merged")
    assert main(["gate", third, *both, f"--to={to}"]) == 1
    assert "drop (anchor)" in capsys.readouterr().out
    assert main(["gate", to]) == 1
    assert main(["merge", to, "--to", merged]) == 1
    assert main(["merge", third, both[1], "--to", merged]) == 1
    capsys.readouterr()
    assert main(["compare", second, third, both[1]]) == 0
    said = capsys.readouterr().out
    assert said.count("slice            ") == 2
    assert "anchor: openai:new" in said
    Path(first).rename(tmp_path / "elsewhere")
    assert main(["gate", to]) == 4
    assert "or say where with --anchor=RUN" in capsys.readouterr().err
