"""Claims about audited gates: which pairs people look at, what it shows, and what decides."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.cases.config import load_gates, with_gates
from qagate.cases.dataset import AUDIT_SHARE as SHARE
from qagate.cases.dataset import Retired, Slice, Threshold
from qagate.evaluators.adjudications import (
    Adjudication,
    Adjudications,
    answer_digest,
)
from qagate.evaluators.core import CORRECT, INCORRECT, UsageError, Vote
from qagate.evaluators.statistics.betting import DECISIVE
from qagate.reports.compare.sides import PairedSlice
from qagate.reports.compare.states import pair_records
from qagate.reports.compare.ways import read_by
from qagate.reports.extras.sequential.audit import AuditedPair, audit_of
from qagate.reports.extras.sequential.sequential import (
    BROKEN,
    AuditedGate,
    audited_gates,
)
from qagate.reports.render.html import render
from qagate.reports.run.record import Record
from qagate.reports.run.run_json import load_report
from tests.support.auditing import answers, audited, verdicts, with_noise
from tests.support.declaring import declared, refusal
from tests.support.figures import some
from tests.support.made_runs import (
    RUBRIC,
    before,
    facts_dataset,
    graded_slice,
    run_of,
    written,
)

pytestmark = pytest.mark.untraced
LANGUAGES = ("en", "bg", "pl", "hu")
VOTES = (Vote(judge="a", grade=CORRECT), Vote(judge="b", grade=INCORRECT))


def side(
    new: Sequence[Record],
    old: Sequence[Record],
    people: Adjudications | None = None,
    rule: Threshold | None = None,
) -> PairedSlice:
    return PairedSlice(
        slice_=graded_slice("en", rule or audited()),
        pairing=pair_records(new, old),
        people=people or {},
    )


def gate_of(one: PairedSlice) -> AuditedGate:
    (gate,) = audited_gates(facts_dataset(one.slice_), [one])
    return gate


def by_id(one: PairedSlice) -> dict[str, AuditedPair]:
    return {pair.pair.new.id: pair for pair in audit_of([one], SHARE).pairs}


def truths(
    old: str, new: str, judged_old: str = "", judged_new: str = ""
) -> PairedSlice:
    """Return two runs that people judged throughout, with the judge's own verdicts."""
    before_, after = (
        answers(judged_old or old, "old"),
        answers(judged_new or new, "new"),
    )
    return side(after, before_, {**verdicts(before_, old), **verdicts(after, new)})


@pytest.mark.parametrize("lost", [200, 0])
def test_a_pool_fails_by_the_name_of_a_language_that_lost(lost: int) -> None:
    """Where people find one alone beyond the margin; the others hide it in the sum."""
    sides = []
    for language in LANGUAGES:
        wrong = lost if language == "pl" else 0
        runs = (("c" * 300, "old"), ("i" * wrong + "c" * (300 - wrong), "new"))
        old, new = (answers(*one, language=language, metadata={}) for one in runs)
        people = {**verdicts(old, runs[0][0]), **verdicts(new, runs[1][0])}
        part = graded_slice(language)
        sides.append(
            PairedSlice(slice_=part, pairing=pair_records(new, old), people=people)
        )
    dataset = facts_dataset(
        *(one.slice_ for one in sides), pooled=(audited(0.2, pool=True),)
    )
    (gate,) = audited_gates(dataset, sides)
    found = gate.result()
    assert found.state == ("FAIL" if lost else "PASS")
    assert found.reason.startswith("pl is shown to be beyond the margin: 95 %") == bool(
        lost
    )
    assert ("all languages: people: new - old is -0.1" in found.reason) == bool(lost)
    assert not gate.next_pairs


def test_what_stands_out_is_always_looked_at_and_the_same_text_never() -> None:
    """Flips, split votes, no verdict, masked texts; all others by chance, of a known size."""
    old, new = (
        answers("ccccc" + "c" * 2000, "old"),
        answers("icccc" + "c" * 2000, "new"),
    )
    old[1] = replace(old[1], votes=VOTES)
    new[2] = replace(new[2], votes=VOTES)
    new[3] = replace(new[3], outcome="error", grade=None)
    new[4] = replace(new[4], answer=old[4].answer)
    old[5], new[5] = (replace(run[5], answer="[key masked]") for run in (old, new))
    found = by_id(side(new, old))
    whys = ["flipped", "judges_differ", "judges_differ", "no_verdict", ""]
    first = [found[f"i{n}"] for n in range(5)]
    assert [one.plan.why for one in first] == whys
    assert [(one.plan.probability, one.drawn) for one in first] == [(1, True)] * 4 + [
        (0, False)
    ]
    others = [found[f"i{n}"] for n in range(5, 2005)]
    assert {(one.plan.why, one.plan.probability) for one in others} == {
        ("sample", SHARE)
    }
    assert sum(one.drawn for one in others) / 2000 == pytest.approx(SHARE, abs=0.03)


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(30)), st.integers(1, 30))
def test_the_order_is_that_of_the_items_alone(places: list[int], count: int) -> None:
    """Not of the file, the answers, the judge or the other items."""
    old, new = answers("c" * 30, "old"), answers("c" * 30, "new")
    whole = [one.pair.new.id for one in audit_of([side(new, old)], SHARE).pairs]
    picked = [replace(new[place], answer=f"else {place}") for place in places[:count]]
    judged = [replace(one, grade=INCORRECT, outcome="failed") for one in picked]
    part = [one.pair.new.id for one in audit_of([side(judged, old)], SHARE).pairs]
    kept = {one.id for one in picked}
    assert [one for one in part if one in kept] == [one for one in whole if one in kept]


def test_the_mean_is_the_truth_for_any_judge() -> None:
    """A model 10 points worse, under judges that are right, blind, or wrong throughout."""
    chance = random.Random(5)
    old = "".join(chance.choices("ci", (7, 3), k=2000))
    new = "".join("i" if one == "c" and chance.random() < 1 / 7 else one for one in old)
    truth = (new.count("c") - old.count("c")) / len(old)
    turned = old.translate(str.maketrans("ci", "ic"))
    for judged_old, judged_new in ((old, new), ("c" * 2000, "c" * 2000), (turned, new)):
        one = truths(old, new, judged_old, judged_new)
        estimate = gate_of(one).estimate
        assert estimate.value == pytest.approx(truth, abs=0.04)
        assert estimate.n == 2000


def test_a_judge_that_sees_nothing_cannot_make_a_worse_model_pass() -> None:
    """People find what broke; no judge blocks them, a part picked by hand does."""
    one = truths("c" * 1000, "cccci" * 200, "c" * 1000, "c" * 1000)
    result = gate_of(one).result()
    assert result.state == "FAIL"
    assert (some(result.audit).judged.value, some(result.audit).looked < 400) == (
        0,
        True,
    )
    one = truths("c" * 400, "c" * 400)
    assert (
        gate_of(replace(one, blocked="no trust", changed="another judge")).state
        == "PASS"
    )
    result = gate_of(replace(one, narrow="only a part")).result()
    assert (result.state, result.reason) == ("INCONCLUSIVE", "only a part")


@settings(deadline=None, max_examples=25)
@given(st.sets(st.integers(0, 199)), st.sets(st.integers(0, 199)), st.integers(0, 4))
def test_a_verdict_less_never_decides(old: set[int], new: set[int], share: int) -> None:
    """Missing verdicts give no PASS and no FAIL that all verdicts would not give."""
    truth = "ccci" * 50
    worse = "".join("i" if n % 10 < share else one for n, one in enumerate(truth))
    judged = truths(
        truth, worse, with_noise(truth, 0.1, "a"), with_noise(worse, 0.1, "b")
    )
    whole = replace(judged, slice_=graded_slice("en", audited(0.2)))
    gone = {
        digest for n, digest in enumerate(whole.people) if n in old or n - 200 in new
    }
    less = replace(
        whole, people={d: one for d, one in whole.people.items() if d not in gone}
    )
    assert gate_of(less).state in ("INCONCLUSIVE", gate_of(whole).state)


def test_without_verdicts_nothing_is_decided() -> None:
    """Nobody looked, nobody answered, or blank: open or failed; the same text passes alone."""
    nothing = gate_of(side([], [])).result()
    assert (nothing.state, nothing.estimate.value) == ("INCONCLUSIVE", None)
    unseen = gate_of(
        side(answers("c" * 300, "new"), answers("c" * 300, "old"))
    ).result()
    assert unseen.state == "INCONCLUSIVE"
    assert "more pairs to read: qagate review RUN" in unseen.reason
    records = answers("ci" * 200, "same")
    result = gate_of(side(records, records)).result()
    assert result.state == "PASS"
    assert "0 looked at of 400 pairs, 400 of the same text" in result.reason
    old, new = answers("c" * 300, "old"), answers("cce" * 100, "new")
    people = {**verdicts(old, "c" * 300), **verdicts(new, "cc " * 100)}
    gate = gate_of(side(new, old, people))
    assert gate.state == "INCONCLUSIVE"
    assert len(gate.audit.reached) == 300  # nothing of it is left to ask
    assert gate.next_pairs == []
    lone = replace(side(new, old, people), pairing=pair_records(new, old[:290]))
    assert min(one.ends[0] for one in audit_of([lone], SHARE).pairs) == -1
    old, new = answers("c" * 40, "old"), answers("i" * 40, "new")
    new = [replace(one, answer=" \n") for one in new]
    gate = gate_of(side(new, old))
    assert all(one.is_open and one.passes[1] is False for one in gate.audit.pairs)
    known = gate_of(side(new, old, verdicts(old, "c" * 40)))
    assert [one.ends[0] for one in known.audit.pairs] == [-1] * 40
    assert known.state == "FAIL"


def test_linked_items_are_one_unit() -> None:
    """A fact in four languages counts as one; what was found by chance still counts 4."""
    sides = [
        side(
            answers("c" * 50, "new", language=name),
            answers("c" * 50, "old", language=name),
        )
        for name in LANGUAGES
    ]
    audit = audit_of(sides, SHARE)
    assert [len(unit) for unit in audit.units] == [4] * 50
    assert audit.ends[0].largest == 4
    old, new = answers("c" * 200, "old"), answers("c" * 200, "new")
    people = {**verdicts(old, "c" * 200), **verdicts(new, "i" * 200)}
    drawn = [one for one in audit_of([side(new, old)], SHARE).pairs if one.drawn]
    kept = {
        digest: replace(one, picked="sample", probability=SHARE, pair=pair.key)
        for pair in drawn
        for digest, one in people.items()
        if one.item == pair.pair.new.key
    }
    graded = [
        replace(one, grade=INCORRECT, outcome="failed", adjudicated_by="Ана")
        for one in new
    ]
    again = by_id(side(graded, old, kept))
    found = {
        (again[one.pair.new.id].ends[0], again[one.pair.new.id].plan.why)
        for one in drawn
    }
    assert found == {(-4, "sample")}


def looked_at(one: PairedSlice, share: float) -> PairedSlice:
    """Return a slice after people looked at all pairs that this share draws, by its own people."""
    kept = dict(one.people)
    for pair in (found for found in audit_of([one], share).pairs if found.drawn):
        for record in (pair.pair.old, pair.pair.new):
            digest = answer_digest(record, record.answer or "")
            plan = pair.plan
            kept[digest] = replace(
                kept[digest],
                picked=plan.why,
                probability=plan.probability,
                pair=pair.key,
            )
    return replace(one, people=kept)


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.1, 0.25, 0.5, 1.0]), st.text("ab", min_size=1)),
        max_size=4,
    ),
    st.integers(0, 4),
)
def test_of_all_pairs_it_is_the_plain_mean(
    history: list[tuple[float, str]], worse: int
) -> None:
    """To the last digit, after any shares and judges: pairs keep no weight that is not due."""
    old = "ccci" * 25
    new = "".join("i" if n % 10 < worse else one for n, one in enumerate(old))
    people = truths(old, new).people
    for share, judge in [*history, (1.0, "")]:
        judged = (
            with_noise(old, 0.3, f"{judge} old"),
            with_noise(new, 0.3, f"{judge} new"),
        )
        people = looked_at(
            replace(truths(old, new, *judged), people=people), share
        ).people
    last = replace(truths(old, new, *judged), people=people)
    every = [one.ends[0] for one in audit_of([last], 1.0).pairs]
    whole = replace(audited(), share=1.0)
    gate = gate_of(side(answers(new, "new"), answers(old, "old"), people, whole))
    assert (
        sum(every) / len(every)
        == gate.estimate.value
        == (new.count("c") - old.count("c")) / 100
    )


def test_the_plan_of_the_first_form_stays() -> None:
    """Another share, order or judge is refused; a verdict that the judge lacked may come later."""
    old, new = "ccci" * 50, "ccic" * 50
    one = truths(old, new)
    plan = {pair.key: pair.plan for pair in audit_of([one], SHARE).pairs}
    kept = replace(one, plan=plan)
    assert gate_of(kept).audit.changed == ""
    half = replace(kept, slice_=graded_slice("en", replace(audited(), share=0.5)))
    other = replace(truths(old, new, "c" * 200, "c" * 200), plan=plan)
    salted = replace(kept, slice_=replace(kept.slice_, order="2027"))
    for changed, words in (
        (half, "`share: 0.25`, not 0.5 (200 pairs)"),
        (salted, "`order: `, not 2027"),
        (other, "other verdicts of the judge (100 pairs)"),
    ):
        found = gate_of(changed).result()
        assert (found.state, words in found.reason) == ("INCONCLUSIVE", True)
    blind = [
        replace(record, outcome="error", grade=None) for record in answers(new, "new")
    ]
    first = side(blind, answers(old, "old"), one.people)
    planned = {pair.key: pair.plan for pair in audit_of([first], SHARE).pairs}
    assert gate_of(replace(one, plan=planned)).audit.changed == ""


def test_one_open_pair_freezes_nothing() -> None:
    """Its figure counts at the middle of its bounds, the plot goes on, and a line names it."""
    old, new = "ccci" * 100, "ccci" * 100
    whole = truths(old, new, with_noise(old, 0.1, "a"), with_noise(new, 0.1, "b"))
    first = next(one for one in gate_of(whole).audit.pairs if one.drawn)
    gone = answer_digest(first.pair.new, first.pair.new.answer or "")
    less = replace(
        whole, people={key: one for key, one in whole.people.items() if key != gone}
    )
    gate, every = gate_of(less), gate_of(whole)
    assert gate.estimate.n == every.estimate.n == 400
    assert (
        abs((gate.estimate.value or 0) - (every.estimate.value or 0))
        <= 0.5 / 400 / SHARE
    )
    assert len(gate.trail.steps) == len(every.trail.steps)
    said = f"1 pair before the last without a verdict, which may be any: {first.pair.new.key}"
    assert said in gate.result().reason


def test_batches_decide_it_with_few_more_pairs_than_looks_one_by_one() -> None:
    """Two flips in three are the judge's own: that is learned, and no batch is tiny."""
    truth = "ccci" * 250
    judged = with_noise(truth, 0.1, "a"), with_noise(truth, 0.1, "b")
    whole = truths(truth, truth, *judged)
    steps = gate_of(whole).trail.steps
    least = next(one.looked for one in steps if one.passing >= math.log10(DECISIVE))
    people: dict[str, Adjudication] = {}
    sizes = []
    while batch := gate_of(replace(whole, people=people)).next_pairs:
        sizes.append(len(batch))
        keys = {one.pair.new.key for one in batch}
        people |= {
            digest: one for digest, one in whole.people.items() if one.item in keys
        }
    gate = gate_of(replace(whole, people=people))
    assert gate.state == "PASS"
    assert least <= gate.trail.looked == sum(sizes) <= least + 40
    assert min(sizes) >= 20


def test_fail_zero_fails_a_loss_within_the_margin() -> None:
    """A tenth broke: real with ``fail: zero``; evidence that fits no value decides nothing."""
    one = truths("c" * 400, ("i" + "c" * 9) * 40)
    for margin, state in ((0.2, "PASS"), (0.11, "FAIL")):
        ruled = replace(one, slice_=graded_slice("en", audited(margin, "zero")))
        assert gate_of(ruled).state == state
    rule = replace(audited(), share=1.0)
    part, count = graded_slice("en", rule), 600
    plain = answers("c" * count, "old", metadata={})
    ids = sorted(range(count), key=lambda n: part.place_of(plain[n]))
    first = {place: rank < count // 2 for rank, place in enumerate(ids)}
    runs = []
    for name, won in (("old", False), ("new", True)):
        letters = "".join("c" if first[n] == won else "i" for n in range(count))
        runs.append((answers(letters, name, metadata={}), letters))
    people = {digest: one for run in runs for digest, one in verdicts(*run).items()}
    gate = gate_of(side(runs[1][0], runs[0][0], people, rule))
    found = gate.result()
    assert (found.state, found.reason, found.estimate.interval) == (
        "INCONCLUSIVE",
        BROKEN,
        None,
    )
    assert gate.state == "PASS"  # what the bets alone would say


def test_a_report_keeps_and_shows_how_the_evidence_grew(tmp_path: Path) -> None:
    """Read back it is the same trail to what decides; the page has two lines, three figures."""
    old, new = answers("c" * 300, "old"), answers("c" * 300, "new")
    people = {**verdicts(old, "c" * 300), **verdicts(new, "c" * 300)}
    past = replace(before(run_of(old)), people=people)
    made = run_of(new, facts_dataset(graded_slice("en", audited())), baseline=past)
    (again,) = load_report(written(made, tmp_path)).decision.gates
    assert made.decision.gates == (again,)
    assert again.audit is not None
    assert again.audit.steps[-1].looked == again.audit.looked
    assert 10 ** max(one.passing for one in again.audit.steps) >= DECISIVE
    assert len(again.audit.steps) <= 200
    page = render(made).replace("&#39;", "'")
    assert page.count("<polyline") == 2
    for words in (
        "as the judge sees it",
        "corrected for the judge's errors",
        "as people see it",
    ):
        assert words in page


def test_only_a_drop_of_the_passing_share_can_be_audited(tmp_path: Path) -> None:
    """People say whether an answer passes, and nothing of other measures."""
    text = "kind: graded\nrubric: simpleqa\nlanguages:\n  en: {{file: en.csv, gates: {{{}}}}}\n"
    for more, rule in (
        ("", audited(0.05)),
        (", share: 0.5", replace(audited(0.05), share=0.5)),
    ):
        whole = text.format(f"drop: {{max: 0.05, evidence: audited{more}}}")
        assert declared(tmp_path, whole).slices["en"].thresholds == (rule,)
    for gates, said in (
        ("drop: {max: 0.05, share: 0.5}", "only with evidence: audited"),
        ("correct: {min: 0.5, evidence: audited}", "is needed, not 'audited'"),
        ("drop: {f_score: {max: 0.05, evidence: audited}}", "is needed, not 'audited'"),
    ):
        assert said in refusal(tmp_path, text.format(gates))


@pytest.mark.parametrize("where", ["data set", "gates file"])
def test_two_shares_in_one_data_set_are_refused(where: str, tmp_path: Path) -> None:
    """Their gates look at the same pairs, each drawn once; the line names both shares."""
    one = "drop: {max: 0.1, evidence: audited, share: 0.5}"
    other = one.replace("0.5", "1.0")
    languages = "en: {{file: a, gates: {{{}}}}}, bg: {{file: b, gates: {{{}}}}}"
    text = f"kind: graded\nlanguages: {{{{{languages}}}}}\n"
    if where == "data set":
        said = refusal(tmp_path, text.format(one, other))
    else:
        dataset = declared(tmp_path, text.format(one, "drop: {max: 0.1}"))
        path = tmp_path / "gates.yaml"
        path.write_text(f"{dataset.name}: {{bg: {{{other}}}}}\n", "utf-8")
        with pytest.raises(UsageError) as refused:
            with_gates(dataset, load_gates(path))
        said = str(refused.value)
    assert "have `share: 0.5 and 1`; give all of them one share" in said


# Settings of then and now


LOST = "i" * 90 + "c" * 210
LOST_IDS = tuple(f"i{number}" for number in range(90))


def lost_by_people(slice_now: Slice, slice_then: Slice) -> Sequence[AuditedGate]:
    """Return the gate in each way, of a run that lost 90 of 300 right answers by people."""
    old, new = answers("c" * 300, "old"), answers(LOST, "new")
    people = {**verdicts(old, "c" * 300), **verdicts(new, LOST)}
    read = [read_by(record, slice_now) for record in new]
    one = PairedSlice(
        slice_=slice_now,
        slice_then=slice_then,
        pairing=pair_records(read, old),
        people=people,
    )
    return list(audited_gates(facts_dataset(slice_now), [one]))


def test_the_same_settings_are_audited_once() -> None:
    part = graded_slice("en", audited(0.2))
    (gate,) = lost_by_people(part, part)
    assert gate.state == "FAIL"


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        (
            {"rubric": replace(RUBRIC, passing=(CORRECT, INCORRECT))},
            "by the earlier passing grades: ",
        ),
        (
            {"retired": Retired(ids=LOST_IDS, reason="said to be wrong")},
            "by the earlier retired items: ",
        ),
    ],
)
def test_a_setting_hides_no_loss_that_people_saw(
    setting: dict[str, Any], name: str
) -> None:
    then = graded_slice("en", audited(0.2))
    now, as_then = lost_by_people(replace(then, **setting), then)
    assert now.state == "PASS"
    assert as_then.state != "PASS"
    assert as_then.result().reason.startswith(name)
    assert as_then.audit.changed == ""


def test_of_an_audited_gate_the_worst_way_stands() -> None:
    part = graded_slice("en", audited(0.2))
    retired = Retired(ids=LOST_IDS, reason="said to be wrong")
    old, new = answers("c" * 300, "old"), answers(LOST, "new")
    people = {**verdicts(old, "c" * 300), **verdicts(new, LOST)}
    past = replace(before(run_of(old, facts_dataset(part))), people=people)
    dataset = facts_dataset(replace(part, retired=retired))
    (gate,) = run_of(new, dataset, baseline=past).decision.gates
    assert gate.state == "FAIL"
    assert gate.reason.startswith("by the earlier retired items: people: new - old is")
