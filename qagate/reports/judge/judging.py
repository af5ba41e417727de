"""The judge's part of a report: who graded, its errors on labelled answers, how several agree.

A judge with sensitivity Se and specificity Sp, alike on both runs' answers, shows J = Se + Sp - 1
times a true change of the share that passes. A margin therefore has to shrink by J, or a poor judge
would let pass what a good one would not.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from qagate.cases.dataset import Dataset, Slice
from qagate.evaluators.core import LEXICAL, JudgeSpec, PanelSpec, parse_judges
from qagate.evaluators.kinds import GRADED, Cluster
from qagate.evaluators.languages.word_lists import has_tables
from qagate.evaluators.output import plural
from qagate.evaluators.statistics import intervals, ratios, separation
from qagate.evaluators.statistics.intervals import (
    UNDEFINED,
    Estimate,
    corrected_rate,
    figure,
    span_of,
)
from qagate.evaluators.statistics.metrics import USAGE, YOUDEN, YOUDEN_INCORRECT
from qagate.evaluators.statistics.separation import ClassRate, weighted_mean
from qagate.evaluators.text import first_of
from qagate.reports.compare.shares import share_difference
from qagate.reports.compare.sides import PairedSlice
from qagate.reports.judge.measured import agreement_of, calibration_notes, is_measured
from qagate.reports.metrics.gate import side_of
from qagate.reports.metrics.summary import tabulate
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.evidence import (
    Calibration,
    Corrected,
    Judging,
    PanelAgreement,
    RulesAudit,
)
from qagate.reports.run.record import Record
from qagate.reports.run.report import GateResult, GateState


def judging(
    datasets: Sequence[Dataset],
    records: Mapping[str, Sequence[Record]],
    judge: str,
    calibrations: Sequence[Calibration] = (),
) -> Judging:
    """Return the judge's part of a report over ``records`` by slice; ``judge`` is the SPEC."""
    every_slice = (one for dataset in datasets for one in dataset.slices.values())
    slices = [one for one in every_slice if one.name in records]
    graded_slices = [one for one in slices if one.kind.by_rubric]
    judged_slices = [one for one in slices if not one.kind.answered]
    every = [(one, records[one.name]) for one in (*graded_slices, *judged_slices)]
    decided = [record for _, some in every for record in some if record.is_graded]
    split = tuple(
        one.key
        for one in decided
        if len({vote.label for vote in one.votes if vote.label}) > 1
    )
    deciders = Counter("people" if one.adjudicated_by else one.judge for one in decided)
    cascade = parse_judges(judge.split(" ")).is_cascade
    measured = {
        name for one in calibrations if is_measured(one) for name in one.graders
    }
    return Judging(
        graded=len(decided),
        settled=sum(_settled(record, judge, cascade=cascade) for record in decided),
        by_judge=dict(sorted(deciders.items())),
        calibrations=tuple(calibrations),
        unmeasured=tuple(one.name for one in graded_slices if one.name not in measured),
        disagreements=() if cascade else split,
        audited=sum(len(record.votes) > 1 for record in decided) if cascade else 0,
        audit_disagreements=split if cascade else (),
        audit=audit(
            [(part, one) for part in graded_slices for one in records[part.name]], judge
        ),
        panels=panels(every, judge),
        corrected=correct_rates(graded_slices, records, calibrations),
    )


def judging_notes(
    found: Judging, judge: str, slices: Collection[Slice], datasets: Sequence[Dataset]
) -> list[str]:
    """Return what votes and labelled items say of the judge of the slices run, a line each."""
    judges = parse_judges(judge.split(" "))
    lenient = {
        one.name for one in datasets if one.judge_unmeasured and not judges.is_offline
    }
    waived = {name for name in found.unmeasured if name.partition(":")[0] in lenient}
    why = "no labelled items measure its judge; its gates decide all the same"
    notes = [
        f"judge: unmeasured for {name}: {why}"
        for name in found.unmeasured
        if name in waived
    ]
    notes += _lexicon_notes(judges, slices)
    if any(one.is_cascade for one in judges.members) and any(
        one.kind.rated for one in slices
    ):
        notes.append(f"{judge}: ratings are the model's alone, no rule settles one")
    noted = {name for one in found.calibrations for name in one.graders} | waived
    if unknown := [name for name in found.unmeasured if name not in noted]:
        rules = "; rules decide without it" if judges.is_offline else ""
        why = f"no labelled items were judged{rules}"
        notes.append(f"judge not measured for {', '.join(unknown)}: {why}")
    return [
        *notes,
        *calibration_notes(found.calibrations),
        *vote_notes(judge, found.audit, found.panels),
        *corrected_notes(found.corrected),
    ]


def _settled(record: Record, judge: str, *, cascade: bool) -> bool:
    if record.adjudicated_by or (record.votes and not cascade):
        return False
    who = record.votes[0].judge if record.votes else record.judge
    return not JudgeSpec.parse(who).model or (not record.votes and who == judge)


def audit(records: Sequence[tuple[Slice, Record]], judge: str) -> RulesAudit | None:
    """Return what a cascade's audit showed, with Wilson's interval over clusters; else None."""
    judges = parse_judges(judge.split(" "))
    judged = [
        (slice_, record)
        for slice_, record in records
        if record.is_graded and record.votes
    ]
    if not judges.is_cascade or not judged:
        return None
    rules = judges.members[0].rules
    settled_count = 0
    silent_count = 0
    disagreements: dict[tuple[str, Cluster], list[bool]] = defaultdict(list)
    for slice_, record in judged:
        if record.votes[0].judge != rules:
            continue
        settled_count += 1
        if len(record.votes) == 1:
            continue
        of_rules, of_model = record.votes
        if not of_model.label:
            silent_count += 1
            continue
        cluster = slice_.dataset, slice_.cluster_of(record)
        disagreements[cluster].append(of_rules.label != of_model.label)
    return RulesAudit(
        judged=len(judged),
        settled=settled_count,
        disagreement=_disagreement(list(disagreements.values())),
        silent=silent_count,
    )


def _disagreement(clusters: Sequence[Sequence[bool]]) -> Estimate:
    """Return the share of disagreements over items, given by cluster."""
    if not clusters:
        return UNDEFINED
    import numpy as np

    rows = [(sum(cluster), len(cluster), 1) for cluster in clusters]
    table = np.array(rows, dtype=np.float64).T
    n = sum(len(cluster) for cluster in clusters)
    differing = float(table[0].sum())
    if len(clusters) == n:
        span = intervals.wilson(differing, n)
    else:
        span = intervals.clustered_rate(*table)
    return Estimate.of(differing / n, span, n)


def _lexicon_notes(judges: PanelSpec, slices: Iterable[Slice]) -> Iterator[str]:
    if not any(one.rules == LEXICAL for one in judges.members):
        return
    graded = {
        one.language for one in slices if one.kind.by_rubric and not one.kind.rated
    }
    if bare := sorted(language for language in graded if not has_tables(language)):
        yield (
            f"lexical has no words of {', '.join(bare)}: it may take a refusal for a wrong answer; "
            f'write `refusals: [...]` into words/{bare[0]}.yaml and `words = "words"` under '
            "[tool.qagate] in pyproject.toml, or let a model judge"
        )


def panels(
    records: Sequence[tuple[Slice, Sequence[Record]]], judge: str
) -> tuple[PanelAgreement, ...]:
    """Return a panel's agreement on each slice, of which ``records`` has the records."""
    members = tuple(judge.split(" "))
    if len(members) < 2:
        return ()
    found = []
    for slice_, some in records:
        voted = [(one, one.votes[: len(members)]) for one in some if one.votes]
        if voted:
            rows = [(one, [vote.label for vote in votes]) for one, votes in voted]
            ungraded = {one.key for one, _ in voted if not one.is_graded}
            silent = Counter(
                v.judge for _, votes in voted for v in votes if not v.label
            )
            agreed = agreement_of(slice_, members, rows, ungraded)
            found.append(replace(agreed, silent=dict(silent)))
    return tuple(found)


def vote_notes(
    judge: str, found: RulesAudit | None, panels: Sequence[PanelAgreement]
) -> list[str]:
    """Return a line for the audit, and one for each panel."""
    notes = []
    if found:
        share = found.settled / found.judged
        note = f"{judge}: rules settled {found.settled} of {found.judged} verdicts ({share:.0%})"
        checked = found.disagreement
        silent = f", {found.silent} without a verdict" if found.silent else ""
        differs = round((checked.value or 0.0) * checked.n)
        audited = f"of {checked.n} audited{silent} the model differs on {differs}: {checked.text()}"
        notes.append(f"{note}; {audited if checked.n else 'none of them was audited'}")
    for panel in panels:
        kappas = [
            f"{one.first} and {one.second} {one.kappa.text()}" for one in panel.pairs
        ]
        alpha = f"alpha of {len(panel.judges)} judges {panel.alpha.text()}"
        parts = [f"{panel.slice}: {alpha}; kappa of {', '.join(kappas)}"]
        if panel.split:
            named = first_of(panel.split, 10)  # run.json has all
            parts.append(
                f"they differ on {len(panel.split)} ({panel.undecided} without a verdict), "
                f"to be reviewed: {named}"
            )
        parts += [
            f"{name} gave no vote on {count}" for name, count in panel.silent.items()
        ]
        notes.append("; ".join(parts))
    return notes


ENOUGH = 30
"""The fewest labels of each class that correct a rate. A language with fewer borrows from the
other languages of its labelled data set."""


def measuring(
    slice_: Slice, calibrations: Sequence[Calibration]
) -> tuple[Calibration, ...]:
    """Return a slice's calibrations, its own language first; none if they pass at another bar."""
    bar = slice_.pass_bar if slice_.kind.rated else None
    alike = [one for one in calibrations if one.pass_bar == bar]
    own = [one for one in alike if slice_.name in one.graders][:1]
    others = [one for one in alike if own and one.dataset == own[0].dataset]
    return (*own, *(one for one in others if one.language != slice_.language))


def correct_rates(
    slices: Sequence[Slice],
    records: Mapping[str, Sequence[Record]],
    calibrations: Sequence[Calibration],
) -> tuple[Corrected, ...]:
    """Return ``correct`` corrected for the judge's errors, if 30 labels of each class show them.

    What a person decided counts as it is. By Rogan and Gladen, with both samples' interval.
    """
    by_slice = {name: one for one in reversed(calibrations) for name in one.graders}
    known = (one for one in slices if one.kind == GRADED and one.name in by_slice)
    found = (_corrected(one, records[one.name], by_slice[one.name]) for one in known)
    return tuple(filter(None, found))


def corrected_gates(
    slice_: Slice,
    records: Sequence[Record],
    calibrations: Sequence[Calibration],
    obstacle: str,
) -> Iterator[GateResult]:
    """Yield the bars that the whole corrected interval decides, ungraded items at both extremes."""
    gates = [one for one in slice_.thresholds if one.evidence == "corrected"]
    if not gates:
        return
    own = next((one for one in calibrations if slice_.name in one.graders), None)
    found = [
        own and _corrected(slice_, records, own, ungraded)
        for ungraded in (None, False, True)
    ]
    rates = [one.correct for one in found if one and not one.unfit]
    rate = found[0].correct if found[0] else UNDEFINED
    if not obstacle and len(rates) < len(found):
        unfit = next((one.unfit for one in found if one and one.unfit), "")
        obstacle = (
            unfit
            or f"no {ENOUGH} graded labels of each class measure the judge's errors"
        )
    low = min((one.low or 0.0 for one in rates), default=0.0)
    ends = low, max((one.high or 0.0 for one in rates), default=1.0)
    for gate in gates:
        state: GateState = "INCONCLUSIVE" if obstacle else side_of(gate, ends)
        shown = {"PASS": "clears", "FAIL": "misses"}.get(
            state, "neither clears nor misses"
        )
        value = rate.text("{value} after correction for the judge's errors")
        said = f"correct is {value}, 95 % interval {span_of(ends)}: it {shown} the bar"
        yield GateResult(
            dataset=slice_.dataset,
            language=slice_.language,
            threshold=gate,
            state=state,
            estimate=rate,
            worst=None if obstacle else rates[1].value,
            best=None if obstacle else rates[2].value,
            reason=obstacle or f"{said} (n={rate.n})",
        )


def _corrected(
    slice_: Slice,
    records: Sequence[Record],
    calibration: Calibration,
    ungraded: bool | None = None,
) -> Corrected | None:
    """Return the rate; items without a grade count as ``ungraded``, or None leaves them out."""
    errors = calibration.separations.get(YOUDEN)
    if errors is None or errors.fewest < ENOUGH or calibration.ungraded:
        return None
    graded = [one for one in records if one.is_graded]
    people = _called(slice_, [one for one in graded if one.adjudicated_by])
    judged = _called(slice_, [one for one in graded if not one.adjudicated_by])
    if judged is None:
        return None
    if ungraded is not None:  # these count as hits, or as none
        more = len(records) - len(graded)
        trials, size = (
            judged.trials + more,
            judged.size * (judged.trials + more) / judged.trials,
        )
        judged = ClassRate(hits=judged.hits + more * ungraded, trials=trials, size=size)
    sensitivity, specificity = errors.rates
    if sensitivity.value + specificity.value <= 1:
        return None
    rate = corrected_rate(
        judged.independent, sensitivity.independent, specificity.independent
    )
    unfit = "" if rate else "the labels do not fit these answers"
    if rate and rate.interval == (0.0, 1.0):
        unfit = ERRS_TOO_OFTEN
    parts = []
    if rate and not unfit:
        parts = [(replace(rate, n=judged.trials), float(judged.trials))]
    if people and parts:
        own = Estimate.of(
            people.value, intervals.wilson(*people.independent), people.trials
        )
        parts.append((own, float(people.trials)))
    return Corrected(
        slice=slice_.name,
        correct=weighted_mean(parts),
        unfit=unfit,
        labelled=sum(one.trials for one in errors.rates),
        sensitivity=sensitivity.value,
        specificity=specificity.value,
        by_people=people.trials if people else 0,
        constructed=calibration.constructed,
    )


def _called(slice_: Slice, records: Sequence[Record]) -> ClassRate | None:
    if not records:
        return None
    sample = tabulate(records, slice_)
    hits, sizes = ratios.share(*slice_.passing)(sample.patterns)
    return separation.class_rate(hits, sizes, sample.items)


def corrected_notes(found: Sequence[Corrected]) -> list[str]:
    """Return a line for each corrected rate."""
    return [
        f"{one.slice}: correct, corrected for the judge's errors: "
        f"{one.correct.text(undefined='not known')} (sensitivity {one.sensitivity:.3f}, "
        f"specificity {one.specificity:.3f}, from {plural(one.labelled, 'labelled item')})"
        f"{f'; {one.caution}' if one.caution else ''}"
        for one in found
    ]


def drift_notes(
    calibrations: Sequence[Calibration],
    sides: Mapping[str, PairedSlice],
    baseline: Baseline | None,
) -> Iterator[str]:
    """Yield a line for each language whose labelled items the judge read in the baseline too."""
    before = {(one.dataset, one.language): one for one in calibrations_in(baseline)}

    def labels(one: Calibration) -> Counter[str]:
        return Counter(
            label for cell in one.confusion for label in [cell.label] * cell.count
        )

    for one in calibrations:
        name, old = (
            f"{one.dataset}:{one.language}",
            before.get((one.dataset, one.language)),
        )
        found = share_difference([sides[name]]) if name in sides else None
        then, now = ((each and each.measures.get("agreement")) for each in (old, one))
        if found and found.n:
            right = (
                sum(bool(pair.old.passes()) for pair in sides[name].graded) / found.n
            )
            said = f"agreement {right:.3f} then, {right + found.value:.3f} now"
            said += f", new - old {found.estimate.text()}, over {plural(int(found.n), 'pair')}"
        elif then and now and old and then != now and labels(old) == labels(one):
            said = f"agreement {then.text()} then, {now.text()} now"
        else:
            continue
        yield f"judge compared with the baseline's, on the labelled items of {name}: {said}"


def calibrations_in(baseline: Baseline | None) -> tuple[Calibration, ...]:
    """Return the calibrations of an earlier run; none without one."""
    return baseline.report.judging.calibrations if baseline else ()


ERRS_TOO_OFTEN = "the judge errs too often for a conclusion"
MEASURED_BY = {
    "": YOUDEN,
    "correct": YOUDEN,
    "pass_rate": YOUDEN,
    "incorrect": YOUDEN_INCORRECT,
}
"""Which J scales a change, by the metric that changes; empty stands for the share that passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeScale:
    """How a judge's errors shrink a change."""

    youden: Estimate
    """Youden's J; undefined if nothing measures it, and the gate is about the judge's opinion."""
    basis: str
    """Which labels J is from, or why there is none."""

    def shrunk(self, margin: float, *, confident: bool) -> float:
        """Return the largest change that the judge may show if the true one keeps to the margin.

        By J's lower end if ``confident``; the margin where J is unknown, -infinity if it may be 0.
        """
        gain = self.youden.low if confident else self.youden.value
        if gain is None:
            return margin
        return margin * gain if gain > 0 else -math.inf

    def corrected(self, difference: Estimate) -> Estimate:
        """Return the difference corrected for the judge's errors."""
        return separation.corrected_difference(difference, self.youden)

    def text(self, difference: Estimate) -> str:
        """Return in words how the judge's errors change a difference."""
        if self.youden.value is None:
            return f"the verdict is about the judge's opinion: {self.basis}"
        found = self.corrected(difference)
        gain = f"Youden's J {self.youden.text('{value}, {low} to {high}')} {self.basis}"
        if found.value is None or found.interval is None:
            return f"{ERRS_TOO_OFTEN} ({gain})"
        ends = span_of(found.interval)
        value = figure(found.value)
        return f"corrected for the judge's errors, it is {value}, 95 % interval {ends} ({gain})"


def judge_scale(sides: Sequence[PairedSlice], measure: str = "") -> JudgeScale | None:
    """Return the scale of a gate over these slices; None if no judge's verdict is in it.

    One slice takes its own labels; with fewer than 30 of a class those of all languages, and at
    most its own J, with a lower end at most half way to its own: a judge may err more in it.
    Several slices are weighted by their pairs.
    """
    parts = []
    for one in sides:
        both = (record for pair in one.pairs for record in (pair.new, pair.old))
        if one.slice_.kind.by_rubric and any(
            not record.adjudicated_by for record in both
        ):
            parts.append((one.slice_, one.calibrations, len(one.pairs)))
    return _scale(parts, measure)


def expected_scale(
    slices: Sequence[tuple[Slice, int]],
    calibrations: Sequence[Calibration],
    measure: str = "",
) -> JudgeScale | None:
    """Return the expected ``judge_scale`` of slices with these numbers of items."""
    judged = ((one, n) for one, n in slices if one.kind.by_rubric)
    return _scale(
        [(one, measuring(one, calibrations), n) for one, n in judged], measure
    )


_Part = tuple[Slice, Sequence[Calibration], int]
"""A slice that a judge decides, what measures the judge (``measuring``), and its weight."""


def _scale(parts: Sequence[_Part], measure: str) -> JudgeScale | None:
    name = MEASURED_BY.get(measure)
    if not parts or measure in USAGE:
        return None
    if name is None:
        basis = f"its errors are not known on the scale of {measure}"
        return JudgeScale(youden=UNDEFINED, basis=basis)
    if len(parts) > 1:
        every = [
            (one, found[0].separations.get(name), n) for one, found, n in parts if found
        ]
        return _pooled([(one.language, own.youden, n) for one, own, n in every if own])
    (slice_, calibrations, _), *_ = parts
    known = [
        (one, found) for one in calibrations if (found := one.separations.get(name))
    ]
    own = calibrations[0].separations.get(name) if calibrations else None
    if own and own.fewest >= ENOUGH:
        known = known[:1]
    scale = _pooled([(one.language, own.youden, own.youden.n) for one, own in known])
    if not own or len(known) < 2:
        return scale
    few = f"; {slice_.language} alone has fewer than {ENOUGH} of a class"
    top, bottom = own.youden.value or 0.0, own.youden.low or 0.0
    value, low = (
        scale.youden.value or 0.0,
        min(scale.youden.low or 0.0, (top + bottom) / 2),
    )
    youden = replace(scale.youden, value=min(value, top), low=min(value, top, low))
    return JudgeScale(youden=youden, basis=scale.basis + few)


def _pooled(parts: Sequence[tuple[str, Estimate, int]]) -> JudgeScale:
    """Return the scale by each language's J and its weight."""
    if not parts:
        return JudgeScale(
            youden=UNDEFINED, basis="no labelled items measure its errors"
        )
    youden = weighted_mean([(own, float(n)) for _, own, n in parts])
    basis = f"over {plural(youden.n, 'labelled item')} in {', '.join(name for name, *_ in parts)}"
    return JudgeScale(youden=youden, basis=basis)
