"""Claims about what keeps a baseline from deciding, and about items that it does not have."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from qagate.cases.dataset import Dataset, EvidenceRule, Sampling, SliceSample, Threshold
from qagate.cases.plan import draw_order
from qagate.command import main
from qagate.evaluators.kinds import kind_of
from qagate.reports.compare.pairs import PairedSlice, pair_records
from qagate.reports.gates.change import change_gates
from qagate.reports.render.console import gate_lines
from qagate.reports.run.record import Record
from qagate.reports.run.report import GateResult, Report, Role
from qagate.reports.verdict.rebuild import rebuilt
from tests.support.figures import some
from tests.support.fixtures import Captured
from tests.support.labelled_answers import label_dataset, label_set, right
from tests.support.made_records import make_dataset, make_slice
from tests.support.made_runs import (
    answered,
    before,
    facts_dataset,
    graded_slice,
    run_of,
    with_records,
    written,
)
from tests.support.samples import rendered
from tests.support.tables import tabled

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
        (
            {"sample": TEN},
            "the baseline asked 200 of 900, seed 3; compare with a run of all, or of the same",
        ),
    ],
)
def test_a_part_of_a_slice_decides_nothing(changes: dict[str, Any], words: str) -> None:
    old = run_of(answered(LETTERS), DROPS)
    part = replace(old.slices[0], **changes)
    gate = gate_of(answered(LETTERS), replace(old, slices=(part,)))
    assert gate.state == "INCONCLUSIVE"
    assert gate.reason.startswith(words)


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("role", ["baseline", "anchor"])
def test_a_run_is_not_held_against_its_own_answers(role: Role, moved: bool) -> None:
    """Nothing differs from itself, also where rows moved and an item got its grade since."""
    own = run_of(answered("c" * 199 + "e"), DROPS)
    new = [replace(one, row=one.row + moved) for one in answered(LETTERS)]
    earlier = replace(with_records(before(own), own.records), role=role)
    (gate,) = run_of(new, DROPS, baseline=earlier).decision.gates
    assert gate.state == "INCONCLUSIVE"
    assert gate.reason.startswith(f"the {role} holds this run's own answers")
    assert gate.remedy == "compare with another run"


def test_one_slice_of_its_own_answers_is_found() -> None:
    """Also where another slice moved; but not few answers, or ones that are all alike."""
    dataset = facts_dataset(graded_slice("en", DROP), graded_slice("pl", DROP))
    for own, fields in ((LETTERS, {}), ("c" * 20, {}), (LETTERS, {"answer": "Yes"})):
        old = run_of(
            [*answered("i" + LETTERS), *answered(own, "pl", **fields)], dataset
        )
        new = [*answered("c" + LETTERS), *answered(own, "pl", **fields)]
        earlier = with_records(before(old), old.records)
        found = run_of(new, dataset, baseline=earlier).decision.gates
        assert ["own answers" in x.reason for x in found] == [
            False,
            own == LETTERS and not fields,
        ]


@pytest.mark.parametrize(
    ("now", "then", "state"),
    [
        (TEN, TEN, "PASS"),
        (
            TEN,
            None,
            "PASS",
        ),  # all were asked then, those of the pinned sample among them
        (TEN, replace(TEN, seed=4), "INCONCLUSIVE"),
        (None, TEN, "INCONCLUSIVE"),
    ],
)
def test_samples_are_alike(
    now: SliceSample | None, then: SliceSample | None, state: str
) -> None:
    """A pinned sample may be held against itself, or against a run of all items."""
    pins = replace(DROPS, sampling=Sampling(limit=200, seed=3))
    old = run_of(answered(LETTERS), pins, samples={"facts:en": then} if then else {})
    samples = {"facts:en": now} if now else {}
    made = run_of(answered(LETTERS), pins, baseline=old, samples=samples)
    assert made.decision.gates[0].state == state


@tabled("added", "ungraded", "state", "words")
def test_few_may_lack_a_partner(
    added: int, ungraded: int, state: str, words: str
) -> None:
    """One in twenty, for any reason but new data."""
    old = answered("e" * ungraded + "c" * (200 - ungraded))[: 200 - added]
    gate = gate_of(answered(LETTERS), run_of(old, DROPS))
    assert gate.state == state
    assert words in gate.reason


@pytest.mark.parametrize(("changed", "state"), [(10, "PASS"), (11, "INCONCLUSIVE")])
def test_little_data_may_change_and_that_is_said(changed: int, state: str) -> None:
    """One in twenty at most, chosen by whoever: in the gate's line, and with the way out."""
    new = answered(LETTERS)
    old = [replace(one, digest="other") for one in new[:changed]] + new[changed:]
    gate = gate_of(new, run_of(old, DROPS))
    assert gate.state == state
    assert f", {200 - changed} of 200 pairs" in gate_lines(gate)[0]
    left_out = f"{200 - changed} pairs; {changed} items whose data changed left out"
    why = f"the data of {changed} of 200 items changed since the baseline, more than 5%; `qagate "
    assert (left_out if state == "PASS" else why) in gate.reason


@tabled("gone", "state", "words")
def test_lost_hard_questions_decide_nothing(gone: int, state: str, words: str) -> None:
    """Up to one in twenty is said in the gate's own sentence."""
    left = 200 - gone
    gate = gate_of(
        answered("c" * left), run_of(answered("c" * left + "i" * gone), DROPS)
    )
    assert gate.state == state
    assert words in gate.reason


@pytest.mark.parametrize(("gone", "state"), [(0, "PASS"), (60, "INCONCLUSIVE")])
def test_a_sample_lacks_only_what_comes_after_its_last_item(
    gone: int, state: str
) -> None:
    """What was taken out of the file before that is missed, as in a whole run."""
    pins = replace(DROPS, sampling=Sampling(limit=200, seed=3))
    whole = sorted(answered("c" * 900), key=lambda one: draw_order(one.id, 3))
    new, old = whole[gone : gone + 200], run_of(whole, DROPS)
    made = run_of(
        new, pins, baseline=old, samples={"facts:en": replace(TEN, of=900 - gone)}
    )
    assert made.decision.gates[0].state == state


def test_a_run_need_not_have_all_repeats_of_the_baseline() -> None:
    """Further repeats on either side are no items, those left out are said; new ones are not."""
    once = answered(LETTERS)
    more = [
        replace(one, repeat=n, key=f"{one.key}~r{n}") for n in (2, 3) for one in once
    ]
    assert gate_of(once, run_of([*once, *more], DROPS)).state == "PASS"
    made = run_of([*once, *more], DROPS, baseline=run_of(once[:199], DROPS))
    (gate,) = made.decision.gates
    assert gate.state == "PASS"
    assert "199 pairs; 1 item without a partner" in gate.reason
    assert "400 repeats left out, as the baseline has fewer repeats" in gate.reason
    (one,) = some(made.comparison).slices
    assert (one.both_right, one.added, one.repeats) == (199, 1, 400)


ONE, LAXER, TWO = ({"name": name, "text": text} for name, text in ("ax", "a.", "by"))


@pytest.mark.parametrize(
    ("kind", "now", "states"),
    [
        ("graded", LAXER, ["PASS", "INCONCLUSIVE"]),
        ("checked", LAXER, ["INCONCLUSIVE"] * 2),
        ("checked", ONE, ["INCONCLUSIVE"] * 2),
    ],
)
def test_another_check_decides_no_change(
    kind: str, now: object, states: list[str]
) -> None:
    """Of its own metric, and where checks alone decide of the share that passes."""
    rules = DROP, replace(DROP, of="check_a")
    data = facts_dataset(graded_slice("en", *rules, kind=kind_of(kind), rubric=None))
    grade = {"grade": "PASS"} if kind == "checked" else {}
    records = answered(LETTERS, measures={"check_a": 1.0}, score=None, **grade)
    then, now = (
        {"slices": {"facts:en": {"checks": some}}} for some in ([ONE, TWO], [now])
    )
    old = run_of(records, data, provenance=then)
    gates = run_of(records, data, baseline=old, provenance=now).decision.gates
    assert [one.state for one in gates] == states


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
    assert last_line(WORSE, BAR, wide) == (
        "GATES PASS (10 of 10): exit 0; 75 items missed, as the gates allow; but facts:pl lost "
        "75 of 300 answers"
    )
    assert "lost" not in last_line(OLD[:-3] + "iii", BAR, wide)
    laxer = ("facts:en drop <= 0.9 in place of drop <= 0.05",)
    assert last_line(OLD, BAR, POOL, laxer=laxer).endswith(
        f"; the gates file is laxer: {laxer[0]}"
    )
    for items, said in ((3, "exit 0; only 3 of 300 items of facts:en"), (50, "exit 0")):
        sample = {"facts:en": SliceSample(items=items, of=300, seed=6)}
        pinned = facts_dataset(sampling=Sampling(limit=items, seed=6))
        line = run_of(answered("c" * items), pinned, samples=sample).decision.line
        assert line.endswith(said)


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
        ("c" * 300, 40, "needs above -0.088: judge J 0.88", ""),
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
    first, second, third = (
        f"{written(run(one), tmp_path / name)}" for name, one in made.items()
    )
    both = [f"--baseline={second}", f"--anchor={first}"]
    assert main(["gate", third, both[0]]) == 0
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
