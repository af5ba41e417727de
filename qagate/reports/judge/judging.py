"""The judge's part of a report: who graded, how far it is believed, and how several agree."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from qagate.cases.dataset import Dataset, Slice
from qagate.evaluators.core import LEXICAL, JudgeSpec, PanelSpec, parse_judges
from qagate.evaluators.judges.rule_checks import NO_CHECKS, RuleChecks
from qagate.evaluators.languages.word_lists import has_tables
from qagate.reports.judge.calibration import calibration_notes
from qagate.reports.judge.corrected import correct_rates, corrected_notes
from qagate.reports.judge.rule_errors import rules_check
from qagate.reports.judge.slice_judge import SliceJudge
from qagate.reports.judge.votes import panels, vote_notes
from qagate.reports.run.evidence import Calibration, Judging
from qagate.reports.run.record import Record


def judging(
    datasets: Sequence[Dataset],
    records: Mapping[str, Sequence[Record]],
    judge: str,
    judges: Mapping[str, SliceJudge],
    calibrations: Sequence[Calibration] = (),
    *,
    rule_checks: RuleChecks = NO_CHECKS,
) -> Judging:
    """Return the judge's part of a report over ``records`` by slice; ``judge`` is the SPEC."""
    slices = [
        slice_
        for dataset in datasets
        for slice_ in dataset.slices.values()
        if slice_.name in records
    ]
    graded_slices = [slice_ for slice_ in slices if slice_.kind.by_rubric]
    judged_slices = [slice_ for slice_ in slices if not slice_.kind.answered]
    graded = []
    by_slice = []
    for slice_ in (*graded_slices, *judged_slices):
        by_slice.append((slice_, records[slice_.name]))
        graded += [record for record in records[slice_.name] if record.is_graded]
    split = tuple(record.key for record in graded if record.is_disputed)
    deciders = Counter(
        "people" if record.adjudicated_by else record.judge for record in graded
    )
    is_cascade = parse_judges(judge.split(" ")).is_cascade
    by_rules = [(slice_, records[slice_.name]) for slice_ in graded_slices]
    return Judging(
        graded=len(graded),
        settled=sum(
            _is_settled(record, judge, cascade=is_cascade) for record in graded
        ),
        by_judge=dict(sorted(deciders.items())),
        calibrations=tuple(calibrations),
        unmeasured=tuple(
            slice_.name for slice_ in graded_slices if not judges[slice_.name].labels
        ),
        waived=waived_lines(judges),
        disagreements=split,
        rules=rules_check(by_rules, judge, rule_checks),
        panels=panels(by_slice, judge),
        corrected=correct_rates(judges, records),
    )


def waived_lines(judges: Mapping[str, SliceJudge]) -> tuple[str, ...]:
    """Return why grades count as read although no label measures who gave them, a line each."""
    names: dict[str, list[str]] = defaultdict(list)
    for name, judge in judges.items():
        if judge.waiver:
            names[judge.waiver].append(name)
    lines = [f"{', '.join(slices)}: {why}" for why, slices in names.items()]
    for name, judge in judges.items():
        for metric in judge.slice_.metrics:
            if metric.unmeasured and _is_gated(judge.slice_, metric.name):
                lines.append(f"{name}: {metric.name} unmeasured, by dataset.yaml")
    return tuple(lines)


def _is_gated(slice_: Slice, metric: str) -> bool:
    return any(metric in (gate.measure, gate.of) for gate in slice_.thresholds)


def _is_settled(record: Record, judge: str, *, cascade: bool) -> bool:
    """Return whether no model was asked to judge a record."""
    if record.adjudicated_by or (record.votes and not cascade):
        return False
    decider = record.votes[0].judge if record.votes else record.judge
    if not JudgeSpec.parse(decider).model:
        return True
    return not record.votes and decider == judge


def judging_notes(
    found: Judging, judge: str, judges: Mapping[str, SliceJudge]
) -> list[str]:
    """Return what votes and labelled items say of the judge of the slices run, a line each."""
    spec = parse_judges(judge.split(" "))
    slices = [each.slice_ for each in judges.values()]
    notes = list(found.waived)
    notes += _lexicon_notes(spec, slices)
    rates = any(slice_.kind.rated for slice_ in slices)
    if rates and any(member.is_cascade for member in spec.members):
        notes.append(f"{judge}: ratings are the model's alone, no rule settles one")
    unknown = [name for name in found.unmeasured if not judges[name].waiver]
    if unknown:
        notes.append(
            f"judge not measured for {', '.join(unknown)}: no labelled items were judged"
        )
    return [
        *notes,
        *calibration_notes(found.calibrations),
        *vote_notes(judge, found.rules, found.panels),
        *corrected_notes(found.corrected),
    ]


def _lexicon_notes(judges: PanelSpec, slices: Iterable[Slice]) -> Iterator[str]:
    if not any(member.rules == LEXICAL for member in judges.members):
        return
    bare = _languages_without_words(slices)
    if bare:
        yield (
            f"lexical has no words of {', '.join(bare)}: it may take a refusal for a wrong answer; "
            f'write `refusals: [...]` into words/{bare[0]}.yaml and `words = "words"` under '
            "[tool.qagate] in pyproject.toml, or let a model judge"
        )


def _languages_without_words(slices: Iterable[Slice]) -> list[str]:
    languages: set[str] = set()
    for slice_ in slices:
        if slice_.kind.by_rubric and not slice_.kind.rated:
            languages.add(slice_.language)
    return sorted(language for language in languages if not has_tables(language))
