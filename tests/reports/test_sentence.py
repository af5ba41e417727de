"""The sentence on a verdict: a row for each cause that a verdict can end in, and its edge cases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.cases.dataset import Shards, SliceSample, Threshold
from qagate.evaluators.statistics.intervals import Estimate
from qagate.reports.render.measure_words import percents
from qagate.reports.render.sentence import BY_CAUSE, sentence_of
from qagate.reports.run.evidence import (
    AuditTrail,
    Calibration,
    Comparison,
    Judging,
    SliceComparison,
)
from qagate.reports.run.report import (
    Cause,
    Counts,
    Decision,
    GateResult,
    GateState,
    Report,
    SessionStatus,
    SliceSummary,
)
from tests.support.samples import part, record, report

LANGUAGES = ("pl", "hu", "bg", "be", "en")
PAIRS = 340
DROP = Threshold(measure="drop", max=0.10, evidence="confident", fail="margin")


def loss(
    language: str,
    state: GateState,
    lost: float = 0.0,
    *,
    old: float = 0.94,
    **changes: object,
) -> GateResult:
    """Return a gate on the share of right answers of a language, or of all with no language."""
    made = GateResult(
        dataset="simpleqa",
        language=language,
        threshold=replace(DROP, pool=not language),
        state=state,
        estimate=Estimate.of(-lost, (-lost - 0.05, -lost + 0.05), PAIRS),
        reason="new - old is …",
        band=(-lost - 0.05, -lost + 0.05),
        old=old,
        new=old - lost,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def bar(
    measure: str, value: float, language: str = "en", **changes: object
) -> GateResult:
    """Return a gate on a metric of one run, which fails at 0.95 unless said otherwise."""
    made = GateResult(
        dataset="simpleqa",
        language=language,
        threshold=Threshold(measure=measure, min=0.95),
        state="FAIL",
        estimate=Estimate.of(value, (value - 0.02, value + 0.02), PAIRS),
        reason="…",
        band=(value, value),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def compared(gates: Sequence[GateResult]) -> Comparison:
    """Return the pairs of each language: 94 of 100 right before, and what its gate lost."""
    slices = []
    for gate in gates:
        if not gate.threshold.paired or gate.threshold.of or not gate.language:
            continue
        lost = -(gate.estimate.value or 0.0)
        right = round((gate.old or 0.0) * PAIRS)
        fixed = 4
        broke = round(lost * PAIRS) + fixed
        slices.append(
            SliceComparison(
                dataset="simpleqa",
                language=gate.language,
                difference=gate.estimate,
                p_value=None,
                odds=Estimate.of(None, None, 0),
                fixed=fixed,
                broke=broke,
                both_right=right - broke,
                both_wrong=PAIRS - right - fixed,
                ungraded=0,
                added=0,
                changed=0,
                removed=0,
            )
        )
    return Comparison(model="openai:old", judge="openai:judge", slices=tuple(slices))


def slices(**changes: object) -> tuple[SliceSummary, ...]:
    """Return a slice a language; ``changes`` are of the Polish one."""
    made = []
    for number, language in enumerate(LANGUAGES):
        records = (record(number + 1, key=f"k{number}", language=language),)
        own = changes if language == "pl" else {}
        made.append(part("graded", records, {"correct": 0.9}, **own))
    return tuple(made)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A run, and what is said of it."""

    cause: Cause
    text: str
    advice: str = ""
    numbers: str = ""
    gates: Sequence[GateResult] = ()
    about: tuple[str, ...] = ()
    code: int = 6
    changes: Mapping[str, object] | None = None

    @property
    def report(self) -> Report:
        decision = Decision(
            gates=tuple(self.gates),
            code=self.code,
            cause=self.cause,
            line="-",
            about=self.about,
        )
        values: dict[str, object] = {
            "decision": decision,
            "slices": slices(),
            "comparison": compared(self.gates),
        }
        values.update(self.changes or {})
        return report((), **values)


HOLD = [loss(language, "PASS", 0.01) for language in ("bg", "be", "en")]
JUDGE = Calibration(
    dataset="judges",
    language="pl",
    measures={"agreement": Estimate.of(0.94, (0.75, 0.98), 115)},
    floor={"agreement": 0.85},
    trusted=False,
    graders=("simpleqa:pl",),
)
LABELLED = {"judging": Judging(graded=340, calibrations=(JUDGE,))}
UNGRADED = Counts(planned=340, passed=300, failed=28, error=12, missing=0)
SAMPLE = SliceSample(items=120, of=340, seed=1)
AUDIT = AuditTrail(
    pairs=200,
    alike=152,
    looked=0,
    open=0,
    next=36,
    judged=Estimate.of(-0.2, (-0.3, -0.1), 200),
    corrected=Estimate.of(-0.2, (-0.3, -0.1), 200),
)
SEEN = "The old model missed it too (93%)."

ROWS = {
    "one language lost": Row(
        cause=Cause.GATE_FAILED,
        code=1,
        gates=[loss("pl", "FAIL", 0.24), loss("hu", "PASS"), *HOLD],
        text="Do not ship: Polish fell from 94% right to 70%.",
        numbers="Polish lost **86 right answers** and won 4, of 340: a net loss of **24%** (19 to "
        "29%). At most 10% may be lost. The other four languages hold.",
        advice="Read the lost Polish answers.",
    ),
    "two languages lost": Row(
        cause=Cause.GATE_FAILED,
        code=1,
        gates=[loss("hu", "FAIL", 0.17), loss("pl", "FAIL", 0.24), *HOLD],
        text="Do not ship: Polish fell from 94% right to 70%, Hungarian from 94% to 77%.",
        numbers="The other three languages hold.",
    ),
    "four languages lost": Row(
        cause=Cause.GATE_FAILED,
        code=1,
        gates=[
            loss("pl", "FAIL", 0.24),
            *[loss(language, "FAIL", 0.16) for language in ("hu", "bg", "be")],
        ],
        text="Do not ship: four of five languages lost more than 10%, Polish most (24%).",
    ),
    "a pool that fails by a language": Row(
        cause=Cause.GATE_FAILED,
        code=1,
        gates=[
            loss("", "FAIL", 0.04, bands={"pl": (-0.29, -0.19)}),
            loss("pl", "PASS", 0.24),
        ],
        text="Do not ship: Polish fell from 94% right to 70%.",
    ),
    "only all together": Row(
        cause=Cause.GATE_FAILED,
        code=1,
        gates=[loss("", "FAIL", 0.12), *HOLD],
        text="Do not ship: all languages together lost 12%, and 10% may be lost. None fails alone.",
    ),
    "more wrong answers": Row(
        cause=Cause.GATE_FAILED,
        code=1,
        gates=[
            loss(
                "pl", "FAIL", -0.2, old=0.04, new=0.24,
                threshold=Threshold(measure="rise", of="incorrect", max=0.1),
            )
        ],
        text="Do not ship: wrong answers in Polish rose from 4% to 24%.",
    ),
    "answers in another language": Row(
        cause=Cause.GATE_FAILED,
        code=1,
        gates=[
            bar("other_language", 0.12, "be",
                threshold=Threshold(measure="other_language", max=0.05))
        ],
        text="Do not ship: 12% of the Belarusian answers are in another language, and 5% may be.",
    ),
    "too slow": Row(
        cause=Cause.GATE_FAILED,
        code=1,
        gates=[bar("seconds_p95", 9.0, threshold=Threshold(measure="seconds_p95", max=8.0))],
        text="Do not ship: the slowest 5% take 9 s in English, and 8 may be.",
    ),
    "a bar that the old model missed too": Row(
        cause=Cause.GATE_FAILED,
        code=1,
        gates=[bar("correct", 0.92, old=0.93)],
        text=f"Do not ship: English is right on 92%, and 95% is needed. {SEEN}",
    ),
    "two figures that would look the same": Row(
        cause=Cause.GATE_FAILED,
        code=1,
        gates=[bar("correct", 0.9462)],
        text="Do not ship: English is right on 94.6%, and 95.0% is needed.",
    ),
    "bars without a baseline": Row(
        cause=Cause.PASSED,
        code=0,
        gates=[bar("correct", 0.97, state="PASS")],
        text="The bars hold, but losses were not looked for: no old model was given.",
        advice="Name the last release before you sign.",
        numbers="Closest call: 97% right answers in English, where 95% is needed.",
    ),
    "too close": Row(
        cause=Cause.GATE_OPEN,
        gates=[
            loss("pl", "INCONCLUSIVE", 0.05, band=(-0.13, -0.01),
                 remedy="about 620 more pairs or about 250 more labels"),
            loss("hu", "PASS"), *HOLD,
        ],
        text="Cannot be decided: Polish lost 5%, perhaps more than 10%.",
        numbers="may be **1% to 13%**, and at most 10% is allowed. The other four languages hold.",
        advice="About 620 more Polish questions or about 250 more labelled Polish answers.",
    ),
    "too close although nothing was lost": Row(
        cause=Cause.GATE_OPEN,
        gates=[loss("pl", "INCONCLUSIVE", 0.0)],
        text="Cannot be decided: Polish lost nothing, and a loss of 10% is not ruled out.",
        advice="No number of questions can be named",
    ),
    "people have to read more": Row(
        cause=Cause.GATE_OPEN,
        gates=[
            loss("pl", "INCONCLUSIVE", 0.0, audit=AUDIT,
                 reason="people have looked at no pair yet; 72 answers of 36 more pairs to read: "
                 "qagate review out --baseline=v1 --until-decided (0 looked at of 200 pairs)")
        ],
        text="Cannot be decided: people decide in Polish, and have to read 36 pairs of "
        "answers more.",
        numbers="They have looked at 0 of 200 pairs.",
        advice="Let people read them: qagate review out --baseline=v1 --until-decided.",
    ),
    "a bar too close": Row(
        cause=Cause.GATE_OPEN,
        gates=[bar("correct", 0.96, state="INCONCLUSIVE")],
        text="Cannot be decided: English is right on 96%, perhaps on less than the 95% needed.",
    ),
    "a rise too close": Row(
        cause=Cause.GATE_OPEN,
        gates=[
            loss("pl", "INCONCLUSIVE", -0.08,
                 threshold=Threshold(measure="rise", of="incorrect", max=0.1))
        ],
        text="Cannot be decided: wrong answers in Polish rose by 8%, perhaps by more than 10%.",
    ),
    "judge measured too little": Row(
        cause=Cause.GATE_OPEN,
        gates=[
            bar("correct", 0.9, "pl", state="INCONCLUSIVE",
                reason="judge measured too little in pl: … about 400 items would decide it")
        ],
        changes=LABELLED,
        text="Cannot be decided: the judge is right on 75% to 98% in Polish, and 85% is needed.",
        advice="Label about 400 answers, or take a better judge.",
    ),
    "judge not trusted": Row(
        cause=Cause.GATE_OPEN,
        gates=[bar("correct", 0.9, "pl", state="INCONCLUSIVE", reason="judge not trusted in pl")],
        changes=LABELLED,
        text="Cannot be decided: the judge is right on 75% to 98% in Polish, and 85% is needed.",
        advice="Take a better judge.",
    ),
    "a judge that favours a model": Row(
        cause=Cause.GATE_OPEN,
        gates=[
            loss("pl", "INCONCLUSIVE", 0.02,
                 reason="judge not trusted in pl: it favours the new run by 0.120, 95 % interval "
                 "0.050 to 0.190, over 180 labels on answers of both runs; use another judge")
        ],
        changes=LABELLED,
        text="Cannot be decided: the judge favours the new model in Polish by 12%.",
        numbers="Over 180 labels on answers of both models it may be 5% to 19%.",
        advice="Use another judge",
    ),
    "three languages too close": Row(
        cause=Cause.GATE_OPEN,
        gates=[
            loss("bg", "INCONCLUSIVE", 0.08, remedy="about 620 more pairs"),
            loss("pl", "INCONCLUSIVE", 0.06),
            loss("hu", "INCONCLUSIVE", 0.07),
        ],
        text="Cannot be decided: three of five languages may have lost more than 10%, Bulgarian "
        "most (8%).",
        advice="About 620 more Bulgarian questions.",
    ),
    "lost since the anchor": Row(
        cause=Cause.GATE_FAILED,
        code=1,
        gates=[loss("pl", "FAIL", 0.24, anchored=True), *HOLD],
        text="Do not ship: Polish fell from 94% right to 70% since the anchor.",
    ),
    "perhaps too slow": Row(
        cause=Cause.GATE_OPEN,
        gates=[
            bar("seconds_p95", 7.9, state="INCONCLUSIVE", band=(7.0, 8.8),
                threshold=Threshold(measure="seconds_p95", max=8.0))
        ],
        text="Cannot be decided: the slowest 5% take 7.9 s in English, perhaps more than the 8 s "
        "allowed.",
    ),
    "judge not measured": Row(
        cause=Cause.GATE_OPEN,
        gates=[bar("correct", 0.9, "de", state="INCONCLUSIVE", reason="judge not measured in de")],
        text="Cannot be decided: nobody knows how often the judge is right in German.",
        advice="Label 90 answers",
    ),
    "no grade": Row(
        cause=Cause.GATE_OPEN,
        gates=[loss("pl", "INCONCLUSIVE", 0.02, remedy="grade 12 more")],
        changes={"slices": slices(counts=UNGRADED)},
        text="Cannot be decided: 12 Polish answers have no grade, and they could tip it.",
        advice="Run the same command again: only these are asked.",
    ),
    "a part of the questions": Row(
        cause=Cause.GATE_OPEN,
        gates=[bar("correct", 0.9, "pl", state="INCONCLUSIVE")],
        changes={
            "slices": slices(
                sample=SAMPLE,
                counts=Counts(planned=120, passed=110, failed=10, error=0, missing=0),
            )
        },
        text="Cannot be decided: only 120 of 340 Polish questions were asked.",
        advice="Ask all of them",
    ),
    "questions that cannot be compared": Row(
        cause=Cause.GATE_OPEN,
        gates=[
            loss("pl", "INCONCLUSIVE", 0.02, remedy="see to the 3 missing, 1 edited items")
        ],
        text="Cannot be decided: 3 missing, 1 edited questions in Polish cannot be compared, "
        "and they could tip it.",
    ),
    "a gate that has no figure": Row(
        cause=Cause.GATE_OPEN,
        gates=[
            bar("kappa", 0.0, "pl", state="INCONCLUSIVE", band=None,
                reason="kappa is undefined over 3 graded items; ask more")
        ],
        text="Cannot be decided for Polish: kappa is undefined over 3 graded items.",
        advice="Ask more.",
    ),
    "health": Row(
        cause=Cause.UNHEALTHY,
        gates=HOLD,
        about=("41 of 340 answers of simpleqa:pl are cut short; raise max_tokens",),
        text="Cannot be decided: 41 of 340 answers of Polish are cut short.",
        advice="Raise max_tokens.",
    ),
    "a slice that is gone": Row(
        cause=Cause.DOUBT,
        gates=HOLD,
        about=("this run lacks simpleqa:pl (340 items), which the baseline has; run all",),
        text="Cannot be decided: this run lacks Polish (340 items), which the baseline has.",
        advice="Run all.",
    ),
    "one's own tests": Row(
        cause=Cause.OWN_TESTS,
        code=1,
        gates=HOLD,
        changes={"session": SessionStatus(failures=3)},
        text="Do not ship: 3 of your own tests failed. The gates hold.",
    ),
    "pass": Row(
        cause=Cause.PASSED,
        code=0,
        gates=[loss("pl", "PASS", 0.03), *HOLD],
        text="Ship: no language lost more than the 10% allowed.",
        numbers="The closest is **Polish**: it lost 14 right answers and won 4, of 340; at worst "
        "8% are lost.",
        advice="Sign, and keep this run as the baseline of the next release.",
    ),
    "pass by a placeholder": Row(
        cause=Cause.PASSED,
        code=0,
        gates=HOLD,
        changes={"judging": Judging(calibrations=(replace(JUDGE, stand_in="rules"),))},
        text="Nothing to sign: a placeholder judge graded, so this tests the setup alone.",
    ),
    "no gates": Row(
        cause=Cause.NO_GATES,
        text="Cannot be decided: no gate says what is good enough.",
    ),
    "a slice without a gate": Row(
        cause=Cause.SLICE_WITHOUT_GATE,
        gates=HOLD,
        about=("simpleqa:pl", "simpleqa:hu"),
        text="Cannot be decided: no gate of its own says what is good enough in Polish and "
        "Hungarian.",
    ),
    "a baseline is needed": Row(
        cause=Cause.NO_BASELINE,
        gates=HOLD,
        about=("v1 is promoted over these data; give --baseline=v1",),
        text="Cannot be decided: losses were not looked for, as no old model was given.",
    ),
    "no gate on the change": Row(
        cause=Cause.NO_CHANGE_GATE,
        gates=HOLD,
        about=("simpleqa:pl",),
        text="Cannot be decided: no gate says how much Polish may lose.",
    ),
    "gates that see no loss": Row(
        cause=Cause.BLIND,
        gates=HOLD,
        about=("simpleqa:pl (NOT_ATTEMPTED)",),
        text="Cannot be decided: the gates would not notice a loss in Polish.",
    ),
    "a pool that outvotes a language": Row(
        cause=Cause.OUTVOTED,
        gates=HOLD,
        about=("simpleqa:pl lost 41 and won 3 of 340 answers",),
        text="Cannot be decided: Polish lost 41 and won 3 of 340 answers, and no gate is about "
        "it alone.",
        advice="Give the language a margin of its own",
    ),
    "nothing graded": Row(
        cause=Cause.NOTHING_GRADED,
        code=4,
        about=("no key was sent; set OPENAI_API_KEY",),
        text="Cannot be decided: no answer has a grade (no key was sent).",
        advice="Set OPENAI_API_KEY.",
    ),
    "nothing selected": Row(
        cause=Cause.NOTHING_SELECTED,
        code=5,
        text="Cannot be decided: no question was asked.",
    ),
    "a shard": Row(
        cause=Cause.SHARD,
        gates=HOLD,
        changes={"shards": Shards(of=8, held=(1,))},
        text="Cannot be decided: this is 1 of 8 parts of a run.",
    ),
    "interrupted": Row(
        cause=Cause.INTERRUPTED,
        code=2,
        changes={
            "complete": False,
            "counts": Counts(planned=340, passed=100, failed=20, error=0, missing=220),
        },
        text="Cannot be decided: the run was cut short after 120 of 340 answers.",
    ),
    "broken off": Row(
        cause=Cause.BROKEN_OFF,
        code=3,
        about=("KeyError: 'a'",),
        text="Cannot be decided: the run broke off with an error of its own.",
    ),
    "gates off": Row(
        cause=Cause.GATES_OFF,
        code=0,
        text="Cannot be decided: the gates were switched off.",
    ),
    "a plugin's code": Row(
        cause=Cause.PLUGIN,
        code=77,
        text="Cannot be decided: pytest, or a plugin, ended the run with exit code 77.",
    ),
    "read anew": Row(
        cause=Cause.READ_ANEW,
        code=0,
        text="Read anew by today's judge: this decides nothing.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS.values(), ids=list(ROWS))
def test_the_sentence_says_what_to_do_and_why(row: Row) -> None:
    assert sentence_of(row.report).text == row.text


@pytest.mark.parametrize("row", ROWS.values(), ids=list(ROWS))
def test_figures_and_advice_stand_beside_it(row: Row) -> None:
    sentence = sentence_of(row.report)
    assert row.numbers in sentence.numbers
    assert row.advice in sentence.advice


@pytest.mark.parametrize("row", ROWS.values(), ids=list(ROWS))
def test_only_a_run_that_passed_may_be_shipped(row: Row) -> None:
    """No other cause, and no run without gates on a loss, is ever said to be ready."""
    is_go = sentence_of(row.report).text.startswith("Ship")
    assert is_go == (row.report.decision.gates == ROWS["pass"].report.decision.gates)


def test_every_cause_has_words_and_a_row() -> None:
    assert set(BY_CAUSE) == set(Cause)
    assert {row.cause for row in ROWS.values()} == set(Cause)


def test_slices_are_told_apart_where_a_run_has_several_data_sets() -> None:
    row = ROWS["one language lost"]
    other = part("graded", (record(99, dataset="eba"),), {"correct": 0.9})
    made = replace(row.report, slices=(*row.report.slices, other))
    assert sentence_of(made).text.startswith(
        "Do not ship: Polish in simpleqa fell from"
    )


@given(st.lists(st.floats(0, 1), min_size=2, max_size=2))
def test_shares_that_differ_by_a_tenth_of_a_point_look_different(
    shares: list[float],
) -> None:
    first, second = shares
    texts = percents(first, second)
    if abs(first - second) > 0.0011:
        assert texts[0] != texts[1]
